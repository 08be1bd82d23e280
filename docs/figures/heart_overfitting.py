"""Draw docs/_static/heart_overfitting.svg: stumps boosted on heart disease, as in the lectures.

MARGROVE_DATA must point to the folder with the data sets.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold

from margrove import AdaBoostClassifier, DecisionTreeClassifier

N_ROUNDS, N_REPEATS = 1000, 20
TARGET = Path(__file__).parent.parent / "_static" / "heart_overfitting.svg"


def heart() -> tuple[np.ndarray, np.ndarray]:
    """303 patients of Cleveland: labels as columns of zeros and ones, missing numbers as medians;
    disease (1 to 4 on the original scale) or none."""
    sys.path.insert(0, os.environ["MARGROVE_DATA"])
    import load
    import pandas as pd

    X, y = load.load("heart_cleveland")
    X = X.fillna(X.median(numeric_only=True))
    return pd.get_dummies(X).to_numpy(np.float64), y > 0


def errors() -> tuple[np.ndarray, np.ndarray]:
    """Of training and test rows after each round, the mean of all folds."""
    X, y = heart()
    stump = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = AdaBoostClassifier(stump, n_estimators=N_ROUNDS)
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=N_REPEATS, random_state=0)
    curves = np.zeros((2, N_ROUNDS))
    for train, test in folds.split(X, y):
        history: Any = model.fit(X[train], y[train], X_val=X[test], y_val=y[test]).history_
        curves += history.training_error, history.validation_error
    training, held_out = curves / folds.get_n_splits()
    return training, held_out


def draw(training: np.ndarray, test: np.ndarray) -> None:
    from matplotlib.figure import Figure

    from margrove.plot.drawing.canvas import class_style

    mpl.rcParams["svg.hashsalt"] = "margrove"  # the same file from the same numbers
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = figure.subplots()
    rounds = np.arange(1, len(test) + 1)
    best = int(np.argmin(test))
    axes.plot(rounds, test, color=class_style(1)["color"], label="test error")
    axes.plot(rounds, training, color=class_style(0)["color"], label="training error")
    axes.plot(
        [best + 1], [test[best]], "o", color="black",
        label=f"best: {best + 1} rounds, {100 * test[best]:.1f} %",
    )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("rounds")
    axes.set_ylabel("share misclassified")
    axes.legend()
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    training, test = errors()
    for t in (1, 10, 100, 1000):
        print(f"{t:5d} rounds: training {training[t - 1]:.3f}, test {test[t - 1]:.3f}")
    print(f"best after {int(np.argmin(test)) + 1}: {test.min():.3f}")
    draw(training, test)
