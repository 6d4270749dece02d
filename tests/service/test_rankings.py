"""Rankings: several places, each with its probability and its reward, and an effect of the place that is learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits.evaluation import evaluate
from hybandits.evaluation.view import View
from hybandits.service.commands import Decide, GiveReward, Refused
from hybandits.service.export import export
from hybandits.service.log import Decision, encode_ids
from hybandits.service.page import page
from hybandits.service.rotate import rotate
from hybandits.service.sqlite import SqliteStore
from hybandits.service.view import make_view
from tests.support.bandits import (
    CLICKS,
    FILE,
    USER,
    Clock,
    ask,
    bandit,
    control,
    decide,
    outcome_of,
    put,
    recomputed,
    reward,
    served,
    writer,
)

THREE = {"places": 3, "challengers": [{"name": "even", "policy": "Uniform"}]}


@pytest.mark.slow
def test_places_are_drawn_without_replacement_with_the_probabilities_that_are_said(tmp_path: Path) -> None:
    service = writer(tmp_path, policy="Uniform", places=3, floor=1.0)
    put(service, "a", "b", "c", "d")
    orders: dict[tuple[str, ...], int] = {}
    for i in range(480):
        body = decide(service, f"e{i}", places=3).body
        assert [each.propensity for each in body.places] == pytest.approx([1 / 4, 1 / 3, 1 / 2])
        assert body.arm == body.places[0].arm
        order = tuple(each.arm for each in body.places)
        orders[order] = orders.get(order, 0) + 1
    assert len(orders) == 24
    assert sum(orders.values()) == 480
    assert max(orders.values()) < 48  # 20 are expected: 6 standard deviations
    recomputed(service)


def test_there_are_no_more_places_than_candidates(tmp_path: Path) -> None:
    service = writer(tmp_path, **THREE)
    put(service, "a", "b", "c")
    assert [each.arm for each in decide(service, candidates=encode_ids(["c"]), places=3).body.places] == ["c"]
    assert len(decide(service, places=2).body.places) == 2
    assert decide(service).body.places is None
    control(service, pause="b")
    assert [each.arm for each in decide(service, places=3).body.places] == ["b"]
    outcome = outcome_of(service, Decide(USER, places=4))
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.field, outcome.value) == (422, "places", 4)
    recomputed(service)


@pytest.mark.slow
@pytest.mark.parametrize("content", [FILE, CLICKS], ids=["explicit", "clicks"])
def test_every_place_has_one_reward_and_its_effect_is_learned(tmp_path: Path, content: dict[str, Any]) -> None:
    clock = Clock()
    service = writer(tmp_path, content, clock=clock, **THREE)
    put(service, "a", "b", "c", "d")
    random = np.random.default_rng(0)
    for i in range(150):
        body = decide(service, f"e{i}", places=3).body
        for place in range(1, len(body.places) + 1):
            value = float(random.random() < (0.9, 0.5, 0.1)[place - 1])
            if value or content is FILE:
                assert ask(service, GiveReward(f"e{i}", value, place)).status == 201
        clock.advance(1)
    clock.advance(20)
    service.serve([])
    assert [terms.n for _, terms in sorted(service.state.summary.places.items())] == [150] * 3
    assert service.state.policies["live"].rounds == 450
    names = service.state.features.names_x
    effects = dict(zip(names, service.state.policies["live"].theta, strict=True))  # type: ignore[attr-defined]
    assert effects["pair.place 3"] < effects["pair.place 2"] < 0
    value = 1.0 if content is FILE else 0.0
    for place in (1, 2, 3):
        answers = [outcome_of(service, GiveReward("e0", v, place)) for v in (0.25, value)]
        assert {each.status for each in answers} <= {200, 202, 409}
    outcome = outcome_of(service, GiveReward("e0", 1.0, 4))
    assert isinstance(outcome, Refused)
    assert (outcome.status, outcome.field) == (422, "place")
    assert "Places of rankings" in page(make_view(service))
    recomputed(service)


@pytest.mark.slow
def test_a_ranking_is_asked_again_and_looked_up(tmp_path: Path) -> None:
    service = writer(tmp_path, **THREE)
    put(service, "a", "b", "c")
    with served(service) as web:
        asked = {"event_id": "e", "user": USER, "places": 2}
        first = web.post("/v1/decisions", json=asked).json()
        assert web.post("/v1/decisions", json=asked).json() == first
        assert web.post("/v1/decisions", json={**asked, "places": 3}).status_code == 409
        assert web.post("/v1/rewards", json={"event_id": "e", "reward": 0.5, "place": 2}).status_code == 201
        recorded = web.get("/v1/decisions/e").json()
        assert recorded["places"] == first["places"]
        assert (recorded["reward"], recorded["place_rewards"]) == (None, [None, 0.5])


@pytest.mark.slow
def test_rankings_are_exported_as_a_round_for_each_place(tmp_path: Path) -> None:
    service = writer(tmp_path, **THREE)
    put(service, "a", "b", "c", "d")
    for i in range(200):
        body = decide(service, f"e{i}", places=2).body
        for place, each in enumerate(body.places, 1):
            ask(service, GiveReward(f"e{i}", float(each.arm == "a"), place))
    log, _ = export(service.store, tmp_path / "out")
    assert (log.rounds, log.pair) == (400, ["place 2", "place 3"])
    (batch,) = log.batches()
    sizes = log.pools.sizes[batch.pool]
    assert sizes.tolist() == [4, 3] * 200
    at = np.arange(400), batch.chosen
    assert batch.pair[at].tolist() == [[0.0, 0.0], [1.0, 0.0]] * 200
    rows = [row.decision for row in service.store.rows(0) if isinstance(row.content, Decision)]
    expected = [each.chance for row in rows for each in (row, *row.more)]
    np.testing.assert_array_equal(batch.propensity, expected)
    estimate = evaluate(View(log), {"uniform": "uniform"}, estimators=("ips",)).of("uniform", "ips")
    expected = [1 / 4 if place == 1 else (row.arm != "a") / 3 for row in rows for place in (1, 2)]
    assert estimate.low < np.mean(expected) < estimate.high


def test_rankings_go_over_to_the_next_log(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock, **THREE)
    put(service, "a", "b", "c")
    decide(service, "e", places=3)
    reward(service, "e", 1.0)
    ask(service, GiveReward("e", 1.0, 3))
    new = SqliteStore(tmp_path / "second.db")
    rotate(service.store, new, since=0)
    again = type(service)(new, bandit(CLICKS, **THREE), clock=clock)
    assert ask(again, GiveReward("e", 1.0, 3)).status == 200
    clock.advance(20)
    again.serve([])
    totals = [terms.total for _, terms in sorted(again.state.summary.places.items())]
    assert totals == [1.0, 0.0, 1.0]
