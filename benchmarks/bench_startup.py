"""How long one waits for the first answer, in new processes.

From the start of the process to the answer; what the interpreter does to end itself is not waited
for. Measured in an environment of its own that holds what `pip install margrove` brings and no
more, and in this one: scikit-learn imports pandas where it is installed, which alone takes longer
than a small fit.
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
IMPORT = "import margrove"
HELP = "from margrove.cli import cli; cli.main(['--help'], standalone_mode=False)"
FIT = "from margrove import Perceptron; Perceptron().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])"
PEER = "import sklearn.base"
ANSWER = "\nimport time; print(); print(time.time())"
LIMITS = {
    "import margrove": 0.3,
    "margrove --help": 0.3,
    "first Perceptron().fit, cold": 5.0,
    "first Perceptron().fit, warm": 1.2,
    "(import sklearn.base alone)": "",
}


def timed(python, code, cache, repeats):
    """Median seconds to the answer, the first process unmeasured (it writes bytecode)."""
    settings = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    settings["MARGROVE_CACHE_DIR"] = str(cache)
    times = []
    for _ in range(repeats):
        start = time.time()
        command = [str(python), "-c", code + ANSWER]
        done = subprocess.run(command, env=settings, check=True, capture_output=True, text=True)
        times.append(float(done.stdout.split()[-1]) - start)
    return statistics.median(times[1:] if repeats > 1 else times)


def measure(python, folder):
    cold = []
    timed(python, FIT, folder / "cache", 1)
    for attempt in range(5):
        cold.append(timed(python, FIT, folder / f"cache{attempt}", 1))
    return {
        "import margrove": timed(python, IMPORT, folder / "cache", 9),
        "margrove --help": timed(python, HELP, folder / "cache", 9),
        "first Perceptron().fit, cold": statistics.median(cold),
        "first Perceptron().fit, warm": timed(python, FIT, folder / "cache", 9),
        "(import sklearn.base alone)": timed(python, PEER, folder / "cache", 9),
    }


def report():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "core", with_pip=True)
        python = folder / "core" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
        core = measure(python, folder / "core")
        here = measure(sys.executable, folder / "here")
    lines = [
        "Median seconds from the start of a process to its answer.",
        "",
        "| | limit | core install | this environment |",
        "|---|---|---|---|",
    ]
    lines += [f"| {k} | {v} | {core[k]:.3f} | {here[k]:.3f} |" for k, v in LIMITS.items()]
    return "\n".join(lines) + "\n"
