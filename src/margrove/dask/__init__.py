"""The learners on a Dask cluster: tables that fit no single machine, and the same models.

Each class here has the name, the parameters and the fitted attributes of the one in `margrove`.
What is fitted on Dask collections is, bit for bit, what one machine with all rows would have
fitted; `to_local()` gives the ordinary estimator, and `margrove.save` writes it.

Public names are imported when they are first used; importing this module does not import Dask.
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

_HOME_OF = {
    # learners
    "HistGradientBoostingClassifier": "margrove.dask.boosting",
    "HistGradientBoostingRegressor": "margrove.dask.boosting",
    "RandomForestClassifier": "margrove.dask.forests",
    "RandomForestRegressor": "margrove.dask.forests",
    "ExtraTreesClassifier": "margrove.dask.forests",
    "ExtraTreesRegressor": "margrove.dask.forests",
    "BaggingClassifier": "margrove.dask.forests",
    "BaggingRegressor": "margrove.dask.forests",
    "AdaBoostClassifier": "margrove.dask.adaboost",
    "AdaBoostRegressor": "margrove.dask.adaboost",
    "LinearSVC": "margrove.dask.linear",
    "LinearSVR": "margrove.dask.linear",
    "Perceptron": "margrove.dask.perceptron",
    # any fitted model on Dask collections, lazily
    "apply": "margrove.dask.predicting",
    "decision_function": "margrove.dask.predicting",
    "predict": "margrove.dask.predicting",
    "predict_log_proba": "margrove.dask.predicting",
    "predict_proba": "margrove.dask.predicting",
    "score": "margrove.dask.predicting",
    "transform": "margrove.dask.predicting",
}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("distributed") is None:
        raise ImportError(
            f"margrove.dask.{name} needs Dask, which is not installed: pip install 'margrove[dask]'"
        )
    found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
