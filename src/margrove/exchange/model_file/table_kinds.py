"""Preparations of raw tables in model files: names, labels, words and numbers of each column."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import DATE_PARTS
from margrove.exchange.model_file.checks import (
    OUTPUT,
    Check,
    Sizes,
    array,
    flag,
    instance_of,
    listed,
    names,
    optional,
    real,
    refuse_unless,
    size,
    text,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part

__all__ = ["TABLE_KINDS", "TABLE_PARTS"]

_COLUMN = "margrove.workbench.tables.prepare.column_types:Column"
_PART = "margrove.workbench.tables.prepare.column_encoders"
_PART_OF_TYPE = {
    "number": f"{_PART}:NumberPart",
    "category": f"{_PART}:CategoryPart",
    "date": f"{_PART}:DatePart",
    "text": f"{_PART}:TextPart",
}
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


def _ascending(what: str) -> Check:
    """Strings, sorted and without duplicates."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        names(what)(value, where, sizes)
        found = value.tolist()
        refuse_unless(found == sorted(set(found)), f"{where} are not sorted, or not unique")

    return check


def _other_is_another(values: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(values["other"] not in values["labels"].tolist(), "other is one of the labels")


def _parts_of_dates(value: Any, where: str, sizes: Sizes) -> None:
    listed(text(*DATE_PARTS), "p", tuple)(value, where, sizes)
    refuse_unless(len(set(value)) == len(value), f"{where} has a value twice")


TABLE_PARTS: dict[str, Part] = {
    "table column": Part(
        _COLUMN,
        {
            "name": text(),
            "type": text(*_PART_OF_TYPE, "constant", "ignored"),
            "reason": text(),
            "n_missing": whole(0),
            "n_values": whole(0),
        },
    ),
    "number column": Part(
        _PART_OF_TYPE["number"],
        {
            "name": text(),
            "fill": real(),
            "center": real(),
            "scale": real(low=_SMALLEST),
            "has_indicator": flag,
        },
    ),
    "category column": Part(
        _PART_OF_TYPE["category"],
        {"name": text(), "labels": _ascending("l"), "other": text(), "has_indicator": flag},
        examine=_other_is_another,
    ),
    "date column": Part(
        _PART_OF_TYPE["date"],
        {
            "name": text(),
            "parts": _parts_of_dates,
            "fill": array("f8", "p", finite=True),
            "center": array("f8", "p", finite=True),
            "scale": array("f8", "p", finite=True, low=_SMALLEST),
            "has_indicator": flag,
            "day_first": optional(flag),
        },
    ),
    "text column": Part(
        _PART_OF_TYPE["text"],
        {
            "name": text(),
            "words": _ascending("w"),
            "weights": array("f8", "w", finite=True, low=0.0),
            "words_a_row": real(low=0.0),
        },
    ),
}


def _parts_are_those_of_the_columns(fitted: dict[str, Any], sizes: Sizes) -> None:
    columns, learnt = fitted["columns_"], fitted["parts_"]
    known = [column.name for column in columns]
    refuse_unless(len(set(known)) == len(known), "columns_ has a name twice")
    used = [column for column in columns if column.is_used]
    refuse_unless(
        [column.name for column in used] == [part.name for part in learnt],
        "parts_ are not those of columns_",
    )
    for column, part in zip(used, learnt, strict=True):
        instance_of(_PART_OF_TYPE[column.type])(part, f"the part of {column.name[:50]!r}", sizes)
    outputs = "outputs" if fitted["_form"] == "numbers" else "tree_outputs"
    refuse_unless(any(getattr(part, outputs)() for part in learnt), "parts_ give no columns")
    if "feature_names_in_" in fitted:
        refuse_unless(
            fitted["feature_names_in_"].tolist() == known, "feature_names_in_ are other columns"
        )


TABLE_KINDS: dict[str, Kind] = {
    "TablePreparation": Kind(
        "margrove.workbench.tables.prepare.preparation:TablePreparation",
        {
            "n_features_in_": size("d", 1),
            "feature_names_in_?": names("d"),
            "columns_": listed(instance_of(_COLUMN), "d", tuple),
            "parts_": listed(instance_of(*_PART_OF_TYPE.values()), "*", tuple),
            "is_sparse_": flag,
            "_form": text("numbers", "categories"),
            **OUTPUT,
        },
        examine=_parts_are_those_of_the_columns,
    )
}
