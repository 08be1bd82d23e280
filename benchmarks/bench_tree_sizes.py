"""Sizes and errors of trees: beside scikit-learn's over twenty seeds, and multiway trees (C4.5)."""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier as Peer

from data import FOLDER, HAS_REAL
from margrove import DecisionTreeClassifier, prune

SEEDS = range(20)


def report() -> str:
    if not HAS_REAL:
        return "MARGROVE_DATA is not set."
    sys.path.insert(0, FOLDER)
    import load

    lines = [
        "Full depth, Gini. scikit-learn breaks ties by its seed; the range is over twenty.",
        "",
        "| data | leaves | scikit-learn's leaves | training accuracy | scikit-learn's |",
        "|---|---|---|---|---|",
    ]
    for name in ("letter", "spambase", "satimage"):
        X, y = load.load(name)
        X = np.ascontiguousarray(X, dtype=np.float64)
        own = DecisionTreeClassifier().fit(X, y)
        peers = [Peer(random_state=seed).fit(X, y) for seed in SEEDS]
        sizes = [peer.get_n_leaves() for peer in peers]
        scores = [peer.score(X, y) for peer in peers]
        lines.append(
            f"| {name} | {own.get_n_leaves()} | {min(sizes)} to {max(sizes)} | "
            f"{own.score(X, y):.6f} | {min(scores):.6f} to {max(scores):.6f} |"
        )
    lines += [
        "",
        "Multiway trees by gain ratio, pruned as C4.5 does; ten-fold error of both.",
        "",
        "| data | nodes | leaves | error | leaves, pruned | error, pruned |",
        "|---|---|---|---|---|---|",
    ]
    for name in ("nursery", "car", "mushroom", "tic_tac_toe", "zoo"):
        X, y = load.load(name)
        lines.append(multiway_line(name, X, np.asarray(y)))
    return "\n".join(lines)


class Pruned(DecisionTreeClassifier):
    """A multiway tree that is pruned when it is fitted."""

    def fit(self, X, y, sample_weight=None, check_input=True):
        super().fit(X, y, sample_weight)
        self.arrays_ = prune(self, "pessimistic").arrays_
        return self


def multiway_line(name, X, y):
    settings = {"criterion": "gain_ratio", "split": "multiway", "categorical_features": "all"}
    plain, pruned = DecisionTreeClassifier(**settings), Pruned()
    pruned.set_params(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Some tables are sorted: folds in their order would each lack what they are asked for.
        folds = StratifiedKFold(10, shuffle=True, random_state=0)
        errors = [1.0 - cross_val_score(m, X, y, cv=folds).mean() for m in (plain, pruned)]
        plain.fit(X, y)
        pruned.fit(X, y)
    return (
        f"| {name} | {len(plain.arrays_)} | {plain.get_n_leaves()} | {errors[0]:.4f} | "
        f"{pruned.get_n_leaves()} | {errors[1]:.4f} |"
    )
