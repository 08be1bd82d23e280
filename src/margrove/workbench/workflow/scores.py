"""The score of a model on rows that it has not seen, with an interval and a baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from margrove.select.learners import Task as TaskKind

if TYPE_CHECKING:
    from margrove.workbench.tables import Task
    from margrove.workbench.workflow.held_out_rows import HeldOutRows

__all__ = ["HeldOutScore", "percent_or_number", "score_model", "score_predictions"]


def percent_or_number(value: float, *, is_share: bool) -> str:
    """'93.1%' for a share, four digits for another number."""
    return f"{value:.1%}" if is_share else f"{value:.4g}"


@dataclass(frozen=True)
class HeldOutScore:
    """Accuracy or r2 on test rows, with its 95 % interval.

    `baseline` is the score of predicting the most frequent class, or the mean, of the training
    rows.
    """

    name: str
    value: float
    low: float
    high: float
    baseline: float
    n_rows: int

    @property
    def sentence(self) -> str:
        value, low, high, baseline = (
            percent_or_number(number, is_share=self.name == "accuracy")
            for number in (self.value, self.low, self.high, self.baseline)
        )
        return (
            f"On {self.n_rows:,} rows that it had not seen: {self.name} {value}, 95 % interval "
            f"{low} .. {high}; the baseline has {baseline}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; None for infinite ones, which few rows can have."""
        numbers = {
            key: number if math.isfinite(number) else None
            for key, number in (
                ("value", self.value),
                ("low", self.low),
                ("high", self.high),
                ("baseline", self.baseline),
            )
        }
        return {"name": self.name, **numbers, "rows": self.n_rows}


def score_model(model: Any, task: Task, rows: HeldOutRows) -> HeldOutScore:
    """The score of a fitted model on the test rows."""
    predicted = model.predict(task.X[rows.test])
    return score_predictions(task.kind, task.y[rows.test], predicted, task.y[rows.train])


def score_predictions(kind: TaskKind, y: Any, predicted: Any, learnt: Any) -> HeldOutScore:
    """The score of predictions for targets `y`; `learnt` are the targets of the training rows."""
    import numpy as np
    from sklearn.metrics import r2_score

    from margrove.select.calibrate import wilson_interval
    from margrove.workbench.report import r2_interval

    predicted = np.asarray(predicted)
    if kind == "classification":
        classes, counts = np.unique(learnt, return_counts=True)
        n_right = int((predicted == y).sum())
        low, high = wilson_interval(n_right / len(y), len(y))
        baseline = float(np.mean(y == classes[int(np.argmax(counts))]))
        return HeldOutScore("accuracy", n_right / len(y), low, high, baseline, len(y))
    low, high = r2_interval(y, predicted) or (-np.inf, 1.0)
    baseline = float(r2_score(y, np.full(len(y), learnt.mean())))
    return HeldOutScore("r2", float(r2_score(y, predicted)), low, high, baseline, len(y))
