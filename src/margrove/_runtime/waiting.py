"""How a thread of compiled code sleeps until another thread wakes it, without Python's lock.

A thread sleeps on a word of an int64 array: `sleep_while(way, words, index, value)` returns when
the word is no longer `value` or when somebody calls `wake`. It may also return early, so the caller
looks again. Each system has its own functions for this. They are declared by name, so that the
machine code can be cached:

FUTEX     Linux: the system call futex
PTHREAD   macOS and other POSIX systems: a mutex and a condition variable, both in the array itself
ADDRESS   Windows: WaitOnAddress
NONE      no function; threads go back to Python to sleep there

`MARGROVE_POOL_WAIT` chooses among those that the system has.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "ADDRESS",
    "FUTEX",
    "NONE",
    "PTHREAD",
    "WORDS_OF_LOCKS",
    "best_way_to_wait",
    "prepare_words",
    "sleep_while",
    "wake",
]

NONE, FUTEX, PTHREAD, ADDRESS = range(4)
_NAMES = {"python": NONE, "futex": FUTEX, "pthread": PTHREAD, "address": ADDRESS}

WORDS_OF_LOCKS = 32  # at the end of the array: a mutex, and from the middle on a condition variable
_FUTEX_CALLS = {"x86_64": 202, "aarch64": 98}  # the number of the system call
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE

_byte = ir.IntType(8).as_pointer()
_int, _long = ir.IntType(32), ir.IntType(64)


def _futex_call() -> int | None:
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return _FUTEX_CALLS.get(platform.machine())


def _has_windows_functions() -> bool:
    """Tell LLVM where the functions are; False if this is not Windows, or an old one."""
    if sys.platform != "win32":
        return False
    try:
        library = ctypes.WinDLL("api-ms-win-core-synch-l1-2-0.dll")
        for name in ("WaitOnAddress", "WakeByAddressAll"):
            llvm.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    except (OSError, AttributeError):
        return False
    return True


_FUTEX_CALL = _futex_call()
_HAS_FUTEX = _FUTEX_CALL is not None
_HAS_PTHREAD = os.name == "posix"
_HAS_ADDRESS = _has_windows_functions()


def best_way_to_wait() -> int:
    """The way of this system, or the one that MARGROVE_POOL_WAIT names if the system has it."""
    has = {NONE: True, FUTEX: _HAS_FUTEX, PTHREAD: _HAS_PTHREAD, ADDRESS: _HAS_ADDRESS}
    wanted = _NAMES.get(os.environ.get("MARGROVE_POOL_WAIT", ""))
    if wanted is not None and has[wanted]:
        return wanted
    return next(way for way in (FUTEX, ADDRESS, PTHREAD, NONE) if has[way])


def prepare_words(words: np.ndarray) -> None:
    """Initialise the mutex and the condition variable at the end of the array."""
    if not _HAS_PTHREAD:
        return
    library = ctypes.CDLL(None)
    start = words.ctypes.data + 8 * (len(words) - WORDS_OF_LOCKS)
    library.pthread_mutex_init(ctypes.c_void_p(start), None)
    library.pthread_cond_init(ctypes.c_void_p(start + 4 * WORDS_OF_LOCKS), None)


def _function(
    builder: Any, name: str, arguments: list[Any], *, result: Any = _int, more: bool = False
) -> Any:
    kind = ir.FunctionType(result, arguments, var_arg=more)
    return cgutils.get_or_insert_function(builder.module, kind, name)


def _word(context: Any, builder: Any, kind: Any, words: Any, index: Any) -> Any:
    array = context.make_array(kind)(context, builder, words)
    return cgutils.get_item_pointer(context, builder, kind, array, [index])


def _locks(context: Any, builder: Any, kind: Any, words: Any) -> tuple[Any, Any]:
    """Pointers to the mutex and to the condition variable."""
    array = context.make_array(kind)(context, builder, words)
    size = builder.extract_value(array.shape, 0)
    pointers = []
    for distance in (WORDS_OF_LOCKS, WORDS_OF_LOCKS // 2):
        index = builder.sub(size, size.type(distance))
        pointer = cgutils.get_item_pointer(context, builder, kind, array, [index])
        pointers.append(builder.bitcast(pointer, _byte))
    return pointers[0], pointers[1]


def _call_futex(builder: Any, operation: int, address: Any, value: Any) -> None:
    call = _function(builder, "syscall", [_long], result=_long, more=True)
    nothing = _long(0)
    where = builder.ptrtoint(address, _long)
    operand = builder.zext(builder.trunc(value, _int), _long)
    given = [_long(_FUTEX_CALL), where, _long(operation), operand, nothing, nothing, nothing]
    builder.call(call, given)


def _is(builder: Any, way: Any, number: int) -> Any:
    return builder.icmp_signed("==", way, way.type(number))


@intrinsic
def sleep_while(typing: Any, way: Any, words: Any, index: Any, value: Any) -> Any:
    """Sleep until words[index] is not `value`; may return early."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        way, words, index, value = given
        address = _word(context, builder, signature.args[1], words, index)
        if _HAS_FUTEX:
            with builder.if_then(_is(builder, way, FUTEX)):
                _call_futex(builder, _WAIT, address, value)
        if _HAS_ADDRESS:
            with builder.if_then(_is(builder, way, ADDRESS)):
                old = cgutils.alloca_once_value(builder, value)
                wait = _function(builder, "WaitOnAddress", [_byte, _byte, _long, _int])
                pointers = [builder.bitcast(each, _byte) for each in (address, old)]
                builder.call(wait, [*pointers, _long(8), _int(0xFFFFFFFF)])
        if _HAS_PTHREAD:
            with builder.if_then(_is(builder, way, PTHREAD)):
                mutex, condition = _locks(context, builder, signature.args[1], words)
                builder.call(_function(builder, "pthread_mutex_lock", [_byte]), [mutex])
                current = builder.load_atomic(address, "acquire", 8)
                with builder.if_then(builder.icmp_signed("==", current, value)):
                    wait = _function(builder, "pthread_cond_wait", [_byte, _byte])
                    builder.call(wait, [condition, mutex])
                builder.call(_function(builder, "pthread_mutex_unlock", [_byte]), [mutex])
        return context.get_dummy_value()

    return types.void(types.int64, words, types.int64, types.int64), generate


@intrinsic
def wake(typing: Any, way: Any, words: Any, index: Any, count: Any) -> Any:
    """Wake `count` threads that sleep on words[index], or all; the word was changed before."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        way, words, index, count = given
        address = _word(context, builder, signature.args[1], words, index)
        if _HAS_FUTEX:
            with builder.if_then(_is(builder, way, FUTEX)):
                _call_futex(builder, _WAKE, address, count)
        if _HAS_ADDRESS:
            with builder.if_then(_is(builder, way, ADDRESS)):
                wake_all = _function(builder, "WakeByAddressAll", [_byte], result=ir.VoidType())
                builder.call(wake_all, [builder.bitcast(address, _byte)])
        if _HAS_PTHREAD:
            with builder.if_then(_is(builder, way, PTHREAD)):
                mutex, condition = _locks(context, builder, signature.args[1], words)
                builder.call(_function(builder, "pthread_mutex_lock", [_byte]), [mutex])
                builder.call(_function(builder, "pthread_cond_broadcast", [_byte]), [condition])
                builder.call(_function(builder, "pthread_mutex_unlock", [_byte]), [mutex])
        return context.get_dummy_value()

    return types.void(types.int64, words, types.int64, types.int64), generate
