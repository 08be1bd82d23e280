"""Estimators of scikit-learn that a model file may contain beside those of margrove.

These are preprocessing, pipelines, and estimators that combine others. None of them runs code of
the user: a FunctionTransformer is accepted only without a function, and functions as parameters are
refused.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from margrove.exchange.model_file.checks import (
    OUTPUT,
    Check,
    Sizes,
    array,
    either,
    estimator,
    flag,
    instance_of,
    labels,
    listed,
    mapping,
    names,
    optional,
    plain,
    real,
    refuse_unless,
    size,
    text,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.exchange.model_file.sklearn_ensemble_kinds import COMBINING_KINDS

__all__ = ["SKLEARN_KINDS", "SKLEARN_PARTS"]

_COLUMNS: dict[str, Check] = {"n_features_in_": size("d"), "feature_names_in_?": names("d")}

_NUMBERS = array("f4 f8", "d")

_SEEN = either(real(), array("i8 f8", "d"))

_STEP = either(text("passthrough", "drop"), estimator)


def _scaler(class_name: str, **attributes: Check) -> Kind:
    return Kind(f"sklearn.preprocessing._data:{class_name}", {**_COLUMNS, **attributes, **OUTPUT})


# -- missing values --


def _with_dtypes(fitted: dict[str, Any]) -> dict[str, Any]:
    """Attributes in which the dtypes of `_DTYPES` are strings."""
    kept = {name: fitted[name].str for name in _DTYPES if name in fitted}
    return fitted | kept


def _without_dtypes(fitted: dict[str, Any]) -> dict[str, Any]:
    return fitted | {name: np.dtype(fitted[name]) for name in _DTYPES if name in fitted}


_DTYPES = ("_fit_dtype", "_fill_dtype")

_DTYPE = text("|O", "|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")

_MISSING_INDICATOR = "sklearn.impute._base:MissingIndicator"

_IMPUTING = {
    "SimpleImputer": Kind(
        "sklearn.impute._base:SimpleImputer",
        {
            **_COLUMNS,
            "statistics_": array("f4 f8 i4 i8 O", "d"),
            "indicator_": optional(instance_of(_MISSING_INDICATOR)),
            "_fit_dtype": _DTYPE,
            "_fill_dtype?": _DTYPE,
            **OUTPUT,
        },
        take=_with_dtypes,
        make=_without_dtypes,
    ),
    "MissingIndicator": Kind(
        _MISSING_INDICATOR,
        {
            **_COLUMNS,
            "features_": array("i4 i8", "*", low=0, below="d"),
            "_n_features": size("d"),
            "_precomputed": flag,
            **OUTPUT,
        },
    ),
}


# -- categories --


def _sorted_labels(value: Any, where: str, sizes: Sizes) -> None:
    """Labels that are sorted if they are numbers, for binary search; NaN and None come last."""
    labels("*")(value, where, sizes)
    numbers = [x for x in value.tolist() if isinstance(x, (int, float)) and x == x]  # noqa: PLR0124
    refuse_unless(
        all(a < b for a, b in pairwise(numbers)) and (not numbers or value[0] == numbers[0]),
        f"{where} are not sorted",
    )


def _columns_add_up(fitted: dict[str, Any], sizes: Sizes) -> None:
    """Each category, or group of rare ones, has one column, unless it is dropped."""
    n_groups = [len(labels) for labels in fitted["categories_"]]
    groups = fitted.get("_default_to_infrequent_mappings")
    refuse_unless(fitted["_infrequent_enabled"] == (groups is not None), "groups are missing")
    for column, group in enumerate(groups or ()):
        if group is not None:
            refuse_unless(len(group) == n_groups[column], "categories_ and their groups differ")
            n_groups[column] = int(group.max(initial=-1)) + 1
    dropped = fitted["_drop_idx_after_grouping"]
    for column, number in enumerate(() if dropped is None else dropped):
        if number is not None:
            whole(0, n_groups[column] - 1)(number, "a dropped category", sizes)
            n_groups[column] -= 1
    refuse_unless(
        [int(n) for n in fitted["_n_features_outs"]] == n_groups, "_n_features_outs does not add up"
    )


_ENCODED: dict[str, Check] = {
    **_COLUMNS,
    "categories_": listed(_sorted_labels, "d"),
    "_infrequent_enabled": flag,
    "_infrequent_indices?": listed(optional(array("i8", "*", low=0)), "d"),
    "_default_to_infrequent_mappings?": listed(optional(array("i8", "*", low=0)), "d"),
}

_ENCODING = {
    "OneHotEncoder": Kind(
        "sklearn.preprocessing._encoders:OneHotEncoder",
        {
            **_ENCODED,
            "drop_idx_": optional(array("O", "d")),
            "_drop_idx_after_grouping": optional(array("O", "d")),
            "_n_features_outs": listed(whole(0), "d"),
            **OUTPUT,
        },
        examine=_columns_add_up,
    ),
    "OrdinalEncoder": Kind(
        "sklearn.preprocessing._encoders:OrdinalEncoder",
        {**_ENCODED, "_missing_indices": mapping(whole(0)), **OUTPUT},
    ),
    "LabelEncoder": Kind("sklearn.preprocessing._label:LabelEncoder", {"classes_": labels("*")}),
}


# -- columns and steps --


def _fitted_step(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(isinstance(value, tuple) and len(value) == 3, f"{where} is not a step")
    text()(value[0], where, sizes)
    _STEP(value[1], where, sizes)


_COMPOSING = {
    "ColumnTransformer": Kind(
        "sklearn.compose._column_transformer:ColumnTransformer",
        {
            **_COLUMNS,
            "transformers_": listed(_fitted_step),
            "_columns": listed(plain),
            "_transformer_to_input_indices": mapping(listed(whole(0))),
            "_remainder": _fitted_step,
            "_n_features?": size("d"),
            "sparse_output_": flag,
            "output_indices_": mapping(plain),
            **OUTPUT,
        },
    ),
    "FunctionTransformer": Kind(
        "sklearn.preprocessing._function_transformer:FunctionTransformer",
        {"n_features_in_?": size("d"), "feature_names_in_?": names("d"), **OUTPUT},
    ),
    "Pipeline": Kind("sklearn.pipeline:Pipeline", {}),
}


# -- texts --


def _vocabulary_is_numbered(fitted: dict[str, Any], sizes: Sizes) -> None:
    numbers = sorted(int(number) for number in fitted["vocabulary_"].values())
    refuse_unless(
        numbers == list(range(len(numbers))), "vocabulary_ is not numbered from 0 without gaps"
    )


_WORDS: dict[str, Check] = {
    "vocabulary_": mapping(whole(0)),
    "fixed_vocabulary_": flag,
}

_NO_WORDS = frozenset({"_stop_words_id"})

_READING = {
    "CountVectorizer": Kind(
        "sklearn.feature_extraction.text:CountVectorizer",
        _WORDS,
        examine=_vocabulary_is_numbered,
        skipped=_NO_WORDS,
    ),
    "TfidfTransformer": Kind(
        "sklearn.feature_extraction.text:TfidfTransformer",
        {**_COLUMNS, "idf_?": array("f4 f8", "d", finite=True), **OUTPUT},
    ),
    "TfidfVectorizer": Kind(
        "sklearn.feature_extraction.text:TfidfVectorizer",
        {**_WORDS, "_tfidf": instance_of("sklearn.feature_extraction.text:TfidfTransformer")},
        examine=_vocabulary_is_numbered,
        skipped=_NO_WORDS,
    ),
}

SKLEARN_KINDS: dict[str, Kind] = {
    "StandardScaler": _scaler(
        "StandardScaler",
        scale_=optional(_NUMBERS),
        mean_=optional(_NUMBERS),
        var_=optional(_NUMBERS),
        n_samples_seen_=_SEEN,
    ),
    "MinMaxScaler": _scaler(
        "MinMaxScaler",
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _NUMBERS),
        n_samples_seen_=_SEEN,
    ),
    "MaxAbsScaler": _scaler(
        "MaxAbsScaler", scale_=_NUMBERS, max_abs_=_NUMBERS, n_samples_seen_=_SEEN
    ),
    "RobustScaler": _scaler("RobustScaler", center_=optional(_NUMBERS), scale_=optional(_NUMBERS)),
    **_IMPUTING,
    **_ENCODING,
    **_COMPOSING,
    **_READING,
    **COMBINING_KINDS,
}

SKLEARN_PARTS: dict[str, Part] = {
    "CalibratedClassifier": Part(
        "sklearn.calibration:_CalibratedClassifier",
        {
            "estimator": estimator,
            "calibrators": listed(
                instance_of(
                    "sklearn.calibration:_SigmoidCalibration",
                    "sklearn.calibration:_TemperatureScaling",
                    "sklearn.isotonic:IsotonicRegression",
                )
            ),
            "classes": labels("*"),
            "method": text("sigmoid", "isotonic", "temperature"),
        },
    ),
    "ColumnSelector": Part(
        "sklearn.compose._column_transformer:make_column_selector",
        {"pattern": optional(text()), "dtype_include": plain, "dtype_exclude": plain},
    ),
}
