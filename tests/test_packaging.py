"""The wheel in an environment of its own: installed, used, checked, upgraded.

That environment has the oldest scikit-learn that is supported, one minor version before the
current one, and none of the optional libraries.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import margrove

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parent.parent
OLDEST_SKLEARN = "1.8"

USE = """
import json, sys
import margrove, sklearn
from margrove import KernelPerceptron, Perceptron
from margrove.datasets import load_iris
X, y = load_iris(return_X_y=True)
model = Perceptron(max_iter=7, tol=None).fit(X, y)
optional = [name for name in ("pandas", "polars", "pyarrow", "matplotlib") if name in sys.modules]
print(json.dumps({
    "version": margrove.__version__,
    "sklearn": sklearn.__version__,
    "file": margrove.__file__,
    "coef": model.coef_.tolist(),
    "kernel": KernelPerceptron(max_iter=3, tol=None).fit(X, y).score(X, y),
    "optional": optional,
}))
"""

CHECK = """
import inspect, warnings
import margrove
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator
warnings.simplefilter("ignore")
found = [getattr(margrove, name) for name in margrove.__all__]
classes = [c for c in found if inspect.isclass(c) and issubclass(c, BaseEstimator)]
passed = 0
for cls in classes:
    results = check_estimator(cls(), on_skip=None, on_fail="raise")
    passed += sum(result["status"] == "passed" for result in results)
print(len(classes), passed)
"""


def run(*command, **settings):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, **settings
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(source: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The Python of an empty environment with the wheel in it, and its settings."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", wheel, f"scikit-learn=={OLDEST_SKLEARN}.*")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA", "COV"))}
    settings["MARGROVE_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    return python, settings


def test_the_wheel_holds_the_package_and_nothing_else(wheel) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"margrove", f"margrove-{margrove.__version__}.dist-info"}
    assert "margrove/py.typed" in names
    metadata = zipfile.ZipFile(wheel).read(f"margrove-{margrove.__version__}.dist-info/METADATA")
    assert f"scikit-learn>={OLDEST_SKLEARN}".encode() in metadata
    assert b"License-Expression: BSD-3-Clause" in metadata


def test_it_works_where_only_the_core_is_installed(installed, tmp_path) -> None:
    python, settings = installed
    found = json.loads(run(python, "-c", USE, env=settings, cwd=tmp_path))
    assert found["version"] == margrove.__version__
    assert found["sklearn"].startswith(OLDEST_SKLEARN)
    assert "site-packages" in found["file"]
    assert found["optional"] == []
    assert found["kernel"] > 0.5
    program = Path(python).parent / "margrove"
    assert "iris" in run(program, "datasets", env=settings, cwd=tmp_path)
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    for table in (["x.csv"], ["--data", "iris"]):
        refused = subprocess.run(
            [program, "compare", *table], capture_output=True, text=True, env=settings,
            check=False, cwd=tmp_path,
        )  # fmt: skip
        assert refused.returncode == 2
        assert "pip install 'margrove[" in refused.stderr


@pytest.mark.nightly
def test_every_estimator_passes_the_checks_of_the_oldest_scikit_learn(installed, tmp_path) -> None:
    python, settings = installed
    n_estimators, n_passed = map(int, run(python, "-c", CHECK, env=settings, cwd=tmp_path).split())
    assert n_estimators >= 4
    assert n_passed > 40 * n_estimators


@pytest.mark.nightly
def test_an_upgrade_never_runs_the_old_machine_code(installed, tmp_path) -> None:
    """Two versions that differ in one kernel, in another file than the kernel that calls it."""
    python, settings = installed
    before = json.loads(run(python, "-c", USE, env=settings, cwd=tmp_path))
    source = tmp_path / "source"
    shutil.copytree(
        ROOT, source, ignore=shutil.ignore_patterns(".git", ".venv*", "tests", "docs", "*_cache")
    )
    version = source / "src" / "margrove" / "_version.py"
    version.write_text('__version__ = "99.0"\n')
    callee = source / "src" / "margrove" / "margin" / "solvers" / "perceptron" / "separation.py"
    changed = re.sub(r"(\n +f\[k\] = )total\n", r"\1total + 0.25\n", callee.read_text())
    assert changed != callee.read_text()
    callee.write_text(changed)
    new = build_wheel(source, tmp_path / "wheel")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", new)
    after = json.loads(run(python, "-c", USE, env=settings, cwd=tmp_path))
    assert after["version"] == "99.0"
    assert after["coef"] != before["coef"]
    uncached = settings | {"MARGROVE_CACHE_DIR": ""}
    assert json.loads(run(python, "-c", USE, env=uncached, cwd=tmp_path))["coef"] == after["coef"]


@pytest.mark.nightly
def test_nothing_is_compiled_where_the_wheel_has_machine_code(tmp_path) -> None:
    """Every estimator on every kind of input, in an empty environment, without a home."""
    hidden = ("PYTHON", "NUMBA", "COV", "MARGROVE")
    settings = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    builder = settings | {"MARGROVE_WHEEL_KERNELS": str(tmp_path / "kernels")}
    run(sys.executable, ROOT / "scripts" / "build_kernels.py", tmp_path / "kernels", "x86-64-v3")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT,
        env=builder)  # fmt: skip
    wheel = next(tmp_path.glob("*.whl"))
    assert "x86_64" in wheel.name
    assert wheel.stat().st_size < 60e6
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[data,kernels]")
    homeless = settings | {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
    out = run(python, ROOT / "scripts" / "count_compilations.py", env=homeless, cwd=tmp_path)
    assert out.splitlines()[-1] == "0 kernels were compiled.", out
