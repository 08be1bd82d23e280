"""The trees of a fitted forest: prediction, trees as estimators, slicing and adding."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, overload

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from margrove._runtime import Estimator, resolve_n_jobs
from margrove.ensemble.forest.grower import key_of
from margrove.grove import CRITERIA, DecisionTree
from margrove.grove.export import importances
from margrove.grove.grow import preorder
from margrove.grove.grow.search import CUSTOM
from margrove.grove.serve import (
    ForestTables,
    PackedTree,
    TreeArrays,
    TreeSum,
    by_output,
    dense_blocks,
    predicted_classes,
    predictions_of,
    rescaled,
    tree_sum,
    unfolded,
)
from margrove.grove.table import power_of_two_near, read_table_like_fitted, refuse_infinity

__all__ = ["SHARED_WITH_TREES", "TreeCollection", "TreesOfForest"]

_FEW_ROWS = 2048  # that one thread walks through all trees
_MOST_SPARSE_ROWS = 1 << 15  # that are made dense at once
_CELLS_OF_A_THREAD = 1 << 21
SHARED_WITH_TREES = (
    "criterion", "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
    "max_features", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "monotonic_cst",
    "categorical_features", "max_bins",
)  # fmt: skip


class TreesOfForest(Sequence[Any]):
    """The trees of a forest as estimators, each created on access."""

    def __init__(self, forest: TreeCollection) -> None:
        self._forest = forest

    def __len__(self) -> int:
        return len(self._forest.trees_)

    @overload
    def __getitem__(self, which: int) -> Any: ...
    @overload
    def __getitem__(self, which: slice) -> list[Any]: ...
    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice):
            return [self[k] for k in range(*which.indices(len(self)))]
        return self._forest._tree_as_estimator(range(len(self))[which])

    def __repr__(self) -> str:
        return f"<{len(self)} trees of a {type(self._forest).__name__}>"


class TreeCollection(Estimator):
    """Base class with the methods of a fitted forest that do not need the training data."""

    _splitter: ClassVar[str] = "best"

    @abstractmethod
    def _tree_class(self) -> type[DecisionTree]: ...

    def _template(self) -> DecisionTree:
        """An unfitted tree with the parameters of the forest."""
        params = {name: getattr(self, name) for name in SHARED_WITH_TREES}
        tree: DecisionTree = self._tree_class()(splitter=self._splitter, random_state=0, **params)
        return tree

    def _is_hard(self) -> bool:
        return False

    # -- prediction --

    def _rows(self, X: Any) -> Any:
        """X in the form that trees use: codes of categories, NaN for missing; dense or CSR."""
        trees = self.trees_
        if not trees or not all(isinstance(tree, PackedTree) for tree in trees):
            raise ValueError(
                f"The state of this {type(self).__name__} was altered: trees_ is not a list of "
                "trees. Fit the model again."
            )
        rows = read_table_like_fitted(X, self)
        for tree in trees:
            tree.require_sound(self.kind_, self.n_features_in_)
        return rows

    def _walked(
        self,
        X: Any,
        walk: Callable[[ForestTables, np.ndarray], np.ndarray | None],
    ) -> np.ndarray:
        """What the rows of X find in all trees."""
        return self._walked_rows(self._rows(X), walk)

    def _walked_rows(
        self,
        rows: Any,
        walk: Callable[[ForestTables, np.ndarray], np.ndarray | None],
    ) -> np.ndarray:
        n_threads = self._threads(rows.shape[0])
        tables = ForestTables(self.trees_, self.kind_, n_threads)
        blocks = iter([(0, rows)])
        if sp.issparse(rows):
            fitting = n_threads * _CELLS_OF_A_THREAD // rows.shape[1]
            at_once = min(max(fitting, _FEW_ROWS), _MOST_SPARSE_ROWS)
            blocks = dense_blocks(rows, at_once, n_threads)
        parts = []
        for _, X in blocks:
            found = walk(tables, np.ascontiguousarray(X))
            if found is None:
                refuse_infinity(rows, self)
            parts.append(np.asarray(found))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _threads(self, n_rows: int) -> int:
        if n_rows <= _FEW_ROWS and self.n_jobs != 0:
            return 1
        return resolve_n_jobs(self.n_jobs, unset="all")

    def _means(self, X: Any) -> np.ndarray:
        """The mean of the trees' values: class probabilities, or numbers, (n, n_values)."""
        check_is_fitted(self, "trees_")
        return self._walked(X, lambda tables, rows: tables.means(rows, hard=self._is_hard()))

    def _winners(self, X: Any) -> np.ndarray:
        """The number of the class with the highest probability, for one output."""
        check_is_fitted(self, "trees_")
        return self._walked(X, lambda tables, rows: tables.winners(rows, hard=self._is_hard()))

    def _values_of_trees(self, X: Any) -> np.ndarray:
        """The values of each tree, (n, n_trees, n_values)."""
        values = self._walked(X, ForestTables.values_of_trees)
        return values.reshape(len(values), len(self.trees_), self.kind_.n_values)

    def _leaves(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree, as node numbers of the packed trees, (n, n_trees)."""
        return np.ascontiguousarray(self._leaves_by_tree(self._rows(X)).T, np.int64)

    def _leaves_by_tree(self, rows: Any) -> np.ndarray:
        """The leaf of each of these rows in each tree, int32 (n_trees, n); see `_rows`."""
        return np.ascontiguousarray(self._walked_rows(rows, ForestTables.leaves).T)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf of each row in each tree, (n_samples, n_trees)."""
        check_is_fitted(self, "trees_")
        leaves = self._leaves(X)
        for k, tree in enumerate(self.trees_):
            leaves[:, k] = _preorder_numbers(tree)[leaves[:, k]]
        return leaves

    def decision_path(self, X: Any) -> tuple[sp.csr_matrix, np.ndarray]:
        """Indicator matrix of the nodes that each row passes, and the first column of each tree."""
        check_is_fitted(self, "trees_")
        rows = self._rows(X)
        paths = [tree.decision_path(X) for tree in self.estimators_]
        begins = np.concatenate([[0], np.cumsum([len(tree) for tree in self.trees_])])
        if not rows.shape[0]:
            return sp.csr_matrix((0, int(begins[-1]))), begins
        return sp.hstack(paths).tocsr(), begins

    # -- trees as estimators --

    @property
    def estimators_(self) -> TreesOfForest:
        """The trees, as `DecisionTreeClassifier` or `DecisionTreeRegressor`."""
        check_is_fitted(self, "trees_")
        return TreesOfForest(self)

    @property
    def estimators_samples_(self) -> list[np.ndarray]:
        """The rows of X that each tree has seen, as often as they were drawn."""
        check_is_fitted(self, "trees_")
        if not hasattr(self, "sampled_"):
            raise AttributeError(
                "This forest is a slice or a sum of others, so the samples of its trees are not "
                "known. Use estimators_samples_ of the original forests."
            )
        return [self.sampled_.sample(k) for k in range(len(self.trees_))]

    @property
    def estimator(self) -> DecisionTree:
        """An unfitted tree with the parameters of the forest."""
        return self._template()

    @property
    def estimator_(self) -> DecisionTree:
        """The same as `estimator`, only for a fitted forest."""
        check_is_fitted(self, "trees_")
        return self._template()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Impurity decrease by each feature, the mean over the trees.

        It is biased towards features with many different values; see `permutation_importances`.
        """
        check_is_fitted(self, "trees_")
        total = np.zeros(self.n_features_in_)
        for tree in self.trees_:
            tree.require_sound(self.kind_, self.n_features_in_)
            if len(tree) > 1:
                total += importances(
                    unfolded(self._moderate(tree), self.kind_), self.n_features_in_
                )
        return np.asarray(total / total.sum()) if total.sum() > 0.0 else total

    def _moderate(self, tree: PackedTree) -> PackedTree:
        """A tree scaled by a power of two, so that squares of its means do not overflow."""
        if self.kind_.n_classes or tree.impurity is not None:
            return tree
        scale = power_of_two_near(tree.nodes.view(np.float64)[0::2][tree.is_leaf])
        return tree if scale == 1.0 else rescaled(tree, 1.0 / scale, 0)

    def _tree_as_estimator(self, number: int) -> DecisionTree:
        tree = self.trees_[number]
        tree.require_sound(self.kind_, self.n_features_in_)
        estimator = self._template()
        if hasattr(self, "sampled_"):
            estimator.random_state = key_of(self.sampled_.seed, number)
        names = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_",
                 "max_features_", "categories_")  # fmt: skip
        known = {name: getattr(self, name) for name in names if hasattr(self, name)}
        estimator._commit(known | {"arrays_": unfolded(tree, self.kind_)})
        return estimator

    # -- slicing and adding --

    def __len__(self) -> int:
        """The number of trees."""
        check_is_fitted(self, "trees_")
        return len(self.trees_)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __getitem__(self, which: int | slice) -> Any:
        """One tree as an estimator, or a forest of some of them."""
        check_is_fitted(self, "trees_")
        if not isinstance(which, slice):
            return self.estimators_[which]
        chosen = self.trees_[which]
        if not chosen:
            raise ValueError(f"No trees in {which} of {len(self.trees_)}.")
        sliced = self._with_trees(chosen)
        if hasattr(self, "sampled_") and (which.start or 0) == 0 and which.step in (None, 1):
            sliced.sampled_ = self.sampled_  # the first trees keep their numbers and samples
        return sliced

    def __add__(self, other: Any) -> Self:
        """A forest with the trees of both."""
        if (
            not isinstance(other, TreeCollection)
            or self._is_for_classes() != other._is_for_classes()
        ):
            return NotImplemented
        check_is_fitted(self, "trees_")
        check_is_fitted(other, "trees_")
        theirs = other._signature()
        for name, value in self._signature().items():
            if value != theirs[name]:
                raise ValueError(
                    f"These forests cannot be added: {name} is {value} in the first and "
                    f"{theirs[name]} in the second."
                )
        return self._with_trees([*self.trees_, *other.trees_])

    def _is_for_classes(self) -> bool:
        return False

    def _signature(self) -> dict[str, Any]:
        """The attributes that must be equal in forests that are added."""
        names = getattr(self, "feature_names_in_", None)
        categories = {int(column): list(labels) for column, labels in self.categories_.items()}
        return {
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else list(names),
            "categories_": categories,
            "n_outputs_": self.n_outputs_,
            "criterion": self._score(),
        }

    def _score(self) -> int | str:
        """The code of a compiled criterion, or the name of a registered one."""
        known = CRITERIA.get(self.criterion)
        if self.kind_.criterion == CUSTOM and known is not None and known.code == CUSTOM:
            return known.name
        return self.kind_.criterion

    def _with_trees(self, trees: list[PackedTree]) -> Self:
        """A forest of these trees, without attributes that belong to the original trees."""
        other = copy.copy(self)
        dropped = {name for name in vars(self) if name.startswith("oob_") and name.endswith("_")}
        dropped |= {"sampled_", "leaf_samples_", "residuals_"}
        kept = {name: value for name, value in vars(self).items() if name not in dropped}
        other.__dict__ = kept | {"trees_": list(trees), "n_estimators": len(trees)}
        return other

    def _tree_sum(self, function: str) -> TreeSum:
        """The prediction as a sum of trees, each divided by their number; see `TreeSum`."""
        check_is_fitted(self, "trees_")
        return tree_sum(self, self._summands(), function, **predictions_of(self))

    def _summands(self) -> Iterator[TreeArrays]:
        for packed in self.trees_:
            packed.require_sound(self.kind_, self.n_features_in_)
            tree = unfolded(packed, self.kind_)
            value = _votes(tree, self.kind_.n_classes) if self._is_hard() else tree.value
            yield replace(tree, value=value / len(self.trees_))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _votes(tree: TreeArrays, n_classes: tuple[int, ...]) -> np.ndarray:
    """float64 (N, V): 1 for the most frequent class of each output, 0 for the others."""
    votes = np.zeros_like(tree.value)
    winners = predicted_classes(tree, n_classes)
    for columns, winner in zip(by_output(votes, n_classes), winners.T, strict=True):
        columns[np.arange(len(columns)), winner] = 1.0  # a view of `votes`
    return votes


def _preorder_numbers(tree: PackedTree) -> np.ndarray:
    """The number of each node of a packed tree in preorder, int64 (n_nodes,)."""
    order, _ = preorder(np.where(tree.is_leaf, -1, tree.left))
    numbers = np.empty(len(tree), np.int64)
    numbers[order] = np.arange(len(tree))
    return numbers
