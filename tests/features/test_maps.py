"""Maps by index: products of columns, and products that share columns by hashing."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.features.maps import Products, hashes


def test_products_are_those_of_their_columns() -> None:
    random = np.random.default_rng(0)
    u, c = random.random((4, 3)), random.random((5, 2))
    nothing = np.zeros(0, np.int64)
    products = Products(np.array([0, 2, 1]), np.array([1, 0, 0]), (nothing, nothing, nothing, np.zeros(0)), 3)
    crossed = products.computed(u, c)
    assert_array_equal(crossed[3, 4], [u[3, 0] * c[4, 1], u[3, 2] * c[4, 0], u[3, 1] * c[4, 0]])
    assert_array_equal(products.rows(u, c[:4])[2], crossed[2, 2])


def test_hashed_products_are_sums_over_buckets() -> None:
    random = np.random.default_rng(1)
    u, c = random.random((6, 40)), random.random((6, 30)) * (random.random((6, 30)) < 0.3)
    left, right = np.tile(np.arange(40), 30), np.repeat(np.arange(30), 40)
    target, sign = hashes(left, right, 64)
    products = Products(np.array([0]), np.array([0]), (left, right, 1 + target, sign), 65)
    dense = np.zeros((6, 65))
    dense[:, 0] = u[:, 0] * c[:, 0]
    for k in range(len(left)):
        dense[:, 1 + target[k]] += sign[k] * u[:, left[k]] * c[:, right[k]]
    assert_allclose(products.rows(u, c), dense, atol=1e-12)
    assert_array_equal(products.computed(u[:1], c)[0, 3], products.rows(u[:1], c[3:4])[0])


def test_hashes_are_even_and_fixed() -> None:
    left, right = np.tile(np.arange(200), 200), np.repeat(np.arange(200), 200)
    target, sign = hashes(left, right, 100)
    counts = np.bincount(target, minlength=100)
    assert counts.min() > 300
    assert counts.max() < 500
    assert abs(sign.mean()) < 0.02
    assert hashes(np.array([3]), np.array([5]), 1000)[0].tolist() == [967]
