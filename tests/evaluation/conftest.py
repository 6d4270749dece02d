"""Logs and a trained policy that the tests of evaluation share."""

from __future__ import annotations

import pytest

from hybandits import Greedy
from hybandits.evaluation import fit
from hybandits.evaluation.view import View
from tests.support.evaluation import SAME, write_log


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return View(write_log(tmp_path_factory.mktemp("logs") / "log"))


@pytest.fixture(scope="module")
def pair_view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """A view of a log with two pair features."""
    return View(write_log(tmp_path_factory.mktemp("logs") / "log", pair=2))


@pytest.fixture(scope="module")
def uniform_view(tmp_path_factory: pytest.TempPathFactory) -> View:
    return View(write_log(tmp_path_factory.mktemp("logs") / "log", uniform=True, pools=SAME))


@pytest.fixture(scope="module")
def trained(view: View) -> Greedy:
    policy = Greedy(d1=view.d1, d2=view.d2, seed=0)
    fit.warm_start(policy, fit.collect(view, 0, 150))
    return policy
