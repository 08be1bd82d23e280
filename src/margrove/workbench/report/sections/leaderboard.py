"""The compared models: scores with intervals, times, and tests of the differences."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Cell,
    Figure,
    Legend,
    Remark,
    Remarks,
    Section,
    Table,
    Words,
)
from margrove.workbench.report.score_intervals import meaning_of_intervals, with_intervals_of_rows
from margrove.workbench.report.texts import counted, duration, number, visible

__all__ = ["leaderboard_section"]

_MAX_ROWS = 30  # of the chart
_LOWEST_R2 = -0.5
_FAR = 20.0
_METHODS = {
    "corrected_t": "the corrected resampled t-test of Nadeau and Bengio (2003)",
    "bootstrap_rows": "a paired bootstrap of the held-out rows",
    "bootstrap_folds": "a paired bootstrap of the folds, corrected for their overlap",
}


def leaderboard_section(comparison: Any) -> Section:
    comparison = with_intervals_of_rows(comparison)
    rivals = {pair.second: pair for pair in comparison.pairs if pair.first == comparison.best}
    worse = {name for name, pair in rivals.items() if pair.differs}
    level = f"{100 * comparison.confidence_level:g} %"
    models = comparison.models[:_MAX_ROWS]
    floor = _floor(comparison.scoring, [model.score for model in models])
    chart = charts.interval_rows(
        [model.name for model in models],
        [model.score for model in models],
        [model.interval.low for model in models],
        [model.interval.high for model in models],
        folds=[model.fold_scores for model in models],
        series=[5 if model.name in worse else 0 for model in models],
        floor=floor,
        title=visible(comparison.scoring, 40),
        label="Scores of the models with their intervals",
    )
    legend: tuple[Legend, ...] = (Legend(0, "not clearly worse than the best", "dot"),)
    if worse:
        legend += (Legend(5, "worse than the best", "dot"),)
    blocks: list[Block] = [
        Words(visible(comparison.sentence, 2000)),
        Figure(
            f"Scores, with {level} intervals",
            chart,
            f"Small dots are the {counted(comparison.n_folds, 'fold')}." + _left_out(models, floor),
            legend,
        ),
        Table(
            "All models, the best first",
            (("model", False), (visible(comparison.scoring, 40), True),
             (f"{level} interval", True),
             ("fit", True), ("predict", True), ("against the best", False)),
            tuple(_row(model, rivals.get(model.name)) for model in comparison.models[:200]),
        ),
        Words(
            f"All were fitted to the same {counted(comparison.n_folds, 'fold')} of "
            f"{counted(comparison.n_rows, 'row')}. {meaning_of_intervals(comparison)} p comes from "
            f"{_METHODS.get(comparison.test_used, comparison.test_used)}"
            + (
                f"; it is adjusted by Holm for {counted(len(comparison.pairs), 'pair')}."
                if len(comparison.pairs) > 1
                else "."
            ),
            "faint",
        ),
    ]  # fmt: skip
    if comparison.failed:
        failed = tuple(
            Remark("warning", visible(str(model), 600)) for model in comparison.failed[:20]
        )
        blocks.insert(2, Remarks(failed))
    return Section("leaderboard", "Models compared", blocks)


def _floor(scoring: str, scores: list[float]) -> float | None:
    """Where the axis begins, so that one very bad score does not hide the other differences.

    R² begins at -0.5. Other scores begin twenty times as far below the median as the best is above
    it. Scores between 0 and 1 need no limit.
    """
    if scoring == "r2":
        return _LOWEST_R2
    finite = [score for score in scores if math.isfinite(score)]
    if len(finite) < 3 or min(finite) >= -1.0:
        return None
    best, middle = max(finite), median(finite)
    return middle - _FAR * (best - middle) if best > middle else None


def _left_out(models: Any, floor: float | None) -> str:
    if floor is None or not any((model.fold_scores < floor).any() for model in models):
        return ""
    return f" The axis begins at {number(floor)}: arrows are models below it; folds are left out."


def _row(model: Any, rival: Any) -> tuple[Cell, ...]:
    against = "the best"
    order = 1.0
    if rival is not None:
        p = "< 0.001" if rival.p_adjusted < 0.001 else f"= {rival.p_adjusted:.3f}"
        verdict = "worse" if rival.differs else "no clear difference"
        against, order = f"{verdict} (p {p})", rival.p_adjusted
    low, high = model.interval
    return (
        Cell(visible(model.name), is_strong=rival is None),
        Cell(f"{model.score:.4f}" if abs(model.score) < 1e4 else number(model.score), model.score,
             is_number=True),
        Cell(f"{number(low)} to {number(high)}", low, is_number=True),
        Cell(duration(model.fit_seconds), model.fit_seconds, is_number=True),
        Cell(duration(model.predict_seconds), model.predict_seconds, is_number=True),
        Cell(against, order),
    )  # fmt: skip
