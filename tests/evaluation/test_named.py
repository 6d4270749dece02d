"""Logs by named columns: decoding them, fitting a bandit to them, and evaluating the bandit that made them."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import Bandit
from hybandits.evaluation import evaluate
from hybandits.evaluation.named import FrozenBandit, LearningBandit, LogColumns, fit_bandit
from hybandits.evaluation.view import Expander, View
from hybandits.logs.columns import ColumnsReader, Mapping
from hybandits.logs.report import ReadReport
from hybandits.logs.store import convert

ITEMS = {"shoe": {"price": 2.0}, "hat": {"price": 5.0}, "coat": {"price": 9.0}}
DECLARED: dict[str, Any] = {"user": {"age": "number", "country": "category"}, "arm": {"price": "number"}}


def visitor(random: np.random.Generator) -> dict[str, Any]:
    return {"age": float(random.integers(20, 60)), "country": str(random.choice(["de", "fr", "it"]))}


def reward_of(user: dict[str, Any], item: str, random: np.random.Generator) -> float:
    suits = (user["country"] == "de") == (item == "hat")
    return float(random.random() < (0.6 if suits else 0.2))


def shop(folder: Path, rounds: int = 400, *, pair: bool = False) -> tuple[View, Bandit, list[dict[str, Any]]]:
    """A log of a bandit's own randomized decisions, the bandit as it was afterwards, and the users."""
    random, users = np.random.default_rng(0), []
    declared = {**DECLARED, "pair": {"km": "number"} if pair else None}
    bandit = Bandit(**declared, first_rows=100, seed=1)
    rows = []
    for _ in range(rounds):
        user = visitor(random)
        km = {item: round(float(random.random()), 3) for item in ITEMS}
        pairs = [{"km": each} for each in km.values()] if pair else None
        choice = bandit.choose(user, ITEMS, pairs, randomize=True, floor=0.4)
        reward = reward_of(user, str(choice.arm), random)
        bandit.learn(choice.receipt, reward=reward)
        users.append(user)
        near = {f"km_{item}": each for item, each in km.items()} if pair else {}
        rows.append({**user, "item": choice.arm, "clicked": reward, "p": choice.propensity, **near})
    with (folder / "shop.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    (folder / "items.csv").write_text("item,price\n" + "".join(f"{i},{each['price']}\n" for i, each in ITEMS.items()))
    mapping = Mapping(
        arm="item", reward="clicked", propensity="p", user=["age", "country"], categorical=["country"],
        arms_file=folder / "items.csv", pair={"km": "km_{arm}"} if pair else {},
    )  # fmt: skip
    log = convert(ColumnsReader(folder / "shop.csv", mapping=mapping), folder / "log", ReadReport())
    return View(log), bandit, users


@pytest.mark.parametrize("pair", [False, True])
def test_a_bandit_fitted_to_a_log_is_the_one_that_made_it(tmp_path: Path, pair: bool) -> None:
    view, bandit, users = shop(tmp_path, pair=pair)
    columns = LogColumns(view.log)
    declared = columns.declared()
    assert declared.pop("pair", None) == ({"km": "number"} if pair else None)
    assert declared == DECLARED
    batch = next(view.log.batches())
    raw = columns.raw("user", batch.user, {"age": 1, "country": 1})
    assert [dict(zip(raw, row, strict=True)) for row in zip(*raw.values(), strict=True)] == users
    fitted = Bandit(**columns.declared(), first_rows=100, seed=1)
    fit_bandit(fitted, view, 0, 150)
    fit_bandit(fitted, view, 150)
    assert fitted.rounds == bandit.rounds
    assert fitted.features.names_x == bandit.features.names_x
    assert_allclose(fitted.policy.theta, bandit.policy.theta, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [False, True])
def test_the_bandit_that_made_a_log_is_evaluated_on_it(tmp_path: Path, pair: bool) -> None:
    view, bandit, users = shop(tmp_path, pair=pair)
    before = bandit.to_bytes()
    learner = LearningBandit(Bandit(**LogColumns(view.log).declared(), first_rows=100, seed=3))
    targets: dict[str, Any] = {"uniform": "uniform", "mine": bandit, "learner": learner}
    evaluation = evaluate(view, targets, seed=0, estimators=["snips"])
    uniform, mine, learned = (float(evaluation.of(name, "snips").value or 0.0) for name in targets)
    assert mine > uniform + 0.05
    assert 0.2 < learned < 0.7
    assert bandit.to_bytes() == before
    assert len(users) == evaluation.rounds


def test_probabilities_are_those_of_the_bandit_itself(tmp_path: Path) -> None:
    view, _, users = shop(tmp_path)
    bandit = Bandit(**DECLARED, policy="HyLinUCB:noise=0.5", first_rows=100, seed=0)
    fit_bandit(bandit, view)
    bandit = pickle.loads(pickle.dumps(bandit))
    target = FrozenBandit(bandit).prepared(view)
    expander, seen = Expander(view), 0
    for batch in view.log.batches():
        for piece, rounds in expander(batch, seen):
            chosen = target(piece, rounds)
            for t in range(0, piece.rounds, 29):
                place = bandit.choose(users[seen + t], ITEMS, key=t).index
                assert_array_equal(chosen[t], np.eye(3)[place])
            seen += piece.rounds
    assert seen == 400


def test_columns_that_the_log_lacks_are_named(tmp_path: Path) -> None:
    view, _, _ = shop(tmp_path, 60)
    bandit = Bandit(user={"agee": "number"}, arm={"price": "number"}, seed=0)
    for attempt in (lambda: fit_bandit(bandit, view), lambda: evaluate(view, {"mine": bandit})):
        with pytest.raises(
            ValueError, match=r"the log has no user column 'agee' \(did you mean age\?\), which the band"
        ):
            attempt()
