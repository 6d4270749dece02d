"""HyRan (Kim, Paik & Oh 2023, Algorithm 1), and the variant that the released code of the paper runs."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from hybandits.estimators.arms import Candidates, Prediction
from hybandits.estimators.inputs import check_finite, checked_feedback, checked_matrices
from hybandits.estimators.policy_file import Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.sums import RunningSums, unsound
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import hyran, random
from hybandits.policies.base import Picked, Policy, check_receipts, synchronized

Schedule = Literal["experiments", "theory"]


class Pool(NamedTuple):
    """The receipt of `HyRan`: all candidates of the round."""

    arms: tuple[Hashable, ...]
    x: FloatArray
    z: FloatArray


class HyRan(Policy):
    """Choose greedily, and learn from all candidates of a round instead of only from the one that was played.

    In some of the rounds, chosen at random, the policy fills in the rewards that it has not seen with estimates. It
    needs all candidates of the round for that, so pass ``receipt=choice.receipt`` to `learn`.

    Parameters
    ----------
    d1, d2, seed
        As for `Policy`.
    p : float, default=0.5
        The share of rounds in which the policy learns from all candidates.
    ridge_schedule : {"experiments", "theory"}, default="experiments"
        How the ridge lambda_t grows: 2 D log(t + 1) or D log(4 t^2 / delta), with D = d1 + d2 K.
    delta : float, default=0.01
        The failure probability in the schedule "theory".
    arm_count : int, optional
        The number of arms K. By default the policy counts the arms that it has met.

    Notes
    -----
    HyRan is Algorithm 1 of [1]_ in the hybrid model. In round t, with the matrix V = I + sums:

    - it chooses the highest x.theta + z.beta_i of (V + lambda_t I)^-1 Z;
    - after the reward Y of arm a it draws h, which is a with probability p and otherwise one of the other candidates,
      all equally likely;
    - if h = a, it adds every candidate i with the pseudo-reward (1 - 1{h=i}/pi_i) X_i.check + 1{h=i}/pi_i Y, where
      check = (V + sqrt(t) I)^-1 Z; otherwise it adds arm a alone with Y.

    References
    ----------
    .. [1] Kim, Paik & Oh, "Squeeze All: Novel Estimator and Self-Normalized Bound for Linear Contextual Bandits", 2023.
    """

    _cross = True
    _draws = False
    _counts_arms = _needs_finite = True
    _table: RunningSums
    receipt_is_of_the_round = True

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        p: float = 0.5,
        ridge_schedule: Schedule = "experiments",
        delta: float = 0.01,
        arm_count: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self.p = checks.probability("p", p, "it is the probability of drawing the played arm, e.g. 0.5")
        if ridge_schedule not in ("experiments", "theory"):
            raise ValueError(f"ridge_schedule must be 'experiments' or 'theory', got {ridge_schedule!r}")
        self.ridge_schedule = ridge_schedule
        self.delta = checks.probability("delta", delta, "it is a failure probability, e.g. 0.01")
        why = "it is the number of arms K; leave it out to count the arms met"
        self.arm_count = None if arm_count is None else checks.count("arm_count", arm_count, least=1, why=why)
        self._table = RunningSums(self.d1, self.d2, cross=self._cross)

    @property
    def table(self) -> RunningSums:
        """The sums that the estimates are solved from."""
        return self._table

    def ridges(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return the ridges of the next rounds: 1 + lambda_t for choosing, 1 + sqrt(t - 1) for filling in rewards."""
        t = np.arange(self._table.rounds + 1, self._table.rounds + count + 1, dtype=float)
        dimension = self.d1 + self.d2 * (self.arm_count or max(self._table.known, 1))
        if self.ridge_schedule == "experiments":
            choosing = 1.0 + 2 * dimension * np.log(t + 1)
        else:
            choosing = 1.0 + dimension * np.log(4 * t**2 / self.delta)
        return choosing, 1.0 + np.sqrt(np.maximum(t - 1, 1))

    def _ridge(self) -> float:
        return float(self.ridges(1)[0][0])

    @property
    def key(self) -> int:
        """The key of the draws in learning, for a compiled loop: that of row t is `random.uniform(key, LEARN, t)`."""
        return self._key

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        x, z, arms, slots = candidates
        ridge = self._ridge()
        solved = self._table.estimate(ridge)
        index, mean = hyran.best_mean(x, z, slots, solved.theta, solved.beta)
        width = hyran.width_of(x[index], z[index], int(slots[index]), ridge, solved.shared_factor, solved.factors)
        return index, mean, width, 1.0, Pool(tuple(arms), x.copy(), z.copy())

    def _check_pool(self, arm: Hashable, x: FloatArray, z: FloatArray, receipt: Any) -> Pool:
        if receipt is None:
            return Pool((arm,), x[None], z[None])
        if not isinstance(receipt, Pool):
            raise TypeError(f"receipt must be choice.receipt, got {checks.short(receipt)}: pass it on unchanged")
        if arm not in receipt.arms:
            raise ValueError(f"arm {arm!r} is not among the candidates of its receipt: pass the receipt of its choice")
        rows = checked_matrices(receipt.x, receipt.z, self.d1, self.d2)
        check_finite(*rows)
        at = receipt.arms.index(arm)
        if (rows[0][at] != x).any() or (rows[1][at] != z).any():
            raise ValueError(f"x or z of arm {arm!r} is not that of its receipt: pass the rows that choose() was given")
        return Pool(receipt.arms, *rows)

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        ids, x, z, values = checked_feedback(arms, x, z, rewards, self.d1, self.d2)
        receipts = check_receipts(receipts, len(ids))
        pools = [self._check_pool(arm, x[i], z[i], receipts[i]) for i, arm in enumerate(ids)]
        self._table.check_new(ids)
        before = self._table.snapshot()
        try:
            for i, arm in enumerate(ids):
                self._learn_round(arm, float(values[i]), pools[i])
        except ValueError:  # the sums are no longer definite: restore everything
            self._table.__dict__.update(before)
            raise

    def _learn_round(self, arm: Hashable, reward: float, pool: Pool) -> None:
        table = self._table
        table.admit([arm])
        draw = random.uniform(self._key, random.LEARN, table.rounds) if len(pool.arms) > 1 else 1.0
        # An arm forgotten since its round stays forgotten: it has no slot, and nothing is added for it.
        slots = table.slots_of(pool.arms)
        played = pool.arms.index(arm)
        _, check = self.ridges(1)
        sound = hyran.learn_round(
            played, self.p, draw, check[0], pool.x, pool.z, slots, reward, table.shared, table.own, *table.workspace()
        )
        if not sound:
            raise unsound()
        table.pulls[slots[played]] += 1
        table.rounds += 1

    @synchronized
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        candidates = self._candidates(x, z, arms, False)
        return self._table.predict(candidates.x, candidates.z, candidates.slots, self._ridge())

    @property
    def theta(self) -> FloatArray:
        with self._lock:
            return self._table.estimate(self._ridge()).theta

    @synchronized
    def beta(self, arm: Hashable) -> FloatArray:
        slot = self._table.slot(arm)
        return self._table.estimate(self._ridge()).beta[slot] if slot >= 0 else np.zeros(self.d2)

    @synchronized
    def forget(self, arm: Hashable) -> None:
        """Drop an arm; what it taught about the shared features stays, at the ridge of the present round."""
        self._table.marginalise(arm, self._ridge())

    def _pack_parts(self) -> dict[str, Packed]:
        return {"sums": self._table.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self._table.restore(*parts["sums"])


class HyRanWithoutCrossBlocks(HyRan):
    """Reproduce the HyRan curves of the paper, whose released code leaves out the blocks that tie x and z together.

    The shared and the arm-specific parts are fitted as if they had nothing to do with each other. The parameters are
    those of `HyRan`; use that for anything else.
    """

    _cross = False
