"""Facts about Perceptron and KernelPerceptron: mistakes, margins, Novikoff's bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from margrove.facts.machine_values import PerceptronFacts, PerceptronMachineFacts
from margrove.facts.models.expansions import against_the_rest, expansion_fields, support_fields
from margrove.facts.plain_values import frozen
from margrove.facts.values import Given, estimator_fields
from margrove.margin import dense_coefficients
from margrove.margin.perceptron import MistakeDriven

__all__ = ["kernel_perceptron_facts", "perceptron_facts"]


def perceptron_facts(model: Any, given: Given) -> PerceptronFacts:
    coef = dense_coefficients(model)
    nothing = frozen(np.empty(0, dtype=np.int64))
    expansions = [
        {
            "n_support": 0,
            "support": nothing,
            "coefficients": frozen(np.empty(0)),
            "weights": frozen(weights),
            "norm": float(np.linalg.norm(weights)),
        }
        for weights in coef
    ]
    return PerceptronFacts(
        **_mistake_fields(model, expansions),
        kernel=None,
        n_samples=None,
        n_support=0,
        support=nothing,
        support_vectors=None,
    )


def kernel_perceptron_facts(model: Any, given: Given) -> PerceptronFacts:
    expansions = [expansion_fields(model, coef) for coef in model.dual_coef_]
    mistakes_per_row = getattr(model, "alpha_", None)
    return PerceptronFacts(
        **_mistake_fields(model, expansions),
        **support_fields(model),
        n_samples=None if mistakes_per_row is None else len(mistakes_per_row),
    )


def _mistake_fields(model: MistakeDriven, expansions: list[dict[str, Any]]) -> dict[str, Any]:
    fitted: Any = model
    margins = getattr(model, "class_margins_", [None] * len(expansions))
    machines = tuple(
        PerceptronMachineFacts(
            name=name,
            **expansion,
            intercept=float(intercept),
            mistakes=_number(mistakes),
            margin=_optional_float(margin),
        )
        for name, expansion, intercept, mistakes, margin in zip(
            against_the_rest(model.classes_.tolist()),
            expansions,
            fitted.intercept_,
            fitted.class_mistakes_,
            margins,
            strict=True,
        )
    )
    return {
        **estimator_fields(model),
        "machines": machines,
        "margin_level": _nearest_level(machines, bool(fitted.fit_intercept)),
        "iterations": int(fitted.n_iter_),
        "converged": None,
        "unproven": "A perceptron minimises no objective. See its mistakes and its margin.",
        "epochs": int(fitted.n_iter_),
        "mistakes": _number(fitted.mistakes_),
        "separated": getattr(model, "separated_", None),
        "margin": _optional_float(getattr(model, "margin_", None)),
        "radius": _optional_float(getattr(model, "radius_", None)),
        "novikoff_bound": _optional_float(getattr(model, "novikoff_bound_", None)),
    }


def _nearest_level(
    machines: tuple[PerceptronMachineFacts, ...], fit_intercept: bool
) -> float | None:
    """|f| of the training rows nearest to the plane, if the plane separates two classes."""
    only = machines[0]
    if len(machines) > 1 or only.margin is None or only.margin <= 0 or only.norm is None:
        return None
    return only.margin * math.hypot(only.norm, only.intercept if fit_intercept else 0.0)


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)


def _number(value: Any) -> float:
    """The number as an int if it is whole."""
    return int(value) if float(value).is_integer() else float(value)
