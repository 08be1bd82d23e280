"""The base class of the two decision trees: parameters, growing, reading."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import seed_of
from margrove._runtime import (
    RANDOM_STATE,
    RUN_CONTROL,
    Estimator,
    drive,
    require_memory,
    resolve_n_jobs,
)
from margrove.exceptions import DataWarning
from margrove.grove.criteria import CRITERIA, powers_of_scale
from margrove.grove.export import TreeView, decision_path, importances, view
from margrove.grove.grow import (
    DIRECTIONS,
    MULTIWAY_CRITERIA,
    MultiwayTreeBuilder,
    ObliqueTreeBuilder,
    Rules,
    TreeBuilder,
    assemble,
    columns_of,
    n_balanced_splits,
    stop_at_chance,
    stop_at_error,
    stop_without_improvement,
)
from margrove.grove.grow.search import CustomSearch, sparse_rows_of
from margrove.grove.growth_limits import (
    GREEDY_DEPTH,
    GrowthLimits,
    TrainingSize,
    custom_search,
    number_of_leaves,
    unscaled,
)
from margrove.grove.serve import (
    TreeArrays,
    TreeSum,
    leaves_of,
    predictions_of,
    times_powers,
    tree_sum,
    values_of,
)
from margrove.grove.table import (
    BinnedDataset,
    Targets,
    TreeTable,
    bin_columns,
    read_table_like_fitted,
    refuse_infinity,
)

__all__ = ["GREEDY_DEPTH", "TREE_PARAMETERS", "DecisionTree", "TreeTraining", "warn_of_halving"]

_FEW_CELLS = 20_000
_COUNT = Interval(Integral, 1, None, closed="left")

TREE_PARAMETERS: dict[str, list[Any]] = {
    "splitter": [StrOptions({"best", "random", "oblique"})],
    "split": [StrOptions({"binary", "multiway"})],
    "max_depth": [_COUNT, None],
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [_COUNT, Interval(RealNotInt, 0.0, 1.0, closed="neither")],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "max_features": [
        _COUNT, Interval(Real, 0.0, 1.0, closed="right"), StrOptions({"sqrt", "log2"}), None
    ],
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],
    "monotonic_cst": ["array-like", dict, None],
    "categorical_features": ["array-like", StrOptions({"from_dtype", "all"}), None],
    "oblique_learner": [StrOptions(set(DIRECTIONS))],
    "significance": [Interval(Real, 0.0, 1.0, closed="neither"), None],
    "max_error": [Interval(Real, 0.0, None, closed="left"), None],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
    "max_bins": [Interval(Integral, 2, 65535, closed="both"), None],
    "n_jobs": [Integral, None],
    "random_state": [
        Interval(Integral, 0, 2**64 - 1, closed="both"),  # seeds of a forest's trees have 64 bits
        *RANDOM_STATE["random_state"],
    ],
    **RUN_CONTROL,
}  # fmt: skip


@dataclass(frozen=True)
class TreeTraining:
    """The training set of a tree.

    rows           int64: the rows that the tree is grown on
    total_weight   of these rows, as given
    held_out       int64: the rows for early stopping
    """

    table: TreeTable
    targets: Targets
    rows: np.ndarray
    total_weight: float
    held_out: np.ndarray


class DecisionTree(Estimator):
    """Base of `DecisionTreeClassifier` and `DecisionTreeRegressor`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = TREE_PARAMETERS

    def _grow(
        self,
        training: TreeTraining,
        X: Any,
        y: Any,
        learnt: Callable[[TreeArrays], dict[str, Any]],
        scale: float = 1.0,
    ) -> None:
        """Bin, grow, prune and commit.

        `learnt` returns the fitted attributes for a tree. Values of nodes are multiplied by
        `scale`, a power of two, by which the targets were divided.
        """
        table = training.table
        n_threads = self._threads(table.X.shape)
        data = bin_columns(
            table.X,
            categorical=table.is_categorical,
            max_bins=self.max_bins,
            weight=training.targets.real,
            n_threads=n_threads,
        )
        if data.has_infinity:
            refuse_infinity(table.X, self, table.feature_names)
        self._require_memory(training)
        rules = self._rules(training, data, scale)
        grower = self._grower(training, data, rules, n_threads)

        def grown() -> TreeArrays:
            arrays = grower.result()
            if not isinstance(arrays, TreeArrays):
                arrays = assemble(arrays, data, training.targets, rules, table.n_categories)
            return arrays

        def scaled(arrays: TreeArrays) -> TreeArrays:
            return _scaled(arrays, scale, rules.criterion) if scale != 1.0 else arrays

        def fitted() -> dict[str, Any]:
            return table.attributes | learnt(scaled(grown()))

        drive(
            grower,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose,
            X=X,
            y=y,
            fitted=fitted,
        )
        if isinstance(grower, TreeBuilder):
            warn_of_halving(n_balanced_splits(grower.result()), type(self).__name__)
        cut_back = self._cut_back(grown(), training, scale, rules.criterion)
        self._commit(table.attributes | learnt(scaled(cut_back)))

    def _require_memory(self, training: TreeTraining) -> None:
        """Raise if the nodes (as many as rows, unless limited) do not fit into memory."""
        n_nodes = float(len(training.rows))
        if self.max_leaf_nodes is not None:
            n_nodes = min(n_nodes, 2.0 * self.max_leaf_nodes)
        if self.max_depth is not None:
            n_nodes = min(n_nodes, 2.0 ** min(self.max_depth + 1, 60))
        n_values = int(training.targets.starts[-1])
        require_memory(
            64.0 * n_nodes * n_values,
            f"A tree of {n_nodes:.0f} nodes with {n_values} values each",
            "Limit it by max_depth or max_leaf_nodes, or merge classes.",
        )

    def _cut_back(
        self, arrays: TreeArrays, training: TreeTraining, scale: float, criterion: int
    ) -> TreeArrays:
        """The tree after the rules that make nodes leaves; its values are still unscaled."""
        counts = self._counts(training)
        if self.significance is not None:
            arrays = stop_at_chance(arrays, self.significance, counts)
        if self.max_error is not None:
            arrays = stop_at_error(
                arrays,
                self.max_error if counts else unscaled(self.max_error, scale, criterion),
                counts,
            )
        if self.early_stopping:
            from margrove.grove.prune import validation_losses

            held, targets = training.held_out, training.targets
            n_outputs = len(targets.starts) - 1
            y = (targets.raw if counts is None else targets.labels).reshape(-1, n_outputs)
            X = training.table.X[held]
            losses = validation_losses(
                arrays,
                X.toarray() if sp.issparse(X) else X,
                y[held] if counts is None else y[held] - targets.starts[:-1],
                targets.real[held],
                is_class=counts is not None,
                n_classes=counts,
            )
            arrays = stop_without_improvement(arrays, losses)
        if self.ccp_alpha > 0.0:
            from margrove.grove.prune import prune_by_cost_complexity

            arrays = prune_by_cost_complexity(arrays, unscaled(self.ccp_alpha, scale, criterion))
        return arrays

    @staticmethod
    def _counts(training: TreeTraining) -> list[int] | None:
        """The number of classes of each output; None for regression."""
        targets = training.targets
        return np.diff(targets.starts).tolist() if len(targets.labels) else None

    def _training_of(self, table: TreeTable, targets: Targets) -> TreeTraining:
        """The training set, with rows held out if there is early stopping."""
        rows = np.arange(len(targets.weight))
        held_out = rows[:0]
        if self.early_stopping:
            from sklearn.model_selection import train_test_split

            if len(rows) < 4:
                raise ValueError(
                    f"early_stopping=True holds out rows, but there are only {len(rows)}. "
                    "Use early_stopping=False."
                )
            rows, held_out = train_test_split(
                rows,
                test_size=self.validation_fraction,
                random_state=self._seed() % 2**32 if self.random_state is not None else 0,
            )
            rows = np.sort(rows)
        return TreeTraining(table, targets, rows, float(targets.real[rows].sum()), held_out)

    def _grower(
        self, training: TreeTraining, data: BinnedDataset, rules: Rules, n_threads: int
    ) -> TreeBuilder | MultiwayTreeBuilder | ObliqueTreeBuilder:
        max_leaves = number_of_leaves(self.max_leaf_nodes, len(training.rows))
        if self.splitter == "oblique":
            self._check_oblique(training, rules)
            table = training.table
            return ObliqueTreeBuilder(
                table.X.toarray() if sp.issparse(table.X) else table.X,
                training.targets,
                rules,
                training.rows,
                learner=self.oblique_learner,
                categorical=table.is_categorical,
                n_categories=table.n_categories,
                max_leaves=max_leaves,
            )
        if self.split == "binary":
            columns = columns_of(data, with_values=rules.random)
            sparse = sparse_rows_of(training.table.X, columns, training.targets, rules)
            return TreeBuilder(
                columns, training.targets, rules, training.rows,
                max_leaves=max_leaves, n_threads=n_threads, custom=self._custom_search(training),
                sparse=sparse,
            )  # fmt: skip
        self._check_multiway(training, data, rules)
        return MultiwayTreeBuilder(
            data, training.targets, rules, training.rows,
            n_categories=training.table.n_categories, max_leaves=max_leaves,
        )  # fmt: skip

    def _custom_search(self, training: TreeTraining) -> CustomSearch | None:
        """The search for a criterion that is a function of sums; None for the others."""
        return custom_search(
            self.criterion,
            n_outputs=len(training.targets.starts) - 1,
            constrained=self.monotonic_cst is not None,
        )

    def _check_oblique(self, training: TreeTraining, rules: Rules) -> None:
        for refused, name in (
            (self.split == "multiway", "split='multiway'"),
            (self.max_features is not None, "max_features"),
            (self.max_bins is not None, "max_bins"),
            (len(training.targets.starts) > 2, "several outputs"),
            (CRITERIA[self.criterion].impurity is not None, f"criterion={self.criterion!r}"),
            (len(rules.monotone) > 0, "monotonic_cst"),
        ):
            if refused:
                raise ValueError(
                    f"splitter='oblique' cannot be combined with {name}. Use splitter='best'."
                )

    def _check_multiway(self, training: TreeTraining, data: BinnedDataset, rules: Rules) -> None:
        """Raise for options that only binary trees have."""
        for refused, name in (
            (rules.criterion not in MULTIWAY_CRITERIA, f"criterion={self.criterion!r}"),
            (len(training.targets.starts) > 2, "several outputs"),
            (
                rules.random or rules.max_features < data.n_features,
                "max_features or splitter='random'",
            ),
            (len(rules.monotone) > 0, "monotonic_cst"),
        ):
            if refused:
                raise ValueError(
                    f"split='multiway' cannot be combined with {name}. Use split='binary'."
                )

    def _threads(self, shape: tuple[int, int]) -> int:
        """The number of threads: one for small tables."""
        if shape[0] * shape[1] < _FEW_CELLS and self.n_jobs != 0:
            return 1
        return resolve_n_jobs(self.n_jobs, unset="all")

    def _rules(self, training: TreeTraining, data: BinnedDataset, scale: float = 1.0) -> Rules:
        targets = training.targets
        size = TrainingSize(
            n_features=data.n_features,
            n_outputs=len(targets.starts) - 1,
            n_samples=int(targets.samples[training.rows].sum()),
            whole_weight=int(targets.weight[training.rows].sum()),
            real_weight=training.total_weight,
            unit=targets.unit,
            counted=targets.counted,
        )
        limits = GrowthLimits.of(self, training.table, targets, splitter=self.splitter)
        seed = self._seed() if limits.is_random(data.n_features) else 0
        return limits.rules(size, scale, seed)

    def _seed(self) -> int:
        """The seed as a signed number with the same 64 bits, as compiled code takes it."""
        return int(np.uint64(seed_of(self.random_state)).astype(np.int64))

    # -- reading --

    def _checked_rows(self, X: Any) -> Any:
        """X as trees read it: dense or CSR, categories as numbers, NaN for missing."""
        check_is_fitted(self, "arrays_")
        counts = self._class_counts()
        n_values = self.n_outputs_ if counts is None else sum(counts)
        if not isinstance(self.arrays_, TreeArrays) or self.arrays_.value.shape[1:] != (n_values,):
            raise ValueError(
                f"The state of this {type(self).__name__} was altered: arrays_ is not a tree with "
                f"{n_values} values a node. Fit the model again."
            )
        return read_table_like_fitted(X, self)

    def _rows(self, X: Any) -> np.ndarray:
        """The same, dense."""
        rows = self._checked_rows(X)
        return np.asarray(rows.toarray() if sp.issparse(rows) else rows)

    def _leaves(self, X: Any) -> np.ndarray:
        return self._leaves_of_rows(self._checked_rows(X))

    def _leaves_of_rows(self, rows: Any) -> np.ndarray:
        return leaves_of(
            self.arrays_,
            rows,
            n_threads=self._threads(rows.shape),
            on_infinity=lambda: refuse_infinity(rows, self),
        )

    def _values(self, X: Any) -> np.ndarray:
        """The value of the leaf of each row; the weighted mean if it reaches several."""
        rows = self._checked_rows(X)
        return values_of(self.arrays_, rows, self._leaves_of_rows(rows))

    def _tree_sum(self, function: str) -> TreeSum:
        """This model as a sum of one tree; see `TreeSum`."""
        check_is_fitted(self, "arrays_")
        return tree_sum(self, [self.arrays_], function, **predictions_of(self))

    def _with_arrays(self, arrays: TreeArrays) -> Self:
        """A fitted copy with another tree."""
        other = copy.copy(self)
        other.__dict__ = dict(vars(self)) | {"arrays_": arrays}
        return other

    @property
    def tree_(self) -> TreeView:
        """The tree in the arrays of scikit-learn's `tree_`."""
        check_is_fitted(self, "arrays_")
        return view(self.arrays_, self.n_features_in_, self._class_counts())

    def _class_counts(self) -> list[int] | None:
        return None

    @property
    def feature_importances_(self) -> np.ndarray:
        """Impurity decrease by each feature, as shares. Biased towards features of many values."""
        check_is_fitted(self, "arrays_")
        return importances(self.arrays_, self.n_features_in_)

    def get_depth(self) -> int:
        """The number of edges between the root and the deepest leaf."""
        check_is_fitted(self, "arrays_")
        return int(self.arrays_.depth.max())

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self, "arrays_")
        return self.arrays_.n_leaves

    def apply(self, X: Any, check_input: bool = True) -> np.ndarray:
        """The number of the leaf that each row reaches."""
        return self._leaves(X)

    def decision_path(self, X: Any, check_input: bool = True) -> sp.csr_matrix:
        """The nodes that each row passes: 1 in row i, column k if row i reaches node k."""
        leaves = self._leaves(X)
        return decision_path(self.arrays_, leaves)

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """The effective alphas of cost-complexity pruning, and the impurity of each pruned tree."""
        from sklearn.base import clone
        from sklearn.utils import Bunch

        from margrove.grove.prune import cost_complexity_path

        grown = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight=sample_weight)
        path = cost_complexity_path(grown.arrays_)
        return Bunch(ccp_alphas=path.ccp_alphas, impurities=path.impurities)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _scaled(arrays: TreeArrays, scale: float, criterion: int) -> TreeArrays:
    """The tree for the original targets, which were divided by `scale` for the fit."""
    powers = powers_of_scale(criterion)
    with np.errstate(over="ignore", under="ignore"):
        value = arrays.value * scale
    return replace(
        arrays,
        value=value,
        impurity=times_powers(arrays.impurity, scale, powers),
        decrease=times_powers(arrays.decrease, scale, powers),
    )


def warn_of_halving(n_splits: int, name: str) -> None:
    """Warn if nodes below GREEDY_DEPTH were split into halves; `name` is the estimator's class."""
    if n_splits:
        warnings.warn(
            f"{name} is more than {GREEDY_DEPTH} levels deep: greedy splits separate a few rows at "
            f"a time. Below that, {n_splits} nodes were halved instead. Set max_depth, or look for "
            "a column that numbers the rows.",
            DataWarning,
            stacklevel=4,
        )
