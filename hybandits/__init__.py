"""hybandits: contextual bandits whose reward has a shared part and a part of each arm's own, x.theta + z.beta_arm.

Names are imported when first used, so that `import hybandits` itself costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    "AsWritten": "hybandits.confidence",
    "CandidateSet": "hybandits.estimator",
    "Choice": "hybandits.policies",
    "Constant": "hybandits.confidence",
    "DisLinUCB": "hybandits.policies",
    "EpsilonGreedy": "hybandits.policies",
    "FileError": "hybandits.storage",
    "Greedy": "hybandits.policies",
    "HyLinUCB": "hybandits.policies",
    "HyRan": "hybandits.policies",
    "HyRanWithoutCrossBlocks": "hybandits.policies",
    "HyThompson": "hybandits.policies",
    "HybridRidge": "hybandits.estimator",
    "LiHybrid": "hybandits.policies",
    "LinUCB": "hybandits.policies",
    "Policy": "hybandits.policies",
    "Prediction": "hybandits.estimator",
    "SelfNormalised": "hybandits.confidence",
    "SupLinUCB": "hybandits.policies",
    "Uniform": "hybandits.policies",
    "load": "hybandits.policies",
    "warm_up": "hybandits.warming",
}

__all__ = [
    "AsWritten",
    "CandidateSet",
    "Choice",
    "Constant",
    "DisLinUCB",
    "EpsilonGreedy",
    "FileError",
    "Greedy",
    "HyLinUCB",
    "HyRan",
    "HyRanWithoutCrossBlocks",
    "HyThompson",
    "HybridRidge",
    "LiHybrid",
    "LinUCB",
    "Policy",
    "Prediction",
    "SelfNormalised",
    "SupLinUCB",
    "Uniform",
    "__version__",
    "load",
    "warm_up",
]

if TYPE_CHECKING:
    from hybandits.confidence import AsWritten, Constant, SelfNormalised
    from hybandits.estimator import CandidateSet, HybridRidge, Prediction
    from hybandits.policies import (
        Choice,
        DisLinUCB,
        EpsilonGreedy,
        Greedy,
        HyLinUCB,
        HyRan,
        HyRanWithoutCrossBlocks,
        HyThompson,
        LiHybrid,
        LinUCB,
        Policy,
        SupLinUCB,
        Uniform,
        load,
    )
    from hybandits.storage import FileError
    from hybandits.warming import warm_up


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hybandits' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
