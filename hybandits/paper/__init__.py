"""The paper (Das & Sinha 2024) as data and tests.

- `settings`: its experiments as records, with the parameters of their policies; `families`: experiments beyond it, of
  which one name runs several. Names of both are those of the package.
- `structured`: the family of worlds in which diversity fails by construction; `exponents`: that of shapes in which one
  of K, d1 and d2 varies; `sensitivity`: two of variants of the paper's algorithms.
- `published_numbers`: its figure as numbers.
- `theorems`: burn-ins and regret bounds; `bounds`: those that they are compared with.
- `yahoo`: its experiment on a click log; `reward_model`: a model from a file for it.
- `claims`: what it claims, and each claim's test in words; `judging`: the functions that reach the verdicts.
- `beyond`: questions that it leaves open, and their answers; `diversity`: those on its assumption.
"""

from hybandits.paper.families import *  # noqa: F403
from hybandits.paper.settings import *  # noqa: F403
