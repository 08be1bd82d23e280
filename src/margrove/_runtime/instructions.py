"""Instructions of processors that Numba does not offer, and LLVM does.

Words of memory that several threads of compiled code share, places of an int64 array; giving way to
other threads; asking for memory before it is needed. There is no lock in here, so nothing can be
left locked.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

__all__ = [
    "atomic_add",
    "atomic_read",
    "atomic_swap",
    "atomic_write",
    "fetch",
    "give_way",
    "relax",
]

_GIVE_WAY = "margrove_give_way"
_WORD = 8


def _name_give_way() -> None:
    """Tell LLVM where the operating system's function is that lets other threads run."""
    if sys.platform == "win32":
        function: Any = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    llvm.add_symbol(_GIVE_WAY, ctypes.cast(function, ctypes.c_void_p).value)


_name_give_way()


def _place(context: Any, builder: Any, kind: Any, words: Any, index: Any) -> Any:
    array = context.make_array(kind)(context, builder, words)
    return cgutils.get_item_pointer(context, builder, kind, array, [index])


@intrinsic
def atomic_read(typing: Any, words: Any, index: Any) -> Any:
    """words[index]; what its writer wrote before can be read after."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], *given)
        return builder.load_atomic(place, "acquire", _WORD)

    return types.int64(words, types.int64), generate


@intrinsic
def atomic_write(typing: Any, words: Any, index: Any, value: Any) -> Any:
    """words[index] = value, after all that was written before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], *given[:2])
        builder.store_atomic(given[2], place, "seq_cst", _WORD)
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64), generate


def _read_and_change(operation: str) -> Any:
    def change(typing: Any, words: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            place = _place(context, builder, signature.args[0], *given[:2])
            return builder.atomic_rmw(operation, place, given[2], "seq_cst")

        return types.int64(words, types.int64, types.int64), generate

    return intrinsic(change)


atomic_add = _read_and_change("add")  # returns what was there before
atomic_swap = _read_and_change("xchg")


@intrinsic
def relax(typing: Any) -> Any:
    """Wait a few cycles, and leave the core to the thread that shares it."""

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
def give_way(typing: Any) -> Any:
    """Let another thread run, if one is waiting for this core."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _GIVE_WAY), [])
        return context.get_dummy_value()

    return types.void(), generate


def _fetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for array[index], which is to be read soon; the index may not be negative."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place = _place(context, builder, signature.args[0], *given)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, form, "llvm.prefetch.p0i8")
        to_read, keep_it, is_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(place, byte), to_read, keep_it, is_data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


def _nothing(array: Any, index: Any) -> None:
    """Without the compiler."""


fetch: Any = _nothing if vars(config)["DISABLE_JIT"] else intrinsic(_fetch)
