"""The policies: rules for choosing on top of the estimator, one file per idea."""

from hybandits.policies.base import Policy, load
from hybandits.policies.choices import Choice, Choices, RandomizedChoices
from hybandits.policies.hyran import HyRan, HyRanWithoutCrossBlocks
from hybandits.policies.information import HyIDS
from hybandits.policies.randomised import EpsilonGreedy, Uniform
from hybandits.policies.ridge_policy import RidgePolicy
from hybandits.policies.suplinucb import SupLinUCB
from hybandits.policies.thompson import HyThompson
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
