"""LearnedRidge: the hybrid estimator that learns its own settings (noise, scales, what arms have in common)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import ArmTable, Slots, grown
from hybandits.estimators.inputs import batch, not_finite
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.ridge import HybridRidge, Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow, empirical_bayes, evidence

NEW_ARM = 0
"""The slot whose block is that of an arm before any data."""

CONVERGED = 1e-12
"""The relative change of a scale in one step that ends `refresh`; what is left to go is then well below 1e-10."""
MOST_STEPS = 500
REMEMBERED = 6
"""Steps that the acceleration of `fixed_point` looks back on."""
ROUNDING = 1e-10
"""The share of a feature's mean square by which its variance, as a difference of sums, may be off."""
LONGEST = 2.0
"""How far beyond a step the acceleration may go, in natural logarithms."""


class LearnedSettings(NamedTuple):
    """What a policy has learned about noise and scales.

    Attributes
    ----------
    noise : float
        The standard deviation of a reward around its mean.
    shared_scale : ndarray of shape (d1,)
        The prior standard deviation of each shared parameter. NaN for a feature of which nothing is known of its own,
        because it never changed.
    own_scale : ndarray of shape (d2,)
        How much each of the arms' own parameters varies from arm to arm, as a standard deviation.
    common_mean : ndarray of shape (d2,)
        What the arms' own parameters have in common: where a new arm starts.
    effective_parameters : float
        How many parameters the rewards determine; the others are held by the prior.
    evidence : float
        The log of the density that the model, at these settings, gives to all rewards learned.
    """

    noise: float
    shared_scale: FloatArray
    own_scale: FloatArray
    common_mean: FloatArray
    effective_parameters: float
    evidence: float


class Moments(NamedTuple):
    """What rows that stand for many rewards cannot say about these.

    Attributes
    ----------
    seen : int array of shape (d1 + d2,)
        In how many of the rows that they stand for each feature of x, then of z, was not 0.
    sums : array of shape (d1 + d2,)
        The sum of each feature of x, then of z, over these rows.
    mean, spread : float
        The mean of the rewards, and the sum of their squared deviations from it.
    """

    seen: Slots
    sums: FloatArray
    mean: float
    spread: float


def fixed_point(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """Where `step` leads when it is repeated, to CONVERGED, by Anderson's acceleration.

    The next point is the combination of the last steps whose changes, combined alike, cancel best. Where that has led
    further away, the steps before are left out of account.
    """
    at = start
    points: list[FloatArray] = []
    changes: list[FloatArray] = []
    size = np.inf
    for _ in range(MOST_STEPS):
        after = step(at)
        before, size = size, float(np.abs(after - at).max(initial=0.0))
        if size <= CONVERGED:
            return after
        if size > 2 * before:
            points.clear()
            changes.clear()
        points.append(after)
        changes.append(after - at)
        del points[:-REMEMBERED], changes[:-REMEMBERED]
        at = after
        if len(points) > 1:
            differences = np.diff(changes, axis=0).T
            back = np.linalg.lstsq(differences, changes[-1], rcond=1e-10)[0]
            ahead = np.diff(points, axis=0).T @ back
            at = after - np.clip(ahead, -LONGEST, LONGEST)
    return at


class LearnedRidge(HybridRidge):
    """The hybrid estimator with noise, scales and a common mean of the arms learned from the rewards.

    It keeps the data as factors without a ridge and, beside them, the factors that `HybridRidge` scores with, which
    include the prior. Now and then, at fixed numbers of rows, the settings are estimated anew and the second kind is
    made from the first; a refresh that would take long is spread over the rows that follow.
    See `kernels/empirical_bayes.py`.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    noise, scale : float, optional
        Hold the standard deviation of the noise, or the prior standard deviation of every parameter, instead of
        learning it. With a scale that is held, arms have no mean in common.
    memory : float, optional
        A row of age t, counted in rows, has the weight exp(-t / memory). By default nothing is forgotten, nor with an
        infinite memory, which may be made finite later.
    """

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        scale: float | None = None,
        memory: float | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, ridge=1.0)
        self.noise_held, self.scale_held, self.memory = noise, scale, memory
        d1, d2 = self.d1, self.d2
        self.arm_data: FloatArray = np.zeros(0)
        self.arm_rhs: FloatArray = np.zeros(0)
        self.shared_data: FloatArray = np.zeros(arrow.factor_size(d1, 0))
        self.shared_rhs: FloatArray = np.zeros(d1)
        self.released_data: FloatArray = np.zeros(arrow.factor_size(d1 + d2, 0))
        self.released_rhs: FloatArray = np.zeros(d1 + d2)
        self.next_factor: FloatArray = np.zeros(arrow.factor_size(d1, 0))
        self.next_rhs: FloatArray = np.zeros(d1)
        self.numbers: FloatArray = np.zeros(evidence.size_of_numbers(d1, d2))
        self.seen: FloatArray = np.zeros(d1 + d2)
        self.varied: Slots = np.zeros(d1 + d2, np.int64)
        self.unknown: Slots = np.ones(d1 + d2, np.int64)
        self.state: Slots = np.zeros(empirical_bayes.STATE, np.int64)
        self.state[empirical_bayes.NEXT] = 1
        self.state[empirical_bayes.UNKNOWN] = d1 + d2
        self.order: Slots = np.zeros(0, np.int64)
        self.place: Slots = np.zeros(0, np.int64)
        self.rank: Slots = np.zeros(0, np.int64)
        self.arm_clock: FloatArray = np.zeros(0)
        self.arm_kept: FloatArray = np.zeros(0)
        if memory is not None:
            self.numbers[evidence.RATE] = 1.0 / memory
        if noise is not None:
            self.numbers[evidence.SIGMA2] = noise * noise
        if scale is not None:
            self.numbers[evidence.S1] = scale * scale
            self.numbers[evidence.HEAD : evidence.HEAD + d2] = scale * scale
        self._grow(1)
        self._clear(NEW_ARM)
        self._used = 1
        a, b, m = evidence.played_ridges(self.numbers, d1, d2)
        a[:], b[:] = evidence.OUT_OF_PLAY, evidence.OUT_OF_PLAY
        triangle = evidence.prior_triangle(self.numbers, d1, d2)
        evidence.set_prior_triangle(b, np.zeros((d2, d2)), triangle)
        empirical_bayes.prior_block(NEW_ARM, d1, d2, triangle, m, self.arm_factor, self.arm_score)
        arrow.reset_block(self.shared_factor, 0, self.shared_score, 0, d1, 0, evidence.OUT_OF_PLAY)
        if all(self.held):
            self.state[empirical_bayes.TOLD] = self.state[empirical_bayes.REFRESHES] = 1
            self._sweep()

    def __repr__(self) -> str:
        return (
            f"LearnedRidge(d1={self.d1}, d2={self.d2}): {self.known} arms known, "
            f"{int(self.state[empirical_bayes.COUNT])} have learned, {self.rounds} rows"
        )

    # -------------------------------------------------------------- what has been learned

    @property
    def tuned(self) -> bool:
        """Whether there are learned settings to play with: a reward that is not 0 has been worked into all arms."""
        return bool(self.state[empirical_bayes.SWEPT])

    @property
    def noise(self) -> float:
        """The standard deviation of the noise that is played with; 0 while nothing is known of it."""
        return float(np.sqrt(self.numbers[evidence.PLAYED]))

    @property
    def common_mean(self) -> FloatArray:
        """The prior mean of an arm's own parameters."""
        mean: FloatArray = evidence.played_ridges(self.numbers, self.d1, self.d2)[2]
        return mean

    def learned_settings(self) -> LearnedSettings | None:
        """The settings that are played with, with the evidence for them; None while there are none."""
        if not self.tuned:
            return None
        numbers = self._explained()
        a, b, mean = evidence.played_ridges(self.numbers, self.d1, self.d2)
        return LearnedSettings(
            noise=self.noise,
            shared_scale=self._scale(a),
            own_scale=self._scale(b),
            common_mean=mean.copy(),
            effective_parameters=float(numbers[evidence.GAMMA]),
            evidence=float(numbers[evidence.EVIDENCE]),
        )

    def _scale(self, ridges: FloatArray) -> FloatArray:
        """sigma / sqrt(ridge), NaN for a feature that is not in play."""
        scale: FloatArray = np.where(ridges == evidence.OUT_OF_PLAY, np.nan, self.noise / np.sqrt(ridges))
        return scale

    def _step(self, arrays: empirical_bayes.Arrays) -> None:
        """One fixed-point step over all arms; their data are up to date."""
        evidence.step(
            arrays.order[: self.state[empirical_bayes.COUNT]], self.d1, self.d2, arrays.arm_data, arrays.arm_rhs,
            arrays.shared_data, arrays.shared_rhs, arrays.released_data, arrays.released_rhs, arrays.numbers,
            arrays.seen, arrays.varied, float(arrays.numbers[evidence.KEPT]), 0.0, self.held,
        )  # fmt: skip

    def _explained(self, sigma2: float | None = None) -> FloatArray:
        """The numbers with the evidence for the present settings, or for another sigma^2; nothing changes."""
        arrays = self.arrays._replace(numbers=self.numbers.copy())
        if self.numbers[evidence.CLOCK] > 0.0:
            dated = ("arm_data", "arm_rhs", "arm_clock", "arm_kept")
            arrays = arrays._replace(**{name: getattr(self, name).copy() for name in dated})
            empirical_bayes.catch_up_all(self.d1, self.d2, arrays)
        if sigma2 is not None:
            arrays.numbers[evidence.SIGMA2] = sigma2
        self._step(arrays)
        return arrays.numbers  # type: ignore[no-any-return]

    def evidence_for(self, sigma2: float) -> float:
        """The log evidence for the present scales at this sigma^2."""
        return float(self._explained(sigma2)[evidence.EVIDENCE])

    def let_pass(self, rows: float) -> None:
        """Age everything that has been learned by so many rows."""
        if self.numbers[evidence.RATE] > 0.0:
            empirical_bayes.let_pass(rows, self.d1, self.d2, self.arrays)

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether the noise and the scale are held."""
        return self.noise_held is not None, self.scale_held is not None

    def refresh(self) -> None:
        """Estimate the settings to 1e-10 from all that has been learned, in whatever order, and apply them.

        It starts from the centres, which depend on the data alone, and looks at all arms. It takes as long as that
        takes: some ten to forty steps.
        """
        if self.numbers[evidence.SQUARES] == 0.0 and not all(self.held):
            return
        empirical_bayes.catch_up_all(self.d1, self.d2, self.arrays)
        numbers = self.numbers.copy()
        learned = [] if self.noise_held is not None else [evidence.SIGMA2]
        if self.scale_held is None:
            learned += [evidence.S1, evidence.SM, *range(evidence.HEAD, evidence.HEAD + self.d2)]
        numbers[learned] = 0.0  # whatever is 0 begins at its centre
        arrays = self.arrays._replace(numbers=numbers)
        self._step(arrays)
        scales = np.array([k for k in learned if numbers[k] > 0.0], np.int64)
        unit = 2.0 ** np.frexp(numbers[evidence.SQUARES])[1]  # a power of two, so that units do not matter to the bit

        def step(logarithms: FloatArray) -> FloatArray:
            numbers[scales] = unit * np.exp(logarithms)
            self._step(arrays)
            after: FloatArray = np.log(numbers[scales] / unit)
            return after

        numbers[scales] = unit * np.exp(fixed_point(step, np.log(numbers[scales] / unit)))
        self.numbers = numbers
        self.state[empirical_bayes.REFRESHES] += 1
        self.state[empirical_bayes.DUE] = 0
        self._sweep()

    def _sweep(self) -> None:
        """Make the factors to play with from the data, at the present settings if there are any."""
        self.state[empirical_bayes.PHASE] = 1
        empirical_bayes.start_sweep(self.d1, self.d2, self.arrays, self.held)
        while self.state[empirical_bayes.PHASE]:
            empirical_bayes.advance(self.d1, self.d2, self.arrays, self.held, empirical_bayes.BUDGET)

    @property
    def arrays(self) -> empirical_bayes.Arrays:
        """Every array, as the kernels of `tuning` take them."""
        return empirical_bayes.Arrays(
            self.arm_data, self.arm_rhs, self.shared_data, self.shared_rhs, self.released_data, self.released_rhs,
            self.numbers, self.seen, self.varied, self.unknown, self.state, self.order, self.place, self.rank,
            self.pulls, self.arm_factor, self.arm_score, self.shared_factor, self.shared_score, self.next_factor,
            self.next_rhs, self.arm_clock, self.arm_kept,
        )  # fmt: skip

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, spare room included (not of the ids)."""
        return sum(array.nbytes for array in self.arrays)

    # -------------------------------------------------------------- blocks

    def _reserve(self, capacity: int) -> None:
        data = grown(self.arm_data, capacity * arrow.factor_size(self.d2, self.d1))
        rhs = grown(self.arm_rhs, capacity * self.d2)
        order, place, rank = (grown(array, capacity) for array in (self.order, self.place, self.rank))
        dates = [grown(array, 0 if self.memory is None else capacity) for array in (self.arm_clock, self.arm_kept)]
        super()._reserve(capacity)
        self.arm_data, self.arm_rhs, self.order, self.place, self.rank = data, rhs, order, place, rank
        self.arm_clock, self.arm_kept = dates

    def _clear(self, slot: int) -> None:
        f = arrow.factor_size(self.d2, self.d1)
        self.arm_data[slot * f : (slot + 1) * f] = 0.0
        self.arm_rhs[slot * self.d2 : (slot + 1) * self.d2] = 0.0
        self.place[slot], self.rank[slot] = -1, 0
        self.arm_clock[slot : slot + 1] = self.arm_kept[slot : slot + 1] = 0.0

    # -------------------------------------------------------------- learning and reading

    def _learn_checked(self, slot: int, x: FloatArray, z: FloatArray, reward: float) -> None:
        if not empirical_bayes.learn_tuned(slot, x, z, reward, self.arrays, self.held):
            raise not_finite(x, z, reward)

    def _learn_rows(self, slots: Slots, x: FloatArray, z: FloatArray, rewards: FloatArray) -> None:
        empirical_bayes.learn_rows_tuned(slots, x, z, rewards, self.arrays, self.held)

    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        pulls: Mapping[Hashable, int],
        moments: Moments | None,
    ) -> None:
        """Learn rows that stand for many rewards: the data exactly, then re-estimate the settings.

        Unlike the rows of `learn_batch` they must include what no feature explains, as rows of zero features. With a
        finite memory they weigh as much as rows in random order would on average, because their order is not known.
        """
        self.merge(self.summary(arms, x, z, rewards, pulls, moments))

    def summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        pulls: Mapping[Hashable, int],
        moments: Moments | None,
    ) -> LearnedRidge:
        """An estimator of this kind that has learned nothing but what `learn_summary` is given."""
        if moments is None:
            raise ValueError(
                "moments is None: an estimator that learns its settings cannot learn rows that stand for many without "
                "their moments; pass moments=Moments(seen, sums, mean, spread), or use learn_batch on the rows"
            )
        x, z = self.matrices(x, z)
        ids, values = batch(arms, rewards, x.shape[0])
        if not (arrow.within_limit(x) and arrow.within_limit(z) and arrow.within_limit(values)):
            raise not_finite(x, z, values)
        rows = sum(pulls.values())
        seen = np.asarray(moments.seen)
        if seen.shape != self.seen.shape or seen.dtype.kind != "i" or (seen < 0).any() or (seen > rows).any():
            raise ValueError(
                f"moments.seen is {checks.short(seen.tolist())}: give {len(self.seen)} whole numbers between 0 and "
                f"{rows}, the number of rewards that the rows stand for"
            )
        sums = np.asarray(moments.sums, float)
        if sums.shape != self.seen.shape or not np.isfinite(sums).all():
            raise ValueError(
                f"moments.sums is {checks.short(sums.tolist())}: give {len(self.seen)} finite numbers, the sum of "
                "each feature of x, then of z"
            )
        if not np.isfinite(moments.mean) or not 0.0 <= moments.spread < np.inf:
            raise ValueError(
                f"moments.mean is {moments.mean!r} and moments.spread is {moments.spread!r}: give a finite mean and "
                "a sum of squared deviations that is not negative"
            )
        if rows == 0:
            raise ValueError("pulls names no reward that the rows stand for: give the number of rewards of each arm")
        other = LearnedRidge(
            d1=self.d1, d2=self.d2, noise=self.noise_held, scale=self.scale_held, memory=self.memory
        )  # fmt: skip
        for arm in dict.fromkeys(ids):
            slot = other._new_slot(arm)
            other.pulls[slot] = pulls.get(arm, 0)
            other.arm_kept[slot : slot + 1] = pulls.get(arm, 0)
        empirical_bayes.fold_rows(other.lookup(ids), x, z, values, other.arrays)
        other.numbers[evidence.MEAN], other.numbers[evidence.SPREAD] = moments.mean, moments.spread
        other.numbers[evidence.SQUARES] = values @ values
        squares = slice(evidence.HEAD + 2 * self.d2, evidence.HEAD + 3 * self.d2 + self.d1)
        other.numbers[squares] = np.concatenate([(x * x).sum(axis=0), (z * z).sum(axis=0)])
        other.seen[:] = seen
        squared = rows * other.numbers[squares]
        other.varied[:] = squared - sums**2 > ROUNDING * squared
        evidence.usual_features(other.numbers, self.d1, self.d2)[:] = sums / rows
        other.state[empirical_bayes.ROWS] = other.rounds = rows
        other.numbers[evidence.KEPT] = rows
        rate = other.numbers[evidence.RATE] = self.numbers[evidence.RATE]
        if rate > 0.0:  # on average, rows in random order weigh (1 - exp(-rows rate)) / (rows rate)
            other.let_pass(-np.log(-np.expm1(-rows * rate) / (rows * rate)) / rate)
        return other

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        """Means and widths of checked candidates.

        Where a candidate differs from all rows learned in a feature that never changed, its mean is that of the usual
        value, and its width is larger.
        """
        mean, width = np.empty(len(slots)), np.empty(len(slots))
        if not empirical_bayes.score_tuned(
            x, z, slots, self.arm_score, self.shared_score, self.numbers, self.unknown, self.state, mean, width
        ):
            raise not_finite(x, z)
        return Prediction(mean, width)

    def beta(self, arm: Hashable) -> FloatArray:
        """The arm's own parameter; the common mean, where new arms start, while it has not learned."""
        return self.beta_at(self.slot(arm))

    def beta_at(self, slot: int) -> FloatArray:
        """The own parameter of the arm with this slot, -1 for one that has not learned."""
        return self.common_mean.copy() if slot < 0 else super().beta_at(slot)

    # -------------------------------------------------------------- whole estimators

    def second_moments(self, arms: Sequence[Hashable]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """As for `HybridRidge`: those of the data, which are kept without the prior.

        Refused with a finite memory, as the data are then brought up to date only now and then.
        """
        if self.memory is not None:
            raise ValueError(
                f"rows that are forgotten have no second moments to read, got memory={self.memory!r}: "
                "measure an estimator that never forgets"
            )
        return self._multiplied_out(self.arm_data, self.shared_data, 0.0, arms)[:3]

    def forget(self, arm: Hashable) -> None:
        """Drop an arm. What it taught about the shared part, and about what arms have in common, stays.

        Its own parameters are integrated out at the present settings. How much it differed from other arms stays, too,
        as it is estimated now.
        """
        slot = self.slot(arm)
        if slot >= 0:
            self.release(slot)
        super().forget(arm)

    def release(self, slot: int) -> None:
        """Integrate the arm with this slot out of the data."""
        empirical_bayes.release_slot(slot, self.d1, self.d2, self.arrays)
        at, count = int(self.place[slot]), int(self.state[empirical_bayes.COUNT])
        self.order[at : count - 1] = self.order[at + 1 : count]
        self.place[self.order[at : count - 1]] -= 1
        self.order[count - 1] = self.place[slot] = -1
        self.state[empirical_bayes.COUNT] -= 1
        for position in (empirical_bayes.CURSOR, empirical_bayes.END):
            if at < self.state[position]:
                self.state[position] -= 1

    def raise_ridge(self, ridge: float) -> None:
        """Refused: the ridges are learned."""
        raise ValueError("an estimator that learns its settings has no ridge to raise: construct a HybridRidge instead")

    def merge(self, other: HybridRidge) -> None:
        """Take in all that another estimator has learned: the data exactly, then the settings are estimated anew."""
        if not isinstance(other, LearnedRidge):
            raise TypeError(f"only another LearnedRidge can be merged, got {type(other).__name__}")
        if (other.d1, other.d2) != (self.d1, self.d2):
            raise ValueError(
                f"cannot merge d1={other.d1}, d2={other.d2} into d1={self.d1}, d2={self.d2}: the features must agree"
            )
        if (other.noise_held, other.scale_held, other.memory) != (self.noise_held, self.scale_held, self.memory):
            raise ValueError(
                "cannot merge estimators that hold different settings: give both the same noise, scale and memory"
            )
        other = other.copy() if other is self else other
        merged = self.copy()
        merged._take_in(other)
        self._become(merged)

    def _take_in(self, other: HybridRidge) -> None:
        assert isinstance(other, LearnedRidge)
        self.let_pass(float(other.rounds))
        self.fold(other, matching_slots(self, other, other.in_order))
        self.admit(other.arms)
        self.rounds += other.rounds
        self.apply()

    def apply(self) -> None:
        """Play with the data as they are: at settings that are estimated anew, if there are any."""
        if self.numbers[evidence.SQUARES] > 0.0:
            self.refresh()
        else:
            self._sweep()

    def fold(self, other: LearnedRidge, slots: list[tuple[int, int]]) -> None:
        """Take another estimator's data in, with their present weights; slots: those of its arms, here and there.

        What is played with stays as it is until `apply`.
        """
        mine, its = self.numbers, other.numbers
        rows, more = mine[evidence.KEPT], its[evidence.KEPT]
        arrays = other.arrays
        if its[evidence.CLOCK] > 0.0:
            dated = ("arm_data", "arm_rhs", "arm_clock", "arm_kept")
            arrays = arrays._replace(**{name: getattr(other, name).copy() for name in dated})
            empirical_bayes.catch_up_all(self.d1, self.d2, arrays)
        for slot, its_slot in slots:
            empirical_bayes.fold_arm_data(
                slot, its_slot, self.d1, self.d2, arrays.arm_data, arrays.arm_rhs, self.arrays
            )
            self.pulls[slot] += other.pulls[its_slot]
            self.arm_kept[slot : slot + 1] += arrays.arm_kept[its_slot : its_slot + 1]
        empirical_bayes.fold_shared_data(
            self.d1, self.d2, other.shared_data, other.shared_rhs, other.released_data, other.released_rhs, self.arrays
        )
        mine[evidence.REST] += its[evidence.REST]
        if more:
            difference = its[evidence.MEAN] - mine[evidence.MEAN]
            mine[evidence.MEAN] += difference * more / (rows + more)
            mine[evidence.SPREAD] += its[evidence.SPREAD] + difference**2 * rows * more / (rows + more)
        mine[evidence.SQUARES] += its[evidence.SQUARES]
        squares = slice(evidence.HEAD + 2 * self.d2, evidence.HEAD + 3 * self.d2 + self.d1)
        mine[squares] += its[squares]
        for mine_of_dropped, its_of_dropped in zip(
            evidence.differences_of_dropped(mine, self.d1, self.d2),
            evidence.differences_of_dropped(its, self.d1, self.d2),
            strict=True,
        ):
            mine_of_dropped += its_of_dropped
        mine[evidence.RELEASED] += its[evidence.RELEASED]
        usual, its_usual = (evidence.usual_features(each, self.d1, self.d2) for each in (mine, its))
        if self.state[empirical_bayes.ROWS] == 0:
            usual[:] = its_usual
        if more:
            self.varied |= other.varied
            self.varied |= np.abs(its_usual - usual) > evidence.CONSTANT * np.abs(usual)
        self.seen += other.seen
        mine[evidence.KEPT] += more
        self.state[empirical_bayes.ROWS] += other.state[empirical_bayes.ROWS]
        self.state[empirical_bayes.NEXT] = max(
            int(self.state[empirical_bayes.NEXT]), int(self.state[empirical_bayes.ROWS]) + 1
        )

    def copy(self) -> LearnedRidge:
        """An independent copy."""
        return LearnedRidge.unpack(*self.pack(ids=False), arms=self.arms)

    # -------------------------------------------------------------- saving

    @property
    def in_order(self) -> Slots:
        """The slots of arms that have learned, in the order in which they first did."""
        return self.order[: self.state[empirical_bayes.COUNT]]

    def blocks(self) -> dict[str, np.ndarray]:
        """Every array that is saved; blocks in the order in which the arms first learned."""
        used = self.in_order
        f, h = arrow.factor_size(self.d2, self.d1), arrow.score_size(self.d2, self.d1)
        n = len(self.pulls)
        every = np.concatenate(([NEW_ARM], used)).astype(np.int64)
        blocks = {
            "pulls": self.pulls[used],
            "arm_data": self.arm_data.reshape(n, f)[used],
            "arm_rhs": self.arm_rhs.reshape(n, self.d2)[used],
            "arm_factor": self.arm_factor.reshape(n, f)[every],
            "arm_score": self.arm_score.reshape(n, h)[every],
            **{name: getattr(self, name).copy() for name in _WHOLE},
        }
        if self.memory is not None:
            blocks |= {"arm_clock": self.arm_clock[used], "arm_kept": self.arm_kept[used]}
        return blocks

    def pack(self, *, ids: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything as a JSON-able header and plain arrays."""
        header: dict[str, Any] = {
            "d1": self.d1, "d2": self.d2, "rounds": self.rounds, "noise": self.noise_held, "scale": self.scale_held,
            "memory": self.memory,
        }  # fmt: skip
        if ids:
            header["arms"] = policy_file.plain_ids(self._slots)
        return header, {"slots": places_of(self, self.place), **self.blocks()}

    @classmethod
    def unpack(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], arms: list[Hashable] | None = None
    ) -> LearnedRidge:
        """The inverse of `pack`; FileError if the parts do not fit together."""
        try:
            estimator = cls(
                d1=header["d1"], d2=header["d2"], noise=header["noise"], scale=header["scale"],
                memory=header.get("memory"),
            )  # fmt: skip
            rounds = policy_file.counter("rounds", header["rounds"])
            if arms is None:
                arms = policy_file.arm_ids(header["arms"])
            rate = estimator.numbers[evidence.RATE]
            estimator.put_back(arrays, rounds)
            policy_file.check_slots(arms, arrays["slots"], arrays["pulls"])
        except (KeyError, TypeError) as problem:
            raise policy_file.unfit_part(problem) from None
        if estimator.numbers[evidence.RATE] != rate:
            raise FileError("the data are not of this memory: the file is corrupt")
        take_places(estimator, arms, arrays["slots"])
        return estimator

    def put_back(self, arrays: dict[str, np.ndarray], rounds: int) -> None:
        """Undo `blocks` on a new estimator; FileError if the parts do not fit together."""
        arrays = _upgraded(arrays, rounds)
        d1, d2 = self.d1, self.d2
        f, h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
        n = len(arrays["pulls"])
        expected = {
            "pulls": (np.dtype(np.int64), (n,)),
            "arm_data": (checks.FLOAT64, (n, f)),
            "arm_rhs": (checks.FLOAT64, (n, d2)),
            "arm_factor": (checks.FLOAT64, (n + 1, f)),
            "arm_score": (checks.FLOAT64, (n + 1, h)),
            **{name: (getattr(self, name).dtype, getattr(self, name).shape) for name in _WHOLE},
        }
        if self.memory is not None:
            expected |= dict.fromkeys(("arm_clock", "arm_kept"), (checks.FLOAT64, (n,)))
        for name, (dtype, shape) in expected.items():
            array = arrays[name]
            if array.dtype != dtype or array.shape != shape:
                raise FileError(
                    f"{name} has {array.dtype} {array.shape}, expected {dtype} {shape}: the file is corrupt"
                )
            if dtype == checks.FLOAT64 and not np.isfinite(array).all():
                raise FileError(f"{name} holds a number that is not finite: the file is corrupt")
        _check_refresh(arrays, rounds, n, d1, d2)
        self._grow(n + 1)
        self._used = n + 1
        self.rounds = rounds
        self.pulls[1:] = arrays["pulls"]
        self.arm_data[f:] = arrays["arm_data"].reshape(-1)
        self.arm_rhs[d2:] = arrays["arm_rhs"].reshape(-1)
        self.arm_factor[:] = arrays["arm_factor"].reshape(-1)
        self.arm_score[:] = arrays["arm_score"].reshape(-1)
        if self.memory is not None:
            self.arm_clock[1:], self.arm_kept[1:] = arrays["arm_clock"], arrays["arm_kept"]
        self.order[:n] = self.place[1:] = np.arange(n)
        self.order[:n] += 1
        for slot in range(1, n + 1):
            self.rank[slot] = evidence.rank_of(slot, d1, d2, self.arm_data)
        for name in _WHOLE:
            setattr(self, name, arrays[name].copy())
        own = np.cumsum([0, *(d2 - k + d1 for k in range(d2 - 1))])[:d2]
        if not self.sound() or (arrays["arm_data"][:, own] < 0).any():
            raise FileError("a factor is not that of a positive definite matrix: the file is corrupt")


def matching_slots(mine: ArmTable, its: ArmTable, in_order: Slots) -> list[tuple[int, int]]:
    """The slots of another table's arms here, where those that have none get one, and there; in the given order."""
    owner = {slot: arm for arm, slot in its.learned.items()}
    return [(mine.slot_for(owner[its_slot]), its_slot) for its_slot in in_order.tolist()]


def places_of(table: ArmTable, place: Slots) -> Slots:
    """For each arm of a table, the place of its block among those that are saved, -1 if it has none."""
    slots = np.fromiter(table._slots.values(), np.int64, table.known)
    return np.where(slots >= 0, place[slots], -1)


def take_places(table: HybridRidge, arms: list[Hashable], places: Slots) -> None:
    """The inverse of `places_of`: block i is at slot i + 1, behind that of new arms."""
    table._slots = {arm: place + 1 if place >= 0 else -1 for arm, place in zip(arms, places.tolist(), strict=True)}
    table.known = len(arms)


def _upgraded(arrays: dict[str, np.ndarray], rounds: int) -> dict[str, np.ndarray]:
    """Files of version 2 counted features in whole numbers, and knew nothing of memories."""
    if arrays["seen"].dtype == np.int64:
        at = evidence.KEPT
        numbers = np.concatenate((arrays["numbers"][:at], [rounds, 0.0, 0.0], arrays["numbers"][at:]))
        state = np.append(arrays["state"], 0)
        return {**arrays, "seen": arrays["seen"].astype(float), "numbers": numbers, "state": state}
    return arrays


def _check_refresh(arrays: dict[str, np.ndarray], rounds: int, learned: int, d1: int, d2: int) -> None:
    """Raise FileError unless counts, scales and how far a refresh has come fit the arms and each other."""
    state, seen, numbers = arrays["state"], arrays["seen"], arrays["numbers"]
    flags = arrays["varied"], arrays["unknown"]
    rows, cursor, end = (int(state[k]) for k in (empirical_bayes.ROWS, empirical_bayes.CURSOR, empirical_bayes.END))
    variances = [evidence.SIGMA2, evidence.S1, evidence.SM, evidence.REST, evidence.SPREAD, evidence.SQUARES]
    variances += [evidence.PLAYED, *range(evidence.HEAD, evidence.HEAD + d2)]
    variances += [evidence.KEPT, evidence.RATE, evidence.CLOCK]
    squares = range(evidence.HEAD + 2 * d2, evidence.HEAD + 3 * d2 + d1)
    if (
        (state < 0).any()
        or rows != rounds
        or state[empirical_bayes.COUNT] != learned
        or not cursor <= end <= learned
        or state[empirical_bayes.PHASE] > 1 + max(empirical_bayes.STEPS, empirical_bayes.FIRST_STEPS)
        or max(state[empirical_bayes.DUE], state[empirical_bayes.SWEPT], state[empirical_bayes.TOLD]) > 1
        or (seen < 0).any()
        or (seen > rows).any()
        or numbers[evidence.KEPT] > rows
        or any(((flag != 0) & (flag != 1)).any() for flag in flags)
        or not flags[1].sum() <= state[empirical_bayes.UNKNOWN] <= d1 + d2
    ):
        raise FileError("the state of the refresh does not fit the arms: the file is corrupt")
    if (numbers[[*variances, *squares]] < 0).any() or (state[empirical_bayes.SWEPT] and numbers[evidence.PLAYED] <= 0):
        raise FileError("a variance is negative: the file is corrupt")


_WHOLE = (
    "shared_data", "shared_rhs", "released_data", "released_rhs", "numbers", "seen", "varied", "unknown", "state",
    "shared_factor", "shared_score", "next_factor", "next_rhs",
)  # fmt: skip
"""Arrays that are saved as they are."""
