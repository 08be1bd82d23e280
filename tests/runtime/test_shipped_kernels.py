"""Machine code in the package: used where it fits, and never where it does not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from margrove._runtime import jit, shipped_kernels
from margrove._runtime.shipped_kernels import (
    LEVELS,
    KernelSource,
    Level,
    kernel_source,
    pack_kernels,
)

pytestmark = pytest.mark.skipif(not jit.IS_COMPILED, reason="nothing is compiled")

FIT = """
import json, logging
logging.basicConfig(level="INFO", format="%(levelname)s %(message)s")
from numba.core import event

class Count(event.Listener):
    n = 0
    def on_start(self, event):  # Numba's own functions are compiled as parts of ours
        self.n += event.data["dispatcher"].py_func.__module__.startswith("margrove.")
    def on_end(self, event): pass

count = Count()
event.register("numba:compile", count)
{before}
from margrove import Perceptron
from margrove._runtime.shipped_kernels import kernel_source
model = Perceptron().fit([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-2.0, -1.0]], [1, 1, 0, 0])
source = kernel_source()
print(json.dumps(dict(
    coef=model.coef_.tolist(), compiled=count.n, level=source.level, reason=source.reason
)))
"""
LEVEL = next(level.name for level in LEVELS if not level.missing())


def run(folder: object, before: str = "", **environment: object) -> tuple[dict, str]:
    hidden = ("PYTHONPATH", "MARGROVE_CACHE_DIR", "HOME", "XDG_CACHE_HOME")
    settings = {k: v for k, v in os.environ.items() if k not in hidden}
    settings |= {"MARGROVE_KERNELS": str(folder), "MARGROVE_CACHE_DIR": ""}
    settings |= {name: str(value) for name, value in environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", FIT.replace("{before}", before)],
        capture_output=True, text=True, env=settings, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """A folder of machine code, and what the process found that compiled it."""
    cache, folder = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("kernels")
    first, _ = run("", MARGROVE_CACHE_DIR=cache)
    assert first["compiled"] > 0
    assert first["reason"] == "MARGROVE_KERNELS is empty"
    assert pack_kernels(next(cache.iterdir()), folder, LEVEL) >= first["compiled"]
    return folder, first


@pytest.fixture
def copied(made: tuple[Path, dict], tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "kernels"))


def rewrite_list(folder: Path, **values: str) -> None:
    """Change values of a list, and its hash with it."""
    path = folder / f"{LEVEL}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "levels.json").write_text(json.dumps({LEVEL: digest}))


def test_nothing_is_compiled_without_a_home_and_the_result_is_the_same(made) -> None:
    folder, first = made
    found, log = run(folder)
    assert found["compiled"] == 0
    assert found["level"] == LEVEL
    assert found["coef"] == first["coef"]
    assert "compiled" not in log


def test_a_damaged_entry_is_not_unpickled(made, copied) -> None:
    content = bytearray((copied / f"{LEVEL}.bin").read_bytes())
    content[::1000] = b"?" * len(content[::1000])
    (copied / f"{LEVEL}.bin").write_bytes(content)
    refuse = (
        "import pickle\n"
        "from margrove._runtime import shipped_kernels\n"
        "class Refusing:\n"
        "    loads = staticmethod(lambda content: 1 / 0)\n"
        "shipped_kernels.pickle = Refusing"
    )
    found, log = run(copied, refuse)
    assert found["compiled"] > 0
    assert found["coef"] == made[1]["coef"]
    assert log.count("is damaged") == 1
    assert "Install margrove again" in log


@pytest.fixture
def found_in(monkeypatch, caplog):
    """What a process would find in a folder, and the messages of its logger."""
    caplog.set_level("INFO", logger="margrove")

    def find(folder: object) -> tuple[KernelSource, str]:
        monkeypatch.setenv("MARGROVE_KERNELS", str(folder))
        shipped_kernels._warn_once.cache_clear()
        return kernel_source.__wrapped__(), caplog.text

    return find


@pytest.mark.parametrize("name", [f"{LEVEL}.json", "levels.json"])
def test_a_damaged_list_is_not_used(copied, found_in, name) -> None:
    (copied / name).write_text((copied / name).read_text()[:-20])
    source, log = found_in(copied)
    assert source.level is source.kernels is None
    assert name in source.reason
    assert log.count("WARNING") == 1


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"Numba": "0.1"}, "made with Numba 0.1 and not 0."),
        ({"Python": "cpython-27"}, "made with Python cpython-27 and not cpython-3"),
        ({"platform": "abacus"}, f"made with platform abacus and not {sys.platform}"),
    ],
)
def test_code_of_other_versions_is_not_used(copied, found_in, values, told) -> None:
    rewrite_list(copied, **values)
    source, log = found_in(copied)
    assert source.level is source.kernels is None
    assert told in source.reason
    assert log.count("Kernels are compiled at their first use") == 1


def test_a_processor_that_lacks_instructions_does_not_use_them(made, found_in, monkeypatch) -> None:
    monkeypatch.setattr(Level, "missing", lambda level: ["avx2", "fma"])
    source, log = found_in(made[0])
    assert source.level is source.kernels is None
    assert source.reason == "this processor lacks avx2, fma"
    assert log.count("lacks avx2") == 1


def test_an_installation_without_machine_code(tmp_path, found_in) -> None:
    source, log = found_in(tmp_path)
    assert source.level is None
    assert source.reason == "this installation has no machine code"
    assert not log


@pytest.mark.nightly
def test_code_that_is_missing_is_compiled(made, copied) -> None:
    (copied / f"{LEVEL}.bin").unlink()
    found, log = run(copied)
    assert found["compiled"] > 0
    assert log.count("cannot be read") == 1


@pytest.mark.nightly
def test_entries_of_other_sources_are_not_found(made) -> None:
    """An edit changes the name of a kernel's entry."""
    edited = (
        "from margrove._runtime.source_stamps import SourceStamps\n"
        "SourceStamps.stamp = lambda stamps, module: 'another'"
    )
    found, _ = run(made[0], edited)
    assert found["level"] == LEVEL
    assert found["compiled"] > 0


def test_levels_and_machines() -> None:
    assert Level("x", ("abacus",), frozenset()).missing() == ["a processor of type abacus"]
    assert LEVELS[0].features > LEVELS[1].features
