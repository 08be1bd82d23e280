"""Models of scikit-learn that combine other models: voting, stacking, calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exchange.model_file.checks import (
    OUTPUT,
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
    names,
    real,
    refuse_unless,
    size,
    text,
    whole,
)
from margrove.exchange.model_file.kinds import Kind

__all__ = ["COMBINING_KINDS"]


def _without_members(fitted: dict[str, Any]) -> dict[str, Any]:
    """Attributes without the members by name, which are also in `estimators_`."""
    if "named_estimators_" not in fitted:
        return fitted
    named = fitted["named_estimators_"]
    return fitted | {
        "named_estimators_": [[name, member == "drop"] for name, member in named.items()]
    }


def _with_members(fitted: dict[str, Any]) -> dict[str, Any]:
    from sklearn.utils import Bunch

    members, named = iter(fitted["estimators_"]), Bunch()
    for name, is_dropped in fitted["named_estimators_"]:
        named[name] = "drop" if is_dropped else next(members)
    return fitted | {"named_estimators_": named}


def _all_are_named(fitted: dict[str, Any], sizes: Sizes) -> None:
    kept = [name for name, is_dropped in fitted["named_estimators_"] if not is_dropped]
    refuse_unless(
        len(kept) == len(fitted["estimators_"]), "named_estimators_ does not match estimators_"
    )


def _name_and_flag(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(isinstance(value, list) and len(value) == 2, f"{where} is not a pair")
    text()(value[0], where, sizes)
    flag(value[1], where, sizes)


def _combining(home: str, **attributes: Check) -> Kind:
    return Kind(
        home,
        {
            "feature_names_in_?": names("d"),
            "estimators_": listed(estimator),
            "named_estimators_": listed(_name_and_flag),
            **attributes,
            **OUTPUT,
        },
        examine=_all_are_named,
        take=_without_members,
        make=_with_members,
        skipped=frozenset({"stack_method"}),
    )


_LABEL_ENCODER = "sklearn.preprocessing._label:LabelEncoder"

_STACKED: dict[str, Check] = {
    "final_estimator_": estimator,
    "stack_method_": listed(text("predict_proba", "decision_function", "predict")),
    "_n_feature_outs": listed(whole(0)),
}


def _thresholds_ascend(fitted: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(np.all(np.diff(fitted["X_thresholds_"]) >= 0), "X_thresholds_ do not ascend")


def _with_function(fitted: dict[str, Any]) -> dict[str, Any]:
    """Attributes with the interpolating function, which scikit-learn makes from the thresholds."""
    model = class_at("sklearn.isotonic:IsotonicRegression")(out_of_bounds="clip")
    model.__dict__ |= fitted
    model._build_f(fitted["X_thresholds_"], fitted["y_thresholds_"])
    return fitted | {"f_": model.f_}


COMBINING_KINDS = {
    "VotingClassifier": _combining(
        "sklearn.ensemble._voting:VotingClassifier",
        le_=instance_of(_LABEL_ENCODER),
        classes_=labels("*"),
    ),
    "VotingRegressor": _combining("sklearn.ensemble._voting:VotingRegressor"),
    "StackingClassifier": _combining(
        "sklearn.ensemble._stacking:StackingClassifier",
        _label_encoder=either(instance_of(_LABEL_ENCODER), listed(instance_of(_LABEL_ENCODER))),
        classes_=labels("*"),
        **_STACKED,
    ),
    "StackingRegressor": _combining("sklearn.ensemble._stacking:StackingRegressor", **_STACKED),
    "CalibratedClassifierCV": Kind(
        "sklearn.calibration:CalibratedClassifierCV",
        {
            "n_features_in_?": size("d"),
            "feature_names_in_?": names("d"),
            "classes_": labels("*"),
            "calibrated_classifiers_": listed(
                instance_of("sklearn.calibration:_CalibratedClassifier")
            ),
        },
    ),
    "SigmoidCalibration": Kind(
        "sklearn.calibration:_SigmoidCalibration", {"a_": real(), "b_": real()}
    ),
    "TemperatureScaling": Kind("sklearn.calibration:_TemperatureScaling", {"beta_": real()}),
    "IsotonicRegression": Kind(
        "sklearn.isotonic:IsotonicRegression",
        {
            "increasing_": flag,
            "X_min_": real(),
            "X_max_": real(),
            "X_thresholds_": array("f4 f8", "n", finite=True),
            "y_thresholds_": array("f4 f8", "n", finite=True),
        },
        examine=_thresholds_ascend,
        make=_with_function,
        skipped=frozenset({"f_"}),
    ),
    "DummyClassifier": Kind(
        "sklearn.dummy:DummyClassifier",
        {
            "n_features_in_": size("d"),
            "feature_names_in_?": names("d"),
            "_strategy": text("prior", "most_frequent", "uniform", "stratified", "constant"),
            "sparse_output_": flag,
            "n_outputs_": whole(1, 1),
            "classes_": labels("C"),
            "n_classes_": size("C"),
            "class_prior_": array("f8", "C"),
        },
    ),
    "DummyRegressor": Kind(
        "sklearn.dummy:DummyRegressor",
        {
            "n_features_in_": size("d"),
            "feature_names_in_?": names("d"),
            "n_outputs_": size("o"),
            "constant_": array("f4 f8", "1 o"),
        },
    ),
}
