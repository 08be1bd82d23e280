"""What the doctor says that a fit will take, against what it takes: seconds and peak memory.

Each estimate is made by `margrove.doctor` in a process of its own, from probes of a few
seconds; the fit of all rows is then timed there, too. Memory is that of another process, which fits
1,000 rows first (compiled code is not the fit's memory) and then all of them. Fits of less than
0.2 s and peaks of less than 20 MB are listed, but do not count: nobody waits for them.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from data import FOLDER, HAS_REAL, ORIGIN, covtype

SECONDS_THAT_MATTER = 0.2
MEGABYTES_THAT_MATTER = 20.0
LONGEST_REPEATED = 5.0  # seconds

SETS = {
    "covtype 20000 x 54, 7 classes": ("covtype", 20_000),
    "covtype 100000 x 54, 7 classes": ("covtype", 100_000),
    "adult 48842 x 14, categories as numbers": ("adult", None),
    "letter 20000 x 16, 26 classes": ("letter", None),
    "higgs_11k 10984 x 28": ("higgs_11k", None),
    "usps 9298 x 256, 10 classes": ("usps", None),
    "california 20640 x 8, regression": ("california", None),
    "bike_hour 17379 x 12, regression": ("bike_hour", None),
}


def table_of(name, n_rows):
    """X as numbers without gaps, y; classes are numbers."""
    if name == "covtype":
        return covtype(n_rows)
    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load(name, codes=True, encode=True)
    X = np.nan_to_num(np.ascontiguousarray(X, dtype=np.float64), nan=-1.0)
    y = np.asarray(y)
    order = np.random.default_rng(0).permutation(len(y))
    y = y.astype(np.float64) if load.info(name)["task"] == "regression" else y
    return X[order], y[order]


def learner(name):
    import margrove

    return getattr(margrove, name)()


def for_learner(X, name):
    """Scaled for those to whom that matters, as the doctor does."""
    if any(word in name for word in ("SV", "Perceptron")):
        spread = X.std(axis=0)
        return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return X


def estimate_and_time(name, n_rows):
    """Prints what the doctor expects and what fits took, learner by learner."""
    from margrove.workbench.doctor.diagnosis import doctor

    X, y = table_of(name, n_rows)
    task = "regression" if y.dtype.kind == "f" else "classification"
    doctor(X, y, task=task)  # compiles
    start = time.perf_counter()
    diagnosis = doctor(X, y, task=task)
    took = time.perf_counter() - start
    found = []
    for own in diagnosis.estimates:
        prepared = for_learner(X, own.estimator)
        found.append(own.as_dict() | {"truth": seconds_of(own.estimator, prepared, y)})
    print(json.dumps({"took": took, "estimates": found}))


def seconds_of(name, X, y):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        learner(name).fit(X, y)
        seconds.append(time.perf_counter() - start)
        if seconds[-1] > LONGEST_REPEATED:
            break
    return statistics.median(seconds)


def measure_memory(name, n_rows, learner_name):
    """Prints the megabytes that a fit takes beyond what was there before."""
    from compare import memory_figure

    X, y = table_of(name, n_rows)
    X = for_learner(X, learner_name)
    learner(learner_name).fit(X[:2500], y[:2500])
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_figure("VmRSS")
    learner(learner_name).fit(X, y)
    print((memory_figure("VmHWM") - before) * 1024 / 1e6)


def in_process(*arguments):
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def report():
    if not HAS_REAL:
        return ORIGIN
    lines, factors, memory_factors, inside = [], [], [], []
    for title, (name, n_rows) in SETS.items():
        found = in_process("--estimate", name, n_rows or 0)
        lines += [
            f"### {title}",
            "",
            f"The doctor took {found['took']:.1f} s.",
            "",
            "| | estimated s | range | s | factor | estimated MB | MB | factor |",
            "|" + "---|" * 8,
        ]
        for own in found["estimates"]:
            megabytes = in_process("--memory", name, n_rows or 0, own["estimator"])
            factor, memory_factor = own["seconds"] / own["truth"], own["megabytes"] / megabytes
            if own["truth"] >= SECONDS_THAT_MATTER:
                factors.append(factor)
                inside.append(own["seconds_low"] <= own["truth"] <= own["seconds_high"])
            if megabytes >= MEGABYTES_THAT_MATTER:
                memory_factors.append(memory_factor)
            lines.append(
                f"| {own['estimator']} | {own['seconds']:.3g} | {own['seconds_low']:.3g} .. "
                f"{own['seconds_high']:.3g} | {own['truth']:.3g} | {factor:.2f} | "
                f"{own['megabytes']:.3g} | {megabytes:.3g} | {memory_factor:.2f} |"
            )
        lines.append("")
        print("\n".join(lines[-(len(found["estimates"]) + 7) :]), flush=True)
    summary = (
        f"Of fits of at least {SECONDS_THAT_MATTER} s, {within(factors)} are within a factor of 2, "
        f"and {sum(inside)} within the range that is given.\n"
        f"Of peaks of at least {MEGABYTES_THAT_MATTER:.0f} MB, {within(memory_factors)} are within "
        "a factor of 2.\n"
    )
    return "\n".join([summary, *lines])


def within(factors):
    return f"{sum(0.5 <= own <= 2.0 for own in factors)} of {len(factors)}"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(Path(__file__).parent))
    rows = int(sys.argv[3]) or None
    if sys.argv[1] == "--estimate":
        estimate_and_time(sys.argv[2], rows)
    else:
        measure_memory(sys.argv[2], rows, sys.argv[4])
