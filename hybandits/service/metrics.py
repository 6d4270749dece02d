"""Measurements for Prometheus. Every process reports itself; what follows from the log is the same in all of them."""

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from hybandits.service.view import View
from hybandits.service.writer import Writer

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Limits of the buckets of durations."""

disable_created_metrics()  # further series with the time at which every series began


class Metrics(Collector):
    """The metrics of one process: what it measures, and what follows from the log."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._view: View
        self._refusals: dict[int, int] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._requests = Histogram(
            "hybandits_request_duration_seconds",
            "Duration of requests, by endpoint.",
            ["request"],
            buckets=SECONDS,
            registry=self._registry,
        )
        commits = Histogram(
            "hybandits_commit_duration_seconds",
            "Duration of transactions, until their rows were on disk.",
            buckets=SECONDS,
            registry=self._registry,
        )
        writer.committed = commits.observe

    def observe(self, request: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(request).observe(seconds)
        if status >= 400:
            self.refused(status)

    def refused(self, status: int) -> None:
        """Count a refused request, or a refused item of a batch."""
        self._refusals[status] = self._refusals.get(status, 0) + 1

    def refusals(self) -> dict[str, int]:
        """Return the number of refused requests by status."""
        return {str(status): count for status, count in sorted(self._refusals.items())}

    def families(self, view: View) -> Iterator[Metric]:
        """Yield all metrics."""
        self._view = view
        yield from self._registry.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that are not measured by request or transaction."""
        text = "Requests and items of batches that were refused, by status."
        refusals = CounterMetricFamily("hybandits_refusals", text, labels=["status"])
        for status, count in self.refusals().items():
            refusals.add_metric([status], count)
        yield refusals
        view, writer = self._view, self._writer
        for name, text, count in (
            ("decisions", "Decisions in the log.", view.decisions),
            ("rewards_learned", "Rewards that were learned, those included that stand for none.", view.rewards),
            ("rewards_late", "Rewards that came after the window, and were not learned.", view.late),
            ("store_errors", "Transactions of this process that failed.", writer.failures),
        ):
            yield CounterMetricFamily(f"hybandits_{name}", text, count)
        gauges: tuple[tuple[str, str, float | None], ...] = (
            ("log_rows", "Rows of the log that the model has applied: its version.", view.version),
            ("last_row_timestamp_seconds", "Time of the last of them, in seconds since 1970.", view.time),
            ("clock_behind_seconds", "Seconds by which the clock is behind the time of that row.", writer.clock_behind),
            ("open_decisions", "Decisions whose reward has not been learned.", view.open),
            ("active_arms", "Arms that are candidates.", view.active_arms),
            ("waiting_requests", "Requests of this process that wait for a transaction.", writer.waiting),
            ("writable", "1 if this process can write, 0 if not.", float(writer.trouble is None)),
            ("rows_behind", "Rows that the model has not applied yet.", view.behind),
        )
        yield from _warnings(view)
        for name, text, value in gauges:
            if value is not None:
                yield GaugeMetricFamily(f"hybandits_{name}", text, value)
        yield from _estimates(view)


def _warnings(view: View) -> Iterator[Metric]:
    family = GaugeMetricFamily("hybandits_warning", "1 for every warning of the page, by its code.", labels=["code"])
    for code in sorted({each.code for each in view.warnings}):
        family.add_metric([code], 1)
    yield family


class _Collected(CollectorRegistry):
    """Metrics of several bandits, each sample with the name of its bandit."""

    def __init__(self, all_: Mapping[str, tuple[Metrics, View]]) -> None:
        super().__init__()
        self._merged: dict[str, Metric] = {}
        for bandit, (metrics, view) in all_.items():
            for family in metrics.families(view):
                merged = self._merged.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                merged.samples += [each._replace(labels={"bandit": bandit, **each.labels}) for each in family.samples]

    def collect(self) -> Iterator[Metric]:
        yield from self._merged.values()


def text_of(all_: Mapping[str, tuple[Metrics, View]]) -> bytes:
    """Return the metrics of all bandits in the text form of Prometheus."""
    return generate_latest(_Collected(all_))


def _estimates(view: View) -> Iterator[Metric]:
    others = [("uniform choice", "uniform", view.uniform)]
    others += [(each.name, "challenger", each.comparison) for each in view.challengers]
    values = [(view.live, "live", view.reward)] + [(name, role, each.value) for name, role, each in others]
    gains = [(name, role, each.difference) for name, role, each in others]
    for name, text, estimates in (
        ("policy_reward", "Reward per decision", values),
        ("policy_gain", "Reward per decision minus that of the live policy", gains),
    ):
        for part, words in (("mean", ""), ("low", ", lower bound"), ("high", ", upper bound")):
            family = GaugeMetricFamily(f"hybandits_{name}_{part}", f"{text}{words}.", labels=["policy", "role"])
            for policy, role, estimate in estimates:
                if getattr(estimate, part) is not None:
                    family.add_metric([policy, role], getattr(estimate, part))
            yield family
