"""table_model: a pipeline of preparation and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.pipeline import Pipeline

from margrove.workbench.tables.prepare import TablePreparation

__all__ = ["form_for", "table_model", "types_of_model"]

_TREES = frozenset(
    {
        "DecisionTreeClassifier",
        "DecisionTreeRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
    }
)
_TREES_BY_DEFAULT = frozenset(
    {"BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier", "AdaBoostRegressor"}
)


def table_model(estimator: Any, types: Mapping[str, str] | None = None) -> Pipeline:
    """A model for raw tables with numbers, categories, dates, texts and missing values.

    Trees, forests and boosting of margrove get labels as labels and missing values as NaN. Margin
    machines, and models of other libraries, get scaled numbers and indicators. Bagging, AdaBoost
    and searches get the form that the model inside them needs.

    Parameters
    ----------
    estimator : estimator
    types : dict or None, default=None
        Types of columns by name; see `TablePreparation`.

    Returns
    -------
    Pipeline
        With the steps "prepare", a `TablePreparation`, and "model", the estimator.

    Examples
    --------
    >>> import margrove, polars as pl
    >>> from margrove.tables import table_model
    >>> table = pl.DataFrame({"sex": ["f", "m", "f", "m"], "age": [20, 30, None, 50]})
    >>> model = table_model(margrove.LinearSVC()).fit(table, ["yes", "no", "yes", "no"])
    >>> model.predict(table[["age", "sex"]]).tolist()
    ['yes', 'no', 'yes', 'no']
    >>> model["prepare"].form, table_model(margrove.RandomForestClassifier())["prepare"].form
    ('numbers', 'categories')
    """
    for method in ("fit", "get_params"):
        if isinstance(estimator, type) or not hasattr(estimator, method):
            raise TypeError(
                f"estimator must be an instance of an estimator, such as margrove.SVC(). Got "
                f"{estimator!r} instead."
            )
    given = None if types is None else dict(types)
    preparation = TablePreparation(form_for(estimator), types=given)
    return Pipeline([("prepare", preparation), ("model", estimator)])


def form_for(estimator: Any) -> str:
    """The form of tables that a model needs: "numbers" or "categories"."""
    return "categories" if _takes_labels(estimator) else "numbers"


def _takes_labels(estimator: Any) -> bool:
    if isinstance(estimator, Pipeline):
        steps = [step for _, step in estimator.steps if step not in (None, "passthrough")]
        return len(steps) == 1 and _takes_labels(steps[0])
    kind = type(estimator)
    parameters = estimator.get_params(deep=False)
    if kind.__module__.partition(".")[0] == "margrove":
        if kind.__name__ in _TREES:
            return bool(parameters.get("categorical_features", "from_dtype") is not None)
        if kind.__name__ in _TREES_BY_DEFAULT and parameters.get("estimator") is None:
            return True
    inside = _inside(parameters)
    return bool(inside) and all(_takes_labels(model) for model in inside)


def _inside(parameters: dict[str, Any]) -> list[Any]:
    """The models inside a model: in bagging, searches, calibration, voting and stacking."""
    found = [parameters[name] for name in ("estimator", "base_estimator") if name in parameters]
    members = parameters.get("estimators")
    if isinstance(members, (list, tuple)):
        found += [member[1] if isinstance(member, tuple) else member for member in members]
    if found and parameters.get("passthrough") is True:
        found.append(parameters.get("final_estimator"))
    return [model for model in found if hasattr(model, "get_params")] if _are_models(found) else []


def _are_models(found: list[Any]) -> bool:
    return all(hasattr(model, "get_params") or model in (None, "drop") for model in found)


def types_of_model(model: Any) -> dict[str, str]:
    """The types of the columns of a fitted table model, for `read_table`.

    With them, the columns of a table for predictions get the types that they had in training:
    ``read_table(file, types=types_of_model(model))``.

    Parameters
    ----------
    model : fitted Pipeline of `table_model`, or TablePreparation

    Returns
    -------
    dict
        The types of the used columns; empty for a model without a `TablePreparation`.
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    for step in steps:
        if isinstance(step, TablePreparation):
            return {column.name: column.type for column in step.columns_ if column.is_used}
    return {}
