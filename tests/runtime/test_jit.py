"""The kernel cache: used, private, never in the way, never stale."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import margrove
from margrove._runtime.jit import WITHOUT_KERNELS, kernel, stamp_of

PACKAGE = Path(margrove.__file__).parent

FIT = """
import json, logging, warnings
logging.basicConfig(level="INFO")
import numpy as np
from margrove import Perceptron
from margrove._runtime.jit import cache_directory
from margrove.margin.solvers.perceptron.perceptron import _visit_rows
X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-2.0, -1.0]])
model = Perceptron().fit(X, [1, 1, 0, 0])
stats = getattr(_visit_rows, "stats", None)
print(json.dumps({
    "coef": model.coef_.tolist(),
    "directory": str(cache_directory()),
    "hits": sum(stats.cache_hits.values()) if stats else 0,
}))
"""

LOOK = """
import json, logging
logging.basicConfig(level="INFO")
from margrove._runtime.jit import cache_directory
print(json.dumps({"directory": str(cache_directory())}))
"""
NOT_FOR_CHILDREN = ("NUMBA_DISABLE_JIT", "PYTHONPATH", "MARGROVE_CACHE_DIR")


def run(code=FIT, **environment):
    settings = {k: v for k, v in os.environ.items() if k not in NOT_FOR_CHILDREN}
    settings |= {name: str(value) for name, value in environment.items()}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    """A cache directory filled by one process, and what that process learnt."""
    cache = tmp_path_factory.mktemp("cache")
    first, log = run(MARGROVE_CACHE_DIR=cache)
    return cache, first, log


def test_the_second_process_loads_what_the_first_compiled(warm_cache) -> None:
    cache, first, log = warm_cache
    assert first["hits"] == 0
    assert "first run only" in log
    second, log = run(MARGROVE_CACHE_DIR=cache)
    assert second["hits"] > 0
    assert second["coef"] == first["coef"]
    assert "first run only" not in log
    assert Path(second["directory"]).parent == cache


@pytest.mark.parametrize(
    "damage",
    [
        "truncate",
        pytest.param("garbage", marks=pytest.mark.nightly),
        pytest.param("empty", marks=pytest.mark.nightly),
    ],
)
def test_damaged_entries_are_thrown_away(warm_cache, tmp_path, damage) -> None:
    cache, first, _ = warm_cache
    copy = tmp_path / "cache"
    subprocess.run(["cp", "-r", str(cache), str(copy)], check=True)
    for path in copy.rglob("*.nb?"):
        content = path.read_bytes()
        path.write_bytes(
            {"truncate": content[: len(content) // 2], "garbage": b"?" * 99}.get(damage, b"")
        )
    again, _ = run(MARGROVE_CACHE_DIR=copy)
    assert again["coef"] == first["coef"]
    healed, _ = run(MARGROVE_CACHE_DIR=copy)
    assert healed["hits"] > 0


def test_no_cache_when_switched_off_or_without_a_home(tmp_path) -> None:
    for code, environment in (
        (FIT, {"MARGROVE_CACHE_DIR": ""}),
        (LOOK, {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": ""}),
        (LOOK, {"XDG_CACHE_HOME": "/proc/nowhere"}),
    ):
        found, _ = run(code, **environment)
        assert found["directory"] == "None", environment


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_directory_that_others_can_write_is_refused(tmp_path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    found, log = run(LOOK, MARGROVE_CACHE_DIR=shared)
    assert found["directory"] == "None"
    assert "can be written by another user" in log


@pytest.mark.skipif(os.name != "posix", reason="umask of POSIX")
def test_a_lax_umask_does_not_spoil_the_cache(tmp_path) -> None:
    found, _ = run("import os; os.umask(0o002)\n" + LOOK, XDG_CACHE_HOME=tmp_path / "home")
    assert Path(found["directory"]).parent == tmp_path / "home" / "margrove"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="needs root to change an owner")
def test_a_directory_of_another_user_is_refused(tmp_path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    os.chown(foreign, 12345, 12345)
    found, _ = run(LOOK, MARGROVE_CACHE_DIR=foreign)
    assert found["directory"] == "None"


def test_an_edit_of_any_kernel_module_changes_the_stamp(tmp_path) -> None:
    copy = tmp_path / "margrove"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    before, seen = stamp_of(copy), set()
    modules = [path for path in copy.rglob("*.py") if "@kernel" in path.read_text()]
    assert len(modules) > 80
    for path in modules:
        source = path.read_text()
        path.write_text(source + "\n")
        seen.add(stamp_of(copy))
        path.write_text(source)
    assert len(seen) == len(modules)
    assert before not in seen
    assert stamp_of(copy) == before


def test_kernels_take_nothing_from_modules_that_are_not_in_the_stamp() -> None:
    for path in PACKAGE.rglob("*.py"):
        place, tree = path.relative_to(PACKAGE), ast.parse(path.read_text())
        if place.parts[0] in WITHOUT_KERNELS:
            assert "@kernel" not in path.read_text(), path
            continue
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("margrove."):
                folder = node.module.split(".")[1]
                assert folder not in WITHOUT_KERNELS or place.name == "__main__.py", path


@pytest.mark.nightly
def test_an_edit_of_any_kernel_file_is_another_generation(tmp_path) -> None:
    """The case Numba gets wrong: the callee is in another file than the caller."""
    site = tmp_path / "site"
    site.mkdir()
    subprocess.run(["cp", "-r", str(PACKAGE), str(site / "margrove")], check=True)
    cache = tmp_path / "cache"
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n" + FIT
    before, _ = run(code, MARGROVE_CACHE_DIR=cache)
    callee = site / "margrove" / "margin" / "solvers" / "perceptron" / "separation.py"
    source = callee.read_text()
    changed = source.replace("        f[k] = total\n", "        f[k] = -1.0 - total\n")
    assert changed != source
    callee.write_text(changed)
    after, _ = run(code, MARGROVE_CACHE_DIR=cache)
    assert after["directory"] != before["directory"]
    assert after["coef"] != before["coef"]
    callee.write_text(source)
    restored, _ = run(code, MARGROVE_CACHE_DIR=cache)
    assert restored["coef"] == before["coef"]
    assert restored["hits"] > 0


def test_old_generations_are_removed(tmp_path) -> None:
    for name in "abcdef":
        (tmp_path / f"kernels-{name * 16}").mkdir()
    mine = tmp_path / f"kernels-{'0' * 16}"
    mine.mkdir()
    (mine / "thesis.txt").write_text("not machine code")
    (tmp_path / "kernels-of-truth").mkdir()
    run(LOOK, MARGROVE_CACHE_DIR=tmp_path)
    assert (mine / "thesis.txt").exists()
    assert (tmp_path / "kernels-of-truth").exists()
    assert len(list(tmp_path.glob("kernels-*"))) == 6


@pytest.mark.nightly
def test_many_processes_may_start_cold_together(tmp_path) -> None:
    settings = os.environ | {"MARGROVE_CACHE_DIR": str(tmp_path)}
    settings.pop("NUMBA_DISABLE_JIT", None)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", FIT], stdout=subprocess.PIPE, env=settings, text=True
        )
        for _ in range(4)
    ]
    outputs = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0, 0]
    assert len({str(output["coef"]) for output in outputs}) == 1


def test_kernels_let_nan_through() -> None:
    @kernel(fast_sums=True)
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    assert np.isnan(total(np.array([1.0, np.nan])))
    assert total(np.array([1.0, np.inf])) == np.inf


@pytest.mark.nightly
def test_warmup_leaves_nothing_to_compile(tmp_path) -> None:
    code = (
        "import json, margrove; seconds = margrove.warmup()\n"
        "from margrove._runtime.jit import cache_directory\n"
        "print(json.dumps({'seconds': seconds, 'n': len(list(cache_directory().glob('*.nbc')))}))"
    )
    first, _ = run(code, MARGROVE_CACHE_DIR=tmp_path)
    assert first["n"] > 10
    fitted, _ = run(MARGROVE_CACHE_DIR=tmp_path)
    assert fitted["hits"] > 0
    again, _ = run(code, MARGROVE_CACHE_DIR=tmp_path)
    assert again["n"] == first["n"]
