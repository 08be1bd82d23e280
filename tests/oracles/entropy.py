"""Entropy and information gain, from their definitions."""

from __future__ import annotations

from collections import Counter
from math import log2


def entropy(labels) -> float:
    counts = Counter(labels)
    total = sum(counts.values())
    return -sum(n / total * log2(n / total) for n in counts.values())


def conditional_entropy(values, labels) -> float:
    total = len(labels)
    return sum(
        values.count(value)
        / total
        * entropy([y for v, y in zip(values, labels, strict=True) if v == value])
        for value in set(values)
    )


def information_gain(values, labels) -> float:
    return entropy(labels) - conditional_entropy(values, labels)


def gini(counts) -> float:
    total = sum(counts)
    return 1 - sum((n / total) ** 2 for n in counts)
