"""LearnedRidge: the hybrid estimator that learns its own settings (noise, scales, what arms have in common)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow, evidence, tuning
from hybandits.model import policy_file
from hybandits.model.arms import Slots, grown
from hybandits.model.inputs import batch, not_finite
from hybandits.model.policy_file import FileError
from hybandits.model.ridge import HybridRidge, Prediction

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
    shared_scale: Doubles
    own_scale: Doubles
    common_mean: Doubles
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
    sums: Doubles
    mean: float
    spread: float


def fixed_point(step: Callable[[Doubles], Doubles], start: Doubles) -> Doubles:
    """Where `step` leads when it is repeated, to CONVERGED, by Anderson's acceleration.

    The next point is the combination of the last steps whose changes, combined alike, cancel best. Where that has led
    further away, the steps before are left out of account.
    """
    at = start
    points: list[Doubles] = []
    changes: list[Doubles] = []
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
    made from the first; a refresh that would take long is spread over the rows that follow. See `kernels/tuning.py`.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared and of arm-specific features.
    noise, scale : float, optional
        Hold the standard deviation of the noise, or the prior standard deviation of every parameter, instead of
        learning it. With a scale that is held, arms have no mean in common.
    """

    def __init__(self, *, d1: int, d2: int, noise: float | None = None, scale: float | None = None) -> None:
        super().__init__(d1=d1, d2=d2, ridge=1.0)
        self.noise_held, self.scale_held = noise, scale
        d1, d2 = self.d1, self.d2
        self.arm_data: Doubles = np.zeros(0)
        self.arm_rhs: Doubles = np.zeros(0)
        self.shared_data: Doubles = np.zeros(arrow.factor_size(d1, 0))
        self.shared_rhs: Doubles = np.zeros(d1)
        self.released_data: Doubles = np.zeros(arrow.factor_size(d1 + d2, 0))
        self.released_rhs: Doubles = np.zeros(d1 + d2)
        self.next_factor: Doubles = np.zeros(arrow.factor_size(d1, 0))
        self.next_rhs: Doubles = np.zeros(d1)
        self.numbers: Doubles = np.zeros(evidence.size_of_numbers(d1, d2))
        self.seen: Slots = np.zeros(d1 + d2, np.int64)
        self.varied: Slots = np.zeros(d1 + d2, np.int64)
        self.unknown: Slots = np.ones(d1 + d2, np.int64)
        self.state: Slots = np.zeros(tuning.STATE, np.int64)
        self.state[tuning.NEXT] = 1
        self.state[tuning.UNKNOWN] = d1 + d2
        self.order: Slots = np.zeros(0, np.int64)
        self.place: Slots = np.zeros(0, np.int64)
        self.rank: Slots = np.zeros(0, np.int64)
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
        tuning.prior_block(NEW_ARM, d1, d2, triangle, m, self.arm_factor, self.arm_score)
        arrow.reset_block(self.shared_factor, 0, self.shared_score, 0, d1, 0, evidence.OUT_OF_PLAY)

    def __repr__(self) -> str:
        return (
            f"LearnedRidge(d1={self.d1}, d2={self.d2}): {self.known} arms known, "
            f"{int(self.state[tuning.COUNT])} have learned, {self.rounds} rows"
        )

    # -------------------------------------------------------------- what has been learned

    @property
    def tuned(self) -> bool:
        """Whether there are learned settings to play with: a reward that is not 0 has been worked into all arms."""
        return bool(self.state[tuning.SWEPT])

    @property
    def noise(self) -> float:
        """The standard deviation of the noise that is played with; 0 while nothing is known of it."""
        return float(np.sqrt(self.numbers[evidence.PLAYED]))

    @property
    def common_mean(self) -> Doubles:
        """The prior mean of an arm's own parameters."""
        mean: Doubles = evidence.played_ridges(self.numbers, self.d1, self.d2)[2]
        return mean

    def learned_settings(self) -> LearnedSettings | None:
        """The settings that are played with, with the evidence for them; None while there are none."""
        if not self.tuned:
            return None
        numbers = self.numbers.copy()
        self._step(numbers)
        a, b, mean = evidence.played_ridges(self.numbers, self.d1, self.d2)
        return LearnedSettings(
            noise=self.noise,
            shared_scale=self._scale(a),
            own_scale=self._scale(b),
            common_mean=mean.copy(),
            effective_parameters=float(numbers[evidence.GAMMA]),
            evidence=float(numbers[evidence.EVIDENCE]),
        )

    def _scale(self, ridges: Doubles) -> Doubles:
        """sigma / sqrt(ridge), NaN for a feature that is not in play."""
        scale: Doubles = np.where(ridges == evidence.OUT_OF_PLAY, np.nan, self.noise / np.sqrt(ridges))
        return scale

    def _step(self, numbers: Doubles) -> None:
        """One fixed-point step over all arms, on a copy of the numbers."""
        evidence.step(
            self.order[: self.state[tuning.COUNT]], self.d1, self.d2, self.arm_data, self.arm_rhs, self.shared_data,
            self.shared_rhs, self.released_data, self.released_rhs, numbers, self.seen, self.varied,
            int(self.state[tuning.ROWS]), 0, self.held,
        )  # fmt: skip

    @property
    def held(self) -> tuple[bool, bool]:
        """Whether the noise and the scale are held."""
        return self.noise_held is not None, self.scale_held is not None

    def refresh(self) -> None:
        """Estimate the settings to 1e-10 from all that has been learned, in whatever order, and apply them.

        It starts from the centres, which depend on the data alone, and looks at all arms. It takes as long as that
        takes: some ten to forty steps.
        """
        if self.numbers[evidence.SQUARES] == 0.0:
            return
        numbers = self.numbers.copy()
        learned = [] if self.noise_held is not None else [evidence.SIGMA2]
        if self.scale_held is None:
            learned += [evidence.S1, evidence.SM, *range(evidence.HEAD, evidence.HEAD + self.d2)]
        numbers[learned] = 0.0  # whatever is 0 begins at its centre
        self._step(numbers)
        scales = np.array([k for k in learned if numbers[k] > 0.0], np.int64)
        unit = 2.0 ** np.frexp(numbers[evidence.SQUARES])[1]  # a power of two, so that units do not matter to the bit

        def step(logarithms: Doubles) -> Doubles:
            numbers[scales] = unit * np.exp(logarithms)
            self._step(numbers)
            after: Doubles = np.log(numbers[scales] / unit)
            return after

        numbers[scales] = unit * np.exp(fixed_point(step, np.log(numbers[scales] / unit)))
        self.numbers = numbers
        self.state[tuning.REFRESHES] += 1
        self.state[tuning.DUE] = 0
        self._sweep()

    def _sweep(self) -> None:
        """Make the factors to play with from the data, at the present settings if there are any."""
        self.state[tuning.PHASE] = 1
        tuning.start_sweep(self.d1, self.d2, self.arrays, self.held)
        while self.state[tuning.PHASE]:
            tuning.advance(self.d1, self.d2, self.arrays, self.held, tuning.BUDGET)

    @property
    def arrays(self) -> tuning.Arrays:
        """Every array, as the kernels of `tuning` take them."""
        return tuning.Arrays(
            self.arm_data, self.arm_rhs, self.shared_data, self.shared_rhs, self.released_data, self.released_rhs,
            self.numbers, self.seen, self.varied, self.unknown, self.state, self.order, self.place, self.rank,
            self.pulls, self.arm_factor, self.arm_score, self.shared_factor, self.shared_score, self.next_factor,
            self.next_rhs,
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
        super()._reserve(capacity)
        self.arm_data, self.arm_rhs, self.order, self.place, self.rank = data, rhs, order, place, rank

    def _clear(self, slot: int) -> None:
        f = arrow.factor_size(self.d2, self.d1)
        self.arm_data[slot * f : (slot + 1) * f] = 0.0
        self.arm_rhs[slot * self.d2 : (slot + 1) * self.d2] = 0.0
        self.place[slot], self.rank[slot] = -1, 0

    # -------------------------------------------------------------- learning and reading

    def _learn_checked(self, slot: int, x: Doubles, z: Doubles, reward: float) -> None:
        if not tuning.learn_tuned(slot, x, z, reward, self.arrays, self.held):
            raise not_finite(x, z, reward)

    def _learn_rows(self, slots: Slots, x: Doubles, z: Doubles, rewards: Doubles) -> None:
        tuning.learn_rows_tuned(slots, x, z, rewards, self.arrays, self.held)

    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        pulls: Mapping[Hashable, int],
        moments: Moments | None,
    ) -> None:
        """Learn rows that stand for a larger number of rewards: the data exactly, then the settings are estimated anew.

        Unlike the rows of `learn_many` they must include what no feature explains, as rows whose features are 0.
        """
        if moments is None:
            raise ValueError(
                "moments is None: an estimator that learns its settings cannot learn rows that stand for many without "
                "their moments; pass moments=Moments(seen, sums, mean, spread), or use learn_many on the rows"
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
        other = LearnedRidge(d1=self.d1, d2=self.d2, noise=self.noise_held, scale=self.scale_held)
        for arm in dict.fromkeys(ids):
            slot = other._new_slot(arm)
            other.pulls[slot] = pulls.get(arm, 0)
        tuning.fold_rows(other.lookup(ids), x, z, values, other.arrays)
        other.numbers[evidence.MEAN], other.numbers[evidence.SPREAD] = moments.mean, moments.spread
        other.numbers[evidence.SQUARES] = values @ values
        squares = slice(evidence.HEAD + 2 * self.d2, evidence.HEAD + 3 * self.d2 + self.d1)
        other.numbers[squares] = np.concatenate([(x * x).sum(axis=0), (z * z).sum(axis=0)])
        other.seen[:] = seen
        squared = rows * other.numbers[squares]
        other.varied[:] = squared - sums**2 > ROUNDING * squared
        evidence.usual_features(other.numbers, self.d1, self.d2)[:] = sums / rows
        other.state[tuning.ROWS] = other.rounds = rows
        self.merge(other)

    def score(self, x: Doubles, z: Doubles, slots: Slots) -> Prediction:
        """Means and widths of checked candidates.

        Where a candidate differs from all rows learned in a feature that never changed, its mean is that of the usual
        value, and its width is larger.
        """
        mean, width = np.empty(len(slots)), np.empty(len(slots))
        if not tuning.score_tuned(
            x, z, slots, self.arm_score, self.shared_score, self.numbers, self.unknown, self.state, mean, width
        ):
            raise not_finite(x, z)
        return Prediction(mean, width)

    def beta(self, arm: Hashable) -> Doubles:
        """The arm's own parameter; the common mean, where new arms start, while it has not learned."""
        if self.slot(arm) < 0:
            return self.common_mean.copy()
        return super().beta(arm)

    # -------------------------------------------------------------- whole estimators

    def forget(self, arm: Hashable) -> None:
        """Drop an arm. What it taught about the shared part, and about what arms have in common, stays.

        Its own parameters are integrated out at the present settings. How much it differed from other arms stays, too,
        as it is estimated now.
        """
        slot = self.slot(arm)
        if slot >= 0:
            tuning.release_slot(slot, self.d1, self.d2, self.arrays)
            at, count = int(self.place[slot]), int(self.state[tuning.COUNT])
            self.order[at : count - 1] = self.order[at + 1 : count]
            self.place[self.order[at : count - 1]] -= 1
            self.order[count - 1] = self.place[slot] = -1
            self.state[tuning.COUNT] -= 1
            for position in (tuning.CURSOR, tuning.END):
                if at < self.state[position]:
                    self.state[position] -= 1
        super().forget(arm)

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
        if (other.noise_held, other.scale_held) != (self.noise_held, self.scale_held):
            raise ValueError("cannot merge estimators that hold different settings: give both the same noise and scale")
        other = other.copy() if other is self else other
        merged = self.copy()
        merged._take_in(other)
        self._become(merged)

    def _take_in(self, other: HybridRidge) -> None:
        assert isinstance(other, LearnedRidge)
        owner = {slot: arm for arm, slot in other.learned.items()}
        mine, its = self.numbers, other.numbers
        rows, more = int(self.state[tuning.ROWS]), int(other.state[tuning.ROWS])
        for its_slot in other.order[: other.state[tuning.COUNT]].tolist():
            arm = owner[its_slot]
            slot = self._slots.get(arm, -1)
            if slot < 0:
                slot = self._new_slot(arm)
            tuning.fold_arm_data(slot, its_slot, self.d1, self.d2, other.arm_data, other.arm_rhs, self.arrays)
            self.pulls[slot] += other.pulls[its_slot]
        tuning.fold_shared_data(
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
        if rows == 0:
            usual[:] = its_usual
        if more:
            self.varied |= other.varied
            self.varied |= np.abs(its_usual - usual) > evidence.CONSTANT * np.abs(usual)
        self.seen += other.seen
        self.state[tuning.ROWS] += more
        self.state[tuning.NEXT] = max(int(self.state[tuning.NEXT]), rows + more + 1)
        self.admit(other.arms)
        self.rounds += other.rounds
        if self.numbers[evidence.SQUARES] > 0.0:
            self.refresh()
        else:
            self._sweep()

    def copy(self) -> LearnedRidge:
        """An independent copy."""
        return LearnedRidge.unpack(*self.pack(ids=False), arms=self.arms)

    # -------------------------------------------------------------- saving

    def pack(self, *, ids: bool = True) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything as a JSON-able header and plain arrays; blocks in the order in which the arms first learned."""
        count = int(self.state[tuning.COUNT])
        used = self.order[:count]
        f, h = arrow.factor_size(self.d2, self.d1), arrow.score_size(self.d2, self.d1)
        n = self._used
        header: dict[str, Any] = {
            "d1": self.d1, "d2": self.d2, "rounds": self.rounds, "noise": self.noise_held, "scale": self.scale_held,
        }  # fmt: skip
        if ids:
            header["arms"] = policy_file.plain_ids(self._slots)
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        every = np.concatenate(([NEW_ARM], used)).astype(np.int64)
        arrays = {
            "slots": np.where(slots >= 0, self.place[slots], -1),
            "pulls": self.pulls[used],
            "arm_data": self.arm_data[: n * f].reshape(n, f)[used],
            "arm_rhs": self.arm_rhs[: n * self.d2].reshape(n, self.d2)[used],
            "arm_factor": self.arm_factor[: n * f].reshape(n, f)[every],
            "arm_score": self.arm_score[: n * h].reshape(n, h)[every],
            **{name: getattr(self, name).copy() for name in _WHOLE},
        }
        return header, arrays

    @classmethod
    def unpack(
        cls, header: dict[str, Any], arrays: dict[str, np.ndarray], arms: list[Hashable] | None = None
    ) -> LearnedRidge:
        """The inverse of `pack`; FileError if the parts do not fit together."""
        try:
            estimator = cls(d1=header["d1"], d2=header["d2"], noise=header["noise"], scale=header["scale"])
            estimator.rounds = policy_file.counter("rounds", header["rounds"])
            if arms is None:
                arms = policy_file.arm_ids(header["arms"])
            d1, d2 = estimator.d1, estimator.d2
            f, h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
            slots, pulls = arrays["slots"], arrays["pulls"]
            n = len(pulls)
            whole = {name: (getattr(estimator, name).dtype, getattr(estimator, name).shape) for name in _WHOLE}
            expected = {
                "slots": (np.dtype(np.int64), (len(arms),)),
                "pulls": (np.dtype(np.int64), (n,)),
                "arm_data": (checks.FLOAT64, (n, f)),
                "arm_rhs": (checks.FLOAT64, (n, d2)),
                "arm_factor": (checks.FLOAT64, (n + 1, f)),
                "arm_score": (checks.FLOAT64, (n + 1, h)),
                **whole,
            }
            for name, (dtype, shape) in expected.items():
                array = arrays[name]
                if array.dtype != dtype or array.shape != shape:
                    raise FileError(
                        f"{name} has {array.dtype} {array.shape}, expected {dtype} {shape}: the file is corrupt"
                    )
                if dtype == checks.FLOAT64 and not np.isfinite(array).all():
                    raise FileError(f"{name} holds a number that is not finite: the file is corrupt")
            policy_file.check_slots(arms, slots, pulls)
            _check_refresh(arrays, estimator.rounds, n, d1, d2)
        except (KeyError, TypeError) as problem:
            raise policy_file.unfit_part(problem) from None
        estimator._grow(n + 1)
        estimator._slots = {arm: slot + 1 if slot >= 0 else -1 for arm, slot in zip(arms, slots.tolist(), strict=True)}
        estimator.known = len(arms)
        estimator._used = n + 1
        estimator.pulls[1:] = pulls
        estimator.arm_data[f:] = arrays["arm_data"].reshape(-1)
        estimator.arm_rhs[d2:] = arrays["arm_rhs"].reshape(-1)
        estimator.arm_factor[:] = arrays["arm_factor"].reshape(-1)
        estimator.arm_score[:] = arrays["arm_score"].reshape(-1)
        estimator.order[:n] = estimator.place[1:] = np.arange(n)
        estimator.order[:n] += 1
        for slot in range(1, n + 1):
            estimator.rank[slot] = evidence.rank_of(slot, d1, d2, estimator.arm_data)
        for name in _WHOLE:
            setattr(estimator, name, arrays[name].copy())
        own = np.cumsum([0, *(d2 - k + d1 for k in range(d2 - 1))])[:d2]
        if not estimator.sound() or (arrays["arm_data"][:, own] < 0).any():
            raise FileError("a factor is not that of a positive definite matrix: the file is corrupt")
        return estimator


def _check_refresh(arrays: dict[str, np.ndarray], rounds: int, learned: int, d1: int, d2: int) -> None:
    """Raise FileError unless counts, scales and how far a refresh has come fit the arms and each other."""
    state, seen, numbers = arrays["state"], arrays["seen"], arrays["numbers"]
    flags = arrays["varied"], arrays["unknown"]
    rows, cursor, end = (int(state[k]) for k in (tuning.ROWS, tuning.CURSOR, tuning.END))
    variances = [evidence.SIGMA2, evidence.S1, evidence.SM, evidence.REST, evidence.SPREAD, evidence.SQUARES]
    variances += [evidence.PLAYED, *range(evidence.HEAD, evidence.HEAD + d2)]
    squares = range(evidence.HEAD + 2 * d2, evidence.HEAD + 3 * d2 + d1)
    if (
        (state < 0).any()
        or rows != rounds
        or state[tuning.COUNT] != learned
        or not cursor <= end <= learned
        or state[tuning.PHASE] > 1 + max(tuning.STEPS, tuning.FIRST_STEPS)
        or max(state[tuning.DUE], state[tuning.SWEPT]) > 1
        or (seen < 0).any()
        or (seen > rows).any()
        or any(((flag != 0) & (flag != 1)).any() for flag in flags)
        or not flags[1].sum() <= state[tuning.UNKNOWN] <= d1 + d2
    ):
        raise FileError("the state of the refresh does not fit the arms: the file is corrupt")
    if (numbers[[*variances, *squares]] < 0).any() or (state[tuning.SWEPT] and numbers[evidence.PLAYED] <= 0):
        raise FileError("a variance is negative: the file is corrupt")


_WHOLE = (
    "shared_data", "shared_rhs", "released_data", "released_rhs", "numbers", "seen", "varied", "unknown", "state",
    "shared_factor", "shared_score", "next_factor", "next_rhs",
)  # fmt: skip
"""Arrays that are saved as they are."""
