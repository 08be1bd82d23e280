"""The learners that the page offers.

Choices come from the registries of the library, so that a kernel, a criterion or a loss that
somebody registers is in the menus by itself.
"""

from __future__ import annotations

from margrove.studio.learners.grove import GROVE_LEARNERS
from margrove.studio.learners.margin import MARGIN_LEARNERS
from margrove.studio.learners.offer import Arguments, Learner, Task

__all__ = ["LEARNERS", "NOT_OFFERED", "Arguments", "Learner", "Task"]

LEARNERS: dict[str, Learner] = {own.name: own for own in (*MARGIN_LEARNERS, *GROVE_LEARNERS)}

NOT_OFFERED = {
    "SVCCV": "the map of C and gamma shows its work",
    "SVRCV": "as SVCCV, for numbers",
    "LinearSVCCV": "as SVCCV, without a kernel",
    "OneClassSVM": "learns without classes, and the page draws classes",
    "PolynomialMap": "makes features, predicts nothing",
    "RBFTaylorMap": "makes features, predicts nothing",
    "TablePreparation": "prepares tables, predicts nothing",
}
