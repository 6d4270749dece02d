"""The paper (Das & Sinha 2024) as data and tests.

- `settings`: its experiments as records, with the parameters of their policies; their names are those of the package.
- `published_numbers`: its figure as numbers.
- `theorems`: burn-ins and regret bounds.
- `yahoo`: its experiment on a click log.
- `claims`: what it claims; `judging`: the tests that reach a verdict on each claim; `wording`: their words.
"""

from hybandits.paper.settings import *  # noqa: F403
