"""Clusters whose messages are encrypted, with certificates that are made for the test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrove

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from margrove import dask as on_cluster  # noqa: E402
from margrove.dask.partitions import partitions_of  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)).round(1)
Y = (X[:, 0] + X[:, 1] > 0).astype(int)


def temporary_certificate(folder: Path) -> Any:
    """A self-signed certificate, which is its own authority."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("There is no openssl command to make a certificate with.")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    command = "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=margrove -keyout"
    subprocess.run(
        [program, *command.split(), key, "-out", certificate], check=True, capture_output=True
    )
    roles = {
        f"tls_{role}_{what}": file
        for role in ("client", "scheduler", "worker")
        for what, file in (("cert", certificate), ("key", key))
    }
    return distributed.Security(require_encryption=True, tls_ca_file=certificate, **roles)


@pytest.fixture
def secured(new_cluster: Callable[..., Any], tmp_path: Path) -> Any:
    client = new_cluster(2, security=temporary_certificate(tmp_path), protocol="tls://")
    assert all(worker.startswith("tls://") for worker in client.nthreads())
    return client


def saved(model: Any, folder: Path) -> bytes:
    margrove.save(model, folder / "model")
    return (folder / "model").read_bytes()


def test_everything_works_on_a_secured_cluster(secured: Any, tmp_path: Path) -> None:
    X_dask, y_dask = da.from_array(X, (100, 4)), da.from_array(Y, 100)
    partitions = partitions_of(X_dask, y_dask, client=secured)
    assert partitions.n_rows == 400
    np.testing.assert_array_equal(partitions.gather_y(), Y)
    for name, settings in {
        "RandomForestClassifier": {"n_estimators": 5, "oob_score": False},
        "AdaBoostClassifier": {"n_estimators": 5},
        "BaggingClassifier": {"n_estimators": 3},
    }.items():
        model = getattr(on_cluster, name)(random_state=0, **settings).fit(X_dask, y_dask)
        local = getattr(margrove, name)(random_state=0, **settings).fit(X, Y)
        assert saved(model.to_local(), tmp_path) == saved(local, tmp_path)
        np.testing.assert_array_equal(model.predict(X_dask).compute(), local.predict(X))
