"""Bagged ensembles in model files: their values, and the conditions that these satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exchange.model_file.checks import (
    Check,
    Sizes,
    array,
    class_at,
    either,
    estimator,
    flag,
    instance_of,
    labels,
    listed,
    plain,
    refuse_unless,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.exchange.model_file.margin_kinds import COLUMNS
from margrove.exchange.model_file.tree_kinds import MANY, MOST_DRAWS

__all__ = ["BAGGING_KINDS", "BAGGING_PARTS", "require_columns"]


def _line_as_values(line: Any) -> dict[str, Any]:
    return {"n_rows": line._n_rows, "is_whole": line.is_whole, "ends": line.ends}


def _line_of_values(values: dict[str, Any]) -> Any:
    line: Any = object.__new__(class_at(_LINE.home))
    line._n_rows, line.is_whole, line.ends = values["n_rows"], values["is_whole"], values["ends"]
    line.is_even = line.is_whole and line.ends[-1] == len(line.ends)
    return line


def _ends_ascend(values: dict[str, Any], sizes: Sizes) -> None:
    ends = values["ends"]
    refuse_unless(len(ends) and ends[0] > 0 and np.all(np.diff(ends) > 0), "ends do not ascend")


_LINE = Part(
    "margrove.ensemble.bootstrap.resampling:CumulativeWeights",
    {
        "n_rows": whole(1, MANY),
        "is_whole": flag,
        "ends": array("i8", "*", low=1, below=1 << 54),
    },
    examine=_ends_ascend,
    take=_line_as_values,
    make=_line_of_values,
)


def _samples_fit(fields: dict[str, Any], sizes: Sizes) -> None:
    starts = fields["starts"]
    refuse_unless(len(fields["line"].ends) == sizes["m"], "line and rows have different lengths")
    refuse_unless(
        len(starts) and starts[0] == 0 and np.all(np.diff(starts) > 0), "starts do not ascend"
    )


_ROW_SAMPLES = Part(
    "margrove.ensemble.bagging.samples:RowSamples",
    {
        "rows": array("i8", "m", low=0),
        "starts": array("i8", "*", low=0, below="m"),
        "line": instance_of(_LINE.home),
        "seed": whole(0),
        "n_draws": whole(1, MOST_DRAWS),
        "with_replacement": flag,
    },
    examine=_samples_fit,
)


def _shared_samples(fitted: dict[str, Any]) -> dict[str, Any]:
    """Fitted attributes in which samples that members share are saved once."""
    if "_samples" not in fitted:
        return fitted
    different = {id(samples): samples for samples in fitted["_samples"]}
    number = {key: k for k, key in enumerate(different)}
    which = np.array([number[id(samples)] for samples in fitted["_samples"]], np.int64)
    return fitted | {"_samples": [list(different.values()), which]}


def _samples_of_members(fitted: dict[str, Any]) -> dict[str, Any]:
    different, which = fitted["_samples"]
    return fitted | {"_samples": [different[k] for k in which.tolist()]}


def _samples_and_numbers(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(isinstance(value, list) and len(value) == 2, f"{where} is not a pair")
    listed(instance_of(_ROW_SAMPLES.home), "different")(value[0], where, sizes)
    array("i8", "members", low=0, below="different")(value[1], where, sizes)


def _bag_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["members"], "there are no members")
    for member, columns in zip(fitted["estimators_"], fitted["estimators_features_"], strict=True):
        require_columns(member, len(columns))


def require_columns(member: Any, n_columns: int) -> None:
    found = getattr(member, "n_features_in_", n_columns)
    refuse_unless(found == n_columns, "a member has another number of columns")


def _bagging(class_name: str) -> Kind:
    is_classifier = class_name.endswith("Classifier")
    of_classes: dict[str, Check] = {
        "classes_": labels("C"),
        "n_classes_": whole(1),
        "oob_decision_function_?": array("f8", "* C"),
    }
    of_numbers: dict[str, Check] = {
        "oob_prediction_?": either(array("f8", "*"), array("f8", "* *"))
    }
    return Kind(
        f"margrove.ensemble.bagging.estimators:{class_name}",
        {
            **COLUMNS,
            **(of_classes if is_classifier else of_numbers),
            "estimator_": estimator,
            "estimators_": listed(estimator, "members"),
            "estimators_features_": listed(array("i8", "*", low=0, below="d"), "members"),
            "_samples": _samples_and_numbers,
            "oob_score_?": plain,
        },
        take=_shared_samples,
        make=_samples_of_members,
        examine=_bag_fits,
    )


BAGGING_PARTS: dict[str, Part] = {"Line": _LINE, "RowSamples": _ROW_SAMPLES}

BAGGING_KINDS: dict[str, Kind] = {
    name: _bagging(name) for name in ("BaggingClassifier", "BaggingRegressor")
}
