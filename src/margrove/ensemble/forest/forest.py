"""What the four forests share: growing, walking, and being values."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self, overload

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from margrove._data import seed_of
from margrove._runtime.estimator import RANDOM_STATE, RUN_CONTROL, Estimator
from margrove._runtime.memory import require_memory
from margrove._runtime.slices import drive
from margrove._runtime.threads import resolve_n_jobs, run_tiles
from margrove.ensemble.bagging.votes import warn_of_rows_in_every_bag
from margrove.ensemble.bootstrap.resampling import Line, in_units, number_of_draws
from margrove.ensemble.forest.enough_trees import is_flat
from margrove.ensemble.forest.grower import (
    ForestGrower,
    SpreadGrower,
    key_of,
    processes_wanted,
)
from margrove.ensemble.forest.out_of_bag import OutOfBag
from margrove.ensemble.forest.training_data import (
    ForestTraining,
    SampledRows,
    Sampler,
    bin_in_order,
    row_order,
)
from margrove.grove.criteria import CRITERIA
from margrove.grove.decision_tree import (
    TREE_PARAMETERS,
    DecisionTree,
    TreeTraining,
    powers_of_scale,
    warn_of_halving,
)
from margrove.grove.export.sklearn_tree import importances
from margrove.grove.grow.assembly import preorder
from margrove.grove.grow.split_search import Rules
from margrove.grove.serve.forest_walk import add_values, add_votes, leaves_of_rows, leaves_of_some
from margrove.grove.serve.packed_trees import Kind, PackedTree, packed_of, rescaled, unfolded
from margrove.grove.table.binning import BinnedDataset
from margrove.grove.table.encoding import (
    TreeTable,
    read_table,
    read_table_like_fitted,
    refuse_infinity,
)
from margrove.grove.table.given_targets import power_of_two_near

__all__ = ["FOREST_PARAMETERS", "Forest", "TreesOfForest"]

_ROWS_AT_ONCE = 2048
_MANY_TREES = 10
_MOST_TREES = 10_000  # of n_estimators="auto"
_MOST_DRAWS = 2**52
_LEAST_BYTES = 1000.0  # of a tree of one leaf, with its arrays
_SHARED_WITH_TREES = (
    "criterion", "max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
    "max_features", "max_leaf_nodes", "min_impurity_decrease", "ccp_alpha", "monotonic_cst",
    "categorical_features", "max_bins",
)  # fmt: skip

FOREST_PARAMETERS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    "bootstrap": ["boolean"],
    "oob_score": ["boolean", callable],
    "n_jobs": [Integral, None],
    "warm_start": ["boolean"],
    "max_samples": [
        None,
        Interval(RealNotInt, 0.0, None, closed="neither"),
        Interval(Integral, 1, None, closed="left"),
    ],
    **{name: TREE_PARAMETERS[name] for name in _SHARED_WITH_TREES if name in TREE_PARAMETERS},
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class TreesOfForest(Sequence[Any]):
    """The trees of a forest as estimators of their own, each made when it is asked for."""

    def __init__(self, forest: Forest) -> None:
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


class Forest(Estimator):
    """Base of the random forests and the extremely randomised trees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS
    _splitter: ClassVar[str] = "best"

    # -- growing --

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Missing values are NaN.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            0 is a row removed, 2 a row that is there twice. Samples are drawn with probability
            proportional to the weight.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_combination()
        seed, earlier = self._seed_and_trees()
        table = self._read(X)
        if sp.issparse(y):
            raise ValueError("sparse multilabel-indicator for y is not supported. Use y.toarray().")
        training, learnt = self._training(table, y, sample_weight, seed)
        if self._is_done(earlier):
            return self
        if earlier:
            self._check_same(training, table.attributes | learnt)
        template, sampler = self._template(), Sampler(training)
        rules, kind = self._rules_and_kind(template, training, sampler)
        out_of_bag = self._out_of_bag(kind, training)
        grower = self._kind_of_grower(training)(
            training,
            sampler,
            rules,
            kind,
            len(earlier),
            self._n_trees(earlier),
            max_leaves=template._max_leaves(len(training.order)),
            n_threads=resolve_n_jobs(self.n_jobs, unset="all"),
            finish=self._finisher(kind, training),
            out_of_bag=out_of_bag,
            is_enough=is_flat if self.n_estimators == "auto" else None,
        )
        if out_of_bag is not None and earlier:
            grower.hear_again(earlier)

        def fitted() -> dict[str, Any]:
            attributes = {
                "trees_": [*earlier, *grower.trees],
                "kind_": kind,
                "sampled_": training.sampled,
                "max_features_": rules(1).max_features,
                **table.attributes,
                **learnt,
            }
            if out_of_bag is not None and out_of_bag.curve:
                attributes |= self._out_of_bag_attributes(out_of_bag, training, learnt, y)
            trees = attributes["trees_"]
            return attributes | self._leaf_samples(training, sampler, trees, kind)

        ending = drive(
            grower,
            self,
            max_time=self.max_time,
            on_interrupt=self.on_interrupt,
            verbose=self.verbose,
            X=X,
            y=y,
            fitted=fitted,
            given={"sample_weight": sample_weight},
        )
        if ending == "interrupt":
            if not grower.trees and not earlier:
                raise KeyboardInterrupt("No tree was finished.")
            if out_of_bag is not None:  # the interrupt may have come in the middle of a sum
                out_of_bag.forget()
                grower.hear_again([*earlier, *grower.trees])
        while not grower.trees and not earlier:  # no budget is too small for one tree
            grower.advance(0.0)
        warn_of_halving(grower.n_balanced, type(self).__name__)
        self._commit(fitted())
        return self

    def _check_combination(self) -> None:
        """Refuse what makes no sense together."""
        name = type(self).__name__
        if not self.bootstrap and (self.oob_score or self.n_estimators == "auto"):
            wish = "oob_score" if self.oob_score else "n_estimators='auto'"
            raise ValueError(
                f"{wish} of {name}: Out of bag estimation only available if bootstrap=True."
            )
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`. Got "
                f"max_samples={self.max_samples!r} of {name}."
            )
        if self.criterion == "gain_ratio" or CRITERIA[self.criterion].own is not None:
            raise ValueError(
                f"criterion={self.criterion!r} is for single trees. {name} takes those of "
                "margrove but 'gain_ratio'."
            )

    def _seed_and_trees(self) -> tuple[int, list[PackedTree]]:
        """Those of the last fit, if this one goes on from there."""
        if not self.warm_start or not hasattr(self, "trees_"):
            return seed_of(self.random_state), []
        if not hasattr(self, "sampled_"):
            raise ValueError(
                "warm_start=True cannot go on from a part or a sum of forests. Fit another forest "
                "and add it: forest + other."
            )
        if self.n_estimators != "auto" and self.n_estimators < len(self.trees_):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(self.trees_)} when warm_start==True"
            )
        if self.n_estimators == len(self.trees_):
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                UserWarning,
                stacklevel=3,
            )
        return self.sampled_.seed, list(self.trees_)

    def _is_done(self, earlier: list[PackedTree]) -> bool:
        """Whether a warm start adds neither trees nor figures: what there is stays as it is."""
        return self.n_estimators == len(earlier) and not (
            self.oob_score or getattr(self, "keep_samples", False)
        )

    def _n_trees(self, earlier: list[PackedTree]) -> int:
        if self.n_estimators == "auto":
            return max(_MOST_TREES, len(earlier))
        require_memory(
            _LEAST_BYTES * self.n_estimators,
            f"A forest of {self.n_estimators} trees",
            "Use fewer, or n_estimators='auto'.",
        )
        return int(self.n_estimators)

    def _check_same(self, training: ForestTraining, found: dict[str, Any]) -> None:
        """Warm starts go on with the same table: trees cannot learn of new columns or classes."""
        before, now = self._signature(), copy.copy(self)
        now.__dict__ = dict(vars(self)) | found
        kind = self.kind_._replace(criterion=CRITERIA[self.criterion].code)
        now.__dict__ |= {"feature_names_in_": found.get("feature_names_in_"), "kind_": kind}
        for name, own in now._signature().items():
            if own != before[name]:
                raise ValueError(
                    f"warm_start=True needs the data of the last fit: {name} was {before[name]} "
                    f"and is {own}. Use warm_start=False."
                )
        if self.bootstrap and training.sampled.n_rows != self.sampled_.n_rows:
            raise ValueError(
                f"warm_start=True needs the data of the last fit: X had {self.sampled_.n_rows} "
                f"rows and has {training.sampled.n_rows}. Use warm_start=False."
            )

    def _read(self, X: Any) -> TreeTable:
        return read_table(X, self, self.categorical_features)

    def _ordered(
        self, table: TreeTable, target: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(rows, their weights, place of each row) in the order that samples are drawn in."""
        return row_order(table, target, weight, bootstrap=self.bootstrap)

    def _coded(self, table: TreeTable, order: np.ndarray, weight: np.ndarray) -> BinnedDataset:
        """The table as codes, its rows in that order."""
        return bin_in_order(
            table, order, self, weight=weight, max_bins=self.max_bins,
            n_threads=resolve_n_jobs(self.n_jobs, unset="all"),
        )  # fmt: skip

    def _kind_of_grower(self, training: ForestTraining) -> type[ForestGrower]:
        return SpreadGrower if processes_wanted() else ForestGrower

    @abstractmethod
    def _training(
        self, table: TreeTable, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        """What to grow from, and what is known of the targets."""

    @abstractmethod
    def _tree_class(self) -> type[DecisionTree]: ...

    def _template(self) -> DecisionTree:
        """A tree with the forest's parameters."""
        given = {name: getattr(self, name) for name in _SHARED_WITH_TREES}
        tree: DecisionTree = self._tree_class()(splitter=self._splitter, random_state=0, **given)
        return tree

    def _sampled(
        self,
        seed: int,
        rows: np.ndarray,
        weight: np.ndarray,
        kept: np.ndarray | slice,
        places: np.ndarray,
        n_rows: int,
    ) -> SampledRows:
        """The draws of the forest; rows and places are those of the kept rows."""
        original = np.arange(n_rows)[kept]
        weight = in_units(weight, len(original))
        line = Line(weight, len(original))
        n_draws = number_of_draws(line, self.max_samples) if self.bootstrap else None
        if n_draws is not None and n_draws > _MOST_DRAWS:
            raise ValueError(
                f"max_samples={self.max_samples!r} asks for samples of {n_draws} draws. Whole "
                "numbers of draws are counted up to 2^52: use a smaller max_samples."
            )
        group_of = None
        if len(rows) < len(original):  # some rows share a place
            group_of = np.full(n_rows, -1, np.int32)
            group_of[original] = places
        return SampledRows(
            seed,
            original[rows].astype(np.int32 if n_rows < 2**31 else np.int64),
            None if np.all(weight == 1.0) else weight,
            n_draws,
            n_rows,
            group_of,
        )

    def _rules_and_kind(
        self, template: DecisionTree, training: ForestTraining, sampler: Sampler
    ) -> tuple[Callable[[int], Rules], Kind]:
        """Rules count what a tree has, not what there is: they are a function of its weight."""
        targets = training.targets._replace(
            weight=np.full(1, sampler.most, np.int64),
            samples=np.full(1, sampler.n_draws, np.int64),
            unit=sampler.unit,
            counted=sampler.counted,
        )
        only = np.zeros(1, np.int64)
        own = TreeTraining(training.table, targets, only, sampler.most * sampler.unit, only[:0])
        largest = template._rules(own, training.data, training.scale)

        def rules(weight: int) -> Rules:
            share = weight / sampler.most
            return largest._replace(
                min_weight=int(np.ceil(largest.min_weight * share)),
                min_decrease=largest.min_decrease * share,
            )

        counts = tuple(np.diff(targets.starts).tolist()) if len(targets.labels) else ()
        n_outputs = len(targets.starts) - 1
        return rules, Kind(largest.criterion, counts, n_outputs, training.table.n_categories)

    def _finisher(
        self, kind: Kind, training: ForestTraining
    ) -> Callable[[PackedTree], PackedTree] | None:
        """What is done with each tree once it has grown."""
        if self.ccp_alpha == 0.0 and training.scale == 1.0:
            return None

        def finish(tree: PackedTree) -> PackedTree:
            if training.scale != 1.0:
                tree = rescaled(tree, training.scale, powers_of_scale(kind.criterion))
            if self.ccp_alpha > 0.0:
                from margrove.grove.prune.cost_complexity import prune_by_cost_complexity

                pruned = prune_by_cost_complexity(unfolded(tree, kind), self.ccp_alpha)
                tree = packed_of(pruned, kind)
            return tree

        return finish

    # -- out of bag --

    def _out_of_bag(self, kind: Kind, training: ForestTraining) -> OutOfBag | None:
        if not self.oob_score and self.n_estimators != "auto":
            return None
        sampled = training.sampled
        weight = np.ones(len(sampled.rows)) if sampled.weight is None else sampled.weight
        return OutOfBag(kind, training.targets, weight, hard=self._is_hard(), scale=training.scale)

    def _out_of_bag_attributes(
        self, out_of_bag: OutOfBag, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        places = training.sampled.places
        counts = out_of_bag.counts[places[places >= 0]]
        warn_of_rows_in_every_bag(counts, type(self).__name__, len(out_of_bag.curve))
        found = out_of_bag.predictions()
        predictions = np.full((len(places), found.shape[1]), np.nan)
        predictions[places >= 0] = found[places[places >= 0]]
        return {
            "oob_curve_": np.array(out_of_bag.curve),
            **self._scored_out_of_bag(predictions, training, learnt, y),
            **self._residuals(out_of_bag, training),
        }

    @abstractmethod
    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]: ...

    def _residuals(self, out_of_bag: OutOfBag, training: ForestTraining) -> dict[str, Any]:
        return {}

    def _is_hard(self) -> bool:
        return False

    def _leaf_samples(
        self, training: ForestTraining, sampler: Sampler, trees: list[PackedTree], kind: Kind
    ) -> dict[str, Any]:
        return {}

    # -- walking --

    def _rows(self, X: Any) -> Any:
        """X as the trees walk it: numbers of categories, NaN for missing; dense or CSR."""
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

    def _gathered(
        self,
        X: Any,
        add: Callable[[int, np.ndarray, np.ndarray], None],
        n_values: int,
    ) -> np.ndarray:
        """Sums over the trees, row by row; `add(k, leaves, sums)` adds tree k."""
        rows = self._rows(X)
        n = rows.shape[0]
        order = self._alike_together(rows)
        gathered = np.empty((n, n_values))

        def gather(tile: int) -> None:
            places = order[tile * _ROWS_AT_ONCE : (tile + 1) * _ROWS_AT_ONCE]
            own = rows[places].toarray() if sp.issparse(rows) else rows[places]
            if np.isinf(own).any():
                refuse_infinity(rows, self)
            has_nan = bool(np.isnan(own).any())
            leaves, sums = np.empty(len(own), np.int32), np.zeros((len(own), n_values))
            for k, tree in enumerate(self.trees_):
                leaves_of_rows(tree, own, self.kind_, leaves, has_nan=has_nan)
                add(k, leaves, sums)
            gathered[places] = sums

        run_tiles(gather, -(-n // _ROWS_AT_ONCE), self._threads(n))
        return gathered

    def _alike_together(self, rows: Any) -> np.ndarray:
        """The order in which many rows walk fastest.

        Those of one leaf are alike: in the other trees, too, they pass much the same nodes and
        arrive at about the same time.
        """
        everyone = np.arange(rows.shape[0])
        if len(everyone) <= _ROWS_AT_ONCE or len(self.trees_) < _MANY_TREES:
            return everyone
        leaves = np.empty(len(everyone), np.int32)
        leaves_of_some(self.trees_[0], rows, everyone, self.kind_, leaves)
        return np.argsort(leaves, kind="stable")

    def _threads(self, n_rows: int) -> int:
        if n_rows <= _ROWS_AT_ONCE and self.n_jobs != 0:
            return 1
        return resolve_n_jobs(self.n_jobs, unset="all")

    def _means(self, X: Any) -> np.ndarray:
        """The mean of the trees' values: shares of classes, or numbers, (n, V)."""
        check_is_fitted(self, "trees_")

        add_one = add_votes if self._is_hard() else add_values

        def add(k: int, leaves: np.ndarray, sums: np.ndarray) -> None:
            add_one(self.trees_[k], leaves, self.kind_, None, sums)

        sums = self._gathered(X, add, self.kind_.n_values)
        sums /= len(self.trees_)
        return sums

    def _values_of_trees(self, X: Any) -> np.ndarray:
        """What each tree says, (n, trees, V)."""
        n_values = self.kind_.n_values

        def add(k: int, leaves: np.ndarray, sums: np.ndarray) -> None:
            own = sums[:, k * n_values : (k + 1) * n_values]
            add_values(self.trees_[k], leaves, self.kind_, None, own)

        values = self._gathered(X, add, n_values * len(self.trees_))
        return values.reshape(len(values), len(self.trees_), n_values)

    def _leaves(self, X: Any) -> np.ndarray:
        """The leaf of each row in each tree, in the packed trees' numbers, (n, trees)."""

        def add(k: int, leaves: np.ndarray, sums: np.ndarray) -> None:
            sums[:, k] = leaves

        return self._gathered(X, add, len(self.trees_)).astype(np.int64)

    def apply(self, X: Any) -> np.ndarray:
        """The number of the leaf that each row ends up in, in each tree, (n_samples, trees)."""
        check_is_fitted(self, "trees_")
        leaves = self._leaves(X)
        for k, tree in enumerate(self.trees_):
            leaves[:, k] = _preorder_numbers(tree)[leaves[:, k]]
        return leaves

    def decision_path(self, X: Any) -> tuple[sp.csr_matrix, np.ndarray]:
        """Which nodes each row passes, tree after tree, and where each tree's nodes begin."""
        check_is_fitted(self, "trees_")
        rows = self._rows(X)
        paths = [tree.decision_path(X) for tree in self.estimators_]
        begins = np.concatenate([[0], np.cumsum([len(tree) for tree in self.trees_])])
        if not rows.shape[0]:
            return sp.csr_matrix((0, int(begins[-1]))), begins
        return sp.hstack(paths).tocsr(), begins

    # -- reading --

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
                "This forest is a part or a sum of others: which rows its trees have seen is not "
                "known. Ask those."
            )
        return [self.sampled_.sample(k) for k in range(len(self.trees_))]

    @property
    def estimator(self) -> DecisionTree:
        """A tree with the forest's parameters, not grown."""
        return self._template()

    @property
    def estimator_(self) -> DecisionTree:
        """The same, of a forest that is fitted."""
        check_is_fitted(self, "trees_")
        return self._template()

    @property
    def feature_importances_(self) -> np.ndarray:
        """Impurity decrease by each feature, the mean over the trees. Biased to features of many
        values; see `permutation_importances`."""
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
        """With means whose squares are within floating point."""
        if self.kind_.n_classes or tree.impurity is not None:
            return tree
        scale = power_of_two_near(tree.nodes.view(np.float64)[0::2][tree.is_leaf])
        return tree if scale == 1.0 else rescaled(tree, 1.0 / scale, 0)

    def _tree_as_estimator(self, number: int) -> DecisionTree:
        tree = self.trees_[number]
        tree.require_sound(self.kind_, self.n_features_in_)
        own = self._template()
        if hasattr(self, "sampled_"):
            own.random_state = key_of(self.sampled_.seed, number)
        names = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "n_classes_",
                 "max_features_", "categories_")  # fmt: skip
        known = {name: getattr(self, name) for name in names if hasattr(self, name)}
        own._commit(known | {"arrays_": unfolded(tree, self.kind_)})
        return own

    # -- as a value --

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
        part = self._with_trees(chosen)
        if hasattr(self, "sampled_") and (which.start or 0) == 0 and which.step in (None, 1):
            part.sampled_ = self.sampled_  # the first trees are those of the same draws
        return part

    def __add__(self, other: Any) -> Self:
        """A forest with the trees of both."""
        if not isinstance(other, Forest) or self._is_for_classes() != other._is_for_classes():
            return NotImplemented
        check_is_fitted(self, "trees_")
        check_is_fitted(other, "trees_")
        mine, theirs = self._signature(), other._signature()
        for name, own in mine.items():
            if own != theirs[name]:
                raise ValueError(
                    f"These forests do not go together: {name} is {own} of the one and "
                    f"{theirs[name]} of the other."
                )
        return self._with_trees([*self.trees_, *other.trees_])

    def _is_for_classes(self) -> bool:
        return False

    def _signature(self) -> dict[str, Any]:
        """What forests must agree on to be added."""
        names = getattr(self, "feature_names_in_", None)
        categories = {int(column): list(labels) for column, labels in self.categories_.items()}
        return {
            "n_features_in_": self.n_features_in_,
            "feature_names_in_": None if names is None else list(names),
            "categories_": categories,
            "n_outputs_": self.n_outputs_,
            "criterion": self.kind_.criterion,
        }

    def _with_trees(self, trees: list[PackedTree]) -> Self:
        """A forest of these trees; figures of the training that belong to others are dropped."""
        other = copy.copy(self)
        dropped = {name for name in vars(self) if name.startswith("oob_") and name.endswith("_")}
        dropped |= {"sampled_", "leaf_samples_", "residuals_"}
        own = {name: value for name, value in vars(self).items() if name not in dropped}
        other.__dict__ = own | {"trees_": list(trees), "n_estimators": len(trees)}
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "trees_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags


def _preorder_numbers(tree: PackedTree) -> np.ndarray:
    """The number of each node in the unfolded tree."""
    order, _ = preorder(np.where(tree.is_leaf, -1, tree.left))
    numbers = np.empty(len(tree), np.int64)
    numbers[order] = np.arange(len(tree))
    return numbers
