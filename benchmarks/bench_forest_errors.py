"""Errors of forests: Breiman's synthetic rows, letter beside scikit-learn's, and intervals."""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import sklearn.ensemble
from sklearn.model_selection import train_test_split

import margrove
from data import FOLDER, HAS_REAL
from margrove import RandomForestClassifier, RandomForestRegressor, datasets
from paired_losses import Contestant, comparison

RUNS = 50
SEEDS = range(10)
PUBLISHED = {  # Breiman 2001: forest, single tree
    "waveform": (17.2, 34.0),
    "twonorm": (3.9, 24.7),
    "threenorm": (17.5, 38.4),
    "ringnorm": (4.9, 25.7),
}


def report() -> str:
    lines = [
        f"Breiman's synthetic rows: 300 to train, 3000 to test, 100 trees, mean of {RUNS} runs.",
        "The number of features is chosen by out-of-bag error from 1 and int(log2 d + 1).",
        "",
        "| rows | test error % | standard deviation | Breiman's | a single tree % | Breiman's |",
        "|---|---|---|---|---|---|",
    ]
    for name, (forest, tree) in PUBLISHED.items():
        errors = np.array([breiman_run(name, run) for run in range(RUNS)])
        mean = 100.0 * errors.mean(axis=0)
        lines.append(
            f"| {name} | {mean[0]:.2f} | {100.0 * errors[:, 0].std():.2f} | {forest} | "
            f"{mean[1]:.1f} | {tree} |"
        )
    if HAS_REAL:
        lines += ["", *letter_lines(), "", *interval_lines()]
    lines += ["", "Beside scikit-learn, in the default settings of both.", "", *default_lines()]
    return "\n".join(lines)


def breiman_run(name, run):
    make = getattr(datasets, f"make_{name}")
    X, y = make(300, random_state=2 * run, return_X_y=True)
    X_test, y_test = make(3000, random_state=2 * run + 1, return_X_y=True)
    forests = [
        RandomForestClassifier(100, max_features=m, oob_score=True, random_state=run).fit(X, y)
        for m in (1, int(np.log2(X.shape[1]) + 1))
    ]
    best = max(forests, key=lambda forest: forest.oob_score_)
    single = np.mean([1.0 - tree.score(X_test, y_test) for tree in best])
    return 1.0 - best.score(X_test, y_test), single


def default_lines():
    """Categories are codes, since scikit-learn's forests do not take labels."""
    libraries = {"margrove": margrove, "scikit-learn": sklearn.ensemble}
    ours, peer = (
        Contestant(
            name,
            partial(library.RandomForestClassifier, n_jobs=1, random_state=0),
            partial(library.RandomForestRegressor, n_jobs=1, random_state=0),
        )
        for name, library in libraries.items()
    )
    return comparison(ours, [peer], with_labels=False, with_probabilities=False)


def letter_lines():
    sys.path.insert(0, FOLDER)
    import load

    X, y = load.load("letter")
    X = np.ascontiguousarray(X, dtype=np.float64)
    ours, out_of_bag, theirs = [], [], []
    for seed in SEEDS:
        train, test, y_train, y_test = train_test_split(X, y, train_size=16_000, random_state=seed)
        forest = RandomForestClassifier(300, random_state=seed, oob_score=True)
        ours.append(1.0 - forest.fit(train, y_train).score(test, y_test))
        out_of_bag.append(1.0 - forest.oob_score_)
        peer = sklearn.ensemble.RandomForestClassifier(300, random_state=seed, n_jobs=-1)
        theirs.append(1.0 - peer.fit(train, y_train).score(test, y_test))
    line = (
        f"letter, 16000 to train and 4000 to test, 300 trees, {len(SEEDS)} seeds and splits: test "
        f"error {100 * np.mean(ours):.2f} % (scikit-learn {100 * np.mean(theirs):.2f} %), "
        f"out-of-bag error {100 * np.mean(out_of_bag):.2f} %."
    )
    return [line]


def interval_lines():
    import load

    lines = [
        "Intervals of 100 trees with at least five samples a leaf; a third of the rows to test.",
        "Coverage in %, by nominal coverage.",
        "",
        "| data | kind | 80 | 90 | 95 | mean width at 90 |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("california", "diamonds", "bike_hour"):
        X, y = load.load(name) if name == "california" else load.load(name, codes=True)
        X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        train, test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
        forest = RandomForestRegressor(
            100, min_samples_leaf=5, oob_score=True, keep_samples=True, random_state=0
        ).fit(train, y_train)
        for kind in ("conformal", "local", "quantiles"):
            covered, widths = [], []
            for level in (0.8, 0.9, 0.95):
                if kind == "quantiles":
                    tail = 0.5 * (1.0 - level)
                    bounds = forest.predict_quantiles(test, [tail, 1.0 - tail])
                else:
                    bounds = forest.predict_interval(test, level, method=kind)
                covered.append(np.mean((bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1])))
                widths.append(np.mean(bounds[:, 1] - bounds[:, 0]))
            shown = " | ".join(f"{100 * share:.1f}" for share in covered)
            lines.append(f"| {name} | {kind} | {shown} | {widths[1]:.4g} |")
    return lines
