"""Contextual bandits for rewards with a part that all arms share and a part of each arm's own: x.theta + z.beta_arm.

Names are imported when they are first used, so `import hybandits` itself takes next to no time.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hybandits.foundation.version import __version__

_HOME = {
    "AsWritten": "hybandits.estimators.exploration",
    "CandidateSet": "hybandits.estimators.arms",
    "Category": "hybandits.features",
    "Choice": "hybandits.policies",
    "Choices": "hybandits.policies",
    "Constant": "hybandits.estimators.exploration",
    "DisLinUCB": "hybandits.policies",
    "EpsilonGreedy": "hybandits.policies",
    "Features": "hybandits.features",
    "FileError": "hybandits.estimators.policy_file",
    "Greedy": "hybandits.policies",
    "HyIDS": "hybandits.policies",
    "HyLinUCB": "hybandits.policies",
    "HyRan": "hybandits.policies",
    "HyRanWithoutCrossBlocks": "hybandits.policies",
    "HyThompson": "hybandits.policies",
    "HybridRidge": "hybandits.estimators.ridge",
    "LiHybrid": "hybandits.policies",
    "LinUCB": "hybandits.policies",
    "Number": "hybandits.features",
    "Policy": "hybandits.policies",
    "Prediction": "hybandits.estimators.ridge",
    "Ranking": "hybandits.policies",
    "SelfNormalised": "hybandits.estimators.exploration",
    "SupLinUCB": "hybandits.policies",
    "Uniform": "hybandits.policies",
    "load": "hybandits.policies",
    "warm_up": "hybandits.cli.warm_up",
}

__all__ = [
    "AsWritten",
    "CandidateSet",
    "Category",
    "Choice",
    "Choices",
    "Constant",
    "DisLinUCB",
    "EpsilonGreedy",
    "Features",
    "FileError",
    "Greedy",
    "HyIDS",
    "HyLinUCB",
    "HyRan",
    "HyRanWithoutCrossBlocks",
    "HyThompson",
    "HybridRidge",
    "LiHybrid",
    "LinUCB",
    "Number",
    "Policy",
    "Prediction",
    "Ranking",
    "SelfNormalised",
    "SupLinUCB",
    "Uniform",
    "__version__",
    "load",
    "warm_up",
]

if TYPE_CHECKING:
    from hybandits.cli.warm_up import warm_up
    from hybandits.estimators.arms import CandidateSet
    from hybandits.estimators.exploration import AsWritten, Constant, SelfNormalised
    from hybandits.estimators.interface import Prediction
    from hybandits.estimators.policy_file import FileError
    from hybandits.estimators.ridge import HybridRidge
    from hybandits.features import Category, Features, Number
    from hybandits.policies import (
        Choice,
        Choices,
        DisLinUCB,
        EpsilonGreedy,
        Greedy,
        HyIDS,
        HyLinUCB,
        HyRan,
        HyRanWithoutCrossBlocks,
        HyThompson,
        LiHybrid,
        LinUCB,
        Policy,
        Ranking,
        SupLinUCB,
        Uniform,
        load,
    )


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hybandits' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
