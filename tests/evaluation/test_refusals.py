"""Refusals of estimates and intervals, and warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import Greedy, HyLinUCB
from hybandits.evaluation import Always, Learning, evaluate
from hybandits.evaluation.view import View
from tests.support.evaluation import ARMS, SAME, log_of, spoil, write_log


def refusal(view: View, target: Any, estimator: str) -> str:
    evaluation = evaluate(view, {"logged": "logged", "it": target}, estimators=[estimator]).of("it", estimator)
    assert evaluation.value is None
    assert evaluation.low is None
    assert evaluation.refusal
    return evaluation.refusal


def test_missing_propensities(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", change=spoil("propensity", np.nan)))
    for name in ("ips", "snips", "dr"):
        assert "missing in 2 of 400 rounds" in refusal(view, "uniform", name)
    for name in ("replay", "snips", "dr"):
        assert "missing in 2 of 400 rounds" in refusal(view, Learning(Greedy(d1=9, d2=3)), name)
    assert "missing in 2 of 400 rounds" in refusal(view, "uniform", "replay")
    evaluation = evaluate(view, {"it": "uniform"}, estimators=["ips", "dm"])
    assert evaluation.of("it", "dm").value is not None
    assert evaluation.diagnostics["it"].mean_weight is None


@pytest.mark.parametrize("value", [0.0, -0.5, 1.5, np.inf])
def test_wrong_propensities(tmp_path: Path, value: float) -> None:
    view = View(write_log(tmp_path / "log", change=spoil("propensity", value)))
    for name in ("ips", "snips", "dr"):
        assert "not in (0, 1] in 2 of 400" in refusal(view, "uniform", name)
    assert "not in (0, 1] in 2 of 400" in refusal(view, Learning(Greedy(d1=9, d2=3)), "replay")


def test_a_log_without_randomness(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", change=spoil("propensity", 1.0, slice(None))))
    assert "certain (propensity 1)" in refusal(view, "uniform", "ips")
    # One's own choice again has overlap.
    evaluation = evaluate(view, {"it": "logged"}, estimators=["ips"])
    assert evaluation.of("it", "ips").value is not None


def test_arms_never_shown(tmp_path: Path) -> None:
    def change(columns: dict[str, Any]) -> None:
        columns["chosen"][columns["chosen"] == 2] = 0

    view = View(write_log(tmp_path / "log", pools=SAME[:1], uniform=True, change=change))
    for name in ("ips", "snips", "dr", "replay"):
        assert "arms that were never shown (a2)" in refusal(view, "always:a2", name)
        assert "arms that were never shown (a2)" in refusal(view, "uniform", name)
    evaluation = evaluate(view, {"it": "always:a2"}, estimators=["dm"])
    assert evaluation.of("it", "dm").value is not None
    assert any("never shown" in warning for warning in evaluation.diagnostics["it"].warnings)


def test_always_an_arm_that_is_not_always_there(view: View) -> None:
    for name in ("ips", "dm"):
        assert "no candidate to show in" in refusal(view, "always:a4", name)


def test_positions_are_not_evaluated(view: View) -> None:
    with pytest.raises(ValueError, match="use a view with arms='articles'"):
        evaluate(View(view.log, arms="positions"), {"it": "uniform"})


def test_a_model_alone_says_nothing_of_learning_policies(uniform_view: View) -> None:
    names = ["replay", "ips", "snips", "dm", "dr"]
    evaluation = evaluate(uniform_view, {"it": Learning(HyLinUCB(d1=9, d2=3))}, estimators=names)
    for name in ("replay", "ips", "snips", "dr"):
        assert evaluation.of("it", name).value is not None
    assert "learns on the way" in str(evaluation.of("it", "dm").refusal)
    assert "learns on the way" in refusal(uniform_view, Learning(HyLinUCB(d1=9, d2=3)), "dm")


def test_too_few_rounds_for_folds(view: View) -> None:
    evaluation = evaluate(view, {"logged": "logged", "it": "uniform"}, stop=1)
    assert evaluation.of("logged", "dm").value is not None
    assert "too few to fit" in str(evaluation.of("it", "dm").refusal)
    assert "never shown" in str(evaluation.of("it", "ips").refusal)


def test_weights_that_cannot_be_right(tmp_path: Path) -> None:
    def change(columns: dict[str, Any]) -> None:
        columns["propensity"] = columns["propensity"] / 2

    evaluation = evaluate(View(write_log(tmp_path / "log", 2000, change=change)), {"it": "uniform"}, estimators=["ips"])
    assert any("weights average 2." in warning for warning in evaluation.diagnostics["it"].warnings)


def test_sound_weights_pass(view: View, trained: Greedy) -> None:
    evaluation = evaluate(view, {"it": trained, "uniform": "uniform"})
    assert evaluation.diagnostics["it"].warnings == evaluation.diagnostics["uniform"].warnings == ()


def test_lists_of_different_lengths_give_a_warning_in_replay(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", uniform=True))
    evaluation = evaluate(view, {"it": Learning(Greedy(d1=9, d2=3)), "fixed": "uniform"}, estimators=["replay"])
    for name in ("it", "fixed"):
        assert "Lists have 3 to 5 candidates" in evaluation.diagnostics[name].warnings[0]


def test_the_model_is_not_sure_of_arms_that_were_never_shown(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    n = 3000
    chosen = random.integers(0, 3, n)  # d is never shown
    reward = (random.random(n) < 0.3).astype(float)
    log = log_of(tmp_path / "log", chosen, reward, np.full(n, np.nan), arms="abcd")
    evaluation = evaluate(View(log, features="disjoint"), {"uniform": "uniform", "a": "always:a"}, estimators=("dm",))
    guess, known = evaluation.of("uniform", "dm"), evaluation.of("a", "dm")
    assert guess.value is not None
    assert guess.low is None
    assert "never shown" in str(guess.refusal)
    assert known.low is not None
    assert known.difference is not None
    assert known.difference.low is None


def test_a_model_of_few_own_rounds_has_no_interval(tmp_path: Path) -> None:
    """Of an arm shown now and then without a click the model is wrong by nobody knows how much."""

    def hardly_any(columns: dict[str, Any]) -> None:
        columns["reward"] = np.zeros(len(columns["reward"]))
        columns["reward"][::40] = 1.0

    view = View(write_log(tmp_path / "log", 400, uniform=True, pools=[[0, 1, 2, 3, 4, 5]], change=hardly_any))
    (batch,) = view.log.batches()
    clicks = {arm: int(batch.reward[batch.chosen == arm].sum()) for arm in range(ARMS)}
    rare = min(clicks, key=clicks.__getitem__)
    assert clicks[rare] <= 1
    evaluation = evaluate(view, {"uniform": "uniform", "rare": Always(f"a{rare}")})
    for name in ("dm", "dr"):
        assert evaluation.of("uniform", name).low is not None
        rarely = evaluation.of("rare", name)
        assert rarely.value is not None
        assert (rarely.low, rarely.high) == (None, None)
        assert "the error of the model cannot be estimated" in (rarely.refusal or "")
        assert rarely.difference is not None
        assert rarely.difference.low is None


def test_a_round_that_outweighs_all_others_gives_a_warning(tmp_path: Path) -> None:
    def rare(columns: dict[str, Any]) -> None:
        columns["propensity"][7] = 1e-6

    view = View(write_log(tmp_path / "log", 2000, uniform=True, clicks=True, change=rare))
    evaluation = evaluate(view, {"uniform": "uniform"})
    for name in ("ips", "snips", "dr"):
        estimate = evaluation.of("uniform", name)
        assert estimate.low is None
        assert "No interval: its weights are worth 1.0 rounds, and a single round has 99% of the weight" in (
            estimate.refusal or ""
        )
    assert evaluation.of("uniform", "dm").low is not None
    assert any("Do not rely on estimates that use weights" in w for w in evaluation.diagnostics["uniform"].warnings)
