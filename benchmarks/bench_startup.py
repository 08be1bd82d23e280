"""How long one waits for the first answer, in new processes.

Measured in an environment of its own that holds what `pip install margrove` brings and no more,
and in this one: scikit-learn imports pandas where it is installed, which alone takes longer than a
small fit.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
FIT = "from margrove import Perceptron; Perceptron().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])"
LIMITS = {
    "import margrove": 0.3,
    "margrove --help": 0.3,
    "first Perceptron().fit, cold": 5.0,
    "first Perceptron().fit, warm": 1.2,
}


def timed(command, cache, repeats):
    """Median seconds of a whole process, the first of them unmeasured (it writes bytecode)."""
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settings["MARGROVE_CACHE_DIR"] = str(cache)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, env=settings, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] if repeats > 1 else times)


def measure(python, folder):
    python = str(python)
    cold = []
    timed([python, "-c", "import sklearn.base, numba, margrove.margin.perceptron"], folder, 2)
    for attempt in range(3):
        cache = folder / f"cache{attempt}"
        cold.append(timed([python, "-c", FIT], cache, 1))
    return {
        "import margrove": timed([python, "-c", "import margrove"], cache, 9),
        "margrove --help": timed([python, "-m", "margrove", "--help"], cache, 9),
        "first Perceptron().fit, cold": statistics.median(cold),
        "first Perceptron().fit, warm": timed([python, "-c", FIT], cache, 9),
    }


def report():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "core", with_pip=True)
        python = folder / "core" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
        core, here = measure(python, folder), measure(sys.executable, folder)
    lines = [
        "Whole processes, median seconds, interpreter start included.",
        "",
        "| | limit | core install | this environment |",
        "|---|---|---|---|",
    ]
    lines += [f"| {k} | {v} | {core[k]:.3f} | {here[k]:.3f} |" for k, v in LIMITS.items()]
    return "\n".join(lines) + "\n"
