"""Kernel functions of things that are not numbers: texts, trees, molecules.

Such a function is called once with all training objects, and once with all objects to predict and
all training objects; the machine then works on the Gram matrix. scikit-learn does so for every
function, whose Gram matrix must then fit into memory; functions of tables are called with blocks
of rows here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.margin.kernels.given_kernels import write_values
from margrove.margin.kernels.kernel import Kernel

__all__ = ["TrainingObjects", "takes_objects"]


def takes_objects(kernel: Any, X: Any) -> bool:
    """Whether the kernel is a function and X a sequence of things that are not rows of numbers."""
    if not callable(kernel) or isinstance(kernel, Kernel):
        return False
    if not isinstance(X, (list, tuple, np.ndarray)) or len(X) == 0:
        return False
    if isinstance(X, np.ndarray) and X.ndim != 1:
        return False
    first = X[0]
    return isinstance(first, (str, bytes)) or (not np.isscalar(first) and np.ndim(first) == 0)


@dataclass(frozen=True)
class TrainingObjects:
    """What was learnt from, and the kernel function of pairs of it."""

    function: Callable[[Any, Any], Any]
    objects: Any

    def gram(self, objects: Any) -> np.ndarray:
        """K of some objects and those that were learnt from, checked."""
        K = np.empty((len(objects), len(self.objects)))
        write_values(self.function, self.function(objects, self.objects), K)
        return K
