"""Several models of the same rewards with different memories, weighted by how well they predict.

The first never forgets, the others have memories of 16 P and 4 P rows, where P = d1 + d2 x (arms that have learned) is
the number of parameters. Before a reward is learned, every model is weighted by its likelihood, at one sigma for all:

    w_k <- w_k N(r; mean_k, sigma^2 (1 + width_k^2)),     then     w_k <- (1 - a) w_k + a share_k,     a = 1 / (t + 2)

after t rewards: the fixed share of Herbster and Warmuth, from which a model can recover. The model that decides is
drawn by weight. The first one never forgets, so where it has lost its weight for good it continues from a copy of the
heaviest, and the two share their weights. A single model has no weights.

A table of models has one row for each: the arrays of `evidence.Model` in their order, then the weights (`model_at`).
"""

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.addresses import array_at
from hybandits.kernels.arrow import LIMIT, within_limit
from hybandits.kernels.empirical_bayes import learn_with_settings, score_at_learned
from hybandits.kernels.evidence import FEATURE, STATE, Arms, Data, Model, Posterior
from hybandits.kernels.random import MODEL, uniform

MODELS = 3
MEMORIES = (0.0, 16.0, 4.0)
"""Memories of the models, in numbers of parameters; 0: it never forgets."""
SHARES = (0.9, 0.05, 0.05)
"""Each model's part of the share, and the initial weights."""
LOST = 0.01
"""If the first model weighs less than this at two refreshes of the last one running, it is replaced."""
LOST_TIMES = MODELS
"""The place in `weights`, behind the weights themselves, that counts these refreshes."""

DATA, ARMS, POSTERIOR, STATE_AT, FEATURES_AT, MEAN_SPREAD, PRIOR, WEIGHTS = 0, 6, 12, 18, 19, 20, 21, 22
"""The columns of a table of models, in arrays."""


@kernel(inline=True)
def state_at(row):
    """The state of the model in this row of a table."""
    return array_at(row, STATE_AT, STATE)[0]


@kernel(inline=True)
def model_at(row, d2):
    """The model in this row of a table."""
    data = Data(
        array_at(row, DATA, np.float64), array_at(row, DATA + 1, np.float64), array_at(row, DATA + 2, np.float64),
        array_at(row, DATA + 3, np.float64), array_at(row, DATA + 4, np.float64), array_at(row, DATA + 5, np.float64),
    )  # fmt: skip
    arms = Arms(
        array_at(row, ARMS, np.int64), array_at(row, ARMS + 1, np.int64), array_at(row, ARMS + 2, np.int64),
        array_at(row, ARMS + 3, np.int64), array_at(row, ARMS + 4, np.float64), array_at(row, ARMS + 5, np.float64),
    )  # fmt: skip
    posterior = Posterior(
        array_at(row, POSTERIOR, np.float64), array_at(row, POSTERIOR + 1, np.float64),
        array_at(row, POSTERIOR + 2, np.float64), array_at(row, POSTERIOR + 3, np.float64),
        array_at(row, POSTERIOR + 4, np.float64), array_at(row, POSTERIOR + 5, np.float64),
    )  # fmt: skip
    mean_spread = array_at(row, MEAN_SPREAD, np.float64).reshape((d2, d2))
    prior = array_at(row, PRIOR, np.float64)
    return Model(
        data, arms, posterior, array_at(row, STATE_AT, STATE), array_at(row, FEATURES_AT, FEATURE), mean_spread, prior
    )


@kernel(inline=True)
def heaviest(weights):
    """The model with the largest weight; the first if there are no weights."""
    best = 0
    for k in range(1, weights.shape[0] - 1):
        if weights[k] > weights[best]:
            best = k
    return best


@kernel
def draw_model(weights, key, keyed, decision):
    """The model that takes a decision, drawn by weight."""
    last = weights.shape[0] - 2
    if last < 0:
        return 0
    remaining = uniform(key, MODEL + keyed, decision)
    for k in range(last):
        remaining -= weights[k]
        if remaining < 0.0:
            return k
    return last


@kernel
def update_weights(slot, x, z, reward, table, weights):
    """Multiply the weights by the likelihoods of a reward that the models have not learned."""
    one_x = x.reshape((1, x.shape[0]))
    one_z = z.reshape((1, z.shape[0]))
    slots = np.full(1, slot if array_at(table[0], ARMS + 1, np.int64)[slot] >= 0 else -1)
    mean = np.empty(1)
    width = np.empty(1)
    sigma2 = state_at(table[heaviest(weights)]).sigma2_in_use
    logs = np.empty(MODELS)
    largest = -np.inf
    for k in range(MODELS):
        row = table[k]
        score_at_learned(
            one_x, one_z, slots, array_at(row, POSTERIOR + 1, np.float64), array_at(row, POSTERIOR + 3, np.float64),
            array_at(row, STATE_AT, STATE), array_at(row, FEATURES_AT, FEATURE), mean, width,
        )  # fmt: skip
        variance = 1.0 + width[0] * width[0]
        error = reward - mean[0]
        logs[k] = -0.5 * (math.log(variance) + error * error / (sigma2 * variance))
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(MODELS):
        weights[k] *= math.exp(logs[k] - largest)
        total += weights[k]
    a = 1.0 / (state_at(table[0]).rows + 2.0)
    for k in range(MODELS):
        weights[k] = (1.0 - a) * weights[k] / total + a * SHARES[k]


@kernel
def set_memories(d1, d2, table):
    """Memories follow the number of parameters: 16 P and 4 P."""
    parameters = d1 + d2 * max(state_at(table[0]).arms, 1)
    for k in range(1, MODELS):
        state_at(table[k]).rate = 1.0 / (MEMORIES[k] * parameters)


@kernel
def learn_by_all(slot, x, z, reward, table):
    """Weigh the models by a row, and let them learn it.

    Returns 0, with nothing changed, if a number is not finite or beyond LIMIT; 2 if a refresh is to continue now, and 3
    if that of the last of several models begins; otherwise 1.
    """
    d1, d2 = x.shape[0], z.shape[0]
    weights = array_at(table[0], WEIGHTS, np.float64)
    if weights.shape[0] > 0:
        if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
            return 0
        ready = True
        for k in range(MODELS):
            ready = ready and state_at(table[k]).ready == 1
        if ready:
            update_weights(slot, x, z, reward, table, weights)
        set_memories(d1, d2, table)
    refreshes = state_at(table[-1]).refreshes
    outcome = 0
    for k in range(table.shape[0]):
        outcome = max(outcome, learn_with_settings(slot, x, z, reward, model_at(table[k], d2)))
    return 3 if weights.shape[0] > 0 and state_at(table[-1]).refreshes > refreshes else outcome


@kernel
def learn_until_refresh(first, slots, x, z, rewards, table):
    """`learn_by_all` for the rows from the first on, until a refresh is to continue; the next row, and the outcome."""
    for i in range(first, slots.shape[0]):
        outcome = learn_by_all(slots[i], x[i], z[i], rewards[i], table)
        if outcome > 1:
            return i + 1, outcome
    return slots.shape[0], 1
