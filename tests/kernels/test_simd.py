"""The vector operations, compiled, do what their plain Python says."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from hybandits.kernels import simd


@pytest.mark.parametrize("operation", ["add4", "sub4", "mul4", "div4", "muladd4"])
def test_vector_operations_do_compiled_what_they_say(operation: str) -> None:
    function = getattr(simd, operation)
    a, b, c = np.random.default_rng(3).normal(size=(3, 4))
    three = operation == "muladd4"

    @njit
    def run(a, b, c, out):  # type: ignore[no-untyped-def]
        if three:
            simd.store4(out, 1, simd.muladd4(simd.load4(a, 0), simd.load4(b, 0), simd.load4(c, 0)))
        else:
            simd.store4(out, 1, function(simd.load4(a, 0), simd.load4(b, 0)))

    out = np.zeros(6)
    run(a, b, c, out)
    expected = function(a, b, c) if three else function(a, b)
    assert_allclose(out, [0, *expected, 0], rtol=1e-15)


def test_muladd4_is_rounded_once_on_every_machine() -> None:
    @njit
    def run(a, c, out):  # type: ignore[no-untyped-def]
        simd.store4(out, 0, simd.muladd4(simd.load4(a, 0), simd.load4(a, 0), simd.load4(c, 0)))

    a, out = np.full(4, 1 + 2.0**-30), np.empty(4)
    run(a, -(a * a), out)
    assert out.tolist() == [2.0**-60] * 4  # what rounding a * a leaves


def test_vector_loads_stores_and_sums() -> None:
    @njit
    def run(a, out):  # type: ignore[no-untyped-def]
        simd.store1(out, 0, simd.sum4(simd.load4(a, 1)))
        simd.store1(out, 1, simd.sum4(simd.spread4(a, 2)))
        simd.store1(out, 2, simd.sum4(simd.splat4(simd.load1(a, 3))))

        b = simd.load4(a, 0)
        simd.store4(out, 3, simd.sums4(b, simd.load4(a, 1), simd.splat4(1.0), simd.mul4(b, b)))

    out, again = np.zeros(7), np.zeros(7)
    a = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    run(a, out)
    run.py_func(a, again)
    assert out.tolist() == again.tolist() == [30.0, 16.0, 32.0, 15.0, 30.0, 4.0, 85.0]
