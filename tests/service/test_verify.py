"""Recomputing the decisions of a log."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from hybandits.service.commands import Decide
from hybandits.service.log import Decision, Row
from hybandits.service.model_state import ModelState, walk
from hybandits.service.sqlite import SqliteStore
from hybandits.service.verify import Verification, verify
from hybandits.service.writer import Writer
from tests.support.bandits import USER, decide, put, reward, writer


def play(service: Writer, count: int) -> None:
    chance = random.Random(3)
    for i in range(count):
        answer = decide(service, f"e{i}", user={"age": chance.gauss(0, 1), "country": chance.choice(["de", "fr"])})
        reward(service, f"e{i}", float(chance.random() < 0.2 + 0.2 * (answer.body.arm == "b")))


def last_decision(store: SqliteStore) -> tuple[Row, Decision]:
    row = [row for row in store.rows(0) if isinstance(row.content, Decision)][-1]
    assert isinstance(row.content, Decision)
    return row, row.content


def verified(store: SqliteStore, row: Row, other: Decision) -> Verification:
    """Return the result of `verify` if a row of the log has another content."""
    change = "UPDATE log SET content = ? WHERE row = ?"
    store._fetch(change, (msgspec.json.encode(other).decode(), row.number))
    result = verify(store)
    store._fetch(change, (msgspec.json.encode(row.content).decode(), row.number))
    return result


@pytest.mark.slow
def test_a_decision_that_was_tampered_with_is_found(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "bold", "policy": "HyThompson:scale=1,noise=0.5"}])
    put(service, "a", "b", "c")
    play(service, 40)
    store = SqliteStore(tmp_path / "log.db")
    row, logged = last_decision(store)
    result = verified(store, row, replace(logged, chance=0.123))
    assert (result.exact, result.different, "0.123" in result.examples[0]) == (40, 1, True)
    logged = replace(logged, fingerprint="elsewhere")
    result = verified(store, row, logged)
    assert (result.exact, result.near_ties, result.different) == (39, 0, 0)
    own = dict(logged.distribution)
    for place, arm in enumerate("abc"):
        chance = (1 - logged.floor) * own.get(place, 0.0) + logged.floor / 3
        version = service.state.arms[arm].version
        result = verified(store, row, replace(logged, arm=arm, arm_version=version, chance=chance))
        assert (result.near_ties, result.different) == (0, int(arm != logged.arm))
    for changed in (
        {"chance": logged.chance + 1e-6}, {"n": 4}, {"floor": 0.1}, {"policy": "other"},
        {"arm_version": 1}, {"distribution": [(7, 1.0)]},
        {"distribution": [(place, chance + 1e-6) for place, chance in logged.distribution]},
        {"arm": "d"}, {"shadows": {"bold": logged.shadows["bold"] + 1e-6}}, {"shadows": {}},
        {"shadows": {**logged.shadows, "more": 1e-12}},
    ):  # fmt: skip
        result = verified(store, row, replace(logged, **changed))  # type: ignore[arg-type]
        assert (result.near_ties, result.different) == (0, 1), changed
        assert f"{next(iter(changed))} was " in result.examples[0]


def around_the_jump(low: float, high: float, jumps: Callable[[float, float], bool]) -> tuple[float, float]:
    """The two neighbouring numbers between which something jumps."""
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if jumps(low, middle) else (middle, high)
    return low, high


@pytest.mark.parametrize("policy", ["HyIDS", "HyThompson", "HyThompson:scale=1,noise=1", "HyLinUCB:noise=0.5"])
def test_a_decision_beside_a_jump_is_a_near_tie_elsewhere_only(tmp_path: Path, policy: str) -> None:
    """Search an age at which the decision jumps; the one from the other side of the jump is put into the log."""
    service = writer(tmp_path, policy=policy)
    put(service, "a", "b", "c")
    play(service, 60)

    def decided(event: str, age: float) -> Decision:
        (logged,) = service.state.decide_batch([Decide({**USER, "age": age}, event_id=event)], 0)
        assert isinstance(logged, Decision)
        return logged

    def jumps(one: Decision, other: Decision) -> bool:
        """A draw is won by another arm; of a distribution that hardly changes, another arm is drawn."""
        if policy == "HyIDS":
            return one.arm != other.arm
        distributions = dict(one.distribution), dict(other.distribution)
        return max(abs(distributions[0].get(i, 0.0) - distributions[1].get(i, 0.0)) for i in range(3)) > 0.0002

    low, high = -3.0, 3.0
    event = next(event for event in map(str, range(100)) if jumps(decided(event, low), decided(event, high)))
    low, high = around_the_jump(low, high, lambda one, other: jumps(decided(event, one), decided(event, other)))
    decide(service, event, user={**USER, "age": low})
    store = SqliteStore(tmp_path / "log.db")
    row, logged = last_decision(store)
    other = replace(decided(event, high), user=logged.user, version=logged.version)
    assert jumps(logged, other)
    assert verified(store, row, other).different == 1
    result = verified(store, row, replace(other, fingerprint="elsewhere"))
    assert (result.near_ties, result.different) == (1, 0), result.examples
    far = replace(decided(event, low + 1e-3), user=logged.user, version=logged.version, fingerprint="elsewhere")
    assert verified(store, row, replace(far, distribution=[(0, 0.5), (1, 0.5)])).different == 1


def test_a_challenger_may_be_at_a_tie_of_its_own(tmp_path: Path) -> None:
    """Search an age at which nothing but a challenger's distribution jumps."""
    service = writer(tmp_path, challengers=[{"name": "bold", "policy": "HyThompson:scale=1,noise=1"}])
    put(service, "a", "b", "c")
    play(service, 60)

    def decided(age: float) -> Decision:
        (logged,) = service.state.decide_batch([Decide({**USER, "age": age}, event_id="tie")], 0)
        assert isinstance(logged, Decision)
        return logged

    def jumps(one: Decision, other: Decision) -> bool:
        return abs(one.shadows["bold"] - other.shadows["bold"]) > 0.0002

    ages = np.linspace(-3.0, 3.0, 601)
    low, high = next(
        (low, high)
        for low, high in itertools.pairwise(ages.tolist())
        if jumps(decided(low), decided(high)) and decided(low).arm == decided(high).arm
    )
    low, high = around_the_jump(low, high, lambda one, other: jumps(decided(one), decided(other)))
    decide(service, "tie", user={**USER, "age": low})
    store = SqliteStore(tmp_path / "log.db")
    row, logged = last_decision(store)
    other = replace(logged, shadows=decided(high).shadows)
    assert jumps(logged, other)
    assert verified(store, row, other).different == 1
    elsewhere = replace(other, fingerprint="elsewhere")
    result = verified(store, row, elsewhere)
    assert (result.near_ties, result.different) == (1, 0), result.examples
    result = verified(
        store, row, replace(elsewhere, shadows={"bold": (logged.shadows["bold"] + other.shadows["bold"]) / 2})
    )
    assert (result.near_ties, result.different) == (0, 1)


def test_decisions_that_were_made_together_are_walked_in_pieces(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    service.serve([Decide(USER, event_id=f"e{i}") for i in range(1_000)])
    service.serve([Decide(USER, event_id=f"f{i}") for i in range(10)])
    steps = [(model.row, len(rows)) for model, rows in walk(service.store)]
    assert steps == [(3, 1_000), (1_003, 10)]
    based = ModelState.based(service.store)
    assert based.row == 1
