"""Test accuracy of the perceptrons on real data, mean and spread over ten seeds."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Perceptron as SklearnPerceptron

from data import HAS_REAL, split
from margrove import Perceptron

SETS = ["pendigits", "satimage", "letter", "usps", "a9a", "ijcnn1"]
LEARNERS = {
    "scikit-learn": SklearnPerceptron,
    "margrove": Perceptron,
    "margrove, averaged": lambda random_state: Perceptron(average=True, random_state=random_state),
}


def report():
    if not HAS_REAL:
        return "Needs MARGROVE_DATA.\n"
    lines = [
        "Official splits, features scaled to unit variance, defaults, ten seeds: mean +- standard",
        "deviation of the test accuracy.",
        "",
        "| data | " + " | ".join(LEARNERS) + " |",
        "|---|" + "---|" * len(LEARNERS),
    ]
    for name in SETS:
        X, y, X_test, y_test = split(name)
        cells = []
        for make in LEARNERS.values():
            scores = [make(random_state=s).fit(X, y).score(X_test, y_test) for s in range(10)]
            cells.append(f"{np.mean(scores):.4f} +- {np.std(scores):.4f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
