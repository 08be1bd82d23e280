"""Facts about LinearSVC and LinearSVR: weights, the strongest features, the proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from margrove._data import check_table, check_training_labels
from margrove.facts.machine_values import LinearFacts, LinearMachineFacts
from margrove.facts.models.strongest import feature_names_of, is_joint, machine_names, strongest_of
from margrove.facts.plain_values import frozen
from margrove.facts.proofs import (
    CLASSIFIER_KINDS,
    REGRESSOR_KINDS,
    Kinds,
    certificate_of,
    margin_width,
    model_proof,
    proven_fields,
    worst_kinds,
)
from margrove.facts.values import Given, estimator_fields
from margrove.margin import dense_coefficients
from margrove.margin.svm import Certificate, MachineCertificate

__all__ = ["linear_classifier_facts", "linear_regressor_facts"]

_SHOWN = 10  # strongest features of a machine


def linear_classifier_facts(model: Any, given: Given) -> LinearFacts:
    fields = _fields(model, given, CLASSIFIER_KINDS)
    one = len(fields["machines"]) == 1
    return LinearFacts(**fields, penalty=model.penalty, margin_level=1.0 if one else None)


def linear_regressor_facts(model: Any, given: Given) -> LinearFacts:
    return LinearFacts(**_fields(model, given, REGRESSOR_KINDS), penalty="l2")


def _fields(model: Any, given: Given, kinds: Kinds) -> dict[str, Any]:
    found, unproven = certificate_of(model, given)
    record = vars(model).get("_record")
    if given[0] is None and record is not None:
        given = record.X, record.y, record.sample_weight
    coef = dense_coefficients(model)
    weights = np.atleast_2d(np.asarray(coef))
    names = machine_names(model, len(weights))
    proven = [] if found is None else _proven_of_machines(model, found, given, kinds, len(names))
    columns = feature_names_of(model, weights.shape[1])
    machines = []
    for k, name in enumerate(names):
        norm = float(np.linalg.norm(weights[k]))
        # Weights of Crammer and Singer have a margin for each pair of classes, not for each class.
        has_margin = kinds is CLASSIFIER_KINDS and (len(names) == 1 or not is_joint(model))
        machines.append(
            LinearMachineFacts(
                name=name,
                **(proven[k] if proven else _NOTHING_PROVEN),
                intercept=float(np.ravel(model.intercept_)[k]),
                weights=frozen(weights[k]),
                norm=norm,
                margin_width=margin_width(norm) if has_margin else None,
                converged=_has_converged(record, k),
                strongest=strongest_of(weights[[k]], columns, _SHOWN),
            )
        )
    return {
        **estimator_fields(model),
        "kernel": None,
        "machines": tuple(machines),
        **_support_fields(model, found, given),
        "iterations": int(model.n_iter_),
        "converged": None if record is None else bool(record.result.converged.all()),
        "kinds": () if found is None else _kinds_of_all(found, kinds),
        "proof": None if found is None else model_proof(found, _names_of_proofs(found, names)),
        "unproven": unproven,
        "loss": model.loss,
        "n_nonzero": int(np.count_nonzero(weights)),
    }


_NOTHING_PROVEN: dict[str, Any] = {
    "n_support": None,
    "support": frozen(np.empty(0, dtype=np.int64)),
    "coefficients": frozen(np.empty(0)),
}


def _proven_of_machines(
    model: Any, found: Certificate, given: Given, kinds: Kinds, n_machines: int
) -> list[dict[str, Any]]:
    """The fields from the certificate of each machine; joint machines have one certificate."""
    if is_joint(model) or len(found.machines) != n_machines:  # or it was joint when fitted
        return [_NOTHING_PROVEN] * n_machines
    signs = _signs(model, given)
    return [
        _support_of(machine, signs(k, machine.rows)) | proven_fields(machine, kinds)
        for k, machine in enumerate(found.machines)
    ]


def _support_of(machine: MachineCertificate, signs: np.ndarray) -> dict[str, Any]:
    used = np.flatnonzero(machine.alpha)
    return {
        "n_support": len(used),
        "support": frozen(machine.rows[used]),
        "coefficients": frozen(machine.alpha[used] * signs[used]),
    }


def _signs(model: Any, given: Given) -> Any:
    """A function of a machine and rows: y as +1 and -1, the signs of the certificate's alpha."""
    if not hasattr(model, "classes_"):
        return lambda k, rows: np.ones(len(rows))
    _, y, sample_weight = given
    labels = check_training_labels(y, sample_weight, None, len(y))
    is_binary = len(labels.classes) == 2
    return lambda k, rows: np.where(labels.codes[rows] == (1 if is_binary else k), 1.0, -1.0)


def _support_fields(model: Any, found: Certificate | None, given: Given) -> dict[str, Any]:
    """The fields that all machines share."""
    if found is None:
        nothing = _NOTHING_PROVEN["support"]
        return {"n_samples": None, "n_support": None, "support": nothing, "support_vectors": None}
    X = check_table(given[0], model).X
    is_support = np.zeros(X.shape[0], dtype=bool)
    for machine in found.machines:
        is_support[machine.support] = True
    support = np.flatnonzero(is_support)
    vectors = X[support]
    return {
        "n_samples": X.shape[0],
        "n_support": len(support),
        "support": frozen(support),
        "support_vectors": vectors if sp.issparse(vectors) else frozen(vectors),
    }


def _kinds_of_all(found: Certificate, kinds: Kinds) -> tuple[Any, ...]:
    return worst_kinds([proven_fields(machine, kinds)["kinds"] for machine in found.machines])


def _names_of_proofs(found: Certificate, names: list[str]) -> list[str]:
    return names if len(found.machines) == len(names) else [m.name for m in found.machines]


def _has_converged(record: Any, k: int) -> bool | None:
    if record is None:
        return None
    converged = record.result.converged  # joint machines share one entry
    return bool(converged[k if len(converged) > 1 else 0])
