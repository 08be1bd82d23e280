"""How the time of a fit grows with the number of rows, and how memory keeps to `cache_size`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import sklearn.svm

import margrove
from data import ORIGIN, covtype

SIZES = (5_000, 10_000, 20_000, 40_000)
PARAMETERS = {"C": 10.0, "gamma": 0.1}


def report():
    X, y = covtype(max(SIZES), scaled=True)
    y = np.where(y == 1, 1, -1)
    contestants = {
        "margrove": lambda n: margrove.SVC(**PARAMETERS).fit(X[:n], y[:n]),
        "LIBSVM": lambda n: sklearn.svm.SVC(cache_size=4000, **PARAMETERS).fit(X[:n], y[:n]),
    }
    contestants["margrove"](SIZES[0])
    lines = [
        "covtype 2-vs-rest, RBF, C 10, gamma 0.1; seconds a fit (median of 3, LIBSVM once). "
        + ORIGIN,
        "",
        "| | " + " | ".join(f"n = {n}" for n in SIZES) + " | exponent |",
        "|" + "---|" * (len(SIZES) + 2),
    ]
    for name, fit in contestants.items():
        seconds = [median_time(fit, n, 3 if name == "margrove" else 1) for n in SIZES]
        exponent = np.polyfit(np.log(SIZES), np.log(seconds), 1)[0]
        cells = " | ".join(f"{s:.3g}" for s in seconds)
        lines.append(f"| {name} | {cells} | {exponent:.2f} |")
    lines += ["", "Peak memory of a fit of 20,000 rows beyond the loaded data:", ""]
    lines += ["| cache_size | peak MB | beyond the cache |", "|---|---|---|"]
    for cache in (50, 200, 1000):
        peak = peak_of(cache)
        lines.append(f"| {cache} MB | {peak:.0f} | {max(0.0, peak - cache):.0f} |")
    return "\n".join(lines)


def median_time(fit, n, repeats):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fit(n)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def peak_of(cache):
    command = [sys.executable, __file__, "--memory", str(cache)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(cache):
    from compare import memory_figure

    X, y = covtype(20_000, scaled=True)
    y = np.where(y == 1, 1, -1)
    margrove.SVC(**PARAMETERS).fit(X[:3000], y[:3000])  # compiled code is not the fit's memory
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_figure("VmRSS")
    margrove.SVC(cache_size=cache, **PARAMETERS).fit(X, y)
    print((memory_figure("VmHWM") - before) / 1024)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    measure(float(sys.argv[2]))
