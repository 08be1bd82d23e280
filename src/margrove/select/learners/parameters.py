"""A parameter of a learner as a page shows it: a slider, a menu or a switch, and its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

__all__ = ["Choice", "Parameter", "Value", "When"]

Value = float | int | str | bool | None

_LARGEST = 1e300
_SLACK = 1e-9  # relative: what a slider loses on its way through a logarithm


@dataclass(frozen=True)
class Choice:
    """An entry of a menu."""

    value: Value
    title: str


@dataclass(frozen=True)
class When:
    """A parameter is shown while the one called `name` has one of the values."""

    name: str
    values: Callable[[], Sequence[Value]]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of an estimator, or of the members of an ensemble.

    Attributes
    ----------
    name, title, summary : str
        As the estimator calls it, as people do, and what it does.
    kind : "number", "integer", "choice" or "flag"
    default : Value
        None is what `none` says.
    scale : "linear" or "log"
    low, high : float
        The ends of the slider, which are accepted.
    choices : function that returns the choices
        Asked each time, because registries grow.
    none : str or None
        What None means, in words; None if it may not be chosen.
    none_means : Any
        What the estimator gets instead of None.
    when : When or None
    of_member : bool
        Whether it belongs to the members of an ensemble.
    """

    name: str
    title: str
    summary: str
    kind: Literal["number", "integer", "choice", "flag"]
    default: Value
    scale: Literal["linear", "log"] = "linear"
    low: float = 0.0
    high: float = 1.0
    choices: Callable[[], Sequence[Choice]] | None = None
    none: str | None = None
    none_means: Any = None
    when: When | None = None
    of_member: bool = False

    def as_dict(self) -> dict[str, Any]:
        """As the page expects it; keys that do not apply are left out."""
        told: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "kind": self.kind,
            "default": self.default,
        }
        if self.kind in ("number", "integer"):
            told |= {"scale": self.scale, "low": self.low, "high": self.high}
        if self.choices is not None:
            told["choices"] = [{"value": own.value, "title": own.title} for own in self.choices()]
        if self.none is not None:
            told["none"] = self.none
        if self.when is not None:
            told["when"] = {"name": self.when.name, "values": list(self.when.values())}
        return told

    def checked(self, value: Any) -> Value:
        """The value, if it is one of those that the page offers; else a ValueError that says so."""
        if value is None and self.none is not None:
            return None
        if self.kind == "choice":
            return self._chosen(value)
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise ValueError(f"{self.name} must be true or false. Got {_brief(value)}.")
            return value
        return self._number(value)

    def argument(self, value: Value) -> Any:
        """What the estimator is given for a value that was checked."""
        return self.none_means if value is None and self.none is not None else value

    def is_shown(self, values: dict[str, Value]) -> bool:
        """Whether it applies beside these values of the other parameters."""
        return self.when is None or values.get(self.when.name) in self.when.values()

    def _chosen(self, value: Any) -> Value:
        assert self.choices is not None
        known = [own.value for own in self.choices()]
        # 1 == True in Python, and a menu of numbers must not take a flag for one.
        for own in known:
            if type(own) is type(value) and own == value:
                return own
        named = ", ".join(repr(own) for own in known)
        raise ValueError(f"{self.name} must be one of {named}. Got {_brief(value)}.")

    def _number(self, value: Any) -> Value:
        whole = self.kind == "integer"
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not -_LARGEST <= value <= _LARGEST:  # not NaN, and fits a float
            what = "a whole number" if whole else "a number"
            raise ValueError(f"{self.name} must be {what}. Got {_brief(value)}.")
        if whole and not isinstance(value, Integral) and not float(value).is_integer():
            raise ValueError(f"{self.name} must be a whole number. Got {_brief(value)}.")
        room = _SLACK * max(abs(self.low), abs(self.high))
        if not self.low - room <= value <= self.high + room:
            raise ValueError(
                f"{self.name} must be between {self.low:g} and {self.high:g}. Got {value:g}."
            )
        return int(value) if whole else float(min(max(value, self.low), self.high))


def _brief(value: Any) -> str:
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # lists in lists in lists, numbers of many thousand digits
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
