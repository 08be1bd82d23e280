"""AdaBoost on a Dask cluster.

Rounds follow one another, and only a part of a round can be shared. Of stumps that is the search
for the best one, column by column (`adaboost_columns`); everything else is boosted by one worker,
with all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from margrove._data import check_weights
from margrove._runtime.slices import is_kept
from margrove.dask.adaboost_columns import (
    ColumnBooster,
    ColumnTable,
    StumpStart,
    are_many,
    columns_of_parts,
)
from margrove.dask.adaboost_member import Rules
from margrove.dask.cluster import warm_kernels
from margrove.dask.encoding import encoded
from margrove.dask.parts import Parts, parts_of
from margrove.dask.persistence import persistently
from margrove.dask.whole_fits import FitOnOneWorker
from margrove.ensemble.adaboost import classifier as adaboost
from margrove.ensemble.adaboost import regressor as adaboost_regressor
from margrove.ensemble.adaboost.classifier import _counts_and_logs
from margrove.ensemble.adaboost.rounds import StumpBoosting
from margrove.ensemble.adaboost.stumps import Stumps
from margrove.ensemble.adaboost.training_data import BoostingRows, is_plain_tree, is_small_tree
from margrove.ensemble.adaboost.weak_learners import StumpMembers
from margrove.exceptions import InvalidDataError
from margrove.grove.table.encoding import TreeTable

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor"]

_OF_VOTES = ("samme", "discrete", "m1")


class _NotByColumns(Exception):  # noqa: N818, no fault of anybody
    """The table is not one that stumps are boosted on column by column."""


class AdaBoostClassifier(FitOnOneWorker, adaboost.AdaBoostClassifier):
    """`margrove.AdaBoostClassifier` on Dask collections.

    Stumps that vote, on numbers none of which is missing, are boosted by up to eight workers, of
    which each holds some of the columns of all rows as codes, and all weights. Of a table that is
    not worth it (below half a million cells), of other members, with rows to watch and with
    `warm_start`, a worker that has room for it gets all rows and boosts as one machine would;
    callbacks and `margrove.watch` then do not hear of single rounds. The model is, bit for bit, the
    local one, whoever is lost on the way. Parameters and attributes are those of
    `margrove.AdaBoostClassifier`.

    Examples
    --------
    >>> import dask.array as da, distributed
    >>> from margrove.dask import AdaBoostClassifier
    >>> from margrove.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> with distributed.Client(processes=False, dashboard_address=":0") as client:
    ...     X_parts, y_parts = da.from_array(X, (50, 4)), da.from_array(y, 50)
    ...     model = AdaBoostClassifier(n_estimators=10, random_state=0).fit(X_parts, y_parts)
    >>> len(model.to_local())
    10
    """

    def _fit_on_cluster(
        self, X: Any, y: Any, sample_weight: Any, client: Any, **others: Any
    ) -> None:
        self._check_parameters()
        parts = parts_of(X, y, sample_weight, client, self, keep_frames=True)
        is_watched = any(value is not None for value in others.values())
        if is_watched or not self._boosts_stumps() or not self._fitted_by_columns(parts):
            self._fit_parts(parts, client, **others)

    def _boosts_stumps(self) -> bool:
        """Whether the parameters ask for what `StumpBooster` does, and no more.

        Rows held out, and those of an earlier fit, are looked at as rows. A checkpoint would have
        to know the rows.
        """
        base = self._base()
        if not is_plain_tree(base) or self._resamples(base) or self._algorithm not in _OF_VOTES:
            return False
        if self.early_stopping or self.warm_start or is_kept():
            return False
        anything = BoostingRows(None, TreeTable(np.empty((0, 1)), None, {}), {})
        has_callbacks = bool(getattr(self, "_skl_callbacks", None))
        return is_small_tree(base, anything, 1) and not has_callbacks

    def _fitted_by_columns(self, parts: Parts) -> bool:
        """Fit, unless the table is not one for that."""
        client = parts.client
        if parts.y is None or not are_many(parts.n_rows, parts.n_features):
            return False
        if len(persistently(lambda workers: workers, client)) < 2:
            return False
        try:
            found = encoded(parts, self, self._base().categorical_features)
        except InvalidDataError:  # what one worker makes of it, it says itself
            return False
        if found.categories:
            return False
        persistently(lambda workers: warm_kernels(client, workers, self._kernels), client)
        table = ColumnTable(found.parts)
        try:
            super().fit(table, parts.gather_y(), parts.gather_weight())
        except _NotByColumns:
            return False
        finally:
            table.close()
        return True

    # -- where the local fit looks at X, the cluster is asked instead --

    def _read(self, X: Any, y: Any, sample_weight: Any, base: Any) -> Any:
        if not isinstance(X, ColumnTable):
            return super()._read(X, y, sample_weight, base)
        given = super()._read(sp.csr_array(X.shape), y, sample_weight, base)  # of no cells
        kept = check_weights(sample_weight, X.shape[0]) > 0
        n_workers = len(persistently(lambda workers: workers, X.parts.client))
        X.columns = columns_of_parts(X.parts, None if kept.all() else kept, n_workers)
        if X.columns is None or len(X.columns.groups) < 2:
            raise _NotByColumns
        table = TreeTable(X, X.parts.feature_names, {})
        return replace(given, rows=BoostingRows(X, table, table.attributes))

    def _process(
        self, rule: Any, base: Any, given: Any, watched: Any, n_rounds: int, seed: int
    ) -> Any:
        table = given.rows.X
        if not isinstance(table, ColumnTable) or table.columns is None:
            return super()._process(rule, base, given, watched, n_rounds, seed)
        rules = Rules(
            table.shape[1], len(given.classes), base.criterion, rule.bonus, rule.chance,
            self.learning_rate,
        )  # fmt: skip
        start = StumpStart(given.labels, *_counts_and_logs(given.weight), given.samples)
        booster = table.booster = ColumnBooster(table.columns, rules, start)
        known, template = self._known_to_trees(base, given, True), clone(base)
        n_samples = int(given.samples.sum())

        def make(found: Stumps) -> StumpMembers:
            return StumpMembers.of(found, booster, n_samples, template, known)  # type: ignore[arg-type]

        return StumpBoosting(rule, booster, make, n_rounds, [], one_by_one=False)  # type: ignore[arg-type]


class AdaBoostRegressor(FitOnOneWorker, adaboost_regressor.AdaBoostRegressor):
    """`margrove.AdaBoostRegressor` on Dask collections; see `AdaBoostClassifier`."""
