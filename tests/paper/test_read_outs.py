"""The released protocol lands on the published numbers."""

from __future__ import annotations

import pytest
from numpy.testing import assert_allclose

from hybandits import DisLinUCB, HyLinUCB, LinUCB, SelfNormalised, paper
from hybandits.experiments.record import environment_seeds
from hybandits.simulation.play import cumulative_regret
from hybandits.simulation.worlds import Synthetic


@pytest.mark.slow
def test_setting_1_lands_on_the_published_read_outs() -> None:
    """Five environments, 2,500 rounds: mean regret within 3 % (or the read-out's own error, about 3 units)."""
    coefficient = SelfNormalised(noise=0.01, bound=(0.8, 0.5), delta=0.01)
    for kind in (HyLinUCB, LinUCB, DisLinUCB):
        total = 0.0
        for seed in environment_seeds(paper.RELEASED_SEED, 5):
            policy = kind(d1=40, d2=5, exploration=coefficient, ridge=0.1)
            total += cumulative_regret(policy, Synthetic(d1=40, d2=5, arms=25, seed=seed), 2500)[-1] / 5
        published = paper.published("setting-1", kind.__name__)[2500]
        assert_allclose(total, published, rtol=0.03, atol=3)
