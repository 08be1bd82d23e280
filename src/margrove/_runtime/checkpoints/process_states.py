"""States of processes: copied from one process, checked and restored in another one like it.

A state may come from a file that somebody has altered. A process that is made from the same data
and parameters knows the types and shapes of its arrays; everything else raises MisfitError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "MisfitError",
    "NotCheckpointable",
    "array_of",
    "finite_array",
    "numbers_of",
    "one_of",
    "put_back",
    "records_of",
    "table_of",
    "taken",
    "whole_number",
]

Record = TypeVar("Record")


class MisfitError(ValueError):
    """A state does not belong to the process that is to be restored."""


class NotCheckpointable(Exception):  # noqa: N818, the fit goes on
    """A process contains something that checkpoints cannot hold; the message says what."""


def taken(owner: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named attributes of an object, with arrays copied."""
    return {name: _copied(getattr(owner, name)) for name in names}


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def put_back(owner: Any, names: Sequence[str], state: Mapping[str, Any]) -> None:
    """Set attributes of an object to those that were taken from another one like it.

    Each must have the type of the current value, and arrays also its shape. All are checked before
    the first is set.
    """
    found = {name: _like(getattr(owner, name), state[name], name) for name in names}
    for name, value in found.items():
        setattr(owner, name, value)


def _like(current: Any, value: Any, name: str) -> Any:
    if isinstance(current, np.ndarray):
        return array_of(value, current.dtype, current.shape, name)
    if isinstance(current, bool | np.bool_):
        if not isinstance(value, bool | np.bool_):
            raise MisfitError(f"{name} is not a boolean")
        return bool(value)
    if isinstance(current, int | np.integer):
        return whole_number(value, name, least=min(0, int(current)))
    if isinstance(current, float) and isinstance(value, float | np.floating):
        return float(value)
    raise MisfitError(f"{name} has another type")


def array_of(value: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> np.ndarray:
    """A writable copy of an array in C order, if it has this type and shape (None: any length)."""
    is_alike = (
        isinstance(value, np.ndarray)
        and value.dtype == np.dtype(dtype)
        and value.ndim == len(shape)
        and all(want in (None, size) for want, size in zip(shape, value.shape, strict=True))
    )
    if not is_alike:
        raise MisfitError(f"{name} is not an array of {np.dtype(dtype)} and the shape {shape}")
    return np.array(value, order="C")


def finite_array(value: Any, shape: tuple[int | None, ...], name: str) -> np.ndarray:
    """A copy of a finite float64 array of this shape, or MisfitError."""
    found = array_of(value, np.float64, shape, name)
    if not np.isfinite(found).all():
        raise MisfitError(f"{name} contains NaN or infinity")
    return found


def numbers_of(values: Any, name: str) -> list[float]:
    """A copy of the list, if all its items are floats, or MisfitError."""
    if not isinstance(values, list) or not all(isinstance(value, float) for value in values):
        raise MisfitError(f"{name} is not a list of numbers")
    return values.copy()


def whole_number(value: Any, name: str, least: int = 0, most: int = 2**62) -> int:
    """The value as an int, if it is an integer within the bounds, or MisfitError."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise MisfitError(f"{name} is not a whole number from {least} to {most}")
    return int(value)


def one_of(value: Any, allowed: Sequence[Any], name: str) -> Any:
    """The value, if it is one of those allowed, or MisfitError."""
    if not any(type(value) is type(choice) and value == choice for choice in allowed):
        raise MisfitError(f"{name} is not one of {list(allowed)}")
    return value


def table_of(records: Sequence[Any]) -> np.ndarray:
    """Dataclasses of numbers as an array: a row for each, a column for each field."""
    rows = [[float(getattr(each, field.name)) for field in fields(each)] for each in records]
    return np.array(rows) if rows else np.empty((0, 0))


def records_of(kind: type[Record], table: Any, name: str) -> list[Record]:
    """The dataclasses of an array that `table_of` made, or MisfitError."""
    names = [(field.name, field.type == "int") for field in fields(kind)]  # type: ignore[arg-type]
    found = array_of(table, np.float64, (None, None), name)
    if len(found) and (found.shape[1] != len(names) or np.isnan(found[:, 0]).any()):
        raise MisfitError(f"{name} is not a table of {kind.__name__}")
    return [
        kind(**{key: int(x) if is_int else x for (key, is_int), x in zip(names, row, strict=True)})
        for row in found.tolist()
    ]
