"""Checks of single values in model files; a check of a model is made of them.

A check is called as `check(value, where, sizes)` and raises ModelFileError. `sizes` are the lengths
that letters stand for: the first array of shape "n d" sets n and d, and all other arrays of the
model have to agree. Compiled code does not check bounds, so every index is checked here.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove.exceptions import ModelFileError

__all__ = [
    "OUTPUT",
    "Check",
    "Sizes",
    "array",
    "class_at",
    "columns_of_labels",
    "either",
    "estimator",
    "flag",
    "instance_of",
    "labels",
    "listed",
    "mapping",
    "matrix",
    "names",
    "optional",
    "plain",
    "real",
    "refuse_unless",
    "size",
    "sparse_rows",
    "text",
    "whole",
]

_MOST_FEATURES = 1 << 31


class Sizes(dict[str, int]):
    """The lengths that letters stand for."""

    def agree(self, letter: str, length: int, where: str) -> None:
        """Set the length of a letter, or compare it with the known one."""
        if self.setdefault(letter, length) != length:
            raise ModelFileError(
                f"{where} has {length} entries where {self[letter]} are expected. The file was "
                "altered; save the model again."
            )

    def agree_all(self, letters: list[str], shape: tuple[int, ...], where: str) -> None:
        """The same for all dimensions of an array; a digit is a fixed length, "*" any length."""
        for letter, length in zip(letters, shape, strict=True):
            if letter.isdigit():
                refuse_unless(length == int(letter), f"{where} has a length of {length}")
            elif letter != "*":
                self.agree(letter, length, where)


Check = Callable[[Any, str, Sizes], None]


def refuse_unless(holds: Any, what: str) -> None:
    """Raise ModelFileError unless a condition holds."""
    if not holds:
        raise ModelFileError(f"{what}. The file was altered; save the model again.")


def array(
    dtypes: str,
    shape: str,
    *,
    finite: bool = False,
    low: float | None = None,
    below: float | str | None = None,
) -> Check:
    """An array of one of these types, such as "i4 i8"; of a shape such as "n 2", "*" for any.

    `below` may be one of the letters: then the entries are indices below its length.
    """
    allowed, letters = dtypes.split(), shape.split()

    def check(value: Any, where: str, sizes: Sizes) -> None:
        is_array = isinstance(value, np.ndarray) and value.dtype.str[1:] in allowed
        refuse_unless(is_array, f"{where} is not an array of {' or '.join(allowed)}")
        refuse_unless(
            value.ndim == len(letters), f"{where} has {value.ndim} dimensions, not {len(letters)}"
        )
        sizes.agree_all(letters, value.shape, where)
        if not value.size:
            return
        if finite:
            refuse_unless(np.isfinite(value).all(), f"{where} is not finite")
        if low is not None:
            refuse_unless(value.min() >= low, f"{where} has entries below {low}")
        if below is not None:
            bound = sizes[below] if isinstance(below, str) else below
            refuse_unless(value.max() < bound, f"{where} has entries beyond {bound}")

    return check


def sparse_rows(shape: str) -> Check:
    """A CSR matrix of finite numbers."""
    letters = shape.split()

    def check(value: Any, where: str, sizes: Sizes) -> None:
        refuse_unless(sp.issparse(value) and value.format == "csr", f"{where} is not CSR")
        refuse_unless(value.dtype.str[1:] in ("f4", "f8"), f"{where} does not hold floats")
        refuse_unless(np.isfinite(value.data).all(), f"{where} is not finite")
        sizes.agree_all(letters, value.shape, where)

    return check


def matrix(dtypes: str, shape: str) -> Check:
    """Finite numbers, dense or CSR."""
    dense, sparse = array(dtypes, shape, finite=True), sparse_rows(shape)

    def check(value: Any, where: str, sizes: Sizes) -> None:
        (sparse if sp.issparse(value) else dense)(value, where, sizes)

    return check


def either(*checks: Check) -> Check:
    """A value that passes one of the checks; the error is that of the last one."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        for alternative in checks[:-1]:
            tried = Sizes(sizes)
            try:
                alternative(value, where, tried)
            except ModelFileError:
                continue
            sizes.update(tried)
            return
        checks[-1](value, where, sizes)

    return check


def optional(check_value: Check) -> Check:
    """None, or a value that passes the other check."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        if value is not None:
            check_value(value, where, sizes)

    return check


def listed(check_item: Check, letter: str = "*", kind: type = list) -> Check:
    """A list (or tuple) of values that pass the same check, of the length of the letter."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        refuse_unless(type(value) is kind, f"{where} is not a {kind.__name__}")
        if letter.isdigit():
            refuse_unless(len(value) == int(letter), f"{where} has {len(value)} entries")
        elif letter != "*":
            sizes.agree(letter, len(value), where)
        for i, item in enumerate(value):
            check_item(item, f"{where}[{i}]", sizes)

    return check


def mapping(check_item: Check, keys: Iterable[str] | None = None) -> Check:
    """A dictionary of values that pass the same check, with these keys."""
    wanted = None if keys is None else set(keys)

    def check(value: Any, where: str, sizes: Sizes) -> None:
        refuse_unless(isinstance(value, dict), f"{where} is not a dictionary")
        refuse_unless(wanted is None or set(value) == wanted, f"{where} has other keys")
        for key, item in value.items():
            check_item(item, f"{where}[{key!r}]", sizes)

    return check


def size(letter: str, low: int = 0) -> Check:
    """A whole number that is the length of a letter."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        whole(low, _MOST_FEATURES)(value, where, sizes)
        sizes.agree(letter, int(value), where)

    return check


def whole(low: int | None = None, high: int | None = None) -> Check:
    """A whole number within bounds."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        refuse_unless(is_whole, f"{where} is not a whole number")
        refuse_unless(low is None or value >= low, f"{where} is below {low}")
        refuse_unless(high is None or value <= high, f"{where} is above {high}")

    return check


def real(*, finite: bool = True, low: float | None = None) -> Check:
    """A number."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        is_number = isinstance(value, (int, float, np.integer, np.floating))
        refuse_unless(is_number and not isinstance(value, bool), f"{where} is not a number")
        refuse_unless(not finite or np.isfinite(value), f"{where} is not finite")
        refuse_unless(low is None or value >= low, f"{where} is below {low}")

    return check


def flag(value: Any, where: str, sizes: Sizes) -> None:
    """True or False."""
    refuse_unless(isinstance(value, (bool, np.bool_)), f"{where} is neither True nor False")


def text(*options: str) -> Check:
    """A string; one of the options, if there are any."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        refuse_unless(isinstance(value, str), f"{where} is not text")
        refuse_unless(not options or value in options, f"{where} is none of {options}")

    return check


def plain(value: Any, where: str, sizes: Sizes) -> None:
    """Any plain value, for values that no compiled code uses."""


def names(letter: str) -> Check:
    """Names of columns: an array of strings."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        array("O", letter)(value, where, sizes)
        refuse_unless(all(isinstance(name, str) for name in value), f"{where} are not all text")

    return check


def labels(letter: str) -> Check:
    """Labels of classes or categories: an array of numbers, strings or truth values."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in "biufUSO"
        refuse_unless(is_array and value.ndim == 1, f"{where} is not a vector of labels")
        if letter != "*":
            sizes.agree(letter, len(value), where)

    return check


def columns_of_labels(letter: str) -> Check:
    """A dictionary from numbers of columns to their labels."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        refuse_unless(isinstance(value, dict), f"{where} is not a dictionary")
        for column, column_labels in value.items():
            whole(0, sizes[letter] - 1)(column, f"a column of {where}", sizes)
            labels("*")(column_labels, f"{where}[{column}]", sizes)

    return check


def instance_of(*homes: str) -> Check:
    """An object of one of these classes of margrove, which was checked when it was made."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        is_one = type(value) in [class_at(home) for home in homes]
        refuse_unless(is_one, f"{where} is a {type(value).__name__}")

    return check


@functools.cache
def class_at(home: str) -> type:
    """The class at "module:name". Such strings are in our code, never in a file."""
    module, name = home.split(":")
    found: type = getattr(importlib.import_module(module), name)
    return found


def estimator(value: Any, where: str, sizes: Sizes) -> None:
    """A model, or another object with parameters."""
    refuse_unless(hasattr(value, "get_params"), f"{where} is not an estimator")


# What `set_output` leaves behind on a transformer.
OUTPUT: dict[str, Check] = {"_sklearn_output_config?": mapping(text("default", "pandas", "polars"))}
