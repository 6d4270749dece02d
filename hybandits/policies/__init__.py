"""The policies: rules for choosing on top of the estimator, one file per idea."""

from hybandits.policies.base import Policy, RidgePolicy, load
from hybandits.policies.choices import Choice, Choices, RandomizedChoices
from hybandits.policies.hyran import HyRan, HyRanWithoutCrossBlocks
from hybandits.policies.posterior import HyIDS, HyThompson
from hybandits.policies.randomised import EpsilonGreedy, Uniform
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.policies.ucb import DisLinUCB, Greedy, HyLinUCB, LiHybrid, LinUCB

__all__ = [
    "Choice",
    "Choices",
    "DisLinUCB",
    "EpsilonGreedy",
    "Greedy",
    "HyIDS",
    "HyLinUCB",
    "HyRan",
    "HyRanWithoutCrossBlocks",
    "HyThompson",
    "LiHybrid",
    "LinUCB",
    "Policy",
    "RandomizedChoices",
    "RidgePolicy",
    "SupLinUCB",
    "Uniform",
    "load",
]
