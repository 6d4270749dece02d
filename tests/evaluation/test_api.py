"""`evaluate` and `gather` against plain formulas, and what must not matter to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits import EpsilonGreedy, Greedy, HyLinUCB, HyThompson
from hybandits.engines import ProcessEngine, Ray, SerialEngine
from hybandits.evaluation import ChoiceProbabilities, EvaluationPlan, Frozen, Learning, evaluate, fit, parts
from hybandits.evaluation.parts import BlockLayout
from hybandits.evaluation.results import Evaluation
from hybandits.evaluation.view import View
from hybandits.logs.store import LogError
from tests.support.evaluation import SAME, Plain, Ranked, Tilted, numbers, ranked, spoil, tilted, write_log

TARGETS: dict[str, Callable[[Greedy], tuple[Any, Callable[..., np.ndarray]]]] = {
    "uniform": lambda p: ("uniform", lambda x, z, arms: np.full(len(arms), 1 / len(arms))),
    "greedy": lambda p: (p, p.propensities),
    "epsilon": lambda p: (EpsilonGreedy(p, epsilon=0.3, seed=0), EpsilonGreedy(p, epsilon=0.3).propensities),
    "own": lambda p: (Ranked(0.4), lambda x, z, arms: ranked(0.4, len(arms))),
    "own, by features": lambda p: (Tilted(), lambda x, z, arms: tilted(x, z)),
}


@pytest.mark.parametrize(
    ("name", "features", "folds"),
    [
        ("uniform", "das", 2), ("greedy", "li", 3), ("epsilon", "shared", 2), ("own", "disjoint", 2),
        ("own, by features", "das+pair", 2), ("greedy", "li+pair:xz", 2), ("epsilon", "disjoint+pair:z", 3),
    ],
)  # fmt: skip
def test_plain_formulas(view: View, pair_view: View, name: str, features: str, folds: int) -> None:
    view = View((pair_view if "+" in features else view).log, features=features)
    trained = Greedy(d1=view.d1, d2=view.d2, seed=0)
    fit.warm_start(trained, fit.collect(view, 0, 150))
    target, propensities = TARGETS[name](trained)
    plain = Plain(view, propensities)
    gathered = EvaluationPlan(view, {"it": target}, ridge=2.0, folds=folds).gather()
    evaluation = gathered.evaluation()
    assert isinstance(evaluation, Evaluation)
    w, r, n = plain.weight, plain.reward, plain.n
    assert evaluation.of("it", "ips").value == pytest.approx((w * r).mean())
    assert evaluation.of("it", "snips").value == pytest.approx((w * r).sum() / w.sum())
    layout = BlockLayout.of(0, n, folds)
    fold = (np.arange(n) // layout.fold_rounds) % folds
    models = plain.models(fold, 2.0)
    direct = np.array([plain.mixed[t] @ models[fold[t]][1] for t in range(n)])
    error = np.array([r[t] - plain.rows[t] @ models[fold[t]][1] for t in range(n)])
    assert evaluation.of("it", "dm").value == pytest.approx(direct.mean())
    assert evaluation.of("it", "dr").value == pytest.approx((direct + w * error).mean())
    # The influence of every row on the fits, as the module has it.
    sums = [plain.mixed[fold == f].sum(axis=0) for f in range(folds)]
    influence = np.empty(n)
    for s in range(n):
        g = sum(models[f][0] @ sums[f] for f in range(folds) if f != fold[s])
        influence[s] = g @ plain.rows[s] * error[s]
    np.testing.assert_allclose(gathered.policies[0].influence, influence, rtol=1e-6, atol=1e-9)
    upper, lower = gathered.ratios["it", "dm"]
    np.testing.assert_allclose(upper, direct + influence - influence.mean(), rtol=1e-6, atol=1e-9)
    assert (lower == 1).all()
    diagnostics = evaluation.diagnostics["it"]
    assert diagnostics.matched == pytest.approx(plain.match.mean())
    assert diagnostics.mean_weight == pytest.approx(w.mean())
    assert diagnostics.largest_weight == pytest.approx(w.max())
    assert diagnostics.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert diagnostics.smallest_propensity == plain.propensity.min()


class Wrong(Ranked):
    def prepared(self, view: View) -> ChoiceProbabilities:
        good = super().prepared(view)
        return lambda batch, rounds: self.first * good(batch, rounds)


@pytest.mark.parametrize("factor", [0.9, -1.0, np.nan])
def test_probabilities_must_sum_up_to_1(view: View, factor: float) -> None:
    with pytest.raises(ValueError, match="sum up to 1"):
        evaluate(view, {"it": Wrong(factor)}, estimators=["ips"])


def test_plain_and_progress(uniform_view: View) -> None:
    view, trained = uniform_view, Greedy(d1=9, d2=3)
    for targets, estimators in (
        ({"a": "uniform", "b": trained}, ["ips", "snips", "dm", "dr"]),
        ({"a": "uniform"}, ["ips"]),
        ({"a": "uniform"}, ["dr"]),
        ({"a": "logged"}, ["dm", "ips"]),
        ({"a": Learning(trained), "b": Learning(trained), "c": "logged"}, ["replay"]),
    ):
        reported: list[int] = []
        evaluation = evaluate(view, targets, estimators=estimators, progress=reported.append)
        assert sum(reported) == EvaluationPlan(view, targets, estimators=estimators).total
        assert json.loads(json.dumps(evaluation.plain(), allow_nan=False))["rounds"] == 400


def test_logged_is_the_mean_reward_by_every_estimator(view: View) -> None:
    (batch,) = view.log.batches()
    evaluation = evaluate(view, {"it": "logged"}, estimators=["replay", "ips", "snips", "dm", "dr"])
    assert [e.value for e in evaluation.estimates] == [pytest.approx(batch.reward.mean())] * 5
    assert evaluation.diagnostics["it"].effective == batch.rounds


def several(view: View, trained: Greedy) -> dict[str, Any]:
    thompson = HyThompson(d1=view.d1, d2=view.d2, propensity_draws=3, seed=0)
    fit.warm_start(thompson, fit.collect(view, 0, 150))
    return {
        "logged": "logged", "uniform": "uniform", "greedy": trained,
        "epsilon": EpsilonGreedy(trained, epsilon=0.2, seed=1), "thompson": thompson, "own": Ranked(0.5),
    }  # fmt: skip


def test_order_of_arms_and_candidates(tmp_path: Path, trained: Greedy) -> None:
    one = View(write_log(tmp_path / "one"))
    other = View(write_log(tmp_path / "other", order=[4, 2, 0, 5, 1, 3]))
    targets = {"greedy": trained, "uniform": "uniform", "epsilon": EpsilonGreedy(trained, epsilon=0.2, seed=1)}
    np.testing.assert_allclose(numbers(evaluate(one, targets)), numbers(evaluate(other, targets)), rtol=1e-8)


@pytest.mark.slow
def test_splitting_the_work(tmp_path: Path, trained: Greedy, monkeypatch: pytest.MonkeyPatch) -> None:
    view = View(write_log(tmp_path / "log", 3001, parts=7))
    targets = several(view, trained)
    entire = evaluate(view, targets, start=5)
    monkeypatch.setattr(parts, "PART_ROUNDS", 700)
    assert len(parts.parts_of(view, 5, 3001)) > 3
    apart = evaluate(view, targets, start=5)
    np.testing.assert_allclose(numbers(entire), numbers(apart), rtol=1e-9)
    assert entire.diagnostics["own"].rounds == 2996


ON_RAY = pytest.param(Ray, marks=pytest.mark.xdist_group("ray"))


@pytest.mark.slow
@pytest.mark.parametrize("engine", [ProcessEngine, ON_RAY])
def test_engines_agree_to_the_bit(
    engine: type[ProcessEngine | Ray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = View(write_log(tmp_path / "log", 2000, parts=6, uniform=True, clicks=True, pools=SAME, pair=2))
    monkeypatch.setattr(parts, "PART_ROUNDS", 700)
    trained = Greedy(d1=view.d1, d2=view.d2, seed=0)
    fit.warm_start(trained, fit.collect(view, 0, 150))
    targets = several(view, trained)
    del targets["own"]  # workers would have to import this file
    targets["learning"] = Learning(HyLinUCB(d1=view.d1, d2=view.d2, seed=0))
    targets["greedy"], targets["epsilon"] = Frozen(trained), Frozen(targets["epsilon"])
    targets["thompson"] = Frozen(targets["thompson"])
    estimators = ["replay", "ips", "snips", "dm", "dr"]
    here = evaluate(view, targets, engine=SerialEngine(), estimators=estimators)
    there = evaluate(view, targets, engine=engine(2), estimators=estimators)
    assert json.dumps(here.plain(), allow_nan=False) == json.dumps(there.plain(), allow_nan=False)
    assert here.of("learning", "replay").value is not None


def test_everything_refused(tmp_path: Path) -> None:
    view = View(write_log(tmp_path / "log", change=spoil("propensity", np.nan)))
    with pytest.raises(LogError, match=r"Nothing can be estimated.*it by ips: Propensities are missing"):
        evaluate(view, {"it": "uniform"}, estimators=["ips"])


def test_bad_arguments_are_refused(view: View, trained: Greedy) -> None:
    for problem, words, options in (
        ({"it": "best"}, "'best' is not a policy", {}),
        ({"it": "always:a77"}, "the log has no arm 'a77'", {}),
        ({}, "targets is empty", {}),
        ({"it": Greedy(d1=2, d2=2)}, "d1 = 2, d2 = 2", {}),
        ({"it": "uniform"}, "estimators must be some of", {"estimators": ["magic"]}),
        ({"it": "uniform"}, "interval must be one of", {"interval": "magic"}),
        ({"it": "uniform"}, "clip must be positive", {"clip": 0.0}),
        ({"it": "uniform"}, "keep must lie in", {"keep": 0.0}),
        ({"it": "uniform"}, "keep must lie in", {"keep": 5}),
        ({"it": "uniform"}, "folds must be at least 2", {"folds": 1}),
        ({"it": "uniform"}, "level must lie in", {"level": 95}),
        ({"it": "uniform"}, "reward_range must be", {"reward_range": (1, 0)}),
        ({"it": trained}, "give Learning", {"estimators": ["replay", "ips"]}),
    ):
        with pytest.raises(ValueError, match=words):
            evaluate(view, problem, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot be 7"):
        evaluate(view, {"it": 7})  # type: ignore[dict-item]
    with pytest.raises(LogError, match="has 400 rounds, so there are none from round 400 on"):
        evaluate(view, {"it": "uniform"}, start=400)
    with pytest.raises(LogError, match="beyond reward_range"):
        evaluate(view, {"it": "uniform"}, reward_range=(0.0, 0.1))
    with pytest.raises(KeyError, match="no estimate"):
        evaluate(view, {"it": "uniform"}).of("it", "replay")
