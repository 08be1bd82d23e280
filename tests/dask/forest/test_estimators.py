"""Forests on a cluster are, byte for byte, the forests of one machine."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.dask.killing import kill, processes, require_same_after_kills, stopped

import margrove
from margrove.exceptions import ClusterError, FitCancelled, InvalidDataError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from margrove import dask as on_cluster  # noqa: E402
from margrove.dask.forest.rows import canonical_by_hash  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")

N_ROWS = 2000
EVEN, ODD, ONE = (500,) * 4, (1, 0, 1199, 37, 763), (2000,)
PARTITIONINGS = {"even": EVEN, "uneven, one empty": ODD, "one": ONE}


def make_table(n: int = N_ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of few, many and missing values, some rows twice; classes; numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 0] = rng.integers(0, 5, n)
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random((n, 6)) < 0.02] = np.nan
    X[n // 2 : n // 2 + n // 10] = X[: n // 10]
    signal_ = np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2] * X[:, 3])
    classes = (signal_ + 0.3 * rng.normal(size=n) > 0).astype(int) + (np.nan_to_num(X[:, 4]) > 1)
    numbers = signal_ + 0.3 * np.round(rng.normal(size=n), 3)
    classes[n // 2 : n // 2 + n // 10] = classes[: n // 10]
    return X, classes, numbers


def saved(model: Any, folder: Path, name: str) -> bytes:
    margrove.save(model, folder / name)
    return (folder / name).read_bytes()


def weights(kind: str | None, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(7)
    return {
        None: lambda: None,
        "whole": lambda: rng.integers(0, 4, n).astype(float),
        "real": lambda: rng.random(n) + 0.01,
        "some zero": lambda: rng.random(n) * (rng.random(n) < 0.8),
    }[kind]()


def as_array(array: np.ndarray | None, chunks: tuple[int, ...]) -> Any:
    if array is None:
        return None
    return da.from_array(array, (chunks, array.shape[1]) if array.ndim == 2 else (chunks,))


def require_same(
    name: str,
    parameters: dict[str, Any],
    kind_of_weight: str | None,
    chunks: tuple[int, ...],
    folder: Path,
) -> None:
    X, classes, numbers = make_table()
    y = numbers if name.endswith("Regressor") else classes
    weight = weights(kind_of_weight, len(y))
    settings = {"n_estimators": 8, "random_state": 5} | parameters
    local = getattr(margrove, name)(**settings).fit(X, y, weight)
    model = getattr(on_cluster, name)(**settings)
    model.fit(as_array(X, chunks), as_array(y, chunks), as_array(weight, chunks))
    assert saved(model.to_local(), folder, "cluster") == saved(local, folder, "local")


def at_night(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("n_workers", "partitioning"),
    [
        (1, "uneven, one empty"),
        (2, "uneven, one empty"),
        (4, "uneven, one empty"),
        (2, "one"),
        (4, "even"),
        at_night(1, "even"),
        at_night(2, "even"),
        at_night(1, "one"),
        at_night(4, "one"),
    ],
)
def test_no_partitioning_and_no_number_of_workers_matters(
    cluster4: Any, tmp_path: Path, n_workers: int, partitioning: str
) -> None:
    with dask.config.set({"margrove.workers": n_workers}):
        require_same("RandomForestClassifier", {}, None, PARTITIONINGS[partitioning], tmp_path)


CASES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "whole weights, bins": ("RandomForestClassifier", {"max_bins": 16}, "whole"),
    "real weights, bins": ("RandomForestClassifier", {"max_bins": 16}, "real"),
    "no weight at all": ("RandomForestClassifier", {"max_bins": 300}, "some zero"),
    "balanced": ("RandomForestClassifier", {"class_weight": "balanced"}, "whole"),
    "balanced trees": ("RandomForestClassifier", {"class_weight": "balanced_subsample"}, None),
    "a weight for a class": ("RandomForestClassifier", {"class_weight": {0: 2.5}}, None),
    "no samples": ("RandomForestClassifier", {"bootstrap": False}, "real"),
    "small samples": ("RandomForestClassifier", {"max_samples": 0.3}, None),
    "best first": ("RandomForestClassifier", {"max_leaf_nodes": 20, "criterion": "entropy"}, None),
    "pruned": ("RandomForestClassifier", {"ccp_alpha": 0.002}, None),
    "out of bag": ("RandomForestClassifier", {"oob_score": True, "n_estimators": 20}, "whole"),
    "hard votes": (
        "RandomForestClassifier", {"oob_score": True, "voting": "hard", "n_estimators": 20}, None,
    ),
    "out of bag, bins": (
        "RandomForestClassifier", {"oob_score": True, "max_bins": 8, "n_estimators": 20}, "real",
    ),
    "numbers": ("RandomForestRegressor", {}, "whole"),
    "numbers, out of bag": (
        "RandomForestRegressor", {"oob_score": True, "n_estimators": 20}, None,
    ),
    "samples of leaves": ("RandomForestRegressor", {"keep_samples": True, "max_depth": 5}, "real"),
    "absolute errors": (
        "RandomForestRegressor", {"criterion": "absolute_error", "max_depth": 4}, None,
    ),
    "extra trees": ("ExtraTreesClassifier", {}, None),
    "extra trees, bins": (
        "ExtraTreesClassifier",
        {"bootstrap": True, "oob_score": True, "max_bins": 8, "n_estimators": 20},
        "whole",
    ),
    "extra trees of numbers": ("ExtraTreesRegressor", {"max_features": 0.5}, "real"),
}  # fmt: skip


AT_NIGHT = {
    "no weight at all", "a weight for a class", "small samples", "best first", "pruned",
    "hard votes", "numbers, out of bag", "absolute errors", "out of bag", "extra trees",
}  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", [at_night(case) if case in AT_NIGHT else case for case in CASES])
def test_every_way_to_grow_a_forest_is_that_of_one_machine(
    cluster4: Any, tmp_path: Path, case: str
) -> None:
    require_same(*CASES[case], ODD, tmp_path)


def test_categories_and_missing_values_of_dataframes(cluster4: Any, tmp_path: Path) -> None:
    X, y, _ = make_table(1200)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(6)])
    letters = np.array(list("abcdefgh"))
    frame["letter"] = letters[np.random.default_rng(1).integers(0, 8, len(frame))]
    frame.loc[frame.index % 11 == 0, "letter"] = None
    frame["colour"] = pd.Categorical(np.where(frame["x0"] > 2, "red", "blue"))
    frame["y"] = np.where(y == 1, "yes", np.where(y == 0, "no", "perhaps"))
    local = margrove.RandomForestClassifier(8, random_state=0)
    local.fit(frame.drop(columns="y"), frame["y"])
    for n_partitions in (1, 3, 5):
        partitions = dd.from_pandas(frame, npartitions=n_partitions)
        model = on_cluster.RandomForestClassifier(8, random_state=0)
        model.fit(partitions.drop(columns="y"), partitions["y"])
        assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_sparse_partitions(cluster4: Any, tmp_path: Path) -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(3)
    X = sp.random_array((900, 40), density=0.1, format="csr", random_state=rng)
    y = (np.asarray(X[:, [0, 1, 2]].sum(axis=1)).ravel() > 0.2).astype(int)
    blocks = [
        da.from_delayed(dask.delayed(X[start : start + 300]), (300, 40), meta=sp.csr_array((0, 0)))
        for start in (0, 300, 600)
    ]
    local = margrove.RandomForestClassifier(8, random_state=0).fit(X, y)
    model = on_cluster.RandomForestClassifier(8, random_state=0)
    model.fit(da.concatenate(blocks), da.from_array(y, 300))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_warm_starts_go_on(cluster4: Any, tmp_path: Path) -> None:
    X, y, _ = make_table(1000)
    settings = {"random_state": 2, "warm_start": True, "oob_score": True}
    whole = margrove.RandomForestClassifier(24, **settings).fit(X, y)
    chunks = (400, 600)
    model = on_cluster.RandomForestClassifier(16, **settings)
    model.fit(as_array(X, chunks), as_array(y, chunks))
    model.set_params(n_estimators=24).fit(as_array(X, chunks), as_array(y, chunks))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(whole, tmp_path, "local")


def test_enough_trees_are_found_alike(cluster4: Any) -> None:
    X, y, _ = make_table(600)
    local = margrove.RandomForestClassifier("auto", random_state=1, max_depth=3).fit(X, y)
    model = on_cluster.RandomForestClassifier("auto", random_state=1, max_depth=3)
    model.fit(as_array(X, (200, 400)), as_array(y, (200, 400)))
    assert len(model) == len(local)
    np.testing.assert_array_equal(model.oob_curve_, local.oob_curve_)


def test_infinity_is_refused_where_it_is(cluster4: Any) -> None:
    X, y, _ = make_table(600)
    X[431, 2] = np.inf
    with pytest.raises(InvalidDataError, match=r"row 431, in partition 1, column 2"):
        on_cluster.RandomForestClassifier(2).fit(as_array(X, (300, 300)), as_array(y, (300, 300)))


def test_codes_that_do_not_fit_a_worker_are_refused_in_advance(
    cluster4: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = make_table(600)
    monkeypatch.setattr("margrove.dask.forest.rows._BYTES_A_ROW", 1e12)
    with pytest.raises(ClusterError, match="hold the whole table as codes: 546 rows of 6 columns"):
        on_cluster.RandomForestClassifier(2).fit(as_array(X, (300, 300)), as_array(y, (300, 300)))


def test_copies_are_found_by_their_hashes() -> None:
    """As the local canonical form finds them, comparing rows."""
    from margrove._data import canonical_form, scan_rows

    X, y, _ = make_table(500)
    y = y.astype(np.int64)
    weight = np.random.default_rng(0).integers(1, 4, 500).astype(float)
    form = canonical_form(X, y, weight)
    found = canonical_by_hash(scan_rows(X).hashes, np.isnan(X).any(axis=1), y, weight)
    for array, other in zip(found, (form.rows, form.weight, form.group_of), strict=True):
        np.testing.assert_array_equal(array, other)
    assert len(form.rows) < 500


@pytest.mark.parametrize("name", ["BaggingClassifier", "BaggingRegressor"])
def test_bags(cluster4: Any, tmp_path: Path, name: str) -> None:
    X, classes, numbers = make_table(500)
    y = numbers if name.endswith("Regressor") else classes
    local = getattr(margrove, name)(n_estimators=5, random_state=0).fit(X, y)
    model = getattr(on_cluster, name)(n_estimators=5, random_state=0)
    model.fit(as_array(X, (200, 300)), as_array(y, (200, 300)))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


# -- interruptions --


@pytest.mark.nightly
def test_an_interrupted_fit_goes_on_from_its_checkpoint(cluster4: Any, tmp_path: Path) -> None:
    X, y, _ = make_table(800)
    X_dask, y_dask = as_array(X, (300, 500)), as_array(y, (300, 500))
    settings = {"n_estimators": 20, "random_state": 0, "oob_score": True}

    def interrupt(progress: Any) -> None:
        if progress.done >= 6:
            raise KeyboardInterrupt

    file = tmp_path / "checkpoint"
    model = on_cluster.RandomForestClassifier(**settings)
    with (
        pytest.raises(KeyboardInterrupt),
        margrove.checkpoint(file),
        margrove.watch(on_progress=interrupt),
    ):
        model.fit(X_dask, y_dask)
    assert not hasattr(model, "trees_")
    with margrove.checkpoint(file, resume=True):
        model.fit(X_dask, y_dask)
    local = margrove.RandomForestClassifier(**settings).fit(X, y)
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_cancelled_fits_leave_the_cluster_to_others(cluster4: Any, tmp_path: Path) -> None:
    X, y, _ = make_table(800)
    X_dask, y_dask = as_array(X, (300, 500)), as_array(y, (300, 500))
    cancel = threading.Event()
    model = on_cluster.RandomForestClassifier(5000, random_state=0)
    with (
        pytest.raises(FitCancelled),
        margrove.watch(cancel=cancel, on_progress=lambda progress: cancel.set()),
    ):
        model.fit(X_dask, y_dask)
    assert not hasattr(model, "trees_")
    model.set_params(n_estimators=3).fit(X_dask, y_dask)
    assert len(model) == 3


# -- workers that are lost --


def lose_workers(new_cluster: Any, n_runs: int, folder: Path) -> None:
    X, y, _ = make_table(6000)
    settings = {"n_estimators": 16, "random_state": 3, "oob_score": True}
    wanted = saved(margrove.RandomForestClassifier(**settings).fit(X, y), folder, "local")
    X_dask, y_dask = as_array(X, (1500,) * 4), as_array(y, (1500,) * 4)

    def fitted(client: Any) -> bytes:
        model = on_cluster.RandomForestClassifier(**settings).fit(X_dask, y_dask, client=client)
        return saved(model.to_local(), folder, "cluster")

    require_same_after_kills(new_cluster, fitted, wanted, n_runs)


def test_a_killed_worker_changes_nothing(new_cluster: Any, tmp_path: Path) -> None:
    lose_workers(new_cluster, 2, tmp_path)


def test_the_only_worker_is_killed(new_cluster: Any, tmp_path: Path) -> None:
    """With the table, and what it was made from; its nanny starts another one."""
    X, y, _ = make_table(2000)
    settings = {"n_estimators": 400, "random_state": 0, "max_depth": 8}
    client, killed = new_cluster(1), []

    def kill_once(progress: Any) -> None:
        if progress.done >= 20 and not killed:
            killed.extend(processes(client))
            kill(killed[0])

    model = on_cluster.RandomForestClassifier(**settings)
    with margrove.watch(on_progress=kill_once):
        model.fit(as_array(X, (1000,) * 2), as_array(y, (1000,) * 2))
    assert killed
    local = margrove.RandomForestClassifier(**settings).fit(X, y)
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


@pytest.mark.nightly
def test_a_worker_that_is_stopped_is_not_waited_for(new_cluster: Any, tmp_path: Path) -> None:
    """Dask removes it after some time without a heartbeat."""
    X, y, _ = make_table(4000)
    X_dask, y_dask = as_array(X, (2000,) * 2), as_array(y, (2000,) * 2)
    with dask.config.set({"distributed.scheduler.worker-ttl": "8s"}):
        client = new_cluster(2)
    model = on_cluster.RandomForestClassifier(3000, random_state=0, max_depth=8)
    local = margrove.RandomForestClassifier(3000, random_state=0, max_depth=8).fit(X, y)
    pid = processes(client)[0]

    stands, still = [], ExitStack()

    def stop(progress: Any) -> None:
        if progress.done >= 20 and not stands:
            stands.append(still.enter_context(stopped(pid)))

    with still, margrove.watch(on_progress=stop):
        model.fit(X_dask, y_dask)
    assert stands
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


@pytest.mark.nightly
def test_killed_workers_change_nothing(new_cluster: Any, tmp_path: Path) -> None:
    lose_workers(new_cluster, 50, tmp_path)
