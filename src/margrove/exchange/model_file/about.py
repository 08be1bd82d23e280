"""Notes beside a model in a file: a few plain values, such as the name of the target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from margrove.exceptions import ModelFileError, UnsavableModelError

__all__ = ["about_for_file", "about_from_file"]

_PLAIN = (type(None), bool, int, float, str)
_LARGEST = 1_000_000  # characters, of all texts together
_MOST = 10_000
_DEEPEST = 4
_WAY_OUT = (
    "about must be a dict of strings, numbers, truth values, None, and lists and dicts of them."
)


def about_for_file(about: Any) -> dict[str, Any]:
    """A copy of a small dict of plain values; UnsavableModelError for anything else."""
    if about is None:
        return {}
    if not isinstance(about, Mapping):
        raise UnsavableModelError("about", f"a {type(about).__name__}", _WAY_OUT)
    budget = _Budget()
    copied = _plain(dict(about), "about", budget, 0)
    if budget.problem:
        raise UnsavableModelError(*budget.problem, _WAY_OUT)
    found: dict[str, Any] = copied
    return found


def about_from_file(values: Any) -> dict[str, Any]:
    """The notes from a file, checked in the same way; ModelFileError if they are invalid."""
    budget = _Budget()
    if isinstance(values, dict):
        found: dict[str, Any] = _plain(values, "about", budget, 0)
        if not budget.problem:
            return found
    where, what = budget.problem or ("about", f"a {type(values).__name__}")
    raise ModelFileError(f"{where} is {what}. The file was altered; save the model again.")


class _Budget:
    """What is left of the allowed size, and the first problem that was found."""

    def __init__(self) -> None:
        self.characters, self.values = _LARGEST, _MOST
        self.problem: tuple[str, str] | None = None

    def spend(self, text: str, where: str) -> None:
        self.characters -= len(text)
        self.values -= 1
        if self.characters < 0 or self.values < 0:
            self.refuse(where, "too large")

    def refuse(self, where: str, what: str) -> None:
        self.problem = self.problem or (where, what)


def _plain(value: Any, where: str, budget: _Budget, depth: int) -> Any:
    budget.spend(value if isinstance(value, str) else "", where)
    if budget.problem or depth > _DEEPEST:
        budget.refuse(where, f"nested more than {_DEEPEST} deep")
        return None
    if type(value) in _PLAIN:
        if isinstance(value, float) and not math.isfinite(value):
            budget.refuse(where, f"{value!r}, not a finite number")
        return value
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return [_plain(item, f"{where}[{i}]", budget, depth + 1) for i, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                budget.refuse(f"the key {key!r} of {where}", f"a {type(key).__name__}")
            else:
                budget.spend(key, where)
        return {
            key: _plain(item, f"{where}[{key!r}]", budget, depth + 1) for key, item in value.items()
        }
    budget.refuse(where, f"a {type(value).__name__}")
    return None
