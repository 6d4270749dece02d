"""Policies to evaluate: fixed ones, as choice probabilities in every round, and policies that learn."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.view import View
from hybandits.features import COLUMNS
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Batch
from hybandits.policies.base import Policy
from hybandits.policies.by_name import make_policy, parse_policy, with_noise
from hybandits.policies.randomised import EpsilonGreedy, Uniform
from hybandits.simulation.loops import compiled_loop, keeps_methods
from hybandits.simulation.play import play_rounds
from hybandits.simulation.rounds import Rounds

SAMPLED_DRAWS = 100
"""Draws that stand for the probabilities of a policy that samples, unless its propensity_draws says how many."""

NEXT_DRAW = 2**40
"""The offset of decision numbers between two draws: beyond the rounds of any log."""

RULE = ("choose", "propensities", "_pick", "_propensities")
"""The methods that say how a policy chooses; a user's subclass that overrides one of them is asked round by round."""

CLICK_NOISE = 0.5
"""A click is 0 or 1, so its standard deviation is at most 1/2."""

ChoiceProbabilities = Callable[[Batch, Rounds], FloatArray]
"""Takes rounds of a log, and returns the probability of every candidate, of shape (rounds, most candidates). Entries
beyond a round's last candidate are 0. A row of zeros says that the policy shows nothing in that round.
`rounds.features(t)` are x and z of the candidates of round t."""


@runtime_checkable
class Target(Protocol):
    """A fixed policy of your own to evaluate. For engines with other processes it must be picklable.

    Examples
    --------
    A policy that shows the first candidate of every list:

    >>> class First:
    ...     def prepared(self, view):
    ...         def probabilities(batch, rounds):
    ...             chosen = np.zeros((batch.rounds, view.sizes[batch.pool].max()))
    ...             chosen[:, 0] = 1.0
    ...             return chosen
    ...
    ...         return probabilities
    >>> isinstance(First(), Target)
    True
    """

    def prepared(self, view: View) -> ChoiceProbabilities:
        """The function that gives the choice probabilities; called once per part of the log."""


@dataclass(frozen=True)
class UniformChoice:
    """Every candidate with the same probability, "uniform" for short."""

    def prepared(self, view: View) -> ChoiceProbabilities:
        return lambda batch, rounds: _even(rounds.counts, rounds.index.shape[1])


@dataclass(frozen=True)
class Always:
    """The same arm in every round, "always:ARM" for short; refused unless the arm is a candidate in every round."""

    arm: Hashable

    def prepared(self, view: View) -> ChoiceProbabilities:
        def choice_probabilities(batch: Batch, rounds: Rounds) -> FloatArray:
            shown = np.array([arm == self.arm for arm in rounds.arms])[rounds.index]
            return np.where(shown & (np.arange(shown.shape[1]) < rounds.counts[:, None]), 1.0, 0.0)

        return choice_probabilities


@dataclass(frozen=True)
class Logged:
    """The log's own policy, "logged" for short: its value is the mean reward, whatever the estimator."""

    def prepared(self, view: View) -> ChoiceProbabilities:
        return lambda batch, rounds: np.zeros(rounds.index.shape)


class _Saved:
    """A copy of a policy, which itself is not changed."""

    def __init__(self, policy: Policy) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"{type(self).__name__} takes a policy, got {checks.short(policy)}: pass e.g. a HyLinUCB")
        self.d1, self.d2 = policy.d1, policy.d2
        self.kind = type(policy).__name__
        self.features: str | None = policy.notes.get("features")
        self._policy = policy.copy()

    def policy(self) -> Policy:
        """A fresh copy of the policy."""
        return self._policy.copy()

    def viewed(self, view: View) -> View:
        """The view with the policy's own feature map, if it has one."""
        if self.features in (None, view.map.name):
            return view
        return View(view.log, features=self.features, arms=view.arms_are)


class Learning(_Saved):
    """A policy that learns as it goes, for replay. A copy plays and learns; the policy itself is not changed."""

    def playing(self, view: View, rejection: Rejection) -> ChoiceProbabilities:
        """The function that plays rounds in order, learns those that are kept, and returns 1 for its choices."""
        policy, own = self.policy(), self.viewed(view)

        def choices(batch: Batch, rounds: Rounds) -> FloatArray:
            kept = rejection.drawn(rounds.first, batch.propensity)
            rewards = np.full(rounds.index.shape, np.nan)
            learned = np.flatnonzero((batch.chosen < rounds.counts) & (kept > 0))
            rewards[learned, batch.chosen[learned]] = batch.reward[learned]
            picks = np.empty(batch.rounds, np.int64)
            play_rounds(policy, _with_map_of(rounds, own, batch), rewards, picks)
            chosen = np.zeros(rounds.index.shape)
            chosen[np.arange(batch.rounds), picks] = 1.0
            return chosen

        return choices


class Frozen(_Saved):
    """A policy as it is now, which learns nothing more. The policy itself is not changed.

    Its features are those that it was fitted with, if it was, and otherwise the view's. It has met all arms before the
    first round. The probabilities of `HyThompson` and `HyIDS` are shares of draws (`propensity_draws` of them, or 100),
    a function of the policy's seed and the round's number: they are unbiased, and their noise is part of the interval.
    """

    def prepared(self, view: View) -> ChoiceProbabilities:
        policy, own = self.policy(), self.viewed(view)
        for start in range(0, len(own.names), 4096):
            names = own.names[start : start + 4096]
            policy.choose(np.zeros((len(names), own.d1)), np.zeros((len(names), own.d2)), names)

        def choice_probabilities(batch: Batch, rounds: Rounds) -> FloatArray:
            return probabilities(policy, _with_map_of(rounds, own, batch))

        return choice_probabilities


def _with_map_of(rounds: Rounds, view: View, batch: Batch) -> Rounds:
    """The rounds of a batch with features by the map of another view of the log."""
    source = rounds.source
    assert source is not None
    most = rounds.index.shape[1]
    x, z = np.empty((0, most, view.d1)), np.empty((0, most, view.d2))
    pair = view.pair(batch) if view.map.pair else None
    return rounds._replace(x=x, z=z, source=source._replace(map=view.map, pair=pair))


def probabilities(policy: Policy, rounds: Rounds) -> FloatArray:
    """The probability (rounds, n) with which the policy, as it is, picks each candidate; 0 beyond a round's last."""
    n, most = rounds.index.shape
    if keeps_methods(policy, EpsilonGreedy, RULE):
        assert isinstance(policy, EpsilonGreedy)
        inside = np.arange(most) < rounds.counts[:, None]
        inner = probabilities(policy.policy, rounds)
        return (1 - policy.epsilon) * inner + inside * (policy.epsilon / rounds.counts[:, None])
    if keeps_methods(policy, Uniform, RULE):
        return _even(rounds.counts, most)
    loop = compiled_loop(policy, standing_for=RULE)
    if loop is not None:
        draws = (getattr(policy, "propensity_draws", None) or SAMPLED_DRAWS) if policy._draws else 1
        nothing, picks = np.full((n, most), np.nan), np.empty(n, np.int64)
        chosen = np.zeros((n, most))
        for draw in range(draws):
            policy.number_decisions(draw * NEXT_DRAW + rounds.first)
            play_rounds(policy, rounds, nothing, picks)
            chosen[np.arange(n), picks] += 1.0
        return chosen / draws
    chosen = np.zeros((n, most))
    for t, count in enumerate(rounds.counts.tolist()):
        arms = [rounds.arms[j] for j in rounds.index[t, :count].tolist()]
        policy.number_decisions(rounds.first + t)
        candidates = policy._candidates(*rounds.features(t), arms, False)
        chosen[t, :count] = policy._propensities(candidates, policy._stream(None))  # noise of its own in every round
    return chosen


def _even(counts: np.ndarray, most: int) -> FloatArray:
    """1 / counts for every candidate, 0 beyond a round's last."""
    return np.where(np.arange(most) < counts[:, None], 1.0 / counts[:, None], 0.0)


def _named_target(name: str, view: View) -> Target | None:
    """The target "uniform", "logged" or "always:ARM"; None for other names."""
    word, colon, arm = name.partition(":")
    if word.lower() == "always" and colon:
        return Always(next((known for known in view.names if str(known) == arm), arm))
    targets: dict[str, Target] = {"uniform": UniformChoice(), "logged": Logged()}
    return targets.get(name.lower())


def target_of(given: Target | Learning | Policy | str, view: View) -> Target | Learning:
    """The target that a value of `targets` stands for; a bare policy is frozen."""
    target: Any = Frozen(given) if isinstance(given, Policy) else given
    if isinstance(given, str) and (target := _named_target(given, view)) is None:
        expected = "'uniform', 'logged', 'always:ARM', a policy, Frozen(policy) or Learning(policy)"
        raise ValueError(f"{given!r} is not a policy: give {expected}")
    if isinstance(target, Always) and target.arm not in view.names:
        raise ValueError(f"the log has no arm {target.arm!r} to show always: its arms are {checks.short(view.names)}")
    if isinstance(target, _Saved):
        own = target.viewed(view)
        if (target.d1, target.d2) != (own.d1, own.d2):
            wrong = f"the {target.kind} has d1 = {target.d1}, d2 = {target.d2}, but the log has d1 = {own.d1}"
            raise ValueError(f"{wrong}, d2 = {own.d2} by the map {own.map.name}: use the policy's own features")
    if not isinstance(target, Learning | Target):
        raise TypeError(f"a policy to evaluate cannot be {checks.short(given)}: give a policy, a Target or its name")
    return target


def policy_for(view: View, spec: str, *, horizon: int, seed: int | None = None) -> Policy:
    """A new policy for the features and arms of a log, such as ``"hylinucb:ridge=2"`` or ``"softmax:Softmax"``."""
    name, settings = parse_policy(spec)
    settings = with_noise(name, settings, CLICK_NOISE)
    return make_policy(name, settings, d1=view.d1, d2=view.d2, arms=len(view.names), horizon=horizon, seed=seed)


def target_for(
    view: View, spec: str, *, saved: Mapping[str, Policy], horizon: int, seed: int | None = None
) -> Target | Learning:
    """The target of a key of `saved`, "uniform", "logged", "always:ARM", or a policy that learns (`policy_for`)."""
    if spec in saved:
        return Frozen(saved[spec])
    return _named_target(spec, view) or Learning(policy_for(view, spec, horizon=horizon, seed=seed))


def note_fit(policy: Policy, view: View, rounds: int) -> None:
    """Note in a policy that it has learned the first `rounds` rounds of a log, and which features it has."""
    policy.notes = {
        "features": view.map.name, "user": view.log.user, "arm": view.log.arm,
        "fitted_to": {"content": view.log.about["content"], "rounds": rounds},
    }  # fmt: skip
    if view.map.pair:
        policy.notes["pair"] = view.log.pair
    if COLUMNS in view.log.about:
        named = {what: each for what, each in view.log.about[COLUMNS].items() if what != "pair" or view.map.pair}
        policy.notes[COLUMNS] = {"map": view.map.name, **named}


def common_features(policies: Mapping[str, Policy]) -> str | None:
    """The feature map that all these policies were fitted with; None if they differ or it is not noted."""
    maps = {policy.notes["features"] for policy in policies.values() if "features" in policy.notes}
    return maps.pop() if len(maps) == 1 else None


def check_fitted(policies: Mapping[str, Policy], view: View) -> None:
    """Raise if a policy was fitted to other columns, or to ids of another type, than the log has."""
    for name, policy in policies.items():
        for what, columns in (("user", view.log.user), ("arm", view.log.arm), ("pair", view.log.pair)):
            fitted = policy.notes.get(what, columns)
            if fitted != columns:
                differing = [column for column in (*fitted, *columns) if (column in fitted) != (column in columns)]
                words = f"differing: {', '.join(differing[:3])}" if differing else "in another order"
                raise ValueError(f"{name} was fitted to a log with other {what} features ({words}): use such a log")
        known = set(policy.arms)
        twins = [arm for arm in known if checks.twin_of(arm) in view.names]
        if twins and not known & set(view.names):
            wrong = f"{name} knows the arms of the log as {type(twins[0]).__name__} ({twins[0]!r}), the log has"
            raise ValueError(f"{wrong} {checks.twin_of(twins[0])!r}: fit it to a log with ids of the same type")


def rounds_learned(policy: Policy, view: View) -> int:
    """The number of first rounds of this log that the policy was fitted to; 0 if it was fitted to another log."""
    fitted_to = policy.notes.get("fitted_to", {})
    return int(fitted_to.get("rounds", 0)) if fitted_to.get("content") == view.log.about["content"] else 0
