"""Two versions of margrove on the same jobs, in the same run: is a row slower, is a bit different?

    python benchmarks/side_by_side.py OLD/src NEW/src            all jobs
    python benchmarks/side_by_side.py OLD/src NEW/src svc tree   those whose names contain a word

Each version has a process of its own, which is asked for one job after the other. They take turns,
and who goes first changes with every repeat, so that a slow minute of the machine hits both. The
first repeat compiles and is not counted. The table has medians, their ratio (above 1: the new
version is faster), the ratio of the least processor times, which other programs disturb less, and
whether predictions are the same, bit by bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPEATS = 6  # even, so that each version follows the other as often as itself
PAUSE = 0.3  # seconds; threads of BLAS that have done their work keep a core busy for a while


# -- jobs; a job returns what is compared --


def _rows(n: int, d: int, k: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows in k overlapping classes."""
    import numpy as np

    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    centres = rng.normal(size=(k, d))
    return centres[y] + 1.5 * rng.normal(size=(n, d)), y


def _targets(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """Rows and numbers that depend on them in curves."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.normal(size=n)


def _texts(n: int, d: int, seed: int = 0) -> tuple[Any, Any]:
    """A sparse table of counts, as of words."""
    import numpy as np
    import scipy.sparse as sp

    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 20 / d, format="csr", random_state=seed)
    y = (X @ rng.normal(size=d) > 0).astype(int)
    return X, y


def _seeded(model: Any) -> Any:
    """The model with a fixed seed, if it draws anything."""
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def _fit(name: str, rows: Callable[[], Any], n_predicted: int = 2_000, **parameters: Any) -> Any:
    def prepare() -> Callable[[], Any]:
        import margrove

        X, y = rows()
        model = _seeded(getattr(margrove, name)(**parameters))

        def job() -> Any:
            fitted = model.fit(X, y)
            scores = getattr(fitted, "decision_function", fitted.predict)
            return scores(X[:n_predicted])

        return job

    return prepare


def _predict(name: str, rows: Callable[[], Any], n: int, **parameters: Any) -> Any:
    def prepare() -> Callable[[], Any]:
        import margrove

        X, y = rows()
        model = _seeded(getattr(margrove, name)(**parameters)).fit(X[:2000], y[:2000])
        return lambda: model.predict(X[:n])

    return prepare


JOBS: dict[str, Callable[[], Callable[[], Any]]] = {
    "perceptron": _fit("Perceptron", lambda: _rows(100_000, 20, 3)),
    "kernel_perceptron": _fit("KernelPerceptron", lambda: _rows(3_000, 5, 2), kernel="rbf"),
    "svc": _fit("SVC", lambda: _rows(6_000, 20, 2)),
    "svc_ten_classes": _fit("SVC", lambda: _rows(4_000, 30, 10)),
    "svc_small": _fit("SVC", lambda: _rows(150, 4, 3)),
    "nu_svc": _fit("NuSVC", lambda: _rows(2_000, 20, 2), nu=0.2),
    "svr": _fit("SVR", lambda: _targets(4_000, 10)),
    "one_class": _fit("OneClassSVM", lambda: _rows(5_000, 10, 2), nu=0.1),
    "linear_svc": _fit("LinearSVC", lambda: _rows(100_000, 30, 2)),
    "linear_svc_seven_classes": _fit("LinearSVC", lambda: _rows(40_000, 30, 7)),
    "linear_svc_hinge": _fit("LinearSVC", lambda: _rows(20_000, 30, 2), loss="hinge"),
    "linear_svc_texts": _fit("LinearSVC", lambda: _texts(20_000, 20_000)),
    "linear_svc_l1": _fit("LinearSVC", lambda: _texts(5_000, 5_000), penalty="l1", dual=False),
    "linear_svr": _fit("LinearSVR", lambda: _targets(50_000, 20)),
    "svc_cv": _fit("SVCCV", lambda: _rows(600, 10, 2)),
    "tree": _fit("DecisionTreeClassifier", lambda: _rows(50_000, 20, 3)),
    "tree_small": _fit("DecisionTreeClassifier", lambda: _rows(150, 4, 3)),
    "tree_large": _fit("DecisionTreeClassifier", lambda: _rows(300_000, 10, 2), max_depth=12),
    "tree_numbers": _fit("DecisionTreeRegressor", lambda: _targets(50_000, 20)),
    "forest": _fit("RandomForestClassifier", lambda: _rows(20_000, 20, 3), n_estimators=30),
    "forest_numbers": _fit("RandomForestRegressor", lambda: _targets(10_000, 20), n_estimators=30),
    "extra_trees": _fit("ExtraTreesClassifier", lambda: _rows(20_000, 20, 3), n_estimators=30),
    "bagging": _fit("BaggingClassifier", lambda: _rows(5_000, 20, 3), n_estimators=10),
    "adaboost_stumps": _fit("AdaBoostClassifier", lambda: _rows(50_000, 20, 2)),
    "adaboost_regressor": _fit("AdaBoostRegressor", lambda: _targets(5_000, 10)),
    "hist_boosting": _fit("HistGradientBoostingClassifier", lambda: _rows(200_000, 20, 2)),
    "hist_boosting_classes": _fit("HistGradientBoostingClassifier", lambda: _rows(50_000, 20, 7)),
    "hist_boosting_numbers": _fit("HistGradientBoostingRegressor", lambda: _targets(200_000, 20)),
    "boosting": _fit("GradientBoostingClassifier", lambda: _rows(5_000, 20, 2)),
    "predict_svc": _predict("SVC", lambda: _rows(20_000, 20, 3), 20_000),
    "predict_svc_one_row": _predict("SVC", lambda: _rows(2_000, 20, 3), 1),
    "predict_tree": _predict("DecisionTreeClassifier", lambda: _rows(500_000, 20, 3), 500_000),
    "predict_forest": _predict("RandomForestClassifier", lambda: _rows(100_000, 20, 3), 100_000),
    "predict_hist_boosting": _predict(
        "HistGradientBoostingClassifier", lambda: _rows(200_000, 20, 2), 200_000
    ),
}


def _deep_adaboost() -> Callable[[], Any]:
    from margrove import AdaBoostClassifier, DecisionTreeClassifier

    X, y = _rows(4_400, 40, 11)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=6), n_estimators=20)
    return lambda: model.fit(X, y).decision_function(X)


JOBS["adaboost_deep_trees"] = _deep_adaboost


# -- a version at work --


def serve() -> None:
    """Do the jobs whose names come in, and answer with seconds and a digest of the result."""
    import warnings

    import numpy as np

    warnings.simplefilter("ignore")
    prepared: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in prepared:
            prepared = {name: JOBS[name]()}
        start, busy = time.perf_counter(), time.process_time()
        result = prepared[name]()
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        digest = hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()
        print(json.dumps([seconds, busy, digest]), flush=True)


class Version:
    """A process that has one version of the sources."""

    def __init__(self, source: str) -> None:
        settings = os.environ | {"PYTHONPATH": source}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings,
        )  # fmt: skip

    def run(self, name: str) -> tuple[float, float, str]:
        """Seconds, seconds of processor time, and a digest of the result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(name, file=self._process.stdin, flush=True)
        seconds, busy, digest = json.loads(self._process.stdout.readline())
        return seconds, busy, digest


def main(old: str, new: str, *words: str) -> None:
    versions = (Version(old), Version(new))
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(
        "\n| job | old, ms | new, ms | ratio | processor time | same bits |"
        "\n|---|---|---|---|---|---|"
    )
    for name in JOBS:
        if words and not any(word in name for word in words):
            continue
        seconds: tuple[list[float], list[float]] = ([], [])
        busy: tuple[list[float], list[float]] = ([], [])
        digests: list[set[str]] = [set(), set()]
        for repeat in range(REPEATS + 1):
            for i in (0, 1) if repeat % 2 else (1, 0):
                time.sleep(PAUSE)
                took, worked, digest = versions[i].run(name)
                digests[i].add(digest)
                if repeat:
                    seconds[i].append(took)
                    busy[i].append(worked)
        before, after = (1000 * statistics.median(times) for times in seconds)
        least = min(busy[0]) / min(busy[1])
        is_same = "yes" if len(digests[0] | digests[1]) == 1 else "no"
        ratio = before / after
        print(f"| {name} | {before:.1f} | {after:.1f} | {ratio:.2f} | {least:.2f} | {is_same} |")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        main(*(str(Path(path).resolve()) for path in sys.argv[1:3]), *sys.argv[3:])
