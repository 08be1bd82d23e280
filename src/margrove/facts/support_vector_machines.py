"""How SVC, NuSVC, SVR, NuSVR and OneClassSVM are described, with the proof of their certificate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError
from margrove.facts.expansions import against_the_rest, expansion_fields, support_fields
from margrove.facts.outlines import Given, estimator_fields
from margrove.facts.plain import frozen
from margrove.facts.values import (
    ClassifierFacts,
    MachineFacts,
    OneClassFacts,
    Probabilities,
    Proof,
    RegressorFacts,
    SupportKind,
    Trace,
)
from margrove.margin.certificate import Certificate, MachineCertificate, certificate
from margrove.margin.multiclass import machine_coefs, pairs_of
from margrove.margin.one_class_svm import OneClassSVM
from margrove.margin.solvers.result import TracePoint
from margrove.margin.support_vector_machine import SupportVectorMachine

__all__ = ["classifier_facts", "one_class_facts", "regressor_facts"]


def classifier_facts(model: Any, given: Given) -> ClassifierFacts:
    names = model.classes_.tolist()
    n_classes = len(names)
    if n_classes > 2 and len(model.dual_coef_) == n_classes - 1:
        titles = [f"{names[i]!r} against {names[j]!r}" for i, j in pairs_of(n_classes)]
    else:
        titles = against_the_rest(names)
    codes = np.repeat(np.arange(n_classes), model.n_support_)
    n = len(model.support_)
    coefs = list(machine_coefs(model.dual_coef_, np.arange(n), codes, n_classes, n))
    fields = _svm_fields(model, titles, coefs, _CLASSIFIER_KINDS, given)
    machines = tuple(
        dataclasses.replace(machine, margin_width=_margin_width(machine.norm))
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
    fields = _svm_fields(model, ["regression"], list(model.dual_coef_), _REGRESSOR_KINDS, given)
    tube = model.epsilon_ if hasattr(model, "epsilon_") else model.epsilon
    return RegressorFacts(**fields, tube=float(tube))


def one_class_facts(model: Any, given: Given) -> OneClassFacts:
    fields = _svm_fields(model, ["one class"], list(model.dual_coef_), _ONE_CLASS_KINDS, given)
    return OneClassFacts(**fields, nu=float(model.nu), offset=-float(model.intercept_[0]))


def _margin_width(norm: float | None) -> float | None:
    if norm is None:
        return None
    return 2.0 / norm if norm > 0 else math.inf


Rows = Callable[[MachineCertificate], np.ndarray]


def _with_slack(machine: MachineCertificate) -> np.ndarray:
    return np.setdiff1d(machine.support, machine.on_margin)


_CLASSIFIER_KINDS: dict[str, Rows] = {
    "on the margin": lambda machine: machine.on_margin,
    "inside the margin": lambda machine: machine.inside_margin,
    "misclassified": lambda machine: machine.misclassified,
}
_REGRESSOR_KINDS: dict[str, Rows] = {
    "on the edge of the tube": lambda machine: machine.on_margin,
    "outside the tube": _with_slack,
}
_ONE_CLASS_KINDS: dict[str, Rows] = {
    "on the boundary": lambda machine: machine.on_margin,
    "outside the region": _with_slack,
}


def _svm_fields(
    model: SupportVectorMachine,
    names: list[str],
    coefs: list[np.ndarray],
    kinds: dict[str, Rows],
    given: Given,
) -> dict[str, Any]:
    """The fields of `Facts`; `coefs` are those of all support vectors, for each machine."""
    found, unproven = _certificate_of(model, given)
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
                **({} if proven is None else _proven_fields(proven, kinds)),
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
        "kinds": _worst_kinds([machine.kinds for machine in machines]),
        "iterations": int(iterations.sum()),
        "converged": bool(converged),
        "proof": None if found is None else _model_proof(found, names),
        "unproven": unproven,
    }


def _certificate_of(model: Any, given: Given) -> tuple[Certificate | None, str]:
    """The proof, or why there is none."""
    X, y, sample_weight = given
    if X is not None:
        if y is None and not isinstance(model, OneClassSVM):
            raise InvalidDataError(
                "describe got X but no y, and a proof needs both. Pass the y that the model was "
                "fitted to, or neither."
            )
        return certificate(model, X, y, sample_weight), ""
    try:
        return model.certificate_, ""
    except AttributeError:
        return None, (
            "The training data are not remembered across pickling. Pass them: "
            "describe(model, X, y, sample_weight)."
        )
    except (InvalidDataError, TypeError) as error:  # X was changed since, or a subclass
        return None, str(error)


def _proven_fields(machine: MachineCertificate, kinds: dict[str, Rows]) -> dict[str, Any]:
    return {
        "n_free": len(machine.free),
        "n_bounded": len(machine.bounded),
        "bounded": frozen(machine.bounded),
        "kinds": tuple(_support_kind(name, rows_of(machine)) for name, rows_of in kinds.items()),
        "proof": _proof(machine, machine.place),
    }


def _support_kind(name: str, rows: np.ndarray) -> SupportKind:
    return SupportKind(name=name, count=len(rows), rows=frozen(rows))


def _worst_kinds(of_machines: Sequence[tuple[SupportKind, ...]]) -> tuple[SupportKind, ...]:
    """The kinds of all machines together, each row as the last kind that it is of."""
    together: list[SupportKind] = []
    taken = np.empty(0, dtype=np.int64)
    for same in reversed(list(zip(*of_machines, strict=True))):
        rows = np.setdiff1d(np.concatenate([kind.rows for kind in same]), taken)
        taken = np.union1d(taken, rows)
        together.insert(0, _support_kind(same[0].name, rows))
    return tuple(together)


def _proof(found: Certificate | MachineCertificate, place: str) -> Proof:
    return Proof(
        primal=float(found.primal),
        dual=float(found.dual),
        gap=float(found.gap),
        relative_gap=float(found.relative_gap),
        violation=float(found.violation),
        place=place,
    )


def _model_proof(found: Certificate, names: list[str]) -> Proof:
    worst = max(range(len(names)), key=lambda k: found.machines[k].violation)
    place = found.machines[worst].place
    return _proof(found, f"{names[worst]}: {place}" if place and len(names) > 1 else place)


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
        slopes=frozen(-model.probA_),
        log_loss=float(price.log_loss),
        log_loss_unconstrained=float(price.log_loss_unconstrained),
        price_of_agreement=float(price.difference),
        n_rows_changed=int(price.n_rows_changed),
    )
