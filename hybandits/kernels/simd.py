"""Four doubles at a time: the few vector operations that the kernels are written in.

LLVM's auto-vectoriser is designed for long loops. Kernels here loop over 5 to 50 numbers, where its run-time checks and
scalar remainders cost more than the arithmetic. Every operation is a Python function on short NumPy arrays, compiled to
what its decorator emits. For machines without 256-bit registers LLVM splits that up.

`muladd4` is fused when compiled (one rounding), on every machine; nothing else is reordered, and NaN stays visible.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

LANES = 4

_I32 = ir.IntType(32)
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class _F64x4(types.Type):
    """Four doubles in one register."""


f64x4 = _F64x4("f64x4")


@register_model(_F64x4)
class _RegisterModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


_DOUBLES = types.Array(types.float64, 1, "C"), types.Integer
"""An array and an index: one element, which the operation is given as a pointer."""


def _fits(given: Any, expected: Any) -> bool:
    if isinstance(expected, types.Array):  # a writeable array will do where one that is not is expected
        return isinstance(given, types.Array) and (given.dtype, given.ndim, given.layout) == (expected.dtype, 1, "C")
    return isinstance(given, expected) if isinstance(expected, type) else bool(given == expected)


def operation(emit: Callable[..., Any], result: Any, *expected: Any) -> Callable[[Any], Any]:
    """Compile calls of the decorated function, for arguments of the expected types, to emit(builder, *arguments)."""

    def register(plain: Any) -> Any:
        def typer(*args: Any) -> Any:
            return result if all(map(_fits, args, expected)) else None

        typer.pysig = inspect.signature(plain)  # type: ignore[attr-defined]
        type_callable(plain)(lambda context: typer)

        @lower_builtin(plain, *(types.Array if isinstance(each, types.Array) else each for each in expected))
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            arguments, given = [], list(zip(args, sig.args, strict=True))
            while given:
                value, kind = given.pop(0)
                if isinstance(kind, types.Array):
                    index = context.cast(builder, *given.pop(0), types.intp)
                    value = builder.gep(context.make_array(kind)(context, builder, value).data, [index])
                arguments.append(value)
            emitted = emit(builder, *arguments)
            return context.get_dummy_value() if result == types.none else emitted

        return plain

    return register


def _broadcast(builder: Any, scalar: Any) -> Any:
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(_I32, 0))
    return _shuffle(builder, first, empty, *[0] * LANES)


def _shuffle(builder: Any, a: Any, b: Any, *lanes: int) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, LANES), lanes))


def _store(builder: Any, pointer: Any, value: Any) -> Any:
    return builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=8)


@operation(lambda builder, a: builder.load(builder.bitcast(a, _VECTOR.as_pointer()), align=8), f64x4, *_DOUBLES)
def load4(a: Any, i: int) -> Any:
    """a[i], a[i+1], a[i+2], a[i+3] of a one-dimensional contiguous array, unaligned and unchecked."""
    return np.array(a[i : i + LANES])


@operation(_store, types.none, *_DOUBLES, f64x4)
def store4(a: Any, i: int, v: Any) -> None:
    """a[i : i+4] = v, unaligned and unchecked."""
    a[i : i + LANES] = v


@operation(lambda builder, a: builder.load(a), types.float64, *_DOUBLES)
def load1(a: Any, i: int) -> float:
    """a[i], unchecked (Numba's own a[i] first tests whether i is negative)."""
    return a[i]  # type: ignore[no-any-return]


@operation(lambda builder, a, v: builder.store(v, a), types.none, *_DOUBLES, types.float64)
def store1(a: Any, i: int, v: float) -> None:
    """a[i] = v, unchecked."""
    a[i] = v


@operation(_broadcast, f64x4, types.float64)
def splat4(s: float) -> Any:
    """(s, s, s, s)."""
    return np.full(LANES, s)


@operation(lambda builder, a: _broadcast(builder, builder.load(a)), f64x4, *_DOUBLES)
def spread4(a: Any, i: int) -> Any:
    """a[i] in every lane, unchecked."""
    return np.full(LANES, a[i])


def _fma(builder: Any, *args: Any) -> Any:
    signature = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, "llvm.fma.v4f64"), args)


@operation(_fma, f64x4, f64x4, f64x4, f64x4)
def muladd4(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, lane by lane; compiled, it is rounded once."""
    return a * b + c


@operation(lambda builder, a, b: builder.fmul(a, b), f64x4, f64x4, f64x4)
def mul4(a: Any, b: Any) -> Any:
    """a * b, lane by lane."""
    return a * b


@operation(lambda builder, a, b: builder.fdiv(a, b), f64x4, f64x4, f64x4)
def div4(a: Any, b: Any) -> Any:
    """a / b, lane by lane."""
    return a / b


@operation(lambda builder, a, b: builder.fadd(a, b), f64x4, f64x4, f64x4)
def add4(a: Any, b: Any) -> Any:
    """a + b, lane by lane."""
    return a + b


@operation(lambda builder, a, b: builder.fsub(a, b), f64x4, f64x4, f64x4)
def sub4(a: Any, b: Any) -> Any:
    """a - b, lane by lane."""
    return a - b


def _sum(builder: Any, v: Any) -> Any:
    lane = [builder.extract_element(v, ir.Constant(_I32, i)) for i in range(LANES)]
    return builder.fadd(builder.fadd(lane[0], lane[2]), builder.fadd(lane[1], lane[3]))


@operation(_sum, types.float64, f64x4)
def sum4(v: Any) -> float:
    """(v0 + v2) + (v1 + v3), always in this order."""
    return float((v[0] + v[2]) + (v[1] + v[3]))


def _sums(builder: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    even_ab, odd_ab = _shuffle(builder, a, b, 0, 4, 2, 6), _shuffle(builder, a, b, 1, 5, 3, 7)
    even_cd, odd_cd = _shuffle(builder, c, d, 0, 4, 2, 6), _shuffle(builder, c, d, 1, 5, 3, 7)
    first, third = _shuffle(builder, even_ab, even_cd, 0, 1, 4, 5), _shuffle(builder, even_ab, even_cd, 2, 3, 6, 7)
    second, fourth = _shuffle(builder, odd_ab, odd_cd, 0, 1, 4, 5), _shuffle(builder, odd_ab, odd_cd, 2, 3, 6, 7)
    return builder.fadd(builder.fadd(first, third), builder.fadd(second, fourth))


@operation(_sums, f64x4, f64x4, f64x4, f64x4, f64x4)
def sums4(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(sum4(a), sum4(b), sum4(c), sum4(d)) in one register."""
    return np.array([sum4(a), sum4(b), sum4(c), sum4(d)])
