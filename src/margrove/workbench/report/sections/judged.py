"""How good the model is on rows: confusion, curves, calibration, errors, mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove._data import CodedTable, code_table
from margrove.facts import ConfusionMatrix, WorstMistakes
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Cell,
    Figure,
    Figures,
    Heading,
    Legend,
    Remark,
    Remarks,
    Section,
    Table,
    Words,
)
from margrove.workbench.report.judgement import ClassJudgement, NumberJudgement
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, number, percent, visible

__all__ = ["judged_section"]

_MAX_CLASSES = 25  # in a confusion matrix that is a table
_MAX_MAPPED = 250  # in one that is a picture
_MAX_CURVES = 7  # the number of colours
_MAX_DOTS = 1500
_MAX_CELLS = 7  # columns of a row that is shown
_BINS = 36
_SEEN = (
    "These rows were used for training, because no others were given: figures are better than they "
    "will be on new rows. Give X_test and y_test to see how good the model is on new rows."
)


def judged_section(subject: Subject, judgement: Any) -> Section:
    is_seen = not subject.is_held_out
    title = (
        "How good it is on its training rows"
        if is_seen
        else ("How good it is on rows that it has not seen")
    )
    blocks: list[Block] = [Remarks((Remark("warning", _SEEN),))] if is_seen else []
    if isinstance(judgement, ClassJudgement):
        blocks += _class_blocks(judgement)
    elif isinstance(judgement, NumberJudgement):
        blocks += _number_blocks(judgement)
    else:
        blocks.append(Words("It has several outputs, or none that can be compared with targets."))
    if judgement is not None:
        blocks.append(_mistakes(subject, judgement.worst))
    return Section("judged", title, blocks, "How good it is")


# -- classes ---------------------------------------------------------------------------------------


def _class_blocks(judgement: ClassJudgement) -> list[Block]:
    blocks: list[Block] = []
    if len(judgement.confusion.classes) <= _MAX_CLASSES:
        blocks.append(_confusion_table(judgement.confusion))
    else:
        blocks += _large_confusion(judgement.confusion)
    blocks.append(_class_table(judgement.confusion))
    figures = [figure for figure in (_roc_figure(judgement), _precision_figure(judgement),
                                     _reliability_figure(judgement)) if figure]  # fmt: skip
    if figures:
        blocks.append(Figures(tuple(figures)))
    if judgement.why_no_reliability:
        blocks += [Heading("Calibration"), Words(visible(judgement.why_no_reliability, 400))]
    return blocks


def _confusion_table(found: ConfusionMatrix) -> Table:
    shares = np.nan_to_num(found.shares)
    rows = []
    for i, name in enumerate(found.classes):
        cells = [Cell(visible(name, 40))]
        for j in range(len(found.classes)):
            amount = found.counts[i, j]
            shade = int(np.ceil(10 * shares[i, j]))
            cells.append(Cell(number(amount), float(amount), True, shade=shade, is_strong=i == j))
        rows.append(tuple(cells))
    titles = (("true class", False), *((visible(name, 24), True) for name in found.classes))
    note = (
        "Rows are true classes, columns are predicted classes; the stronger the colour, the larger "
        "the share."
    )
    return Table("Confusion matrix, in rows", titles, tuple(rows), note, False, "confusion")


def _large_confusion(found: ConfusionMatrix) -> list[Block]:
    k = len(found.classes)
    blocks: list[Block] = []
    if k <= _MAX_MAPPED:
        chart = charts.class_map(found.shares, label=f"Confusion matrix of {k} classes")
        caption = (
            f"{count(k)} classes in the order of the model; cells off the diagonal are mistakes."
        )
        blocks.append(Figure("Confusion matrix", chart, caption))
    pairs = found.confused(20)
    rows = tuple(
        (Cell(visible(true, 60)), Cell(visible(predicted, 60)), Cell(number(n), n, is_number=True))
        for true, predicted, n in pairs
    )
    titles = (("true class", False), ("predicted class", False), ("rows", True))
    note = f"The matrix of all {count(k)} classes is left out as a table."
    blocks.append(Table("The most frequent confusions", titles, rows, note))
    return blocks


def _class_table(found: ConfusionMatrix) -> Table:
    recall, precision, f1, support = found.recall, found.precision, found.f1, found.support
    order = list(range(len(found.classes)))
    is_cut = len(order) > 2 * _MAX_CLASSES
    if is_cut:
        order = np.argsort(np.nan_to_num(f1), kind="stable")[: 2 * _MAX_CLASSES].tolist()
    rows = tuple(
        (
            Cell(visible(found.classes[k], 60)),
            Cell(number(support[k]), float(support[k]), is_number=True),
            *(_share_cell(float(shares[k])) for shares in (recall, precision, f1)),
        )
        for k in order
    )
    titles = (("class", False), ("rows", True), ("recall", True),
              ("precision", True), ("F1", True))  # fmt: skip
    note = (
        f"The {count(len(rows))} classes with the lowest F1 are shown; "
        f"{count(len(found.classes) - len(rows))} are left out."
        if is_cut
        else ""
    )
    return Table("Class by class", titles, rows, note)


def _share_cell(value: float) -> Cell:
    return Cell(percent(value), value if np.isfinite(value) else None, is_number=True)


def _worst_curves(curves: tuple[Any, ...], value: str) -> tuple[tuple[Any, ...], str]:
    """At most as many curves as there are colours, the worst first, and a note about the rest."""
    if len(curves) <= _MAX_CURVES:
        return curves, ""
    shown = sorted(curves, key=lambda curve: getattr(curve, value))[:_MAX_CURVES]
    return tuple(shown), f" The {_MAX_CURVES} lowest of {count(len(curves))} curves are shown."


def _roc_figure(judgement: ClassJudgement) -> Figure | None:
    if judgement.roc is None or not judgement.roc.curves:
        return None
    curves, left_out = _worst_curves(judgement.roc.curves, "area")
    area = PlotArea(
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        x_title="false positive rate",
        y_title="true positive rate (recall)",
        label="ROC curves",
    )
    area.straight((0.0, 0.0), (1.0, 1.0), "ideal")
    for code, curve in enumerate(curves):
        name = visible(curve.name, 40)
        area.line(curve.false_positive_rate, curve.true_positive_rate, code, name=name)
    legend = tuple(
        Legend(code, f"{visible(curve.name, 40)}: area {number(curve.area, 3)}")
        for code, curve in enumerate(curves)
    )
    caption = (
        f"Area under the curve {number(judgement.roc.area, 4)}"
        + (" on average" if len(judgement.roc.curves) > 1 else "")
        + ": the probability that a row of the class has a higher score than another (chance: 0.5)."
        + left_out
    )
    return Figure("ROC curves", area.svg(), caption, legend)


def _precision_figure(judgement: ClassJudgement) -> Figure | None:
    found = judgement.precision_recall
    if found is None or not found.curves:
        return None
    curves, left_out = _worst_curves(found.curves, "average_precision")
    area = PlotArea(
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        x_title="recall",
        y_title="precision",
        label="Precision against recall",
    )
    for code, curve in enumerate(curves):
        area.line(curve.recall, curve.precision, code, name=visible(curve.name, 40))
    if len(curves) == 1:
        area.level(curves[0].share, "ideal", title="precision of always predicting the class")
    legend = tuple(
        Legend(code, f"{visible(curve.name, 40)}: average {number(curve.average_precision, 3)}")
        for code, curve in enumerate(curves)
    )
    caption = f"Average precision {number(found.average_precision, 4)}."
    return Figure("Precision against recall", area.svg(), caption + left_out, legend)


def _reliability_figure(judgement: ClassJudgement) -> Figure | None:
    found = judgement.reliability
    if found is None:
        return None
    curve = found.curve
    area = PlotArea(
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        {"values": [0.0, 1.0], "is_share": True, "room": 0.0},
        x_title="predicted probability",
        y_title="observed share",
        label="Reliability of the probabilities",
    )
    area.straight((0.0, 0.0), (1.0, 1.0), "ideal")
    area.spans(curve.predicted, curve.low, curve.high)
    area.line(curve.predicted, curve.observed, hits=False)
    largest = max(float(curve.weight.max()), 1.0)
    titles = [
        f"predicted {percent(p)}, observed {percent(o)}, {counted(w, 'row')}"
        for p, o, w in zip(curve.predicted, curve.observed, curve.weight, strict=True)
    ]
    area.dots(
        curve.predicted, curve.observed, titles=titles,
        radius=[3.0 + 4.0 * (w / largest) ** 0.5 for w in curve.weight.tolist()],
    )  # fmt: skip
    what = f"class {visible(curve.name, 40)}" if len(found.classes) == 2 else "the top label"
    caption = (
        f"Of {what}. On the dashed line probabilities are right. They are off by "
        f"{percent(curve.expected_error)} on average ({percent(curve.chance_error)} would be "
        f"chance); Brier score {number(found.brier.score)}, log loss {number(found.log_loss)}."
    )
    return Figure("Calibration: do probabilities come true?", area.svg(), caption)


# -- numbers -------------------------------------------------------------------------------------


def _number_blocks(judgement: NumberJudgement) -> list[Block]:
    found = judgement.residuals
    chosen = np.unique(
        np.linspace(0, judgement.n_rows - 1, min(judgement.n_rows, _MAX_DOTS)).round().astype(int)
    )
    truth, predicted, errors = (
        values[chosen] for values in (found.truth, found.predictions, found.residuals)
    )
    both = np.concatenate([truth, predicted])
    against = PlotArea(
        {"values": both}, {"values": both}, x_title="truth", y_title="prediction",
        label="Predictions against the truth",
    )  # fmt: skip
    low, high = float(both.min()), float(both.max())
    against.straight((low, low), (high, high), "ideal")
    titles = [
        f"row {row}: truth {number(t)}, prediction {number(p)}"
        for row, t, p in zip(chosen.tolist(), truth, predicted, strict=True)
    ]
    against.dots(truth, predicted, titles=titles, radius=2.6, kind="dot many")
    by_size = PlotArea(
        {"values": predicted}, {"values": [*errors, 0.0]}, x_title="prediction",
        y_title="error (prediction minus truth)", label="Errors against predictions",
    )  # fmt: skip
    by_size.level(0.0, "ideal")
    by_size.dots(predicted, errors, 4, titles=titles, radius=2.6, kind="dot many")
    counts, edges = np.histogram(found.residuals, _BINS)
    spread = charts.histogram(
        edges, counts, x_title="error (prediction minus truth)", label="Distribution of the errors",
        guides=[(0.0, "no error")],
    )  # fmt: skip
    cut = (
        f" {count(len(chosen))} of {counted(judgement.n_rows, 'row')} are drawn."
        if (len(chosen) < judgement.n_rows)
        else ""
    )
    return [
        Words(
            f"On average the model is off by {number(found.mean_absolute_error)}; half of the rows "
            f"are off by at most {number(found.median_absolute_error)}. Predictions are too "
            f"{'high' if found.bias > 0 else 'low'} by {number(abs(found.bias), 3)} on average."
        ),
        Figures(
            (
                Figure("Predictions against the truth", against.svg(),
                       f"On the dashed line predictions are exact.{cut}"),
                Figure("Errors against predictions", by_size.svg(),
                       "A pattern here means that the model could be better."),
                Figure("Distribution of the errors", spread),
            )
        ),
    ]  # fmt: skip


# -- mistakes ------------------------------------------------------------------------------------


def _mistakes(subject: Subject, found: WorstMistakes) -> Block:
    if not found.mistakes:
        return Words(f"None of {counted(found.n_rows, 'row')} is wrong.")
    return _mistake_table(subject, found)


def _mistake_table(subject: Subject, found: WorstMistakes) -> Table:
    table = code_table(subject.judged_rows)
    moving = () if subject.dependence is None else subject.dependence.curves
    first = [curve.column for curve in moving]
    shown = [*first, *(j for j in range(table.n_columns) if j not in first)][:_MAX_CELLS]
    is_number = subject.task == "regression"
    rows = tuple(
        (
            _row_cell(subject.row_number(mistake.row)),
            _target_cell(mistake.truth),
            _target_cell(mistake.prediction),
            Cell(
                number(mistake.size, 3),
                mistake.size if np.isfinite(mistake.size) else None,
                is_number=True,
            ),
            *(_value_cell(table, mistake.row, j) for j in shown),
        )
        for mistake in found.mistakes
    )
    names = [
        f"x{name}" if isinstance(name, int) else name for name in (table.names[j] for j in shown)
    ]
    titles = (("row", True), ("truth", is_number), ("prediction", is_number), ("how wrong", True),
              *((visible(name, 24), table.kinds[j] == "number")
                for name, j in zip(names, shown, strict=True)))  # fmt: skip
    note = f"How wrong: {found.measure}. Rows count from 0."
    if not is_number:
        note = f"{counted(found.n_wrong, 'row')} of {count(found.n_rows)} are wrong. {note}"
    left_out = table.n_columns - len(shown)
    if left_out:
        rest = counted(left_out, "column")
        note += f" Columns with the largest effect come first; {rest} left out."
    return Table("Worst mistakes", titles, rows, note)


def _row_cell(row: int) -> Cell:
    return Cell(count(row), row, is_number=True)


def _target_cell(value: Any) -> Cell:
    if isinstance(value, float):
        return Cell(number(value, 5), value, is_number=True)
    return Cell(visible(value, 40))


def _value_cell(table: CodedTable, row: int, j: int) -> Cell:
    value = float(table.X[row, j])
    if np.isnan(value):
        return Cell("missing", None, is_number=True)
    if j in table.labels:
        return Cell(visible(table.labels[j][int(value)], 30))
    return Cell(number(value), value if np.isfinite(value) else None, is_number=True)
