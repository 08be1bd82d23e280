"""The rectangles of a single tree, within a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.facts import tree_regions
from margrove.grove import DecisionTree
from margrove.grove.serve import OBLIQUE
from margrove.studio.content import View

__all__ = ["regions_of"]


def regions_of(model: Any, view: View) -> list[dict[str, Any]]:
    """The rectangles of a tree with threshold splits; [] for other models."""
    if not isinstance(model, DecisionTree) or np.any(model.arrays_.kind == OBLIQUE):
        return []
    found = tree_regions(model)
    low = np.maximum(found.low, [view.x[0], view.y[0]])
    high = np.minimum(found.high, [view.x[1], view.y[1]])
    is_seen = np.all(low < high, axis=1)
    classes = np.asarray(model.classes_)[found.values]
    return [
        {"x": [own_low[0], own_high[0]], "y": [own_low[1], own_high[1]], "class": label}
        for own_low, own_high, label in zip(
            low[is_seen].tolist(), high[is_seen].tolist(), classes[is_seen].tolist(), strict=True
        )
    ]
