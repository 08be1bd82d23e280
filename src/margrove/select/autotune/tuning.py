"""What tuning has tried and chosen, and how a choice is made from scores."""

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
    "in_words",
    "told",
]

Rule = Literal["best", "one_standard_error"]

_ROUNDING = 1e-12  # of means of folds, which are equal if they differ by less
_SHOWN = 12  # trials in a text


@dataclass(frozen=True, eq=False)
class Trials:
    """Settings that were tried, the simplest model first, and how well they did.

    candidates: the parameters of each; scores float64 (t,), the greater the better;
    standard_errors float64 (t,); by_fold float64 (t, n_folds), or None where there were no folds.
    """

    candidates: tuple[dict[str, Any], ...]
    scores: np.ndarray
    standard_errors: np.ndarray
    by_fold: np.ndarray | None

    @classmethod
    def of_folds(
        cls, candidates: Sequence[dict[str, Any]], by_fold: np.ndarray, weights: np.ndarray
    ) -> Trials:
        """Means over the folds, by their weights, and standard errors from how much they differ.

        With equal weights the latter is the standard deviation of the folds / sqrt(folds).
        """
        share = weights / weights.sum()
        mean = by_fold @ share
        away = share * (by_fold - mean[:, None])
        n = len(weights)
        spread = np.sqrt((away**2).sum(axis=1) * n / (n - 1)) if n > 1 else np.zeros(len(mean))
        return cls(tuple(candidates), mean, spread, by_fold)

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
    """What a family of estimators has chosen: parameters to set, and why."""

    parameters: dict[str, Any]
    trials: Trials
    chosen: int
    sentences: tuple[str, ...]
    scoring: str
    measured_by: str = "cross-validation"

    def saying(self, *more: str) -> Choice:
        """With sentences more, before the one that says what was chosen."""
        first, *rest = self.sentences
        return replace(self, sentences=(first, *more, *rest))


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """How an estimator was tuned.

    Attributes
    ----------
    parameters : dict
        What was set on the estimator; of a pipeline, with the names of its steps.
    candidates : tuple of dict
        What was tried, the simplest model first.
    scores : ndarray of shape (n_candidates,)
        The greater the better: of rows that were held out, or out of bag.
    standard_errors : ndarray of shape (n_candidates,)
        Of the scores.
    by_fold : ndarray of shape (n_candidates, n_folds) or None
        The scores of each fold, where there were folds and they have some of their own.
    chosen : int
        Which candidate.
    scoring : str
        The name of the score, as scikit-learn has it.
    measured_by : {"cross-validation", "out-of-bag rows"}
    explanation : tuple of str
        What was done and why, in sentences.
    seconds : float
        All in all, the last fit included.
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
        """That of the choice. `explanation` says how far it can be trusted."""
        return float(self.scores[self.chosen])

    def frame(self) -> Any:
        """All that was tried as a pandas DataFrame, a row for each candidate.

        Returns
        -------
        pandas.DataFrame
        """
        names = list(dict.fromkeys(name for own in self.candidates for name in own))
        columns: dict[str, Any] = {
            name: [candidate.get(name) for candidate in self.candidates] for name in names
        }
        columns |= {"score": self.scores, "standard_error": self.standard_errors}
        if self.by_fold is not None:
            columns |= {f"fold {k}": self.by_fold[:, k] for k in range(self.by_fold.shape[1])}
        columns["chosen"] = np.arange(len(self.scores)) == self.chosen
        return data_frame(columns)

    def plot(self, *, ax: Axes | None = None) -> Picture:
        """Draw the scores against what was varied: see `margrove.plot.tuning_curve`.

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
        """Some candidates, evenly, and the chosen one."""
        n = len(self.scores)
        if n <= _SHOWN:
            return list(range(n))
        return sorted({*np.linspace(0, n - 1, _SHOWN).astype(int).tolist(), self.chosen})


def in_words(parameters: Mapping[str, Any]) -> str:
    """'C=0.1, gamma=2'."""
    return ", ".join(f"{name}={_short(value)}" for name, value in parameters.items())


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else repr(value)


def chosen_place(scores: np.ndarray, standard_errors: np.ndarray, rule: Rule) -> int:
    """The first, that is the simplest, of the best; or of those within a standard error of it."""
    usable = _usable(scores)
    best = int(usable.argmax())
    allowed = standard_errors[best] if rule == "one_standard_error" else 0.0
    rounding = _ROUNDING * max(1.0, abs(float(usable[best])))
    return int(np.argmax(usable >= usable[best] - allowed - rounding))


def _usable(scores: np.ndarray) -> np.ndarray:
    """What is no number never wins."""
    return np.where(np.isfinite(scores), scores, -np.inf)


def choice_among(parts: Sequence[Trials], rule: Rule, scoring: str, done: str) -> Choice:
    """The choice from trials in parts, and sentences: what was done, and what was chosen.

    Each part has its models in the order of their size, the simplest first; parts do not compare.
    The part with the best of all is taken, and of it what the rule says.
    """
    winner = max(range(len(parts)), key=lambda k: float(_usable(parts[k].scores).max()))
    if not np.isfinite(parts[winner].scores).any():
        raise ValueError(
            f"No setting could be scored: {scoring} is not a number for any of them. Use another "
            "scoring, or fewer folds."
        )
    own = chosen_place(parts[winner].scores, parts[winner].standard_errors, rule)
    chosen = sum(len(part.scores) for part in parts[:winner]) + own
    trials = parts[0]
    for part in parts[1:]:
        trials = trials + part
    reason = (
        "the best score, and of equal ones the simplest model"
        if rule == "best"
        else "the simplest model whose score is within a standard error of the best"
    )
    doubt = (
        f"This score is the one that decided among {len(trials.scores)}, so it is somewhat too "
        "good for new rows: judge the model by rows that were not given to autotune."
    )
    sentences = (done, f"Chosen was {reason}: {told(trials, chosen, scoring)}.", doubt)
    return Choice(trials.candidates[chosen], trials, chosen, sentences, scoring)


def told(trials: Trials, place: int, scoring: str) -> str:
    """'C=0.1, with accuracy 0.93 (standard error 0.01)'."""
    return (
        f"{in_words(trials.candidates[place])}, with {scoring} {trials.scores[place]:.6g} "
        f"(standard error {trials.standard_errors[place]:.2g})"
    )
