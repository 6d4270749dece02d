"""The engine on a Ray cluster: what is its alone."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hybandits.engines import EngineError, Ray
from hybandits.engines.ray import Counters
from tests.support.work import ignore, square


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_is_named_at_once() -> None:
    with pytest.raises(EngineError, match=r"nothing answers at --address 127\.0\.0\.1:1 .*check the address"):
        list(Ray(address="127.0.0.1:1").map(square, [1], ignore))


def test_without_ray_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # importing it raises ImportError
    with pytest.raises(EngineError, match=r"run pip install '\.\[ray\]' in a checkout"):
        list(Ray().map(square, [1], ignore))


class RefusingRay:
    """Stands for the module `ray` where a cluster cannot be reached."""

    def init(self, **options: Any) -> None:
        raise ConnectionError("no such cluster\nand a long explanation")


def test_a_cluster_that_does_not_start_is_told_in_one_line() -> None:
    with pytest.raises(EngineError, match=r"^there is no Ray cluster at auto \(no such cluster\): check --address$"):
        Ray(address="auto")._start(RefusingRay())
    with pytest.raises(EngineError, match=r"could not start on this machine \(no such cluster\): try --engine local"):
        Ray()._start(RefusingRay())


def test_counters_keep_the_last_amount_of_every_task() -> None:
    counters = Counters()
    counters.write(3, 10)
    counters.write(3, 20)
    counters.write(4, 1)
    assert counters.read() == {3: 20, 4: 1}


@pytest.mark.xdist_group("ray")
def test_a_cluster_that_runs_already_is_used_and_left_running() -> None:
    import ray

    assert dict(Ray().map(square, [2, 3], ignore)) == {0: 4, 1: 9}
    assert ray.is_initialized()
