"""What several test files use."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background: there is Ctrl-C in tests
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def ray_of_two() -> Iterator[None]:
    """A Ray cluster of two workers on this machine, which the tests of the xdist group "ray" share."""
    import ray

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("OPENBLAS_NUM_THREADS", "2")  # so that it shows that tasks are held to one
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
