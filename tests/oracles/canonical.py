"""The canonical form by dictionary: content of a row and its target -> summed weight."""

from __future__ import annotations

import numpy as np


def naive_groups(X, target, weight) -> dict[tuple, float]:
    groups: dict[tuple, list[float]] = {}
    for row, label, w in zip(np.asarray(X) + 0.0, target, weight, strict=True):
        if w > 0:
            groups.setdefault((*row.tolist(), label), []).append(float(w))
    return {key: sum(sorted(weights)) for key, weights in groups.items()}
