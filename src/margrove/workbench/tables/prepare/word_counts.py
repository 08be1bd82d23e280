"""Texts as counts of words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["common_words", "count_words", "words_in"]

_WORD = re.compile(r"\w\w+")


def words_in(text: str) -> list[str]:
    """Runs of at least two letters or digits, in lower case."""
    return _WORD.findall(text.lower())


def common_words(
    texts: Sequence[str], n_rows: np.ndarray, most: int, at_least: int
) -> tuple[list[str], np.ndarray]:
    """The most frequent words, sorted, and the number of rows with each.

    texts       different texts
    n_rows      the number of rows with each text
    most        the most words; among equally frequent ones, the first in the alphabet are taken
    at_least    the fewest rows of a word
    """
    found: Counter[str] = Counter()
    for text, n in zip(texts, n_rows.tolist(), strict=True):
        for word in set(words_in(text)):
            found[word] += n
    ranked = sorted((-n, word) for word, n in found.items() if n >= at_least)[:most]
    words = sorted(word for _, word in ranked)
    return words, np.array([found[word] for word in words], dtype=np.float64)


def count_words(texts: Sequence[str], words: Sequence[str]) -> Any:
    """CSR float64 (len(texts), len(words)): the count of each word in each text."""
    number = {word: j for j, word in enumerate(words)}
    indices: list[int] = []
    values: list[float] = []
    ends = np.zeros(len(texts) + 1, dtype=np.int64)
    for i, text in enumerate(texts):
        counts = Counter(j for word in words_in(text) if (j := number.get(word)) is not None)
        for j in sorted(counts):
            indices.append(j)
            values.append(counts[j])
        ends[i + 1] = len(indices)
    return sp.csr_array(
        (np.array(values, dtype=np.float64), np.array(indices, dtype=np.int64), ends),
        shape=(len(texts), len(words)),
    )
