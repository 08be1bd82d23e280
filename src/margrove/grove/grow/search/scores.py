"""How good a split is: the score of two children, in integers wherever it can be.

A score is larger the purer the children are; less the score of the node itself it is

    W impurity(node) - W_left impurity(left) - W_right impurity(right)

    gini             sum_k L_k^2 / W_left + the same of the right
    entropy          sum_k L_k log2 L_k - W_left log2 W_left + ...
    error            max_k L_k + max_k R_k
    squared error    S_left^2 / W_left + S_right^2 / W_right      (S around the mean of the node)
    poisson, gamma   S_left log(S_left / W_left) + ...   - W_left log(S_left / W_left) - ...
                     both less what they are for the node: see `deviance_score`

Class counts, their squares and (in fixed point) their logarithms add up exactly in any order, and
two squared-error or Gini scores that float64 cannot tell apart are compared in twice its precision.
So ties are ties: the lowest feature wins, then the lowest threshold.

The codes say which criterion a kernel is to follow; which name has which code is told by
`margrove.grove.criteria`. CUSTOM is a function of sums, which no kernel of this module knows.
"""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel
from margrove.grove.grow.search.double_doubles import fraction, pair_sum, square_of, whole_pair

__all__ = [
    "ABSOLUTE",
    "CUSTOM",
    "ENTROPY",
    "ERROR",
    "GAIN_RATIO",
    "GAMMA",
    "GINI",
    "POISSON",
    "SQUARED",
    "consider",
    "log_table",
    "score_of_node",
    "weighted_log",
]

# The numbers by which compiled code knows the criteria.
GINI: int = 0
ENTROPY: int = 1
ERROR: int = 2
GAIN_RATIO: int = 3
SQUARED: int = 4
POISSON: int = 5
GAMMA: int = 6
ABSOLUTE: int = 7
CUSTOM: int = 8

_LONGEST_TABLE = 1 << 20
_NEARLY = 1e-14  # of a score: where float64 is in doubt
_SURELY = 1e-29  # of a score: what twice the precision of float64 cannot tell apart


def log_table(total_weight: int, n_outputs: int = 1) -> tuple[np.ndarray, float]:
    """n log2 n in fixed point for n = 0, 1, 2, ..., and its scale.

    Sums over two children and all outputs stay within int64.
    """
    largest = 4.0 * n_outputs * total_weight * np.log2(total_weight + 1.0)
    bits = 62 - int(np.frexp(max(2.0, largest))[1])
    n = np.arange(min(total_weight, _LONGEST_TABLE) + 1, dtype=np.float64)
    scale = float(2.0**bits)
    with np.errstate(divide="ignore", invalid="ignore"):
        table = np.rint(n * np.log2(n) * scale)
    table[0] = 0.0
    return table.astype(np.int64), scale


@kernel(inner=True)
def weighted_log(n, table, scale):
    """n log2 n in fixed point."""
    if n < len(table):
        return table[n]
    return np.int64(np.rint(n * np.log2(float(n)) * scale))


@kernel(inner=True)
def float_log(n):
    return n * np.log2(n) if n > 0.0 else 0.0


@kernel(inner=True)
def score_of_node(criterion, counted, stats, starts, weight, table, scale):
    """The score of a node of classes as if it were the only child; see the module."""
    total = 0.0
    for o in range(len(starts) - 1):
        if criterion == GINI and counted:
            squares = 0
            for k in range(starts[o], starts[o + 1]):
                squares += stats[k] * stats[k]
            total += squares / weight
        elif criterion == GINI:
            for k in range(starts[o], starts[o + 1]):
                total += float(stats[k]) * float(stats[k]) / weight
        elif criterion == ENTROPY or criterion == GAIN_RATIO:
            if counted:
                entropy = -weighted_log(weight, table, scale)
                for k in range(starts[o], starts[o + 1]):
                    entropy += weighted_log(stats[k], table, scale)
                total += entropy / scale
            else:
                total -= float_log(float(weight))
                for k in range(starts[o], starts[o + 1]):
                    total += float_log(float(stats[k]))
        elif criterion == ERROR:
            most = stats[starts[o]]
            for k in range(starts[o], starts[o + 1]):
                most = max(most, stats[k])
            total += float(most)
    return total


@kernel(inner=True)
def deviance_score(criterion, number, weight, total, node_weight, offset, centre, exponent):
    """What a child adds to the gain by Poisson or gamma deviance.

    With mean (1 + d) in the child and mean in the node, the gains are sums of

        poisson   W mean ((1 + d) log(1 + d) - d)         gamma   W (d - log(1 + d))

    none of which is negative, so that nothing cancels however close the means are.
    """
    mean = centre * 2.0 ** float(exponent) + float(total) / float(node_weight)
    rest = float(total - node_weight * offset) / float(node_weight)
    d = (float(number - weight * offset) - float(weight) * rest) / (float(weight) * mean)
    if criterion == POISSON:
        return float(weight) * mean * excess_of(d, True) * 2.0 ** float(-exponent)
    return float(weight) * excess_of(d, False)


@kernel(inner=True)
def excess_of(d, is_poisson):
    """(1 + d) log(1 + d) - d, or d - log(1 + d); by their series for small d."""
    if abs(d) < 0.05:
        total, power = 0.0, d
        for k in range(2, 16):
            power *= -d
            total -= power / (k * (k - 1.0)) if is_poisson else power / k
        return total
    if d <= -1.0:  # as far as rounding can tell
        if is_poisson:
            return 1.0
        d = -1.0 + 1.2e-16
    if is_poisson:
        return (1.0 + d) * np.log1p(d) - d
    return d - np.log1p(d)


@kernel(inner=True)
def _exactly(is_squared, a, left, b, right):
    if is_squared:
        high, low = square_of(a)
        other_high, other_low = square_of(b)
    else:
        high, low = whole_pair(a)
        other_high, other_low = whole_pair(b)
    high, low = fraction(high, low, float(left))
    other_high, other_low = fraction(other_high, other_low, float(right))
    return pair_sum(high, low, other_high, other_low)


@kernel(bare=True)
def consider(criterion, counted, a, left, b, right, score, feature, position, best, best_score):
    """Whether a candidate is better than the best so far; if so, its numbers replace those.

    best: feature (-1: none yet), a, left, b, right, position. a and b are what the criterion
    has exactly: sums of squared counts, sums around the mean, a score in fixed point.
    """
    before = best_score[0]
    if best[0] >= 0:
        verdict = 0
        if criterion == SQUARED or (criterion == GINI and counted):
            doubt = _NEARLY * max(abs(before), abs(score))
            if score > before + doubt:
                verdict = 1
            elif score < before - doubt:
                verdict = -1
            elif (left == best[2] and a == best[1] and b == best[3]) or (
                left == best[4] and a == best[3] and b == best[1]
            ):
                verdict = 0
            else:
                is_squared = criterion == SQUARED
                high, low = _exactly(is_squared, a, left, b, right)
                other, rest = _exactly(is_squared, best[1], best[2], best[3], best[4])
                more, _ = pair_sum(high, low, -other, -rest)
                if abs(more) > _SURELY * abs(high):
                    verdict = 1 if more > 0.0 else -1
        elif criterion == ERROR or (counted and (criterion == ENTROPY or criterion == GAIN_RATIO)):
            verdict = 1 if a > best[1] else (-1 if a < best[1] else 0)
        elif criterion == ABSOLUTE:
            verdict = 1 if a < best[1] else (-1 if a > best[1] else 0)
        else:
            doubt = 1e-13 * max(abs(before), abs(score))
            verdict = 1 if score > before + doubt else (-1 if score < before - doubt else 0)
        is_earlier = feature < best[0] or (feature == best[0] and position < best[5])
        if verdict < 0 or (verdict == 0 and not is_earlier):
            return False
    best[0], best[5] = feature, position
    best[1], best[2], best[3], best[4] = a, left, b, right
    best_score[0] = score
    return True
