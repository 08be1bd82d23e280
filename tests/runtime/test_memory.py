"""Memory: what is available, refusals before allocation, and no growth over time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from margrove import KernelPerceptron, Perceptron
from margrove._runtime import memory as _memory
from margrove._runtime.memory import available_memory, require_memory
from margrove.datasets import load_iris

pytestmark = pytest.mark.nojit


def test_something_is_available() -> None:
    assert available_memory() > 10_000_000


def test_the_smallest_limit_counts(monkeypatch, tmp_path) -> None:
    (tmp_path / "memory.max").write_text("5000000\n")
    (tmp_path / "memory.current").write_text("4000000\n")
    monkeypatch.setattr(_memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(_memory, "_SMALL", 0)
    assert available_memory() == 1_000_000
    with pytest.raises(
        MemoryError, match=r"A thing needs 3 MB of memory and 1 MB is available\. Go"
    ):
        require_memory(3e6, "A thing", "Go.")
    require_memory(5e5, "A thing", "Go.")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 250000\nslab_reclaimable 50000\n")
    assert available_memory() == 1_300_000  # file cache is given up before anybody is refused
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() > 10_000_000


def test_unknown_limits_forbid_nothing(monkeypatch, tmp_path) -> None:
    for name in ("_CGROUP", "_MEMINFO", "_STATM"):
        monkeypatch.setattr(_memory, name, tmp_path / "nothing")
    monkeypatch.setattr(_memory, "_of_process_limit", lambda: None)
    assert available_memory() is None
    require_memory(1e30, "A thing", "Go.")


@pytest.mark.parametrize("cls", [Perceptron, KernelPerceptron])
def test_impossible_fits_are_refused_before_they_start(cls, monkeypatch) -> None:
    X, y = load_iris(return_X_y=True)
    model = cls().fit(X, y)
    before = model.predict(X)
    monkeypatch.setattr(_memory, "available_memory", lambda: 10)
    model.fit(X, y)  # small requests are never refused
    monkeypatch.setattr(_memory, "_SMALL", 0)
    with pytest.raises(MemoryError, match=f"{cls.__name__} with .* needs"):
        model.fit(X, y)
    assert np.array_equal(model.predict(X), before)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space limits of Linux")
def test_a_process_limit_is_respected() -> None:
    code = (
        "import numpy as np, resource\n"
        "from margrove import KernelPerceptron\n"
        "y = np.arange(12000); X = y[:, None] * 1.0\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "try: KernelPerceptron(max_iter=1, tol=None).fit(X, y)\n"
        "except MemoryError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "12000 one-vs-rest problems needs" in done.stdout, done.stderr


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc of Linux")
@pytest.mark.parametrize("cls", [Perceptron, KernelPerceptron])
def test_a_thousand_fits_leave_nothing_behind(cls) -> None:
    X, y = load_iris(return_X_y=True)

    def once():
        cls(max_iter=3, tol=None, n_jobs=2).fit(X, y).predict(X)

    for _ in range(300):
        once()
    before = resident_bytes(), len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(1000):
        once()
    after = resident_bytes(), len(os.listdir("/proc/self/fd")), threading.active_count()
    assert after[0] < 1.01 * before[0]
    assert after[1:] == before[1:]
