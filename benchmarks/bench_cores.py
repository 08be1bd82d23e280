"""What more cores give: the same jobs on 1, 2, 4, 8, 16 cores, next to the peers.

    python benchmarks/bench_cores.py                                   every job
    python benchmarks/bench_cores.py --cores 1,16 --jobs svc,tree --who margrove --phases

A process for each number of cores and each library is pinned to that many cores. The first fit of
a job is not counted; the table has medians of three fits, or of fewer where they take longer than
4 s together. With `--phases` a further fit runs under the profiler of Python: seconds of the
calling thread by function, in which compiled loops count for the function that calls them. Above
the table is what the machine itself can do: matrix products side by side, and the first touch of
memory. Below it are digests of what the fitted models of margrove say about generated rows: they
must be the same for all numbers of cores, and those of trees, forests and boosting on all machines.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import hashlib
import io
import json
import os
import platform
import pstats
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

REPEATS = 3
LONG = 4.0  # seconds of a job at which it is not repeated again
LEAST_SHARE = 0.02  # of a phase that is listed

Job = tuple[str, Callable[[], Any]]


def _covtype() -> tuple[np.ndarray, np.ndarray]:
    import data

    return data.covtype()


def svc(who: str, cores: int) -> Iterator[Job]:
    if who == "margrove":
        from margrove import SVC
    elif who == "oneDAL":
        from sklearnex.svm import SVC
    else:
        return
    import data

    X, y = data.covtype(230_000, scaled=True)
    y = y == 1
    model = SVC(C=10.0, gamma=0.1)
    yield "SVC 30,000, fit", lambda: model.fit(X[:30_000], y[:30_000])
    yield "SVC 30,000, predict 200,000", lambda: model.predict(X[30_000:])


def boosting(who: str, cores: int, n_classes: int, rounds: int) -> Iterator[Job]:
    X, y = _covtype()
    if n_classes == 2:
        y = y == 1
    if who == "margrove":
        from margrove import HistGradientBoostingClassifier

        model: Any = HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False)
    elif who == "LightGBM":
        from lightgbm import LGBMClassifier

        model = LGBMClassifier(n_estimators=rounds, n_jobs=cores, verbose=-1)
    else:
        return
    yield f"boosting, {n_classes} classes, {rounds} rounds", lambda: model.fit(X, y)


def boosting_two(who: str, cores: int) -> Iterator[Job]:
    return boosting(who, cores, 2, 50)


def boosting_seven(who: str, cores: int) -> Iterator[Job]:
    return boosting(who, cores, 7, 10)


def forest(who: str, cores: int) -> Iterator[Job]:
    if who == "margrove":
        from margrove import RandomForestClassifier
    elif who == "oneDAL":
        from sklearnex.ensemble import RandomForestClassifier
    else:
        return
    import data

    X, y = data.covtype(300_000)
    model = RandomForestClassifier(32, n_jobs=-1, random_state=0)
    yield "forest, 100,000 rows, 32 trees, fit", lambda: model.fit(X[:100_000], y[:100_000])
    yield "forest, predict 200,000", lambda: model.predict(X[100_000:])


def tree(who: str, cores: int) -> Iterator[Job]:
    if who == "margrove":
        from margrove import DecisionTreeClassifier
    elif who == "scikit-learn" and cores == 1:  # it uses one core
        from sklearn.tree import DecisionTreeClassifier
    else:
        return
    X, y = _covtype()
    yield "tree, 581,012 rows", lambda: DecisionTreeClassifier(random_state=0).fit(X, y)


def linear(who: str, cores: int) -> Iterator[Job]:
    if who != "margrove":  # LIBLINEAR: 155 s on one core, and it uses one core
        return
    from margrove import LinearSVC

    X, y = _covtype()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    yield "LinearSVC, 7 classes, 581,012 x 54", lambda: LinearSVC().fit(X, y)


def adaboost(who: str, cores: int) -> Iterator[Job]:
    if who != "margrove":
        return
    from margrove import AdaBoostClassifier

    X, y = _covtype()
    yield "AdaBoost, 50 stumps, 581,012 rows", lambda: AdaBoostClassifier().fit(X, y)


def bagging(who: str, cores: int) -> Iterator[Job]:
    """Both bag our machine: what is compared is how they use the cores."""
    from margrove import SVC

    if who == "margrove":
        from margrove import BaggingClassifier
    elif who == "scikit-learn":
        from sklearn.ensemble import BaggingClassifier
    else:
        return
    import data

    X, y = data.covtype(3_000, scaled=True)
    model = BaggingClassifier(SVC(C=10.0, gamma=0.1), 64, n_jobs=cores, random_state=0)
    yield "bagging, 64 SVC of 3,000 rows", lambda: model.fit(X, y)


JOBS: dict[str, Callable[[str, int], Iterator[Job]]] = {
    "svc": svc, "boosting2": boosting_two, "boosting7": boosting_seven, "forest": forest,
    "tree": tree, "linear": linear, "adaboost": adaboost, "bagging": bagging,
}  # fmt: skip
LIBRARIES = ("margrove", "oneDAL", "LightGBM", "scikit-learn")


def measure(who: str, cores: int, names: list[str], *, phases: bool) -> None:
    """Run in a process of its own: print a line of JSON for each job."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    for name in names:
        for label, run in JOBS[name](who, cores):
            start = time.perf_counter()
            result = run()
            first = time.perf_counter() - start
            seconds = []
            while len(seconds) < REPEATS and sum(seconds) < LONG:
                start = time.perf_counter()
                run()
                seconds.append(time.perf_counter() - start)
            line = {"job": label, "who": who, "cores": cores, "first": first, "all": seconds}
            if who == "margrove":
                line["bits"] = _digest(result)
            if phases:
                line["phases"] = _phases(run)
            print(json.dumps(line), flush=True)


def _digest(result: Any) -> str:
    """A hash of predictions, or of what a fitted model says about generated rows."""
    if not isinstance(result, np.ndarray):
        rows = np.random.default_rng(0).standard_normal((500, result.n_features_in_))
        name = "decision_function" if hasattr(result, "decision_function") else "predict_proba"
        result = getattr(result, name)(rows)
    return hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:12]


def _phases(run: Callable[[], Any]) -> list[tuple[str, float]]:
    profiler = cProfile.Profile()
    profiler.runcall(run)
    table: dict[Any, Any] = pstats.Stats(profiler).stats  # type: ignore[attr-defined]
    total = sum(entry[2] for entry in table.values())
    found = [
        (f"{Path(path).stem}.{function}" if path != "~" else function, round(entry[2], 4))
        for (path, _, function), entry in table.items()
        if entry[2] > LEAST_SHARE * total
    ]
    return sorted(found, key=lambda phase: -phase[1])


def ceiling(cores: int) -> tuple[float, float]:
    """GFLOP/s of single-threaded float32 products side by side; GB/s of first touches."""
    A = np.ones((1024, 1024), np.float32)

    def multiply() -> None:
        out = np.empty_like(A)
        for _ in range(40):
            np.matmul(A, A, out=out)

    def touch() -> None:
        np.empty(1 << 27, np.uint8).fill(1)

    return (
        cores * 40 * 2 * 1024**3 / _side_by_side(multiply, cores) / 1e9,
        cores * (1 << 27) / _side_by_side(touch, cores) / 1e9,
    )


def _side_by_side(work: Callable[[], None], count: int) -> float:
    threads = [threading.Thread(target=work) for _ in range(count)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def _child(*words: str, cores: int) -> Iterator[dict[str, Any]]:
    settings = {**os.environ, "OMP_NUM_THREADS": str(cores)}
    if words[0] == "--ceiling":
        settings["OPENBLAS_NUM_THREADS"] = "1"
    command = [sys.executable, __file__, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.startswith("{"):
                yield json.loads(line)


def main(cores: list[int], names: list[str], libraries: list[str], *, phases: bool) -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d %H:%M')}")
    packages = ("margrove", "numpy", "numba", "scikit-learn", "scikit-learn-intelex", "lightgbm")
    print(f"Python {platform.python_version()}, " + ", ".join(map(_version, packages)))
    print(
        "\n```\n" + _output("git", "rev-parse", "--short", "HEAD") + _output("lscpu", "-e") + "```"
    )
    table: dict[tuple[str, str], dict[int, float]] = {}
    split: list[str] = []
    bits: dict[str, set[str]] = {}
    for n in cores:
        for found in _child("--ceiling", str(n), cores=n):
            table.setdefault(("float32 products side by side", "GFLOP/s"), {})[n] = found["flops"]
            table.setdefault(("first touch of memory", "GB/s"), {})[n] = found["touch"]
        for who in libraries:
            words = ["--measure", who, str(n), ",".join(names), "phases" if phases else ""]
            for found in _child(*words, cores=n):
                row = table.setdefault((found["job"], who), {})
                row[n] = statistics.median(found["all"])
                if "bits" in found:
                    bits.setdefault(found["job"], set()).add(found["bits"])
                if "phases" in found:
                    shares = ", ".join(f"{name} {seconds:.3f}" for name, seconds in found["phases"])
                    split.append(f"- {found['job']}, {n} cores: {shares}")
    print("\n| job | who | " + " | ".join(map(str, cores)) + " |")
    print("|---" * (len(cores) + 2) + "|")
    for (job, who), row in sorted(table.items()):
        cells = (f"{row[n]:.3f}" if n in row else "" for n in cores)
        print(f"| {job} | {who} | " + " | ".join(cells) + " |")
    print("\nDigests:\n")
    for job, digests in sorted(bits.items()):
        print(f"- {job}: {', '.join(sorted(digests))}")
    if split:
        print("\nSeconds of the calling thread, by function:\n")
        print("\n".join(split))


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"{package} of this folder"


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


def report() -> str:
    """The tables for 1, 2, 4, ... cores, as markdown."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(_cores("1,2,4,8,16"), list(JOBS), list(LIBRARIES), phases=True)
    return text.getvalue()


def _cores(wanted: str) -> list[int]:
    return [int(n) for n in wanted.split(",") if int(n) <= (os.cpu_count() or 1)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        _, _, library, count, chosen, profiled = sys.argv
        measure(library, int(count), chosen.split(","), phases=profiled == "phases")
    elif sys.argv[1:2] == ["--ceiling"]:
        flops, touched = ceiling(int(sys.argv[2]))
        print(json.dumps({"flops": flops, "touch": touched}))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--cores", default="1,2,4,8,16")
        parser.add_argument("--jobs", default=",".join(JOBS))
        parser.add_argument("--who", default=",".join(LIBRARIES))
        parser.add_argument("--phases", action="store_true")
        given = parser.parse_args()
        main(
            _cores(given.cores),
            given.jobs.split(","), given.who.split(","), phases=given.phases,
        )  # fmt: skip
