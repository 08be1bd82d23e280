"""Bootstrap samples: their totals, their distribution, and weights as numbers of copies."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from margrove.ensemble.bootstrap import resampling
from margrove.ensemble.bootstrap.resampling import (
    CumulativeWeights,
    in_units,
    multiplicities,
    multiplicities_of_samples,
    number_of_draws,
    stream,
    streams,
    units_left_out,
)

_WORD = 2**64
_STEP = 0x9E3779B97F4A7C15


def line_of(*weights):
    return CumulativeWeights(np.array(weights, dtype=float))


def copies(weights):
    return np.repeat(np.arange(len(weights)), weights)


def many_samples(line, n_samples, n_draws=None, seed=0):
    return np.stack([multiplicities(line, seed, k, n_draws) for k in range(n_samples)])


def likelihood(observed, expected):
    """The p-value of a chi-squared test."""
    return stats.chisquare(observed, expected * (np.sum(observed) / np.sum(expected))).pvalue


# -- units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weight", "units"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([2, 4, 6], [1, 2, 3]),
        ([0.5, 1.0, 1.5], [1, 2, 3]),
        ([7, 7, 7], [1, 1, 1]),
        ([6, 10, 15], [6, 10, 15]),
        ([2.0**-1000, 3 * 2.0**-1000, 2.0**-1000], [1, 3, 1]),
        ([2.0**1000, 3 * 2.0**1000, 2.0**1000], [1, 3, 1]),
        ([64, 63, 65], [64, 63, 65]),
    ],
    ids=str,
)
def test_units_of_weights(weight, units) -> None:
    assert in_units(np.array(weight, float), 3).tolist() == units


@pytest.mark.parametrize("weight", [[0.1, 0.2, 0.4], [64, 63, 66], [1e9, 1.0, 3.0]], ids=str)
def test_weights_without_units_are_shares(weight) -> None:
    given = np.array(weight, float)
    shares = in_units(given, 3)
    assert 0.5 <= shares.max() < 1.0
    assert np.array_equal(shares / shares[0], given / given[0])
    line = CumulativeWeights(shares, 3)
    assert not line.is_whole
    assert line.n_draws == 3


# -- a weight is so many rows ----------------------------------------------------------------------


@pytest.mark.parametrize("n_draws", [None, 1, 7, 48, 49, 1000, 50_000])
def test_a_weight_is_so_many_rows_side_by_side(n_draws) -> None:
    rng = np.random.default_rng(0)
    for seed in range(20):
        weights = rng.integers(1, 9, int(rng.integers(1, 120)))
        if seed % 4 == 0:
            weights[rng.integers(len(weights))] = 5000
        heavy, even = (
            CumulativeWeights(weights.astype(float)),
            CumulativeWeights(np.ones(weights.sum())),
        )
        for number in (0, 1, 99):
            whole = multiplicities(heavy, seed, number, n_draws)
            single = multiplicities(even, seed, number, n_draws)
            assert np.array_equal(whole, np.bincount(copies(weights), weights=single))
            left_out = units_left_out(heavy, seed, number, n_draws)
            assert np.array_equal(left_out, np.bincount(copies(weights), weights=single == 0))


def test_left_out_and_drawn_belong_together() -> None:
    rng = np.random.default_rng(1)
    for weights in (np.ones(300), rng.integers(1, 20, 300), rng.uniform(0.1, 3.0, 300)):
        line = CumulativeWeights(weights.astype(float))
        for number in range(20):
            drawn, left_out = multiplicities(line, 3, number), units_left_out(line, 3, number)
            units = weights if line.is_whole else np.ones(300)
            assert (left_out >= 0).all()
            assert (left_out <= units).all()
            assert np.array_equal(drawn == 0, left_out == units)
            assert (units - left_out <= drawn).all()


@pytest.mark.parametrize("n_draws", [None, 1, 2, 47, 48, 49, 96, 97, 1000, 2**21 + 1])
def test_totals_are_exact(n_draws) -> None:
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 47, 48, 49, 50, 1000):
        for weights in (np.ones(n), rng.integers(1, 6, n), rng.uniform(1e-3, 2.0, n)):
            line = CumulativeWeights(weights.astype(float))
            for number in (0, 5):
                drawn = multiplicities(line, 1, number, n_draws)
                assert drawn.min() >= 0
                assert drawn.sum() == (n_draws or line.n_draws)


def test_as_many_draws_as_there_are_rows() -> None:
    assert line_of(1, 1, 1).n_draws == 3
    assert line_of(2, 1, 4).n_draws == 7
    assert line_of(0.5, 0.25, 3.0).n_draws == 3
    assert line_of(1e-300, 1.0).n_draws == 2
    assert [number_of_draws(line_of(2, 1, 4), share) for share in (None, 5, 1.0, 0.5, 1e-9)] == [
        7, 5, 7, 4, 1,
    ]  # fmt: skip
    assert number_of_draws(line_of(1, 1), np.int64(2)) == 2


# -- any part alone --------------------------------------------------------------------------------


def mixed(key, salt):
    bits = (key * 0xD1342543DE82EF95 + salt * _STEP + 0x632BE59BD9B4E019) % _WORD
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 % _WORD
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB % _WORD
    return bits ^ (bits >> 31)


def positions(own, count, length):
    for k in range(count):
        own = (own + _STEP) % _WORD
        yield ((mixed(own, k) >> 32) * length) >> 32


def part_alone(key, total, n_draws, begin, end):
    """The draws of the units begin .. end - 1, computed without other intervals."""
    found = np.zeros(end - begin, np.int64)
    stack = [(0, total, n_draws)]
    while stack:
        a, b, count = stack.pop()
        if b <= begin or a >= end:
            continue
        own = mixed(mixed(key, a), b)
        if b - a == 1:
            found[a - begin] += count
        elif count <= resampling._FEW:
            for place in positions(own, count, b - a):
                if begin <= a + place < end:
                    found[a + place - begin] += 1
        else:
            middle = a + (b - a) // 2
            left = sum(place < middle - a for place in positions(own, count, b - a))
            stack += [(middle, b, count - left), (a, middle, left)]
    return found


@pytest.mark.parametrize(("n", "n_draws"), [(1, 100), (2, 100), (60, 60), (700, 700), (700, 3000)])
def test_any_part_can_be_drawn_alone(n, n_draws) -> None:
    for seed in (0, 2**32 - 1):
        for number in (0, 7, 10**6):
            key = int(stream(seed, number))
            whole = multiplicities(CumulativeWeights(np.ones(n)), seed, number, n_draws)
            for begin, end in ((0, n), (0, 1), (n // 3, n // 2 + 1), (n - 1, n)):
                assert np.array_equal(part_alone(key, n, n_draws, begin, end), whole[begin:end])


# -- the distribution ------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 7, 30, 200])
def test_multiplicities_are_binomial(n) -> None:
    samples = many_samples(CumulativeWeights(np.ones(n)), 120_000 // n)
    most = 6
    observed = np.bincount(np.minimum(samples, most).ravel(), minlength=most + 1)
    chances = stats.binom.pmf(np.arange(most), n, 1.0 / n)
    expected = np.append(chances, max(1.0 - chances.sum(), 0.0))
    possible = expected * samples.size > 5.0
    assert observed[~possible].sum() < 40
    assert likelihood(observed[possible], expected[possible]) > 1e-3
    # each row as often as any other, and rows that draws are taken away from by the others
    assert likelihood(samples.sum(axis=0), np.ones(n)) > 1e-3
    spread = np.cov(samples.T)
    assert np.trace(spread) / n == pytest.approx(1.0 - 1.0 / n, rel=0.05)
    between = spread[~np.eye(n, dtype=bool)]
    assert between.mean() == pytest.approx(-1.0 / n, rel=0.05)
    if n > 2:  # a row's neighbours are no other than those further away
        near = np.mean([spread[i, i + 1] for i in range(n - 1)])
        assert abs(near + 1.0 / n) < 5.0 / np.sqrt(len(samples) * (n - 1))


def test_samples_are_like_those_of_numpy() -> None:
    """The number of different rows, and the largest multiplicity."""
    rng = np.random.default_rng(0)
    for n, n_draws in ((5, 5), (60, 60), (60, 400)):
        ours = many_samples(CumulativeWeights(np.ones(n)), 4000, n_draws)
        theirs = rng.multinomial(n_draws, np.ones(n) / n, 4000)
        for figure in (lambda s: (s > 0).sum(axis=1), lambda s: s.max(axis=1)):
            a, b = figure(ours), figure(theirs)
            values = np.arange(min(a.min(), b.min()), max(a.max(), b.max()) + 2)
            counts = np.stack([np.histogram(own, values)[0] for own in (a, b)])
            counts = counts[:, counts.sum(axis=0) >= 20]
            assert stats.chi2_contingency(counts).pvalue > 1e-3


@pytest.mark.parametrize("scale", [1.0, 0.3, 1e-200, 1e200])
def test_rows_are_drawn_by_their_weight(scale) -> None:
    weights = np.array([1.0, 5.0, 2.0, 100.0, 1.0, 30.0, 7.0])
    samples = many_samples(CumulativeWeights(weights * scale), 3000, 50)
    assert likelihood(samples.sum(axis=0), weights) > 1e-3
    share = weights / weights.sum()
    for k in range(7):
        observed = np.bincount(np.minimum(samples[:, k], 50), minlength=51)
        expected = stats.binom.pmf(np.arange(51), 50, share[k])
        large = expected * 3000 > 5.0
        assert likelihood(observed[large], expected[large]) > 1e-3


@pytest.mark.parametrize("n_draws", [2**20 - 1, 2**20 + 1, 10**9])
def test_very_many_draws(n_draws) -> None:
    """The mean and the variance of a row's multiplicity are right."""
    n = 16
    samples = many_samples(CumulativeWeights(np.ones(n)), 250 if n_draws > 2**24 else 12, n_draws)
    assert (samples.sum(axis=1) == n_draws).all()
    share = 1.0 / n
    sigma = np.sqrt(n_draws * share * (1.0 - share))
    scores = (samples - n_draws * share) / sigma
    assert np.abs(scores).max() < 6.0
    assert np.abs(scores.mean(axis=0)).max() < 5.0 / np.sqrt(len(samples))
    assert np.mean(scores**2) == pytest.approx(1.0, abs=6.0 * np.sqrt(2.0 / samples.size))


def test_left_out_is_a_third() -> None:
    n = 400
    left_out = np.stack([units_left_out(CumulativeWeights(np.ones(n)), 1, k) for k in range(300)])
    chance = (1.0 - 1.0 / n) ** n
    assert left_out.mean() == pytest.approx(chance, abs=0.003)
    assert likelihood(left_out.sum(axis=0), np.ones(n)) > 1e-3


def test_seeds_and_numbers_make_other_samples() -> None:
    line = CumulativeWeights(np.ones(40))
    seen = {multiplicities(line, s, k).tobytes() for s in range(30) for k in range(30)}
    assert len(seen) == 900
    first, again = multiplicities(line, 5, 6), multiplicities(line, 5, 6)
    assert np.array_equal(first, again)
    keys = {int(stream(s, k)) for s in [*range(60), 2**32 - 1] for k in [*range(60), 10**9]}
    assert len(keys) == 61 * 61
    samples = many_samples(line, 2000)
    neighbours = np.corrcoef(samples[:-1].ravel(), samples[1:].ravel())[0, 1]
    assert abs(neighbours) < 5.0 / np.sqrt(samples.size)
    seeds = np.stack([multiplicities(line, s, 0) for s in range(2000)])
    assert abs(np.corrcoef(seeds[:-1].ravel(), seeds[1:].ravel())[0, 1]) < 5.0 / np.sqrt(seeds.size)


# -- weights of any size ---------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-250, 1e-100, 1e-3, 1e3, 1e100, 1e250])
def test_weights_that_are_not_whole_keep_their_shares(size) -> None:
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 50) * size
    line = CumulativeWeights(weights)
    assert line.n_draws == 50
    lengths = np.diff(line.ends, prepend=0)
    assert lengths.min() >= 1
    assert lengths / line.ends[-1] == pytest.approx(weights / weights.sum(), rel=1e-12)


def test_a_tiny_weight_is_not_none() -> None:
    line = line_of(1e-200, 1.0, 0.5, 1e-300)
    assert (np.diff(line.ends, prepend=0) >= 1).all()
    assert line.ends[-1] < 2**53
    assert multiplicities(line, 0, 0, 100)[[0, 3]].sum() == 0


def test_large_whole_weights() -> None:
    heavy = line_of(2.0**51, 2.0**51)
    assert heavy.is_whole
    assert heavy.n_draws == 2**52
    drawn = multiplicities(heavy, 0, 0, 1000)
    assert drawn.sum() == 1000
    assert 350 < drawn[0] < 650
    assert multiplicities(heavy, 0, 0).sum() == 2**52
    assert not line_of(2.0**52, 1.0).is_whole
    assert units_left_out(heavy, 0, 0).tolist() == [0, 0]


def test_several_samples_at_once() -> None:
    numbers = np.array([0, 3, 2**33])
    for weight in (np.ones(60), np.arange(1.0, 41.0), np.linspace(0.1, 0.7, 90)):
        weights = CumulativeWeights(weight)
        found = multiplicities_of_samples(weights, 9, numbers, 70)
        expected = [multiplicities(weights, 9, int(number), 70) for number in numbers]
        assert np.array_equal(found, expected)
        assert not np.array_equal(found[0], found[1])
    assert streams(9, numbers).tolist() == [int(stream(9, int(number))) for number in numbers]
