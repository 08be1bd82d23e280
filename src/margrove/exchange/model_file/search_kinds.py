"""Searches over C and gamma in model files: the scores, and the machine that was chosen.

Machines of the folds and their times are left out, so that a file depends only on the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exchange.model_file.checks import (
    Check,
    Sizes,
    array,
    either,
    instance_of,
    labels,
    mapping,
    refuse_unless,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.exchange.model_file.margin_kinds import COLUMNS

__all__ = ["SEARCH_KINDS", "SEARCH_PARTS"]

_CELLS = "margrove.select.machines.grid_cells:Cells"


def _ending(value: Any, where: str, sizes: Sizes) -> None:
    is_text = isinstance(value, np.ndarray) and value.dtype.kind == "U"
    refuse_unless(
        is_text and value.shape == (sizes["c"], sizes["g"]),
        f"{where} is not text for each cell of the grid",
    )


_PROOF = either(array("f8", "c g"), array("i8", "c g"), _ending)


def _cells_without_times(values: dict[str, Any]) -> Any:
    from margrove.select.machines import Cells

    unknown = np.full(values["scores"].shape, np.nan)
    return Cells(**values, fit_seconds=unknown, score_seconds=unknown)


SEARCH_PARTS: dict[str, Part] = {
    "cells": Part(
        _CELLS,
        {
            "Cs": array("f8", "c", finite=True),
            "gammas": array("f8", "g"),
            "scores": array("f8", "c g k"),
            "proofs": mapping(_PROOF),
        },
        make=_cells_without_times,
    )
}


def _search(home: str, machine: str, **more: Check) -> Kind:
    return Kind(
        home,
        {
            **COLUMNS,
            "cells_": instance_of(_CELLS),
            "best_index_": whole(0),
            "best_estimator_?": instance_of(machine),
            **more,
        },
        examine=_chosen_is_there,
        take=_without_derived,
        make=_with_derived,
        skipped=frozenset({"paths_"}),
    )


def _chosen_is_there(fitted: dict[str, Any], sizes: Sizes) -> None:
    n_cells = fitted["cells_"].means.size
    refuse_unless(fitted["best_index_"] < n_cells, "best_index_ is outside the grid")
    machine = fitted.get("best_estimator_")
    if machine is not None:
        refuse_unless(hasattr(machine, "intercept_"), "best_estimator_ is not fitted")


def _without_derived(fitted: dict[str, Any]) -> dict[str, Any]:
    if "cells_" not in fitted:
        return fitted
    derived = fitted["cells_"].findings(0, 0).keys() - {"cells_", "best_index_"} | {"n_iter_"}
    return {name: value for name, value in fitted.items() if name not in derived}


def _with_derived(fitted: dict[str, Any]) -> dict[str, Any]:
    if "cells_" not in fitted:
        return fitted
    cells = fitted["cells_"]
    chosen = divmod(int(fitted["best_index_"]), len(cells.gammas))
    found = fitted | cells.findings(*chosen)
    if "best_estimator_" in fitted:
        found["n_iter_"] = fitted["best_estimator_"].n_iter_
    return found


SEARCH_KINDS: dict[str, Kind] = {
    "SVCCV": _search(
        "margrove.select.machines.svm_cv:SVCCV", "margrove.margin.svm.svc:SVC", classes_=labels("*")
    ),
    "SVRCV": _search("margrove.select.machines.svm_cv:SVRCV", "margrove.margin.svm.svr:SVR"),
    "LinearSVCCV": _search(
        "margrove.select.machines.linear_cv:LinearSVCCV",
        "margrove.margin.linear.linear_svc:LinearSVC",
        classes_=labels("*"),
    ),
}
