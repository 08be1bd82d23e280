"""Gradient, hessian and number of samples, packed into one 64-bit word.

    g of 11 bits and a sign | h of 11 bits | 1

The word has enough bits for the sums of 8192 samples, so a sample needs one addition. The sums of a
node of up to that size are also packed words.
"""

from __future__ import annotations

from margrove._runtime import kernel

__all__ = ["BITS", "SAMPLES_OF_A_WORD", "packed_word", "sums_of_cell", "unpacked"]

SAMPLES_OF_A_WORD = 8192
BITS = 11

_H_AT, _G_AT = 14, 39  # bit positions in a word
_H_MASK = (1 << (_G_AT - _H_AT)) - 1
_N_MASK = (1 << _H_AT) - 1


@kernel(inlined=True)
def packed_word(g, h, count):
    return (g << _G_AT) + (h << _H_AT) + count


@kernel(inlined=True)
def unpacked(word):
    """g, h and the number of samples."""
    count = word & _N_MASK
    h = (word >> _H_AT) & _H_MASK
    return (word - (h << _H_AT) - count) >> _G_AT, h, count


@kernel(inlined=True)
def sums_of_cell(sums, is_packed, cell):
    """The sums of a code; in a packed histogram the first row contains words."""
    if is_packed:
        g, h, count = unpacked(sums[0, cell])
    else:
        g, h, count = sums[0, cell], sums[1, cell], sums[2, cell]
    return g, h, count
