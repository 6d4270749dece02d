"""LearnedRidge: the hybrid estimator that learns its own settings (noise, scales, what arms have in common)."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import deepcopy
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import Prediction, Slots, grown
from hybandits.estimators.inputs import checked_feedback, not_finite
from hybandits.estimators.policy_file import FileError, put_back
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import OnlineEstimator, are_sound, beta_of, diagonal_of, theta_of
from hybandits.estimators.unfinished import Unfinished, put_together
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow, empirical_bayes, evidence, large, memories
from hybandits.kernels.addresses import table_of

AUTO: Literal["auto"] = "auto"
"""Three memories, weighted by how well they predict."""

NEW_ARM = 0
"""The slot whose block is that of an arm before any data."""

BUDGET = 20e6
"""Approximate operations that one row may spend on a refresh: about ten milliseconds."""
CONVERGED = 1e-12
"""The relative change of a scale in one step that ends `refresh`; the remaining error is well below 1e-10."""
MOST_STEPS = 500
DERIVED = ("arms_order", "arms_place", "arms_rank")
"""Arrays that files leave out, because they follow from the others."""
REMEMBERED = 6
"""Steps that `fixed_point` combines."""
ROUNDING = 1e-10
"""The rounding error of a feature's variance, as a difference of sums, relative to its mean square."""
LONGEST = 2.0
"""The furthest that the acceleration may go beyond a step, in natural logarithms."""


Groups = tuple[tuple[int, ...] | None, tuple[int, ...] | None]
"""The group of every feature of x and of z; None if all are in one."""


class LearnedGroup(NamedTuple):
    """Scales of the features that are in one group, in the units of the reward, for features of unit size."""

    part: Literal["x", "z"]
    group: int
    """Its number in the `groups` of the policy, 0 if they were left out."""
    columns: tuple[int, ...]
    """The columns of x or z."""
    scale: float
    """Of x: the prior standard deviation of the shared parameters, NaN if no feature of the group has ever changed. Of
    z: how much the arms' own vary from arm to arm."""
    mean_scale: float
    """Of z: the prior standard deviation of the arms' common mean, NaN if no feature has ever changed. NaN for x."""
    effective_parameters: float
    """The number of its parameters that the rewards determine, those of all arms and their common mean included."""


class LearnedSettings(NamedTuple):
    """Noise and scales that a policy has learned."""

    noise: float
    """The standard deviation of a reward around its mean."""
    shared_scale: FloatArray
    """(d1,): the prior standard deviation of each shared parameter. NaN for a feature that never changed."""
    own_scale: FloatArray
    """(d2,): the standard deviation of each of the arms' own parameters from arm to arm."""
    common_mean: FloatArray
    """(d2,): the mean of the arms' own parameters, where a new arm starts."""
    effective_parameters: float
    """The number of parameters that the rewards determine; the others are determined by the prior."""
    evidence: float
    """The log density of all rewards learned, at these settings."""
    groups: tuple[LearnedGroup, ...]
    """The groups of features of x, then of z."""


class Moments(NamedTuple):
    """Moments of many rewards and their features, in addition to the rows that summarise them.

    `seen` and `sums` say of each feature of x, then of z, in how many of the summarised rows it was not 0, and its sum
    over them; `spread` is the sum of the squared deviations of rewards from their `mean`.
    """

    seen: Slots
    sums: FloatArray
    mean: float
    spread: float


def checked_groups(groups: Any, d1: int, d2: int) -> Groups | None:
    """Return groups as tuples; raise an error unless they are one whole number for every column of x and of z."""
    if groups is None:
        return None
    remedy = "pass groups=(x_groups, z_groups) with one whole number for each column, or None for one group of all"
    try:
        parts = list(groups)
        given = [None if part is None else [*getattr(part, "tolist", lambda part=part: part)()] for part in parts]
    except TypeError:
        raise TypeError(f"groups must be a pair of lists, got {checks.short(groups)}: {remedy}") from None
    if len(parts) != 2:
        raise ValueError(f"groups must have two parts, got {len(parts)}: {remedy}")
    for name, d, part in zip("xz", (d1, d2), given, strict=True):
        if part is None:
            continue
        if len(part) != d:
            raise ValueError(f"groups has {len(part)} groups for the {d} columns of {name}: {remedy}")
        for k, number in enumerate(part):
            if not isinstance(number, int | np.integer) or isinstance(number, bool):
                raise TypeError(f"the group of {name}[{k}] is {number!r}, which is not a whole number: {remedy}")
    x_groups, z_groups = (None if part is None else tuple(map(int, part)) for part in given)
    return x_groups, z_groups


def fixed_point(step: Callable[[FloatArray], FloatArray], start: FloatArray) -> FloatArray:
    """The limit of repeated steps, to CONVERGED, by Anderson's acceleration.

    The next point is the combination of the last steps whose changes, combined alike, cancel best. Where that has led
    further away, earlier steps are dropped.
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


class LearnedModel:
    """Data, settings and posterior of one model (see `kernels/evidence.py`), by slots instead of ids."""

    scoring: tuple[FloatArray, FloatArray, Any, Any]
    """Arguments of the kernels that score and choose: the blocks, the state and the features."""

    def __init__(
        self, d1: int, d2: int, noise: float | None, memory: float | None, groups: Groups | None = None
    ) -> None:
        self.d1, self.d2 = d1, d2
        x_groups, z_groups = groups or (None, None)
        named = [*(("x", group) for group in x_groups or d1 * [0]), *(("z", group) for group in z_groups or d2 * [0])]
        self.groups = list(dict.fromkeys(named))
        self.fixed_noise = noise is not None
        self.large = d1 + d2 > evidence.LARGE
        self.unfinished: Unfinished | None = None
        indices, numbers, p = np.zeros(0, np.int64), np.zeros(0), d1 + d2
        shared, both = arrow.factor_size(d1, 0), arrow.factor_size(p, 0)
        self.arrays = evidence.Model(
            evidence.Data(numbers, numbers, np.zeros(shared), np.zeros(d1), np.zeros(both), np.zeros(p)),
            evidence.Arms(indices, indices, indices, indices, numbers, numbers),
            evidence.Posterior(
                numbers,
                numbers,
                np.zeros(shared),
                np.zeros(arrow.score_size(d1, 0)),
                np.full(shared + (arrow.triangle_size(d1) if self.large else 0), 0.0),  # written before the first row
                np.zeros(d1),
            ),
            np.zeros(1, evidence.STATE),
            np.zeros(p, evidence.FEATURE),
            np.zeros((d2, d2)),
            np.zeros(d2 * (d2 + 1) // 2),
        )
        state, features = self.state, self.arrays.features
        state.next, state.constant = 1, p
        state.rate = 0.0 if memory is None else 1.0 / memory
        state.sigma2 = 0.0 if noise is None else noise * noise
        features["group"] = [self.groups.index(each) for each in named]
        features["unknown"] = 1
        features["ridge"] = evidence.UNINFORMED
        self.reserve(1)
        self.clear(NEW_ARM)
        evidence.set_prior_triangle(features["ridge"][d1:].copy(), np.zeros((d2, d2)), self.arrays.prior)
        empirical_bayes.prior_block(NEW_ARM, d1, d2, self.arrays)
        posterior = self.arrays.posterior
        arrow.reset_block(posterior.shared_factor, 0, posterior.shared_score, 0, d1, 0, evidence.UNINFORMED)

    @property
    def state(self) -> Any:
        """The scalars, as a record; see `evidence.STATE`."""
        return self.arrays.state[0]

    @property
    def listed(self) -> tuple[np.ndarray, ...]:
        """All arrays, in the order of `memories.model_at`."""
        data, arms, posterior, *others = self.arrays
        return *data, *arms, *posterior, *others

    @property
    def capacity(self) -> int:
        """The number of slots."""
        return len(self.arrays.arms.pulls)

    def reserve(self, capacity: int) -> None:
        """Grow to this number of slots."""
        d1, d2 = self.d1, self.d2
        f, h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
        data, arms, posterior = self.arrays.data, self.arrays.arms, self.arrays.posterior
        data = data._replace(arm=grown(data.arm, capacity * f), arm_rhs=grown(data.arm_rhs, capacity * d2))
        posterior = posterior._replace(
            arm_factor=grown(posterior.arm_factor, capacity * f), arm_score=grown(posterior.arm_score, capacity * h)
        )
        arms = evidence.Arms(*(grown(array, capacity) for array in arms))
        self.arrays = self.arrays._replace(data=data, arms=arms, posterior=posterior)
        state, features = self.arrays.state, self.arrays.features
        self.scoring = posterior.arm_score, posterior.shared_score, state, features

    def clear(self, slot: int) -> None:
        """Let a slot be that of an arm without data."""
        data, arms = self.arrays.data, self.arrays.arms
        data.arm.reshape(self.capacity, -1)[slot] = 0.0
        data.arm_rhs.reshape(self.capacity, -1)[slot] = 0.0
        arms.place[slot] = -1
        arms.rank[slot] = arms.pulls[slot] = arms.clock[slot] = arms.weight[slot] = 0

    def _named(self) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Return all arrays by name: those with a row for every slot, and the others."""
        by_slot, others = {}, self.arrays._asdict()
        for part in ("data", "arms", "posterior"):
            for name, array in others.pop(part)._asdict().items():
                if part == "arms" or name.startswith("arm"):
                    by_slot[f"{part}_{name}"] = array.reshape(self.capacity, -1)
                else:
                    others[f"{part}_{name}"] = array
        return by_slot, others

    def continue_from(self, other: Self) -> None:
        """Become a copy of another model with the same capacity."""
        for mine, theirs in zip(self._named(), other._named(), strict=True):
            for name, array in mine.items():
                array[...] = theirs[name]
        self.unfinished = deepcopy(other.unfinished)

    def copy(self) -> Self:
        """Return an independent copy."""
        return deepcopy(self)

    @property
    def in_order(self) -> Slots:
        """The slots of arms that have learned, in the order in which they first did."""
        order: Slots = self.arrays.arms.order[: self.state.arms]
        return order

    @property
    def ready(self) -> bool:
        """True if the posterior is at learned settings."""
        return bool(self.state.ready)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise; 0 while it is unknown."""
        return math.sqrt(self.state.sigma2_in_use)

    @property
    def common_mean(self) -> FloatArray:
        """The prior mean of an arm's own parameters."""
        mean: FloatArray = self.arrays.features["m_in_use"][self.d1 :].copy()
        return mean

    @property
    def theta(self) -> FloatArray:
        """The shared parameter."""
        return theta_of(self.arrays.posterior.shared_score, self.d1)

    def beta_at(self, slot: int) -> FloatArray:
        """Return the own parameter of the arm with this slot; -1 is an arm that has not learned."""
        return self.common_mean if slot < 0 else beta_of(self.arrays.posterior.arm_score, slot, self.theta, self.d2)

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        """Return means and widths of checked candidates."""
        mean, width = np.empty(len(slots)), np.empty(len(slots))
        if not empirical_bayes.score_at_learned(x, z, slots, *self.scoring, mean, width):
            raise not_finite(x, z)
        return Prediction(mean, width)

    def settings(self) -> LearnedSettings | None:
        """The settings in use, with the evidence for them; None while there are none."""
        if not self.ready:
            return None
        arrays, known, own_known = self._explained()
        state = arrays.state[0]
        ridges = self.arrays.features["ridge"]
        scales: FloatArray = np.where(ridges == evidence.UNINFORMED, np.nan, self.noise / np.sqrt(ridges))
        groups = tuple(self._group(place, known, own_known) for place in range(len(self.groups)))
        return LearnedSettings(
            self.noise, scales[: self.d1], scales[self.d1 :], self.common_mean, float(state.parameters),
            float(state.evidence), groups,
        )  # fmt: skip

    def _group(self, place: int, known: FloatArray, own_known: FloatArray) -> LearnedGroup:
        """Return a group, given the effective parameters of theta and m in each, and of each of the arms' own."""
        part, number = self.groups[place]
        features = self.arrays.features
        (members,) = np.nonzero(features["group"] == place)
        varied = features["varied"][members].any()
        scale = math.sqrt(features["scale"][members[0]]) if varied else math.nan
        if part == "x":
            return LearnedGroup("x", number, tuple(members.tolist()), scale, math.nan, float(known[place]))
        columns = members - self.d1
        own = math.sqrt(features["s2"][members].mean())
        total = float(known[place] + own_known[columns].sum())
        return LearnedGroup("z", number, tuple(columns.tolist()), own, scale, total)

    def evidence_for(self, sigma2: float) -> float:
        """The log evidence for the present scales at this sigma^2."""
        return float(self._explained(sigma2)[0].state[0].evidence)

    def _explained(self, sigma2: float | None = None) -> tuple[evidence.Model, FloatArray, FloatArray]:
        """Copies of the arrays after a step, with the evidence for the present settings or another sigma^2.

        With them come the effective numbers of parameters that `evidence.step` returns.
        """
        probe = self.copy() if self.state.clock > 0.0 else self
        probe.fade_all()
        arrays = probe._with_own_settings()
        if sigma2 is not None:
            arrays.state[0].sigma2 = sigma2
        return arrays, *probe._step(arrays)

    def _with_own_settings(self) -> evidence.Model:
        """The same data with a copy of everything that a step changes."""
        arrays = self.arrays
        return arrays._replace(
            state=arrays.state.copy(), features=arrays.features.copy(), mean_spread=arrays.mean_spread.copy()
        )

    def _step(self, arrays: evidence.Model) -> tuple[FloatArray, FloatArray]:
        """One fixed-point step over all arms; their data are up to date."""
        if self.large and self.arrays.arms.rank[self.in_order].sum() <= self.d1 + self.d2:
            step = large.with_buffers(large.begin_step(self.in_order, self.d1, self.d2, arrays), self.d1)
            large.advance(step, self.d1, self.d2, math.inf)
            return large.finish_step(step, self.d1, self.d2, arrays, 0.0, self.fixed_noise)  # type: ignore[no-any-return]
        known: tuple[FloatArray, FloatArray] = evidence.step(
            self.in_order, self.d1, self.d2, arrays, 0.0, self.fixed_noise
        )
        return known

    def fade(self, rows: float) -> None:
        """Age everything that has been learned by so many rows."""
        if self.state.rate > 0.0:
            empirical_bayes.fade(rows, self.d1, self.d2, self.arrays)

    def fade_all(self) -> None:
        """Bring the data of all arms up to date."""
        empirical_bayes.fade_arms(self.in_order, self.d1, self.d2, self.arrays)

    def refresh(self) -> None:
        """Estimate the settings to 1e-10 from all that has been learned, in whatever order, and apply them.

        It starts from the centres, which depend on the data alone, and takes ten to forty steps over all arms.
        """
        if self.state.squares == 0.0:
            return
        self.fade_all()
        arrays = self._with_own_settings()
        state, features = arrays.state[0], arrays.features
        groups = [features["group"] == place for place in range(len(self.groups))]
        features["scale"] = features["s2"] = 0.0  # whatever is 0 begins at its centre
        if not self.fixed_noise:
            state.sigma2 = 0.0
        self._step(arrays)
        own = slice(self.d1, None)
        unit = 2.0 ** np.frexp(state.squares)[1]  # a power of two, so that units do not matter to the bit

        def scales() -> FloatArray:
            of_groups = [features["scale"][group][0] for group in groups]
            first = [] if self.fixed_noise else [state.sigma2]
            return np.array([*first, *of_groups, *features["s2"][own]])

        known = scales() > 0.0

        def logarithms() -> FloatArray:
            values: FloatArray = np.log(scales()[known] / unit)
            return values

        def put(values: FloatArray) -> None:
            after = scales()
            after[known] = unit * np.exp(values)
            if not self.fixed_noise:
                state.sigma2, after = after[0], after[1:]
            for group, scale in zip(groups, after, strict=False):
                features["scale"][group] = scale
            features["s2"][own] = after[len(groups) :]

        def step(values: FloatArray) -> FloatArray:
            put(values)
            self._step(arrays)
            return logarithms()

        put(fixed_point(step, logarithms()))
        self.arrays.state[:] = arrays.state
        self.arrays.features[:] = arrays.features
        self.arrays.mean_spread[:] = arrays.mean_spread
        self.state.refreshes += 1
        self.state.due = 0
        self.rebuild()

    def rebuild(self) -> None:
        """Build the posterior factors from the data, at the present settings if there are any."""
        self.state.phase = 1
        self._begin_rebuilding()
        self.continue_refresh(math.inf)

    def _begin_rebuilding(self) -> None:
        self.unfinished = None
        if self.state.refreshes > 0:
            empirical_bayes.apply_settings(self.d1, self.d2, self.arrays)
        if self.large:
            self.unfinished = Unfinished(*empirical_bayes.begin_rebuilding_large(self.d1, self.d2, self.arrays))
        else:
            empirical_bayes.begin_rebuilding(self.d1, self.d2, self.arrays)

    def continue_refresh(self, budget: float) -> None:
        """Continue a refresh, steps first, then arm by arm, until it is done or the budget of this row is spent."""
        d1, d2, state = self.d1, self.d2, self.state
        spent = 0.0
        if self.large:
            while state.phase > 1 and spent < budget:
                spent += self._continue_step(budget - spent)
            if self.unfinished is not None and state.phase == 1 and spent < budget:
                assert self.unfinished.rows is not None
                rows = large.Rebuilding(self.unfinished.rows, self.unfinished.at)
                spent += large.add_copied_rows(rows, d1, self.arrays, budget - spent)
                if rows.at[0] == rows.at[1]:
                    self.unfinished = None
            if self.unfinished is not None or state.phase > 1 or spent >= budget:
                return
        while state.phase > 1:
            slots, left_out, cost = empirical_bayes.arms_of_step(d1, d2, self.arrays.arms, state, BUDGET)
            empirical_bayes.fade_arms(slots, d1, d2, self.arrays)
            evidence.step(slots, d1, d2, self.arrays, left_out, self.fixed_noise)
            state.phase -= 1
            spent += cost
            if state.phase == 1:
                self._begin_rebuilding()
            if 2.0 * spent >= budget:  # another step may cost as much
                return
        empirical_bayes.rebuild(d1, d2, self.arrays, spent, budget)

    def _continue_step(self, budget: float) -> float:
        """Continue a step in slices, or begin one; returns how many operations were spent."""
        d1, d2, state = self.d1, self.d2, self.state
        part = self.unfinished
        spent = 0.0
        if part is None:
            p = d1 + d2
            slots, left_out, _ = empirical_bayes.arms_of_step(d1, d2, self.arrays.arms, state, max(BUDGET, 2.0 * p**3))
            empirical_bayes.fade_arms(slots, d1, d2, self.arrays)
            own = self._with_own_settings()
            step = large.with_buffers(large.begin_step(slots, d1, d2, own), d1)
            part = Unfinished(
                step=step, state=own.state, features=own.features, mean_spread=own.mean_spread,
                left_out=np.array([left_out]),
            )  # fmt: skip
            self.unfinished = part
            spent = 4.0 * len(step.rows.values)
        assert part.step is not None
        spent += float(large.advance(part.step, d1, d2, budget - spent))
        if part.step.at[0] == large.DONE:
            own = self.arrays._replace(state=part.state, features=part.features, mean_spread=part.mean_spread)
            assert part.left_out is not None
            large.finish_step(part.step, d1, d2, own, float(part.left_out[0]), self.fixed_noise)
            for name in ("sigma2", "evidence", "parameters"):
                state[name] = part.state[0][name]
            for name in ("scale", "s2", "m"):
                self.arrays.features[name] = part.features[name]
            self.arrays.mean_spread[:] = part.mean_spread
            self.unfinished = None
            state.phase -= 1
            if state.phase == 1:
                self._begin_rebuilding()
                spent += 4.0 * d1 * d1
        return spent

    def marginalise(self, slot: int) -> None:
        """Integrate an arm out of the data, at the settings in use."""
        d1, d2, state, arms = self.d1, self.d2, self.state, self.arrays.arms
        at, count = int(arms.place[slot]), int(state.arms)
        if state.phase == 1 and state.cursor <= at < state.end:
            empirical_bayes.rebuild_arm(slot, d1, d2, self.arrays)
        empirical_bayes.marginalise(slot, d1, d2, self.arrays)
        arms.order[at : count - 1] = arms.order[at + 1 : count]
        arms.place[arms.order[at : count - 1]] -= 1
        arms.order[count - 1] = arms.place[slot] = -1
        state.arms -= 1
        state.cursor -= at < state.cursor
        state.end -= at < state.end

    def add_rows(
        self, slots: Slots, x: FloatArray, z: FloatArray, values: FloatArray, rows: int, moments: Moments
    ) -> None:
        """Add the data of a summary of so many rows to a new model; settings and posterior stay as they are."""
        empirical_bayes.add_data(slots, x, z, values, self.arrays)
        state, features, arms = self.state, self.arrays.features, self.arrays.arms
        arms.weight[:] = arms.pulls
        state.mean_reward, state.spread = moments.mean, moments.spread
        state.squares = values @ values
        features["squares"] = np.concatenate([(x * x).sum(axis=0), (z * z).sum(axis=0)])
        features["seen"] = moments.seen
        squared = rows * features["squares"]
        features["varied"] = squared - np.asarray(moments.sums) ** 2 > ROUNDING * squared
        features["usual"] = np.asarray(moments.sums) / rows
        state.rows = state.weight = rows
        if state.rate > 0.0:  # on average, rows in random order weigh (1 - exp(-rows rate)) / (rows rate)
            self.fade(-np.log(-np.expm1(-rows * state.rate) / (rows * state.rate)) / state.rate)

    def add(self, other: Self, slots: list[tuple[int, int]]) -> None:
        """Add another model's data; slots: pairs of this model's and the other's. `refresh` or `rebuild` follows."""
        if other.state.clock > 0.0:
            other = other.copy()
            other.fade_all()
        d1, d2, mine, theirs = self.d1, self.d2, self.state, other.state
        for slot, source in slots:
            empirical_bayes.add_arm_of(slot, source, d1, d2, other.arrays.data, self.arrays)
            self.arrays.arms.pulls[slot] += other.arrays.arms.pulls[source]
            self.arrays.arms.weight[slot] += other.arrays.arms.weight[source]
        data, more_data = self.arrays.data, other.arrays.data
        mine.residual += evidence.reflect_triangle(
            data.shared, data.shared_rhs, d1, more_data.shared, more_data.shared_rhs, d1
        )
        mine.residual += evidence.reflect_triangle(
            data.dropped, data.dropped_rhs, d1 + d2, more_data.dropped, more_data.dropped_rhs, d1 + d2
        )
        rows, more = mine.weight, theirs.weight
        mine.residual += theirs.residual
        if more:
            difference = theirs.mean_reward - mine.mean_reward
            mine.mean_reward += difference * more / (rows + more)
            mine.spread += theirs.spread + difference**2 * rows * more / (rows + more)
        mine.squares += theirs.squares
        mine.log_det_dropped += theirs.log_det_dropped
        features, others = self.arrays.features, other.arrays.features
        for name in ("squares", "seen", "dropped_squares", "dropped_count"):
            features[name] += others[name]
        if mine.rows == 0:
            features["usual"] = others["usual"]
        if more:
            usual = features["usual"]
            changed = np.abs(others["usual"] - usual) > evidence.CONSTANT * np.abs(usual)
            features["varied"] |= others["varied"] | changed
        mine.weight += more
        mine.rows += theirs.rows
        mine.next = max(mine.next, mine.rows + 1)

    def blocks(self) -> dict[str, np.ndarray]:
        """Every array that is saved: the block of new arms, then those of arms in the order in which they learned."""
        slots = np.concatenate(([NEW_ARM], self.in_order)).astype(np.int64)
        by_slot, others = self._named()
        saved = {name: array[slots] for name, array in by_slot.items() if name not in DERIVED}
        unfinished = {} if self.unfinished is None else self.unfinished.arrays()
        return saved | {name: array.copy() for name, array in others.items()} | unfinished

    def put_back(self, arrays: dict[str, np.ndarray], rounds: int) -> None:
        """Restore the arrays of `blocks` in a new model; raise FileError if the parts do not fit together."""
        n, groups = len(arrays["arms_pulls"]), self.arrays.features["group"].copy()
        self.reserve(max(n, 1))
        by_slot, others = self._named()
        for name, array in (by_slot | others).items():
            if name not in DERIVED:
                put_back(name, array, arrays[name])
        self.unfinished = put_together(arrays, self.d1, self.d2)
        arms, state = self.arrays.arms, self.state
        arms.place[:] = np.arange(-1, n - 1)
        arms.order[: n - 1] = np.arange(1, n)
        if (self.arrays.features["group"] != groups).any():
            raise FileError("the groups of the features are not the policy's: the file is corrupt")
        diagonal = by_slot["data_arm"][:, diagonal_of(self.d2, self.d1)]
        arms.rank[:] = (diagonal != 0.0).sum(axis=1)
        if (
            state.rows != rounds
            or state.arms != n - 1
            or (diagonal < 0).any()
            or not 0 <= state.cursor <= state.end < n
            or not 0 <= state.inverted <= self.d1
            or (self.unfinished is not None and state.phase != 1 and self.unfinished.step is None)
            or (self.unfinished is not None and state.phase < 2 and self.unfinished.step is not None)
        ):
            raise FileError("the state of the refresh does not fit the arms: the file is corrupt")


class LearnedRidge(OnlineEstimator):
    """The hybrid estimator with noise, scales and a common mean of the arms learned from the rewards.

    The settings are estimated again at fixed numbers of rows; a long refresh is spread over the rows that follow. See
    `kernels/empirical_bayes.py`.

    Parameters
    ----------
    d1, d2
        As for `HybridRidge`.
    noise : float, optional
        Fix the standard deviation of the noise instead of learning it.
    memory : float or "auto", optional
        A row of age t, counted in rows, has the weight exp(-t / memory). By default nothing is forgotten. With "auto"
        there are three models: one that never forgets, and memories of 16 P and 4 P rows, where
        P = d1 + d2 x (arms that have learned) is the number of parameters. Weights say how well each has predicted,
        see `kernels/memories.py`. What is read (`score`, `theta`, `beta`, settings) is that of the heaviest model.
    groups : pair of sequences of int, optional
        The group of every column of x, and of z. Parameters of one group have a scale of their own. By default all
        columns of x are in one group, and so are those of z.

    Attributes
    ----------
    models : tuple of LearnedModel
        The one model, or the three, the one that never forgets first.
    weights : array of shape (4,) or (0,)
        The weights of three models, and at how many refreshes running the first has weighed next to nothing.
    """

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        memory: float | Literal["auto"] | None = None,
        groups: Any = None,
    ) -> None:
        super().__init__(d1, d2)
        groups = checked_groups(groups, self.d1, self.d2)
        self.settings = {"noise": noise, "memory": memory, "groups": groups}
        count, rows = (memories.MODELS, None) if memory == AUTO else (1, memory)
        self.weights: FloatArray = np.array([*memories.SHARES, 0.0] if count > 1 else [])
        self.models = tuple(LearnedModel(self.d1, self.d2, noise, rows, groups) for _ in range(count))
        self._grow(1)
        if count > 1:
            memories.set_memories(self.d1, self.d2, self.addresses)
        self._used = 1

    def __repr__(self) -> str:
        shares = "".join(f", weight {weight:.2f}" for weight in self.weights[:-1])
        return (
            f"LearnedRidge(d1={self.d1}, d2={self.d2}): {self.known} arms known, "
            f"{len(self.models[0].in_order)} have learned, {self.rounds} rows{shares}"
        )

    @property
    def heaviest(self) -> LearnedModel:
        """The model with the largest weight."""
        return self.models[int(memories.heaviest(self.weights))]

    def drawn(self, stream: RandomStream) -> LearnedModel:
        """The model that takes a decision."""
        if len(self.models) == 1:
            return self.models[0]
        return self.models[int(memories.draw_model(self.weights, stream.key, stream.keyed, stream.decision))]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, reserves included (not of the ids)."""
        unfinished = (model.unfinished for model in self.models)
        arrays = sum(array.nbytes for model in self.models for array in model.listed)
        return arrays + sum(part.nbytes for part in unfinished if part is not None)

    def _grow(self, capacity: int) -> None:
        self._reserve(capacity)
        self._bind()

    def _bind(self) -> None:
        self.pulls = self.models[0].arrays.arms.pulls
        self.addresses = table_of([[*model.listed, self.weights] for model in self.models])

    def _reserve(self, capacity: int) -> None:
        for model in self.models:
            model.reserve(capacity)

    def _clear(self, slot: int) -> None:
        for model in self.models:
            model.clear(slot)

    def _learn_row(self, slot: int, x: FloatArray, z: FloatArray, reward: float) -> bool:
        outcome = memories.learn_by_all(slot, x, z, reward, self.addresses)
        if outcome > 1:
            self.continue_refreshes(outcome)
        return bool(outcome)

    def _learn_rows(self, slots: Slots, x: FloatArray, z: FloatArray, rewards: FloatArray) -> None:
        learned = 0
        while learned < len(slots):
            learned, outcome = memories.learn_until_refresh(learned, slots, x, z, rewards, self.addresses)
            self.continue_refreshes(outcome)

    def continue_refreshes(self, outcome: int) -> None:
        """Continue the refreshes of all models after an outcome of `learn_by_all`; replace the first if it is lost."""
        for model in self.models:
            if outcome > 1 and model.state.phase > 0:
                model.continue_refresh(BUDGET / len(self.models))
        if outcome == 3:
            weights, lost = self.weights, memories.LOST_TIMES
            weights[lost] = weights[lost] + 1.0 if weights[0] < memories.LOST else 0.0
            if weights[lost] >= 2.0:
                best = memories.heaviest(weights)
                state = self.models[0].state
                self.models[0].continue_from(self.models[best])
                state.rate = 0.0
                state.next = state.rows + empirical_bayes.rows_between(state)
                weights[lost] = 0.0
                weights[0] = weights[best] = 0.5 * (weights[0] + weights[best])  # for now they are the same

    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        pulls: Mapping[Hashable, int],
        moments: Moments | None,
    ) -> None:
        """Learn rows that summarise many rewards (rows of zero features hold the residuals); estimate the settings."""
        if moments is None:
            raise ValueError("moments is None: pass moments=Moments(..), or use learn_batch on the rows")
        ids, x, z, values = checked_feedback(arms, x, z, rewards, self.d1, self.d2)
        rows = sum(pulls.values())
        other = type(self)(d1=self.d1, d2=self.d2, **self.settings)  # type: ignore[arg-type]
        for arm in dict.fromkeys(ids):
            slot = other._new_slot(arm)
            for model, mine in zip(other.models, self.models, strict=True):
                model.arrays.arms.pulls[slot] = pulls.get(arm, 0)
                model.state.rate = mine.state.rate
        for model in other.models:
            model.add_rows(other.lookup(ids), x, z, values, rows, moments)
        other.rounds = rows
        self.merge(other)

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        return self.heaviest.score(x, z, slots)

    @property
    def theta(self) -> FloatArray:
        """The shared parameter of the heaviest model."""
        return self.heaviest.theta

    def beta_at(self, slot: int) -> FloatArray:
        return self.heaviest.beta_at(slot)

    def refresh(self) -> None:
        """Estimate the settings of every model again."""
        for model in self.models:
            model.refresh()

    def forget(self, arm: Hashable) -> None:
        """Drop an arm, with its own parameters integrated out at the present settings; what it taught others stays."""
        slot = self.slot(arm)
        if slot >= 0:
            for model in self.models:
                model.marginalise(slot)
        super().forget(arm)

    def sound(self) -> bool:
        return all(are_sound(*model.arrays.posterior[:4], self._used, self.d1, self.d2) for model in self.models)

    def _take_in(self, other: Self) -> None:
        mine, theirs = (each.models[0].arrays.features["group"] for each in (self, other))
        if (mine != theirs).any():
            raise ValueError("cannot merge estimators with different groups: construct both alike")
        owner = {slot: arm for arm, slot in other.learned.items()}
        slots = [(self.slot_for(owner[source]), source) for source in other.models[0].in_order.tolist()]
        for model in self.models:
            model.fade(float(other.rounds))
        if len(self.models) > 1 and self.rounds == 0:
            self.weights[:] = other.weights
        elif len(self.models) > 1 and all(model.ready for model in self.models):
            self._weigh(other, slots)
        for model, theirs in zip(self.models, other.models, strict=True):
            model.add(theirs, slots)
            if model.state.squares > 0.0:
                model.refresh()
            else:
                model.rebuild()
        if len(self.models) > 1:
            memories.set_memories(self.d1, self.d2, self.addresses)
        self.admit(other.arms)
        self.rounds += other.rounds

    def _weigh(self, other: Self, slots: list[tuple[int, int]]) -> None:
        """Weigh the models by the evidence for the data of the other's first model."""
        sigma2 = float(self.heaviest.state.sigma2_in_use)
        logs = np.empty(memories.MODELS)
        for k, model in enumerate(self.models):
            both = model.copy()
            both.add(other.models[0], slots)
            logs[k] = both.evidence_for(sigma2) - model.evidence_for(sigma2)
        weights = self.weights[: memories.MODELS] * np.exp(logs - logs.max())
        share = other.rounds / (self.rounds + 1.0 + other.rounds)  # what so many shares of 1 / (t + 2) come to
        self.weights[: memories.MODELS] = (1.0 - share) * weights / weights.sum() + share * np.array(memories.SHARES)

    def _settings(self) -> dict[str, Any]:
        return self.settings

    def _arrays(self, slots: Slots) -> dict[str, np.ndarray]:
        places = np.where(slots >= 0, self.models[0].arrays.arms.place[slots], -1)
        arrays = {"slots": places, "weights": self.weights.copy()}
        for k, model in enumerate(self.models):
            arrays |= {f"{k}.{name}": array for name, array in model.blocks().items()}
        return arrays

    def _put_back(self, arms: list[Hashable], arrays: dict[str, np.ndarray]) -> None:
        for k, model in enumerate(self.models):
            start = f"{k}."
            blocks = {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
            model.put_back(blocks, self.rounds)
            policy_file.check_slots(arms, arrays["slots"], model.arrays.arms.pulls[1:])
        put_back("weights", self.weights, arrays["weights"])
        if len(self.weights) and not ((self.weights >= 0).all() and abs(self.weights[:-1].sum() - 1.0) < 1e-6):
            raise FileError(f"weights are {self.weights.tolist()}, which must sum to 1: the file is corrupt")
        self._bind()
