"""Base class of the four forests: parameters and fit."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from margrove._data import seed_of
from margrove._runtime import RANDOM_STATE, RUN_CONTROL, drive, require_memory, resolve_n_jobs
from margrove.ensemble.bagging import warn_of_rows_in_every_bag
from margrove.ensemble.bootstrap import CumulativeWeights, in_units, number_of_draws
from margrove.ensemble.forest.grower import ForestGrower
from margrove.ensemble.forest.out_of_bag import OutOfBag, is_flat
from margrove.ensemble.forest.rows import LocalRows
from margrove.ensemble.forest.training_data import ForestTraining, SampledRows, Sampler
from margrove.ensemble.forest.tree_collection import SHARED_WITH_TREES, TreeCollection
from margrove.grove import (
    CRITERIA,
    TREE_PARAMETERS,
    GrowthLimits,
    TrainingSize,
    class_criteria,
    custom_search,
    number_criteria,
    number_of_leaves,
    powers_of_scale,
    warn_of_halving,
)
from margrove.grove.grow import Rules
from margrove.grove.grow.search import CustomSearch
from margrove.grove.serve import Kind, PackedTree, packed_of, rescaled, unfolded

__all__ = ["FOREST_PARAMETERS", "Forest"]

_MOST_TREES = 10_000  # of n_estimators="auto"
_MOST_DRAWS = 2**52
_LEAST_BYTES = 1000.0  # of a tree of one leaf, with its arrays
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
    **{name: TREE_PARAMETERS[name] for name in SHARED_WITH_TREES if name in TREE_PARAMETERS},
    **RANDOM_STATE,
    **RUN_CONTROL,
}


class Forest(TreeCollection):
    """Base class of the random forests and the extremely randomised trees."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = FOREST_PARAMETERS

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees.

        Parameters
        ----------
        X : array-like, sparse matrix or dataframe of shape (n_samples, n_features)
            Missing values are NaN.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 0 removes a row, a weight of 2 is the same as two copies of the row. Samples
            are drawn with probability proportional to the weight.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._check_combination()
        return self._fit_rows(LocalRows(X, self), y, sample_weight)

    def _fit_rows(self, rows: LocalRows, y: Any, sample_weight: Any) -> Self:
        """Grow the trees from rows of this process, or from others with the same methods."""
        seed, earlier = self._seed_and_trees()
        if sp.issparse(y):
            raise ValueError("sparse multilabel-indicator for y is not supported. Use y.toarray().")
        training, learnt = self._training(rows, y, sample_weight, seed)
        learnt = rows.table.attributes | learnt
        if self._is_done(earlier):
            return self
        if earlier:
            self._check_same(training, learnt)
        sampler = Sampler(training)
        rules_of, kind = self._rules_and_kind(training, sampler)
        out_of_bag = self._out_of_bag(kind, training)
        grower = self._grower(rows, training, sampler, rules_of, kind, earlier, out_of_bag)

        def fitted() -> dict[str, Any]:
            trees = [*earlier, *grower.trees]
            attributes = learnt | {
                "trees_": trees,
                "kind_": kind,
                "sampled_": training.sampled,
                "max_features_": rules_of(1).max_features,
            }
            if out_of_bag is not None and out_of_bag.curve:
                attributes |= self._out_of_bag_attributes(out_of_bag, training, learnt, y)
            if not self._keeps_samples(kind):
                return attributes
            return attributes | {"leaf_samples_": rows.leaf_samples(training, sampler, trees, kind)}

        self._grow(grower, fitted, rows.X, y, sample_weight, earlier, out_of_bag)
        self._commit(fitted())
        return self

    def _grower(
        self,
        rows: LocalRows,
        training: ForestTraining,
        sampler: Sampler,
        rules_of: Callable[[int], Rules],
        kind: Kind,
        earlier: list[PackedTree],
        out_of_bag: OutOfBag | None,
    ) -> ForestGrower:
        """The process for the missing trees; out-of-bag sums already include earlier trees."""
        grower = rows.grower(
            training,
            sampler,
            rules_of,
            kind,
            len(earlier),
            self._n_trees(earlier),
            max_leaves=number_of_leaves(self.max_leaf_nodes, len(training.order)),
            n_threads=resolve_n_jobs(self.n_jobs, unset="all"),
            finish=self._finisher(kind, training),
            out_of_bag=out_of_bag,
            is_enough=is_flat if self.n_estimators == "auto" else None,
            search=self._search(rows, training),
        )
        if out_of_bag is not None and earlier:
            grower.add_to_out_of_bag(earlier)
        return grower

    def _grow(
        self,
        grower: ForestGrower,
        fitted: Callable[[], dict[str, Any]],
        X: Any,
        y: Any,
        sample_weight: Any,
        earlier: list[PackedTree],
        out_of_bag: OutOfBag | None,
    ) -> None:
        """Grow all trees, or until an interrupt or the time limit; at least one tree."""
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
                out_of_bag.reset()
                grower.add_to_out_of_bag([*earlier, *grower.trees])
        while not grower.trees and not earlier:  # grow one tree even if time is over
            grower.advance(0.0)
        warn_of_halving(grower.n_balanced, type(self).__name__)

    def _check_combination(self) -> None:
        """Raise if parameters contradict each other."""
        name = type(self).__name__
        if not self.bootstrap and (self.oob_score or self.n_estimators == "auto"):
            argument = "oob_score" if self.oob_score else "n_estimators='auto'"
            raise ValueError(
                f"{argument} of {name}: Out of bag estimation only available if bootstrap=True."
            )
        if not self.bootstrap and self.max_samples is not None:
            raise ValueError(
                "`max_sample` cannot be set if `bootstrap=False`. Either switch to "
                "`bootstrap=True` or set `max_sample=None`. Got "
                f"max_samples={self.max_samples!r} of {name}."
            )
        if not CRITERIA[self.criterion].in_forests:
            criteria = class_criteria if self._is_for_classes() else number_criteria
            names = ", ".join(repr(criterion) for criterion in criteria(in_forests=True))
            raise ValueError(
                f"criterion={self.criterion!r} is for single trees. {name} takes {names}."
            )

    def _seed_and_trees(self) -> tuple[int, list[PackedTree]]:
        """The seed and trees of the last fit for a warm start, otherwise a new seed."""
        if not self.warm_start or not hasattr(self, "trees_"):
            return seed_of(self.random_state), []
        if not hasattr(self, "sampled_"):
            raise ValueError(
                "warm_start=True cannot continue a slice or a sum of forests. Fit another forest "
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
                stacklevel=4,
            )
        return self.sampled_.seed, list(self.trees_)

    def _is_done(self, earlier: list[PackedTree]) -> bool:
        """Whether a warm start adds neither trees nor attributes, so that nothing changes."""
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
        """Raise if a warm start has other columns or classes than the trees of the last fit."""
        before, now = self._signature(), copy.copy(self)
        kind = self.kind_._replace(criterion=CRITERIA[self.criterion].code)
        now._commit(found | {"kind_": kind})
        for name, value in now._signature().items():
            if value != before[name]:
                raise ValueError(
                    f"warm_start=True needs the data of the last fit: {name} was {before[name]} "
                    f"and is {value}. Use warm_start=False."
                )
        if self.bootstrap and training.sampled.n_rows != self.sampled_.n_rows:
            raise ValueError(
                f"warm_start=True needs the data of the last fit: X had {self.sampled_.n_rows} "
                f"rows and has {training.sampled.n_rows}. Use warm_start=False."
            )

    def _search(self, rows: LocalRows, training: ForestTraining) -> CustomSearch | None:
        """The split search of a registered criterion; None for a criterion of margrove."""
        search = custom_search(
            self.criterion,
            n_outputs=len(training.targets.starts) - 1,
            constrained=self.monotonic_cst is not None,
        )
        if search is not None and not rows.takes_registered_criteria:
            raise ValueError(
                f"criterion={self.criterion!r} is registered in this process, but not on the "
                "workers of the cluster. Use a built-in criterion, or the forest in margrove "
                "(not margrove.dask) with arrays."
            )
        return search

    @abstractmethod
    def _training(
        self, rows: LocalRows, y: Any, sample_weight: Any, seed: int
    ) -> tuple[ForestTraining, dict[str, Any]]:
        """The training data, and fitted attributes that depend on the targets."""

    def _sampled(
        self,
        seed: int,
        rows: np.ndarray,
        weight: np.ndarray,
        kept: np.ndarray | slice,
        places: np.ndarray,
        n_rows: int,
    ) -> SampledRows:
        """The recipe of the samples; `rows` and `places` are positions among the kept rows."""
        original = np.arange(n_rows)[kept]
        weight = in_units(weight, len(original))
        cumulative = CumulativeWeights(weight, len(original))
        n_draws = number_of_draws(cumulative, self.max_samples) if self.bootstrap else None
        if n_draws is not None and n_draws > _MOST_DRAWS:
            raise ValueError(
                f"max_samples={self.max_samples!r} means samples of {n_draws} draws. At most 2^52 "
                "draws are possible: use a smaller max_samples."
            )
        group_of = None
        if len(rows) < len(original):  # equal rows were merged
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
        self, training: ForestTraining, sampler: Sampler
    ) -> tuple[Callable[[int], Rules], Kind]:
        """Growth rules as a function of the weight of a tree's sample, and the kind of the trees.

        Shares such as min_weight_fraction_leaf refer to the sample of a tree, not to all rows.
        """
        targets = training.targets
        n_outputs = len(targets.starts) - 1
        size = TrainingSize(
            n_features=training.data.n_features,
            n_outputs=n_outputs,
            n_samples=sampler.n_draws,
            whole_weight=sampler.most,
            real_weight=sampler.most * sampler.unit,
            unit=sampler.unit,
            counted=sampler.counted,
        )
        limits = GrowthLimits.of(self, training.table, targets, splitter=self._splitter)
        largest = limits.rules(size, training.scale)

        def rules(weight: int) -> Rules:
            share = weight / sampler.most
            return largest._replace(
                min_weight=int(np.ceil(largest.min_weight * share)),
                min_decrease=largest.min_decrease * share,
            )

        counts = tuple(np.diff(targets.starts).tolist()) if len(targets.labels) else ()
        return rules, Kind(largest.criterion, counts, n_outputs, training.table.n_categories)

    def _finisher(
        self, kind: Kind, training: ForestTraining
    ) -> Callable[[PackedTree], PackedTree] | None:
        """A function to apply to each grown tree: undo the scale of targets, prune; or None."""
        if self.ccp_alpha == 0.0 and training.scale == 1.0:
            return None

        def finish(tree: PackedTree) -> PackedTree:
            if training.scale != 1.0:
                tree = rescaled(tree, training.scale, powers_of_scale(kind.criterion))
            if self.ccp_alpha > 0.0:
                from margrove.grove.prune import prune_by_cost_complexity

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
        by_place = out_of_bag.predictions()
        predictions = np.full((len(places), by_place.shape[1]), np.nan)
        predictions[places >= 0] = by_place[places[places >= 0]]
        return {
            "oob_curve_": np.array(out_of_bag.curve),
            **self._scored_out_of_bag(predictions, training, learnt, y),
            **self._residuals(out_of_bag, training),
        }

    @abstractmethod
    def _scored_out_of_bag(
        self, predictions: np.ndarray, training: ForestTraining, learnt: dict[str, Any], y: Any
    ) -> dict[str, Any]:
        """The attributes for out-of-bag predictions, (n_rows, n_values), and their score."""

    def _residuals(self, out_of_bag: OutOfBag, training: ForestTraining) -> dict[str, Any]:
        return {}

    def _keeps_samples(self, kind: Kind) -> bool:
        """Whether the fitted attributes include the training targets in each leaf."""
        return False
