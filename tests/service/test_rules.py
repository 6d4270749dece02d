"""Candidates of a request, schedules, guard rails and the holdout: what they let be chosen, and that verify agrees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybandits.logs.store import Log
from hybandits.service.commands import Answer, Decide, PutArm, PutArms, Refused, Retire
from hybandits.service.export import export
from hybandits.service.log import Decision, encode_ids
from hybandits.service.page import page
from hybandits.service.rules import ArmRule, Controls, Holdout, within
from hybandits.service.view import make_view
from hybandits.service.writer import Writer
from tests.support.bandits import (
    FILE,
    USER,
    Clock,
    ask,
    control,
    decide,
    models,
    outcome_of,
    put,
    putting,
    recomputed,
    reward,
    served,
    writer,
)

PAIRED = {**FILE, "pair": {"numeric": ["distance"]}}


def chosen(service: Writer, rounds: int = 60, **request: Any) -> dict[str, int]:
    """Count the decisions of each arm."""
    counts: dict[str, int] = {}
    for _ in range(rounds):
        arm = decide(service, **request).body.arm
        counts[arm] = counts.get(arm, 0) + 1
    return counts


def detail(service: Writer, command: Any) -> str:
    outcome = outcome_of(service, command)
    assert isinstance(outcome, Refused)
    assert outcome.status in (404, 422)
    return f"{outcome.field}: {outcome.detail}"


# ------------------------------------------------------------------ candidates that a request describes


def test_features_of_a_request_replace_those_of_the_arm_and_may_be_of_an_unknown_arm(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    said = [{"arm": "a", "features": {"price": 9.0}}, {"arm": "only here", "features": {"price": 2.0}}, "b"]
    for i in range(60):
        decided = decide(service, f"e{i}", candidates=encode_ids(said)).body
        reward(service, f"e{i}", 1.0 if decided.arm == "only here" else 0.0)
    rows = [row.decision for row in service.store.rows(0) if isinstance(row.content, Decision)]
    assert {(each.arm, each.arm_version, str(each.features)) for each in rows} == {
        ("a", 0, "{'price': 9.0}"), ("only here", 0, "{'price': 2.0}"), ("b", 3, "None"),
    }  # fmt: skip
    assert set(service.state.policies["live"].arms) == {"a", "b", "only here"}
    assert decide(service, "e0", candidates=encode_ids(said)).status == 200
    assert outcome_of(service, Decide(USER, encode_ids([*said[:2], "a"]), "e0")).status == 409
    recomputed(service)


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([{"arm": "new"}], "candidates: The arm 'new' is unknown"),
        ([{"arm": "new", "features": {}}], "candidates.features.price: Arm has no feature 'price'"),
        ([{"arm": "new", "features": {"prize": 1}}], "candidates.features.prize: The bandit has no arm feature"),
        ([{"arm": "new", "features": {"price": 1e51}}], "beyond"),
        ([{"arm": "a", "features": {"price": 1}}, "a"], "candidates: The arm 'a' is named twice"),
        ([{"arm": "a", "weight": 1}], "candidates: "),
        ([{"arm": "a", "pair": {"distance": 1}}], "pair"),
    ],
)  # fmt: skip
def test_candidates_that_cannot_be_used_are_refused(tmp_path: Path, candidates: list[Any], words: str) -> None:
    service = writer(tmp_path)
    put(service, "a")
    assert words in detail(service, Decide(USER, encode_ids(candidates), "e"))
    assert decide(service, "e").status == 201


def test_features_of_user_and_arm_together_are_learned_and_exported(tmp_path: Path) -> None:
    service = writer(tmp_path, PAIRED)
    put(service, "a", "b")
    random = np.random.default_rng(0)
    for i in range(80):
        near = {arm: float(random.random()) for arm in "ab"}
        said = [{"arm": arm, "pair": {"distance": near[arm]}} for arm in "ab"]
        decided = decide(service, f"e{i}", candidates=encode_ids(said)).body
        reward(service, f"e{i}", 1 - near[decided.arm])
    log, _ = export(service.store, tmp_path / "out")
    assert Log(tmp_path / "out").pair == ["distance"]
    (batch,) = log.batches()
    assert batch.pair.shape == (80, 2, 1)
    np.testing.assert_allclose(batch.reward, 1 - batch.pair[np.arange(80), batch.chosen, 0])
    recomputed(service)


def test_where_there_are_pair_features_every_candidate_needs_them(tmp_path: Path) -> None:
    service = writer(tmp_path, PAIRED)
    put(service, "a", "b")
    for candidates in (["a", "b"], None, [{"arm": "a", "pair": {"distance": 1}}, "b"]):
        said = detail(service, Decide(USER, encode_ids(candidates), "e"))
        assert said.startswith("candidates.pair")
        assert "distance" in said


# ------------------------------------------------------------------ many arms, and when they are candidates


def test_many_arms_are_put_and_retired_together_or_not_at_all(tmp_path: Path) -> None:
    service = writer(tmp_path)
    arms = [PutArm(arm=str(i), features={"price": float(i)}) for i in range(20)]
    assert "price" in detail(service, PutArms([*arms, PutArm(arm="bad", features={"price": "x"})]))
    assert "named twice" in detail(service, PutArms([*arms, arms[0]]))
    assert not service.state.arms
    assert [ask(service, PutArms(arms)).status for _ in range(2)] == [201, 200]
    assert service.state.row == 21
    assert "'20'" in detail(service, Retire(["1", "20"]))
    assert all(each.active for each in service.state.arms.values())
    ask(service, Retire(["1", "2"]))
    assert sum(each.active for each in service.state.arms.values()) == 18
    recomputed(service)


def test_a_schedule_begins_and_ends(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, policy="Uniform", clock=clock)
    start = datetime.fromtimestamp(clock.now / 1e6, UTC)
    put(service, "a")
    times = {"start": start + timedelta(seconds=10), "end": start + timedelta(seconds=20)}
    ask(service, PutArms([PutArm(arm="b", features={"price": 1.0}, **times)]))
    assert "ends before" in detail(
        service, PutArms([PutArm(arm="c", features={"price": 1.0}, start=times["end"], end=start)])
    )
    seen = []
    for _ in range(3):
        seen.append(set(chosen(service, 30)))
        assert set(chosen(service, 5, candidates=encode_ids(["a", "b"]))) <= seen[-1]
        clock.advance(10)
    assert seen == [{"a"}, {"a", "b"}, {"a"}]
    recomputed(service)


# ------------------------------------------------------------------ guard rails


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=6),
    st.lists(st.tuples(st.floats(0, 0.15), st.floats(0.15, 1)), min_size=6, max_size=6),
)
def test_limited_shares_keep_their_limits_and_proportions(
    weights: list[float], limits: list[tuple[float, float]]
) -> None:
    n = len(weights)
    p = np.array([weights]) / sum(weights)
    least, most = np.array(limits[:n]).T
    shares = within(p, least, most)[0]
    raised = most / min(1.0, most.sum())
    assert shares.sum() == pytest.approx(1)
    assert (shares >= least - 1e-9).all()
    assert (shares <= raised + 1e-9).all()
    free = (shares > least + 1e-9) & (shares < raised - 1e-9)
    if free.sum() > 1:
        np.testing.assert_allclose((shares / p[0])[free], (shares / p[0])[free][0], rtol=1e-6)


@pytest.mark.slow
def test_guard_rails_hold_until_others_are_set(tmp_path: Path) -> None:
    service = writer(tmp_path, challengers=[{"name": "even", "policy": "Uniform"}])
    put(service, "a", "b", "c")
    control(service, pause="b")
    assert chosen(service) == {"b": 60}
    assert chosen(service, 5, candidates=encode_ids(["c", "a"])) == {"c": 5}
    control(service, arms={"a": ArmRule(force="out")})
    assert "a" not in chosen(service)
    assert "There are no candidates" in detail(service, Decide(USER, encode_ids(["a"]), "none"))
    ask(service, Retire(["c"]))
    control(service, arms={"c": ArmRule(force="in"), "a": ArmRule(most=0.01), "b": ArmRule(least=0.6)})
    answers = [decide(service, f"e{i}").body for i in range(100)]
    for answer in answers:
        low, high = {"a": (0, 0.01), "b": (0.6, 1), "c": (0, 0.4)}[answer.arm]
        assert low <= answer.propensity <= high + 1e-12
    assert sum(answer.arm == "b" for answer in answers) >= 45  # 3 standard deviations below 60
    page_text = page(make_view(service))
    for words in ("<bdi>c</bdi>: always a candidate", "At most 1.0%", "At least 60.0%"):
        assert words in page_text
    before = models(service)
    control(service, frozen=True)
    for i in range(100):
        reward(service, f"e{i}", 1.0)
    assert models(service) == before
    assert service.state.summary.reward.n == 100
    control(service)
    assert service.state.controls == Controls()
    recomputed(service)


@pytest.mark.slow
def test_guard_rails_over_http(tmp_path: Path) -> None:
    service = writer(tmp_path)
    put(service, "a", "b")
    with served(service) as web:
        rails = {"pause": "a", "arms": {"b": {"least": 0.1, "most": 0.5}}}
        assert web.put("/v1/controls", json=rails).json() == rails
        rows = service.state.row
        assert web.put("/v1/controls", json=rails).status_code == 200
        assert service.state.row == rows
        assert web.get("/v1/controls").json() == rails
        decided = web.post("/v1/decisions", json={"event_id": "e", "user": USER}).json()
        assert (decided["arm"], decided["propensity"]) == ("a", 1.0)
        assert web.get("/v1/decisions/e").json()["candidates"] == ["a"]
        for wrong, words in (
            ({"pause": "x"}, "no arm 'x'"),
            ({"arms": {"a": {"least": 0.5, "most": 0.1}}}, "more than most"),
            ({"arms": {"a": {"least": 0.5}, "b": {"least": 0.5}}}, "add up to 1"),
        ):
            answer = web.put("/v1/controls", json=wrong)
            assert answer.status_code == 422
            assert words in answer.json()["detail"]


# ------------------------------------------------------------------ the holdout


def test_the_holdout_is_stable_grows_and_is_near_its_share() -> None:
    keys = [f"user {i}" for i in range(4_000)]
    held = {share: {key for key in keys if Holdout(share).holds(7, key)} for share in (0.05, 0.2)}
    assert held[0.05] < held[0.2]
    assert 130 < len(held[0.05]) < 270  # 5 standard deviations
    assert held[0.2] != {key for key in keys if Holdout(0.2).holds(8, key)}


@pytest.mark.slow
@pytest.mark.parametrize("arm", [None, "c"])
def test_users_who_are_held_out_are_compared_with_the_others(tmp_path: Path, arm: str | None) -> None:
    holdout = {"share": 0.5, **({"arm": arm} if arm else {})}
    service = writer(tmp_path, range=[0, 1], holdout=holdout, challengers=[{"name": "even", "policy": "Uniform"}])
    put(service, "a", "b", "c")
    assert "user_key" in detail(service, Decide(USER, event_id="none"))
    random = np.random.default_rng(1)
    asked = [Decide(USER, event_id=str(i), user_key=f"user {i % 50}") for i in range(600)]
    for start in range(0, 600, 50):
        for outcome in service.serve(asked[start : start + 50]):
            assert isinstance(outcome, Answer)
            chance = 0.8 if outcome.body.arm == "a" else 0.1
            reward(service, outcome.body.event_id, float(random.random() < chance))
    rows = [row.decision for row in service.store.rows(0) if isinstance(row.content, Decision)]
    by_key: dict[str | None, set[bool]] = {}
    for row in rows:
        by_key.setdefault(row.key, set()).add(row.policy == "holdout")
    assert all(len(each) == 1 for each in by_key.values())
    held = [row for row in rows if row.policy == "holdout"]
    assert {row.chance for row in held} == ({1.0} if arm else {1 / 3})
    view = make_view(service)
    assert view.holdout is not None
    assert (view.holdout.decisions, view.holdout.held.n) == (len(held), len(held))
    assert view.reward.n == view.holdout.others.n == 600 - len(held)
    assert view.holdout.gain.low > 0  # type: ignore[operator]
    assert view.holdout.gain.low < view.holdout.gain.mean < view.holdout.gain.high  # type: ignore[operator]
    assert "The bandit is better than the holdout." in page(view)
    with served(service) as web:
        recorded = web.get(f"/v1/decisions/{held[0].event}").json()
        assert recorded["candidates"] == (["c"] if arm else ["a", "b", "c"])
        assert list(recorded["probabilities"].values()) == pytest.approx([1.0] if arm else [1 / 3] * 3)
    recomputed(service)


@pytest.mark.slow
def test_a_put_of_an_arm_keeps_what_it_says(tmp_path: Path) -> None:
    service = writer(tmp_path)
    assert ask(service, putting("a", {"price": 1.0})).status == 201
    with served(service) as web:
        times = {"from": "2026-12-01T00:00:00Z", "until": "2026-12-24T12:00:00+01:00"}
        answer = web.put("/v1/arms/a", json={"features": {"price": 1}, **times}).json()
        assert (answer["from"], answer["until"]) == ("2026-12-01T00:00:00Z", "2026-12-24T11:00:00Z")
        bulk = {"arms": [{"arm": "x", "features": {"price": 1}}, {"arm": "y", "features": {"price": 2}}]}
        assert [each["arm"] for each in web.put("/v1/arms", json=bulk).json()] == ["x", "y"]
        assert web.post("/v1/arms/retire", json={"arms": ["x", "z"]}).status_code == 404
        assert web.post("/v1/arms/retire", json={"arms": ["x", "y"]}).json()[1] == {"arm": "y", "active": False}
        assert (
            web.put("/v1/arms/late", json={"features": {"price": 1}, "from": "2026-12-01T00:00:00"}).status_code == 422
        )
