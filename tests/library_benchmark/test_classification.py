"""Data sets for classification as worlds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from library_benchmark.classification import Classification, terrain


def test_rows_are_shown_once_before_any_is_shown_again() -> None:
    features = np.arange(30.0).reshape(15, 2) ** 2
    labels = np.array(list("cab" * 5))
    world = Classification(features=features, labels=labels, seed=1)
    block = next(world.rounds(45))
    shown = block.rounds.z[:, 0, 1:]
    assert_allclose(np.sort(shown[:15], axis=0), np.sort(shown[15:30], axis=0))
    assert (shown[:15] != shown[15:30]).any()
    assert_allclose(shown[:15].mean(axis=0), 0, atol=1e-12)
    assert_allclose(shown[:15].std(axis=0), 1)
    assert block.means[:15].sum(axis=0).tolist() == [5, 5, 5], "arm 0 is class a"
    row = int(np.flatnonzero(np.isclose(features[:, 0].std() * shown[0, 0] + features[:, 0].mean(), features[:, 0]))[0])
    assert block.means[0].argmax() == "abc".index(labels[row])


def test_columns_that_never_change_are_left_out() -> None:
    world = Classification(features=[[1.0, 2.0], [1.0, 3.0]], labels=[0, 1])
    assert (world.d1, world.d2, world.arms) == (0, 2, 2)
    assert world.noise == 0.5


def test_labels_must_fit() -> None:
    with pytest.raises(ValueError, match="got 1 labels and 2 rows of features"):
        Classification(features=[[1.0], [2.0]], labels=["a"])


def test_terrain_is_unbalanced_and_curved() -> None:
    """A linear rule is better than the largest class, and one with squares is better than that."""
    features, labels = terrain(6_000)
    shares = np.bincount(labels) / len(labels)
    assert (features[:, 10:].sum(axis=1) == 2).all()
    assert set(np.unique(features[:, 10:])) == {0.0, 1.0}
    assert shares.max() > 10 * shares.min() > 0
    hits = []
    for rows in (features, np.concatenate((features, features[:, :10] ** 2), axis=1)):
        with_one = np.concatenate((rows, np.ones((len(rows), 1))), axis=1)
        fitted = np.linalg.lstsq(with_one, np.eye(7)[labels], rcond=None)[0]
        hits.append(float(((with_one @ fitted).argmax(axis=1) == labels).mean()))
    assert shares.max() + 0.05 < hits[0] < hits[1] - 0.02
