"""The paper (Das & Sinha 2024) as data and tests.

- `settings`: its experiments as records, with the parameters of their policies; their names are those of the package.
- `published_numbers`: its figure as numbers.
- `theorems`: burn-ins and regret bounds.
- `yahoo`: its experiment on a click log.
- `claims`: what it claims, and each claim's test in words; `judging`: the functions that reach the verdicts.
"""

from hybandits.paper.settings import *  # noqa: F403
