"""AdaBoost on a cluster is, byte for byte, that of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from tests.dask.killing import require_same_after_kills

import margrove
from margrove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.exceptions import ClusterError, ConvergenceWarning, InvalidDataError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from margrove import dask as on_cluster  # noqa: E402

PARTITIONINGS = {"even": (500,) * 4, "uneven, one empty": (1, 0, 1499, 500), "one": (2000,)}
ODD = PARTITIONINGS["uneven, one empty"]


def make_table(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 7))
    X[:, 0] = rng.integers(0, 4, n)
    X[:, 1] = np.round(X[:, 1], 1)
    y = (X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 4] > 1)
    return X, y


def saved(model: Any, folder: Path, name: str) -> bytes:
    margrove.save(model, folder / name)
    return (folder / name).read_bytes()


def as_array(array: np.ndarray | None, chunks: tuple[int, ...]) -> Any:
    if array is None:
        return None
    return da.from_array(array, (chunks, array.shape[1]) if array.ndim == 2 else (chunks,))


def weights(kind: str | None, n: int) -> np.ndarray | None:
    rng = np.random.default_rng(7)
    if kind is None:
        return None
    return rng.integers(0, 4, n).astype(float) if kind == "whole" else rng.random(n) + 0.01


CASES: dict[str, tuple[dict[str, Any], str | None, int]] = {
    "stumps of two classes": ({}, None, 2),
    "stumps, whole weights": ({"learning_rate": 0.5}, "whole", 2),
    "stumps, real weights": ({"algorithm": "discrete"}, "real", 2),
    "stumps of three classes": ({}, None, 3),
    "stumps of the least error": (
        {"estimator": DecisionTreeClassifier(max_depth=1, criterion="error")}, "whole", 2,
    ),
    "small trees": ({"estimator": DecisionTreeClassifier(max_depth=3)}, "real", 3),
    "large trees": ({"estimator": DecisionTreeClassifier(max_depth=9)}, None, 3),
    "real": ({"algorithm": "real"}, None, 3),
    "gentle": ({"algorithm": "gentle"}, "whole", 2),
    "early stopping": ({"early_stopping": True, "n_iter_no_change": 5}, None, 2),
    "others": ({"estimator": GaussianNB(), "n_estimators": 3}, "real", 2),
}  # fmt: skip


def require_same(
    case: tuple[dict[str, Any], str | None, int], chunks: tuple[int, ...], folder: Path
) -> None:
    parameters, kind, n_classes = case
    X, y = make_table()
    y = np.minimum(y, n_classes - 1)
    weight = weights(kind, len(y))
    settings = {"n_estimators": 20, "random_state": 5} | parameters
    local = margrove.AdaBoostClassifier(**settings).fit(X, y, weight)
    model = on_cluster.AdaBoostClassifier(**settings)
    model.fit(as_array(X, chunks), as_array(y, chunks), as_array(weight, chunks))
    assert model.history_.outcome == local.history_.outcome
    np.testing.assert_array_equal(model.predict_proba(X), local.predict_proba(X))
    if not isinstance(settings.get("estimator"), GaussianNB):  # which has no kind of its own
        assert saved(model.to_local(), folder, "cluster") == saved(local, folder, "local")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES)
def test_every_way_to_boost_is_that_of_one_machine(
    cluster4: Any, tmp_path: Path, case: str
) -> None:
    require_same(CASES[case], ODD, tmp_path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n_workers", "partitioning"), [(1, "one"), (2, "even"), (4, "uneven, one empty")]
)
def test_no_partitioning_and_no_number_of_workers_matters(
    cluster4: Any, tmp_path: Path, n_workers: int, partitioning: str
) -> None:
    with dask.config.set({"margrove.workers": n_workers}):
        require_same(CASES["stumps, whole weights"], PARTITIONINGS[partitioning], tmp_path)


def awkward_table(kind: str) -> tuple[Any, np.ndarray, np.ndarray | None]:
    X, y = make_table(600)
    y = np.minimum(y, 1)
    weight = None
    if kind == "copies of columns":  # as good as each other: the first is taken
        X = np.hstack([X[:, 2:5], X[:, 2:5], -X[:, 2:5], np.exp(X[:, 2:5])])
    elif kind == "constants":
        X[:, [0, 3, 6]] = 1.5
    elif kind == "perfect":
        y = (X[:, 5] > 0.1).astype(int)
    elif kind == "float32":
        X = X.astype(np.float32)
    elif kind == "nothing to learn from missing":  # rows of no weight are not there
        weight = (np.arange(600) % 5 > 0).astype(float)
        X[::5, 2] = np.nan
    elif kind == "frame":
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(7)]).astype({"x0": "int64"})
    elif kind == "huge":
        X[:, 2] *= 1e300
    elif kind == "sparse":  # a column without zeros, one without anything else, and rare values
        X[:, 3:6] *= X[:, 3:6] > 0.5
        X[:, 6] = 0.0
    return X, y, weight


def test_infinity_is_refused(cluster4: Any) -> None:
    X, y = make_table(600)
    X[7, 2] = np.inf
    with pytest.raises(InvalidDataError, match=r"infinity.*row 7.*column 2"):
        on_cluster.AdaBoostClassifier().fit(as_array(X, (600,)), as_array(y, (600,)))


# -- everything else --


def test_missing_values_and_categories(cluster4: Any, tmp_path: Path) -> None:
    X, y = make_table(900)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(7)])
    frame.loc[frame.index % 7 == 0, "x2"] = np.nan
    frame["number"] = pd.Categorical(np.arange(900) // 200)
    frame["letter"] = np.array(list("abc"))[(X[:, 0] % 3).astype(int)]
    local = margrove.AdaBoostClassifier(n_estimators=10, random_state=0).fit(frame, y)
    partitions = dd.from_pandas(frame, npartitions=3)
    sizes = tuple(partitions.map_partitions(len).compute())
    model = on_cluster.AdaBoostClassifier(n_estimators=10, random_state=0)
    model.fit(partitions, da.from_array(y, (sizes,)))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_rows_to_watch(cluster4: Any) -> None:
    X, y = make_table(800)
    chunks = (300, 300)
    settings = {"n_estimators": 15, "early_stopping": True, "n_iter_no_change": 3}
    local = margrove.AdaBoostClassifier(**settings)
    local.fit(X[:600], y[:600], X_val=X[600:], y_val=y[600:])
    model = on_cluster.AdaBoostClassifier(**settings)
    model.fit(
        as_array(X[:600], chunks), as_array(y[:600], chunks),
        X_val=as_array(X[600:], (200,)), y_val=as_array(y[600:], (200,)),
    )  # fmt: skip
    np.testing.assert_array_equal(model.history_.validation_error, local.history_.validation_error)


def test_numbers(cluster4: Any, tmp_path: Path) -> None:
    X, y = make_table(800)
    target = X[:, 1] + 0.1 * y
    settings = {
        "n_estimators": 8,
        "random_state": 0,
        "estimator": DecisionTreeRegressor(max_depth=3),
    }
    local = margrove.AdaBoostRegressor(**settings).fit(X, target)
    model = on_cluster.AdaBoostRegressor(**settings)
    model.fit(as_array(X, (300, 500)), as_array(target, (300, 500)))
    assert saved(model.to_local(), tmp_path, "cluster") == saved(local, tmp_path, "local")


def test_what_the_worker_warns_of_is_heard_here(cluster4: Any) -> None:
    X, y = make_table(600)
    chunks = (200, 400)
    model = on_cluster.AdaBoostClassifier(GaussianNB(), n_estimators=50)
    with pytest.warns(ConvergenceWarning, match="the next GaussianNB was no better than chance"):
        model.fit(as_array(X, chunks), as_array(np.minimum(y, 1), chunks))


def test_useless_data_are_refused(cluster4: Any) -> None:
    X, y = np.zeros((100, 2)), np.tile([0, 1], 50)
    with pytest.raises(InvalidDataError, match="no better than chance"):
        on_cluster.AdaBoostClassifier().fit(as_array(X, (50, 50)), as_array(y, (50, 50)))


def test_rows_that_fit_no_worker_are_refused_in_advance(
    cluster4: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = make_table(200)
    monkeypatch.setattr("margrove.dask.single_worker._COPIES", 1e9)
    base = DecisionTreeClassifier(max_depth=9)
    with pytest.raises(ClusterError, match="needs all 200 rows on one worker"):
        on_cluster.AdaBoostClassifier(base).fit(as_array(X, (200,)), as_array(y, (200,)))


def lose_workers(new_cluster: Any, base: Any, n_runs: int, folder: Path) -> None:
    X, y = make_table(6000)
    settings = {"estimator": base, "n_estimators": 60, "random_state": 1}
    wanted = saved(margrove.AdaBoostClassifier(**settings).fit(X, y), folder, "local")
    X_dask, y_dask = as_array(X, (2000,) * 3), as_array(y, (2000,) * 3)

    def fitted(client: Any) -> bytes:
        model = on_cluster.AdaBoostClassifier(**settings).fit(X_dask, y_dask, client=client)
        return saved(model.to_local(), folder, "cluster")

    require_same_after_kills(new_cluster, fitted, wanted, n_runs)


@pytest.mark.nightly
def test_a_killed_worker_changes_nothing(new_cluster: Any, tmp_path: Path) -> None:
    lose_workers(new_cluster, DecisionTreeClassifier(max_depth=8), 1, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("max_depth", [1, 8])
def test_killed_workers_change_nothing(new_cluster: Any, tmp_path: Path, max_depth: int) -> None:
    lose_workers(new_cluster, DecisionTreeClassifier(max_depth=max_depth), 25, tmp_path)
