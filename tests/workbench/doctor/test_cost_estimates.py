"""Costs are extrapolated from invented costs, without a real clock."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import margrove
from margrove.workbench.doctor.costs import memory as cost_memory
from margrove.workbench.doctor.costs import probes as cost_probes
from margrove.workbench.doctor.costs.estimates import (
    CostEstimate,
    Probe,
    cost_table,
    extrapolated,
    readable_bytes,
    readable_seconds,
    setup_and_round,
    spread_of,
    total_bytes,
    total_seconds,
)
from margrove.workbench.doctor.costs.families import (
    KERNEL_EXPONENT,
    buffer_bytes,
    family_of,
    kernel_machine_bytes,
    learners_for,
    pairs_bytes,
    settle_early_stopping,
    with_rounds,
)
from margrove.workbench.doctor.diagnosis import doctor


@pytest.mark.parametrize("exponent", [1.0, 1.75, 2.0])
@pytest.mark.parametrize("a", [0.0, 0.3])
def test_costs_of_the_assumed_form_are_continued_exactly(exponent, a) -> None:
    def cost(n):
        return a + 2e-6 * n**exponent

    sizes = [1000, 4000, 16_000]
    found = extrapolated(sizes, [cost(n) for n in sizes], 100_000, exponent)
    assert found == pytest.approx(cost(100_000), rel=1e-6)


def test_bytes_are_continued_as_well_as_seconds() -> None:
    """Numbers of any size: the solution does not depend on units."""
    for unit in (1e-9, 1.0, 1e12):
        found = extrapolated([1000, 2000], [3 * unit, 4 * unit], 11_000, 1.0)
        assert found == pytest.approx(13 * unit)


def test_one_size_is_taken_as_proportional() -> None:
    assert extrapolated([1000], [0.5], 4000, 2.0) == pytest.approx(8.0)


def test_costs_never_fall_with_more_rows() -> None:
    """A higher cost of fewer rows is noise: then both cost the same."""
    found = extrapolated([1000, 4000], [0.5, 0.3], 100_000, 1.0)
    assert 0.3 <= found <= 0.5
    steep = extrapolated([1000, 4000], [0.1, 1.6], 8000, 1.0)
    assert 0.8 <= steep <= 3.2  # steeper than assumed: no negative beginning


def test_noise_of_twenty_per_cent_is_no_factor_of_two() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, b = 10 ** rng.uniform(-3, 0), 10 ** rng.uniform(-6, -4)
        sizes = np.array([1000, 16_000])
        seen = (a + b * sizes) * rng.uniform(0.9, 1.1, 2)
        found = extrapolated(sizes, seen, 60_000, 1.0)
        truth = a + b * 60_000
        assert truth / 2 < found < 2 * truth


def test_rounds_and_what_comes_before() -> None:
    few, many = Probe(1000, 2, 0.5 + 2 * 0.1), Probe(1000, 10, 0.5 + 10 * 0.1)
    assert setup_and_round(few, many) == pytest.approx((0.5, 0.1))
    same = Probe(1000, 1, 0.7)
    assert setup_and_round(same, same) == (0.0, 0.7)


def test_noise_does_not_make_rounds_free() -> None:
    few, many = Probe(1000, 2, 0.9), Probe(1000, 10, 0.8)
    setup, a_round = setup_and_round(few, many)
    assert a_round == pytest.approx(0.02 * 0.08)
    assert setup + 10 * a_round == pytest.approx(0.8)


def test_the_whole_time_of_rows_and_rounds() -> None:
    def probe(n, rounds):
        return Probe(n, rounds, 1e-5 * n + rounds * (0.01 + 2e-6 * n))

    pairs = [(probe(n, 2), probe(n, 10)) for n in (1000, 8000)]
    wanted = probe(50_000, 100).seconds
    assert total_seconds(pairs, 50_000, 100, 1.0) == pytest.approx(wanted, rel=1e-4)


def test_what_is_kept_grows_with_rounds_and_the_rest_does_not() -> None:
    def probe(n, rounds):
        kept = rounds * (100.0 + 0.5 * n)
        return Probe(n, rounds, 1.0, 8.0 * n + kept, kept)

    pairs = [(Probe(n, 2, 1.0), probe(n, 10)) for n in (1000, 8000)]
    wanted = probe(50_000, 100).n_bytes
    assert total_bytes(pairs, 50_000, 100, 1.0) == pytest.approx(wanted, rel=1e-6)


def test_what_more_rounds_take_while_they_run_counts_as_well() -> None:
    def probe(n, rounds):
        return Probe(n, rounds, 1.0, 8.0 * n + rounds * n, 10.0)

    pairs = [(probe(n, 2), probe(n, 10)) for n in (1000, 8000)]
    wanted = probe(50_000, 100).n_bytes
    assert total_bytes(pairs, 50_000, 100, 1.0) == pytest.approx(wanted, rel=1e-6)


def test_sizes_that_were_not_weighed_are_left_out() -> None:
    probes = [Probe(1000, 1, 1.0, 10.0, 10.0), Probe(4000, 1, 4.0, None)]
    pairs = [(probe, probe) for probe in probes]
    assert total_bytes(pairs, 2000, 1, 1.0) == pytest.approx(20.0)
    assert total_seconds(pairs, 8000, 1, 1.0) == pytest.approx(8.0)


def test_the_range_grows_with_the_distance() -> None:
    assert spread_of(1000, 1000, 1.0) == spread_of(4000, 1000, 1.0) == pytest.approx(1.3)
    assert 1.3 < spread_of(1000, 10_000, 1.0) < spread_of(1000, 100_000, 1.0) < 2.5
    assert spread_of(1000, 10_000, 1.75) > spread_of(1000, 10_000, 1.0)


# -- families --


@pytest.mark.parametrize(
    ("model", "exponent", "rounds_name", "rounds", "table_form"),
    [
        (margrove.SVC(), KERNEL_EXPONENT, None, 1, "scaled"),
        (margrove.NuSVR(), KERNEL_EXPONENT, None, 1, "scaled"),
        (margrove.LinearSVC(), 1.0, None, 1, "scaled"),
        (margrove.Perceptron(), 1.0, None, 1, "scaled"),
        (margrove.DecisionTreeRegressor(), 1.0, None, 1, "codes"),
        (margrove.RandomForestClassifier(70), 1.0, "n_estimators", 70, "codes"),
        (margrove.HistGradientBoostingRegressor(max_iter=40), 1.0, "max_iter", 40, "codes"),
        (margrove.GradientBoostingRegressor(), 1.0, "n_estimators", 100, "filled"),
        (margrove.AdaBoostClassifier(), 1.0, "n_estimators", 50, "filled"),
        (margrove.BaggingClassifier(margrove.SVC()), KERNEL_EXPONENT, "n_estimators", 10, "filled"),
        (make_pipeline(StandardScaler(), margrove.SVC()), KERNEL_EXPONENT, None, 1, "scaled"),
        (Ridge(), 1.0, None, 1, "filled"),
    ],
    ids=lambda case: type(case).__name__ if hasattr(case, "fit") else "",
)
def test_families(model, exponent, rounds_name, rounds, table_form) -> None:
    found = family_of(model)
    assert (found.exponent, found.rounds_name, found.rounds) == (exponent, rounds_name, rounds)
    assert found.table_form == table_form
    few, more = found.probed_rounds
    assert 1 <= few <= more <= rounds
    fewer = found.with_fewer_rounds().probed_rounds
    assert fewer <= (few, more)


def test_trees_that_grow_side_by_side_are_probed_side_by_side() -> None:
    few, more = family_of(margrove.RandomForestClassifier(n_jobs=16)).probed_rounds
    assert (few, more) == (16, 64)
    assert family_of(margrove.RandomForestClassifier(5, n_jobs=16)).probed_rounds == (5, 5)


def test_rounds_are_set_on_a_clone() -> None:
    model = make_pipeline(StandardScaler(), margrove.AdaBoostClassifier())
    brief = with_rounds(model, "n_estimators", 3)
    assert brief[-1].n_estimators == 3
    assert model[-1].n_estimators == 50


def test_probes_hold_rows_back_if_the_fit_will() -> None:
    model = margrove.HistGradientBoostingClassifier()
    settle_early_stopping(model, 5000)
    assert model.early_stopping is False
    model = margrove.HistGradientBoostingClassifier()
    settle_early_stopping(model, 50_000)
    assert model.early_stopping is True
    model = margrove.HistGradientBoostingClassifier(early_stopping=False)
    settle_early_stopping(model, 50_000)
    assert model.early_stopping is False


def test_memory_of_pairs_of_classes() -> None:
    """More rows take more memory in each regime; tiles of pairs take far less than all of K."""
    counts = np.array([400, 300, 300])
    for regime in ((1, 2), (3, 4, 5), (6, 10, 40)):
        sizes = [pairs_bytes(counts * k) for k in regime]
        assert sizes == sorted(set(sizes))
    assert pairs_bytes(np.array([0, 1500, 1500, 1500])) == pairs_bytes(np.full(3, 1500))
    many = np.full(26, 770)
    assert pairs_bytes(many) < 4 * many.sum() ** 2
    assert kernel_machine_bytes(40_000) < 4 * 40_000**2


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_one_of_each_family_is_offered(task) -> None:
    names = [type(learner).__name__ for learner in learners_for(task)]
    assert len(set(names)) == len(names) == (9 if task == "classification" else 8)
    assert names[-1] == ("SVC" if task == "classification" else "SVR")


# -- probes, with a simulated clock --


class Counting(ClassifierMixin, BaseEstimator):
    """Takes a microsecond per row and a millisecond per round, on a simulated clock."""

    def __init__(self, n_estimators=100, log=None):
        self.n_estimators = n_estimators
        self.log = log

    def fit(self, X, y):
        log = CLOCK if self.log is None else self.log
        log.fits.append((len(y), self.n_estimators))
        log.now += 1e-6 * len(y) + 1e-3 * self.n_estimators
        self.kept_ = np.ones((self.n_estimators, len(y)))
        return self


CLOCK = SimpleNamespace(now=0.0, fits=[])


@pytest.fixture
def clock(monkeypatch):
    CLOCK.now, CLOCK.fits = 0.0, []
    monkeypatch.setattr(cost_probes, "_clock", lambda: CLOCK.now)
    return CLOCK


def test_probes_are_small_and_their_estimate_is_right(clock) -> None:
    n = 50_000
    X, y = np.random.default_rng(0).random((n, 2)), np.arange(n) % 2
    (found,) = doctor(X, y, Counting()).estimates
    assert found.estimator == "Counting"
    assert found.seconds == pytest.approx(1e-6 * n + 0.1, rel=0.01)
    assert found.seconds_low < found.seconds < found.seconds_high
    assert found.megabytes == pytest.approx(100 * 8e-6 * n, rel=0.05)
    assert max(rows for rows, _ in clock.fits) <= 25_000
    assert max(rounds for _, rounds in clock.fits) <= 10
    assert found.basis == "fits of 1,000 and 25,000 of 50,000 rows, 2 and 10 of 100 rounds"


def test_the_buffer_of_a_perceptron_does_not_grow_for_ever() -> None:
    columns, cap = 50, buffer_bytes("Perceptron", 10**9, 50)
    assert buffer_bytes("Perceptron", 100, columns) == 8 * 100 * columns
    assert buffer_bytes("SVC", 10**9, columns) == 0
    X, y = np.random.default_rng(0).standard_normal((60_000, columns)), np.arange(60_000) % 2
    (found,) = doctor(X, y, margrove.Perceptron(max_iter=2), probe_seconds=1.0).estimates
    assert found.megabytes < 1.5 * cap / 1e6 + 200e-6 * 60_000


def test_a_small_table_is_fitted_as_it_is(clock) -> None:
    X, y = np.random.default_rng(0).random((300, 2)), np.arange(300) % 2
    (found,) = doctor(X, y, Counting(n_estimators=4)).estimates
    assert found.seconds == pytest.approx(300e-6 + 4e-3)
    assert found.basis == "fits of 300 of 300 rows, 2 and 4 of 4 rounds"


def test_little_time_means_few_rows_and_rounds(clock) -> None:
    X, y = np.random.default_rng(0).random((50_000, 2)), np.arange(50_000) % 2
    doctor(X, y, Counting(), probe_seconds=0.5)
    assert max(clock.fits) == (25_000, 10)
    clock.fits = []
    (found,) = doctor(X, y, Counting(), probe_seconds=0.004).estimates
    assert max(clock.fits) == (750, 4)
    assert len(clock.fits) < 20
    assert found.seconds == pytest.approx(1e-6 * 50_000 + 0.1, rel=0.01)


def test_no_probes_where_there_is_nothing_to_fit(clock) -> None:
    X, y = np.random.default_rng(0).random((100, 2)), np.arange(100) % 2
    assert doctor(X, y, Counting(), estimate=False).estimates == ()
    assert doctor(X, None, Counting()).estimates == ()
    assert "the target is the same" in doctor(X, np.zeros(100)).notes[0]
    broken = doctor(np.where(X < 0.1, np.inf, X), y, Counting())
    assert broken.estimates == ()
    assert "critical findings" in broken.notes[0]
    assert clock.fits == []


def test_an_estimator_that_fails_is_a_note() -> None:
    class Failing(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            raise RuntimeError("no such luck")

    X, y = np.random.default_rng(0).random((100, 2)), np.arange(100) % 2
    found = doctor(X, y, Failing())
    assert found.estimates == ()
    assert found.notes == ("No estimate for Failing: RuntimeError: no such luck",)


@pytest.mark.parametrize(
    "X",
    [
        np.where(np.random.default_rng(0).random((120, 3)) < 0.1, np.nan, 1.0) * np.arange(3),
        sp.random(120, 10, 0.3, random_state=0, format="csr"),
        pd.DataFrame({"a": ["u", "v", None] * 40, "b": np.arange(120) % 7, "c": [np.inf, 1] * 60}),
    ],
    ids=["gaps", "sparse", "labels"],
)  # fmt: skip
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_family_gets_a_table_that_it_takes(X, task) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 120) if task == "classification" else rng.standard_normal(120)
    found = doctor(X, y, probe_seconds=0.01)
    assert len(found.estimates) + len(found.notes) == (9 if task == "classification" else 8)
    assert len(found.notes) <= 1  # AdaBoost may find nothing better than chance
    for cost in found.estimates:
        assert 0 < cost.seconds_low < cost.seconds < cost.seconds_high
        assert 0 <= cost.megabytes_low <= cost.megabytes <= cost.megabytes_high
    seconds = [cost.seconds for cost in found.estimates]
    assert seconds == sorted(seconds)
    assert "A fit of all rows on this machine takes about" in str(found)
    json.dumps(found.as_dict(), allow_nan=False)


def test_more_than_there_is_of_memory_is_said(monkeypatch) -> None:
    monkeypatch.setattr(cost_probes, "available_memory", lambda: 10)
    X, y = np.random.default_rng(0).random((100, 2)), np.arange(100) % 2
    found = doctor(X, y, margrove.DecisionTreeClassifier())
    assert "DecisionTreeClassifier may need" in found.notes[-1]
    assert "10 B is available" in found.notes[-1]


def test_memory_is_seen_where_the_system_tells_and_where_it_does_not(monkeypatch) -> None:
    def fit():
        return np.ones(4_000_000).sum()

    assert cost_memory.allocated_bytes(fit)[0] == pytest.approx(32e6, rel=0.05)

    def shrinking():
        return np.ones(4_000_000)[:1000].copy()

    peak, kept = cost_memory.allocated_bytes(shrinking)
    assert peak == pytest.approx(32e6, rel=0.05)
    assert kept < 1e5
    seen = cost_memory.touched_bytes(fit)
    assert seen is None or seen == pytest.approx(32e6, rel=0.3)
    monkeypatch.setattr(cost_memory, "_CLEAR_PEAK", cost_memory.Path("nowhere/at/all"))
    assert cost_memory.touched_bytes(fit) is None


# -- for people --


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1e-9, "0.1 ms"),
        (0.0034, "3.4 ms"),
        (0.123, "0.12 s"),
        (0.9999, "1 s"),
        (3.14, "3.1 s"),
        (59.0, "59 s"),
        (90.0, "1.5 min"),
        (7200.0, "2 h"),
        (86_400 * 3.0, "3 days"),
    ],
)
def test_readable_seconds(seconds, text) -> None:
    assert readable_seconds(seconds) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(5, "5 B"), (1500, "1.5 kB"), (123e6, "123 MB"), (999.9e6, "1 GB"), (1.23e12, "1230 GB")],
)
def test_readable_bytes(n_bytes, text) -> None:
    assert readable_bytes(n_bytes) == text


def test_the_table_of_costs_is_aligned() -> None:
    rows = [CostEstimate("A" * k, 10.0**k, 1.0, 2.0, 3.0, 1.0, 9.0, "") for k in (1, 8)]
    lines = cost_table(SimpleNamespace(estimates=tuple(rows)))
    assert len(lines) == 3
    assert len({line.index("(") for line in lines[1:]}) == 1
