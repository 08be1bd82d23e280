"""Decision trees by trying everything, in exact arithmetic; and small nodes made to be awkward.

    decrease of a split = W impurity(node) - sum over branches of W_b impurity(branch)

W is the weight of the rows. Where an impurity is a rational number it is a Fraction of the floats
given; those with logarithms are Decimals of 60 digits, and more where targets need them. So two
splits tie if they tie in mathematics, not because of rounding.

What is a matter of convention rather than of mathematics:

- Ties: the lowest feature, then the lowest threshold, missing values right before missing left.
  Candidates are listed in this order, and the first of the best wins.
- A row of weight 0 is no row. `min_samples_leaf` and `min_samples_split` count rows, not weight.
- No branch of a Poisson split has only zeros: a mean of 0 makes every later event impossible.
- Missing is None or NaN. Where a node saw no missing value, one that comes later takes the branch
  with the most rows, the last of these; so does a category that the node has not seen.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

CLASS_CRITERIA = ("gini", "entropy", "error", "gain_ratio")
NUMBER_CRITERIA = ("squared_error", "absolute_error", "poisson", "gamma")
CRITERIA = CLASS_CRITERIA + NUMBER_CRITERIA

Exact = Fraction | Decimal

_DIGITS = 60
_IN_DOUBT = 20  # of these digits, how many rounding may have spoilt
_MOST_CATEGORIES = 8


# -- exact numbers -------------------------------------------------------------------------------


def exact(number: Any) -> Fraction:
    """A number as it is in memory, without any rounding."""
    # NumPy's integers would stay NumPy's within a Fraction, and overflow there.
    return Fraction(number) if isinstance(number, int | Fraction) else Fraction(float(number))


def whole(numbers: Sequence[Any]) -> tuple[list[int], int]:
    """Integers and a unit: numbers[i] = integers[i] / unit, exactly. Integers are fast to add."""
    fractions = [exact(number) for number in numbers]
    unit = math.lcm(*(fraction.denominator for fraction in fractions))
    return [int(fraction * unit) for fraction in fractions], unit


def _decimal(number: int | Fraction) -> Decimal:
    fraction = Fraction(number)
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


@lru_cache(maxsize=200_000)
def _ln_to(digits: int, numerator: int, denominator: int) -> Decimal:
    with localcontext(prec=digits):
        return (Decimal(numerator) / Decimal(denominator)).ln()


def _ln(number: int | Fraction) -> Decimal:
    """The natural logarithm, to the digits of the current context."""
    fraction = Fraction(number)
    return _ln_to(getcontext().prec, fraction.numerator, fraction.denominator)


def _digits_for(numbers: Sequence[int | Fraction]) -> int:
    """Digits that keep the smallest target, or gap between two, visible beside the largest."""
    ordered = sorted(set(numbers))
    lengths = [abs(number) for number in ordered] + [b - a for a, b in pairwise(ordered)]
    lengths = [Fraction(length) for length in lengths if length]
    if not lengths:
        return _DIGITS
    ratio = max(lengths) / min(lengths)
    return _DIGITS + int((ratio.numerator // ratio.denominator).bit_length() * math.log10(2.0))


# -- impurities ----------------------------------------------------------------------------------


def impurity(name: str, targets: Sequence[Any], weights: Sequence[Any] | None = None) -> Exact:
    """Of labels (gini, entropy, error) or numbers; entropy in bits, deviances halved."""
    given = [1] * len(targets) if weights is None else [exact(weight) for weight in weights]
    if name in CLASS_CRITERIA:
        return _IMPURITIES[name](targets, given)
    numbers = [exact(target) for target in targets]
    with localcontext(prec=_digits_for(numbers)):
        return _IMPURITIES[name](numbers, given)


def _shares(labels, weights) -> list[Fraction]:
    total = Fraction(sum(weights))
    counts: Counter = Counter()
    for label, weight in zip(labels, weights, strict=True):
        counts[label] += weight
    return [count / total for count in counts.values() if count]


def _gini(labels, weights) -> Fraction:
    return 1 - sum(share * share for share in _shares(labels, weights))


def _error(labels, weights) -> Fraction:
    return 1 - max(_shares(labels, weights))


def _entropy(labels, weights) -> Decimal:
    with localcontext() as context:
        context.prec = max(context.prec, _DIGITS)
        bits = sum(_decimal(share) * _ln(share) for share in _shares(labels, weights)) / _ln(2)
        return abs(bits)


def mean(numbers, weights) -> Fraction:
    return Fraction(
        sum(w * y for y, w in zip(numbers, weights, strict=True)), Fraction(sum(weights))
    )


def median(numbers, weights) -> Fraction:
    """Where half of the weight is reached; halfway to the next number if it is reached exactly."""
    rows = sorted((y, w) for y, w in zip(numbers, weights, strict=True) if w)
    below, total = 0, sum(weights)
    for at, (y, w) in enumerate(rows):
        below += w
        if 2 * below == total:
            return Fraction(y + rows[at + 1][0]) / 2
        if 2 * below > total:
            return Fraction(y)
    raise ValueError("No row has any weight.")


def _squared_error(numbers, weights) -> Fraction:
    # E[y^2] - E[y]^2 loses nothing in exact arithmetic.
    return mean([y * y for y in numbers], weights) - mean(numbers, weights) ** 2


def _absolute_error(numbers, weights) -> Fraction:
    middle = median(numbers, weights)
    return mean([abs(y - middle) for y in numbers], weights)


def _poisson(numbers, weights) -> Decimal:
    """Mean of y ln(y / m) - y + m, m being the mean of y: the last two add up to nothing."""
    m = mean(numbers, weights)
    if m == 0:
        return Decimal(0)
    total = sum(_decimal(w * y) * _ln(y) for y, w in zip(numbers, weights, strict=True) if w and y)
    return total / _decimal(sum(weights)) - _decimal(m) * _ln(m)


def _gamma(numbers, weights) -> Decimal:
    """Mean of ln(m / y) + y / m - 1, m being the mean of y: the last two add up to nothing."""
    total = sum(_decimal(w) * _ln(y) for y, w in zip(numbers, weights, strict=True) if w)
    return _ln(mean(numbers, weights)) - total / _decimal(sum(weights))


_IMPURITIES: dict[str, Callable[..., Exact]] = {
    "gini": _gini, "entropy": _entropy, "error": _error, "gain_ratio": _entropy,
    "squared_error": _squared_error, "absolute_error": _absolute_error, "poisson": _poisson,
    "gamma": _gamma,
}  # fmt: skip

# The impurity of c y is c to this power times that of y.
_POWER_OF_UNIT = {"squared_error": 2, "absolute_error": 1, "poisson": 1, "gamma": 0}


# -- splits of one feature -----------------------------------------------------------------------


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


@dataclass(frozen=True)
class Threshold:
    """Values up to `below` are branch 0, those from `above` on branch 1.

    above is infinite where all values go left and only missing ones go right; missing_left is None
    where no value is missing.
    """

    below: float
    above: float
    missing_left: bool | None = None

    @cached_property
    def threshold(self) -> float:
        """Halfway between, or `below` where that rounds to `above`; infinity above all values."""
        if math.isinf(self.above):
            return math.inf
        middle = float((Fraction(self.below) + Fraction(self.above)) / 2)
        return middle if middle < self.above else self.below

    def branch(self, value: Any) -> int:
        """The branch of a value; -1 where that is not for the split to say."""
        if is_missing(value):
            return -1 if self.missing_left is None else int(not self.missing_left)
        return int(value > self.threshold)


@dataclass(frozen=True)
class Subset:
    """Categories of `left` are branch 0, those of `right` branch 1."""

    left: frozenset
    right: frozenset
    missing_left: bool | None = None

    def branch(self, value: Any) -> int:
        if is_missing(value):
            return -1 if self.missing_left is None else int(not self.missing_left)
        return 0 if value in self.left else 1 if value in self.right else -1


@dataclass(frozen=True)
class Multiway:
    """A branch for each category; None, which stands last, is the missing one."""

    categories: tuple

    def branch(self, value: Any) -> int:
        category = None if is_missing(value) else value
        return self.categories.index(category) if category in self.categories else -1


Split = Threshold | Subset | Multiway


def splits_of(column: Sequence[Any], *, categorical: bool | str = False) -> list[Split]:
    """Every split of a feature, in the order in which ties are decided.

    categorical: False, "binary" (or True) for all pairs of subsets, of which the one with the first
    category is left, or "multiway".
    """
    has_missing = any(is_missing(value) for value in column)
    present = sorted({value for value in column if not is_missing(value)})
    if not categorical:
        return _thresholds([value + 0.0 for value in present], has_missing)  # -0.0 is 0.0
    if categorical == "multiway":
        categories = tuple(present) + ((None,) if has_missing else ())
        return [Multiway(categories)] if len(categories) > 1 else []
    return _subsets(present, has_missing)


def _thresholds(values: list[float], has_missing: bool) -> list[Split]:
    if not has_missing:
        return [Threshold(a, b) for a, b in pairwise(values)]
    between: list[Split] = [
        Threshold(a, b, missing_left) for a, b in pairwise(values) for missing_left in (False, True)
    ]
    return between + [Threshold(value, math.inf, False) for value in values[-1:]]


def _subsets(present: list, has_missing: bool) -> list[Split]:
    categories = [*present, None] if has_missing else present
    if len(categories) > _MOST_CATEGORIES:
        raise ValueError(f"{len(categories)} categories have too many subsets to try them all.")
    found: list[Split] = []
    for bits in range(2 ** max(len(categories) - 1, 0) - 1):  # all bits set: nothing is right
        left = {c for k, c in enumerate(categories) if k == 0 or bits >> (k - 1) & 1}
        right = set(categories) - left
        found.append(
            Subset(
                frozenset(left - {None}),
                frozenset(right - {None}),
                (None in left) if has_missing else None,
            )
        )
    return found


# -- the best split of a node --------------------------------------------------------------------


class Candidate(NamedTuple):
    """A split, and the decrease of weighted impurity by it."""

    feature: int
    split: Split
    decrease: Exact


class Best(NamedTuple):
    """The largest decrease (None: there is no split), and all (feature, split) that attain it.

    By gain ratio: the decrease of the first of those with the best ratio.
    """

    decrease: Exact | None
    splits: list[tuple[int, Split]]


@dataclass(frozen=True)
class _Rows:
    """The targets of a node in whole units; losses are W times impurity."""

    criterion: str
    targets: list
    weights: list[int]
    unit: Fraction  # of a loss
    digits: int
    losses: dict[tuple[int, ...], Exact] = field(default_factory=dict)

    @classmethod
    def of(cls, targets: Sequence[Any], weights: Sequence[Any], criterion: str) -> _Rows:
        counts, unit = whole(weights)
        if criterion in CLASS_CRITERIA:
            return cls(criterion, list(targets), counts, Fraction(unit), _DIGITS)
        numbers, scale = whole(targets)
        power = _POWER_OF_UNIT[criterion]
        return cls(criterion, numbers, counts, Fraction(unit * scale**power), _digits_for(numbers))

    def loss(self, rows: tuple[int, ...]) -> Exact:
        # Equal columns ask for the same rows again.
        if rows not in self.losses:
            weights = [self.weights[i] for i in rows]
            own = _IMPURITIES[self.criterion]([self.targets[i] for i in rows], weights)
            self.losses[rows] = own * sum(weights)
        return self.losses[rows]

    def decrease(self, branches: list[tuple[int, ...]]) -> Exact:
        everything = tuple(sorted(i for rows in branches for i in rows))
        difference = self.loss(everything) - sum(self.loss(rows) for rows in branches)
        if isinstance(difference, Decimal):
            return difference / _decimal(self.unit)
        return difference / self.unit

    def may_be_a_branch(self, rows: tuple[int, ...]) -> bool:
        return self.criterion != "poisson" or any(self.targets[i] for i in rows)

    @cached_property
    def tolerance(self) -> Exact:
        """What rounding can have done to a decrease: nothing, where there are no logarithms."""
        if self.criterion in ("entropy", "gain_ratio"):
            terms = [Decimal(100)] * len(self.targets)
        elif self.criterion == "poisson":
            terms = [Decimal(y) * (1 + abs(_ln(y))) for y in self.targets if y]
        elif self.criterion == "gamma":
            terms = [1 + abs(_ln(y)) for y in self.targets]
        else:
            return Fraction(0)
        size = max(terms, default=Decimal(0)) * sum(self.weights) / _decimal(self.unit)
        return size.scaleb(_IN_DOUBT - self.digits)


def _kept(table, targets, weights) -> tuple[list[list], list, list]:
    """Table, targets and weights without the rows that weigh nothing."""
    given = [1] * len(targets) if weights is None else list(weights)
    kept = [i for i, weight in enumerate(given) if weight > 0]
    columns = [[column[i] for i in kept] for column in table]
    return columns, [targets[i] for i in kept], [given[i] for i in kept]


def branches_of(split: Split, column: Sequence[Any]) -> list[tuple[int, ...]]:
    """The rows of each branch."""
    rows: dict[int, list[int]] = {}
    for i, value in enumerate(column):
        rows.setdefault(split.branch(value), []).append(i)
    return [tuple(rows[branch]) for branch in sorted(rows)]


def _candidates(columns, rows: _Rows, categorical, multiway, min_samples_leaf) -> list[Candidate]:
    found = []
    for feature, column in enumerate(columns):
        kind: bool | str = feature in categorical
        for split in splits_of(column, categorical="multiway" if kind and multiway else kind):
            branches = branches_of(split, column)
            smallest = min(len(branch) for branch in branches)
            if smallest >= min_samples_leaf and all(map(rows.may_be_a_branch, branches)):
                found.append(Candidate(feature, split, rows.decrease(branches)))
    return found


def decreases(
    table: Sequence[Sequence[Any]], targets: Sequence[Any], weights: Sequence[Any] | None,
    criterion: str, *, categorical: Sequence[int] = (), multiway: bool = False,
    min_samples_leaf: int = 1,
) -> list[Candidate]:  # fmt: skip
    """Every split of every column, in the order in which ties are decided, and what it is worth."""
    columns, targets, weights = _kept(table, targets, weights)
    rows = _Rows.of(targets, weights, criterion)
    with localcontext(prec=rows.digits):
        return _candidates(columns, rows, categorical, multiway, min_samples_leaf)


def best_split(
    table: Sequence[Sequence[Any]], targets: Sequence[Any], weights: Sequence[Any] | None,
    criterion: str, *, categorical: Sequence[int] = (), multiway: bool = False,
    min_samples_leaf: int = 1,
) -> Best:  # fmt: skip
    """The best of all splits, and those that are exactly as good.

    table: columns; categorical: the numbers of those that hold categories.
    """
    columns, targets, weights = _kept(table, targets, weights)
    rows = _Rows.of(targets, weights, criterion)
    with localcontext(prec=rows.digits):
        found = _candidates(columns, rows, categorical, multiway, min_samples_leaf)
        if not found:
            return Best(None, [])
        if criterion == "gain_ratio":
            return _best_ratio(found, columns, weights, rows.tolerance)
        most, ties = _largest(found, [c.decrease for c in found], rows.tolerance)
        return Best(most, [(c.feature, c.split) for c in ties])


def _largest(items: list, values: list, tolerance: Exact) -> tuple[Any, list]:
    """The largest value, and the items that have it."""
    most = max(values)
    return most, [
        item for item, value in zip(items, values, strict=True) if most - value <= tolerance
    ]


def gain_ratio(candidate: Candidate, table: Sequence[Sequence[Any]], weights) -> Decimal:
    """Gain by split information, the entropy of the branches' shares (Quinlan 1993, 2.2)."""
    column = table[candidate.feature]
    branches = [candidate.split.branch(value) for value in column]
    given = [1] * len(column) if weights is None else [exact(weight) for weight in weights]
    gain = candidate.decrease / _decimal(sum(given))
    return gain / impurity("entropy", branches, given)


def _best_ratio(found: list[Candidate], columns, weights, tolerance: Exact) -> Best:
    """C4.5: of each feature's split of most gain, if that is average or more, the best ratio."""
    winners = []
    for feature in sorted({c.feature for c in found}):
        own = [c for c in found if c.feature == feature]
        winners.append(_largest(own, [c.decrease for c in own], tolerance)[1][0])
    average = sum(c.decrease for c in winners) / len(winners)
    eligible = [c for c in winners if c.decrease >= average - tolerance]
    ratios = [gain_ratio(c, columns, weights) for c in eligible]
    _, ties = _largest(eligible, ratios, Decimal(1).scaleb(_IN_DOUBT - _DIGITS))
    return Best(ties[0].decrease, [(c.feature, c.split) for c in ties])


# -- greedy trees --------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A node of a grown tree; a leaf has no children.

    rows: of the training table. value: the mean or median, or the share of each label.
    default: the branch of values that the split does not know.
    """

    rows: list[int]
    depth: int
    weight: Fraction
    impurity: Exact
    value: Fraction | dict[Any, Fraction]
    feature: int | None = None
    split: Split | None = None
    decrease: Exact | None = None
    default: int | None = None
    children: list[Node] = field(default_factory=list, repr=False)

    @property
    def prediction(self) -> Any:
        """The number, or the label of the largest share: the lowest of them."""
        if isinstance(self.value, dict):
            return min(self.value, key=lambda label: (-self.value[label], label))
        return self.value


def grow(
    table: Sequence[Sequence[Any]], targets: Sequence[Any], weights: Sequence[Any] | None,
    criterion: str, *, max_depth: int | None = None, min_samples_leaf: int = 1,
    min_samples_split: int = 2, categorical: Sequence[int] = (), multiway: bool = False,
) -> Node:  # fmt: skip
    """The greedy tree: nodes are split until they are pure or cannot be, if only for no gain."""
    given = [1] * len(targets) if weights is None else list(weights)

    def node_of(rows: list[int], depth: int) -> Node:
        own, own_weights = [targets[i] for i in rows], [exact(given[i]) for i in rows]
        return Node(
            rows, depth, Fraction(sum(own_weights)), impurity(criterion, own, own_weights),
            value_of(criterion, own, own_weights),
        )  # fmt: skip

    root = node_of([i for i, weight in enumerate(given) if weight > 0], 0)
    waiting = [root]
    while waiting:
        node = waiting.pop()
        rows = node.rows
        is_pure = len({targets[i] for i in rows}) == 1
        if is_pure or node.depth == max_depth or len(rows) < min_samples_split:
            continue
        columns = [[column[i] for i in rows] for column in table]
        best = best_split(
            columns, [targets[i] for i in rows], [given[i] for i in rows], criterion,
            categorical=categorical, multiway=multiway, min_samples_leaf=min_samples_leaf,
        )  # fmt: skip
        if not best.splits:
            continue
        node.feature, node.split = best.splits[0]
        node.decrease = best.decrease
        for branch in branches_of(node.split, columns[node.feature]):
            node.children.append(node_of([rows[i] for i in branch], node.depth + 1))
        node.default = _default_branch(node, columns[node.feature])
        waiting.extend(node.children)
    return root


def value_of(criterion: str, targets, weights) -> Fraction | dict[Any, Fraction]:
    """What a node predicts: shares of the labels, the median, or the mean."""
    if criterion in CLASS_CRITERIA:
        shares: dict[Any, Fraction] = dict.fromkeys(sorted(set(targets)), Fraction(0))
        for target, weight in zip(targets, weights, strict=True):
            shares[target] += Fraction(weight) / sum(weights)
        return shares
    middle = median if criterion == "absolute_error" else mean
    return middle([exact(target) for target in targets], weights)


def _default_branch(node: Node, column: list) -> int:
    if any(is_missing(value) for value in column):
        return node.split.branch(None)
    sizes = [len(child.rows) for child in node.children]
    return max(range(len(sizes)), key=lambda branch: (sizes[branch], branch))


def leaf_of(root: Node, row: Sequence[Any]) -> Node:
    node = root
    while node.children:
        branch = node.split.branch(row[node.feature])
        node = node.children[node.default if branch < 0 else branch]
    return node


def predict(root: Node, row: Sequence[Any]) -> Any:
    """The label or the number for a row of the table."""
    return leaf_of(root, row).prediction


def preorder(root: Any) -> Iterator[Any]:
    """The nodes of a tree, parents before children and the first branch first."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        children = node.children
        waiting.extend(
            reversed(list(children.values() if isinstance(children, dict) else children))
        )


# -- ID3 -----------------------------------------------------------------------------------------


@dataclass(eq=False)
class Id3Node:
    """attribute: the name asked for, None in a leaf. gains: of the attributes not yet asked for,
    None in a leaf. label: the majority's, the lowest if there are several."""

    rows: list[int]
    label: Any
    unused: list[int]  # attributes not asked for on the way here
    attribute: str | None = None
    index: int | None = None
    gains: dict[str, Decimal] | None = None
    children: dict[Any, Id3Node] = field(default_factory=dict, repr=False)


def id3(rows: Sequence[Sequence[Any]], labels: Sequence[Any], names: Sequence[str]) -> Id3Node:
    """Quinlan 1986: a branch for each value that is there, by the attribute of most gain.

    An attribute is asked for once on a path. Growing ends where labels agree or no attribute
    tells rows apart; ties go to the first attribute.
    """

    def node_of(members: list[int], unused: list[int]) -> Id3Node:
        counts = Counter(labels[i] for i in members)
        return Id3Node(members, min(counts, key=lambda label: (-counts[label], label)), unused)

    root = node_of(list(range(len(rows))), list(range(len(names))))
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if len({labels[i] for i in node.rows}) == 1:
            continue
        values = {j: sorted({rows[i][j] for i in node.rows}) for j in node.unused}
        useful = [j for j in node.unused if len(values[j]) > 1]
        if not useful:
            continue
        node.gains = {names[j]: _information_gain(rows, labels, node.rows, j) for j in node.unused}
        most = max(node.gains[names[j]] for j in useful)
        node.index = next(j for j in useful if _is_as_good(node.gains[names[j]], most))
        node.attribute = names[node.index]
        unused = [j for j in node.unused if j != node.index]
        for value in values[node.index]:
            members = [i for i in node.rows if rows[i][node.index] == value]
            node.children[value] = node_of(members, unused)
        waiting.extend(node.children.values())
    return root


def _information_gain(rows, labels, members: list[int], j: int) -> Decimal:
    """Entropy less the mean entropy of the branches, in bits."""
    with localcontext(prec=_DIGITS):
        gain = impurity("entropy", [labels[i] for i in members])
        for value in {rows[i][j] for i in members}:
            own = [labels[i] for i in members if rows[i][j] == value]
            gain -= _decimal(Fraction(len(own), len(members))) * impurity("entropy", own)
        return gain


def _is_as_good(gain: Decimal, most: Decimal) -> bool:
    with localcontext(prec=_DIGITS):
        return most - gain <= Decimal(1).scaleb(_IN_DOUBT - _DIGITS)


def classify(root: Id3Node, row: Sequence[Any]) -> Any:
    """The label for a row; a value that a node has not seen gets the node's majority."""
    node = root
    while node.children and row[node.index] in node.children:
        node = node.children[row[node.index]]
    return node.label


# -- awkward nodes -------------------------------------------------------------------------------


@dataclass(frozen=True)
class RandomNode:
    """A small table by columns, targets, weights or None, and what is awkward about them.

    traits: kinds of columns ("column: offset"), of targets ("targets: mixed"), of weights
    ("weights: halves"), and "missing".
    """

    criterion: str
    table: list[list[float]]
    targets: list
    weights: list[float] | None
    categorical: tuple[int, ...]
    traits: frozenset[str]

    @property
    def rows(self) -> list[list[float]]:
        return [list(row) for row in zip(*self.table, strict=True)]


def random_node(rng: Any, criterion: str, *, categories: bool = False) -> RandomNode:
    """2 to 14 rows, 1 to 4 columns; rng is a random.Random or one of NumPy's generators.

    categories: whether some columns hold numbers of categories, 0 .. 4.
    """
    if hasattr(rng, "integers"):
        rng = random.Random(int(rng.integers(2**62)))
    n = rng.randint(2, 14)
    traits = set()
    table: list[list[float]] = []
    categorical = []
    for j in range(rng.randint(1, 4)):
        if categories and rng.random() < 0.5:
            categorical.append(j)
            column = [float(rng.randint(0, 4)) for _ in range(n)]
        else:
            kind = rng.choice(list(_COLUMNS) + (["copied", "mirrored"] if table else []))
            traits.add(f"column: {kind}")
            column = _random_column(rng, kind, n, table)
        if rng.random() < 0.3:
            traits.add("missing")
            share = rng.choice([0.2, 0.5])
            column = [math.nan if rng.random() < share else value for value in column]
        table.append(column)
    targets, kind = _random_targets(rng, criterion, n)
    weights, kind_of_weights = _random_weights(rng, n)
    traits |= {f"targets: {kind}", f"weights: {kind_of_weights}"}
    return RandomNode(criterion, table, targets, weights, tuple(categorical), frozenset(traits))


def _random_column(rng: random.Random, kind: str, n: int, table: list[list[float]]) -> list[float]:
    if kind == "copied":
        return list(rng.choice(table))
    if kind == "mirrored":  # the same splits, the other way round
        return [-value for value in rng.choice(table)]
    return _COLUMNS[kind](rng, n)


def _drawn_from(values: Callable[[random.Random], list[float]]) -> Callable:
    return lambda rng, n: rng.choices(values(rng), k=n)


def _magnitudes(rng: random.Random) -> list[float]:
    return [rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-200.0, 200.0) for _ in range(4)]


def _neighbours(rng: random.Random) -> list[float]:
    middle = rng.choice([1.0, -3.0, 1e-200, 1e200])
    return [middle, math.nextafter(middle, math.inf), math.nextafter(middle, -math.inf)]


def _common_scale(rng: random.Random) -> list[float]:
    scale = 2.0 ** rng.randint(-664, 660)  # a power of two, so that ties stay ties
    return [k * scale for k in (-1.0, 1.0, 2.0, 3.0)]


# Few distinct values, so that rows and splits tie.
_COLUMNS: dict[str, Callable] = {
    "few": _drawn_from(lambda rng: [0.0, 1.0, 2.0][: rng.randint(2, 3)]),
    "halves": _drawn_from(lambda rng: [-0.5, 0.5, 1.5, 2.0]),
    "constant": lambda rng, n: [rng.choice([0.0, -7.5])] * n,
    "distinct": lambda rng, n: rng.sample([float(k) for k in range(n)], n),
    "offset": _drawn_from(lambda rng: [1e12, 1e12 + 1.0, 1e12 + 2.0, 1e12 + 2.5]),
    "scaled": _drawn_from(_common_scale),
    "mixed": _drawn_from(_magnitudes),
    "neighbours": _drawn_from(_neighbours),
    "zeros": _drawn_from(lambda rng: [0.0, -0.0, 1.0, -1.0]),
    "subnormal": _drawn_from(lambda rng: [0.0, 5e-324, -5e-324, 1e-323]),
}


def _random_targets(rng: random.Random, criterion: str, n: int) -> tuple[list, str]:
    if criterion in CLASS_CRITERIA:
        n_classes = rng.randint(1, 4)
        return [rng.randrange(n_classes) for _ in range(n)], f"{n_classes} classes"
    kind = rng.choice([kind for kind in _COLUMNS if kind not in ("constant", "subnormal")])
    numbers = _COLUMNS[kind](rng, n)
    if criterion in ("poisson", "gamma"):
        numbers = [abs(number) for number in numbers]
    if criterion == "gamma":
        least = min((number for number in numbers if number), default=1.0)
        numbers = [number or least for number in numbers]
    if criterion == "poisson" and not any(numbers):
        numbers[rng.randrange(n)] = 1.0
    return numbers, kind


def _random_weights(rng: random.Random, n: int) -> tuple[list[float] | None, str]:
    kind = rng.choice(["absent", "absent", "whole", "halves"])
    if kind == "absent":
        return None, kind
    values = [1.0, 2.0, 3.0, 7.0] if kind == "whole" else [0.5, 1.0, 1.5, 2.5]
    return rng.choices(values, k=n), kind
