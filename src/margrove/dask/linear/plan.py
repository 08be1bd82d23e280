"""The plan of a fit of linear machines: the settings that the client sends to all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LinearPlan"]


@dataclass(frozen=True)
class LinearPlan:
    """How rows become a problem in the units of the solver, the same for all workers.

    model             an unfitted estimator with the parameters of the fit
    scale             of the features, a power of two
    classes, factors  of a classifier; None for regression
    exponents         powers of two that scale tiny weights, as given and as counted, to about one
    centre, factor    targets are (t - centre) * factor
    n_features        d
    n_jobs            that of the estimator; a fit uses at most the threads of its Dask worker
    """

    model: Any
    kind: str
    scale: float
    bias_price: float
    n_features: int
    n_jobs: int | None
    exponents: tuple[int, int] = (0, 0)
    classes: np.ndarray | None = None
    factors: np.ndarray | None = None
    centre: float = 0.0
    factor: float = 1.0

    @property
    def n_machines(self) -> int:
        if self.classes is None or len(self.classes) == 2:
            return 1
        return len(self.classes)

    @property
    def is_smooth(self) -> bool:
        return str(self.model.loss).startswith("squared")
