"""Estimators of a policy's value: one record each, with its terms, its range, and when it is valid."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hybandits.evaluation.parts import ROUNDING, BlockLayout, Survey
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.targets import Learning, Logged, Target
from hybandits.foundation.checks import FloatArray

GUESSED, UNSEEN = 0.001, 0.05
"""Shares of a policy's choices on arms never shown, above which dm has no interval, and weights are refused."""

FEW, SCARCE = 5, 30
"""Effective rounds below which weighted estimates have no interval, and below which there is a warning."""


class Terms(NamedTuple):
    """Terms of a policy in some rounds, one entry per round, from which estimators are made.

    Let pi(a) be the probability with which the policy shows arm a, p the propensity, and q(a) the mean reward that a
    model predicts for arm a. A policy that learns has pi = 1 for its choice, having learned the rounds kept before.

    - `reward`: r, the reward of what was shown.
    - `match`: pi(shown).
    - `weight`: pi(shown) / p, at most `clip`; 0 where the propensity is missing.
    - `kept`: k = pi(shown) times the chance to be kept in replay (see `rejection`); 0 or 1 for a policy that learns.
    - `direct`: sum_a pi(a) q(a).
    - `within`, `shown`: the same and q(shown), with q kept within the range of the rewards.
    """

    reward: FloatArray
    match: FloatArray
    weight: FloatArray
    kept: FloatArray
    direct: FloatArray
    within: FloatArray
    shown: FloatArray


class Tally(NamedTuple):
    """The largest weight, and counts over all rounds."""

    largest: float = 0.0
    silent: float = 0.0  # rounds in which the policy shows nothing
    certain: float = 0.0  # its probability of other arms where the log's arm was certain
    clipped: float = 0.0  # weights that were clipped
    squares: float = 0.0  # the sum of k^2

    def plus(self, other: Tally) -> Tally:
        return Tally(max(self[0], other[0]), *(a + b for a, b in zip(self[1:], other[1:], strict=True)))


SUMS = ("rounds", "weight", "weight squared", "match", "match reward", "kept")
"""The first columns of `BlockSums.sums`. Three per estimator follow: numerator A, denominator B, and A^2."""


TermsOf = Callable[[Terms], tuple[FloatArray, FloatArray]]
"""Makes the numerator and the denominator of every round."""


def columns_of(functions: Sequence[TermsOf], terms: Terms) -> FloatArray:
    """The columns (rounds, columns) of `BlockSums.sums`."""
    w = terms.weight
    columns = [np.ones(len(w)), w, w * w, terms.match, terms.match * terms.reward, terms.kept]
    for function in functions:
        a, b = function(terms)
        columns += [a, b, a * a]
    return np.column_stack(columns)


@dataclass
class BlockSums:
    """Sums over consecutive blocks of rounds for one policy.

    `sums` has the columns of `columns_of` by block and fold; `mass` and `eligible`, by arm, the sum of the policy's
    probabilities and the rounds in which they are not 0; `features` sums of pi (u, p, 1) by fold and group, for the
    influence of the model's fit, or nothing where that is not needed.
    """

    sums: FloatArray
    mass: FloatArray
    eligible: np.ndarray
    features: FloatArray
    tally: Tally = field(default_factory=Tally)

    @classmethod
    def empty(
        cls, blocks: int, folds: int, arms: int, estimators: int, features: tuple[int, int] = (0, 0)
    ) -> BlockSums:
        """The sums of no rounds; `features` are the groups and the length of (u, p, 1)."""
        sums = np.zeros((blocks, folds, len(SUMS) + 3 * estimators))
        return cls(sums, np.zeros(arms), np.zeros(arms, np.int64), np.zeros((folds, *features)))

    def add(self, blocks: slice, other: BlockSums) -> None:
        """Add the sums of other rounds, which are in these blocks."""
        self.sums[blocks] += other.sums
        self.mass += other.mass
        self.eligible += other.eligible
        self.features = self.features + other.features if self.features.size else other.features
        self.tally = self.tally.plus(other.tally)


@dataclass
class LogSupport:
    """A policy and the sums that a pass over the log has made for it."""

    name: str
    target: Target | Learning
    layout: BlockLayout
    estimators: tuple[Estimator, ...]
    arms: Sequence[object]
    """The names of the arms."""
    survey: Survey = field(init=False)
    data: BlockSums = field(init=False)
    influence: FloatArray = field(init=False)
    """By block, what the errors of the model's fit add to dm; see `passes`."""
    rejection: Rejection = field(default_factory=Rejection)
    fitted: bool = True
    """False if the rounds were too few to fit a model for every fold."""

    def __post_init__(self) -> None:
        self.logged, self.learns = isinstance(self.target, Logged), isinstance(self.target, Learning)
        self.kind = "learning" if self.learns else "fixed"
        self.rounds = self.layout.rounds

    def blocks(self, name: str) -> FloatArray:
        """One of the SUMS, by block."""
        return np.asarray(self.data.sums[:, :, SUMS.index(name)].sum(axis=1))

    def total(self, name: str) -> float:
        return float(self.blocks(name).sum())

    def columns(self, estimator: Estimator) -> list[FloatArray]:
        """A, B and A^2, each (blocks, folds)."""
        first = len(SUMS) + 3 * self.estimators.index(estimator)
        return [self.data.sums[:, :, first + i] for i in range(3)]

    def ratio(self, estimator: Estimator) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator by block, with the influence of the model's fit, which sums to 0."""
        upper, lower = (column.sum(axis=1) for column in self.columns(estimator)[:2])
        if estimator.fitted_model:
            upper = upper + self.influence - lower * (self.influence.sum() / lower.sum())
        return upper, lower

    @property
    def effective_rounds(self) -> float:
        """(sum w)^2 / sum w^2, the number of rounds of equal weight that would be as informative."""
        w, squares = self.total("weight"), self.total("weight squared")
        return w * w / squares if squares else 0.0

    @property
    def replayed_rounds(self) -> float:
        """(sum k)^2 / sum k^2: the same for replay; of a policy that learns, the number of rounds kept."""
        k, squares = self.total("kept"), self.data.tally.squares
        return k * k / squares if squares else 0.0

    @cached_property
    def unseen(self) -> np.ndarray:
        """Arms that the policy shows and the log never showed."""
        return np.flatnonzero((self.survey.shown == 0) & (self.data.mass > 0))

    @property
    def unseen_share(self) -> float:
        """The share of the policy's choices on unseen arms."""
        return float(self.data.mass[self.unseen].sum()) / self.rounds

    @property
    def overlaps(self) -> bool:
        """False if too many of the policy's choices are on unseen arms."""
        # An arm with the smallest propensity would go unseen with a chance below exp(-eligible rounds * smallest).
        expected = self.data.eligible[self.unseen] * min(self.survey.smallest, 1.0)
        hopeless = self.survey.smallest < math.inf and bool((expected > math.log(1000)).any())
        return not hopeless and self.unseen_share <= UNSEEN

    @property
    def unseen_words(self) -> str:
        arms = self.unseen[np.argsort(-self.data.mass[self.unseen])][:3]
        examples = ", ".join(str(self.arms[a]) for a in arms)
        return f"{self.unseen_share:.2%} of its choices are arms that were never shown ({examples})"

    @property
    def weight_words(self) -> str:
        share = self.data.tally.largest / self.total("weight")
        return f"weights are worth {self.effective_rounds:.1f} rounds, and a single round has {share:.0%} of the weight"

    @property
    def kept_words(self) -> str:
        matches, worth = f"{self.total('match'):,.0f} of the {self.rounds:,} rounds match", self.replayed_rounds
        if self.learns:
            return f"{matches} and {worth:,.0f} are kept, with keep = {self.rejection.keep:.3g}"
        return f"{matches} in expectation, and weighted they are worth {worth:,.0f}"

    @cached_property
    def mean_weight(self) -> tuple[float, float]:
        """The mean weight, which should be 1, and its standard error."""
        weights, rounds = self.blocks("weight"), self.blocks("rounds")
        mean = weights.sum() / self.rounds
        return float(mean), math.sqrt(float(((weights - mean * rounds) ** 2).sum())) / self.rounds

    @property
    def exact(self) -> bool:
        """True if replay keeps all choices of the policy alike."""
        return not self.rejection.rejects or self.rejection.keep <= self.survey.smallest * (1 + ROUNDING)


@dataclass(frozen=True)
class Rule:
    """A condition on a policy, and a message about its `LogSupport` {p} and the {value} of the condition."""

    condition: Callable[[LogSupport], Any]
    message: str

    def reason(self, policy: LogSupport) -> str | None:
        """The message, if the condition holds; None for the log's own policy."""
        if policy.logged or not (value := self.condition(policy)):
            return None
        return self.message.format(p=policy, value=value)


def first_reason(rules: Iterable[Rule], policy: LogSupport) -> str | None:
    """The message of the first rule that applies."""
    return next((reason for rule in rules if (reason := rule.reason(policy)) is not None), None)


@dataclass(frozen=True, kw_only=True)
class Estimator:
    """An estimator of a policy's mean reward per round: the ratio of two sums, from which intervals follow.

    - `terms` makes the numerator and the denominator of every round; a function of a module, so that workers can import
      it.
    - `bounds` has the range of a numerator, from the lowest and the highest reward and the largest weight. None if the
      estimate is not a mean of bounded terms: then it has no confidence sequence.
    - `weighted`: weighs rounds by inverse propensities.
    - `modelled`: needs a model of the rewards.
    - `fitted_model`: estimates what the model says, so that its interval must contain the error of the fit.
    - `replayed`: is an average over the rounds that replay keeps.
    - `usual_for`: "fixed" and "learning", the policies for which it is computed by default.
    - `refused`, `no_interval`, `no_sequence`: reasons for no estimate, no bootstrap interval, no confidence sequence,
      beside those of all estimators (lists without a candidate, and tilted rounds).
    """

    name: str
    terms: TermsOf
    bounds: Callable[[float, float, float], tuple[float, float]] | None = None
    weighted: bool = False
    modelled: bool = False
    fitted_model: bool = False
    replayed: bool = False
    usual_for: tuple[str, ...] = ("fixed", "learning")
    refused: tuple[Rule, ...] = ()
    no_interval: tuple[Rule, ...] = ()
    no_sequence: tuple[Rule, ...] = ()

    def refusal(self, policy: LogSupport) -> str | None:
        """The reason why there is no estimate."""
        return first_reason((NO_CANDIDATE, *self.refused), policy)


NO_CANDIDATE = Rule(
    lambda p: p.data.tally.silent,
    "It has no candidate to show in {value:,.0f} of {p.rounds:,} rounds, so it has no value on this log.",
)
PROPENSITIES = (
    Rule(
        lambda p: p.survey.missing,
        "Propensities are missing in {value:,} of {p.rounds:,} rounds. Only dm needs no propensities.",
    ),
    Rule(
        lambda p: p.survey.wrong,
        "Propensities are not in (0, 1] in {value:,} of {p.rounds:,} rounds. Correct the log.",
    ),
    Rule(
        lambda p: p.data.tally.certain,
        "There is no overlap: in {value:,.0f} of {p.rounds:,} rounds the log's arm was certain (propensity 1), and "
        "this policy shows others. Only dm needs no overlap.",
    ),
)
NO_OVERLAP = "There is no overlap: {p.unseen_words}. Only dm gives an estimate: the model guesses their rewards."
OVERLAP = Rule(lambda p: not p.overlaps, NO_OVERLAP)
# A policy that learns on a uniform log learns, and is judged by, the rounds that match.
OVERLAP_IN_REPLAY = Rule(lambda p: not p.overlaps and (p.rejection.rejects or not p.learns), NO_OVERLAP)
MATCHED = Rule(
    lambda p: not p.total("match"),
    "In none of the {p.rounds:,} rounds would the policy have shown what was shown. Give more rounds.",
)
WEIGHTS = (*PROPENSITIES, OVERLAP, MATCHED)
"""Reasons why rounds cannot be weighted by inverse propensities."""

KEPT = Rule(
    lambda p: p.rejection.rejects and not p.replayed_rounds,
    "{p.kept_words}. Give more rounds, or a larger keep, which gives a rough number.",
)
FITTED = Rule(
    lambda p: not p.fitted,
    "{p.rounds:,} rounds are too few to fit a model for each of {p.layout.folds} folds. Give more.",
)
FIXED = Rule(
    lambda p: p.learns,
    "The model is fitted to all rounds, so it cannot estimate a policy that learns on the way. Use replay, "
    "snips or dr, or freeze the policy with Frozen (on the command line: save it, and evaluate the file).",
)
TILTED = Rule(
    lambda p: p.learns and not p.exact,
    "No interval: the policy learned from tilted rounds (see the notes), so the error of its value is unknown.",
)
FEW_EFFECTIVE = Rule(
    lambda p: p.effective_rounds < FEW,
    "No interval: its {p.weight_words}. Only dm needs no weights.",
)
FEW_KEPT = Rule(
    lambda p: p.rejection.rejects and p.replayed_rounds < FEW,
    "No interval: {p.kept_words}. Give more rounds.",
)
GUESSES = Rule(
    lambda p: p.unseen_share > GUESSED,
    "No interval: {p.unseen_words}, and the model can only guess their rewards.",
)
WEIGHED = Rule(
    lambda p: not p.learns, "No interval: replay weighs the rounds of a fixed policy. Use ips, or interval='bootstrap'."
)
ROUGH = Rule(
    lambda p: p.learns and not p.exact and p.rounds * p.survey.smallest,
    "A rough number. keep = {p.rejection.keep:.3g} is above the smallest propensity, {p.survey.smallest:.3g}, so the "
    "policy learned from tilted rounds and may have become another one. Exact: keep={p.survey.smallest:.4g}, which "
    "leaves about {value:,.0f} rounds to learn from.",
)
CLIPPED = Rule(
    lambda p: p.data.tally.clipped, "{value:,.0f} weights were clipped, so estimates that use them are biased."
)
NEVER_SHOWN = Rule(lambda p: p.unseen.size, "{p.unseen_words}.")
SCARCE_WEIGHTS = Rule(
    lambda p: p.effective_rounds < SCARCE,
    "Its {p.weight_words}. Do not rely on estimates that use weights.",
)
SCARCE_MATCHES = Rule(
    lambda p: p.rejection.rejects and p.replayed_rounds < SCARCE, "Only {p.kept_words}. Do not rely on replay."
)
WRONG_WEIGHTS = Rule(
    lambda p: not p.data.tally.clipped and abs(p.mean_weight[0] - 1) > max(4 * p.mean_weight[1], ROUNDING),
    "Its weights average {p.mean_weight[0]:.3f}, not 1, with a standard error of {p.mean_weight[1]:.3f}: the "
    "propensities are wrong, or the log never shows what the policy would.",
)
UNEQUAL_LISTS = Rule(
    lambda p: not p.rejection.rejects and p.survey.longest > p.survey.shortest,
    "Lists have {p.survey.shortest} to {p.survey.longest} candidates. Replay matches short lists more often, so they "
    "count more. With keep = 1 / {p.survey.longest}, all lists count alike, but fewer rounds are kept.",
)


def warnings_of(policy: LogSupport) -> tuple[str, ...]:
    """Warnings about all estimates of a policy."""
    if policy.data.tally.silent:
        return ()
    rules = [NEVER_SHOWN, CLIPPED]
    weighted = any(each.weighted for each in policy.estimators)
    if first_reason(WEIGHTS, policy) is None:
        rules += [SCARCE_WEIGHTS] * weighted + [WRONG_WEIGHTS] * (weighted or policy.rejection.rejects)
    if any(each.replayed and each.refusal(policy) is None for each in policy.estimators):
        rules += [SCARCE_MATCHES, UNEQUAL_LISTS]
    return tuple(reason for rule in rules if (reason := rule.reason(policy)) is not None)


def _replay(t: Terms) -> tuple[FloatArray, FloatArray]:
    return t.kept * t.reward, t.kept


def _ips(t: Terms) -> tuple[FloatArray, FloatArray]:
    return t.weight * t.reward, np.ones(len(t.reward))


def _snips(t: Terms) -> tuple[FloatArray, FloatArray]:
    return t.weight * t.reward, t.weight


def _dm(t: Terms) -> tuple[FloatArray, FloatArray]:
    return t.direct, np.ones(len(t.reward))


def _dr(t: Terms) -> tuple[FloatArray, FloatArray]:
    return t.within + t.weight * (t.reward - t.shown), np.ones(len(t.reward))


ESTIMATORS: dict[str, Estimator] = {
    each.name: each
    for each in (
        Estimator(
            name="replay",
            terms=_replay,
            bounds=lambda low, high, largest: (low, high),
            replayed=True,
            usual_for=("learning",),
            refused=(*PROPENSITIES, OVERLAP_IN_REPLAY, MATCHED, KEPT),
            no_interval=(FEW_KEPT,),
            no_sequence=(WEIGHED,),
        ),
        Estimator(
            name="ips",
            terms=_ips,
            # A weight may be 0, so 0 is always among the values.
            bounds=lambda low, high, largest: (min(low, low * largest, 0.0), max(high, high * largest, 0.0)),
            weighted=True,
            usual_for=("fixed",),
            refused=WEIGHTS,
            no_interval=(FEW_EFFECTIVE,),
        ),
        Estimator(name="snips", terms=_snips, weighted=True, refused=WEIGHTS, no_interval=(FEW_EFFECTIVE,)),
        Estimator(
            name="dm",
            terms=_dm,
            modelled=True,
            fitted_model=True,
            usual_for=("fixed",),
            refused=(FIXED, FITTED),
            no_interval=(GUESSES,),
        ),
        Estimator(
            name="dr",
            terms=_dr,
            bounds=lambda low, high, largest: (low - largest * (high - low), high + largest * (high - low)),
            weighted=True,
            modelled=True,
            usual_for=("fixed",),
            refused=(FITTED, *WEIGHTS),
            no_interval=(FEW_EFFECTIVE,),
        ),
    )
}
"""The estimators by name."""


def records_of(estimators: Sequence[str | Estimator]) -> tuple[Estimator, ...]:
    records = [ESTIMATORS.get(each) if isinstance(each, str) else each for each in estimators]
    known = tuple(each for each in records if each is not None)
    if not known or len({each.name for each in known}) < len(records):
        raise ValueError(f"estimators must be some of {', '.join(ESTIMATORS)}, each once, got {list(estimators)!r}")
    return known
