"""Configuration of all tests and of the examples in the documentation."""

from __future__ import annotations

import multiprocessing.process
import subprocess
from collections.abc import Iterator
from typing import NoReturn

import pytest

pytest.register_assert_rewrite("hybandits.testing")

LONG_PAGES = ("docs/logs.md",)
"""Pages of the documentation whose examples take seconds: they count as slow tests."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses by markers, and before groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order tests and group them for `--dist loadgroup`: slow ones first and each by itself, the others by file.

    So no worker is left with a long test at the end, and little time is lost on handing out short ones. Tests on a Ray
    cluster are slow, and share one worker and its cluster.
    """
    for item in items:
        if item.nodeid.startswith(LONG_PAGES):
            item.add_marker("slow")
        group = item.get_closest_marker("xdist_group")
        if group is not None and group.args == ("ray",):
            item.add_marker("slow")
        elif group is None and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(item.config.rootpath))))
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if item.get_closest_marker("slow") is None:
        return 2
    return int(item.get_closest_marker("xdist_group") is None)  # whole groups take longest


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name tests with long texts or bytes by the name of the parameter; packed bytes differ between workers."""
    return argname if isinstance(val, bytes) or (isinstance(val, str) and len(val) > 60) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Only slow tests start processes: that keeps `make quick` quick."""
    if item.get_closest_marker("slow") is not None:
        return (yield)

    def refuse(*arguments: object, **options: object) -> NoReturn:
        raise RuntimeError(f"{item.nodeid} starts a process: mark it with @pytest.mark.slow")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", refuse)
        patch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
        return (yield)


@pytest.fixture(autouse=True)
def _documentation_writes_elsewhere(request: pytest.FixtureRequest) -> None:
    """Examples in the documentation may write files: let them do so in a folder of their own."""
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
