"""Contextual bandits for rewards with a part that all arms share and a part of each arm's own: x.theta + z.beta_arm.

Names are imported when they are first used, so `import hybandits` itself takes next to no time. `__init__.pyi` lists
them, for this module and for type checkers.
"""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_MODULES = {
    alias.name: str(statement.module)
    for statement in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(statement, ast.ImportFrom)
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
