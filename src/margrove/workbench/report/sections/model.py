"""The model: blocks for its family, and its parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from margrove.facts import (
    BoostingFacts,
    EnsembleFacts,
    Facts,
    GradientFacts,
    TreeFacts,
    ranked_importances,
)
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import Block, Figure, Pairs, Section, Words
from margrove.workbench.report.sections.boosting import boosting_blocks, gradient_blocks
from margrove.workbench.report.sections.forests import ensemble_blocks
from margrove.workbench.report.sections.machines import machine_blocks, weight_figures
from margrove.workbench.report.sections.trees import tree_blocks
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import counted, number, visible

__all__ = ["model_section"]

_MAX_PARAMETERS = 60
_IMPORTANT = 15

_BLOCKS_OF: tuple[tuple[type, Callable[[Subject], list[Block]]], ...] = (
    (TreeFacts, tree_blocks),
    (EnsembleFacts, ensemble_blocks),
    (BoostingFacts, boosting_blocks),
    (GradientFacts, gradient_blocks),
    (Facts, machine_blocks),
)


def model_section(subject: Subject) -> Section:
    blocks = next(
        (make(subject) for kind, make in _BLOCKS_OF if isinstance(subject.facts, kind)), None
    )
    if blocks is None:
        blocks = _other_blocks(subject)
    blocks.append(_parameters(subject))
    return Section("model", f"The model: {visible(subject.estimator)}", blocks, "The model")


def _other_blocks(subject: Subject) -> list[Block]:
    """For an estimator of another library: weights or importances, if it has any."""
    blocks: list[Block] = [
        Words(
            f"{visible(subject.estimator)} is not a learner of margrove, so less is known about "
            "it. Its predictions are judged in the same way."
        )
    ]
    if hasattr(subject.last, "feature_importances_"):
        found = ranked_importances(subject.last, _IMPORTANT, subject.names)
        chart = charts.ranked_bars(
            found.names, found.values, title=found.measure, label="Importances of the features"
        )
        blocks.append(Figure("What it depends on", chart))
    elif getattr(subject.last, "coef_", None) is not None:
        blocks.append(weight_figures(subject))
    return blocks


def _parameters(subject: Subject) -> Pairs:
    given: dict[str, Any]
    if subject.facts is not None:
        given = subject.facts.parameters
    else:
        given = subject.last.get_params(deep=False) if hasattr(subject.last, "get_params") else {}
    pairs = tuple(
        (visible(name), _in_words(value)) for name, value in list(given.items())[:_MAX_PARAMETERS]
    )
    left_out = len(given) - len(pairs)
    note = f"{counted(left_out, 'parameter')} left out." if left_out > 0 else ""
    return Pairs("Parameters", pairs, note)


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return number(value, 6)
    try:
        return visible(repr(value), 120)
    except Exception:  # the repr of another library can raise anything
        return visible(type(value).__name__)
