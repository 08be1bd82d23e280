"""Raw files from compare to fit to predict to report, as a new user would type it.

Each command runs once, in a process of its own, with compiled code in the cache; wall-clock seconds
and the peak of memory of the process. `report` is that of the winner, tuned. There is no peer that
does the same.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from data import FOLDER, HAS_REAL

TABLES = {
    "titanic": ("titanic.csv.gz", []),
    "adult": ("adult.csv.gz", []),
    "bank_marketing": ("bank_marketing.csv.gz", []),
    "california": ("california.csv", []),
    "clinc150, 22,500 texts, 151 classes": (
        "clinc150.jsonl.gz",
        ["--target", "column_1", "--max-time", "10"],
    ),
    "kddcup, 494,021 rows, 23 classes": ("kddcup99_10pct.csv.gz", ["--max-time", "20"]),
}


def raw_file(name, folder):
    """In the data folder, or, where there are only arrays, written as a table first."""
    path = Path(FOLDER, name)
    if path.exists():
        return path
    import polars as pl

    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load(name.split(".")[0], dtype="float64", encode=True)
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"target": y}
    path = Path(folder, name)
    pl.DataFrame(columns).write_csv(path)
    return path


def run(*arguments, folder):
    """Seconds and standard output."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "margrove", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return seconds, done.stdout


def journey(file, options, folder):
    """A row of the table: what each step took, and what it found."""
    took = {}
    took["compare"], out = run("compare", file, "--json", *options, folder=folder)
    found = json.loads(out)
    winner = found["winner"]
    best = next(entry for entry in found["learners"] if entry["learner"] == winner)
    fit = ("fit", file, "--learner", winner, "-o", "m.margrove", "--force", "--json", *options)
    took["fit"], out = run(*fit, folder=folder)
    score = json.loads(out)["score"]
    predict = ("predict", "m.margrove", file, "-o", "p.csv", "--force", "--quiet")
    took["predict"], _ = run(*predict, folder=folder)
    report = (
        "report",
        file,
        "--learner",
        winner,
        "--no-compare",
        "-o",
        "r.html",
        "--force",
        "--json",
        *options,
    )
    took["report"], _ = run(*report, folder=folder)
    size = os.path.getsize(Path(folder, "r.html"))
    return took, winner, found["score"], best, score, size


def report():
    if not HAS_REAL:
        return "Needs the raw files: MARGROVE_DATA is not set."
    heads = ["table", "compare s", "fit s", "predict s", "report s"]
    heads += ["winner", "its score", "held out", "report kB"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    with tempfile.TemporaryDirectory() as folder:
        for title, (name, options) in TABLES.items():
            took, winner, scoring, best, score, size = journey(
                raw_file(name, folder), options, folder
            )
            lines.append(
                f"| {title}{' (' + ' '.join(options) + ')' if options else ''} | "
                + " | ".join(f"{took[step]:.1f}" for step in took)
                + f" | {winner} | {scoring} {best['score']:.4f} | {score['value']:.4f} | "
                f"{size / 1000:.0f} |"
            )
            print(lines[-1], flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    lines += ["", f"The largest of these processes took {peak:,.0f} MB at its peak."]
    return "\n".join(lines)
