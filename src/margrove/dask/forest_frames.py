"""What those who grow a forest on shards of its rows tell each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrove.ensemble.forest.training_data import ForestTraining, Sampler
from margrove.grove.grow.split_search import Rules
from margrove.grove.serve.packed_trees import Cuts, Kind
from margrove.grove.table.binning import BinnedDataset
from margrove.grove.table.targets import Targets

__all__ = ["Frame", "LeafRule", "OwnRows", "Parting", "frame_of", "own_rows"]


@dataclass(frozen=True)
class Frame:
    """The same for all members of a gang.

    data            no rows; categories, and values of other codes where thresholds are drawn
    targets         no rows; units and starts are those of the trees
    rules           of a tree that has all there is; see `rules_of`
    n_units         length of the line that samples are drawn from; 0 where none are
    is_whole, is_even    what the line is like; see `resampling.Line`
    """

    data: BinnedDataset
    targets: Targets
    rules: Rules
    kind: Kind
    max_leaves: int
    weights_count: bool
    balanced: bool
    seed: int
    n_draws: int
    unit: float
    n_units: int
    is_whole: bool
    is_even: bool

    @property
    def is_class(self) -> bool:
        return bool(self.kind.n_classes)

    @property
    def n_outputs(self) -> int:
        return len(self.targets.starts) - 1

    @property
    def n_stats(self) -> int:
        return int(self.targets.starts[-1])

    @property
    def cuts(self) -> Cuts:
        """None: trees are packed by the client."""
        nothing = np.empty(0)
        return Cuts(nothing, nothing, np.zeros(1, np.int64), np.empty(0, dtype=bool))

    def rules_of(self, bounds: tuple[int, float]) -> Rules:
        """The rules of a tree, which differ in two bounds."""
        return self.rules._replace(min_weight=bounds[0], min_decrease=bounds[1])


@dataclass(frozen=True)
class OwnRows:
    """What a member is told of its rows, in the order of their places in the training.

    order            rows of the shard; copies of rows that are elsewhere are left out
    begins, ends     units of the line that each lies on
    factors          class weights, whole; None if there are none
    """

    order: np.ndarray
    places: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    labels: np.ndarray
    raw: np.ndarray
    weight: np.ndarray
    real: np.ndarray
    samples: np.ndarray
    factors: np.ndarray | None


@dataclass(frozen=True)
class Parting:
    """How the rows of a node are to be parted; its children get the numbers first, first + 1."""

    tree: int
    node: int
    first: int
    feature: int
    code: int
    missing_left: int
    words: np.ndarray | None


@dataclass(frozen=True)
class LeafRule:
    """What is known of one output of a leaf: its value is low + above.

    is_quick   whether losses are squares of shares, as `sapling` sums them
    """

    tree: int
    node: int
    output: int
    low: float
    factor: float
    above: float = 0.0
    largest: float = 0.0
    scale: float = 0.0
    is_quick: bool = False


def frame_of(
    training: ForestTraining,
    sampler: Sampler,
    rules: Rules,
    kind: Kind,
    max_leaves: int,
    data: BinnedDataset,
) -> Frame:
    """`data` has the codes' values, but no rows."""
    line, targets = sampler._line, training.targets
    bare = targets._replace(
        labels=targets.labels[:0],
        numbers=targets.numbers[:0],
        raw=targets.raw[:0],
        weight=targets.weight[:0],
        real=targets.real[:0],
        samples=targets.samples[:0],
        unit=sampler.unit,
        counted=sampler.counted,
    )
    return Frame(
        data,
        bare,
        rules,
        kind,
        max_leaves,
        bool(sampler.weights_count),
        training.balanced,
        int(training.sampled.seed),
        int(sampler.n_draws),
        float(sampler.unit),
        0 if line is None else int(line.ends[-1]),
        line is not None and bool(line.is_whole),
        line is not None and bool(line.is_even),
    )


def own_rows(training: ForestTraining, sampler: Sampler, place_of: np.ndarray) -> OwnRows:
    """Of a shard whose rows have these places; -1 for copies of rows that are elsewhere."""
    order = np.flatnonzero(place_of >= 0)
    order = order[np.argsort(place_of[order], kind="stable")]
    places = place_of[order].astype(np.int64)
    targets, line = training.targets, sampler._line
    n_outputs = len(targets.starts) - 1

    def flat(own: np.ndarray) -> np.ndarray:
        return own.reshape(-1, n_outputs)[places].ravel() if len(own) else own

    ends = np.empty(0, np.int64)
    begins = ends
    if line is not None:
        ends = line.ends[places]
        begins = np.where(places > 0, line.ends[places - 1], 0)
    return OwnRows(
        order,
        places,
        begins,
        ends,
        flat(targets.labels),
        flat(targets.raw),
        targets.weight[places],
        targets.real[places],
        targets.samples[places],
        None if sampler._factors is None else sampler._factors[places],
    )
