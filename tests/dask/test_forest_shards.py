"""Forests whose codes stay in shards of rows are, byte for byte, the forests of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.dask.killing import kill_later, processes, require_same_whoever_dies

import margrove
from margrove.ensemble.bootstrap.resampling import Line, multiplicities, stream, units_left_out
from margrove.ensemble.forest.shards import draw_some, strike_some
from margrove.exceptions import ClusterError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from tests.dask.forest_in_one_process import in_shards  # noqa: E402

from margrove import dask as on_cluster  # noqa: E402
from margrove.dask import forest_table  # noqa: E402
from margrove.dask.forest_sharded import ShardedGrower  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Some inputs do not have OOB")

CHUNKS = (1, 0, 399, 37, 263)
N_ROWS = sum(CHUNKS)


def make_table(n: int = N_ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns of few, many and missing values, some rows twice; classes; numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    X[:, 0] = rng.integers(0, 6, n)
    X[:, 1] = np.round(X[:, 1], 1)
    signal_ = X[:, 1] + X[:, 2] * X[:, 3]
    classes = (signal_ + 0.3 * rng.normal(size=n) > 0).astype(int) + (X[:, 4] > 1)
    again, before = slice(n // 2, n // 2 + n // 10), slice(n // 10)
    for own in (X, classes, signal_):
        own[again] = own[before]
    return X, classes, signal_


def with_gaps(X: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(1).random(X.shape) < 0.04, np.nan, X)


def weights(kind: str | None, n: int = N_ROWS) -> np.ndarray | None:
    rng = np.random.default_rng(7)
    if kind is None:
        return None
    return rng.integers(0, 4, n).astype(float) if kind == "whole" else rng.random(n) + 0.01


def saved(model: Any, folder: Path, name: str) -> bytes:
    margrove.save(model, folder / name)
    return (folder / name).read_bytes()


def as_array(array: np.ndarray | None, chunks: tuple[int, ...] = CHUNKS) -> Any:
    if array is None:
        return None
    return da.from_array(array, (chunks, array.shape[1]) if array.ndim == 2 else (chunks,))


def at_night(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.nightly)


# -- samples --


@pytest.mark.parametrize("kind", ["even", "whole", "real", "long"])
def test_samples_of_some_rows_are_those_of_all_rows(kind: str) -> None:
    rng = np.random.default_rng(0)
    weight = {
        "even": np.ones(300),
        "whole": rng.integers(1, 5, 300) * 1.0,
        "real": rng.random(300) + 0.01,
        "long": rng.integers(1, 500, 300) * 1.0,
    }[kind]
    line = Line(weight)
    own = np.flatnonzero(rng.random(300) < 0.4)
    ends, begins = line.ends[own], (line.ends - np.diff(line.ends, prepend=0))[own]
    for number in range(3):
        drawn = np.zeros(len(own), np.int64)
        place = (begins, ends, line.ends[-1], stream(7, number), line.n_draws)
        draw_some(*place, drawn)
        np.testing.assert_array_equal(drawn, multiplicities(line, 7, number)[own])
        if line.is_whole:
            left_out = (ends - begins).astype(np.int32)
            strike_some(*place, left_out)
            np.testing.assert_array_equal(left_out, units_left_out(line, 7, number)[own])


# -- without a cluster --

CLASSES, NUMBERS = "RandomForestClassifier", "RandomForestRegressor"
RANDOM_CLASSES, RANDOM_NUMBERS = "ExtraTreesClassifier", "ExtraTreesRegressor"
OUT_OF_BAG = {"oob_score": True, "n_estimators": 12}

CASES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "classes": (CLASSES, {}, None),
    "classes, bins": (CLASSES, {"max_bins": 255}, "whole"),
    "classes, real weights": (CLASSES, {"max_bins": 16}, "real"),
    "classes, no samples": (CLASSES, {"bootstrap": False}, "real"),
    "classes, out of bag": (CLASSES, OUT_OF_BAG, "whole"),
    "numbers": (NUMBERS, {}, None),
    "numbers, bins": (NUMBERS, {"max_bins": 255}, "whole"),
    "numbers, real weights": (NUMBERS, {}, "real"),
    "numbers, no samples": (NUMBERS, {"bootstrap": False, "max_depth": 4}, "real"),
    "numbers, out of bag": (NUMBERS, OUT_OF_BAG | {"max_bins": 16}, None),
    "random classes": (RANDOM_CLASSES, {}, "whole"),
    "random classes, bins": (RANDOM_CLASSES, {"max_bins": 255} | OUT_OF_BAG | {"bootstrap": True},
                             None),
    "random numbers": (RANDOM_NUMBERS, {}, None),
    "random numbers, bins": (RANDOM_NUMBERS, {"max_bins": 16, "max_depth": 5}, "real"),
    "entropy": (CLASSES, {"criterion": "entropy"}, None),
    "entropy, real weights": (CLASSES, {"criterion": "entropy", "bootstrap": False}, "real"),
    "errors": (CLASSES, {"criterion": "error"}, None),
    "balanced": (CLASSES, {"class_weight": "balanced"}, "whole"),
    "balanced trees": (CLASSES, {"class_weight": "balanced_subsample"}, None),
    "small samples": (CLASSES, {"max_samples": 0.3, "min_samples_leaf": 7}, None),
    "best first": (CLASSES, {"max_leaf_nodes": 20}, None),
    "best first, numbers": (NUMBERS, {"max_leaf_nodes": 20}, "real"),
    "pruned": (NUMBERS, {"ccp_alpha": 0.002, "max_features": 2}, None),
    "bounds": (CLASSES, {"min_impurity_decrease": 0.001, "min_weight_fraction_leaf": 0.01}, None),
    "deep": (NUMBERS, {"max_depth": 3}, "whole"),
}  # fmt: skip


def require_same_here(
    name: str,
    settings: dict[str, Any],
    data: tuple[Any, ...],
    folder: Path,
    n_members: tuple[int, ...],
    **options: Any,
) -> Any:
    settings = {"n_estimators": 2, "random_state": 5} | settings
    kind = getattr(margrove, name)
    wanted = saved(kind(**settings).fit(*data), folder, "local")
    for n in n_members:
        model, shards = in_shards(kind, n, settings, *data, **options)
        assert saved(model, folder, "shards") == wanted, f"{n} members"
    return shards


GAPS_AT_EVERY_COMMIT = {
    "classes", "classes, real weights", "numbers", "numbers, no samples", "numbers, out of bag",
    "random classes", "random numbers, bins",
}  # fmt: skip


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    ("case", "gaps"),
    [
        *((case, False) for case in CASES),
        *((case, True) for case in CASES if case in GAPS_AT_EVERY_COMMIT),
        *(at_night(case, True) for case in CASES if case not in GAPS_AT_EVERY_COMMIT),
    ],
)
def test_every_way_to_grow_a_forest_is_that_of_one_machine(
    tmp_path: Path, case: str, gaps: bool
) -> None:
    name, settings, kind = CASES[case]
    X, classes, numbers = make_table()
    y = numbers if name.endswith("Regressor") else classes
    data = (with_gaps(X) if gaps else X, y, weights(kind))
    require_same_here(name, settings, data, tmp_path, (4,) if gaps else (2,))


@pytest.mark.parametrize("name", [CLASSES, NUMBERS, RANDOM_CLASSES, RANDOM_NUMBERS])
def test_the_number_of_members_does_not_matter(tmp_path: Path, name: str) -> None:
    X, classes, numbers = make_table(300)
    y = numbers if name.endswith("Regressor") else classes
    require_same_here(name, {}, (with_gaps(X), y), tmp_path, (1, 2, 4))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [CLASSES, NUMBERS, RANDOM_CLASSES, RANDOM_NUMBERS])
@pytest.mark.parametrize("depth", [None, 4])
def test_categories(tmp_path: Path, name: str, depth: int | None) -> None:
    X, classes, numbers = make_table()
    y = numbers if name.endswith("Regressor") else classes
    settings = {"categorical_features": [0], "max_depth": depth, "max_features": None}
    require_same_here(name, settings, (with_gaps(X), y), tmp_path, (3,))


@pytest.mark.parametrize("name", [CLASSES, NUMBERS, RANDOM_CLASSES, RANDOM_NUMBERS])
def test_several_outputs(tmp_path: Path, name: str) -> None:
    X, classes, numbers = make_table()
    two = np.column_stack([classes, classes % 2])
    if name.endswith("Regressor"):
        two = np.column_stack([numbers, X[:, 0] - numbers])
    for settings, weight in (({}, None), ({"bootstrap": False, "max_depth": 4}, weights("real"))):
        require_same_here(name, settings, (X, two, weight), tmp_path, (3,))


@pytest.mark.parametrize("criterion", ["poisson", "gamma"])
def test_deviances(tmp_path: Path, criterion: str) -> None:
    X, _, numbers = make_table()
    y = np.floor(np.abs(numbers)) if criterion == "poisson" else np.abs(numbers) + 0.1
    data = (with_gaps(X), y, weights("whole"))
    require_same_here(NUMBERS, {"criterion": criterion, "max_depth": 5}, data, tmp_path, (3,))


@pytest.mark.parametrize("name", [CLASSES, NUMBERS])
def test_nodes_that_are_halved(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margrove.grove.decision_tree.GREEDY_DEPTH", 2)
    X, classes, numbers = make_table()
    y = numbers if name.endswith("Regressor") else classes
    for settings in ({"categorical_features": [0]}, {"min_samples_leaf": 40}):
        with pytest.warns(margrove.exceptions.DataWarning, match="were halved"):
            require_same_here(name, settings, (with_gaps(X), y), tmp_path, (3,))


def test_where_the_cut_between_large_and_small_nodes_lies_does_not_matter(tmp_path: Path) -> None:
    X, y, _ = make_table()
    for small in (1, 100, 1000):
        require_same_here(CLASSES, {}, (X, y), tmp_path, (3,), small=small)


def test_gangs_that_break_change_nothing(tmp_path: Path) -> None:
    X, y, _ = make_table()
    settings = {"oob_score": True, "n_estimators": 40}
    breaks_at = [20, 3, 60, 45]
    shards = require_same_here(CLASSES, settings, (X, y), tmp_path, (3,), breaks_at=breaks_at)
    assert len(shards.gangs) == len(breaks_at) + 1


def test_fits_that_only_lose_workers_are_given_up() -> None:
    X, y, _ = make_table()
    settings = {"n_estimators": 2, "random_state": 0}
    with pytest.raises(ClusterError, match="11 workers were lost in a row"):
        in_shards(margrove.RandomForestClassifier, 2, settings, X, y, breaks_at=[20] * 50)


def test_round_trips_are_shared_by_trees() -> None:
    X, y, _ = make_table()
    asked = []
    for n_trees in (1, 16):
        settings = {"n_estimators": n_trees, "random_state": 0}
        _, shards = in_shards(margrove.RandomForestClassifier, 2, settings, X, y)
        asked.append(len(shards.gangs[0].asked))
    assert asked[1] < 3 * asked[0]


# -- on a cluster --


@pytest.fixture
def in_small_shards(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nodes of few rows are large enough to be split by sums that travel."""
    monkeypatch.setattr(ShardedGrower, "fewest_rows", 40)
    monkeypatch.setattr(ShardedGrower, "subtrees_a_member", 2**31)
    with dask.config.set({"margrove.forest-codes": "sharded"}):
        yield


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n_workers", "case"),
    [
        (1, "classes, bins"),
        (2, "random numbers"),
        (4, "classes, out of bag"),
        *(at_night(n, case) for n in (1, 2, 4) for case in CASES),
    ],
)
def test_forests_of_a_cluster(
    cluster4: Any, in_small_shards: None, tmp_path: Path, n_workers: int, case: str
) -> None:
    name, parameters, kind = CASES[case]
    X, classes, numbers = make_table()
    X, y, weight = with_gaps(X), numbers if name.endswith("Regressor") else classes, weights(kind)
    settings = {"n_estimators": 5, "random_state": 5} | parameters
    local = getattr(margrove, name)(**settings).fit(X, y, weight)
    model = getattr(on_cluster, name)(**settings)
    with dask.config.set({"margrove.workers": n_workers}):
        model.fit(as_array(X), as_array(y), as_array(weight))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


@pytest.mark.nightly
def test_categories_of_dataframes(cluster4: Any, in_small_shards: None, tmp_path: Path) -> None:
    X, y, _ = make_table(500)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(5)])
    frame["letter"] = np.array(list("abcdefgh"))[np.random.default_rng(1).integers(0, 8, 500)]
    frame.loc[frame.index % 11 == 0, "letter"] = None
    frame["y"] = np.where(y == 1, "yes", np.where(y == 0, "no", "perhaps"))
    settings = {"n_estimators": 12, "random_state": 0, "oob_score": True}
    local = margrove.RandomForestClassifier(**settings).fit(frame.drop(columns="y"), frame["y"])
    parts = dd.from_pandas(frame, npartitions=3)
    model = on_cluster.RandomForestClassifier(**settings).fit(parts.drop(columns="y"), parts["y"])
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_shards_are_chosen_where_no_worker_holds_all_codes(
    cluster4: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, _ = make_table()
    known = cluster4.scheduler_info(n_workers=-1)["workers"].values()
    a_row = 1.5 * min(own["memory_limit"] for own in known) / N_ROWS
    monkeypatch.setattr(forest_table, "_BYTES_A_ROW", a_row)
    settings = {"n_estimators": 3, "random_state": 0}
    with (
        dask.config.set({"margrove.forest-codes": "replicated"}),
        pytest.raises(ClusterError, match="hold the whole table as codes"),
    ):
        on_cluster.RandomForestClassifier(**settings).fit(as_array(X), as_array(y))
    model = on_cluster.RandomForestClassifier(**settings).fit(as_array(X), as_array(y))
    local = margrove.RandomForestClassifier(**settings).fit(X, y)
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


@pytest.mark.parametrize(
    ("name", "parameters", "told"),
    [
        (NUMBERS, {"criterion": "absolute_error"}, "criterion='absolute_error'"),
        (NUMBERS, {"keep_samples": True}, "keep_samples=True"),
        (NUMBERS, {"monotonic_cst": [1, 0, 0, 0, 0]}, "monotonic_cst"),
    ],
)
def test_what_needs_all_rows_of_a_node_together_is_refused(
    cluster4: Any, in_small_shards: None, name: str, parameters: dict[str, Any], told: str
) -> None:
    X, _, y = make_table()
    with pytest.raises(ClusterError, match=told):
        getattr(on_cluster, name)(2, **parameters).fit(as_array(X), as_array(y))


def test_a_setting_that_does_not_exist(cluster4: Any) -> None:
    X, y, _ = make_table()
    with (
        dask.config.set({"margrove.forest-codes": "everywhere"}),
        pytest.raises(ClusterError, match=r"must be one of .* Got 'everywhere'"),
    ):
        on_cluster.RandomForestClassifier(2).fit(as_array(X), as_array(y))


@pytest.mark.nightly
def test_an_interrupted_fit_goes_on_from_its_checkpoint(
    cluster4: Any, in_small_shards: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("margrove.dask.forest_sharded._MOST_TREES", 4)
    X, y, _ = make_table()
    settings = {"n_estimators": 12, "random_state": 0, "oob_score": True}

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
        model.fit(as_array(X), as_array(y))
    assert not hasattr(model, "trees_")
    with margrove.checkpoint(file, resume=True):
        model.fit(as_array(X), as_array(y))
    local = margrove.RandomForestClassifier(**settings).fit(X, y)
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


# -- workers that are lost --


def killed_and_wanted(folder: Path) -> tuple[dict[str, Any], Any, Any, bytes]:
    X, y, _ = make_table(3000)
    settings = {"n_estimators": 12, "random_state": 3, "oob_score": True}
    wanted = saved(margrove.RandomForestClassifier(**settings).fit(X, y), folder, "local")
    return settings, as_array(X, (750,) * 4), as_array(y, (750,) * 4), wanted


@pytest.fixture
def few_trees_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("margrove.dask.forest_sharded._MOST_TREES", 3)


@pytest.mark.nightly
def test_a_killed_worker_changes_nothing(
    new_cluster: Any, in_small_shards: None, few_trees_at_once: None, tmp_path: Path
) -> None:
    settings, X, y, wanted = killed_and_wanted(tmp_path)
    client = new_cluster(2)
    victims = []

    def kill(progress: Any) -> None:
        if progress.done >= 4 and not victims:
            victims.append(processes(client)[0])
            kill_later(victims[0], 0.05)

    model = on_cluster.RandomForestClassifier(**settings)
    with margrove.watch(on_progress=kill):
        model.fit(X, y, client=client)
    assert victims
    assert saved(model.to_local(), tmp_path, "cluster") == wanted


@pytest.mark.nightly
def test_workers_killed_at_any_time_change_nothing(
    new_cluster: Any, in_small_shards: None, few_trees_at_once: None, tmp_path: Path
) -> None:
    settings, X, y, wanted = killed_and_wanted(tmp_path)

    def fitted(client: Any) -> bytes:
        model = on_cluster.RandomForestClassifier(**settings).fit(X, y, client=client)
        return saved(model.to_local(), tmp_path, "cluster")

    require_same_whoever_dies(new_cluster, fitted, wanted, 20)
