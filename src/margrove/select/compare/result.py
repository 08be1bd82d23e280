"""Comparison: scores of models, differences of pairs, and both in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from margrove._data import data_frame
from margrove.ensemble.bootstrap import ConfidenceInterval

if TYPE_CHECKING:
    from margrove.plot.drawing import Picture

__all__ = ["Comparison", "FailedModel", "ModelScore", "Pair"]


@dataclass(frozen=True, eq=False)
class ModelScore:
    """Scores of one model.

    Attributes
    ----------
    name : str
    score : float
        The mean over the folds.
    interval : ConfidenceInterval
        Of the score: `low` and `high`.
    fold_scores : ndarray of shape (n_folds,)
    fit_seconds, predict_seconds : float
        Medians over the folds: to fit the training rows, and to predict and score the test rows.
    stopped_early : bool
        Whether some fits ended before they had converged.
    """

    name: str
    score: float
    interval: ConfidenceInterval
    fold_scores: np.ndarray = field(repr=False)
    fit_seconds: float
    predict_seconds: float
    stopped_early: bool = False


@dataclass(frozen=True)
class FailedModel:
    """A model that could not be compared, its first error, and the fold where it happened."""

    name: str
    error: Exception
    fold: int | None

    @property
    def reason(self) -> str:
        """Where and why the model failed; the text follows its name in a sentence."""
        where = "" if self.fold is None else f" in fold {self.fold}"
        first_line = str(self.error).strip().partition("\n")[0].rstrip(".")
        return f"{where}: {type(self.error).__name__}: {first_line}"

    def __str__(self) -> str:
        return f"{self.name} failed{self.reason}"


@dataclass(frozen=True)
class Pair:
    """Two models, the better one first.

    Attributes
    ----------
    first, second : str
    difference : float
        The score of the first minus that of the second.
    interval : ConfidenceInterval
        Of the difference, not adjusted for the number of pairs.
    p : float
        The two-sided p-value of the difference.
    p_adjusted : float
        The p-value after Holm's adjustment for the number of pairs.
    differs : bool
        Whether `p_adjusted` is below 1 - `confidence_level`.
    """

    first: str
    second: str
    difference: float
    interval: ConfidenceInterval
    p: float
    p_adjusted: float
    differs: bool


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """The result of `compare`: models that were compared by the same folds.

    `print` shows a table and its meaning in words.

    Attributes
    ----------
    models : tuple of ModelScore
        The best first; equal ones by name.
    pairs : tuple of Pair
        All pairs of them, in this order.
    failed : tuple of FailedModel
        Models that could not be compared.
    scoring : str
        The name of the score.
    test_used : {"corrected_t", "bootstrap_rows", "bootstrap_folds"}
        The method of `p` and intervals.
    confidence_level : float
    n_folds : int
        The number of folds that all models have done.
    n_rows : int
    fitted : estimator or None
        The best model, fitted to all rows, with refit=True.
    blends : dict
        With blend=True and refit=True, the blends by name, fitted to all rows.
    blend_weights : dict
        With blend=True, the share of each model in the selected votes, averaged over the folds.
    in_points : bool
        Whether differences are shown in percentage points, like those of accuracies.
    """

    models: tuple[ModelScore, ...]
    pairs: tuple[Pair, ...]
    failed: tuple[FailedModel, ...]
    scoring: str
    test_used: Literal["corrected_t", "bootstrap_rows", "bootstrap_folds"]
    confidence_level: float
    n_folds: int
    n_rows: int
    fitted: Any = None
    blends: Mapping[str, Any] = field(default_factory=dict)
    blend_weights: Mapping[str, float] = field(default_factory=dict)
    in_points: bool = False

    @property
    def ranking(self) -> tuple[str, ...]:
        """Names, the best first; models that failed are not among them."""
        return tuple(model.name for model in self.models)

    @property
    def best(self) -> str:
        """The name of the model with the highest score."""
        return self.models[0].name

    def __getitem__(self, name: str) -> ModelScore:
        for model in self.models:
            if model.name == name:
                return model
        raise KeyError(_unknown(name, self.ranking, self.failed))

    def pair(self, first: str, second: str) -> Pair:
        """Two models by name, in this order.

        Parameters
        ----------
        first, second : str

        Returns
        -------
        Pair
            With `difference` the score of `first` minus that of `second`.
        """
        for pair in self.pairs:
            if (pair.first, pair.second) == (first, second):
                return pair
            if (pair.second, pair.first) == (first, second):
                low, high = pair.interval
                return Pair(
                    first, second, -pair.difference, ConfidenceInterval(-high, -low), pair.p,
                    pair.p_adjusted, pair.differs,
                )  # fmt: skip
        if first == second:
            raise ValueError(f"A pair needs two models. Got {first!r} twice.")
        unknown = next(name for name in (first, second) if name not in self.ranking)
        raise KeyError(_unknown(unknown, self.ranking, self.failed))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each pair in plain English."""
        return tuple(self._in_words(pair) for pair in self.pairs)

    @property
    def sentence(self) -> str:
        """The summary: which model is best, which do not differ from it, and which are worse."""
        best = self.models[0]
        score = f"{self.scoring} {_number(best.score)}"
        if len(self.models) == 1:
            return f"{best.name} has {score}, and there is no other model to compare it with."
        if len(self.pairs) == 1:
            return self._in_words(self.pairs[0])
        rivals = [pair for pair in self.pairs if pair.first == best.name]
        level = [pair.second for pair in rivals if not pair.differs]
        worse = [pair.second for pair in rivals if pair.differs]
        unclear = self._too_varied(level, worse)
        level = [name for name in level if name not in unclear]
        rest = f" For {_listed(unclear)} it is unclear: scores vary too much." if unclear else ""
        if not level:
            but = f" except {_listed(unclear)}" if unclear else ""
            return f"{best.name} is best ({score}): it differs from all others{but}.{rest}"
        if not worse:
            return (
                f"{best.name} has the highest score ({score}), but at this sample size none of the "
                "others differs from it."
            )
        verb = "does" if len(level) == 1 else "do"
        return (
            f"{best.name} has the highest score ({score}). {_listed(level)} {verb} not differ from "
            f"it at this sample size; {_listed(worse)} {'is' if len(worse) == 1 else 'are'} worse."
            f"{rest}"
        )

    def _too_varied(self, level: list[str], worse: list[str]) -> list[str]:
        """Models that do not differ from the best, but score below one that does."""
        bar = max((self[name].score for name in worse), default=-np.inf)
        return [name for name in level if self[name].score < bar]

    def _in_words(self, pair: Pair) -> str:
        percent = f"{100 * self.confidence_level:g} %"
        figures = (
            f"difference {self._size(pair.difference, unit=True)}, {percent} interval "
            f"{self._size(pair.interval.low)} to {self._size(pair.interval.high)}, "
            f"{self._chance(pair)}"
        )
        if pair.differs:
            return f"{pair.first} is better than {pair.second} ({figures})."
        return f"{pair.first} and {pair.second} do not differ at this sample size ({figures})."

    def _size(self, difference: float, *, unit: bool = False) -> str:
        if self.in_points:
            return f"{round(100 * difference, 1) + 0.0:.1f}" + (" points" if unit else "")
        return f"{difference:.3g}"

    def _chance(self, pair: Pair) -> str:
        if len(self.pairs) == 1:
            return _p_in_words(pair.p)
        return f"{_p_in_words(pair.p)}, adjusted {_p_in_words(pair.p_adjusted, '')}"

    def frame(self) -> Any:
        """The table as a pandas DataFrame, one row for each model, the best first.

        Returns
        -------
        pandas.DataFrame
            With `score`, `low`, `high`, `fit_seconds` and `predict_seconds`; `difference`, `p`,
            `p_adjusted` and `differs` compare the best model with this one; `error` is the error of
            a model that failed.
        """
        rivals = {pair.second: pair for pair in self.pairs if pair.first == self.best}
        rows: list[dict[str, Any]] = []
        for model in self.models:
            rival = rivals.get(model.name)
            rows.append(
                {
                    "model": model.name,
                    "score": model.score,
                    "low": model.interval.low,
                    "high": model.interval.high,
                    "fit_seconds": model.fit_seconds,
                    "predict_seconds": model.predict_seconds,
                    "difference": rival.difference if rival else 0.0,
                    "p": rival.p if rival else np.nan,
                    "p_adjusted": rival.p_adjusted if rival else np.nan,
                    "differs": rival is not None and rival.differs,
                    "error": None,
                }
            )
        nothing = dict.fromkeys(rows[0], np.nan) | {"differs": False}
        rows += [nothing | {"model": model.name, "error": str(model)} for model in self.failed]
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return data_frame(columns).set_index("model")

    def plot(self, *, what: Literal["scores", "differences"] = "scores", ax: Any = None) -> Picture:
        """Draw the scores with their intervals, or the differences to the best model.

        Parameters
        ----------
        what : {"scores", "differences"}, default="scores"
        ax : matplotlib Axes, optional
            By default, those of a new figure.

        Returns
        -------
        Picture
            The drawn values are in `models` and `pairs`.
        """
        from margrove.plot.models import compared_models

        return compared_models(self, what=what, ax=ax)

    def __repr__(self) -> str:
        scores = ", ".join(f"{model.name} {_number(model.score)}" for model in self.models)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return f"Comparison({self.scoring}: {scores}{failed}; {self.n_folds} folds)"

    def __str__(self) -> str:
        return "\n".join([*self._table(), "", *self._words(), "", self._footnote()])

    def _table(self) -> list[str]:
        percent = f"{100 * self.confidence_level:g} % interval"
        rivals = {pair.second: pair for pair in self.pairs if pair.first == self.best}
        rows = [["model", self.scoring, percent, "fit", "predict", "against the best"]]
        for model in self.models:
            rival = rivals.get(model.name)
            rows.append(
                [
                    model.name,
                    _number(model.score),
                    f"{_number(model.interval.low)} to {_number(model.interval.high)}",
                    _duration(model.fit_seconds),
                    _duration(model.predict_seconds),
                    "" if rival is None else self._chance(rival),
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return [
            "  ".join(
                text.ljust(width) if place in (0, 5) else text.rjust(width)
                for place, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]

    def _words(self) -> list[str]:
        words = [str(model) for model in self.failed] + [self.sentence]
        if len(self.pairs) > 1:
            words += [self._in_words(pair) for pair in self.pairs if pair.first == self.best]
        return words

    def _footnote(self) -> str:
        method = {
            "corrected_t": "corrected resampled t-test (Nadeau and Bengio 2003)",
            "bootstrap_rows": "paired bootstrap of the held-out rows",
            "bootstrap_folds": "paired bootstrap of the folds, corrected for their overlap",
        }[self.test_used]
        parts = [f"{self.n_folds} folds of {self.n_rows} rows", method]
        if len(self.pairs) > 1:
            parts.append(f"p adjusted by Holm for {len(self.pairs)} pairs")
        return f"{'; '.join(parts)}."


def _unknown(name: str, ranking: tuple[str, ...], failed: tuple[FailedModel, ...]) -> str:
    for model in failed:
        if model.name == name:
            return str(model)
    return f"There is no model {name!r}. There are {', '.join(map(repr, ranking))}."


def _number(value: float) -> str:
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or value == 0 else f"{value:.4g}"


def _duration(seconds: float) -> str:
    if seconds < 1.0:
        return f"{1e3 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000.0 else f"{seconds:.0f} s"


def _p_in_words(p: float, name: str = "p = ") -> str:
    if p < 0.001:
        return f"{name.replace('= ', '')}< 0.001"
    return f"{name}{p:.3f}" if p < 0.1 else f"{name}{p:.2f}"


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"
