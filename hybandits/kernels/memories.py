"""Several models of the same rewards with different memories, weighted by how well they predict.

The first never forgets, the others have memories of 16 P and 4 P rows, where P = d1 + d2 x (arms that have learned) is
the number of parameters. Before a reward is learned, every model is weighted by its likelihood, at one sigma for all:

    w_k <- w_k N(r; mean_k, sigma^2 (1 + width_k^2)),     then     w_k <- (1 - a) w_k + a share_k,     a = 1 / (t + 2)

after t rewards: the fixed share of Herbster and Warmuth, from which a model can recover. The model that decides is
drawn by weight. The first one never forgets, so where it has lost its weight for good it continues from a copy of the
heaviest, and the two share their weights. A single model has no weights.
"""

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import LIMIT, within_limit
from hybandits.kernels.empirical_bayes import as_model, learn_with_settings, score_at_learned
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
    left = uniform(key, MODEL + keyed, decision)
    for k in range(last):
        left -= weights[k]
        if left < 0.0:
            return k
    return last


@kernel
def update_weights(slot, x, z, reward, models, weights):
    """Multiply the weights by the likelihoods of a reward that the models have not learned."""
    one_x = x.reshape((1, x.shape[0]))
    one_z = z.reshape((1, z.shape[0]))
    slots = np.full(1, slot if models[0].arms.place[slot] >= 0 else -1)
    mean = np.empty(1)
    width = np.empty(1)
    sigma2 = models[heaviest(weights)].state[0].sigma2_in_use
    logs = np.empty(MODELS)
    largest = -np.inf
    for k in range(MODELS):
        model = models[k]
        posterior = model.posterior
        score_at_learned(
            one_x, one_z, slots, posterior.arm_score, posterior.shared_score, model.state, model.features, mean, width
        )
        variance = 1.0 + width[0] * width[0]
        error = reward - mean[0]
        logs[k] = -0.5 * (math.log(variance) + error * error / (sigma2 * variance))
        largest = max(largest, logs[k])
    total = 0.0
    for k in range(MODELS):
        weights[k] *= math.exp(logs[k] - largest)
        total += weights[k]
    a = 1.0 / (models[0].state[0].rows + 2.0)
    for k in range(MODELS):
        weights[k] = (1.0 - a) * weights[k] / total + a * SHARES[k]


@kernel
def set_memories(d1, d2, models):
    """Memories follow the number of parameters: 16 P and 4 P."""
    parameters = d1 + d2 * max(models[0].state[0].arms, 1)
    for k in range(1, MODELS):
        models[k].state[0].rate = 1.0 / (MEMORIES[k] * parameters)


@kernel
def learn_by_all(slot, x, z, reward, models, weights):
    """Weigh the models by a row, and let them learn it.

    Returns 0, with nothing changed, if a number is not finite or beyond LIMIT; 2 if a refresh is to continue now, and 3
    if that of the last of several models begins; otherwise 1.
    """
    if weights.shape[0] == 0:
        return learn_with_settings(slot, x, z, reward, models[0])
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return 0
    ready = True
    for k in range(MODELS):
        ready = ready and models[k].state[0].ready == 1
    if ready:
        update_weights(slot, x, z, reward, models, weights)
    set_memories(x.shape[0], z.shape[0], models)
    refreshes = models[-1].state[0].refreshes
    outcome = 1
    for k in range(MODELS):
        outcome = max(outcome, learn_with_settings(slot, x, z, reward, models[k]))
    return 3 if models[-1].state[0].refreshes > refreshes else outcome


@kernel
def learn_flat(slot, x, z, reward, first, second, third, weights):
    """`learn_by_all` for three models `as_model`."""
    return learn_by_all(slot, x, z, reward, (as_model(first), as_model(second), as_model(third)), weights)


@kernel
def learn_until_refresh(first, slots, x, z, rewards, models, weights):
    """`learn_by_all` for the rows from the first on, until a refresh is to continue; the next row, and the outcome."""
    for i in range(first, slots.shape[0]):
        outcome = learn_by_all(slots[i], x[i], z[i], rewards[i], models, weights)
        if outcome > 1:
            return i + 1, outcome
    return slots.shape[0], 1
