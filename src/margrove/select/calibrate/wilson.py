"""Wilson's interval of a share."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

__all__ = ["wilson_interval"]


def wilson_interval(share: Any, n: Any, level: float = 0.95) -> tuple[Any, Any]:
    """Wilson's (1927) interval of a share that was seen in n rows: floats, or arrays of them.

    It holds all shares from which the seen one is at most z standard deviations away, where z is
    the normal quantile of the level.

    Examples
    --------
    >>> from margrove.select.calibrate.wilson import wilson_interval
    >>> [round(end, 3) for end in wilson_interval(0.9, 100)]
    [0.826, 0.945]
    """
    z = float(ndtri(0.5 + 0.5 * level))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    low, high = np.maximum(middle - reach, 0.0), np.minimum(middle + reach, 1.0)
    return (low, high) if np.ndim(low) else (float(low), float(high))
