"""The slow trees against the lectures, against scikit-learn, and against their own definitions."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from margrove.datasets import load_iris_ratios, load_play_tennis, load_restaurant
from tests.oracles.entropy import entropy, information_gain
from tests.oracles.trees import (
    CLASS_CRITERIA,
    CRITERIA,
    NUMBER_CRITERIA,
    Multiway,
    Subset,
    Threshold,
    best_split,
    branches_of,
    classify,
    decreases,
    gain_ratio,
    grow,
    id3,
    impurity,
    is_missing,
    leaf_of,
    predict,
    preorder,
    random_node,
    splits_of,
)

pytestmark = pytest.mark.nojit

NAN = math.nan
EXACT = ("gini", "error", "squared_error", "absolute_error")
NODES = 60  # of each criterion, for each property


def printed(value: float, digits: int):
    return pytest.approx(value, abs=1.1 * 10**-digits)


def nodes(criterion, seed, *, n=NODES, **options):
    rng = random.Random(f"{criterion} {seed}")
    return [random_node(rng, criterion, **options) for _ in range(n)]


def weights_of(node) -> list[Fraction]:
    return [Fraction(w) for w in node.weights or [1] * len(node.targets)]


def table_of(bunch):
    return [bunch.data[:, j].tolist() for j in range(bunch.data.shape[1])]


# -- the lectures --------------------------------------------------------------------------------


def test_gains_of_tennis() -> None:
    tennis = load_play_tennis()
    play = tennis.target.tolist()
    assert float(impurity("entropy", play)) == printed(0.94, 2)
    found = decreases(table_of(tennis), play, None, "entropy", categorical=range(4), multiway=True)
    gains = [float(c.decrease) / 14 for c in found]
    assert [c.feature for c in found] == [0, 1, 2, 3]
    assert gains == [printed(0.246, 3), printed(0.029, 3), printed(0.151, 3), printed(0.048, 3)]
    slow = [information_gain(column, play) for column in table_of(tennis)]
    assert gains == pytest.approx(slow, abs=1e-14)


def test_id3_of_tennis() -> None:
    tennis = load_play_tennis()
    rows, play = tennis.data.tolist(), tennis.target.tolist()
    root = id3(rows, play, tennis.feature_names)
    assert root.attribute == "outlook"
    assert float(root.gains["outlook"]) == printed(0.246, 3)
    sunny, overcast, rain = (root.children[v] for v in ("sunny", "overcast", "rain"))
    assert (sunny.attribute, overcast.attribute, rain.attribute) == ("humidity", None, "wind")
    assert overcast.label == "yes"
    assert overcast.gains is None
    assert {name: float(gain) for name, gain in sunny.gains.items()} == {
        "humidity": printed(0.970, 3),
        "temperature": printed(0.570, 3),
        "wind": printed(0.019, 3),
    }
    leaves = {value: leaf.label for value, leaf in sunny.children.items()}
    assert leaves == {"high": "no", "normal": "yes"}
    assert {v: leaf.label for v, leaf in rain.children.items()} == {"strong": "no", "weak": "yes"}
    assert len(list(preorder(root))) == 8
    assert [classify(root, row) for row in rows] == play
    assert classify(root, ["sunny", "hot", "unheard of", "weak"]) == "no"  # 3 of 5 sunny days


def test_id3_of_the_restaurant() -> None:
    restaurant = load_restaurant()
    rows, wait = restaurant.data.tolist(), restaurant.target.tolist()
    root = id3(rows, wait, restaurant.feature_names)
    assert root.attribute == "Pat"
    assert 1 - float(root.gains["Pat"]) == pytest.approx(0.4591, abs=1e-4)
    assert float(root.gains["Type"]) == pytest.approx(0.0, abs=1e-50)
    assert root.children["None"].label == "No"
    assert root.children["Some"].label == "Yes"
    full = root.children["Full"]
    assert full.attribute == "Hun"
    hungry = full.children["Yes"]
    assert max(hungry.gains.values()) - hungry.gains[hungry.attribute] < Decimal("1e-40")
    assert [classify(root, row) for row in rows] == wait
    paths_repeat_nothing(root)


def paths_repeat_nothing(root) -> None:
    waiting = [(root, ())]
    while waiting:
        node, asked = waiting.pop()
        assert node.attribute not in asked
        waiting.extend((child, (*asked, node.attribute)) for child in node.children.values())


def test_id3_takes_the_first_of_equal_attributes_and_none_that_is_constant() -> None:
    rows = [["k", 0, 0], ["k", 0, 0], ["k", 1, 1], ["k", 1, 1]]
    root = id3(rows, ["a", "b", "b", "b"], ["constant", "first", "second"])
    assert root.attribute == "first"
    assert root.gains["first"] == root.gains["second"] > root.gains["constant"] == 0
    stuck = root.children[0]  # one a, one b, and nothing tells them apart
    assert stuck.attribute is None
    assert stuck.label == "a"


def test_first_cut_of_the_irises() -> None:
    iris = load_iris_ratios()
    assert float(impurity("gini", [0] + [1] * 50 + [2] * 50)) == pytest.approx(0.5098, abs=5e-5)
    table, target = table_of(iris), iris.target.tolist()
    cuts = [c for c in decreases(table, target, None, "gini") if c.feature == 0]
    cut = next(c for c in cuts if c.split.below <= 1.7157 < c.split.above)
    below, above = branches_of(cut.split, table[0])
    assert np.bincount(iris.target[list(below)]).tolist() == [49]
    assert np.bincount(iris.target[list(above)]).tolist() == [1, 50, 50]
    assert cut.decrease == 150 * Fraction(2, 3) - 101 * impurity("gini", iris.target[list(above)])


def test_gain_ratios_of_tennis() -> None:
    """Quinlan's ratios; the average gain is .119, so that only two attributes are looked at."""
    tennis = load_play_tennis()
    table, play = table_of(tennis), tennis.target.tolist()
    options = {"categorical": range(4), "multiway": True}
    found = decreases(table, play, None, "gain_ratio", **options)
    ratios = [float(gain_ratio(c, table, None)) for c in found]
    assert ratios == [printed(0.156, 3), printed(0.018, 3), printed(0.151, 3), printed(0.048, 3)]
    expected = [information_gain(column, play) / entropy(column) for column in table]
    assert ratios == pytest.approx(expected, abs=1e-14)
    best = best_split(table, play, None, "gain_ratio", **options)
    assert best.splits == [(0, Multiway(("overcast", "rain", "sunny")))]
    assert float(best.decrease) / 14 == printed(0.246, 3)


# -- impurities ----------------------------------------------------------------------------------

NUMBERS = [3.0, 1.0, 1.0, 7.5, 2.0]
LABELS = ["a", "b", "a", "c", "a"]
WEIGHTS = [1.0, 2.0, 0.5, 1.0, 3.0]


def test_impurities_by_hand() -> None:
    assert impurity("gini", LABELS, WEIGHTS) == 1 - Fraction(81 + 16 + 4, 225)
    assert impurity("error", LABELS, WEIGHTS) == Fraction(6, 15)
    assert impurity("squared_error", [1.0, 2.0, 6.0]) == Fraction(14, 3)
    assert impurity("absolute_error", NUMBERS, WEIGHTS) == Fraction(2 + 4 + 1 + 11, 15)
    assert impurity("entropy", [0, 0, 1, 1, 2, 2, 3, 3]) == 2


def test_pure_nodes_have_no_impurity() -> None:
    for name in CRITERIA:
        size = abs(impurity(name, [3] * 4, [1.0, 0.5, 2.0, 2.0]))
        assert size < Decimal("1e-55")
        assert name not in EXACT or size == 0
    assert impurity("poisson", [0.0, 0.0]) == 0


def test_impurities_with_logarithms() -> None:
    total = sum(WEIGHTS)
    mean = sum(w * y for y, w in zip(NUMBERS, WEIGHTS, strict=True)) / total
    shares = [4.5 / total, 2.0 / total, 1.0 / total]
    literally = {
        "entropy": -sum(p * math.log2(p) for p in shares),
        "poisson": sum(
            w * (y * math.log(y / mean) - y + mean) for y, w in zip(NUMBERS, WEIGHTS, strict=True)
        )
        / total,
        "gamma": sum(
            w * (math.log(mean / y) + y / mean - 1.0) for y, w in zip(NUMBERS, WEIGHTS, strict=True)
        )
        / total,
    }
    for name, value in literally.items():
        targets = LABELS if name == "entropy" else NUMBERS
        assert float(impurity(name, targets, WEIGHTS)) == pytest.approx(value, rel=1e-13)
    weighted = {"y_pred": [mean] * 5, "sample_weight": WEIGHTS}
    poisson, gamma = (float(impurity(name, NUMBERS, WEIGHTS)) for name in ("poisson", "gamma"))
    assert mean_poisson_deviance(NUMBERS, **weighted) / 2 == pytest.approx(poisson, rel=1e-13)
    assert mean_gamma_deviance(NUMBERS, **weighted) / 2 == pytest.approx(gamma, rel=1e-13)
    zeros = [0.0, 2.0, 1.0]
    assert float(impurity("poisson", zeros)) == pytest.approx(
        mean_poisson_deviance(zeros, [1.0] * 3) / 2
    )


def is_close(a, b) -> bool:
    """Equal where arithmetic is exact, else to 30 digits."""
    if isinstance(a, Fraction):
        return a == b
    with localcontext(prec=600):
        return abs(a - b) <= Decimal("1e-30") * max(abs(a), abs(b)) + Decimal("1e-55")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weight_is_repetition_and_none_is_absence(criterion) -> None:
    compared = 0
    for node in nodes(criterion, "repetition"):
        weights = [k % 3 for k in range(len(node.targets))]
        repeated = [y for y, w in zip(node.targets, weights, strict=True) for _ in range(w)]
        if criterion == "poisson" and not any(repeated):
            continue
        table = [
            [x for x, w in zip(column, weights, strict=True) for _ in range(w)]
            for column in node.table
        ]
        assert is_close(impurity(criterion, node.targets, weights), impurity(criterion, repeated))
        by_weight = best_split(node.table, node.targets, weights, criterion)
        assert by_weight.splits == best_split(table, repeated, None, criterion).splits
        compared += 1
    assert compared > NODES // 2


# -- splits of one feature -----------------------------------------------------------------------


def test_thresholds_in_the_order_of_ties() -> None:
    assert splits_of([2.0, -0.0, 1.0, 0.0]) == [Threshold(0.0, 1.0), Threshold(1.0, 2.0)]
    assert splits_of([5.0, 5.0]) == splits_of([NAN, NAN]) == []
    assert splits_of([1.0, NAN, 3.0, 2.0]) == [
        Threshold(1.0, 2.0, False),
        Threshold(1.0, 2.0, True),
        Threshold(2.0, 3.0, False),
        Threshold(2.0, 3.0, True),
        Threshold(3.0, math.inf, False),
    ]
    assert splits_of([4.0, None, 4.0]) == [Threshold(4.0, math.inf, False)]
    assert math.copysign(1.0, splits_of([-0.0, 1.0])[0].below) == 1.0


def test_thresholds_lie_between() -> None:
    assert Threshold(1.0, 2.0).threshold == 1.5
    huge = 2.0**1023  # twice that is too much for a float
    assert Threshold(-huge, 1.5 * huge).threshold == 0.25 * huge
    assert Threshold(huge, 1.5 * huge).threshold == 1.25 * huge
    above = math.nextafter(1.0, 2.0)
    assert Threshold(1.0, above).threshold == 1.0
    assert Threshold(0.0, 5e-324).threshold == 0.0
    assert [Threshold(1.0, above).branch(x) for x in (1.0, above, NAN)] == [0, 1, -1]
    alone = Threshold(3.0, math.inf, False)
    assert [alone.branch(x) for x in (3.0, 1e300, NAN, None)] == [0, 0, 1, 1]
    assert Threshold(1.0, 2.0, True).branch(NAN) == 0


@pytest.mark.parametrize("k", range(1, 9))
def test_all_subsets(k) -> None:
    column = ["x", "a", "b", "c", "d", "e", "f", "g"][:k]
    splits = splits_of(column, categorical=True)
    assert len({frozenset([s.left, s.right]) for s in splits}) == len(splits) == 2 ** (k - 1) - 1
    for split in splits:
        assert split.left | split.right == set(column)
        assert not split.left & split.right
        assert min(column) in split.left
        assert split.right
        assert split.branch("unheard of") == split.branch(None) == -1


def test_missing_is_a_category() -> None:
    assert splits_of(["b", None, "a"], categorical="binary") == [
        Subset(frozenset("a"), frozenset("b"), False),
        Subset(frozenset("ab"), frozenset(), False),
        Subset(frozenset("a"), frozenset("b"), True),
    ]
    split = splits_of(["b", NAN, "a"], categorical="multiway")
    assert split == [Multiway(("a", "b", None))]
    assert [split[0].branch(value) for value in ("b", NAN, "c")] == [1, 2, -1]
    assert splits_of([None, None], categorical="multiway") == []
    with pytest.raises(ValueError, match="9 categories"):
        splits_of([*range(8), None], categorical=True)


# -- decreases against other ways to write them ----------------------------------------------------


def sums(node, rows, of) -> Fraction:
    weights = weights_of(node)
    return sum((weights[i] * of(node.targets[i]) for i in rows), Fraction(0))


def between(node, left, right, of) -> Fraction:
    """W_l W_r / W (m_l - m_r)^2, the variance between two groups."""
    a, b = (sums(node, rows, lambda _: 1) for rows in (left, right))
    return a * b / (a + b) * (sums(node, left, of) / a - sums(node, right, of) / b) ** 2


def by_gini(node, left, right) -> Fraction:
    return sum(between(node, left, right, lambda y, k=k: int(y == k)) for k in range(4))


def by_error(node, left, right) -> Fraction:
    def hits(rows):
        return max(sums(node, rows, lambda y, k=k: int(y == k)) for k in range(4))

    return hits(left) + hits(right) - hits(left + right)


def by_squared_error(node, left, right) -> Fraction:
    return between(node, left, right, Fraction)


def by_absolute_error(node, left, right) -> Fraction:
    def least(rows):
        constants = [Fraction(node.targets[i]) for i in rows]
        return min(sums(node, rows, lambda y, c=c: abs(Fraction(y) - c)) for c in constants)

    return least(left + right) - least(left) - least(right)


@pytest.mark.parametrize(
    ("criterion", "formula"),
    [
        ("gini", by_gini),
        ("error", by_error),
        ("squared_error", by_squared_error),
        ("absolute_error", by_absolute_error),
    ],
)
def test_rational_decreases(criterion, formula) -> None:
    """Exactly, and with them all ties."""
    for node in nodes(criterion, "formula", categories=True):
        found = decreases(
            node.table, node.targets, node.weights, criterion, categorical=node.categorical
        )
        expected = [formula(node, *branches_of(c.split, node.table[c.feature])) for c in found]
        assert [c.decrease for c in found] == expected
        best = best_split(
            node.table, node.targets, node.weights, criterion, categorical=node.categorical
        )
        ties = [c[:2] for c, e in zip(found, expected, strict=True) if e == max(expected)]
        assert best.splits == ties
        assert best.decrease == (max(expected) if expected else None)


def to_the_power(base: Fraction, exponent: Fraction) -> Fraction:
    assert exponent.denominator == 1
    return base ** int(exponent)


def entropy_as_product(node, rows) -> Fraction:
    """2^(W entropy / unit) = W^W / prod L_k^L_k: a rational number if weights are whole."""
    counts = [2 * sums(node, rows, lambda y, k=k: int(y == k)) for k in range(4)]
    total = sum(counts)
    return to_the_power(total, total) / math.prod(to_the_power(n, n) for n in counts if n)


def poisson_as_product(node, rows) -> Fraction:
    """e^(loss), less what all splits have in common: (W / S)^S, if sums are whole."""
    total, weight = 4 * sums(node, rows, Fraction), sums(node, rows, lambda _: 1)
    return to_the_power(weight / total, total) if total else Fraction(1)


def gamma_as_product(node, rows) -> Fraction:
    """The same of gamma: (S / W)^W."""
    total, weight = sums(node, rows, Fraction), sums(node, rows, lambda _: 1)
    return to_the_power(total / weight, 2 * weight)


@pytest.mark.parametrize(
    ("criterion", "product"),
    [("entropy", entropy_as_product), ("poisson", poisson_as_product), ("gamma", gamma_as_product)],
)
def test_ties_of_logarithms(criterion, product) -> None:
    """Logarithms of rational numbers are compared without taking any."""
    compared = tied = 0
    for node in nodes(criterion, "product", n=4 * NODES):
        # (W / S)^S has S digits
        if criterion == "poisson" and not node.traits & {"targets: few", "targets: halves"}:
            continue
        found = decreases(node.table, node.targets, node.weights, criterion)
        if not found:
            continue
        losses = []
        for candidate in found:
            left, right = branches_of(candidate.split, node.table[candidate.feature])
            losses.append(product(node, left) * product(node, right))
        best = best_split(node.table, node.targets, node.weights, criterion)
        ties = [c[:2] for c, loss in zip(found, losses, strict=True) if loss == min(losses)]
        assert best.splits == ties
        compared += 1
        tied += len(ties) > 1
    assert compared > 30
    assert tied > 10


def test_targets_of_all_magnitudes_keep_their_ties() -> None:
    """The split apart from 1e200 is best; which side 1e-200 is on makes all the difference left."""
    for criterion in ("poisson", "gamma", "squared_error", "absolute_error"):
        targets = [1e200, 1e200, 1e-200, 1e-199]
        wrong, right = [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]
        best = best_split([wrong, right, right], targets, None, criterion)
        assert best.splits == [(1, Threshold(0.0, 1.0)), (2, Threshold(0.0, 1.0))]
    # With 60 digits alone the two were the same.
    targets = [1e200, 1e-200, 1e-200, 1.0]
    table = [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]]
    for criterion in ("poisson", "squared_error", "absolute_error"):
        assert [c[0] for c in best_split(table, targets, None, criterion).splits] == [1]


def test_a_poisson_branch_is_not_all_zeros() -> None:
    table, targets = [[0.0, 1.0, 2.0, 3.0]], [0.0, 0.0, 5.0, 1.0]
    found = decreases(table, targets, None, "poisson")
    assert [c.split for c in found] == [Threshold(2.0, 3.0)]
    assert len(decreases(table, targets, None, "squared_error")) == 3


def test_min_samples_leaf_counts_rows() -> None:
    table, targets, weights = [[0.0, 1.0, 2.0, 3.0]], [1, 0, 0, 0], [9.0, 1.0, 1.0, 1.0]
    assert best_split(table, targets, weights, "gini").splits[0][1] == Threshold(0.0, 1.0)
    found = decreases(table, targets, weights, "gini", min_samples_leaf=2)
    assert [c.split for c in found] == [Threshold(1.0, 2.0)]
    assert best_split(table, targets, weights, "gini", min_samples_leaf=3) == (None, [])


def test_gain_ratio_looks_at_average_gains_only() -> None:
    """One row apart has the best ratio and hardly any gain."""
    labels = [1] * 8 + [0] * 8
    apart = [1.0] + [0.0] * 15
    fair = [1.0] * 6 + [0.0] * 2 + [1.0] * 2 + [0.0] * 6
    table = [apart, fair]
    found = decreases(table, labels, None, "gain_ratio")
    gains = [float(c.decrease) / 16 for c in found]
    assert gains == pytest.approx([0.0655, 0.1887], abs=1e-4)
    assert gains == pytest.approx([information_gain(column, labels) for column in table])
    ratios = [float(gain_ratio(c, table, None)) for c in found]
    assert ratios == pytest.approx([0.1942, 0.1887], abs=1e-4)
    assert best_split(table, labels, None, "gain_ratio").splits == [(1, Threshold(0.0, 1.0))]


def test_gain_ratio_by_floats() -> None:
    compared = 0
    for node in nodes("gain_ratio", "floats"):
        found = decreases(node.table, node.targets, node.weights, "gain_ratio")
        if not found:
            continue
        weights = [float(w) for w in weights_of(node)]
        winners = {}
        for c in found:
            if c.feature not in winners or float(c.decrease - winners[c.feature].decrease) > 1e-20:
                winners[c.feature] = c
        average = sum(float(c.decrease) for c in winners.values()) / len(winners)
        ratios = {}
        for feature, c in winners.items():
            if float(c.decrease) >= average - 1e-12:
                sides = [c.split.branch(value) for value in node.table[feature]]
                share = sum(w for w, side in zip(weights, sides, strict=True) if side) / sum(
                    weights
                )
                information = -share * math.log2(share) - (1 - share) * math.log2(1 - share)
                ratios[feature] = float(c.decrease) / sum(weights) / information
        most = max(ratios.values())
        ties = [(f, winners[f].split) for f in sorted(ratios) if ratios[f] >= most - 1e-12]
        assert best_split(node.table, node.targets, node.weights, "gain_ratio").splits == ties
        compared += 1
    assert compared > NODES // 2


# -- scikit-learn ----------------------------------------------------------------------------------

THEIRS = ("gini", "entropy", "squared_error", "absolute_error", "poisson")
TAME = {
    f"column: {kind}" for kind in ("offset", "scaled", "mixed", "neighbours", "subnormal")
}  # float32 and 1e-7


def tame_nodes(criterion):
    """Nodes that scikit-learn sees as they are."""
    tame_targets = {f"targets: {kind}" for kind in ("few", "halves", "zeros", "distinct")}
    for node in nodes(criterion, "sklearn", n=20 * NODES):
        is_tame = criterion in CLASS_CRITERIA or node.traits & tame_targets
        is_missing_taken = criterion != "absolute_error" or "missing" not in node.traits
        if is_tame and is_missing_taken and not node.traits & TAME:
            yield node


def their_tree(criterion, **options):
    kind = DecisionTreeClassifier if criterion in CLASS_CRITERIA else DecisionTreeRegressor
    return kind(criterion=criterion, random_state=0, **options)


@pytest.mark.parametrize("criterion", THEIRS)
def test_best_splits_are_scikit_learns(criterion) -> None:
    compared = 0
    for node in tame_nodes(criterion):
        X = np.array(node.rows)
        theirs = their_tree(criterion, max_depth=1)
        theirs.fit(X, node.targets, sample_weight=node.weights)
        own = impurity(criterion, node.targets, node.weights)
        assert theirs.tree_.impurity[0] == pytest.approx(float(own), rel=1e-9, abs=1e-12)
        best = best_split(node.table, node.targets, node.weights, criterion)
        if theirs.tree_.node_count == 1:
            assert not best.splits or own < 1e-12 or best.decrease == 0
            continue
        left = tuple(np.flatnonzero(theirs.apply(X) == 1).tolist())
        partitions = [branches_of(split, node.table[j])[0] for j, split in best.splits]
        assert left in partitions
        compared += 1
    assert compared > 50


@pytest.mark.parametrize("criterion", THEIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_scikit_learns(criterion, weighted) -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    y = rng.poisson(2.0 + (X[:, 0] > 0)) + rng.random(40)
    if criterion in CLASS_CRITERIA:
        y = np.minimum(y.astype(int), 2)
    weights = rng.integers(1, 5, 40) / 2.0 if weighted else None
    options = {"max_depth": 3, "min_samples_leaf": 3, "min_samples_split": 8}
    theirs = their_tree(criterion, **options).fit(X, y, sample_weight=weights)
    table = [[float(x) for x in column] for column in X.T]
    given = None if weights is None else weights.tolist()
    root = grow(table, y.tolist(), given, criterion, **options)
    grown = list(preorder(root))
    assert len(grown) == theirs.tree_.node_count >= 7
    for k, node in enumerate(grown):
        assert float(node.impurity) == pytest.approx(theirs.tree_.impurity[k], abs=1e-9)
        assert float(node.weight) == pytest.approx(theirs.tree_.weighted_n_node_samples[k])
        assert theirs.tree_.feature[k] == (-2 if node.feature is None else node.feature)
        if node.split is not None:
            assert theirs.tree_.threshold[k] == pytest.approx(node.split.threshold, rel=1e-12)
    new = rng.normal(size=(50, 3)).astype(np.float32)
    own = [predict(root, [float(x) for x in row]) for row in new]
    assert np.array(own, dtype=float) == pytest.approx(theirs.predict(new), rel=1e-9)


# -- trees -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_full_trees_tell_apart_what_can_be(criterion) -> None:
    for node in nodes(criterion, "trees", n=20):
        root = grow(node.table, node.targets, node.weights, criterion)
        for leaf in (n for n in preorder(root) if not n.children):
            own = {node.targets[i] for i in leaf.rows}
            rows = {tuple("?" if is_missing(x) else x for x in node.rows[i]) for i in leaf.rows}
            only_zeros_remain = criterion == "poisson" and 0.0 in own
            assert len(own) == 1 or len(rows) == 1 or only_zeros_remain
            assert all(leaf_of(root, node.rows[i]) is leaf for i in leaf.rows)
            assert sum(weights_of(node)[i] for i in leaf.rows) == leaf.weight


@pytest.mark.parametrize("criterion", EXACT)
def test_decreases_add_up(criterion) -> None:
    for node in nodes(criterion, "sums", n=20):
        root = grow(node.table, node.targets, node.weights, criterion)
        everything = list(preorder(root))
        left = sum(n.weight * n.impurity for n in everything if not n.children)
        gained = sum(n.decrease for n in everything if n.children)
        assert gained == root.weight * root.impurity - left
        assert all(n.decrease >= 0 for n in everything if n.children)


def test_splits_without_gain_are_taken() -> None:
    """No cut of xor gains anything, and two levels solve it."""
    table, labels = [[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]], [0, 1, 1, 0]
    root = grow(table, labels, None, "gini")
    assert (root.decrease, root.feature, len(list(preorder(root)))) == (0, 0, 7)
    assert [predict(root, row) for row in zip(*table, strict=True)] == labels
    assert not grow(table, labels, None, "gini", max_depth=0).children
    assert len(list(preorder(grow(table, labels, None, "gini", max_depth=1)))) == 3
    assert not grow(table, labels, None, "gini", min_samples_leaf=3).children
    assert not grow(table, labels, None, "gini", min_samples_split=5).children


def test_values_of_nodes() -> None:
    labels = grow([[0.0, 0.0, 0.0]], ["b", "a", "c"], [2.0, 2.0, 1.0], "gini")
    assert labels.value == {"a": Fraction(2, 5), "b": Fraction(2, 5), "c": Fraction(1, 5)}
    assert labels.prediction == "a"
    column, targets = [[0.0, 0.0, 0.0]], [1.0, 2.0, 6.0]
    assert grow(column, targets, None, "squared_error").value == 3
    assert grow(column, targets, None, "absolute_error").value == 2
    assert grow(column, targets, [1.0, 1.0, 2.0], "absolute_error").value == 4  # halfway to 6


def test_values_that_a_split_does_not_know() -> None:
    root = grow([[0.0, 1.0, NAN]], [0, 1, 0], None, "gini")
    assert root.split == Threshold(0.0, 1.0, True)
    assert predict(root, [NAN]) == 0
    larger = grow([[0.0, 1.0, 1.0]], [0, 1, 1], [9.0, 1.0, 1.0], "gini")
    assert predict(larger, [NAN]) == 1
    even = grow([["b", "a"]], [0, 1], None, "gini", categorical=[0])
    assert [predict(even, [value]) for value in ("a", "b", "c")] == [1, 0, 0]
    ways = grow([["b", "a", "c", "c"]], [0, 1, 2, 2], None, "gini", categorical=[0], multiway=True)
    assert len(ways.children) == 3
    assert [predict(ways, [value]) for value in ("a", "b", "c", "d")] == [1, 0, 2, 2]


def test_multiway_trees_are_id3s() -> None:
    for bunch in (load_play_tennis(), load_restaurant()):
        columns, labels = table_of(bunch), bunch.target.tolist()
        categorical = range(len(columns))
        tree = grow(columns, labels, None, "entropy", categorical=categorical, multiway=True)
        names = bunch.feature_names
        asked = [None if n.feature is None else names[n.feature] for n in preorder(tree)]
        plain = id3(bunch.data.tolist(), labels, names)
        assert asked == [n.attribute for n in preorder(plain)]
        assert len(asked) >= 8


# -- awkward nodes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", CRITERIA)
def test_random_nodes_are_what_they_promise(criterion) -> None:
    found = nodes(criterion, "promise", n=500)
    for node in found:
        n = len(node.targets)
        assert 2 <= n <= 14
        assert 1 <= len(node.table) <= 4
        assert {len(column) for column in node.table} == {n}
        assert len(node.rows) == n
        values = [x for column in node.table for x in column if not is_missing(x)]
        assert all(math.isfinite(x) and abs(x) <= 1.1e200 for x in values)
        if node.weights is not None:
            assert all(w > 0 and (2 * w).is_integer() for w in node.weights)
        if criterion == "poisson":
            assert min(node.targets) >= 0 < max(node.targets)
        if criterion == "gamma":
            assert min(node.targets) > 0
    traits = set().union(*(node.traits for node in found))
    columns = ("few", "halves", "constant", "distinct", "offset", "scaled", "mixed", "neighbours",
               "zeros", "subnormal", "copied", "mirrored")  # fmt: skip
    assert traits >= {f"column: {kind}" for kind in columns}
    assert traits >= {"missing", "weights: absent", "weights: whole", "weights: halves"}
    if criterion in NUMBER_CRITERIA:
        assert traits >= {"targets: offset", "targets: scaled", "targets: mixed"}
        sizes = [abs(y) for node in found for y in node.targets if y]
        assert min(sizes) < 1e-150
        assert max(sizes) > 1e150
    else:
        assert traits >= {f"targets: {k} classes" for k in (1, 2, 3, 4)}
    ties = [best_split(n.table, n.targets, n.weights, criterion).splits for n in found[:100]]
    assert sum(len(splits) > 1 for splits in ties) > 10
    assert sum(len(splits) == 1 for splits in ties) > 10


def test_random_nodes_are_reproducible() -> None:
    for seeded in (random.Random, np.random.default_rng):
        a, b = (repr(random_node(seeded(5), "gini", categories=True)) for _ in range(2))
        assert a == b
    assert any(node.categorical for node in nodes("gini", "categories", categories=True))
    assert not any(node.categorical for node in nodes("gini", "categories"))
