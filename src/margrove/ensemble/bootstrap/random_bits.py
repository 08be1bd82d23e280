"""Random bits without a state: a function of a key, the same on every machine and thread."""

from __future__ import annotations

import numpy as np

from margrove._runtime import kernel

__all__ = ["mixed_bits", "number_below"]


@kernel(bare=True)
def mixed_bits(key, salt):
    """64 random bits that belong to a key and a salt, uint64 both: splitmix64's finish of them."""
    bits = key * np.uint64(0xD1342543DE82EF95) + salt * np.uint64(0x9E3779B97F4A7C15)
    bits += np.uint64(0x632BE59BD9B4E019)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@kernel(inner=True)
def number_below(bits, bound):
    """A number in 0 .. bound - 1 from 64 random bits, for bounds below 2^53."""
    if bound <= np.uint64(0xFFFFFFFF):
        return ((bits >> np.uint64(32)) * bound) >> np.uint64(32)
    return bits % bound
