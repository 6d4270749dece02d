"""Measurements for Prometheus. Every process reports itself; what follows from the log is the same in all of them."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hybandits.service.dashboard.estimates import Estimate
from hybandits.service.dashboard.view import View, Views
from hybandits.service.request_batching import Gathering

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""The limits that durations are counted by."""

STREAMS = ("live", "live_view")
"""Requests that last as long as somebody watches; how long is not measured."""

disable_created_metrics()  # when every series began, in a series of its own


class Metrics:
    """What `/metrics` reports."""

    def __init__(self, views: Views, gathering: Gathering) -> None:
        self._views, self._gathering = views, gathering
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "hybandits_request_duration_seconds", "How long requests took, by what was asked for.", ["request"],
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self._by_request: dict[str, Histogram] = {}
        self._refusals = Counter(
            "hybandits_refusals",
            "Requests and items of batches that were not served, by status.",
            ["status"],
            registry=self.registry,
        )
        commits = Histogram(
            "hybandits_commit_duration_seconds", "How long transactions took, until their rows were on disk.",
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        views.writer.committed = commits.observe
        views.refusals = self.refusals
        self.registry.register(self)  # type: ignore[arg-type]

    def measured(self, request: str, status: int, seconds: float) -> None:
        """Take note of a request that was answered."""
        its = self._by_request.get(request)
        if its is None:  # looking it up by its label takes longer
            its = self._by_request[request] = self._requests.labels(request)
        its.observe(seconds)
        if status >= 400:
            self.refused(status)

    def refused(self, status: int) -> None:
        """Take note of a request, or an item of a batch, that was not served."""
        self._refusals.labels(str(status)).inc()

    def refusals(self) -> dict[str, int]:
        """How many requests were refused, by status."""
        samples = (sample for family in self._refusals.collect() for sample in family.samples)
        counts = {each.labels["status"]: int(each.value) for each in samples if each.name.endswith("_total")}
        return dict(sorted(counts.items()))

    def text(self) -> bytes:
        """Everything in the text form of Prometheus."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """What is looked up when it is asked for."""
        writer, view = self._views.writer, self._views.newest()
        for name, text, value in (
            ("decisions", "Decisions in the log.", view.decisions),
            ("rewards_learned", "Rewards that were learned, those that stand for none included.", view.rewards),
            ("rewards_late", "Rewards that came after the window, and were not learned.", view.late),
            ("store_errors", "Transactions of this process that failed.", writer.failures),
        ):
            yield CounterMetricFamily(f"hybandits_{name}", text, value)
        gauges: tuple[tuple[str, str, float], ...] = (
            ("log_rows", "Rows of the log that the model has folded: its version.", view.version),
            ("last_row_timestamp_seconds", "The time of the last of them, in seconds since 1970.", view.time),
            (
                "clock_behind_seconds",
                "Seconds by which this machine's clock is behind the time of that row.",
                writer.clock_behind,
            ),
            ("open_decisions", "Decisions whose reward has not been learned.", view.open),
            ("active_arms", "Arms that are candidates.", view.active_arms),
            ("waiting_requests", "Requests of this process that wait for a transaction.", self._gathering.waiting),
            ("writable", "1 if this process can write, 0 if not.", float(writer.trouble is None)),
        )
        for name, text, number in gauges:
            yield GaugeMetricFamily(f"hybandits_{name}", text, number)
        if view.behind is not None:
            yield GaugeMetricFamily("hybandits_rows_behind", "Rows that the model has not folded yet.", view.behind)
        yield from _estimates(view)

    def describe(self) -> list[Metric]:
        """Nothing beforehand: names are known when values are looked up."""
        return []


def _estimates(view: View) -> Iterator[Metric]:
    """Estimates of every policy, in the unit of rewards, with bounds that hold at all times."""
    shown: list[tuple[str, str, Estimate, Estimate | None]] = [
        (view.live, "live", view.earned, None),
        ("uniform choice", "uniform", view.uniform.value, view.uniform.difference),
        *((each.name, "challenger", each.comparison.value, each.comparison.difference) for each in view.challengers),
    ]
    for what, text in (
        ("policy_reward", "Reward per decision"),
        ("policy_gain", "Reward per decision minus that of the live policy"),
    ):
        for part, words in (("mean", ""), ("low", ", lower bound"), ("high", ", upper bound")):
            family = GaugeMetricFamily(f"hybandits_{what}_{part}", f"{text}{words}.", labels=["policy", "role"])
            for name, role, value, difference in shown:
                estimate = value if what == "policy_reward" else difference
                if estimate is not None and (number := getattr(estimate, part)) is not None:
                    family.add_metric([name, role], number)
            yield family


class Measured:
    """Measures every request that Starlette finds a route for."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            request = getattr(scope.get("endpoint"), "__name__", "unknown")
            if request not in STREAMS:
                self._metrics.measured(request, status, time.perf_counter() - began)
            elif status >= 400:
                self._metrics.refused(status)
