"""One seed from any `random_state`."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._runtime import resumed_seed

__all__ = ["seed_of"]


def seed_of(random_state: Any) -> int:
    """A 32-bit seed from anything that scikit-learn takes as random_state, or a Generator."""
    if random_state is None:
        return resumed_seed(int(np.random.SeedSequence().generate_state(1)[0]))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    return int(random_state)
