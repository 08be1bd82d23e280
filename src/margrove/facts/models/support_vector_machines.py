"""Facts about SVC, NuSVC, SVR, NuSVR and OneClassSVM, with the proof of their certificate."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from margrove.facts.machine_values import (
    ClassifierFacts,
    MachineFacts,
    OneClassFacts,
    Probabilities,
    RegressorFacts,
    Trace,
)
from margrove.facts.models.expansions import against_the_rest, expansion_fields, support_fields
from margrove.facts.plain_values import frozen
from margrove.facts.proofs import (
    CLASSIFIER_KINDS,
    ONE_CLASS_KINDS,
    REGRESSOR_KINDS,
    Kinds,
    certificate_of,
    margin_width,
    model_proof,
    proven_fields,
    worst_kinds,
)
from margrove.facts.values import Given, estimator_fields
from margrove.margin.kernels import dual_coefficients
from margrove.margin.solvers.dual import TracePoint
from margrove.margin.svm import SupportVectorMachine, machine_coefs, pairs_of

__all__ = ["classifier_facts", "one_class_facts", "regressor_facts"]


def classifier_facts(model: Any, given: Given) -> ClassifierFacts:
    names = model.classes_.tolist()
    n_classes = len(names)
    if n_classes > 2 and model.dual_coef_.shape[0] == n_classes - 1:
        titles = [f"{names[i]!r} against {names[j]!r}" for i, j in pairs_of(n_classes)]
    else:
        titles = against_the_rest(names)
    codes = np.repeat(np.arange(n_classes), model.n_support_)
    n = len(model.support_)
    coefs = list(machine_coefs(dual_coefficients(model), np.arange(n), codes, n_classes, n))
    fields = _svm_fields(model, titles, coefs, CLASSIFIER_KINDS, given)
    machines = tuple(
        dataclasses.replace(machine, margin_width=margin_width(machine.norm))
        for machine in fields.pop("machines")
    )
    return ClassifierFacts(
        **fields,
        machines=machines,
        margin_level=1.0 if len(machines) == 1 else None,
        n_support_per_class=frozen(model.n_support_),
        class_weights=frozen(model.class_weight_),
        probabilities=_probabilities(model),
    )


def regressor_facts(model: Any, given: Given) -> RegressorFacts:
    fields = _svm_fields(
        model, ["regression"], list(dual_coefficients(model)), REGRESSOR_KINDS, given
    )
    tube = model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon
    return RegressorFacts(**fields, tube=float(tube))


def one_class_facts(model: Any, given: Given) -> OneClassFacts:
    fields = _svm_fields(
        model, ["one class"], list(dual_coefficients(model)), ONE_CLASS_KINDS, given
    )
    return OneClassFacts(**fields, nu=float(model.nu), offset=-float(model.intercept_[0]))


def _svm_fields(
    model: SupportVectorMachine,
    names: list[str],
    coefs: list[np.ndarray],
    kinds: Kinds,
    given: Given,
) -> dict[str, Any]:
    """The fields of `Facts`; `coefs` are those of all support vectors, for each machine."""
    found, unproven = certificate_of(model, given)
    fitted: Any = model
    iterations = np.atleast_1d(fitted.n_iter_)
    converged = fitted.fit_status_ == 0
    intercepts = np.asarray(model.intercept_)
    traces: list[Trace | None] = [*_traces(model), *[None] * len(names)]
    machines = []
    for k, (name, coef) in enumerate(zip(names, coefs, strict=True)):
        proven = None if found is None else found.machines[k]
        expansion = expansion_fields(model, coef, norm=None if proven is None else proven.norm)
        machines.append(
            MachineFacts(
                name=name,
                **expansion,
                **({} if proven is None else proven_fields(proven, kinds)),
                intercept=float(intercepts[k]),
                iterations=int(iterations[k]),
                converged=True if converged else (None if len(names) > 1 else False),
                trace=traces[k],
            )
        )
    return {
        **estimator_fields(model),
        **support_fields(model),
        "machines": tuple(machines),
        "n_samples": int(model.shape_fit_[0]),
        "kinds": worst_kinds([machine.kinds for machine in machines]),
        "iterations": int(iterations.sum()),
        "converged": bool(converged),
        "proof": None if found is None else model_proof(found, names),
        "unproven": unproven,
    }


def _traces(model: Any) -> list[Trace | None]:
    record = vars(model).get("_record")
    return [_trace(points) if points else None for points in getattr(record, "traces", [])]


def _trace(points: list[TracePoint]) -> Trace:
    return Trace(
        iterations=frozen([point.iterations for point in points]),
        dual=frozen([0.0 - point.objective for point in points]),
        violation=frozen([point.violation for point in points]),
    )


def _probabilities(model: Any) -> Probabilities | None:
    if "probA_" not in vars(model):
        return None
    price = model.price_of_agreement_
    return Probabilities(
        slopes=frozen(-vars(model)["probA_"]),
        log_loss=float(price.log_loss),
        log_loss_unconstrained=float(price.log_loss_unconstrained),
        price_of_agreement=float(price.difference),
        n_rows_changed=int(price.n_rows_changed),
    )
