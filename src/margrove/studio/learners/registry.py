"""The learners that the page offers: those of the registry, with what the page shows of them.

Menus are read from the registries of the library at each request, so a learner, a kernel, a
criterion or a loss that the user registers is in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from margrove.select.learners import LEARNERS as REGISTERED
from margrove.select.learners import Task
from margrove.studio.learners.grove import GROVE_PARAMETERS
from margrove.studio.learners.margin import MARGIN_PARAMETERS
from margrove.studio.learners.offers import Arguments, Offer, Shown

__all__ = ["LEARNERS", "NOT_OFFERED", "Arguments", "Offer", "Task"]

_SHOWN = MARGIN_PARAMETERS | GROVE_PARAMETERS
_TASKS: tuple[Task, ...] = ("classification", "regression")


class _Offers(Mapping[str, Offer]):
    """Offers by the name of the class, read from the registry each time."""

    def __getitem__(self, name: str) -> Offer:
        for learner in REGISTERED.values():
            for task in _TASKS:
                entry = learner.for_task(task)
                if entry is not None and entry.class_name == name:
                    return Offer(
                        learner, task, entry, _SHOWN.get(name, Shown(parameters=entry.parameters))
                    )
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        for learner in REGISTERED.values():
            for entry in learner.estimators:
                yield entry.class_name

    def __len__(self) -> int:
        return sum(len(learner.estimators) for learner in REGISTERED.values())


LEARNERS: Mapping[str, Offer] = _Offers()

NOT_OFFERED = {
    "SVCCV": "the map of C and gamma uses it",
    "SVRCV": "like SVCCV, for regression",
    "LinearSVCCV": "like SVCCV, without a kernel",
    "OneClassSVM": "has no classes, and the page draws classes",
    "PolynomialMap": "makes features, predicts nothing",
    "RBFTaylorMap": "makes features, predicts nothing",
    "TablePreparation": "prepares tables, predicts nothing",
}
