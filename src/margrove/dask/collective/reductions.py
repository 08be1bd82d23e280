"""Requests to a worker group, their replies, and the reduction of several replies to one."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["START", "Reply", "Request", "picklable", "reduced", "reduced_reply"]


@dataclass(frozen=True)
class Request:
    """A call for every worker; with `is_forwarded`, workers forward it to their children."""

    number: int
    method: str
    arguments: tuple[Any, ...]
    reduce: str
    is_forwarded: bool = True


START = Request(0, "", (), "none")  # workers create the program


@dataclass(frozen=True)
class Reply:
    """The reply of a worker and its children to a request.

    kind    "value", "error" (an exception), or "lost" (the rank of a worker, and the reason)
    """

    number: int
    kind: str
    value: Any


def reduced_reply(request: Request, replies: list[Reply]) -> Reply:
    """The replies of several workers as one; the first loss or error if there is one."""
    for kind in ("lost", "error"):
        for reply in replies:
            if reply.kind == kind:
                return reply
    try:
        value = reduced(request.reduce, [reply.value for reply in replies])
    except Exception as error:
        return Reply(request.number, "error", picklable(error))
    return Reply(request.number, "value", value)


def reduced(how: str, values: list[Any]) -> Any:
    """Several values reduced to one.

    "sum", "max" and "min" are elementwise, also inside tuples, lists and dicts; "list" merges
    dicts {rank: value}; "first" and "none" return the first value.
    """
    if how in ("none", "first"):
        return values[0]
    if how == "list":
        return {rank: value for some in values for rank, value in some.items()}
    result = values[0]
    for other in values[1:]:
        result = _pairwise(_ELEMENTWISE[how], result, other)
    return result


_ELEMENTWISE: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _pairwise(operation: Any, one: Any, other: Any) -> Any:
    if one is None and other is None:
        return None
    if isinstance(one, dict):
        return {name: _pairwise(operation, one[name], other[name]) for name in one}
    if isinstance(one, (tuple, list)):
        pairs = zip(one, other, strict=True)
        return type(one)(_pairwise(operation, a, b) for a, b in pairs)
    if isinstance(one, np.ndarray) and one.shape == np.shape(other):
        return operation(one, other)
    if np.ndim(one) or np.ndim(other):
        raise ValueError(f"Workers replied with shapes {np.shape(one)} and {np.shape(other)}.")
    if isinstance(one, (int, float)) and operation is np.add:
        return one + other
    return operation(one, other).item()


def picklable(error: Exception) -> Exception:
    """The error, or a RuntimeError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        text = "".join(traceback.format_exception_only(error)).strip()
        return RuntimeError(text)
    return error
