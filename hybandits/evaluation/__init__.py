"""What policies would have earned, estimated from the log of another policy.

`evaluate` is the front door: it takes a view of a log and policies by name, and returns an `Evaluation` with an
`Estimate` per policy and estimator, and `Diagnostics` that say how well the log supports them.
"""

from hybandits.evaluation.api import ESTIMATORS, evaluate, gather, terms_by_round
from hybandits.evaluation.estimates import INTERVALS, Gathered
from hybandits.evaluation.passes import progress_total
from hybandits.evaluation.results import Diagnostics, Difference, Estimate, Evaluation, Running
from hybandits.evaluation.targets import (
    Always,
    ChoiceProbabilities,
    Frozen,
    Learning,
    Logged,
    Target,
    UniformChoice,
)

__all__ = [
    "ESTIMATORS", "INTERVALS", "Always", "ChoiceProbabilities", "Diagnostics", "Difference", "Estimate", "Evaluation",
    "Frozen", "Gathered", "Learning", "Logged", "Running", "Target", "UniformChoice", "evaluate", "gather",
    "progress_total", "terms_by_round",
]  # fmt: skip
