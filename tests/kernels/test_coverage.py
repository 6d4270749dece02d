"""No kernel is without a test."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

from hybandits.estimators import learned
from hybandits.features import maps
from tests.support.plain import MODULES, kernels


def test_every_kernel_is_called_in_these_tests_or_by_one_that_is() -> None:
    """Or by `LearnedModel` and `FeatureMap`, whose methods these tests call."""
    support = Path(__file__).parents[1] / "support" / "blocks.py"
    callers = *Path(__file__).parent.glob("test_*.py"), support, Path(learned.__file__), Path(maps.__file__)
    source = "".join(path.read_text() for path in callers)
    every = {name for module in MODULES for name in kernels(module)}
    called: dict[str, set[str]] = {}
    for module in MODULES:
        for name, function in vars(module).items():
            if name in every or (isinstance(function, FunctionType) and function.__module__ == module.__name__):
                called.setdefault(name, set()).update(getattr(function, "py_func", function).__code__.co_names)
    reached = {name for name in called if f".{name}" in source or f" {name}(" in source}
    while more := {name for user in reached for name in called[user] & called.keys()} - reached:
        reached |= more
    assert every <= reached
