"""SupLinUCB (Chu et al. 2011) on the hybrid estimator: levels of ever narrower widths, each with its own data."""

import math
from collections.abc import Hashable, Sequence
from typing import Any, Literal, Self

import numpy as np

from hybandits.estimators.arms import Candidates, Prediction
from hybandits.estimators.exploration import bound_pair, norm_bounds
from hybandits.estimators.inputs import checked_feedback
from hybandits.estimators.policy_file import FileError, Packed, counter
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions
from hybandits.policies.base import Picked, Policy, check_receipts, synchronized


class SupLinUCB(Policy):
    """Explore in stages, so that the estimates of each stage rest on independent rewards; made for its regret bound.

    The policy is of interest for theory and as a baseline. It must know which stage a choice was made in, so pass
    ``receipt=choice.receipt`` to `learn`.

    Parameters
    ----------
    d1, d2, ridge, seed
        As for `HyLinUCB`; the default of `ridge` is 1.0.
    horizon : int
        The number of rounds T that will be played.
    delta : float, default=0.01
        The probability with which the bound may fail.
    alpha : float, optional
        How many widths count as the uncertainty of an arm; sqrt(log(2 T K / delta) / 2) by default.
    bound : float or pair of float, optional
        A bound on the norms of theta and of every beta_i, or one bound for each, S1 and S2. With it, alpha is that of
        the paper's released code: sqrt(ridge) S + sqrt(2 log(T K / delta)), where S^2 = S1^2 + K S2^2.
    explore : {"widest", "first"}
        Which of the arms with w > 2^-s is played. The released code plays the first of them.
    arm_count : int, optional
        The number of arms K. By default the policy counts the arms that it has met.

    Attributes
    ----------
    levels : list of HybridRidge
        The estimators of the stages. `predict`, `theta` and `beta` use the data of all stages together.

    Notes
    -----
    With w = alpha width, the rule of [1]_ walks down the levels s = 1, ..., ceil(log T):

    - if all w <= 1/sqrt(T), play the highest mean + w, and do not learn from it;
    - if all w <= 2^-s, keep the arms within 2^(1-s) of the highest mean + w and go to level s + 1;
    - otherwise play the arm with the largest w, or the first with w > 2^-s; its reward is learned at level s.

    References
    ----------
    .. [1] Chu, Li, Reyzin & Schapire, "Contextual Bandits with Linear Payoff Functions", 2011.
    """

    _draws = False
    _counts_arms = _needs_finite = True

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        horizon: int,
        delta: float = 0.01,
        alpha: float | None = None,
        bound: float | tuple[float, float] | None = None,
        explore: Literal["widest", "first"] = "widest",
        arm_count: int | None = None,
        ridge: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self.horizon = checks.count("horizon", horizon, least=2, why="it is the number of rounds T to be played")
        self.delta = checks.probability("delta", delta, "it is a failure probability, e.g. 0.01")
        why = "it multiplies the width; leave it out for the value of Chu et al."
        self.alpha = None if alpha is None else checks.positive("alpha", alpha, why)
        self.bound = None if bound is None else norm_bounds("bound", bound)
        if alpha is not None and bound is not None:
            raise ValueError(f"alpha={alpha!r} leaves no use for bound={bound!r}: give one of them")
        if explore not in ("widest", "first"):
            raise ValueError(f"explore must be 'widest' or 'first', got {explore!r}: choose one")
        self.explore = explore
        why = "it is the number of arms K; leave it out to count the arms met"
        self.arm_count = None if arm_count is None else checks.count("arm_count", arm_count, least=1, why=why)
        self.ridge = checks.ridge(ridge)
        self._use(
            [HybridRidge(d1=self.d1, d2=self.d2, ridge=self.ridge) for _ in range(math.ceil(math.log(self.horizon)))]
        )
        self._skipped = 0

    def _use(self, levels: list[HybridRidge]) -> None:
        self.levels = levels
        self._table = levels[0]  # it knows all arms
        self._all: HybridRidge | None = None

    def width_factor(self, arms_met: int) -> float:
        """Return alpha once this many arms have been met."""
        if self.alpha is not None:
            return self.alpha
        arms = self.arm_count or max(arms_met, 1)
        if self.bound is not None:
            s1, s2 = bound_pair(self.bound)
            norm = math.sqrt(s1**2 + arms * s2**2)
            return math.sqrt(self.ridge) * norm + math.sqrt(2 * math.log(self.horizon * arms / self.delta))
        return math.sqrt(math.log(2 * self.horizon * arms / self.delta) / 2)

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        """Walk down the levels; the receipt is the level, or 0 if the reward will not be learned."""
        x, z, arms, _ = candidates
        alpha = self.width_factor(self._table.known + self._table.unmet(arms))
        left, count = np.arange(len(arms)), len(arms)
        for s, level in enumerate(self.levels, start=1):
            index, receipt, mean, width, count = decisions.walk_level(
                s, x, z, level.lookup(arms), left, count, alpha, self.least, level.arm_score, level.shared_score,
                level.ridge, self.explore == "first",
            )  # fmt: skip
            if index >= 0:
                return int(index), mean, width, 1.0, int(receipt)
        raise AssertionError("the last level's 2^-s lies below 1/sqrt(T), so the walk has ended")

    @property
    def least(self) -> float:
        """1/sqrt(T): nothing is learned from rounds in which all widths are below it."""
        return 1 / math.sqrt(self.horizon)

    def count_skipped(self, rows: int) -> None:
        """Count rounds that a compiled loop has played at level 0; the data of the levels may have changed too."""
        self._skipped += rows
        self._all = None

    def _check_level(self, receipt: Any) -> int | None:
        if receipt is None:
            return None
        level = checks.count("receipt", receipt, least=0, why="pass choice.receipt, the level of the choice")
        if level > len(self.levels):
            raise ValueError(f"receipt must be at most {len(self.levels)}, got {receipt!r}: pass choice.receipt")
        return level

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        ids, x, z, values = checked_feedback(arms, x, z, rewards, self.d1, self.d2)
        receipts = check_receipts(receipts, len(ids))
        levels = [self._check_level(receipt) for receipt in receipts]
        self._table.check_new(ids)
        for i, arm in enumerate(ids):
            self._table.admit([arm])
            level = levels[i]
            if level is None:
                alone = Candidates(x[i : i + 1], z[i : i + 1], [arm], self._table.lookup([arm]))
                level = int(self._choice(alone, self._stream(None)).receipt)
            if level == 0:
                self._skipped += 1
            else:
                self.levels[level - 1].warned_of_twin |= level > 1  # the first level warns for all of them
                self.levels[level - 1].learn(arm, x[i], z[i], values[i])
        self._all = None

    def _together(self) -> HybridRidge:
        """One estimator with the data of all levels."""
        if self._all is None:
            self._all = HybridRidge(d1=self.d1, d2=self.d2, ridge=self.ridge)
            self._all.warned_of_twin = self.levels[0].warned_of_twin
            for level in self.levels:
                self._all.merge(level)
        return self._all

    @synchronized
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        return self._together().predict(x, z, arms)

    @property
    def theta(self) -> FloatArray:
        with self._lock:
            return self._together().theta

    @synchronized
    def beta(self, arm: Hashable) -> FloatArray:
        self._table.slot(arm)
        together = self._together()
        return together.beta(arm) if together.knows(arm) else np.zeros(self.d2)

    @property
    def rounds(self) -> int:
        return self._skipped + sum(level.rounds for level in self.levels)

    @synchronized
    def forget(self, arm: Hashable) -> None:
        super().forget(arm)
        for level in self.levels[1:]:
            if level.knows(arm):
                level.forget(arm)
        self._all = None

    def _merge(self, other: Self) -> None:
        merged = [level.copy() for level in self.levels]
        for level, other_level in zip(merged, other.levels, strict=True):
            level.merge(other_level)  # it may be refused, and then no level has changed
        self._use(merged)
        self._skipped += other._skipped

    def _pack_parts(self) -> dict[str, Packed]:
        parts = {f"level{s}": level.pack() for s, level in enumerate(self.levels, start=1)}
        parts["skipped"] = ({"rows": self._skipped}, {})
        return parts

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self._skipped = counter("skipped", parts["skipped"][0]["rows"])
        levels = [HybridRidge.unpack(*parts[f"level{s}"]) for s in range(1, len(self.levels) + 1)]
        if any((level.d1, level.d2, level.ridge) != (self.d1, self.d2, self.ridge) for level in levels):
            raise FileError("the levels' shape or ridge does not fit the policy's: the file is corrupt")
        self._use(levels)
