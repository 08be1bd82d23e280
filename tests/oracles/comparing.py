"""Comparisons and selections, written down as the papers say, with plain loops."""

from __future__ import annotations

import itertools
import math

from scipy import stats


def corrected_t(first, second, overlap, level=0.95):
    """Nadeau and Bengio (2003): mean, low, high, p."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    n_folds = len(differences)
    mean = math.fsum(differences) / n_folds
    variance = math.fsum((d - mean) ** 2 for d in differences) / (n_folds - 1)
    error = math.sqrt((1 / n_folds + overlap) * variance)
    low, high = stats.t.interval(level, n_folds - 1, loc=mean, scale=error)
    return mean, low, high, 2 * stats.t.sf(abs(mean / error), n_folds - 1)


def holm_by_closure(p_values):
    """Closed testing: a hypothesis falls if every set of hypotheses that holds it does.

    Sets are tested by Bonferroni: their size times their smallest p.
    """
    numbers = range(len(p_values))
    return [
        max(
            min(1.0, len(chosen) * min(p_values[k] for k in chosen))
            for size in range(1, len(p_values) + 1)
            for chosen in itertools.combinations(numbers, size)
            if own in chosen
        )
        for own in numbers
    ]


def _average(answers, members):
    return sum(answers[m] for m in members) / len(members)


def greedy_selection(answers, score, n_rounds):
    """Caruana et al. (2004) with sorted initialisation, on lists of members."""
    by_score = sorted(range(len(answers)), key=lambda m: -score(answers[m]))
    starts = [by_score[:size] for size in range(1, len(answers) + 1)]
    chosen = max(starts, key=lambda members: score(_average(answers, members)))
    path = [chosen]
    while len(chosen) < n_rounds:
        trials = [[*chosen, m] for m in by_score]
        chosen = max(trials, key=lambda members: score(_average(answers, members)))
        path.append(chosen)
    best = max(path, key=lambda members: score(_average(answers, members)))
    return [best.count(m) for m in range(len(answers))]


def best_multiset(answers, score, n_rounds):
    """The best score of any selection at all."""
    return max(
        score(_average(answers, members))
        for size in range(1, n_rounds + 1)
        for members in itertools.combinations_with_replacement(range(len(answers)), size)
    )
