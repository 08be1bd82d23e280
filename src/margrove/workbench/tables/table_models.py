"""A pipeline of preparation and model: `table_model`."""

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
_OF_TREES_BY_DEFAULT = frozenset(
    {"BaggingClassifier", "BaggingRegressor", "AdaBoostClassifier", "AdaBoostRegressor"}
)


def table_model(estimator: Any, types: Mapping[str, str] | None = None) -> Pipeline:
    """A model that takes raw tables: with numbers, categories, dates, texts and missing values.

    Trees, forests and boosting of margrove get labels as labels and NaN for what is missing; margin
    machines, and models of other libraries, get scaled numbers and indicators. Bagging, boosting
    and searches get what the model inside them wants.

    Parameters
    ----------
    estimator : estimator
    types : dict or None, default=None
        Types of columns, by name; see `TablePreparation`.

    Returns
    -------
    Pipeline
        Of a `TablePreparation`, "prepare", and the estimator, "model".

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
    """The form of tables that a model wants: "numbers" or "categories"."""
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
        if kind.__name__ in _OF_TREES_BY_DEFAULT and parameters.get("estimator") is None:
            return True
    inside = _inside(parameters)
    return bool(inside) and all(_takes_labels(own) for own in inside)


def _inside(parameters: dict[str, Any]) -> list[Any]:
    """The models that a model is made of: of bagging, searches, calibration, votes and stacks."""
    found = [parameters[name] for name in ("estimator", "base_estimator") if name in parameters]
    members = parameters.get("estimators")
    if isinstance(members, (list, tuple)):
        found += [own[1] if isinstance(own, tuple) else own for own in members]
    if found and parameters.get("passthrough") is True:
        found.append(parameters.get("final_estimator"))
    return [own for own in found if hasattr(own, "get_params")] if _are_models(found) else []


def _are_models(found: list[Any]) -> bool:
    return all(hasattr(own, "get_params") or own in (None, "drop") for own in found)


def types_of_model(model: Any) -> dict[str, str]:
    """Types of the columns that a fitted table model has learnt, as `read_table` takes them.

    Reading a table for predictions with them makes its columns what they were in training:
    ``read_table(file, types=types_of_model(model))``.

    Parameters
    ----------
    model : fitted Pipeline of `table_model`, or TablePreparation

    Returns
    -------
    dict
        Of the columns that are used; empty for a model without a `TablePreparation`.
    """
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    for step in steps:
        if isinstance(step, TablePreparation):
            return {own.name: own.type for own in step.columns_ if own.is_used}
    return {}
