"""Fixtures of several test files."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background: there is Ctrl-C in tests
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ray_of_two() -> Iterator[None]:
    """A Ray cluster of two workers on this machine, which the tests of the xdist group "ray" share."""
    import ray

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("OPENBLAS_NUM_THREADS", "2")  # tasks are limited to one
        ray.init(
            num_cpus=2, log_to_driver=False, logging_level="error", configure_logging=False, include_dashboard=False
        )
    yield
    ray.shutdown()


@pytest.fixture(autouse=True)
def _with_ray(request: pytest.FixtureRequest) -> None:
    """Tests of the group "ray" find the cluster running."""
    group = request.node.get_closest_marker("xdist_group")
    if group is not None and group.args == ("ray",):
        request.getfixturevalue("ray_of_two")


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, in which modules can be written and imported; they are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
