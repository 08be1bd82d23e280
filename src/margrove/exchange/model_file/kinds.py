"""What a model file may contain: a closed table from names in files to classes of margrove.

A `Kind` describes an estimator, a `Part` any other object that estimators consist of. Both say
which attributes go into a file and which conditions they satisfy. The tables are in the modules
whose names end in `_kinds`; a new kind of model is a new entry there. No name in a file is ever
imported: it is looked up here, or refused. Kernels, and learners that the user has registered, are
looked up in their registries.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from margrove.exchange.model_file.checks import Check, Sizes, class_at

__all__ = ["Kind", "Part", "kind_name_of", "kinds", "part_name_of", "part_named", "parts"]


def _nothing_more(values: dict[str, Any], sizes: Sizes) -> None:
    """No condition beyond those on single values."""


@dataclass(frozen=True)
class Part:
    """How one class of other objects is saved: its fields, and the conditions that they satisfy.

    home      where the class is, "module:name"
    fields    the saved values by name, each with its check
    examine   checks conditions on several values
    take      the values of an object; by default its attributes
    make      an object from its values; by default the class is called with them
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
    """How one class of estimators is saved: its attributes, and the conditions that they satisfy.

    home         where the class is, "module:name"
    attributes   the fitted attributes by name, each with its check; "name?" may be missing
    examine      checks conditions on several attributes
    take, make   from fitted attributes to saved values, and back
    skipped      attributes that are not saved, such as references to the training data
    """

    home: str
    attributes: dict[str, Check]
    examine: Callable[[dict[str, Any], Sizes], None] = _nothing_more
    take: Callable[[dict[str, Any]], dict[str, Any]] = dict
    make: Callable[[dict[str, Any]], dict[str, Any]] = dict
    skipped: frozenset[str] = field(default=frozenset())

    @property
    def required(self) -> list[str]:
        return [name for name in self.attributes if not name.endswith("?")]

    @property
    def checks(self) -> dict[str, Check]:
        """The checks of the attributes, in the order of the file."""
        return {name.removesuffix("?"): check for name, check in self.attributes.items()}


def kinds() -> dict[str, Kind]:
    """All estimators by their names in files: built-in ones, and those of registered learners."""
    from margrove.exchange.model_file.registered_kinds import registered_kinds

    return _built_in_kinds() | registered_kinds()


@functools.cache
def _built_in_kinds() -> dict[str, Kind]:
    from margrove.exchange.model_file.bagging_kinds import BAGGING_KINDS
    from margrove.exchange.model_file.boosting_kinds import BOOSTING_KINDS
    from margrove.exchange.model_file.margin_kinds import MARGIN_KINDS
    from margrove.exchange.model_file.search_kinds import SEARCH_KINDS
    from margrove.exchange.model_file.sklearn_kinds import SKLEARN_KINDS
    from margrove.exchange.model_file.table_kinds import TABLE_KINDS
    from margrove.exchange.model_file.tree_kinds import TREE_KINDS

    groves = TREE_KINDS | BAGGING_KINDS | BOOSTING_KINDS
    return MARGIN_KINDS | groves | SEARCH_KINDS | SKLEARN_KINDS | TABLE_KINDS


@functools.cache
def parts() -> dict[str, Part]:
    """All other objects, except kernels, by their names in files."""
    from margrove.exchange.model_file.bagging_kinds import BAGGING_PARTS
    from margrove.exchange.model_file.boosting_kinds import BOOSTING_PARTS
    from margrove.exchange.model_file.loss_parts import LOSS_PARTS
    from margrove.exchange.model_file.margin_kinds import MARGIN_PARTS
    from margrove.exchange.model_file.search_kinds import SEARCH_PARTS
    from margrove.exchange.model_file.sklearn_kinds import SKLEARN_PARTS
    from margrove.exchange.model_file.table_kinds import TABLE_PARTS
    from margrove.exchange.model_file.tree_kinds import TREE_PARTS

    groves = TREE_PARTS | BAGGING_PARTS | BOOSTING_PARTS | LOSS_PARTS
    return MARGIN_PARTS | groves | SEARCH_PARTS | SKLEARN_PARTS | TABLE_PARTS


def kind_name_of(thing: Any) -> str | None:
    """The name of the kind of an estimator; None if it has none, as derived classes do."""
    from margrove.exchange.model_file.registered_kinds import registered_kinds

    others = {entry.home: name for name, entry in registered_kinds().items()}
    return _name_of(thing, _names(_built_in_kinds) | others)


def part_name_of(thing: Any) -> str | None:
    """The name of the part that describes an object; None if there is none."""
    from margrove.exchange.model_file.margin_kinds import kernel_part_name

    return _name_of(thing, _names(parts)) or kernel_part_name(thing) or _name_of_loss(thing)


def part_named(name: str) -> Part | None:
    """The part that has a name in a file; None if there is none. Kernels are read from KERNELS."""
    from margrove.exchange.model_file.margin_kinds import kernel_part

    return parts().get(name) or kernel_part(name)


def _name_of_loss(thing: Any) -> str | None:
    """The name of the part for a loss of the user, if it is registered."""
    from margrove.ensemble.gradient.losses import GradientLoss, is_registered
    from margrove.exchange.model_file.loss_parts import REGISTERED_LOSS

    is_known = isinstance(thing, GradientLoss) and is_registered(thing)
    return REGISTERED_LOSS if is_known else None


@functools.cache
def _names(table: Callable[[], dict[str, Any]]) -> dict[str, str]:
    return {entry.home: name for name, entry in table().items()}


def _name_of(thing: Any, names: dict[str, str]) -> str | None:
    kind = getattr(type(thing), "_ours", type(thing))  # a replacement of scikit-learn's class
    home = f"{kind.__module__}:{kind.__qualname__}"
    return names.get(home) if home in names and class_at(home) is kind else None
