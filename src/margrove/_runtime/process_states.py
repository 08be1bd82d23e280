"""States of processes: what is taken from one, and what may be put back into another like it.

What comes back may come from a file that somebody has altered. A process that is made from the same
data and parameters knows which kinds and shapes its arrays have; anything else is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "MisfitError",
    "Unkeepable",
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
    """A state does not belong to the process that it is put into."""


class Unkeepable(Exception):  # noqa: N818, the fit goes on
    """A process has something in it that a checkpoint does not hold; the message says what."""


def taken(owner: Any, names: Sequence[str]) -> dict[str, Any]:
    """The named attributes of an object, arrays copied."""
    return {name: _copied(getattr(owner, name)) for name in names}


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def put_back(owner: Any, names: Sequence[str], state: Mapping[str, Any]) -> None:
    """Give an object the attributes that were taken from another one like it.

    Each must be of the type of the one that is there, arrays of its shape, too. They are all looked
    at before the first is put back.
    """
    found = {name: _like(getattr(owner, name), state[name], name) for name in names}
    for name, value in found.items():
        setattr(owner, name, value)


def _like(own: Any, value: Any, name: str) -> Any:
    if isinstance(own, np.ndarray):
        return array_of(value, own.dtype, own.shape, name)
    if isinstance(own, bool | np.bool_):
        if not isinstance(value, bool | np.bool_):
            raise MisfitError(f"{name} is no truth value")
        return bool(value)
    if isinstance(own, int | np.integer):
        return whole_number(value, name, least=min(0, int(own)))
    if isinstance(own, float) and isinstance(value, float | np.floating):
        return float(value)
    raise MisfitError(f"{name} is of another type")


def array_of(value: Any, dtype: Any, shape: tuple[int | None, ...], name: str) -> np.ndarray:
    """An array of this type and shape, None for any length; in C order and for writing."""
    is_alike = (
        isinstance(value, np.ndarray)
        and value.dtype == np.dtype(dtype)
        and value.ndim == len(shape)
        and all(size in (None, own) for size, own in zip(shape, value.shape, strict=True))
    )
    if not is_alike:
        raise MisfitError(f"{name} is not an array of {np.dtype(dtype)} and the shape {shape}")
    return np.array(value, order="C")


def finite_array(value: Any, shape: tuple[int | None, ...], name: str) -> np.ndarray:
    """A float64 array of this shape without NaN or infinity, or MisfitError."""
    found = array_of(value, np.float64, shape, name)
    if not np.isfinite(found).all():
        raise MisfitError(f"{name} has NaN or infinity in it")
    return found


def numbers_of(values: Any, name: str) -> list[float]:
    """The list, if it has floats only, or MisfitError."""
    if not isinstance(values, list) or not all(isinstance(own, float) for own in values):
        raise MisfitError(f"{name} is no list of numbers")
    return values.copy()


def whole_number(value: Any, name: str, least: int = 0, most: int = 2**62) -> int:
    """The value as an int, if it is whole and within bounds, or MisfitError."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or not least <= value <= most:
        raise MisfitError(f"{name} is not a whole number from {least} to {most}")
    return int(value)


def one_of(value: Any, allowed: Sequence[Any], name: str) -> Any:
    """The value, if it is one of those allowed, or MisfitError."""
    if not any(type(value) is type(own) and value == own for own in allowed):
        raise MisfitError(f"{name} is none of {list(allowed)}")
    return value


def table_of(records: Sequence[Any]) -> np.ndarray:
    """Dataclasses of numbers as an array, one a row, one field a column."""
    rows = [[float(getattr(own, field.name)) for field in fields(own)] for own in records]
    return np.array(rows) if rows else np.empty((0, 0))


def records_of(kind: type[Record], table: Any, name: str) -> list[Record]:
    """The dataclasses that `table_of` made into an array."""
    names = [(own.name, own.type == "int") for own in fields(kind)]  # type: ignore[arg-type]
    found = array_of(table, np.float64, (None, None), name)
    if len(found) and (found.shape[1] != len(names) or np.isnan(found[:, 0]).any()):
        raise MisfitError(f"{name} is no table of {kind.__name__}")
    return [
        kind(**{own: int(x) if whole else x for (own, whole), x in zip(names, row, strict=True)})
        for row in found.tolist()
    ]
