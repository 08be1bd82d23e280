"""The certificate of a linear machine that was fitted on a cluster: from sums, and from its rows.

Objectives, gap and violation come from sums of the workers. Values of single rows are gathered if
the rows are few enough. Otherwise, reading them is an error that says what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from margrove.exceptions import InvalidDataError
from margrove.margin.linear import LinearRecord, objective_unit
from margrove.margin.solvers.linear import LinearResult
from margrove.margin.svm import Certificate, MachineCertificate

__all__ = [
    "MOST_ROWS",
    "MachineOutcome",
    "SummedCertificate",
    "certificate_of_sums",
    "machine_names",
]

MOST_ROWS = 4_000_000  # times machines, up to which dual variables are gathered
_OF_ROWS = frozenset({"rows", "alpha", "decision", "errors", "is_bounded"})


class SummedCertificate(MachineCertificate):
    """The certificate of a machine with too many rows to gather them."""

    def __getattribute__(self, name: str) -> Any:
        if name in _OF_ROWS:
            raise InvalidDataError(
                f"The certificate has no {name!r}: it was computed from sums over more than "
                f"{MOST_ROWS} rows, which stayed on the cluster. Its objectives, gap and violation "
                "are those of all rows. For single rows use "
                "margrove.certificate(model.to_local(), X, y) with rows that fit into memory."
            )
        return super().__getattribute__(name)


@dataclass(frozen=True)
class ClusterCertificate(Certificate):
    """The certificate of a model that was fitted on a cluster."""

    def __str__(self) -> str:
        if not isinstance(self.machines[0], SummedCertificate):
            return super().__str__()
        lines = [
            f"primal objective  {self.primal:.10g}",
            f"dual objective    {self.dual:.10g}",
            f"duality gap       {self.gap:.3g}  ({100 * self.relative_gap:.2g} %)",
            f"KKT violation     {self.violation:.3g}",
            f"machines          {len(self.machines)}",
        ]
        return "\n".join(lines)


def machine_names(classes: np.ndarray | None, n_machines: int) -> list[str]:
    """The names of the machines, as in `margrove.margin.linear.certificates`."""
    if classes is None:
        return ["regression"]
    labels = classes.tolist()
    if len(labels) == 2:
        return [f"{labels[1]!r} against {labels[0]!r}"]
    return [f"{labels[k]!r} against the rest" for k in range(n_machines)]


@dataclass(frozen=True)
class MachineOutcome:
    """One solved machine, in the units of the solver.

    worst_row   the row of the largest violation
    of_rows     values of the certificate for each row; None if there are too many rows
    """

    result: LinearResult
    worst_row: int
    of_rows: dict[str, np.ndarray] | None


def certificate_of_sums(
    record: LinearRecord, names: list[str], outcomes: list[MachineOutcome]
) -> Certificate:
    """The certificate of all machines of a record."""
    machines = [
        _machine(record, name, outcome) for name, outcome in zip(names, outcomes, strict=True)
    ]
    return ClusterCertificate(tuple(machines))


def _machine(record: LinearRecord, name: str, outcome: MachineOutcome) -> MachineCertificate:
    result, of_rows = outcome.result, outcome.of_rows
    factor = record.target_scale.factor
    primal, dual = float(result.primal[0]), float(result.dual[0])
    unit = objective_unit(record, primal)
    with np.errstate(over="ignore", under="ignore"):
        unit_of_alpha = float(np.prod(record.units)) / factor
    unit_of_alpha = unit_of_alpha if 0.0 < unit_of_alpha < np.inf else 1.0
    kind = MachineCertificate if of_rows is not None else SummedCertificate
    rows = of_rows or dict.fromkeys(_OF_ROWS, np.empty(0))
    alpha = rows["alpha"] if name == "regression" else np.abs(rows["alpha"])
    values: dict[str, Any] = {
        "name": name,
        "primal": primal * unit,
        "dual": dual * unit,
        "gap": max(primal - dual, 0.0) * unit,
        "violation": float(result.violation[0]) / factor,
        "violating_rows": (outcome.worst_row,) * 2,
        "norm": float(np.linalg.norm(result.coef[0])) * record.units[0] / factor,
        "rows": rows["rows"],
        "alpha": alpha * unit_of_alpha,
        "decision": rows["decision"] / factor + record.target_scale.centre,
        "errors": rows["errors"] / factor,
        "is_bounded": rows["is_bounded"],
    }
    assert {attribute.name for attribute in fields(MachineCertificate)} == {*values, "trace"}
    return kind(**values)
