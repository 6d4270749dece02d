"""Contextual bandits for rewards with a part that all arms share and a part of each arm's own: x.theta + z.beta_arm.

Names are imported when they are first used, so `import hybandits` itself takes next to no time.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybandits.bandit import Bandit as Bandit
    from hybandits.bandit import load as load
    from hybandits.cli.warm_up import warm_up as warm_up
    from hybandits.estimators.arms import CandidateSet as CandidateSet
    from hybandits.estimators.arms import Prediction as Prediction
    from hybandits.estimators.exploration import AsWritten as AsWritten
    from hybandits.estimators.exploration import Constant as Constant
    from hybandits.estimators.exploration import SelfNormalised as SelfNormalised
    from hybandits.estimators.policy_file import FileError as FileError
    from hybandits.estimators.ridge import HybridRidge as HybridRidge
    from hybandits.features import Boolean as Boolean
    from hybandits.features import Category as Category
    from hybandits.features import Features as Features
    from hybandits.features import Labels as Labels
    from hybandits.features import Number as Number
    from hybandits.features import Vector as Vector
    from hybandits.foundation import __version__ as __version__
    from hybandits.policies import Choice as Choice
    from hybandits.policies import Choices as Choices
    from hybandits.policies import DisLinUCB as DisLinUCB
    from hybandits.policies import EpsilonGreedy as EpsilonGreedy
    from hybandits.policies import Greedy as Greedy
    from hybandits.policies import HyIDS as HyIDS
    from hybandits.policies import HyLinUCB as HyLinUCB
    from hybandits.policies import HyRan as HyRan
    from hybandits.policies import HyRanWithoutCrossBlocks as HyRanWithoutCrossBlocks
    from hybandits.policies import HyThompson as HyThompson
    from hybandits.policies import LiHybrid as LiHybrid
    from hybandits.policies import LinUCB as LinUCB
    from hybandits.policies import Policy as Policy
    from hybandits.policies import SupLinUCB as SupLinUCB
    from hybandits.policies import Uniform as Uniform

_MODULES = {
    alias.name: statement.module
    for statement in ast.walk(ast.parse(Path(__file__).read_text()))
    if isinstance(statement, ast.ImportFrom) and statement.module and statement.module.startswith("hybandits.")
    for alias in statement.names
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hybandits' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
