"""The kernel cache: used, private, never in the way, never stale."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import margrove
from margrove._runtime import jit
from margrove._runtime.jit import kernel
from margrove._runtime.source_stamps import SourceStamps

PACKAGE = Path(margrove.__file__).parent

FIT = """
import json, logging, warnings
logging.basicConfig(level="INFO")
import numpy as np
from margrove import Perceptron
from margrove._runtime.jit import cache_directory
from margrove.margin.solvers.perceptron.perceptron_steps import visit_rows
X = np.array([[2.0, 1.0], [1.0, 3.0], [-1.0, -2.0], [-2.0, -1.0]])
model = Perceptron().fit(X, [1, 1, 0, 0])
stats = getattr(visit_rows, "stats", None)
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


def module_of(path, package):
    return ".".join(("margrove", *path.relative_to(package).with_suffix("").parts))


def modules_with_kernels(package):
    found = {}
    for path in package.rglob("*.py"):
        if re.search("@kernel|def row_loss", path.read_text()):
            found[module_of(path, package)] = path
    assert len(found) > 80
    return found


def test_an_edit_of_a_module_changes_the_stamps_of_all_that_import_it(tmp_path) -> None:
    copy = tmp_path / "margrove"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    modules = modules_with_kernels(copy)
    stamps = SourceStamps(copy)
    before = {module: stamps.stamp(module) for module in modules}
    assert len(set(before.values())) == len(modules)
    for edited, path in modules.items():
        source = path.read_text()
        path.write_text(source + "\n")
        after = SourceStamps(copy)
        changed = {module for module in modules if after.stamp(module) != before[module]}
        assert changed == {module for module in modules if edited in stamps.dependencies(module)}
        assert edited in changed
        path.write_text(source)


def functions_of_kernels(module):
    for value in vars(module).values():
        for kind in ("py_func", "row_loss", "row_derivatives"):
            yield getattr(value, kind, None)


def test_kernels_take_nothing_from_modules_that_are_not_in_their_stamp() -> None:
    """What the code of a kernel refers to is defined in a module that its stamp covers."""
    stamps = SourceStamps(PACKAGE)
    looked_at = 0
    for name in modules_with_kernels(PACKAGE):
        module = importlib.import_module(name)
        reached = stamps.dependencies(name)
        for function in functions_of_kernels(module):
            if function is None or function.__module__ != name:
                continue
            for used in function.__code__.co_names:
                home = getattr(function.__globals__.get(used), "__module__", None) or ""
                if home.startswith("margrove"):
                    assert home in reached, (name, function.__name__, used)
                    looked_at += 1
    assert looked_at > 500 or "NUMBA_DISABLE_JIT" in os.environ


def test_imports_of_every_form_are_followed(tmp_path) -> None:
    package = tmp_path / "margrove"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__", "a", "b", "c", "d", "inner/__init__", "inner/e"):
        (package / f"{name}.py").write_text("")
    (package / "user.py").write_text(
        "import margrove.a\n"
        "from margrove.b import (  # with a comment\n    one,\n    two as three,\n)\n"
        "from margrove import c as other\n"
        "from margrove.inner import e\n"
        "def f():\n    from margrove.d import nothing\n"
    )
    expected = {"margrove.user", "margrove.a", "margrove.b", "margrove.c", "margrove.inner.e"}
    assert SourceStamps(package).dependencies("margrove.user") == expected


@pytest.mark.nightly
def test_an_edited_kernel_is_compiled_again_with_its_callers(tmp_path) -> None:
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
    assert after["hits"] == 0
    assert after["coef"] != before["coef"]
    callee.write_text(source)
    restored, _ = run(code, MARGROVE_CACHE_DIR=cache)
    assert restored["coef"] == before["coef"]
    assert restored["hits"] > 0


def test_old_machine_code_makes_room(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(jit, "_MOST_BYTES", 250)
    for age, name in enumerate(("new.nbc", "old.nbc", "oldest.nbi")):
        path = tmp_path / name
        path.write_bytes(b"?" * 100)
        os.utime(path, (1e9 - age, 1e9 - age))
    jit._limit_size.__wrapped__(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.nbc", "old.nbc"]


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
