"""The candidate splits of a node, and the gain of each."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from margrove.facts.models import GainCurve, gain_curves
from margrove.grove.read import Question
from margrove.grove.serve import MULTIWAY, OBLIQUE, SUBSET
from margrove.studio.steps.trees.tree_growth import Growth
from margrove.teaching.facts import split_children

__all__ = ["gains_at", "question_at"]


def question_at(growth: Growth, node: int, features: Sequence[str]) -> str:
    """The question of a node, with the feature names of the page."""
    return _text(_question(growth, node), features)


def gains_at(
    growth: Growth, node: int, shown_as: int, features: Sequence[str]
) -> dict[str, Any] | None:
    """The protocol's Gains of a node; None where categories are split into two sets.

    `shown_as` is the number of the node in the tree that is drawn.
    """
    kind = growth.arrays.kind[node]
    if kind == SUBSET:
        return None
    rows = growth.rows_of(node)
    X, y = growth.X[rows], growth.y[rows]
    if kind == MULTIWAY:
        candidates = _of_categories(growth, X, y, features)
    else:
        candidates = _of_thresholds(growth, X, y, features)
    _mark_chosen(candidates, growth, node, features)
    return {
        "node": shown_as,
        "criterion": str(growth.model.criterion),
        "candidates": candidates,
    }


def _question(growth: Growth, node: int) -> Question:
    found = growth.nodes[node].question
    assert found is not None
    return found


def _text(question: Question, features: Sequence[str]) -> str:
    if question.kind == "multiway":
        return f"{features[_column(question)]} = ?"
    if question.kind == "threshold":
        high = question.conditions[0].high
        return f"{features[_column(question)]} <= {_number(float(high))}"
    return question.text


def _column(question: Question) -> int:
    assert question.number is not None
    return question.number


def _of_thresholds(
    growth: Growth, X: np.ndarray, y: np.ndarray, features: Sequence[str]
) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few rows with many values
        curves = gain_curves(X, y, criterion=growth.model.criterion).curves
    return [_of_curve(curve, features[curve.index]) for curve in curves]


def _of_curve(curve: GainCurve, feature: str) -> dict[str, Any]:
    best = curve.best
    gain, question = 0.0, f"{feature}: all values are equal"
    if best is not None:
        gain = float(curve.decreases[best])
        question = f"{feature} <= {_number(float(curve.thresholds[best]))}"
    return {
        "feature": feature,
        "question": question,
        "gain": gain,
        "isChosen": False,
        "thresholds": curve.thresholds.astype(np.float32),
        "gains": curve.decreases.astype(np.float32),
    }


def _of_categories(
    growth: Growth, X: np.ndarray, y: np.ndarray, features: Sequence[str]
) -> list[dict[str, Any]]:
    """For gain ratios, the gains by entropy are shown, from which the ratios are computed."""
    criterion = str(growth.model.criterion)
    criterion = "entropy" if criterion in ("gain_ratio", "log_loss") else criterion
    return [
        {
            "feature": feature,
            "question": f"{feature} = ?",
            "gain": max(0.0, float(children.gain)),
            "isChosen": False,
            "thresholds": None,
            "gains": None,
        }
        for feature, children in zip(
            features, split_children(X, y, criterion=criterion), strict=True
        )
    ]


def _mark_chosen(
    candidates: list[dict[str, Any]], growth: Growth, node: int, features: Sequence[str]
) -> None:
    """Mark the split of the tree; limits and random draws may have excluded the best one."""
    question = question_at(growth, node, features)
    if growth.arrays.kind[node] == OBLIQUE:
        candidates.append(
            {
                "feature": " and ".join(features),
                "question": question,
                "gain": growth.gain_of(node),
                "isChosen": True,
                "thresholds": None,
                "gains": None,
            }
        )
        return
    chosen = candidates[int(growth.arrays.feature[node])]
    chosen |= {"question": question, "gain": growth.gain_of(node), "isChosen": True}


def _number(threshold: float) -> str:
    return f"{threshold:.4g}"
