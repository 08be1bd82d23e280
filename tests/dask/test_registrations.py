"""What a user has registered is known on the workers, or an error says what to do."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrove
from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
from margrove.exceptions import ClusterError
from margrove.grove import CRITERIA
from margrove.margin.kernels import KERNELS

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from margrove import dask as on_cluster  # noqa: E402
from margrove.dask.registrations import registrations_of  # noqa: E402

MODULE = "registrations_of_a_test"
SOURCE = '''
from dataclasses import dataclass
import numpy as np
import margrove
from margrove.ensemble.gradient.losses import SquaredError, registered_loss


def root_of_gini(sums, weight):
    """the root of Gini's index"""
    return np.sqrt(1.0 - np.sum((sums / weight) ** 2))


def cosine(X, Z):
    """x'z / (||x|| ||z||)"""
    return X @ Z.T / np.linalg.norm(X, axis=1)[:, None] / np.linalg.norm(Z, axis=1)


@registered_loss
@dataclass(frozen=True)
class Renamed(SquaredError):
    name = "renamed in a test"
    summary = "numbers"


margrove.register_criterion("root_of_gini in a test", root_of_gini)
margrove.register_kernel("cosine in a test", cosine, positive_definite=True)
'''
TREE = margrove.DecisionTreeClassifier(criterion="root_of_gini in a test")
MACHINE = margrove.SVC(kernel="cosine in a test")
BOOSTED = margrove.HistGradientBoostingRegressor(loss="renamed in a test", max_iter=2)


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    registries: tuple[dict[str, Any], ...] = (KERNELS, CRITERIA, GRADIENT_LOSSES)
    before = [dict(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)
    sys.modules.pop(MODULE, None)


def _add_to_path(folder: str) -> None:
    sys.path.insert(0, folder)


def test_workers_import_the_module_that_registers(
    new_cluster: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = new_cluster(1)
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    __import__(MODULE)
    X = np.random.default_rng(0).normal(size=(200, 3)) + 1.0
    y = (X[:, 0] > 1.0).astype(int)
    table = da.from_array(X, (100, 3)), da.from_array(y, 100)
    models = [
        on_cluster.BaggingClassifier(TREE, n_estimators=2, random_state=0),
        on_cluster.BaggingClassifier(MACHINE, n_estimators=2, random_state=0),
        on_cluster.HistGradientBoostingRegressor(loss="renamed in a test", max_iter=2),
    ]
    for model in models:
        with pytest.raises(ClusterError, match=rf"{MODULE}.*PYTHONPATH"):
            model.fit(*table)
    client.run(_add_to_path, str(tmp_path))
    for model in models:
        local = model.local_class()(**model.get_params(deep=False)).fit(X, y)
        assert np.array_equal(model.fit(*table).predict(X), local.predict(X))


CHILD = """
import pickle, sys
from margrove.dask.registrations import register_on_worker
from margrove.ensemble.gradient.losses import GRADIENT_LOSSES
from margrove.grove import CRITERIA
from margrove.margin.kernels import KERNELS

for registrations in pickle.load(sys.stdin.buffer):
    register_on_worker(registrations)
    if "cosine in a test" in KERNELS:
        print(KERNELS["cosine in a test"]()([[3.0, 4.0]], [[4.0, 3.0]])[0, 0])
print(CRITERIA["root_of_gini in a test"].summary, "|", GRADIENT_LOSSES["renamed in a test"])
"""


def test_what_a_script_registers_is_sent_by_value() -> None:
    exec(SOURCE, {"__name__": "__main__"})
    sent = [registrations_of(model) for model in (TREE, BOOSTED, MACHINE)]
    del KERNELS["cosine in a test"]
    exec("def zero(X, Z): return 0.0 * X @ Z.T", own := {"__name__": "__main__"})
    margrove.register_kernel("cosine in a test", own["zero"])
    sent.append(registrations_of(MACHINE))  # another kernel of that name replaces the first
    found = subprocess.run(
        [sys.executable, "-c", CHILD], input=pickle.dumps(sent), capture_output=True, check=True
    )
    first, second, last = found.stdout.decode().splitlines()
    assert (float(first), float(second)) == (pytest.approx(0.96), 0.0)
    assert last == "the root of Gini's index | Renamed()"


def test_nothing_is_sent_for_functions_and_objects() -> None:
    assert registrations_of(margrove.SVC(kernel=margrove.kernels.RBF(1.0))) == []
