"""LinearSVC and LinearSVR on a cluster: the local objective, with the same proof."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.dask.killing import KillLater, kill

import margrove
from margrove.dask import LinearSVC, LinearSVR
from margrove.dask.partitions import disk_storage
from margrove.exceptions import (
    ConvergenceWarning,
    DataWarning,
    InterruptedFitWarning,
    InvalidDataError,
)
from margrove.facts import describe
from margrove.margin.linear import member_rows

dask = pytest.importorskip("dask")

RNG = np.random.default_rng(0)
N = 900
X = RNG.normal(size=(N, 6)) * [1.0, 3.0, 0.2, 1.0, 1.0, 2.0]
SCORES = X @ RNG.normal(size=6) + RNG.normal(size=N)
TWO = (SCORES > 0.5).astype(np.int64)
THREE = np.array(["low", "middle", "up"])[np.digitize(SCORES, [-2.0, 2.0])]
WEIGHT = RNG.integers(0, 4, N).astype(np.float64)


def pieces(array: Any, sizes: Any = 200) -> Any:
    return da.from_array(array, chunks=(sizes, -1) if array.ndim == 2 else sizes)


def objectives_agree(model: Any, local: Any, tolerance: float) -> None:
    ours, theirs = model.certificate_, local.certificate_
    assert len(ours.machines) == len(theirs.machines)
    for machine, other in zip(ours.machines, theirs.machines, strict=True):
        assert machine.name == other.name
        assert machine.primal == pytest.approx(other.primal, rel=tolerance)
        assert machine.norm == pytest.approx(other.norm, rel=1e-2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("sizes", [900, 130, (1, 0, 700, 199)], ids=["one", "even", "uneven"])
def test_squared_hinge_has_the_local_objective(cluster4: Any, n_workers: int, sizes: Any) -> None:
    settings: dict[str, Any] = {"tol": 1e-12, "class_weight": {0: 1.0, 1: 2.5}}
    with dask.config.set({"margrove.workers": n_workers}):
        model = LinearSVC(**settings).fit(
            pieces(X, sizes), pieces(TWO, sizes), pieces(WEIGHT, sizes)
        )
    local = margrove.LinearSVC(**settings).fit(X, TWO, WEIGHT)
    objectives_agree(model, local, 1e-10)
    assert np.allclose(model.coef_, local.coef_, rtol=1e-6)
    assert model.certificate_.relative_gap <= 1e-12


CASES: dict[str, tuple[Any, Any]] = {
    "hinge": (LinearSVC(loss="hinge"), TWO),
    "hinge of three classes": (LinearSVC(loss="hinge", class_weight="balanced"), THREE),
    "three classes": (LinearSVC(C=0.3), THREE),
    "no intercept": (LinearSVC(fit_intercept=False, loss="hinge"), TWO),
    "penalised intercept": (LinearSVC(intercept_scaling=2.0, loss="hinge"), TWO),
    "l1": (LinearSVC(penalty="l1", C=0.02), TWO),
    "l1 of three classes": (LinearSVC(penalty="l1", C=0.02), THREE),
    "tube": (LinearSVR(epsilon=0.3), SCORES * 1e3 + 7.0),
    "squared tube": (LinearSVR(loss="squared_epsilon_insensitive"), SCORES),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(CASES))
def test_both_certificates_meet_the_tolerance(cluster4: Any, name: str) -> None:
    prototype, y = CASES[name]
    settings = prototype.get_params() | {"tol": 1e-7}
    with dask.config.set({"margrove.workers": 2}):
        model = type(prototype)(**settings).fit(pieces(X), pieces(y), pieces(WEIGHT))
    local = model.local_class()(**settings).fit(X, y, WEIGHT)
    objectives_agree(model, local, 1e-6)
    for proof in (model.certificate_, local.certificate_):
        assert all(machine.relative_gap <= 1.01e-7 for machine in proof.machines)
    assert model.coef_.shape == local.coef_.shape
    assert model.intercept_.shape == local.intercept_.shape


def test_the_certificate_is_that_of_the_local_model(cluster4: Any) -> None:
    model = LinearSVC(loss="hinge", tol=1e-9).fit(pieces(X), pieces(TWO), pieces(WEIGHT))
    ours = model.certificate_
    proof = margrove.certificate(model.to_local(), X, TWO, WEIGHT)
    assert ours.primal == pytest.approx(proof.primal, rel=1e-12)
    assert np.array_equal(ours.rows, np.flatnonzero(WEIGHT > 0))
    assert np.allclose(ours.decision, proof.decision)
    assert np.allclose(ours.errors, proof.errors)
    assert len(ours.support) == pytest.approx(len(proof.support), abs=3)
    assert "duality gap" in str(ours)


def test_more_rows_than_can_be_told_apart(cluster4: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("margrove.dask.linear_fit.MOST_ROWS", 100)
    proof = LinearSVC().fit(pieces(X), pieces(TWO)).certificate_
    assert proof.relative_gap <= 1e-4
    assert "primal objective" in str(proof)
    with pytest.raises(InvalidDataError, match="stayed on the cluster"):
        _ = proof.machines[0].alpha


def test_what_was_fitted_is_the_ordinary_estimator(cluster4: Any, tmp_path: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["y"] = TWO
    partitions = dd.from_pandas(frame, npartitions=3)
    model = LinearSVC(tol=1e-10).fit(partitions[list("abcdef")], partitions["y"])
    local = model.to_local()
    assert type(local) is margrove.LinearSVC
    assert list(local.feature_names_in_) == list("abcdef")
    lazily = model.predict(partitions[list("abcdef")])
    assert np.array_equal(np.asarray(lazily.compute()), local.predict(frame[list("abcdef")]))
    margrove.save(model, tmp_path / "model")
    margrove.save(local, tmp_path / "local")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "local").read_bytes()
    again = margrove.load(tmp_path / "model")
    assert np.array_equal(again.coef_, model.coef_)
    facts = describe(model.to_local())
    assert facts.proof is None
    assert "certificate_" in facts.unproven


def test_sparse_rows_and_many_features(cluster4: Any) -> None:
    wide = sp.random_array((300, 2000), density=0.01, format="csr", rng=1)
    y = (wide.sum(axis=1) > np.median(wide.sum(axis=1))).astype(np.int64)
    rows = da.concatenate(
        [
            da.from_delayed(dask.delayed(wide[a:b]), (b - a, 2000), meta=sp.csr_array((0, 0)))
            for a, b in ((0, 120), (120, 300))
        ]
    )
    for loss in ("squared_hinge", "hinge"):
        model = LinearSVC(loss=loss, tol=1e-6, fit_intercept=False).fit(rows, pieces(y, (120, 180)))
        local = margrove.LinearSVC(loss=loss, tol=1e-6, fit_intercept=False).fit(wide, y)
        objectives_agree(model, local, 1e-5)
    with pytest.raises(InvalidDataError, match=r"2000 features, and the limit is 1500.*FeatureHas"):
        LinearSVC(penalty="l1").fit(rows, pieces(y, (120, 180)))
    settings: dict[str, Any] = {"penalty": "l1", "C": 1.0, "tol": 1e-6, "solver": "newton"}
    model = LinearSVC(**settings).fit(rows, pieces(y, (120, 180)))
    objectives_agree(model, margrove.LinearSVC(**settings).fit(wide, y), 1e-5)


def test_extreme_units(cluster4: Any) -> None:
    model = LinearSVC(C=1e-20, tol=1e-9).fit(pieces(X * 1e10), pieces(TWO), pieces(WEIGHT * 1e-180))
    local = margrove.LinearSVC(C=1e-20, tol=1e-9).fit(X * 1e10, TWO, WEIGHT * 1e-180)
    assert np.allclose(model.coef_, local.coef_, rtol=1e-6, atol=0.0)


def test_a_local_fit_stays_local() -> None:
    model = LinearSVC().fit(X, TWO)
    assert np.array_equal(model.coef_, margrove.LinearSVC().fit(X, TWO).coef_)
    assert model.get_params() == margrove.LinearSVC().get_params()


def test_a_warm_start_takes_fewer_steps(cluster4: Any) -> None:
    data = pieces(X), pieces(TWO)
    model = LinearSVC(loss="hinge", tol=1e-8, warm_start=True).fit(*data)
    first = model.n_iter_
    assert model.fit(*data).n_iter_ <= first
    assert model.certificate_.relative_gap <= 1e-8


def test_partitions_are_batches_of_a_stream(cluster4: Any) -> None:
    model = LinearSVC(random_state=1).partial_fit(pieces(X), pieces(THREE))
    numbers = LinearSVR(random_state=1).partial_fit(pieces(X), pieces(SCORES))
    local = margrove.LinearSVC(random_state=1)
    local_numbers = margrove.LinearSVR(random_state=1)
    for start in range(0, N, 200):
        rows = slice(start, start + 200)
        local.partial_fit(X[rows], THREE[rows], classes=["low", "middle", "up"])
        local_numbers.partial_fit(X[rows], SCORES[rows])
    assert np.array_equal(model.coef_, local.coef_)
    assert np.array_equal(numbers.coef_, local_numbers.coef_)


def test_what_cannot_be_done_says_what_can(cluster4: Any) -> None:
    data = pieces(X), pieces(THREE)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        LinearSVC(multi_class="crammer_singer").fit(*data)
    with pytest.raises(ValueError, match="solver='auto' or 'newton'"):
        LinearSVC(solver="cd").fit(*data)
    with pytest.raises(ValueError, match="partial_fit"):
        LinearSVR(solver="sgd").fit(pieces(X), pieces(SCORES))
    with pytest.raises(InvalidDataError, match="target y is None"):
        LinearSVC().fit(pieces(X), None)


def test_bad_rows_are_found_where_they_are(cluster4: Any) -> None:
    bad = X.copy()
    bad[777, 3] = np.nan
    with pytest.raises(InvalidDataError, match="row 777, column 3; 1 such"):
        LinearSVC().fit(pieces(bad), pieces(TWO))
    with pytest.raises(InvalidDataError, match="at least 2 classes"):
        LinearSVC().fit(pieces(X), pieces(np.zeros(N, np.int64)))
    with pytest.raises(InvalidDataError, match="zero for all rows"):
        LinearSVC().fit(pieces(X), pieces(TWO), pieces(np.zeros(N)))
    wrong = WEIGHT.copy()
    wrong[850] = np.nan
    with pytest.raises(InvalidDataError, match=r"sample_weight contains NaN.*row 800 of the table"):
        LinearSVC().fit(pieces(X), pieces(TWO), pieces(wrong))
    wrong[850] = -1.0
    with pytest.warns(DataWarning, match="1 rows have a negative.*first: row 850"):
        model = LinearSVC().fit(pieces(X), pieces(TWO), pieces(wrong))
    assert len(model.certificate_.rows) == np.sum(wrong > 0)
    with pytest.warns(DataWarning, match="times as large"):
        LinearSVC().fit(pieces(X * [1e9, 1, 1, 1, 1, 1]), pieces(TWO))


def test_a_fit_that_failed_changes_nothing(cluster4: Any) -> None:
    model = LinearSVC().fit(pieces(X), pieces(TWO))
    coef = model.coef_
    with pytest.raises(InvalidDataError):
        model.fit(pieces(X * np.nan), pieces(TWO))
    assert model.coef_ is coef


def test_few_steps_are_few_and_say_so(cluster4: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=1 was reached"):
        model = LinearSVC(loss="hinge", max_iter=1, tol=1e-9).fit(pieces(X), pieces(THREE))
    assert model.n_iter_ == 1
    assert model.coef_.shape == (3, 6)


def test_steps_can_be_watched_and_stopped(cluster4: Any) -> None:
    seen: list[Any] = []
    with margrove.watch(on_progress=lambda progress: seen.append(progress) or progress.done >= 2):
        model = LinearSVC(loss="hinge", tol=1e-10).fit(pieces(X), pieces(TWO))
    assert seen[0].done == 1
    assert seen[-1].done == model.n_iter_ == 2
    assert "relative gap" in seen[0].figures
    complete_step(model)


def complete_step(model: Any) -> None:
    """The attributes are those of one step, with an objective and a bound that hold."""
    slack = np.maximum(0.0, 1.0 - (2 * TWO - 1) * (X @ model.coef_[0] + model.intercept_[0]))
    proof = model.certificate_
    assert proof.primal == pytest.approx(0.5 * (model.coef_**2).sum() + slack.sum(), rel=1e-9)
    best = margrove.LinearSVC(loss="hinge", tol=1e-9).fit(X, TWO).certificate_.primal
    assert proof.dual <= best * (1 + 1e-9) <= proof.primal * (1 + 2e-9)
    assert "KKT violation     nan" in str(proof)
    with pytest.raises(InvalidDataError, match="or the fit was stopped early"):
        _ = proof.alpha


def test_a_time_limit_keeps_a_complete_step(cluster4: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="used up max_time"):
        model = LinearSVC(loss="hinge", tol=1e-12, max_time=1e-9).fit(pieces(X), pieces(TWO))
    assert model.n_iter_ >= 1
    complete_step(model)


def test_an_interrupt_keeps_a_complete_step_or_changes_nothing(cluster4: Any) -> None:
    def interrupt(progress: Any) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    model = LinearSVC(loss="hinge", tol=1e-12, on_interrupt="keep")
    with (
        margrove.watch(on_progress=interrupt),
        pytest.warns(InterruptedFitWarning, match="was interrupted"),
    ):
        model.fit(pieces(X), pieces(TWO))
    complete_step(model)
    model = LinearSVC(loss="hinge", tol=1e-12)
    with margrove.watch(on_progress=interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(pieces(X), pieces(TWO))
    assert not hasattr(model, "coef_")
    assert LinearSVC().fit(pieces(X), pieces(TWO)).certificate_.relative_gap <= 1e-4


# -- rows on disk --


@pytest.fixture
def small_tiles_on_disk(cluster4: Any) -> Iterator[Any]:
    """Workers whose partitions are all too large for them, and read in pieces of sixty rows."""
    usual = disk_storage._SHARE, member_rows._TILE_BYTES

    def set_sizes(share: float, tile: int) -> None:
        disk_storage._SHARE, member_rows._TILE_BYTES = share, tile

    yield lambda: cluster4.run(set_sizes, 0.0, 60 * 6 * 8)
    cluster4.run(set_sizes, *usual)


ON_DISK = ["squared hinge", "hinge", "hinge of three classes", "l1", "tube", "squared tube"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ON_DISK)
def test_rows_on_disk_give_the_same_machine(small_tiles_on_disk: Any, name: str) -> None:
    prototype, y = CASES.get(name, (LinearSVC(), TWO))
    settings = prototype.get_params() | {"tol": 1e-7}
    data = pieces(X, 130), pieces(y, 130), pieces(WEIGHT, 130)
    with dask.config.set({"margrove.workers": 2}):
        in_memory = type(prototype)(**settings).fit(*data)
        small_tiles_on_disk()
        model = type(prototype)(**settings).fit(*data)
    for machine, other in zip(
        model.certificate_.machines, in_memory.certificate_.machines, strict=True
    ):
        assert machine.primal == pytest.approx(other.primal, rel=1e-12)
        assert machine.relative_gap <= 1.01e-7
        assert np.array_equal(machine.rows, other.rows)
        assert np.allclose(
            machine.decision, other.decision, atol=1e-5 * np.abs(other.decision).max()
        )
    assert np.allclose(model.coef_, in_memory.coef_, rtol=1e-6, atol=1e-8)


def test_errors_name_rows_on_disk_by_their_place_in_the_table(small_tiles_on_disk: Any) -> None:
    small_tiles_on_disk()
    bad = X.copy()
    bad[777, 3] = np.nan
    with pytest.raises(InvalidDataError, match="row 777, column 3; 1 such"):
        LinearSVC().fit(pieces(bad), pieces(TWO))


def test_sparse_rows_on_disk(small_tiles_on_disk: Any) -> None:
    wide = sp.random_array((300, 1600), density=0.01, format="csr", rng=1)
    y = (wide.sum(axis=1) > np.median(wide.sum(axis=1))).astype(np.int64)
    rows = da.from_array(wide.toarray(), chunks=(100, -1)).map_blocks(sp.csr_array)
    small_tiles_on_disk()
    for settings in ({"fit_intercept": False}, {"penalty": "l1", "C": 1.0, "solver": "newton"}):
        model = LinearSVC(tol=1e-6, **settings).fit(rows, pieces(y, 100))
        local = margrove.LinearSVC(tol=1e-6, **settings).fit(wide, y)
        objectives_agree(model, local, 1e-5)


# -- faults --


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["memory", "disk"])
@pytest.mark.parametrize("seed", range(10))
def test_a_worker_killed_at_any_moment_changes_nothing(
    new_cluster: Any, seed: int, place: str
) -> None:
    client = new_cluster(2)
    if place == "disk":  # of the worker that comes instead, partitions are in memory
        client.run(setattr, disk_storage, "_SHARE", 0.0)
    generator = np.random.default_rng(seed)
    pids = list(client.run(os.getpid).values())
    victim = pids[int(generator.integers(len(pids)))]
    timer = KillLater(victim, generator.uniform(0.0, 1.0))
    model = LinearSVC(loss="hinge", tol=1e-9).fit(pieces(X), pieces(THREE), pieces(WEIGHT))
    timer.join()
    local = margrove.LinearSVC(loss="hinge", tol=1e-9).fit(X, THREE, WEIGHT)
    objectives_agree(model, local, 1e-8)


@pytest.mark.nightly
def test_a_worker_killed_in_the_middle_changes_nothing(new_cluster: Any) -> None:
    client = new_cluster(2)
    victim = next(iter(client.run(os.getpid).values()))
    seen: list[Any] = []

    def kill_once(progress: Any) -> None:
        seen.append(progress)
        if len(seen) == 3:
            kill(victim)

    with margrove.watch(on_progress=kill_once):
        model = LinearSVC(loss="hinge", tol=1e-9).fit(pieces(X), pieces(TWO), pieces(WEIGHT))
    assert len(seen) > 3
    local = margrove.LinearSVC(loss="hinge", tol=1e-9).fit(X, TWO, WEIGHT)
    objectives_agree(model, local, 1e-8)
