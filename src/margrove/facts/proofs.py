"""From a certificate to facts: the proof, and the kinds of support vectors that it shows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError
from margrove.facts.machine_values import Proof
from margrove.facts.plain_values import frozen
from margrove.facts.values import Given, SupportKind
from margrove.margin.svm import Certificate, MachineCertificate, OneClassSVM, certificate

__all__ = [
    "CLASSIFIER_KINDS",
    "ONE_CLASS_KINDS",
    "REGRESSOR_KINDS",
    "Kinds",
    "certificate_of",
    "margin_width",
    "model_proof",
    "proven_fields",
    "worst_kinds",
]

Kinds = dict[str, Callable[[MachineCertificate], np.ndarray]]  # the rows of each kind, by its name


def _with_slack(machine: MachineCertificate) -> np.ndarray:
    return np.setdiff1d(machine.support, machine.on_margin)


def _on_the_right_side(machine: MachineCertificate) -> np.ndarray:
    """Rows on the margin; in a coarse solution, some of them can be misclassified too."""
    return np.setdiff1d(machine.on_margin, machine.misclassified)


CLASSIFIER_KINDS: Kinds = {
    "on the margin": _on_the_right_side,
    "inside the margin": lambda machine: machine.inside_margin,
    "misclassified": lambda machine: machine.misclassified,
}
REGRESSOR_KINDS: Kinds = {
    "on the edge of the tube": lambda machine: machine.on_margin,
    "outside the tube": _with_slack,
}
ONE_CLASS_KINDS: Kinds = {
    "on the boundary": lambda machine: machine.on_margin,
    "outside the region": _with_slack,
}


def certificate_of(model: Any, given: Given) -> tuple[Certificate | None, str]:
    """The certificate of a model, or why there is none."""
    X, y, sample_weight = given
    if X is not None:
        if y is None and not isinstance(model, OneClassSVM):
            raise InvalidDataError(
                "describe got X without y, but a proof needs both. Pass the y of the training "
                "data, or neither."
            )
        return certificate(model, X, y, sample_weight), ""
    if "_record" not in vars(model):
        return None, (
            "The model does not have its training data, for example because it was pickled. Pass "
            "them: describe(model, X, y, sample_weight)."
        )
    if model._record.X is None:
        return None, (
            "The training rows stayed on the cluster that the model was fitted on. Its gap is in "
            "model.certificate_; for the rest pass rows: describe(model, X, y, sample_weight)."
        )
    try:
        return model.certificate_, ""
    except (InvalidDataError, TypeError) as error:  # X has changed since the fit, or a subclass
        return None, str(error)


def proven_fields(machine: MachineCertificate, kinds: Kinds) -> dict[str, Any]:
    """The fields of `MachineFacts` that need a certificate."""
    return {
        "n_free": len(machine.free),
        "n_bounded": len(machine.bounded),
        "bounded": frozen(machine.bounded),
        "kinds": tuple(_support_kind(name, rows_of(machine)) for name, rows_of in kinds.items()),
        "proof": _proof(machine, _place(machine)),
    }


def margin_width(norm: float | None) -> float | None:
    """2 / ||w||, the distance between the two margins."""
    if norm is None:
        return None
    return 2.0 / norm if norm > 0 else math.inf


def worst_kinds(of_machines: Sequence[tuple[SupportKind, ...]]) -> tuple[SupportKind, ...]:
    """The kinds over all machines; a row has the last kind that it has in any machine."""
    together: list[SupportKind] = []
    taken = np.empty(0, dtype=np.int64)
    for same in reversed(list(zip(*of_machines, strict=True))):
        rows = np.setdiff1d(np.concatenate([kind.rows for kind in same]), taken)
        taken = np.union1d(taken, rows)
        together.insert(0, _support_kind(same[0].name, rows))
    return tuple(together)


def model_proof(found: Certificate, names: list[str]) -> Proof:
    """The proof of a model, with the machine and place of the largest violation."""
    worst = max(range(len(names)), key=lambda k: found.machines[k].violation)
    place = _place(found.machines[worst])
    return _proof(found, f"{names[worst]}: {place}" if place and len(names) > 1 else place)


def _support_kind(name: str, rows: np.ndarray) -> SupportKind:
    return SupportKind(name=name, count=len(rows), rows=frozen(rows))


def _place(machine: MachineCertificate) -> str:
    """Where the largest violation is; a condition may be about two rows, one or none."""
    first, second = machine.violating_rows
    if first != second or machine.violation == 0:
        return machine.place
    return f"at row {first}" if first >= 0 else ""


def _proof(found: Certificate | MachineCertificate, place: str) -> Proof:
    return Proof(
        primal=float(found.primal),
        dual=float(found.dual),
        gap=float(found.gap),
        relative_gap=float(found.relative_gap),
        violation=float(found.violation),
        place=place,
    )
