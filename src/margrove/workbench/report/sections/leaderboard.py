"""How models compare: scores with intervals, times, and what the differences mean."""

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

_MOST_ROWS = 30  # of the chart
_LOWEST_R2 = -0.5
_FAR = 20.0
_METHODS = {
    "corrected_t": "the corrected resampled t-test of Nadeau and Bengio (2003)",
    "bootstrap_rows": "a paired bootstrap of the held-out rows",
    "bootstrap_folds": "a paired bootstrap of the folds, corrected for their overlap",
}


def leaderboard_section(comparison: Any) -> Section:
    comparison = with_intervals_of_rows(comparison)
    rivals = {own.second: own for own in comparison.pairs if own.first == comparison.best}
    worse = {name for name, own in rivals.items() if own.differs}
    level = f"{100 * comparison.confidence_level:g} %"
    models = comparison.models[:_MOST_ROWS]
    floor = _floor(comparison.scoring, [own.score for own in models])
    chart = charts.interval_rows(
        [own.name for own in models],
        [own.score for own in models],
        [own.interval.low for own in models],
        [own.interval.high for own in models],
        folds=[own.fold_scores for own in models],
        series=[5 if own.name in worse else 0 for own in models],
        floor=floor,
        title=visible(comparison.scoring, 40),
        label="Scores of the models with their intervals",
    )
    legend: tuple[Legend, ...] = (Legend(0, "as good as the best, as far as can be told", "dot"),)
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
            tuple(_row(own, rivals.get(own.name)) for own in comparison.models[:200]),
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
        failed = tuple(Remark("warning", visible(str(own), 600)) for own in comparison.failed[:20])
        blocks.insert(2, Remarks(failed))
    return Section("leaderboard", "Models compared", blocks)


def _floor(scoring: str, scores: list[float]) -> float | None:
    """Where the axis begins: one very bad score would leave no room for the differences of others.

    R² below -0.5 is useless whatever it is. Of other scores, those are left out that are further
    below the middle one than twenty times its distance from the best. Shares, areas and other
    scores between 0 and 1 have room enough.
    """
    if scoring == "r2":
        return _LOWEST_R2
    finite = [own for own in scores if math.isfinite(own)]
    if len(finite) < 3 or min(finite) >= -1.0:
        return None
    best, middle = max(finite), median(finite)
    return middle - _FAR * (best - middle) if best > middle else None


def _left_out(models: Any, floor: float | None) -> str:
    if floor is None or not any((own.fold_scores < floor).any() for own in models):
        return ""
    return f" The axis begins at {number(floor)}: arrows are models below it; folds are left out."


def _row(model: Any, rival: Any) -> tuple[Cell, ...]:
    against = "the best"
    order = 1.0
    if rival is not None:
        p = "< 0.001" if rival.p_adjusted < 0.001 else f"= {rival.p_adjusted:.3f}"
        verdict = "worse" if rival.differs else "no difference that can be told"
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
