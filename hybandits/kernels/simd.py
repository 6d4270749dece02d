"""Four doubles, or four 64-bit words, at a time: the few vector operations that the kernels are written in.

LLVM's auto-vectoriser is designed for long loops. Ours run over 5 to 50 numbers, where its run-time checks and scalar
remainders cost more than the arithmetic, so the kernels say themselves what goes into one register. Every operation
is an ordinary Python function on short NumPy arrays, which is what runs when a kernel is called without compilation,
and becomes one LLVM vector instruction when compiled. For machines without 256-bit registers LLVM splits it up.

`muladd4` is fused when compiled (one rounding), on every machine; nothing else is reordered, and NaN stays visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

LANES = 4

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_WORDS = ir.VectorType(ir.IntType(64), LANES)


class _F64x4(types.Type):
    def __init__(self) -> None:
        super().__init__(name="f64x4")


class _U64x4(types.Type):
    def __init__(self) -> None:
        super().__init__(name="u64x4")


f64x4 = _F64x4()
u64x4 = _U64x4()


@register_model(_F64x4)
class _F64x4Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


@register_model(_U64x4)
class _U64x4Model(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _WORDS)


# ------------------------------------------------------------------ the operations, plain


def load4(a: Any, i: int) -> Any:
    """a[i], a[i+1], a[i+2], a[i+3] of a one-dimensional contiguous array, unaligned and unchecked."""
    return np.array(a[i : i + LANES])


def store4(a: Any, i: int, v: Any) -> None:
    """a[i : i+4] = v, unaligned and unchecked."""
    a[i : i + LANES] = v


def load1(a: Any, i: int) -> float:
    """a[i], unchecked (Numba's own a[i] first tests whether i is negative)."""
    return a[i]  # type: ignore[no-any-return]


def store1(a: Any, i: int, v: float) -> None:
    """a[i] = v, unchecked."""
    a[i] = v


def splat4(s: float) -> Any:
    """(s, s, s, s)."""
    return np.full(LANES, s)


def spread4(a: Any, i: int) -> Any:
    """a[i] in every lane, unchecked."""
    return np.full(LANES, a[i])


def prefetch(a: Any, i: int) -> None:
    """Request the cache line that holds a[i]; this changes nothing, and any i is allowed."""


def muladd4(a: Any, b: Any, c: Any) -> Any:
    """a * b + c, lane by lane; compiled, it is rounded once."""
    return a * b + c


def mul4(a: Any, b: Any) -> Any:
    """a * b, lane by lane."""
    return a * b


def add4(a: Any, b: Any) -> Any:
    """a + b, lane by lane."""
    return a + b


def sub4(a: Any, b: Any) -> Any:
    """a - b, lane by lane."""
    return a - b


def div4(a: Any, b: Any) -> Any:
    """a / b, lane by lane."""
    return a / b


def inverse_root4(v: Any) -> Any:
    """1 / sqrt(v), lane by lane, both operations rounded; NaN where v is negative."""
    return 1.0 / np.sqrt(v)


def sum4(v: Any) -> float:
    """(v0 + v2) + (v1 + v3), always in this order."""
    return float((v[0] + v[2]) + (v[1] + v[3]))


def sums4(a: Any, b: Any, c: Any, d: Any) -> Any:
    """(sum4(a), sum4(b), sum4(c), sum4(d)) in one register."""
    return np.array([sum4(a), sum4(b), sum4(c), sum4(d)])


# ------------------------------------------------------------------ words, plain


def words4(first: Any, step: Any) -> Any:
    """The words first, first + step, first + 2 step, first + 3 step."""
    return first + step * np.arange(LANES, dtype=np.uint64)


def xor4(a: Any, b: Any) -> Any:
    """a ^ b, lane by lane."""
    return a ^ b


def product4(a: Any, b: Any) -> Any:
    """a * b, lane by lane, of words below 2^32."""
    return a * b


def high4(a: Any) -> Any:
    """The upper 32 bits of each word."""
    return a >> np.uint64(32)


def low4(a: Any) -> Any:
    """The lower 32 bits of each word."""
    return a & np.uint64(0xFFFFFFFF)


def unit4(high: Any, low: Any) -> Any:
    """Numbers uniform in (0, 1), from two words below 2^32 each: (the first 53 of their 64 bits + 1/2) 2^-53."""
    return ((((high << np.uint64(32)) | low) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def store_pairs4(a: Any, i: int, v: Any, w: Any) -> None:
    """a[i : i+8] = v0, w0, v1, w1, v2, w2, v3, w3, unaligned and unchecked."""
    a[i : i + 2 * LANES : 2], a[i + 1 : i + 2 * LANES : 2] = v, w


def store_words4(a: Any, i: int, v: Any) -> None:
    """a[i : i+4] = v of an array of words, unaligned and unchecked."""
    a[i : i + LANES] = v


# ------------------------------------------------------------------ the same, compiled


def _shuffle(builder: Any, a: Any, b: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))


def _is_contiguous_doubles(a: Any) -> bool:
    return isinstance(a, types.Array) and a.dtype == types.float64 and a.ndim == 1 and a.layout == "C"


@type_callable(spread4)
@type_callable(load4)
def _type_load4(context: Any) -> Any:
    def typer(a: Any, i: Any) -> Any:
        return f64x4 if _is_contiguous_doubles(a) and isinstance(i, types.Integer) else None

    return typer


@type_callable(store4)
def _type_store4(context: Any) -> Any:
    def typer(a: Any, i: Any, v: Any) -> Any:
        if _is_contiguous_doubles(a) and isinstance(i, types.Integer) and v == f64x4:
            return types.none
        return None

    return typer


@type_callable(load1)
def _type_load1(context: Any) -> Any:
    def typer(a: Any, i: Any) -> Any:
        return types.float64 if _is_contiguous_doubles(a) and isinstance(i, types.Integer) else None

    return typer


@type_callable(store1)
def _type_store1(context: Any) -> Any:
    def typer(a: Any, i: Any, v: Any) -> Any:
        if _is_contiguous_doubles(a) and isinstance(i, types.Integer) and v == types.float64:
            return types.none
        return None

    return typer


@type_callable(prefetch)
def _type_prefetch(context: Any) -> Any:
    def typer(a: Any, i: Any) -> Any:
        return types.none if _is_contiguous_doubles(a) and isinstance(i, types.Integer) else None

    return typer


@type_callable(splat4)
def _type_splat4(context: Any) -> Any:
    def typer(s: Any) -> Any:
        return f64x4 if s == types.float64 else None

    return typer


def _type_lanewise(arity: int) -> Any:
    def for_context(context: Any) -> Any:
        def two(a: Any, b: Any) -> Any:
            return f64x4 if a == b == f64x4 else None

        def three(a: Any, b: Any, c: Any) -> Any:
            return f64x4 if a == b == c == f64x4 else None

        return two if arity == 2 else three

    return for_context


type_callable(muladd4)(_type_lanewise(3))
for _operation in (mul4, add4, sub4, div4):
    type_callable(_operation)(_type_lanewise(2))


@type_callable(sums4)
def _type_sums4(context: Any) -> Any:
    def typer(a: Any, b: Any, c: Any, d: Any) -> Any:
        return f64x4 if a == b == c == d == f64x4 else None

    return typer


@type_callable(inverse_root4)
def _type_inverse_root4(context: Any) -> Any:
    def typer(v: Any) -> Any:
        return f64x4 if v == f64x4 else None

    return typer


@type_callable(sum4)
def _type_sum4(context: Any) -> Any:
    def typer(v: Any) -> Any:
        return types.float64 if v == f64x4 else None

    return typer


def _element(context: Any, builder: Any, array_type: Any, array: Any, index: Any, index_type: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [context.cast(builder, index, index_type, types.intp)])


def _address(context: Any, builder: Any, array_type: Any, array: Any, index: Any, index_type: Any) -> Any:
    element = _element(context, builder, array_type, array, index, index_type)
    return builder.bitcast(element, _VECTOR.as_pointer())


@lower_builtin(load4, types.Array, types.Integer)
def _lower_load4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer = _address(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    return builder.load(pointer, align=8)


@lower_builtin(store4, types.Array, types.Integer, _F64x4)
def _lower_store4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer = _address(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    builder.store(args[2], pointer, align=8)
    return context.get_dummy_value()


@lower_builtin(load1, types.Array, types.Integer)
def _lower_load1(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_element(context, builder, sig.args[0], args[0], args[1], sig.args[1]))


@lower_builtin(store1, types.Array, types.Integer, types.float64)
def _lower_store1(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.store(args[2], _element(context, builder, sig.args[0], args[0], args[1], sig.args[1]))
    return context.get_dummy_value()


@lower_builtin(prefetch, types.Array, types.Integer)
def _lower_prefetch(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    element = _element(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    i32, i8 = ir.IntType(32), ir.IntType(8)
    signature = ir.FunctionType(ir.VoidType(), [i8.as_pointer(), i32, i32, i32])
    ask = cgutils.get_or_insert_function(builder.module, signature, "llvm.prefetch.p0")
    read, keep_in_all_levels, data = ir.Constant(i32, 0), ir.Constant(i32, 3), ir.Constant(i32, 1)
    builder.call(ask, [builder.bitcast(element, i8.as_pointer()), read, keep_in_all_levels, data])
    return context.get_dummy_value()


def _broadcast(builder: Any, scalar: Any, vector: Any = _VECTOR) -> Any:
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


@lower_builtin(splat4, types.float64)
def _lower_splat4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _broadcast(builder, args[0])


@lower_builtin(spread4, types.Array, types.Integer)
def _lower_spread4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    element = _element(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    return _broadcast(builder, builder.load(element))


@lower_builtin(muladd4, _F64x4, _F64x4, _F64x4)
def _lower_muladd4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    signature = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    fma = cgutils.get_or_insert_function(builder.module, signature, "llvm.fma.v4f64")
    return builder.call(fma, args)


@lower_builtin(mul4, _F64x4, _F64x4)
def _lower_mul4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fmul(*args)


@lower_builtin(add4, _F64x4, _F64x4)
def _lower_add4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fadd(*args)


@lower_builtin(sub4, _F64x4, _F64x4)
def _lower_sub4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fsub(*args)


@lower_builtin(div4, _F64x4, _F64x4)
def _lower_div4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fdiv(*args)


@lower_builtin(inverse_root4, _F64x4)
def _lower_inverse_root4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    signature = ir.FunctionType(_VECTOR, [_VECTOR])
    root = cgutils.get_or_insert_function(builder.module, signature, "llvm.sqrt.v4f64")
    return builder.fdiv(ir.Constant(_VECTOR, [1.0] * LANES), builder.call(root, args))


@lower_builtin(sum4, _F64x4)
def _lower_sum4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    lane = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), i)) for i in range(LANES)]
    return builder.fadd(builder.fadd(lane[0], lane[2]), builder.fadd(lane[1], lane[3]))


@lower_builtin(sums4, _F64x4, _F64x4, _F64x4, _F64x4)
def _lower_sums4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    a, b, c, d = args
    even_ab, odd_ab = _shuffle(builder, a, b, [0, 4, 2, 6]), _shuffle(builder, a, b, [1, 5, 3, 7])
    even_cd, odd_cd = _shuffle(builder, c, d, [0, 4, 2, 6]), _shuffle(builder, c, d, [1, 5, 3, 7])
    first, third = _shuffle(builder, even_ab, even_cd, [0, 1, 4, 5]), _shuffle(builder, even_ab, even_cd, [2, 3, 6, 7])
    second, fourth = _shuffle(builder, odd_ab, odd_cd, [0, 1, 4, 5]), _shuffle(builder, odd_ab, odd_cd, [2, 3, 6, 7])
    return builder.fadd(builder.fadd(first, third), builder.fadd(second, fourth))


# ------------------------------------------------------------------ words, compiled


def _type_words(result: Any, *expected: Any) -> Any:
    def for_context(context: Any) -> Any:
        def two(a: Any, b: Any) -> Any:
            return result if (a, b) == expected else None

        def one(a: Any) -> Any:
            return result if (a,) == expected else None

        return two if len(expected) == 2 else one

    return for_context


type_callable(words4)(_type_words(u64x4, types.uint64, types.uint64))
type_callable(xor4)(_type_words(u64x4, u64x4, u64x4))
type_callable(product4)(_type_words(u64x4, u64x4, u64x4))
type_callable(high4)(_type_words(u64x4, u64x4))
type_callable(low4)(_type_words(u64x4, u64x4))
type_callable(unit4)(_type_words(f64x4, u64x4, u64x4))


@type_callable(store_pairs4)
def _type_store_pairs4(context: Any) -> Any:
    def typer(a: Any, i: Any, v: Any, w: Any) -> Any:
        return types.none if _is_contiguous_doubles(a) and isinstance(i, types.Integer) and v == w == f64x4 else None

    return typer


@type_callable(store_words4)
def _type_store_words4(context: Any) -> Any:
    def typer(a: Any, i: Any, v: Any) -> Any:
        contiguous = isinstance(a, types.Array) and a.dtype == types.uint64 and a.ndim == 1 and a.layout == "C"
        return types.none if contiguous and isinstance(i, types.Integer) and v == u64x4 else None

    return typer


def _constant_words(*values: int) -> Any:
    return ir.Constant(_WORDS, [values[i % len(values)] for i in range(LANES)])


@lower_builtin(words4, types.uint64, types.uint64)
def _lower_words4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    first, step = (_broadcast(builder, arg, _WORDS) for arg in args)
    return builder.add(first, builder.mul(step, _constant_words(0, 1, 2, 3)))


@lower_builtin(xor4, _U64x4, _U64x4)
def _lower_xor4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.xor(*args)


@lower_builtin(product4, _U64x4, _U64x4)
def _lower_product4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    low = _constant_words(0xFFFFFFFF)  # said once more, so that LLVM takes the multiplication of 32-bit words
    return builder.mul(builder.and_(args[0], low), builder.and_(args[1], low))


@lower_builtin(high4, _U64x4)
def _lower_high4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.lshr(args[0], _constant_words(32))


@lower_builtin(low4, _U64x4)
def _lower_low4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.and_(args[0], _constant_words(0xFFFFFFFF))


@lower_builtin(unit4, _U64x4, _U64x4)
def _lower_unit4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = builder.or_(builder.shl(args[0], _constant_words(32)), args[1])
    number = builder.uitofp(builder.lshr(bits, _constant_words(11)), _VECTOR)
    half, unit = ir.Constant(_VECTOR, [0.5] * LANES), ir.Constant(_VECTOR, [2.0**-53] * LANES)
    return builder.fmul(builder.fadd(number, half), unit)


@lower_builtin(store_pairs4, types.Array, types.Integer, _F64x4, _F64x4)
def _lower_store_pairs4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    pointer = _address(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    builder.store(_shuffle(builder, args[2], args[3], [0, 4, 1, 5]), pointer, align=8)
    following = builder.gep(pointer, [ir.Constant(ir.IntType(32), 1)])
    builder.store(_shuffle(builder, args[2], args[3], [2, 6, 3, 7]), following, align=8)
    return context.get_dummy_value()


@lower_builtin(store_words4, types.Array, types.Integer, _U64x4)
def _lower_store_words4(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    element = _element(context, builder, sig.args[0], args[0], args[1], sig.args[1])
    builder.store(args[2], builder.bitcast(element, _WORDS.as_pointer()), align=8)
    return context.get_dummy_value()
