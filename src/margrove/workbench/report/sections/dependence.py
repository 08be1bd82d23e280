"""How the predictions of the model change with single columns."""

from __future__ import annotations

import numpy as np

from margrove.facts import (
    DependenceCurve,
    PartialDependenceFacts,
)
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import Block, Figure, Figures, Legend, Section, Words
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import counted, number, visible
from margrove.workbench.tables.read import are_texts

__all__ = ["dependence_section"]

_MAX_OUTPUTS = 5  # lines in a chart


def dependence_section(subject: Subject) -> Section:
    found = subject.dependence
    if found is None:
        words = "There are too many columns to try each of them."
        return Section("dependence", "What moves the answer", [Words(words)])
    curves = [curve for curve in found.curves if not _is_of_texts(curve, found.n_rows)]
    if not curves:
        words = (
            "No single column moves the answer on average."
            if not found.curves
            else "Columns of text are not set to single values."
        )
        return Section("dependence", "What moves the answer", [Words(words)])
    band = "; 80 % of single rows lie in the pale band" if len(found.outputs) == 1 else ""
    others = (
        "; the importances of the model measure something else, and can have another order"
        if getattr(subject.facts, "importances", None) is not None
        else ""
    )
    what = {"probability": "probability", "score": "score", "prediction": "prediction"}
    blocks: list[Block] = [
        Words(
            "Each chart sets one column to the same value in "
            f"{counted(found.n_rows, 'row')}, keeps the other columns, and shows the mean "
            f"{what[found.response]}{band}. The column with the largest change of the mean comes "
            f"first{others}. This describes the model, not cause and effect."
        ),
        Figures(tuple(_figure(found, curve) for curve in curves)),
    ]
    return Section("dependence", "What moves the answer", blocks)


def _is_of_texts(curve: DependenceCurve, n_rows: int) -> bool:
    if curve.kind != "label":
        return False
    labels = [str(label) for label in curve.grid]
    return are_texts(labels, len(labels) + curve.n_left_out, n_rows)


def _figure(found: PartialDependenceFacts, curve: DependenceCurve) -> Figure:
    moves = curve.average.max(axis=1) - curve.average.min(axis=1)
    outputs = np.argsort(-moves, kind="stable")[:_MAX_OUTPUTS].tolist()
    name = visible(curve.name)
    title = f"{found.response} of {visible(found.outputs[0], 30)}"
    if found.response == "prediction":
        title = "prediction"
    elif len(found.outputs) > 1:
        title = found.response
    caption = ""
    if curve.n_left_out:
        caption = f"{counted(curve.n_left_out, 'rarer value')} left out."
    if curve.kind == "label":
        k = outputs[0]
        if len(found.outputs) > 1:
            title = f"{found.response} of {visible(found.outputs[k], 30)}"
        chart = charts.interval_rows(
            [str(label) for label in curve.grid], curve.average[k], curve.low[k], curve.high[k],
            series=[0] * len(curve.grid), title=title, label=f"{title} against {name}",
        )  # fmt: skip
        return Figure(name, chart, caption)
    is_share = found.response == "probability"
    drawn = [curve.average[outputs]]
    if len(outputs) == 1:
        drawn += [curve.low[outputs], curve.high[outputs]]
    area = PlotArea(
        {"values": curve.grid},
        {"values": np.concatenate(drawn), "is_share": is_share},
        x_title=visible(curve.name, 40),
        y_title=title,
        label=f"{title} against {name}",
    )  # fmt: skip
    legend = []
    for code, k in enumerate(outputs):
        if len(outputs) == 1:
            area.band(curve.grid, curve.low[k], curve.high[k], code)
        output = visible(found.outputs[k], 40)
        area.line(curve.grid, curve.average[k], code, name=output if len(outputs) > 1 else "")
        legend.append(Legend(code, output))
    if len(outputs) < len(found.outputs):
        rest = counted(len(found.outputs) - len(outputs), "class")
        caption = f"{caption} {rest} with smaller changes left out.".strip()
    ends = f"From {number(curve.grid[0], 3)} to {number(curve.grid[-1], 3)}."
    return Figure(name, area.svg(), f"{ends} {caption}".strip(),
                  tuple(legend) if len(legend) > 1 else ())  # fmt: skip
