"""Regions: compiled work that is cut into tiles, on the threads of the pool.

    @region
    def add_rows(tile, X, out):       # compiled; tiles must not write to the same place
        ...

    add_rows(n_tiles, n_threads, X, out)            # from Python: one compiled call

A kernel opens a region itself with `share_tiles(words, n_tiles, n_threads, body, arguments)`, where
`words` are `pool_words(n_threads)` and `body` is a kernel that is called as body(tile, *arguments).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from margrove._runtime.jit import IS_COMPILED, kernel
from margrove._runtime.pool import pool_words, run_region

__all__ = ["copy_at", "region", "share_tiles"]

_word = ir.IntType(64)
_NO_MEMORY = "There was not enough memory for a part of this computation."


def _share_tiles(
    typing: Any, words: Any, n_tiles: Any, n_threads: Any, body: Any, arguments: Any
) -> Any:
    """Call body(tile, *arguments) for all tiles, on up to n_threads threads of the pool.

    The arguments lie on the stack of the caller, which waits for all tiles. A function of one form
    takes them from there; its address goes to the pool. If a tile cannot allocate memory, the
    others are still done, and then MemoryError is raised.
    """
    of_body = body.get_call_type(typing, (types.int64, *arguments.types), {})
    of_region = types.int64(words, types.int64, types.int64, types.int64, types.int64)
    run_region.compile(of_region.args)

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        caller = _caller_of(context, builder, body, of_body, arguments)
        place = cgutils.alloca_once_value(builder, given[4])
        addresses = [builder.ptrtoint(each, _word) for each in (caller, place)]
        code = _compiled(context, run_region, of_region.args)
        _, failed = context.call_internal_no_propagate(
            builder, code, of_region, [*given[:3], *addresses]
        )
        with builder.if_then(builder.icmp_signed("!=", failed, _word(0)), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, (_NO_MEMORY,))
        return context.get_dummy_value()

    return types.void(words, types.int64, types.int64, body, arguments), generate


def _caller_of(context: Any, builder: Any, body: Any, signature: Any, arguments: Any) -> Any:
    """A function (address of the arguments, tile) that calls the body; 1 if that failed."""
    module = builder.module
    kind = ir.FunctionType(_word, [_word, _word])
    name = f"call_{body.dispatcher.py_func.__name__}"
    caller = ir.Function(module, kind, module.get_unique_name(name))
    caller.linkage = "internal"
    inside = ir.IRBuilder(caller.append_basic_block("entry"))
    place = inside.inttoptr(caller.args[0], context.get_value_type(arguments).as_pointer())
    taken = cgutils.unpack_tuple(inside, inside.load(place), len(arguments.types))
    code = _compiled(context, body.dispatcher, signature.args)
    given = [
        context.cast(inside, value, has, wants)
        for value, has, wants in zip(taken, arguments.types, signature.args[1:], strict=True)
    ]
    status, _ = context.call_internal_no_propagate(
        inside, code, signature, [caller.args[1], *given]
    )
    inside.ret(inside.zext(status.is_error, _word))
    return caller


def _compiled(context: Any, dispatcher: Any, arguments: tuple[Any, ...]) -> Any:
    """The description of a compiled function, which is linked to the one that is being built."""
    result = dispatcher.overloads[arguments]
    context.add_linking_libs([result.library])
    return result.fndesc


def _one_after_another(words: Any, n_tiles: int, n_threads: int, body: Any, arguments: Any) -> None:
    """In place of `share_tiles` when Numba does not compile."""
    for tile in range(n_tiles):
        body(tile, *arguments)


share_tiles: Any = intrinsic(_share_tiles) if IS_COMPILED else _one_after_another


def region(function: Callable[..., None] | None = None, **options: Any) -> Any:
    """Compile a function of a tile, `function(tile, *arrays)`, and the loop over tiles around it.

    The result is called as `result(n_tiles, n_threads, *arrays)`. Options are those of `kernel`;
    `result.body` is the kernel of one tile.
    """
    if function is None:
        return functools.partial(region, **options)
    body = kernel(function, hidden=True, **options)
    loop = kernel(_loop_around(function, body), bare=True)

    def run(n_tiles: int, n_threads: int, *arguments: Any) -> None:
        n_threads = min(n_threads, n_tiles)
        loop(pool_words(n_threads), n_tiles, n_threads, *arguments)

    run.__code__ = run.__code__.replace(co_name=function.__name__)  # what profiles show
    run.body = body  # type: ignore[attr-defined]
    return functools.update_wrapper(run, function)


def _loop(words: Any, n_tiles: Any, n_threads: Any, *arguments: Any) -> None:
    share_tiles(words, n_tiles, n_threads, body, arguments)  # type: ignore[name-defined]  # noqa: F821


def _loop_around(function: Callable[..., None], body: Any) -> Callable[..., None]:
    """The function `_loop` with its own name and place."""
    names = {"share_tiles": share_tiles, "body": body}
    return copy_at(function, f"{function.__name__}_loop", _loop, names)


def copy_at(
    place: Callable[..., Any], name: str, function: Callable[..., Any], names: dict[str, Any]
) -> Callable[..., Any]:
    """A copy of a function with these global names, as if it were written where `place` is.

    The machine code of a kernel is cached by its module and name, which must be different for each
    copy; the module of `place` must import that of `function`.
    """
    code: CodeType = function.__code__.replace(
        co_name=name,
        co_filename=place.__code__.co_filename,
        co_firstlineno=place.__code__.co_firstlineno,
    )
    copy = FunctionType(code, function.__globals__ | names, name)
    copy.__module__, copy.__qualname__ = place.__module__, name
    return copy
