"""What a model file may hold: a closed table from names in files to classes of ours.

A `Kind` describes an estimator, a `Part` any other object that estimators are made of. Both say
which attributes go into a file, what each of them must look like and what they must agree on. The
tables themselves stand in `margin_kinds`, `grove_kinds`, `search_kinds`, `sklearn_kinds` and
`table_kinds`; adding a kind of model is adding an entry there. No name in a file is ever imported:
it is looked up here, or refused. Kernels, and learners that somebody has registered, are looked up
in their registries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from margrove.exchange.model_file.checks import Check, Sizes, class_at

__all__ = ["Kind", "Part", "kind_name_of", "kinds", "part_name_of", "part_named", "parts"]


def _nothing_more(values: dict[str, Any], sizes: Sizes) -> None:
    """For what is all right if each of its values is."""


@dataclass(frozen=True)
class Part:
    """An object that is not an estimator.

    home      where the class is, "module:name"
    fields    what is kept of it, by name
    examine   what the values must agree on
    take      the values of an object, where they are not simply its attributes
    make      an object from its values, where the class is not simply called with them
    """

    home: str
    fields: dict[str, Check]
    examine: Callable[[dict[str, Any], Sizes], None] = _nothing_more
    take: Callable[[Any], dict[str, Any]] | None = None
    make: Callable[[dict[str, Any]], Any] | None = None

    def values_of(self, thing: Any) -> dict[str, Any]:
        if self.take is not None:
            return self.take(thing)
        return {name: getattr(thing, name) for name in self.fields}

    def made_of(self, values: dict[str, Any]) -> Any:
        make = self.make or (lambda given: class_at(self.home)(**given))
        return make(values)


@dataclass(frozen=True)
class Kind:
    """An estimator.

    home         where the class is, "module:name"
    attributes   what a fit leaves, by name; "name?" may be missing
    examine      what these must agree on
    take, make   from fitted attributes to what is kept of them, and back
    passed_over  attributes that are not kept: references to the training data and the like
    """

    home: str
    attributes: dict[str, Check]
    examine: Callable[[dict[str, Any], Sizes], None] = _nothing_more
    take: Callable[[dict[str, Any]], dict[str, Any]] = dict
    make: Callable[[dict[str, Any]], dict[str, Any]] = dict
    passed_over: frozenset[str] = field(default=frozenset())

    @property
    def required(self) -> list[str]:
        return [name for name in self.attributes if not name.endswith("?")]

    @property
    def checks(self) -> dict[str, Check]:
        """In the order of the file."""
        return {name.removesuffix("?"): check for name, check in self.attributes.items()}


def kinds() -> dict[str, Kind]:
    """All estimators, by their names in files: ours, and those of learners that are registered."""
    from margrove.exchange.model_file.registered_kinds import registered_kinds

    return _own_kinds() | registered_kinds()


@functools.cache
def _own_kinds() -> dict[str, Kind]:
    from margrove.exchange.model_file.grove_kinds import GROVE_KINDS
    from margrove.exchange.model_file.margin_kinds import MARGIN_KINDS
    from margrove.exchange.model_file.search_kinds import SEARCH_KINDS
    from margrove.exchange.model_file.sklearn_kinds import SKLEARN_KINDS
    from margrove.exchange.model_file.table_kinds import TABLE_KINDS

    return MARGIN_KINDS | GROVE_KINDS | SEARCH_KINDS | SKLEARN_KINDS | TABLE_KINDS


@functools.cache
def parts() -> dict[str, Part]:
    """All other objects but kernels, by their names in files."""
    from margrove.exchange.model_file.grove_kinds import GROVE_PARTS
    from margrove.exchange.model_file.margin_kinds import MARGIN_PARTS
    from margrove.exchange.model_file.search_kinds import SEARCH_PARTS
    from margrove.exchange.model_file.sklearn_kinds import SKLEARN_PARTS
    from margrove.exchange.model_file.table_kinds import TABLE_PARTS

    return MARGIN_PARTS | GROVE_PARTS | SEARCH_PARTS | SKLEARN_PARTS | TABLE_PARTS


def kind_name_of(thing: Any) -> str | None:
    """The name of a kind of estimator; None if it is of none, or of a class derived from one."""
    from margrove.exchange.model_file.registered_kinds import registered_kinds

    others = {entry.home: name for name, entry in registered_kinds().items()}
    return _name_of(thing, _names(_own_kinds) | others)


def part_name_of(thing: Any) -> str | None:
    """The name of a part; None if it is none."""
    from margrove.exchange.model_file.margin_kinds import kernel_part_name

    return _name_of(thing, _names(parts)) or kernel_part_name(thing)


def part_named(name: str) -> Part | None:
    """The part that has a name in a file; None if there is none. Kernels are read from KERNELS."""
    from margrove.exchange.model_file.margin_kinds import kernel_part

    return parts().get(name) or kernel_part(name)


@functools.cache
def _names(table: Callable[[], dict[str, Any]]) -> dict[str, str]:
    return {entry.home: name for name, entry in table().items()}


def _name_of(thing: Any, names: dict[str, str]) -> str | None:
    kind = getattr(type(thing), "_ours", type(thing))  # in place of scikit-learn's, it is ours
    home = f"{kind.__module__}:{kind.__qualname__}"
    return names.get(home) if home in names and class_at(home) is kind else None
