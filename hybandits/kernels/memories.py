"""Several models of the same rewards with different memories, weighted by how well they predict.

The first never forgets, the others have memories of 16 P and 4 P rows, where P = d1 + d2 x (arms that have learned) is
the number of parameters. Before a reward is learned, every model says how likely it is, at one sigma for all:

    w_k <- w_k N(r; mean_k, sigma^2 (1 + width_k^2)),     then     w_k <- (1 - a) w_k + a share_k,     a = 1 / (t + 2)

after t rewards: the fixed share of Herbster and Warmuth, which lets a model come back that was bad for a while. The
model that decides is drawn by weight. The first one cannot forget by itself what no longer holds, so where it has lost
its weight for good it goes on from a copy of the heaviest, and the two share their weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import LIMIT, within_limit
from hybandits.kernels.decisions import choose_tuned
from hybandits.kernels.empirical_bayes import (
    BUDGET,
    COUNT,
    NEXT,
    PHASE,
    REFRESHES,
    ROWS,
    SWEPT,
    Arrays,
    advance,
    learn_row_tuned,
    rows_between,
    score_tuned,
)
from hybandits.kernels.evidence import PLAYED, RATE
from hybandits.kernels.random import MODEL, uniform

MODELS = 3
MEMORIES = (0.0, 16.0, 4.0)
"""Memories of the models, in numbers of parameters; 0: it never forgets."""
SHARES = (0.9, 0.05, 0.05)
"""What each model gets of the share, and where weights begin."""
LOST = 0.01
"""If the first model weighs less than this at two refreshes of the last one running, it begins anew."""
LOST_TIMES = MODELS
"""The place in `weights`, behind the weights themselves, that counts these refreshes."""


@kernel
def heaviest(weights):
    """The model with the largest weight."""
    best = 0
    for k in range(1, MODELS):
        if weights[k] > weights[best]:
            best = k
    return best


@kernel
def draw_model(weights, key, keyed, decision):
    """The model that takes a decision, drawn by weight."""
    left = uniform(key, MODEL + keyed, decision)
    for k in range(MODELS - 1):
        left -= weights[k]
        if left < 0.0:
            return k
    return MODELS - 1


@kernel
def choose_mixed(rule, x, z, slots, models, weights, key, keyed, decision):
    """`choose_tuned` by the only model, or by one drawn for this decision."""
    model = models[draw_model(weights, key, keyed, decision) if len(models) > 1 else 0]
    return choose_tuned(
        rule, x, z, slots, model.arm_score, model.shared_score, model.numbers, model.unknown, model.state, key, keyed,
        decision,
    )  # fmt: skip


@kernel
def weigh(slot, x, z, reward, models, weights):
    """Weigh the models by how likely they think a reward is that they have not learned."""
    one_x = x.reshape((1, x.shape[0]))
    one_z = z.reshape((1, z.shape[0]))
    where = np.full(1, slot if models[0].place[slot] >= 0 else -1)
    mean = np.empty(1)
    width = np.empty(1)
    sigma2 = models[heaviest(weights)].numbers[PLAYED]
    logs = np.empty(MODELS)
    largest = -np.inf
    for k in range(MODELS):
        arrays = models[k]
        score_tuned(
            one_x, one_z, where, arrays.arm_score, arrays.shared_score, arrays.numbers, arrays.unknown, arrays.state,
            mean, width,
        )  # fmt: skip
        variance = 1.0 + width[0] * width[0]
        error = reward - mean[0]
        logs[k] = -0.5 * (math.log(variance) + error * error / (sigma2 * variance))
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(MODELS):
        weights[k] *= math.exp(logs[k] - largest)
        total += weights[k]
    a = 1.0 / (models[0].state[ROWS] + 2.0)
    for k in range(MODELS):
        weights[k] = (1.0 - a) * weights[k] / total + a * SHARES[k]


def begin_anew(arrays: Arrays, best: Arrays) -> None:
    """Let the model that never forgets go on from a copy of another one."""
    for mine, its in zip(arrays, best, strict=True):
        mine[:] = its
    arrays.numbers[RATE] = 0.0
    arrays.state[NEXT] = arrays.state[ROWS] + rows_between(arrays.numbers)


@kernel
def set_memories(d1, d2, models):
    """Memories follow the number of parameters: 16 P and 4 P."""
    parameters = d1 + d2 * max(models[0].state[COUNT], 1)
    for k in range(1, MODELS):
        models[k].numbers[RATE] = 1.0 / (MEMORIES[k] * parameters)


@kernel
def learn_row_mixed(slot, x, z, reward, models, weights):
    """Weigh the models by a row, and let them learn it.

    Returns 0, with nothing changed, if a number is not finite or beyond LIMIT; 2 if a refresh is to go on now, and 3 if
    that of the last model begins, by `go_on`; otherwise 1.
    """
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return 0
    ready = True
    for k in range(MODELS):
        ready = ready and models[k].state[SWEPT] == 1
    if ready:
        weigh(slot, x, z, reward, models, weights)
    set_memories(x.shape[0], z.shape[0], models)
    refreshes = models[MODELS - 1].state[REFRESHES]
    outcome = 1
    for k in range(MODELS):
        outcome = max(outcome, learn_row_tuned(slot, x, z, reward, models[k]))
    return 3 if models[MODELS - 1].state[REFRESHES] > refreshes else outcome


@kernel
def learn_until_refresh_mixed(first, slots, x, z, rewards, models, weights):
    """`learn_row_mixed` for the rows from the first on, until a refresh is to go on; which row comes next, and why."""
    for i in range(first, slots.shape[0]):
        outcome = learn_row_mixed(slots[i], x[i], z[i], rewards[i], models, weights)
        if outcome > 1:
            return i + 1, outcome
    return slots.shape[0], 1


def go_on(outcome: int, d1: int, d2: int, models: tuple[Arrays, ...], weights: Any, held: tuple[bool, bool]) -> None:
    """Go on with the refreshes of all models, after this outcome of `learn_row_mixed`; then see if the first is lost.

    One model may be alone, and then has no weights.
    """
    for arrays in models:
        if arrays.state[PHASE] > 0:
            advance(d1, d2, arrays, held, BUDGET / len(models))
    if outcome == 3:
        weights[LOST_TIMES] = weights[LOST_TIMES] + 1.0 if weights[0] < LOST else 0.0
        if weights[LOST_TIMES] >= 2.0:
            best = heaviest(weights)
            begin_anew(models[0], models[best])
            weights[LOST_TIMES] = 0.0
            weights[0] = weights[best] = 0.5 * (weights[0] + weights[best])  # for now they are the same


def learn_mixed(
    slot: int, x: Any, z: Any, reward: float, models: tuple[Arrays, ...], weights: Any, held: tuple[bool, bool]
) -> bool:
    """Learn a row, and go on with refreshes where they are due; False, with nothing changed, if it is refused."""
    outcome = learn_row_mixed(slot, x, z, reward, models, weights)
    if outcome > 1:
        go_on(outcome, x.shape[0], z.shape[0], models, weights, held)
    return bool(outcome)


def learn_rows_mixed(
    slots: Any, x: Any, z: Any, rewards: Any, models: tuple[Arrays, ...], weights: Any, held: tuple[bool, bool]
) -> None:
    """`learn_mixed` for rows that have been checked, in order."""
    learned = 0
    while learned < len(slots):
        learned, outcome = learn_until_refresh_mixed(learned, slots, x, z, rewards, models, weights)
        if outcome > 1:
            go_on(outcome, x.shape[1], z.shape[1], models, weights, held)
