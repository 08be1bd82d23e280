"""The learners on a Dask cluster, for tables that are too large for one machine.

Each class here has the name, the parameters and the fitted attributes of the one in `margrove`.
Forests, boosting and bagging of Dask collections are, bit for bit, those of one machine with all
rows. `to_local()` returns the ordinary estimator, and `margrove.save` writes it.

Classes also have the names that xgboost and lightgbm use on Dask: `DaskLinearSVC` is `LinearSVC`.

Public names are imported when they are first used; importing this module does not import Dask.

adaboost            AdaBoost: one worker gets all rows
bagging             bagging: one worker gets all rows
boosting/           histogram gradient boosting on a cluster
cluster/            a Dask cluster: its client and workers
cluster_estimator   what all estimators on a cluster share
exchanges           sums over the workers of a fit, through the connections of the cluster
forest/             forests on a cluster: each worker holds the whole table as codes
host_memory         sums between workers of one machine, in memory that they share
linear_fit          the fit of a linear machine: the local solver on every worker
linear_machines     LinearSVC and LinearSVR
mailboxes           what other workers have sent to a fit, and its reports to the client
members             one program on several workers at once, each with some of the rows
online              learners that process the partitions one after the other
partitions/         tables on a cluster: Dask collections as checked partitions that lie on the
                    workers
perceptron          Perceptron
predictions         lazy predictions of any fitted model, partition by partition
registrations       kernels, criteria and losses of the user, on the workers
single_worker       fits on one worker with all rows, for sequential learners
"""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

_HOME_OF = {
    # learners
    "HistGradientBoostingClassifier": "margrove.dask.boosting.estimators",
    "HistGradientBoostingRegressor": "margrove.dask.boosting.estimators",
    "RandomForestClassifier": "margrove.dask.forest.estimators",
    "RandomForestRegressor": "margrove.dask.forest.estimators",
    "ExtraTreesClassifier": "margrove.dask.forest.estimators",
    "ExtraTreesRegressor": "margrove.dask.forest.estimators",
    "BaggingClassifier": "margrove.dask.bagging",
    "BaggingRegressor": "margrove.dask.bagging",
    "AdaBoostClassifier": "margrove.dask.adaboost",
    "AdaBoostRegressor": "margrove.dask.adaboost",
    "LinearSVC": "margrove.dask.linear_machines",
    "LinearSVR": "margrove.dask.linear_machines",
    "Perceptron": "margrove.dask.perceptron",
    # any fitted model on Dask collections, lazily
    "apply": "margrove.dask.predictions",
    "decision_function": "margrove.dask.predictions",
    "predict": "margrove.dask.predictions",
    "predict_log_proba": "margrove.dask.predictions",
    "predict_proba": "margrove.dask.predictions",
    "score": "margrove.dask.predictions",
    "transform": "margrove.dask.predictions",
}

_PREFIX = "Dask"

__all__ = sorted([*_HOME_OF, *(_PREFIX + name for name in _HOME_OF if name[0].isupper())])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    name_of_class = name.removeprefix(_PREFIX)
    home = _HOME_OF.get(name_of_class)
    if home is None or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("distributed") is None:
        raise ImportError(
            f"margrove.dask.{name} needs Dask, which is not installed: pip install 'margrove[dask]'"
        )
    found = getattr(importlib.import_module(home), name_of_class)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
