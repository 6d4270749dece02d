"""Measurements as Prometheus reads them."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hybandits.service.metrics import Metrics, text_of
from hybandits.service.model_state import ModelState
from hybandits.service.view import make_view
from tests.support.bandits import CLICKS, USER, Clock, decide, put, reward, served, writer

pytestmark = pytest.mark.usefixtures("always_new")


def values(text: str) -> dict[tuple[str, ...], float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        families = list(text_string_to_metric_families(text))
    samples = [sample for family in families for sample in family.samples]
    assert {sample.labels.pop("bandit") for sample in samples} == {"page"}
    return {(sample.name, *sample.labels.values()): sample.value for sample in samples}


@pytest.mark.slow
def test_what_happened_is_counted(tmp_path: Path) -> None:
    service = writer(tmp_path, CLICKS, challengers=[{"name": 'bo"ld\n', "policy": "HyThompson:scale=1,noise=0.5"}])
    with served(service) as web:
        web.put("/v1/arms/a", json={"features": {"price": 1}})
        for i in range(5):
            web.post("/v1/decisions", json={"event_id": str(i), "user": USER})
        assert web.post("/v1/decisions/batch", json=[{"users": {}}, {"user": {}}]).status_code == 200
        web.get("/nowhere")
        assert web.get("/v1/view", headers={"host": "elsewhere.example"}).status_code == 403
        samples = values(web.get("/metrics").text)
    assert samples["hybandits_decisions_total",] == 5
    assert samples["hybandits_open_decisions",] == 5
    assert samples["hybandits_log_rows",] == 7
    assert samples["hybandits_rows_behind",] == 0
    assert samples["hybandits_writable",] == 1
    assert samples["hybandits_store_errors_total",] == 0
    assert samples["hybandits_waiting_requests",] == 0
    assert samples["hybandits_refusals_total", "422"] == 2
    assert samples["hybandits_refusals_total", "404"] == 1
    assert samples["hybandits_refusals_total", "403"] == 1
    assert not [name for name, *_ in samples if name.endswith("_created")]
    assert samples["hybandits_request_duration_seconds_count", "decide"] == 5
    assert samples["hybandits_commit_duration_seconds_count",] >= 6
    assert samples["hybandits_last_row_timestamp_seconds",] == 1000


def test_a_clock_that_is_behind_is_reported(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, clock=clock)
    metrics = Metrics(service)
    assert values(text_of({"page": (metrics, make_view(service))}).decode())["hybandits_clock_behind_seconds",] == 0
    clock.advance(-90)
    assert values(text_of({"page": (metrics, make_view(service))}).decode())["hybandits_clock_behind_seconds",] == 90


def test_late_rewards_are_counted(tmp_path: Path) -> None:
    clock = Clock()
    service = writer(tmp_path, CLICKS, clock=clock)
    put(service, "a")
    for event in ("in time", "late", "later"):
        decide(service, event)
    reward(service, "in time", 1)
    clock.advance(60)
    for event in ("late", "later", "late"):
        reward(service, event, 1)
    restored = ModelState.restored(service.store)
    assert service.state.summary.late == restored.summary.late == 2
    service.keep_snapshot()
    service.store.close()
    service = writer(tmp_path, CLICKS, clock=clock)  # from the snapshot
    with served(service) as web:
        assert values(web.get("/metrics").text)["hybandits_rewards_late_total",] == 2
        assert web.get("/v1/view").json()["late"] == 2


@pytest.mark.slow
def test_estimates_of_every_policy(tmp_path: Path) -> None:
    service = writer(
        tmp_path, range=[0, 1], challengers=[{"name": 'bo"ld\n', "policy": "HyThompson:scale=1,noise=0.5"}]
    )
    put(service, "a", "b")
    with served(service) as web:
        events = [str(i) for i in range(200)]
        web.post("/v1/decisions/batch", json=[{"event_id": event, "user": USER} for event in events])
        web.post("/v1/rewards/batch", json=[{"event_id": event, "reward": 1} for event in events])
        samples = values(web.get("/metrics").text)
    assert samples["hybandits_policy_reward_mean", "live", "live"] == 1
    assert samples["hybandits_policy_reward_low", "live", "live"] < 1
    for part in ("mean", "low", "high"):
        assert -1 <= samples[f"hybandits_policy_gain_{part}", 'bo"ld\n', "challenger"] <= 1
        assert 0 <= samples[f"hybandits_policy_reward_{part}", "uniform choice", "uniform"] <= 1
