"""Draw docs/_static/boosting_rounds.svg: the ten points of the lectures, round by round."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from margrove import AdaBoostClassifier, DecisionTreeClassifier
from margrove.datasets import load_boosting_points
from margrove.plot import boosting_rounds

TARGET = Path(__file__).parent.parent / "_static" / "boosting_rounds.svg"

if __name__ == "__main__":
    mpl.rcParams["svg.hashsalt"] = "margrove"  # the same file from the same numbers
    X, y = load_boosting_points(return_X_y=True)
    stump = DecisionTreeClassifier(max_depth=1, criterion="error")
    model = AdaBoostClassifier(stump, n_estimators=3).fit(X, y)
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    boosting_rounds(model, X, y, axes=figure.subplots(2, 2))
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None})
