"""Tuning: the settings that were tried, the chosen one, and the rules of choosing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove._data import data_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from margrove.plot.drawing import Picture

__all__ = [
    "Choice",
    "Rule",
    "Trials",
    "Tuning",
    "choice_among",
    "chosen_place",
    "described",
    "in_words",
]

Rule = Literal["best", "one_standard_error"]

_ROUNDING = 1e-12  # means over folds that differ by less are equal
_MAX_SHOWN = 12  # trials in a text


@dataclass(frozen=True, eq=False)
class Trials:
    """Settings that were tried, the simplest model first, and their scores.

    candidates         the parameters of each setting
    scores             float64 (t,), the greater the better
    standard_errors    float64 (t,)
    by_fold            float64 (t, n_folds), or None without folds
    """

    candidates: tuple[dict[str, Any], ...]
    scores: np.ndarray
    standard_errors: np.ndarray
    by_fold: np.ndarray | None

    @classmethod
    def of_folds(
        cls, candidates: Sequence[dict[str, Any]], by_fold: np.ndarray, weights: np.ndarray
    ) -> Trials:
        """Weighted means over the folds, and standard errors from how much the folds differ.

        With equal weights, a standard error is the standard deviation of the folds / sqrt(folds).
        """
        share = weights / weights.sum()
        mean = by_fold @ share
        deviations = share * (by_fold - mean[:, None])
        n = len(weights)
        errors = (
            np.sqrt((deviations**2).sum(axis=1) * n / (n - 1)) if n > 1 else np.zeros(len(mean))
        )
        return cls(tuple(candidates), mean, errors, by_fold)

    def __add__(self, other: Trials) -> Trials:
        both = None
        if self.by_fold is not None and other.by_fold is not None:
            both = np.concatenate([self.by_fold, other.by_fold])
        return Trials(
            self.candidates + other.candidates,
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.standard_errors, other.standard_errors]),
            both,
        )


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice of a tuner: parameters to set, and the reasons in sentences."""

    parameters: dict[str, Any]
    trials: Trials
    chosen: int
    sentences: tuple[str, ...]
    scoring: str
    measured_by: str = "cross-validation"

    def saying(self, *more: str) -> Choice:
        """The same with more sentences, before the one that names the choice."""
        first, *rest = self.sentences
        return replace(self, sentences=(first, *more, *rest))


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """How an estimator was tuned.

    Attributes
    ----------
    parameters : dict
        The parameters that were set; for a pipeline, with the names of its steps.
    candidates : tuple of dict
        The settings that were tried, the simplest model first.
    scores : ndarray of shape (n_candidates,)
        Scores of held-out or out-of-bag rows; the greater, the better.
    standard_errors : ndarray of shape (n_candidates,)
        Of the scores.
    by_fold : ndarray of shape (n_candidates, n_folds) or None
        The scores of each fold, if they were computed.
    chosen : int
        The index of the chosen candidate.
    scoring : str
        scikit-learn's name of the score.
    measured_by : {"cross-validation", "out-of-bag rows"}
    explanation : tuple of str
        Sentences: what was done, and why.
    seconds : float
        Total time, including the last fit.
    """

    parameters: dict[str, Any]
    candidates: tuple[dict[str, Any], ...]
    scores: np.ndarray
    standard_errors: np.ndarray
    by_fold: np.ndarray | None
    chosen: int
    scoring: str
    measured_by: str
    explanation: tuple[str, ...]
    seconds: float

    @property
    def score(self) -> float:
        """The score of the chosen candidate. `explanation` says whether it is too optimistic."""
        return float(self.scores[self.chosen])

    def frame(self) -> Any:
        """All candidates as a pandas DataFrame, one row each.

        Returns
        -------
        pandas.DataFrame
        """
        names = list(dict.fromkeys(name for candidate in self.candidates for name in candidate))
        columns: dict[str, Any] = {
            name: [candidate.get(name) for candidate in self.candidates] for name in names
        }
        columns |= {"score": self.scores, "standard_error": self.standard_errors}
        if self.by_fold is not None:
            columns |= {f"fold {k}": self.by_fold[:, k] for k in range(self.by_fold.shape[1])}
        columns["chosen"] = np.arange(len(self.scores)) == self.chosen
        return data_frame(columns)

    def plot(self, *, ax: Axes | None = None) -> Picture:
        """Draw the scores against the tuned parameter: see `margrove.plot.tuning_curve`.

        Returns
        -------
        Picture
        """
        from margrove.plot.models import tuning_curve

        return tuning_curve(self, ax=ax)

    def __repr__(self) -> str:
        return (
            f"Tuning({in_words(self.parameters)}; {self.scoring} {self.score:.6g} "
            f"by {self.measured_by}, {len(self.scores)} tried)"
        )

    def __str__(self) -> str:
        lines = list(self.explanation)
        shown = self._shown()
        lines.append(f"{'':2}{self.scoring:>24}  std. error  tried")
        for k in shown:
            mark = "*" if k == self.chosen else " "
            lines.append(
                f"{mark:2}{self.scores[k]:24.6g}  {self.standard_errors[k]:10.2g}  "
                f"{in_words(self.candidates[k])}"
            )
        if len(shown) < len(self.scores):
            lines.append(f"  (and {len(self.scores) - len(shown)} more; frame() has them all)")
        return "\n".join(lines)

    def _shown(self) -> list[int]:
        """The indices of some candidates, evenly spread, and of the chosen one."""
        n = len(self.scores)
        if n <= _MAX_SHOWN:
            return list(range(n))
        return sorted({*np.linspace(0, n - 1, _MAX_SHOWN).astype(int).tolist(), self.chosen})


def in_words(parameters: Mapping[str, Any]) -> str:
    """'C=0.1, gamma=2'."""
    return ", ".join(f"{name}={_short(value)}" for name, value in parameters.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else repr(value)


def chosen_place(scores: np.ndarray, standard_errors: np.ndarray, rule: Rule) -> int:
    """The index of the simplest model among the best, or within a standard error of the best."""
    usable = _usable(scores)
    best = int(usable.argmax())
    allowed = standard_errors[best] if rule == "one_standard_error" else 0.0
    rounding = _ROUNDING * max(1.0, abs(float(usable[best])))
    return int(np.argmax(usable >= usable[best] - allowed - rounding))


def _usable(scores: np.ndarray) -> np.ndarray:
    """The scores with -inf for NaN and infinite ones, which are never chosen."""
    return np.where(np.isfinite(scores), scores, -np.inf)


def choice_among(groups: Sequence[Trials], rule: Rule, scoring: str, done: str) -> Choice:
    """The choice from groups of trials, with sentences: `done`, the choice, and a caution.

    Within a group, models are sorted by size, the simplest first; sizes of different groups do not
    compare. The rule is applied to the group that has the best score of all.
    """
    winner = max(range(len(groups)), key=lambda k: float(_usable(groups[k].scores).max()))
    if not np.isfinite(groups[winner].scores).any():
        raise ValueError(
            f"No setting could be scored: {scoring} is not a number for any of them. Use another "
            "scoring, or fewer folds."
        )
    place = chosen_place(groups[winner].scores, groups[winner].standard_errors, rule)
    chosen = sum(len(group.scores) for group in groups[:winner]) + place
    trials = groups[0]
    for group in groups[1:]:
        trials = trials + group
    reason = (
        "the simplest model with the best score"
        if rule == "best"
        else "the simplest model whose score is within a standard error of the best"
    )
    caution = (
        f"This score was chosen among {len(trials.scores)}, so it is somewhat too good for new "
        "rows: judge the model by rows that were not given to autotune."
    )
    sentences = (done, f"The choice is {reason}: {described(trials, chosen, scoring)}.", caution)
    return Choice(trials.candidates[chosen], trials, chosen, sentences, scoring)


def described(trials: Trials, place: int, scoring: str) -> str:
    """'C=0.1, with accuracy 0.93 (standard error 0.01)'."""
    return (
        f"{in_words(trials.candidates[place])}, with {scoring} {trials.scores[place]:.6g} "
        f"(standard error {trials.standard_errors[place]:.2g})"
    )
