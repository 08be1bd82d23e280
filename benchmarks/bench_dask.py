"""Learners on a Dask cluster of this machine: two workers of one thread each, on two cores.

Against margrove's own fit on two threads (the models are the same, byte for byte, and that is
checked), and against the Dask estimators of LightGBM and XGBoost on the same cluster, with the same
partitions, which lie in the workers' memory before the clock starts. Contestants take turns;
medians. Settings are those of `bench_gradient_boosting`; the loss is that of rows held back.

    python benchmarks/compare.py dask
    python benchmarks/bench_dask.py large [FOLDER]    20 million rows of Parquet, 1.5 GB a worker
    python benchmarks/bench_dask.py workers           rounds and exchanges of 1, 2 and 4 workers
"""

from __future__ import annotations

import glob
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import dask.array as da
import distributed
import numpy as np
from sklearn.metrics import log_loss

import dask_programs
import margrove
import margrove.dask
from compare import write_section
from data import HAS_REAL, ORIGIN, covtype

N_PARTITIONS = 8
LOCAL, REMOTE = "local, 2 threads", "two workers"
REPEATS = 3  # of boosting; of forests of the larger table there is one run
LARGE_ROWS, LARGE_COLUMNS, LARGE_FILES = 20_000_000, 20, 40


@contextmanager
def cluster(n_workers=2, **settings):
    with (
        distributed.LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
            **settings,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


# -- tables --


def covtype_split():
    X, y = covtype()
    y = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(0).permutation(len(X))
    held_back, own = np.split(order, [len(X) // 5])  # LightGBM fails on rows in their order
    return X[own], y[own], X[held_back], y[held_back]


def five_million():
    X, y = generated(5_000_000, 20, seed=0)
    X_test, y_test = generated(200_000, 20, seed=1)
    return X, y, X_test, y_test


def generated(n, d, seed):
    """Two classes: waves, products, and a tenth of the labels at random."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] - (X[:, 4] > 0.5)
    y = (score + 0.3 * rng.standard_normal(n) > 0).astype(np.int64)
    noisy = rng.random(n) < 0.1
    y[noisy] = rng.integers(0, 2, int(noisy.sum()))
    return X, y


def on_cluster(X, y):
    """In partitions, which lie on the workers when this returns."""
    step = -(-len(X) // N_PARTITIONS)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # that the graph is large: it is sent before the clock starts
        partitions = (
            da.from_array(X, (step, X.shape[1])).persist(),
            da.from_array(y, step).persist(),
        )
    distributed.wait(partitions)
    return partitions


# -- contestants --


def boosting(rounds):
    import lightgbm
    import xgboost.dask

    def light(X, y, client):
        model = lightgbm.DaskLGBMClassifier(
            n_estimators=rounds, tree_learner="data", verbose=-1, client=client
        )
        return model.fit(X, y).to_local()

    def extreme(X, y, client):
        model = xgboost.dask.DaskXGBClassifier(
            n_estimators=rounds,
            learning_rate=0.1,
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            tree_method="hist",
            max_bin=255,
            reg_lambda=0.0,
        )
        model.client = client
        model.fit(X, y)
        found = xgboost.XGBClassifier()
        found._Booster, found.n_classes_ = model.get_booster(), model.n_classes_
        return found

    return {
        "LightGBM": light,
        "XGBoost": extreme,
    }


def file_of(model, folder):
    path = Path(folder, "model")
    margrove.save(model, path)
    return path.read_bytes()


def compared(table, made, size, settings, has_peers, repeats):
    """Markdown: seconds of all contestants, ratios, and losses.

    Where there are peers, we also run as many rounds as it takes to reach the loss of the best.
    """
    X, y, X_test, y_test = table()
    ours = partial(made, margrove.dask, **settings)
    seconds, losses, files = {}, {}, {}

    def run(name, fit):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            model = fit()
            taken = time.perf_counter() - start
        seconds.setdefault(name, []).append(taken)
        if name not in losses:
            losses[name] = log_loss(y_test, model.predict_proba(X_test), labels=np.unique(y))
            if name in (LOCAL, REMOTE):
                files[name] = file_of(model, folder)

    with cluster() as client, tempfile.TemporaryDirectory() as folder:
        partitions = on_cluster(X, y)
        made(margrove, size, n_jobs=2, **settings)().fit(X[:5000], y[:5000])  # loads kernels
        ours(2)().fit(*on_cluster(X[:5000], y[:5000]))
        contestants = {
            LOCAL: lambda: made(margrove, size, n_jobs=2, **settings)().fit(X, y),
            REMOTE: lambda: ours(size)().fit(*partitions).to_local(),
        }
        for name, fit in boosting(size).items() if has_peers else ():
            contestants[name] = lambda fit=fit: fit(*partitions, client)
        for name, fit in contestants.items():
            run(name, fit)
        if has_peers:
            best = min(losses[name] for name in boosting(size))
            longer = made(margrove, 3 * size // 2, n_jobs=2, **settings)().fit(X, y)
            enough = rounds_for(longer, best, X_test, y_test)
            name = f"{REMOTE}, {enough} rounds: the best loss of the others"
            contestants[name] = lambda: ours(enough)().fit(*partitions).to_local()
            run(name, contestants[name])
        for _ in range(repeats - 1):
            for name, fit in contestants.items():
                run(name, fit)
    medians = {name: statistics.median(own) for name, own in seconds.items()}
    rows = [
        f"| {name} | {own:.1f} | {own / medians[REMOTE]:.2f}x | {losses[name]:.4f} |"
        for name, own in medians.items()
    ]
    head = "| | seconds | ratio | loss |\n|---|---|---|---|\n"
    same = "the same bytes" if files[LOCAL] == files[REMOTE] else "DIFFERENT FILES"
    return head + "\n".join(rows) + f"\n\nModel files, local and of two workers: {same}.\n"


def rounds_for(model, loss, X, y):
    """After how many rounds a model is as good as that."""
    stages = enumerate(model.staged_predict_proba(X), start=1)
    good = (k for k, found in stages if log_loss(y, found, labels=model.classes_) <= loss)
    return next(good, model.n_iter_)


def boosted(module, rounds, **settings):
    return lambda: module.HistGradientBoostingClassifier(
        max_iter=rounds, early_stopping=False, random_state=0, **settings
    )


def grown(module, trees, **settings):
    return lambda: module.RandomForestClassifier(trees, random_state=0, **settings)


TABLES = (
    ("Boosting, covtype (464,810 rows, 54 columns, 7 classes), 100 rounds", covtype_split,
     boosted, 100, {}, True),
    ("Boosting, 5 million rows, 20 columns, 30 rounds", five_million, boosted, 30, {}, True),
    ("Forest, covtype, 20 trees", covtype_split, grown, 20, {}, False),
    ("Forest, 5 million rows, 4 trees, max_bins=255, min_samples_leaf=20", five_million, grown, 4,
     {"max_bins": 255, "min_samples_leaf": 20}, False),
)  # fmt: skip


def report():
    sections = ["A ratio above 1: two workers are faster.", ORIGIN if not HAS_REAL else ""]
    for name, table, made, size, settings, has_peers in TABLES:
        print(name, flush=True)
        repeats = REPEATS if has_peers or "5 million" not in name else 1
        found = compared(table, made, size, settings, has_peers, repeats)
        print(found, flush=True)
        sections.append(f"### {name}\n\n{found}")
    return "\n\n".join(section for section in sections if section)


# -- larger than memory --


def write_large(folder):
    import pandas as pd

    Path(folder).mkdir(parents=True, exist_ok=True)
    rows = LARGE_ROWS // LARGE_FILES
    for k in range(LARGE_FILES):
        path = Path(folder, f"part-{k:02d}.parquet")
        if path.exists():
            continue
        rng = np.random.default_rng(k)
        X = rng.standard_normal((rows, LARGE_COLUMNS))
        score = X[:, :5] @ [1.0, -0.8, 0.6, 0.4, -0.2] + 0.5 * rng.standard_normal(rows)
        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(LARGE_COLUMNS)])
        frame.assign(y=(score > 0).astype(np.int64), t=score).to_parquet(path)


class MemoryWatch:
    """The most memory that any worker has had."""

    def __init__(self, client):
        import psutil

        self._processes = [psutil.Process(own) for own in client.run(os.getpid).values()]
        self._is_over = threading.Event()
        self.peak = 0.0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self):
        import psutil

        while not self._is_over.wait(0.1):
            for own in self._processes:
                try:
                    self.peak = max(self.peak, own.memory_info().rss / 1e9)
                except psutil.NoSuchProcess:
                    self.peak = float("inf")

    def stop(self):
        self._is_over.set()
        return self.peak


def large(folder):
    """A table of 3.2 GB in workers of 1.5 GB each; each model in a cluster of its own."""
    import dask.dataframe as dd

    write_large(folder)
    rows = []
    for model in (
        margrove.dask.HistGradientBoostingClassifier(random_state=0),
        margrove.dask.LinearSVC(),
        margrove.dask.LinearSVR(loss="squared_epsilon_insensitive"),
    ):
        with cluster(memory_limit="1.5GB") as client:
            frame = dd.read_parquet(sorted(glob.glob(f"{folder}/*.parquet")))
            target = frame["t" if isinstance(model, margrove.LinearSVR) else "y"]
            watch, start = MemoryWatch(client), time.perf_counter()
            model.fit(frame.drop(columns=["y", "t"]), target)
            seconds, peak = time.perf_counter() - start, watch.stop()
            lost = "none" if np.isfinite(peak) else "some"
        what = type(model).__name__
        if hasattr(model, "n_iter_") and what.startswith("Hist"):
            what += f" ({model.n_iter_} rounds, early stopping)"
        rows.append(f"| {what} | {seconds:.0f} | {peak:.2f} | {lost} |")
        print(rows[-1], flush=True)
        if isinstance(model, margrove.HistGradientBoostingClassifier):
            boosting = model.to_local()
    head = "| | seconds | largest worker, GB | workers lost |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + f"\n\n{compared_with_local(boosting, folder)}"


def compared_with_local(model, folder):
    """Whether a fit of the same file on this machine gives the same bytes."""
    import pandas as pd

    frame = pd.concat([pd.read_parquet(path) for path in sorted(glob.glob(f"{folder}/*.parquet"))])
    X, y = frame.drop(columns=["y", "t"]), frame["y"]
    del frame
    start = time.perf_counter()
    local = margrove.HistGradientBoostingClassifier(random_state=0, n_jobs=2).fit(X, y)
    seconds = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as files:
        is_same = file_of(model, files) == file_of(local, files)
    same = "the same bytes" if is_same else "DIFFERENT FILES"
    return (
        f"The boosting model of a local fit with all memory and two threads ({seconds:.0f} s of "
        f"fit): {same}."
    )


# -- the cost model --


# Constants of docs/scale.md, which this machine is held against.
COUNT, SPLIT, REST = 0.5e-9, 1.5e-9, 20e-9  # seconds a row: and column and pass; level; and tree
PASSES, LEVELS, IN_VAIN = 1.7, 4.6, 1.4
SEARCH = 6e-9  # seconds a cell of a histogram, for the splits of both children
MESSAGE, BANDWIDTH = 0.3e-3, 0.7e9  # of one exchange between two workers, with what surrounds it
CORES = 2


def expected(n_rows, table, n_workers, *, by_messages, n_trees=7, leaves=31, exchanges=28):
    """Seconds of a round, and bytes of its sums, by the formulas of docs/scale.md."""
    row = COUNT * len(table.cells_at) * PASSES + SPLIT * LEVELS + REST
    n_bytes = n_trees * table.n_cells * (24 + 8 * IN_VAIN * leaves)
    n_messages = np.ceil(np.log2(n_workers)) if by_messages else 0
    sending = n_messages * (exchanges * MESSAGE + n_bytes / BANDWIDTH)
    searching = n_trees * leaves * table.n_cells * SEARCH
    crowd = max(n_workers / CORES, 1.0)  # workers on each core
    return crowd * (n_rows / n_workers * n_trees * row + searching + sending), n_bytes


def scaling():
    """Seconds of a round, and the bytes of its sums, with 1, 2 and 4 workers."""
    from margrove.dask.boosting import rounds
    from margrove.ensemble.gradient.hist.binning.tables import bins_and_table

    X, y, *_ = covtype_split()
    table = bins_and_table(X, np.zeros(X.shape[1], np.int64), n_threads=2)[1]
    rows, usual = [], rounds.boost
    rounds.boost = dask_programs.measured_boost
    try:
        for n_workers, by_messages in ((1, False), (2, False), (4, False), (2, True), (4, True)):
            with cluster(n_workers) as client:
                if by_messages:
                    client.run(dask_programs.only_messages)
                partitions = on_cluster(X, y)
                boosted(margrove.dask, 1)().fit(*partitions)
                boosted(margrove.dask, 40)().fit(*partitions)
                first, *_, last = next(
                    found for found in client.run(dask_programs.rounds).values() if found
                )
                seconds, waiting, calls, n_bytes = (np.array(last) - np.array(first)) / 40
            wanted, told = expected(len(X), table, n_workers, by_messages=by_messages)
            rows.append(
                f"| {n_workers} | {'messages' if by_messages else 'memory'} | {first[0]:.2f} | "
                f"{seconds:.3f} | {wanted:.3f} | {waiting:.3f} | {calls:.0f} | "
                f"{n_bytes / 1e6:.1f} | {told / 1e6:.1f} |"
            )
            print(rows[-1], flush=True)
    finally:
        rounds.boost = usual
    head = (
        "| workers | sums by | seconds before the first round | seconds a round | expected | "
        "in sums | sums | MB a round | expected |\n"
    )
    return head + "|---|---|---|---|---|---|---|---|---|\n" + "\n".join(rows)


def exchanges():
    """Milliseconds of a sum between workers."""
    from margrove.dask.members import Members
    from margrove.dask.partitions import partitions_of

    rows = []
    for n_workers in (2, 4):
        for by_messages in (False, True):
            with cluster(n_workers) as client:
                if by_messages:
                    client.run(dask_programs.only_messages)
                table = partitions_of(da.ones((800, 2), chunks=(100, 2)), client=client)
                workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
                with Members(table, workers, dask_programs.exchange) as members:
                    found, *_ = members.results()
            for size, (clock, processor) in zip(dask_programs.SIZES, found, strict=True):
                rows.append(
                    f"| {n_workers} | {'messages' if by_messages else 'memory'} | {size / 1e3:g} | "
                    f"{clock:.2f} | {processor:.2f} |"
                )
                print(rows[-1], flush=True)
    head = (
        "| workers | sums by | kB | ms | ms of the processor of a worker |\n|---|---|---|---|---|\n"
    )
    return head + "\n".join(rows)


if __name__ == "__main__":
    if sys.argv[1] == "large":
        write_section("dask_large", large(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp()))
    else:
        write_section("dask_workers", f"{scaling()}\n\nSums between workers:\n\n{exchanges()}")
