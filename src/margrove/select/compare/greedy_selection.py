"""Greedy selection of the members of an average."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["Score", "select"]

Score = Callable[[np.ndarray], float]


def select(
    answers: np.ndarray, score: Score, *, n_rounds: int = 30, n_bags: int = 0, seed: int = 0
) -> np.ndarray:
    """How often greedy selection with replacement takes each member.

    It starts with the N best members, for the N with the best average. Then it adds, again and
    again, the member that improves the average most; a member can be taken several times. The best
    of all these averages is returned. Among equals, the member with the better score of its own is
    taken, then the first.

    Parameters
    ----------
    answers : ndarray of shape (n_members, n_rows, ...)
        Predictions of the members for rows that they have not seen.
    score : callable
        Called with an average of answers, of shape (n_rows, ...); more is better.
    n_rounds : int, default=30
        The most members that are taken.
    n_bags : int, default=0
        Above 0, the number of selections among a random half of the members, which are added up.
    seed : int, default=0
        For the bags.

    Returns
    -------
    ndarray of shape (n_members,)

    Examples
    --------
    Two members err in opposite directions. The one with the smaller error is taken twice:

    >>> import numpy as np
    >>> from margrove.select.compare.blending import select
    >>> truth, above, below = np.zeros(3), np.ones(3), np.full(3, -2.0)
    >>> select(np.array([above, below]), lambda average: -np.abs(average - truth).mean())
    array([2, 1])
    """
    scores = [score(answer) for answer in answers]
    best_first = np.array(sorted(range(len(answers)), key=lambda member: -scores[member]))
    if not n_bags:
        return _climb(answers, best_first, score, n_rounds)
    rng = np.random.default_rng(seed)
    counts = np.zeros(len(answers), np.int64)
    for _ in range(n_bags):
        drawn = rng.permutation(len(answers))[: (len(answers) + 1) // 2]
        counts += _climb(answers, best_first[np.sort(drawn)], score, n_rounds)
    return counts


def _climb(answers: np.ndarray, best_first: np.ndarray, score: Score, n_rounds: int) -> np.ndarray:
    counts = np.zeros(len(answers), np.int64)
    total = np.zeros(answers.shape[1:])
    found: list[tuple[float, np.ndarray]] = []  # after each member that was added
    for size, member in enumerate(best_first[:n_rounds], 1):
        total = total + answers[member]
        counts[member] += 1
        found.append((score(total / size), counts.copy()))
    n_first = 1 + int(np.argmax([value for value, _ in found]))
    best, counts = found[n_first - 1]
    kept = counts
    total = np.tensordot(counts, answers, axes=1)
    for size in range(n_first + 1, n_rounds + 1):
        values = [score((total + answers[member]) / size) for member in best_first]
        member = best_first[int(np.argmax(values))]
        total = total + answers[member]
        counts = counts.copy()
        counts[member] += 1
        if max(values) > best:
            best, kept = max(values), counts
    return kept
