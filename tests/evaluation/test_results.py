"""Results of evaluations: found by name, and plain values for JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hybandits.evaluation import Diagnostics, Difference, Estimate, Evaluation, Running


def evaluation() -> Evaluation:
    running = Running(
        rounds=np.array([1, 2]), weight=np.array([1.0, 2.0]), value=np.array([0.5, 0.25]), low=np.array([np.nan, 0.1]),
        high=np.array([np.nan, 0.4]),
    )  # fmt: skip
    difference = Difference(to="a", value=0.25, low=None, high=None)
    return Evaluation(
        rounds=2, level=0.95, interval="bootstrap", features="das",
        estimates=[
            Estimate(policy="a", estimator="ips", value=0.25, low=0.1, high=0.4, running=running),
            Estimate(policy="b", estimator="ips", value=0.5, difference=difference, notes=("Know.",)),
            Estimate(policy="b", estimator="dm", refusal="Because."),
        ],
        diagnostics={
            "a": Diagnostics(rounds=2, matched=0.5, warnings=("Mind.",)), "b": Diagnostics(rounds=2, matched=1.0),
        },
    )  # fmt: skip


def test_an_estimate_by_name() -> None:
    assert evaluation().of("b", "ips").value == 0.5
    with pytest.raises(
        KeyError, match=r"no estimate of 'b' by 'dr': the policies are \['a', 'b'\], the estimators ips, dm"
    ):
        evaluation().of("b", "dr")


def test_plain_values() -> None:
    plain = json.loads(json.dumps(evaluation().plain(), allow_nan=False))
    assert [*plain] == ["rounds", "level", "interval", "features", "estimates", "diagnostics"]
    first, second, refused = plain["estimates"]
    assert first["running"] == {
        "rounds": [1, 2], "weight": [1.0, 2.0], "value": [0.5, 0.25], "low": [None, 0.1], "high": [None, 0.4],
    }  # fmt: skip
    assert (first["notes"], second["notes"]) == ([], ["Know."])
    assert second["difference"] == {"to": "a", "value": 0.25, "low": None, "high": None}
    assert (refused["value"], refused["refusal"], refused["running"]) == (None, "Because.", None)
    assert plain["diagnostics"]["a"]["warnings"] == ["Mind."]
    assert plain["diagnostics"]["b"]["effective"] is None
