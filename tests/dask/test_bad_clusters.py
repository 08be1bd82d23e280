"""Workers and clients that are not fit for a fit: an error names them, and nothing hangs."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interrupts import PATIENCE, wait_until

import margrove
from margrove.exceptions import ClusterError

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from margrove import dask as on_cluster  # noqa: E402
from margrove.dask.cluster import workers as workers_module  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 4))
Y = (X[:, 0] > 0).astype(int)
NOISE = RNG.integers(0, 2, 600)  # which takes many rounds to learn
MODELS = {
    "forest": on_cluster.RandomForestClassifier(3),
    "single worker": on_cluster.AdaBoostClassifier(n_estimators=3),
}


def table() -> tuple[Any, Any]:
    return da.from_array(X, (200, 4)), da.from_array(Y, 200)


def _pretend_another_version() -> None:
    usual = workers_module._software
    workers_module._software = lambda: usual() | {"margrove": "0.0.1"}  # type: ignore[assignment]


@pytest.mark.parametrize("name", MODELS)
def test_a_worker_of_another_version_is_named(new_cluster: Callable[..., Any], name: str) -> None:
    client = new_cluster(2)
    other = sorted(client.nthreads())[1]
    client.run(_pretend_another_version, workers=[other])
    with pytest.raises(ClusterError, match="Workers differ") as caught:
        MODELS[name].fit(*table(), client=client)
    assert f"margrove 0.0.1 instead of {margrove.__version__}: {other}" in str(caught.value)


def test_a_worker_that_comes_later_is_compared(cluster4: Any) -> None:
    from margrove.dask.cluster import require_same_software, software_of_this_process

    here = software_of_this_process()
    assert cluster4.submit(require_same_software, here, pure=False).result() is None
    with pytest.raises(ClusterError, match=r"instead of 9\.9: tcp://"):
        cluster4.submit(require_same_software, here | {"margrove": "9.9"}, pure=False).result()


WITHOUT_MARGROVE = """
import sys

class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "margrove":
            raise ModuleNotFoundError("No module named 'margrove'", name="margrove")

sys.meta_path.insert(0, Nothing())
"""


@contextmanager
def worker_without_margrove(client: Any, folder: Path) -> Iterator[str]:
    (folder / "without.py").write_text(WITHOUT_MARGROVE)
    before = set(client.nthreads())
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--preload"]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "dask", "worker", client.scheduler.address,
         *options, str(folder / "without.py")],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_until(lambda: len(client.nthreads()) > len(before))
        (new,) = set(client.nthreads()) - before
        yield new
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("name", MODELS)
def test_a_worker_without_margrove_is_named(
    new_cluster: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    client = new_cluster(1)
    with (
        worker_without_margrove(client, tmp_path) as worker,
        pytest.raises(ClusterError, match=f"Worker {worker} cannot run margrove.*Install margrove"),
    ):
        MODELS[name].fit(*table(), client=client)


def _runs(client: Any, name: str) -> bool:
    running = [key for keys in client.processing().values() for key in keys]
    return any(name in str(key) for key in running)


@pytest.mark.parametrize(
    "model",
    [
        on_cluster.RandomForestClassifier(100_000),
        on_cluster.AdaBoostClassifier(
            margrove.DecisionTreeClassifier(max_depth=2), n_estimators=1_000_000
        ),
    ],
    ids=MODELS,
)
@pytest.mark.filterwarnings("ignore")
def test_a_client_that_is_closed_during_a_fit(cluster4: Any, model: Any) -> None:
    client = distributed.Client(cluster4.scheduler.address, set_as_default=False)
    found: list[Any] = []

    def fit() -> None:
        try:
            found.append(model.fit(table()[0], da.from_array(NOISE, 200), client=client))
        except BaseException as error:
            found.append(error)

    fitting = threading.Thread(target=fit, daemon=True)
    fitting.start()
    wait_until(lambda: _runs(cluster4, "grow_trees") or _runs(cluster4, "_fit_all_rows"))
    client.close()
    fitting.join(PATIENCE)
    assert not fitting.is_alive()
    assert isinstance(found[0], ClusterError)
    assert "client" in str(found[0])
    assert not hasattr(model, "n_features_in_")


def _slow(block: np.ndarray) -> np.ndarray:
    time.sleep(PATIENCE)
    return block


@pytest.mark.filterwarnings("ignore")
def test_a_client_that_is_closed_while_partitions_are_made(new_cluster: Callable[..., Any]) -> None:
    scheduler = new_cluster(1).scheduler.address
    client = distributed.Client(scheduler, set_as_default=False)
    X_dask, y_dask = table()
    slow = X_dask.map_blocks(_slow, dtype=float, meta=np.empty((0, 0)))
    threading.Timer(2.0, client.close).start()
    with pytest.raises(ClusterError, match="client"):
        MODELS["forest"].fit(slow, y_dask, client=client)
