"""How models compare: scores with intervals, times, and what the differences mean."""

from __future__ import annotations

from typing import Any

from margrove.reports import charts
from margrove.reports.blocks import (
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
from margrove.reports.texts import counted, duration, number, visible

__all__ = ["leaderboard_section"]

_MOST_ROWS = 30  # of the chart
_METHODS = {
    "corrected_t": "the corrected resampled t-test of Nadeau and Bengio (2003)",
    "bootstrap_rows": "a paired bootstrap of the held-out rows",
    "bootstrap_folds": "a paired bootstrap of the folds, corrected for their overlap",
}


def leaderboard_section(comparison: Any) -> Section:
    rivals = {own.second: own for own in comparison.pairs if own.first == comparison.best}
    worse = {name for name, own in rivals.items() if own.differs}
    level = f"{100 * comparison.confidence_level:g} %"
    models = comparison.models[:_MOST_ROWS]
    chart = charts.interval_rows(
        [own.name for own in models],
        [own.score for own in models],
        [own.interval.low for own in models],
        [own.interval.high for own in models],
        folds=[own.fold_scores for own in models],
        series=[5 if own.name in worse else 0 for own in models],
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
            f"Small dots are the {counted(comparison.n_folds, 'fold')}.",
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
            f"{counted(comparison.n_rows, 'row')}. Intervals and p come from "
            f"{_METHODS.get(comparison.test_used, comparison.test_used)}"
            + (
                f"; p is adjusted by Holm for {counted(len(comparison.pairs), 'pair')}."
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
