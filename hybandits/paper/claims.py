"""From results to verdicts: which of the paper's claims hold in what was run, and on what evidence.

Reads results, runs nothing. Every claim is judged once per protocol: as the released code and as the text has it.

**Intervals respect environments.** Policies are compared in pairs, since row i of both saw the same contexts and noise.
The trials of an environment share their contexts and parameters, so they say little more than one trial does; counted
as independent they would make intervals far too short. Runs are therefore averaged per environment, and the interval is
Student's on those means: 5 environments, 4 degrees of freedom. Where there is one environment but every trial draws
contexts of its own (`diversity`), trials are the units, and verdicts are about that one draw of the parameters.

Another question is whether the published means themselves come out again: in the same environments, where runs differ
only by noise. That interval is given beside the first and does not decide: few readers care about five draws of theta.

**Several parts.** A claim holds if each of its parts does, at the stated confidence each. That needs no correction: a
false claim has a false part, and that part passes with at most the error of a single test. A claim does not hold if one
of its parts is significantly contradicted; parts are then many chances for an accident, so each is tested with the
error divided by their number (Bonferroni). Otherwise it is undecided.

**Exponents** are least-squares slopes of log y against log t, over the rounds from T/2 to T, one per run. For an arm's
block, t is the number of its pulls, and all arms of a run share one slope but have intercepts of their own, since some
arms see more diverse features than others. Smallest eigenvalues set out late, by an offset that depends on the policy
(bounds that seek wide directions balance a matrix sooner than independent rows do), so theirs come from increments.

**One log** (claim 8). All trials play the same rounds of one log and differ by noise and the policies' own draws, so
intervals are over trials and verdicts are about that log. With one trial the comparison is exact for that trial, but
nothing tells how much of it is its noise: the numbers are shown and the claim stays undecided, as wherever there is no
interval. A made log has the format of Yahoo's and none of its content: whatever comes out there, the claim stays
undecided, and the rows inform without deciding.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hybandits.experiments.results import Design, Outcome, Results
from hybandits.experiments.statistics import (
    Interval,
    exponents,
    increment_exponents,
    interval,
    interval_within,
    proportion_floor,
    smallest_eigenvalue,
)
from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.paper import theorems
from hybandits.paper.settings import HYRAN_RELEASED

Answer = Literal["holds", "does not hold", "undecided"]

HOLDS: Answer = "holds"
FAILS: Answer = "does not hold"
OPEN: Answer = "undecided"

LINEAR = (0.9, 1.1)
"""Exponents called linear; below the first, sublinear. The published curves have 0.95 (HyRan in setting 2, called
linear), 0.76 (HyRan in setting 1, called somewhat sublinear) and 0.35 to 0.55 (the others)."""

ROOT_TOLERANCE = 0.05
"""How far above 0.5 an exponent still agrees with sqrt(T): the theorems' sqrt(T log(T/delta)) has the exponent
0.5 + 1/(2 log(T/delta)) at T, which is 0.538 at T = 5,000 and delta = 0.01."""

DESIGN_TOLERANCE = 0.1
"""The same for eigenvalues (1) and singular values (1/2)."""

BETWEEN = 0.75
"""Where an exponent is as near to linear as to a square root: across it, a claim of either is contradicted."""

PULLS_PER_DIMENSION = 5
"""Arms enter the fits from this many pulls per dimension: with fewer, lambda_min is about lack of rank, not growth."""

DEFAULT_DELTA = 0.01

EARLY = 0.9
"""Share of even choice's regret on a click log from which on HyLinUCB is taken to be still exploring."""

CLOSE = 0.5
"""LinUCB's regret is close to HyLinUCB's, and another's much larger, if LinUCB's exceeds HyLinUCB's by less than this
share of what the other's does. The published curves end at 0.25 (DisLinUCB) and 0.11 (HyRan)."""

EXPERIMENTS = ("setting-1", "setting-2", "setting-3", "diversity")

YAHOO = {"yahoo": "8", "yahoo-positions": "8 (positions)"}
"""Experiments on a click log, and the claims they are about."""

CLAIMS: dict[str, tuple[str, str]] = {
    "1": (
        "Setting 1: order of regrets",
        "With many shared features (d1 = 40, d2 = 5) HyLinUCB has the smallest regret at T, then LinUCB, then "
        "DisLinUCB, then HyRan.",
    ),
    "2": (
        "Setting 2: order of regrets, HyRan linear",
        "With many features of each arm's own (d1 = 5, d2 = 40) DisLinUCB has the smallest regret at T, then HyLinUCB, "
        "then HyRan, then LinUCB; HyRan's regret is linear in the rounds, the others' sublinear.",
    ),
    "3": (
        "Setting 3: order at every K, slowest growth",
        "With d1 = d2 = 5 HyLinUCB has the smallest regret at T for every number of arms K, then DisLinUCB, then "
        "LinUCB, then HyRan; HyLinUCB's regret grows slowest with K.",
    ),
    "4": (
        "Regret grows no faster than sqrt(T)",
        "Under diversity the regrets of LinUCB, HyLinUCB and DisLinUCB are at most of the order of sqrt(T), up to "
        "logarithms.",
    ),
    "5": (
        "Eigenvalues linear, singular values like a square root",
        "The smallest eigenvalues of V_t, of every W_i,t and, for DisLinUCB, of every arm's matrix grow linearly in "
        "the rounds or in the arm's pulls; the largest singular value of B_i,t grows like the pulls' square root.",
    ),
    "6": (
        "Key lemma: M between U/2 and 2U",
        "After a burn-in T_o the design matrix M_t lies between half and twice its block diagonal part U_t with "
        "probability at least 1 - 4 delta, which is to say sigma_max(Z_t) <= 1/2.",
    ),
    "7": (
        "Regret below the theorems' bounds",
        "Once T exceeds the burn-in, the regrets of LinUCB, HyLinUCB and DisLinUCB stay below the right-hand sides "
        "that the proofs spell out, with probability at least 1 - 4 delta.",
    ),
    "8": (
        "Yahoo: HyLinUCB best, LinUCB close",
        "On the contexts of Yahoo's click log, with a reward model fitted to its first rounds, HyLinUCB has the "
        "smallest regret at T; LinUCB's comes close to it, DisLinUCB's and HyRan's are much larger.",
    ),
    "8 (positions)": (
        "Yahoo, positions as arms: HyLinUCB best, LinUCB close",
        "The same as claim 8. The paper's text has articles as arms; its code has positions in the line's list, and so "
        "has this run.",
    ),
}
"""Title and what the paper says, in our words."""


class Evidence(NamedTuple):
    """One row behind a verdict; `verdict` is None where the row informs but does not decide."""

    what: str
    value: str
    verdict: Answer | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one claim under one protocol."""

    claim: str
    protocol: str
    title: str
    statement: str
    """What the paper says."""
    test: str
    """How the verdict is reached."""
    verdict: Answer
    summary: str
    """Why, in a sentence or two."""
    evidence: tuple[Evidence, ...]


class Part(NamedTuple):
    """A part of a claim: the answer and the interval at the stated confidence, None if there is none."""

    answer: Answer
    found: Interval | None


def locate(
    values: Doubles,
    units: NDArray[Any],
    *,
    least: float = -math.inf,
    most: float = math.inf,
    margin: float = 0.0,
    confidence: float,
    parts: int = 1,
) -> Part:
    """Whether the mean lies between `least` and `most`.

    It holds if the interval lies within, does not hold if the interval with a `parts` times smaller error lies outside,
    by more than `margin`.
    """
    found = interval(values, units, confidence)
    wide = interval(values, units, 1 - (1 - confidence) / parts)
    if found is None or wide is None:
        return Part(OPEN, None)
    if least < found.low and found.high < most:
        return Part(HOLDS, found)
    return Part(FAILS if wide.low > most + margin or wide.high < least - margin else OPEN, found)


def together(parts: Iterable[Evidence | Answer]) -> Answer:
    """A claim's answer from its parts': one contradicted part refutes it, all must hold for it to hold."""
    answers = {part.verdict if isinstance(part, Evidence) else part for part in parts} - {None}
    if FAILS in answers:
        return FAILS
    return HOLDS if answers == {HOLDS} else OPEN


# ------------------------------------------------------------------ words


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinite"
    if abs(value) >= 1e6:
        return f"{value:.2g}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _few(names: Sequence[str]) -> str:
    return _listed(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _mean(values: Doubles) -> str:
    finite = values[np.isfinite(values)]
    return _number(float(finite.mean())) if len(finite) else "unknown"


def _summary(rows: Sequence[Evidence], good: str) -> str:
    """Why a claim of several parts came out as it did; `good` if all of them hold."""
    failed = [row.what for row in rows if row.verdict == FAILS]
    unclear = [row.what for row in rows if row.verdict == OPEN]
    if failed:
        return f"Contradicted: {_few(failed)}."
    return f"Not settled: {_few(unclear)}." if unclear else good


def _verdict(
    claim: str, protocol: str, *, test: str, answer: Answer, summary: str, rows: Sequence[Evidence]
) -> Verdict:
    title, statement = CLAIMS[claim]
    return Verdict(
        claim=claim, protocol=protocol, title=title, statement=statement, test=test, verdict=answer, summary=summary,
        evidence=tuple(rows),
    )  # fmt: skip


# ------------------------------------------------------------------ parts


class _Case:
    """One experiment's results, and the confidence they are judged with."""

    def __init__(self, outcome: Outcome, confidence: float) -> None:
        self.outcome = outcome
        self.confidence = confidence
        self.experiment = outcome.experiment
        self.horizon = outcome.experiment.horizon
        self._designs: dict[tuple[str, int], Design | None] = {}

    def lacking(self, policies: Sequence[str]) -> str:
        """A sentence on the policies that were not run, empty if they all were."""
        names = [name for name in policies if name not in self.outcome.policies]
        return f"No results of {_listed(names)}." if names else ""

    def settings(self, policy: str) -> dict[str, Any]:
        return next(dict(entry.settings) for entry in self.experiment.policies if entry.name == policy)

    def exploration(self, policy: str) -> dict[str, Any]:
        return dict(self.settings(policy).get("exploration") or {})

    def delta(self, policy: str) -> float:
        return float(self.exploration(policy).get("delta", DEFAULT_DELTA))

    def ridge(self, policy: str, arms: int) -> float:
        """lambda of the run: the entry's, else the one that the theorems' coefficient brings along."""
        given = self.settings(policy).get("ridge")
        return float(given) if given is not None else theorems.prescribed_ridge(_bounded(policy), arms=arms)

    def design(self, policy: str, arms: int) -> Design | None:
        if (policy, arms) not in self._designs:
            self._designs[policy, arms] = self.outcome.design(policy, arms)
        return self._designs[policy, arms]

    def rho(self, policy: str, arms: int) -> float:
        """The largest diversity min(rho_x, rho_z) of any run at T; NaN if it was not measured or is nil.

        The largest: it gives the smallest burn-in and the smallest bound, hence the hardest test.
        """
        design = self.design(policy, arms)
        if design is None:
            return math.nan
        found = np.fmin(design.rho_x[:, -1], design.rho_z[:, -1])
        best = float(np.max(found[np.isfinite(found)], initial=-math.inf))
        return min(best, 1.0) if best > 1e-12 else math.nan

    def burn_in(self, policy: str, arms: int) -> float:
        """T_o, T'_o for DisLinUCB; infinite without diversity."""
        rho, e = self.rho(policy, arms), self.experiment
        if math.isnan(rho):
            return math.inf
        return theorems.burn_in(
            _bounded(policy), d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, delta=self.delta(policy)
        )

    def late(self, t: Doubles, share: float = 0.5) -> NDArray[np.bool_]:
        """The rounds of the last half, or of the last `share`."""
        late: NDArray[np.bool_] = t >= (1 - share) * self.horizon
        return late

    def quarters(self, t: Doubles) -> list[int] | None:
        """The probes at T/2, 3T/4 and T, or those nearest; None if there are not three."""
        late = np.flatnonzero(self.late(t))
        if len(late) < 3:
            return None
        middle = late[1:-1][np.argmin(np.abs(t[late[1:-1]] - 0.75 * self.horizon))]
        return [int(late[0]), int(middle), int(late[-1])]

    def growth(self, policy: str) -> Doubles:
        """The exponent of every run's regret over the last half of the rounds."""
        t = self.outcome.points
        return exponents(t[None, :], self.outcome.regret(policy), self.late(t)[None, :])

    def said(self, found: Interval | None, units: NDArray[Any], *, name: str = "") -> str:
        """An interval in words, or why there is none."""
        if found is None:
            alone = f"one {'trial' if self.outcome.has_independent_trials else 'environment'} only"
            return f"no interval: {alone if len(np.unique(units)) < 2 else 'too few runs with a usable value'}"
        lead = f"{name} {_number(found.mean)}".strip()
        return f"{lead}, {_percent(self.confidence)} interval {_number(found.low)} to {_number(found.high)}"


def _bounded(policy: str) -> theorems.Policy:
    return cast(theorems.Policy, policy)


def _order(
    case: _Case, smaller: str, larger: str, *, arms: int | None = None, parts: int = 1, decides: bool = True
) -> Evidence:
    """Whether one policy's regret at T is below another's, paired over runs."""
    a, b = case.outcome.final(smaller, arms), case.outcome.final(larger, arms)
    units = case.outcome.independent_units(smaller, arms)
    answer, found = locate(a - b, units, most=0.0, confidence=case.confidence, parts=parts)
    value = (
        f"{_mean(a)} against {_mean(b)}; {case.said(found, units, name='difference')}; smaller in {int((a < b).sum())} "
        f"of {len(a)} runs"
    )
    if here := interval_within(a - b, units, case.confidence):
        value += f"; in these {here.units} environments alone {_number(here.low)} to {_number(here.high)}"
    where = "" if arms is None else f" at K = {arms}"
    return Evidence(f"{smaller} < {larger}{where}", value, answer if decides else None)


def _shape(case: _Case, policy: str, *, linear: bool, parts: int = 1, decides: bool = True) -> Evidence:
    """Whether a policy's regret is linear or sublinear at the end."""
    units = case.outcome.independent_units(policy)
    least, most = LINEAR if linear else (-math.inf, LINEAR[0])
    answer, found = locate(case.growth(policy), units, least=least, most=most, confidence=case.confidence, parts=parts)
    what = f"{policy} {'linear' if linear else 'sublinear'}"
    return Evidence(what, case.said(found, units, name="exponent"), answer if decides else None)


def _cross_blocks(rows: Sequence[Evidence]) -> list[Evidence]:
    """Rows on HyRan proper, beside the variant that the paper plotted."""
    return [row._replace(what=f"{row.what}, HyRan with its cross blocks (not deciding)") for row in rows]


def _order_test(case: _Case) -> str:
    return (
        f"Regret at T of two policies is compared run by run and averaged per environment. A < B holds if the "
        f"{_percent(case.confidence)} interval of the mean difference (Student's t over environments) lies below 0; it "
        f"is contradicted if the interval lies above 0, its error divided by the number of parts. All parts must hold. "
        f"HyRan is the variant that the paper plotted. Beside it stands the interval for these environments alone, "
        f"whose runs differ only by noise: it asks whether the published means come out again, not whether other "
        f"environments would agree, and does not decide."
    )


# ------------------------------------------------------------------ claims 1 to 3: order


def _claim_1(case: _Case, protocol: str) -> Verdict:
    order = ("HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED)
    test = _order_test(case)
    if lacking := case.lacking(order):
        return _verdict("1", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    rows = [_order(case, a, b, parts=3) for a, b in itertools.pairwise(order)]
    answer, summary = together(rows), _summary(rows, "Every neighbouring pair is in the stated order.")
    if not case.lacking(["HyRan"]):
        rows += _cross_blocks([_order(case, "DisLinUCB", "HyRan", decides=False)])
    return _verdict("1", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _claim_2(case: _Case, protocol: str) -> Verdict:
    order = ("DisLinUCB", "HyLinUCB", HYRAN_RELEASED, "LinUCB")
    test = (
        f"{_order_test(case)} Shape: the exponent of the regret over the last half of the rounds; linear if its "
        f"interval lies in {LINEAR[0]} to {LINEAR[1]}, sublinear if below {LINEAR[0]}."
    )
    if lacking := case.lacking(order):
        return _verdict("2", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    rows = [_order(case, a, b, parts=7) for a, b in itertools.pairwise(order)]
    rows += [_shape(case, name, linear=name == HYRAN_RELEASED, parts=7) for name in order]
    answer, summary = together(rows), _summary(rows, "Order and shapes are as stated.")
    if not case.lacking(["HyRan"]):
        proper = [_order(case, a, b, decides=False) for a, b in (("HyLinUCB", "HyRan"), ("HyRan", "LinUCB"))]
        rows += _cross_blocks([*proper, _shape(case, "HyRan", linear=True, decides=False)])
    return _verdict("2", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _claim_3(case: _Case, protocol: str) -> Verdict:
    order = ("HyLinUCB", "DisLinUCB", "LinUCB", HYRAN_RELEASED)
    test = (
        f"{_order_test(case)} Growth is fitted per run and compared in the same way, both as a power of K (slope of "
        f"log regret against log K) and as regret added per arm (slope of regret against K); where the two measures "
        f"differ, it is undecided."
    )
    if lacking := case.lacking(order):
        return _verdict("3", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    cases = case.outcome.arms
    several = len(cases) > 1
    parts = 3 * len(cases) + (6 if several else 0)
    rows = [_order(case, a, b, arms=arms, parts=parts) for arms in cases for a, b in itertools.pairwise(order)]
    absent = ", ".join(str(arms) for arms in case.experiment.arms if arms not in cases)
    if absent:
        rows.append(Evidence(f"K = {absent}", "not complete", OPEN))
    pairs = [_slower(case, "HyLinUCB", rival, parts) for rival in order[1:]] if several else []
    # Where one measure says yes and the other no, it is a matter of reading and not of data.
    grown = together(one if one.verdict == other.verdict else OPEN for one, other in pairs)
    growth = [row for pair in pairs for row in pair]
    summary = _summary(rows, "The order is as stated at every K.")
    if not several:
        rows.append(Evidence("growth in K", "needs two numbers of arms", OPEN))
    elif grown == OPEN and (lost := [row.what for row in growth if row.verdict == FAILS]):
        summary += f" Which regret grows slowest depends on the measure (contradicted: {_few(lost)})."
    else:
        words = {HOLDS: "grows slowest", FAILS: "does not grow slowest", OPEN: "may or may not grow slowest"}
        summary += f" HyLinUCB's regret {words[grown]} with K."
    answer = together([*rows, grown])
    rows += growth
    if not case.lacking(["HyRan"]):
        means = ", ".join(f"{_mean(case.outcome.final('HyRan', arms))} at K = {arms}" for arms in cases)
        rows.append(Evidence("HyRan with its cross blocks (not deciding)", f"regret {means}"))
    return _verdict("3", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _slower(case: _Case, smaller: str, larger: str, parts: int) -> tuple[Evidence, Evidence]:
    """Whether one policy's regret grows slower with K: as a power of K, and per added arm."""
    cases = case.outcome.arms
    arms = np.array(cases, dtype=float)
    units = case.outcome.independent_units(smaller, cases[0])
    regrets = [np.stack([case.outcome.final(policy, k) for k in cases], axis=1) for policy in (smaller, larger)]
    centred = arms - arms.mean()

    def row(measure: str, one: Doubles, other: Doubles) -> Evidence:
        answer, found = locate(one - other, units, most=0.0, confidence=case.confidence, parts=parts)
        value = f"{_mean(one)} against {_mean(other)}; {case.said(found, units, name='difference')}"
        return Evidence(f"growth of {smaller} < {larger} {measure}", value, answer)

    return (
        row("as a power of K", *(exponents(arms[None, :], regret) for regret in regrets)),
        row("per added arm", *(regret @ centred / (centred @ centred) for regret in regrets)),
    )


# ------------------------------------------------------------------ claims 4 to 6: diversity

_ONE_DRAW = "All trials share one draw of the parameters, so the verdict is about that draw."


def _claim_4(case: _Case, protocol: str) -> Verdict:
    limit = 0.5 + ROOT_TOLERANCE
    test = (
        f"The exponent of the regret over the last half of the rounds, one per trial, with its "
        f"{_percent(case.confidence)} interval: at most sqrt(T) if it ends below {limit:g} (the tolerance covers the "
        f"theorems' logarithm), contradicted if it starts above. {_ONE_DRAW}"
    )
    if lacking := case.lacking(theorems.POLICIES):
        return _verdict("4", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    rows, readings = [], []
    for policy in theorems.POLICIES:
        units = case.outcome.independent_units(policy)
        answer, found = locate(case.growth(policy), units, most=limit, confidence=case.confidence, parts=3)
        value = case.said(found, units)
        if found is not None:
            if found.low <= 0.5 <= found.high:
                place, reading = "contains 0.5", "like it"
            else:
                place, reading = ("below 0.5", "slower") if found.high < 0.5 else ("above 0.5", "faster")
            value += f": {place}; allowed up to {limit:g}"
            readings.append(f"{policy} {reading} ({_number(found.mean)})")
        rows.append(Evidence(f"{policy}: exponent of the regret", value, answer))
    answer = together(rows)
    head = {
        HOLDS: "At most sqrt(T), as the bound says",
        FAILS: "Faster than sqrt(T) up to this T",
        OPEN: "Not settled",
    }[answer]
    head += f": exponents are allowed up to {limit:g}, which leaves room for the theorems' logarithm"
    summary = f"{head}. Beside 1/2 itself: {_listed(readings)}." if readings else "No exponent could be fitted."
    starts = {policy: case.burn_in(policy, case.outcome.arms[0]) for policy in theorems.POLICIES}
    if min(starts.values()) >= case.horizon:
        summary += f" The theorems speak of T beyond their burn-in; T = {case.horizon:,} is before it."
    rows += [
        Evidence(f"{policy}: burn-in (not deciding)", f"{_number(start)} against T = {case.horizon:,}")
        for policy, start in starts.items()
    ]
    return _verdict("4", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _claim_5(case: _Case, protocol: str) -> Verdict:
    test = (
        f"Exponents over the last half of the rounds, one per trial, with their {_percent(case.confidence)} interval; "
        f"arms count from {PULLS_PER_DIMENSION} pulls per dimension on. For eigenvalues they come from growth per row, "
        f"third against last quarter of the rounds, since lambda_min sets out late: of n independent rows in d "
        f"dimensions it is near rho n (1 - sqrt(d/n))^2, whose log-log slope is well above 1 at these n. Linear if the "
        f"interval starts above {1 - DESIGN_TOLERANCE:g} (faster cannot last: |x|, |z| <= 1 keep lambda_min below "
        f"2 n/d), a square root if it ends below {0.5 + DESIGN_TOLERANCE:g}; contradicted if it lies on the other's "
        f"side of {BETWEEN:g}. {_ONE_DRAW}"
    )
    if lacking := case.lacking(theorems.POLICIES):
        return _verdict("5", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    rows = [row for policy in theorems.POLICIES for row in _spectrum(case, policy)]
    summary = _summary(rows, "Eigenvalues grow linearly, singular values no faster than a square root.")
    if any(row.verdict == FAILS and "sigma_max" in row.what for row in rows):
        summary += (
            " The features of the arm played are picked for their reward, so they do not average out: the "
            "mean of x z', 0 in the assumption, is not."
        )
    answer = together(rows)
    rows += [row for policy in theorems.POLICIES[:2] for row in _cross_moment(case, policy)]
    return _verdict("5", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _cross_moment(case: _Case, policy: str) -> list[Evidence]:
    """sigma_max(B_i) / pulls, the size of an arm's mean of x z', at T/2 and at T; 0 in the assumption."""
    design = case.design(policy, case.outcome.arms[0])
    probes = None if design is None else case.quarters(design.t)
    if design is None or design.pulls is None or design.sigma_max_b is None or probes is None:
        return []
    size = design.sigma_max_b / np.maximum(design.pulls, 1)
    value = f"{_number(float(np.median(size[:, probes[0]])))} at T/2, {_number(float(np.median(size[:, -1])))} at T"
    what = f"{policy}: sigma_max of an arm's mean x z', median (not deciding; 0 by the assumption)"
    return [Evidence(what, value)]


def _spectrum(case: _Case, policy: str) -> list[Evidence]:
    """The exponents of one policy's design matrix."""
    d1, d2, arms = case.experiment.d1, case.experiment.d2, case.outcome.arms[0]
    design = case.design(policy, arms)
    if design is None or design.pulls is None or design.lambda_min_w is None or design.sigma_max_b is None:
        return [Evidence(policy, "its design matrix was not measured arm by arm", OPEN)]
    ridge = case.ridge(policy, arms)
    t = np.broadcast_to(design.t[None, :, None], (*design.z_norm.shape, 1))

    def linear(what: str, rows: Doubles, y: Doubles, dimension: int) -> Evidence:
        probes = case.quarters(design.t)
        enough = rows >= PULLS_PER_DIMENSION * dimension
        if probes is None or not enough[:, probes[0]].any():
            why = "no arm was pulled often enough" if probes else "too few probes in the last half of the rounds"
            return Evidence(f"{policy}: {what}", why, OPEN)
        units, use = case.outcome.independent_units(policy), enough[:, probes[0]]
        answer, found = locate(
            increment_exponents(rows[:, probes], y[:, probes], use), units, least=1 - DESIGN_TOLERANCE,
            margin=1 - DESIGN_TOLERANCE - BETWEEN, confidence=case.confidence, parts=7,
        )  # fmt: skip
        random = increment_exponents(rows[:, probes], smallest_eigenvalue(dimension, rows[:, probes]), use)
        value = case.said(found, units, name="exponent")
        value += f" (independent rows would show {_mean(random)}); log-log slope "
        value += f"{_mean(exponents(rows, y - ridge, enough & case.late(t)))}{_used(use)}"
        return Evidence(f"{policy}: {what}", value, answer)

    def root(what: str, rows: Doubles, y: Doubles, dimension: int) -> Evidence:
        enough = rows >= PULLS_PER_DIMENSION * dimension
        late = enough & case.late(t)
        if not late.any():
            return Evidence(f"{policy}: {what}", "no arm was pulled often enough", OPEN)
        units = case.outcome.independent_units(policy)
        answer, found = locate(
            exponents(rows, y, late), units, most=0.5 + DESIGN_TOLERANCE, margin=BETWEEN - 0.5 - DESIGN_TOLERANCE,
            confidence=case.confidence, parts=7,
        )  # fmt: skip
        last = exponents(rows, y, enough & case.late(t, 0.25))
        value = f"{case.said(found, units, name='exponent')}; over the last quarter {_mean(last)}{_used(late[:, -1])}"
        return Evidence(f"{policy}: {what}", value, answer)

    if policy == "DisLinUCB":
        return [linear("lambda_min of the arms' matrices", design.pulls, design.lambda_min_w, d1 + d2)]
    found = []
    if d1:
        found.append(linear("lambda_min(V)", t, design.lambda_min_v[..., None], d1))
    if d2:
        found.append(linear("lambda_min(W_i)", design.pulls, design.lambda_min_w, d2))
    if d1 and d2:
        found.append(root("sigma_max(B_i)", design.pulls, design.sigma_max_b, max(d1, d2)))
    return found


def _used(arms: NDArray[np.bool_]) -> str:
    """How many arms entered a fit, where not all did."""
    return "" if arms.all() else f"; {_percent(float(arms.mean()))} of arms had enough pulls"


def _claim_6(case: _Case, protocol: str) -> Verdict:
    shared = ("LinUCB", "HyLinUCB")
    test = (
        f"sigma_max(Z_t) is measured at the probes. Holds if it is at most 1/2 in so many trials that its probability "
        f"is at least 1 - 4 delta at {_percent(case.confidence)} confidence (Clopper and Pearson): from T_o on if T "
        f"reaches T_o, else at T and falling over the last half of the rounds. T_o is computed with the largest "
        f"diversity rho measured, which makes it smallest. Contradicted only by what happens after T_o. {_ONE_DRAW}"
    )
    if lacking := case.lacking(shared):
        return _verdict("6", protocol, test=test, answer=OPEN, summary=lacking, rows=())
    arms = case.outcome.arms[0]
    found = {policy: _lemma(case, policy, arms) for policy in shared}
    rows = [row for row, _ in found.values()]
    answer = together(rows)
    summary = f"{_listed([word for _, word in found.values()])}."
    if min(case.burn_in(policy, arms) for policy in shared) > case.horizon:
        summary += f" T = {case.horizon:,} is before the burn-in: the lemma promises nothing yet."
    for policy in shared:
        start, rho = case.burn_in(policy, arms), case.rho(policy, arms)
        value = f"{_number(start)} with rho = {_number(rho)}, against T = {case.horizon:,}"
        rows.append(Evidence(f"{policy}: burn-in T_o (not deciding)", value))
        value = f"{_number(case.ridge(policy, arms))}; the proof asks for at least 1/rho = {_number(1 / rho)}"
        rows.append(Evidence(f"{policy}: ridge (not deciding)", value))
    if not case.lacking(["DisLinUCB"]):
        row, _ = _lemma(case, "DisLinUCB", arms)
        value = f"{row.value}; T'_o = {_number(case.burn_in('DisLinUCB', arms))} pulls of an arm"
        rows.append(Evidence("DisLinUCB: largest sigma_max(Z_i,t) of any arm (not deciding)", value))
    return _verdict("6", protocol, test=test, answer=answer, summary=summary, rows=rows)


def _at_other_lengths(cases: Iterable[_Case]) -> list[Evidence]:
    """sigma_max(Z_T) in the settings, whose T is longer: for information."""
    rows = []
    for case in cases:
        for arms in case.outcome.arms:
            said = []
            for policy in ("LinUCB", "HyLinUCB"):
                design = None if case.lacking([policy]) else case.design(policy, arms)
                if design is not None:
                    last = design.z_norm[:, -1]
                    said.append(f"{policy} {_number(float(last.min()))} to {_number(float(last.max()))}")
            if said:
                what = f"{case.experiment.name}, K = {arms}: sigma_max(Z_T) at T = {case.horizon:,} (not deciding)"
                rows.append(Evidence(what, "; ".join(said)))
    return rows


def _lemma(case: _Case, policy: str, arms: int) -> tuple[Evidence, str]:
    """The row of one policy, and a clause for the summary."""
    what = f"{policy}: sigma_max(Z_t)"
    design = case.design(policy, arms)
    if design is None or not np.isfinite(design.z_norm).all():
        return Evidence(what, "not measured", OPEN), f"{policy}'s Z was not measured"
    z, t, trials = design.z_norm, design.t, len(design.z_norm)
    start = case.burn_in(policy, arms)
    reached = bool(t[-1] >= start)
    judged = t >= min(start, t[-1])
    small = int((z[:, judged] <= 0.5).all(axis=1).sum())
    goal = 1 - 4 * case.delta(policy)
    floor = proportion_floor(small, trials, case.confidence)
    ceiling = 1 - proportion_floor(trials - small, trials, (1 + case.confidence) / 2)  # two policies: half the error
    slopes = exponents(t[None, :], z, case.late(t)[None, :])
    falling = (
        locate(slopes, case.outcome.independent_units(policy), most=0.0, confidence=case.confidence).answer == HOLDS
    )
    answer = HOLDS if floor >= goal and (reached or falling) else OPEN
    if reached and ceiling < goal:
        answer = FAILS
    # Probes from which on every trial is at most 1/2.
    for_good = np.flip(np.logical_and.accumulate(np.flip((z <= 0.5).all(axis=0))))
    first = f"in all trials from t = {t[for_good][0]:,.0f} on" if for_good.any() else "not in all trials even at T"
    when = "since T_o" if reached else "at T"
    value = (
        f"median {_number(float(np.median(z[:, -1])))} and largest {_number(float(z[:, -1].max()))} at T, "
        f"{'falling' if falling else 'not falling'}; at most 1/2 {first}; {when} in {small} of {trials} trials, hence "
        f"with probability {floor:.3f} or more"
    )
    if small < trials:
        word = f"{policy}'s Z exceeds 1/2 in {trials - small} of {trials} trials {when}"
    else:
        word = f"{policy}'s Z is at most 1/2 in all {trials} trials {when}"
        word += "" if reached or falling else " but not falling"
        word += "" if floor >= goal else f", too few to show a probability of {goal:g}"
    return Evidence(what, value, answer), word


# ------------------------------------------------------------------ claim 7: theorems


class _Bounded(NamedTuple):
    """A regret beside its bound."""

    row: Evidence
    ratio: float = math.nan
    vacuous: bool = False
    early: bool = True


def _claim_7(cases: Sequence[_Case], protocol: str) -> Verdict:
    test = (
        "In every experiment and for every K, the largest regret at T of any run against the proof's bound, with the "
        "theorem's lambda and gamma and the largest diversity rho of any run, which makes the bound smallest. A part "
        "holds if T exceeds the burn-in and every run is below; it is undecided if T does not, since the theorem then "
        "says nothing; it does not hold if a run is above. A bound is vacuous if it exceeds 2 (S1 + S2) T, which no "
        "policy can."
    )
    found = [
        _below(case, policy, arms)
        for case in cases
        for arms in case.outcome.arms
        for policy in theorems.POLICIES
        if not case.lacking([policy])
    ]
    rows = [bounded.row for bounded in found]
    ratios = [bounded.ratio for bounded in found if not math.isnan(bounded.ratio)]
    summary = "No diversity was measured, so there is no bound to compare with."
    if ratios:
        above = sum(row.verdict == FAILS for row in rows)
        summary = (
            f"{f'{above} of {len(rows)} regrets exceed their' if above else 'No regret exceeds its'} bound; bounds are "
            f"{_number(min(ratios))} to {_number(max(ratios))} times the largest regret, "
            f"{sum(one.vacuous for one in found)} of {len(rows)} are vacuous, and T does not exceed the burn-in in "
            f"{sum(one.early for one in found)} of {len(rows)}."
        )
    return _verdict("7", protocol, test=test, answer=together(rows), summary=summary, rows=rows)


def _below(case: _Case, policy: theorems.Policy, arms: int) -> _Bounded:
    """Whether a policy's regret is below its bound."""
    e = case.experiment
    what = f"{e.name}{f', K = {arms}' if len(e.arms) > 1 else ''}: {policy}"
    regret = case.outcome.final(policy, arms)
    worst, rho = float(regret.max()), case.rho(policy, arms)
    if math.isnan(rho):
        return _Bounded(Evidence(what, "no diversity was measured (rho is 0 or unknown), hence no bound", OPEN))
    if math.isnan(worst):
        return _Bounded(Evidence(what, "a regret is not a number", OPEN))
    ridge, start = theorems.prescribed_ridge(policy, arms=arms), case.burn_in(policy, arms)
    bound = theorems.regret_bound(
        policy, d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, ridge=ridge, delta=case.delta(policy),
        bound=max(e.theta_bound, e.beta_bound),
    )  # fmt: skip
    most = theorems.trivial_bound(horizon=e.horizon, theta_bound=e.theta_bound, beta_bound=e.beta_bound)
    # DisLinUCB's bound is derived for every T: its T'_o counts pulls of an arm, and stands in the bound.
    early, vacuous = policy != "DisLinUCB" and e.horizon <= start, bound > most
    ratio = bound / worst if worst > 0 else math.nan
    value = f"largest regret {_number(worst)} in {len(regret)} runs, bound {_number(bound)}"
    value += "" if math.isnan(ratio) else f", {_number(ratio)} times as large"
    value += (
        f"{', vacuous' if vacuous else ''}; rho = {_number(rho)}, burn-in {_number(start)} "
        f"{'pulls of an arm' if policy == 'DisLinUCB' else f'against T = {e.horizon:,}'}"
    )
    same = {"lambda": case.ridge(policy, arms) == ridge, "gamma": case.exploration(policy).get("kind") == "AsWritten"}
    if other := [symbol for symbol, equal in same.items() if not equal]:
        value += f"; run with another {_listed(other)} than the theorem's"
    unbroken: Answer = OPEN if early else HOLDS
    return _Bounded(Evidence(what, value, FAILS if worst > bound else unbroken), ratio, vacuous, early)


# ------------------------------------------------------------------ claim 8: a click log

_RIVALS = ("LinUCB", "DisLinUCB", HYRAN_RELEASED)


def _claim_8(case: _Case, protocol: str) -> Verdict:
    claim, made = YAHOO[case.experiment.name], (case.experiment.log or {}).get("made") is not None
    test = (
        f"Regret at T of two policies is compared trial by trial. A < B holds if the {_percent(case.confidence)} "
        f"interval of the mean difference (Student's t over trials) lies below 0; it is contradicted if the interval "
        f"lies above 0, its error divided by the number of parts. Close and much larger: LinUCB's regret exceeds "
        f"HyLinUCB's by less than {CLOSE:g} of what the other's does. All parts must hold. HyRan is the variant that "
        f"the paper plotted. Trials play the same log and differ by noise, so the verdict is about this log; with one "
        f"trial there is no interval and the claim is undecided, as it is while HyLinUCB has lost {_percent(EARLY)} or "
        f"more of what even choice would."
        f"{' This log is made, so it is undecided whatever comes out.' if made else ''}"
    )
    lacking = case.lacking(("HyLinUCB", *_RIVALS))
    rows = [] if lacking else _yahoo_parts(case)
    answer, summary = together(rows), lacking or _yahoo_summary(case, rows)
    if made:
        rows, answer = [_on_made_log(row) for row in rows], OPEN
        summary = (
            "No real data: the log is made, not Yahoo's, so nothing is known about the claim. What the made log shows "
            f"of itself: {re.sub('^(Contradicted|Not settled)', lambda m: m[0].lower(), summary)}"
        )
    elif rows and (early := _too_early(case)):
        rows = [Evidence(f"{row.what} (not deciding)", f"{row.value}; so far: {row.verdict}") for row in rows]
        answer, summary = OPEN, early
    rows += _beside(case, "made log: " if made else "")
    return _verdict(claim, protocol, test=test, answer=answer, summary=summary, rows=rows)


def _too_early(case: _Case) -> str:
    """Why algorithms that have hardly begun to exploit are not ranked; empty if they have."""
    chance = (case.experiment.log or {}).get("chance_regret")
    lost = float(case.outcome.final("HyLinUCB").mean())
    if chance is None or lost < EARLY * chance:
        return ""
    return (
        f"Too early to tell: after {case.experiment.horizon:,} rounds HyLinUCB has lost {100 * lost / chance:.0f} % of "
        "what choosing evenly among the candidates would lose, so it is still exploring."
    )


def _yahoo_summary(case: _Case, rows: Sequence[Evidence]) -> str:
    names = ("HyLinUCB", *_RIVALS)
    if case.experiment.trials > 1:
        return _summary(rows, "HyLinUCB has the smallest regret, LinUCB's is close and the others' are much larger.")
    final = {name: float(case.outcome.final(name)[0]) for name in names}
    said = ", ".join(f"{name} {_number(final[name])}" for name in sorted(names, key=lambda name: final[name]))
    return f"Not settled: one trial gives no interval (--trials 2 or more would). In that trial: {said}."


def _yahoo_parts(case: _Case) -> list[Evidence]:
    parts = 2 * len(_RIVALS) - 1
    orders = [_order(case, "HyLinUCB", rival, parts=parts) for rival in _RIVALS]
    return orders + [_close(case, rival, parts) for rival in _RIVALS[1:]]


def _close(case: _Case, rival: str, parts: int) -> Evidence:
    """Whether LinUCB's excess over HyLinUCB is less than the share CLOSE of another's."""
    best, near, far = (case.outcome.final(name) for name in ("HyLinUCB", "LinUCB", rival))
    units = case.outcome.independent_units("HyLinUCB")
    margin = (near - best) - CLOSE * (far - best)
    answer, found = locate(margin, units, most=0.0, confidence=case.confidence, parts=parts)
    value = (
        f"{_mean(near - best)} against {_mean(far - best)} more than HyLinUCB; "
        f"{case.said(found, units, name=f'first less {CLOSE:g} of the second')}"
    )
    return Evidence(f"excess of LinUCB < {CLOSE:g} of {rival}'s", value, answer)


def _on_made_log(row: Evidence) -> Evidence:
    """A part as information: what it would say of the made log."""
    return Evidence(f"made log: {row.what} (not deciding)", f"{row.value}; in this made log: {row.verdict}")


def _beside(case: _Case, lead: str) -> list[Evidence]:
    """HyRan proper, and the order among algorithms that are fed as the released code does."""
    pairs = [("HyLinUCB", "HyRan")] + [("HyLinUCB, defect", f"{rival}, defect") for rival in _RIVALS]
    rows = [_order(case, a, b, decides=False) for a, b in pairs if not case.lacking([a, b])]
    return [row._replace(what=f"{lead}{row.what} (not deciding)") for row in rows]


# ------------------------------------------------------------------ all of them


def judge(results: Results, *, confidence: float = 0.95) -> list[Verdict]:
    """The verdict on every claim whose experiment was run: claim by claim, under each protocol."""
    checks.probability("confidence", confidence, "it is a confidence level, e.g. 0.95")
    claims: dict[str, Sequence[Callable[[_Case, str], Verdict]]] = {
        "setting-1": [_claim_1],
        "setting-2": [_claim_2],
        "setting-3": [_claim_3],
        "diversity": [_claim_4, _claim_5, _claim_6],
    }
    verdicts = []
    for protocol in ("released", "written"):
        outcomes = {name: results.outcome(name, protocol) for name in EXPERIMENTS}
        cases = {name: _Case(outcome, confidence) for name, outcome in outcomes.items() if outcome is not None}
        found = [claim(case, protocol) for name, case in cases.items() for claim in claims[name]]
        others = _at_other_lengths(case for name, case in cases.items() if name != "diversity")
        verdicts += [replace(v, evidence=(*v.evidence, *others)) if v.claim == "6" else v for v in found]
        if cases:
            verdicts.append(_claim_7(list(cases.values()), protocol))
        logged = [outcome for name in YAHOO if (outcome := results.outcome(name, protocol)) is not None]
        verdicts += [_claim_8(_Case(outcome, confidence), protocol) for outcome in logged]
    return sorted(verdicts, key=lambda verdict: verdict.claim)  # stable: protocols stay in order
