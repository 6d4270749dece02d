"""Evaluation from logs: estimates of the values of policies from the log of another policy.

`evaluate` takes a view of a log and policies by name, and returns an `Evaluation` with an `Estimate` per policy and
estimator, and `Diagnostics` of how well the log supports them.
"""

from hybandits.evaluation.api import INTERVALS, EvaluationPlan, Gathered, evaluate
from hybandits.evaluation.estimators import ESTIMATORS, Estimator, Terms
from hybandits.evaluation.named import FrozenBandit, LearningBandit, LogColumns, fit_bandit
from hybandits.evaluation.results import Diagnostics, Difference, Estimate, Evaluation
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
    "ESTIMATORS", "INTERVALS", "Always", "ChoiceProbabilities", "Diagnostics", "Difference", "Estimate", "Estimator",
    "Evaluation", "EvaluationPlan", "Frozen", "FrozenBandit", "Gathered", "Learning", "LearningBandit", "LogColumns",
    "Logged", "Target", "Terms", "UniformChoice", "evaluate", "fit_bandit",
]  # fmt: skip
