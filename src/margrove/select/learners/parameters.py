"""A parameter of a learner as the studio shows it: a slider, a menu or a switch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

__all__ = ["Choice", "Parameter", "Value", "When"]

Value = float | int | str | bool | None

_LARGEST = 1e300
_SLACK = 1e-9  # relative: the rounding of a logarithmic slider


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
        The name of the parameter, its name in the page, and what it does.
    kind : "number", "integer", "choice" or "flag"
    default : Value
        None is explained by `none`.
    scale : "linear" or "log"
    low, high : float
        The ends of the slider, both allowed.
    choices : function that returns the choices
        Called each time, because registries can grow.
    none : str or None
        The meaning of None in words; None if None is not allowed.
    none_means : Any
        The value that the estimator gets instead of None.
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
        """The JSON object that the page expects; keys that do not apply are left out."""
        described: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "summary": self.summary,
            "kind": self.kind,
            "default": self.default,
        }
        if self.kind in ("number", "integer"):
            described |= {"scale": self.scale, "low": self.low, "high": self.high}
        if self.choices is not None:
            described["choices"] = [
                {"value": choice.value, "title": choice.title} for choice in self.choices()
            ]
        if self.none is not None:
            described["none"] = self.none
        if self.when is not None:
            described["when"] = {"name": self.when.name, "values": list(self.when.values())}
        return described

    def checked(self, value: Any) -> Value:
        """The value, converted to the type of the parameter; a ValueError if it is not allowed."""
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
        """The argument of the estimator for a checked value."""
        return self.none_means if value is None and self.none is not None else value

    def is_shown(self, values: dict[str, Value]) -> bool:
        """Whether it applies, given the values of the other parameters."""
        return self.when is None or values.get(self.when.name) in self.when.values()

    def _chosen(self, value: Any) -> Value:
        assert self.choices is not None
        allowed = [choice.value for choice in self.choices()]
        # 1 == True in Python: types are compared so that a menu of numbers rejects a flag.
        for choice in allowed:
            if type(choice) is type(value) and choice == value:
                return choice
        raise ValueError(
            f"{self.name} must be one of {', '.join(map(repr, allowed))}. Got {_brief(value)}."
        )

    def _number(self, value: Any) -> Value:
        is_integer = self.kind == "integer"
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not -_LARGEST <= value <= _LARGEST:  # not NaN, and fits a float
            what = "a whole number" if is_integer else "a number"
            raise ValueError(f"{self.name} must be {what}. Got {_brief(value)}.")
        if is_integer and not isinstance(value, Integral) and not float(value).is_integer():
            raise ValueError(f"{self.name} must be a whole number. Got {_brief(value)}.")
        slack = _SLACK * max(abs(self.low), abs(self.high))
        if not self.low - slack <= value <= self.high + slack:
            raise ValueError(
                f"{self.name} must be between {self.low:g} and {self.high:g}. Got {value:g}."
            )
        return int(value) if is_integer else float(min(max(value, self.low), self.high))


def _brief(value: Any) -> str:
    try:
        text = ascii(value)
    except (RecursionError, ValueError):  # deeply nested lists, numbers of thousands of digits
        return type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
