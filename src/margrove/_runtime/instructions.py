"""Processor instructions that LLVM offers and Numba does not: atomics, yielding, prefetching.

Atomic operations work on elements of an int64 array that several threads of compiled code share.
There are no locks, so nothing can stay locked.

Prefetching: the rows of a small node lie far apart in memory, each on its own cache line, and no
processor predicts the next one. A loop that asks for the cache line of a row some rows ahead does
not wait for it. This helps if a row is read in several places; writes do not wait anyway.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.core import cgutils, config
from numba.extending import intrinsic

from margrove._runtime.jit import IS_COMPILED, kernel

__all__ = [
    "are_scattered",
    "atomic_add",
    "atomic_exchange_if",
    "atomic_read",
    "atomic_swap",
    "atomic_write",
    "call_tile",
    "carray",
    "fetch",
    "pointer_to",
    "relax",
    "row_ahead",
    "row_behind",
    "yield_core",
]

_YIELD = "margrove_yield_core"
_WORD = 8  # bytes
_AHEAD = 12  # rows: about as many as are counted while memory answers
_FAR_APART = 4  # times as many rows in between as in the node


def _add_yield_symbol() -> None:
    """Tell LLVM the address of the operating system's function that lets other threads run."""
    if sys.platform == "win32":
        function: Any = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    llvm.add_symbol(_YIELD, ctypes.cast(function, ctypes.c_void_p).value)


_add_yield_symbol()


def _address(context: Any, builder: Any, kind: Any, words: Any, index: Any) -> Any:
    array = context.make_array(kind)(context, builder, words)
    return cgutils.get_item_pointer(context, builder, kind, array, [index])


@intrinsic
def atomic_read(typing: Any, words: Any, index: Any) -> Any:
    """Read words[index]; everything that its writer wrote before it is then visible.

    It does not come before an earlier atomic operation of this thread.
    """

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address = _address(context, builder, signature.args[0], *given)
        return builder.load_atomic(address, "seq_cst", _WORD)

    return types.int64(words, types.int64), generate


@intrinsic
def atomic_write(typing: Any, words: Any, index: Any, value: Any) -> Any:
    """Write words[index] = value, after all earlier writes of this thread."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address = _address(context, builder, signature.args[0], *given[:2])
        builder.store_atomic(given[2], address, "seq_cst", _WORD)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


def _read_and_change(operation: str) -> Any:
    def change(typing: Any, words: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            address = _address(context, builder, signature.args[0], *given[:2])
            return builder.atomic_rmw(operation, address, given[2], "seq_cst")

        return types.int64(words, types.int64, types.int64), generate

    return intrinsic(change)


def _plain_add(words: Any, index: Any, value: Any) -> Any:
    """In place of `atomic_add` when Numba does not compile."""
    before = words[index]
    words[index] += value
    return before


atomic_swap = _read_and_change("xchg")  # both return the old value
atomic_add: Any = _plain_add if vars(config)["DISABLE_JIT"] else _read_and_change("add")


@intrinsic
def atomic_exchange_if(typing: Any, words: Any, index: Any, expected: Any, value: Any) -> Any:
    """Write words[index] = value if it is `expected`; return the old value."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address = _address(context, builder, signature.args[0], *given[:2])
        pair = builder.cmpxchg(address, given[2], given[3], "seq_cst", "seq_cst")
        return builder.extract_value(pair, 0)

    return types.int64(words, types.int64, types.int64, types.int64), generate


@intrinsic
def call_tile(typing: Any, body: Any, arguments: Any, tile: Any) -> Any:
    """Call the compiled function at address `body` with (arguments, tile); it returns an int64."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        word = ir.IntType(64)
        kind = ir.FunctionType(word, [word, word]).as_pointer()
        return builder.call(builder.inttoptr(given[0], kind), given[1:])

    return types.int64(types.int64, types.int64, types.int64), generate


def _pointer_to(typing: Any, address: Any) -> Any:
    """An address as a pointer, for `numba.carray`; the caller keeps the memory alive."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer_to: Any = (
    intrinsic(_pointer_to) if IS_COMPILED else lambda address: ctypes.c_void_p(int(address))
)


@intrinsic
def relax(typing: Any) -> Any:
    """Wait a few cycles, in favour of the other thread of this core."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        machine, number = platform.machine().lower(), ir.IntType(32)
        if machine in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            pause = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(pause, [])
        elif machine in ("aarch64", "arm64"):
            kind = ir.FunctionType(ir.VoidType(), [number])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.aarch64.hint")
            builder.call(hint, [number(1)])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def yield_core(typing: Any) -> Any:
    """Let another thread run, if one is waiting for this core."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _YIELD), [])
        return context.get_dummy_value()

    return types.void(), generate


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """Prefetch array[index], which will be read soon; the index must not be negative."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        address = _address(context, builder, signature.args[0], *given)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        to_read, keep_it, is_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(address, byte), to_read, keep_it, is_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _nothing(array: Any, index: Any) -> None:
    """In place of `fetch` when Numba does not compile."""


fetch: Any = _nothing if vars(config)["DISABLE_JIT"] else intrinsic(_fetch)


@kernel(inlined=True)
def are_scattered(rows, start, end):
    """Whether rows[start:end], in ascending or descending order, lie far apart."""
    return end > start and abs(rows[end - 1] - rows[start]) > _FAR_APART * (end - start)


@kernel(inlined=True)
def row_ahead(rows, p, end):
    """The row some places after rows[p], to be prefetched."""
    return rows[min(p + _AHEAD, end - 1)]


@kernel(inlined=True)
def row_behind(rows, p, start):
    """The row some places before rows[p], for loops that go backwards."""
    return rows[max(p - _AHEAD, start)]
