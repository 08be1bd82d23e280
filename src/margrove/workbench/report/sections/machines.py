"""Margin machines: support vectors, margins, weights, the certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.facts import PerceptronFacts, margins_of, strongest_features
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Figure,
    Figures,
    Legend,
    Remark,
    Remarks,
    Table,
    Words,
)
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, number, percent, visible

__all__ = ["machine_blocks", "weight_figures"]

_BINS = 36
_MAX_MACHINES = 30  # in the table
_MAX_WEIGHT_CHARTS = 4
_STRONGEST = 12
_RIGHT, _WRONG = 0, 5  # colours


def machine_blocks(subject: Subject) -> list[Block]:
    facts = subject.facts
    blocks: list[Block] = [Words(_what_it_is(facts)), Cards(tuple(_cards(facts)))]
    blocks += _proof_blocks(facts)
    figures = [
        figure for figure in (_margin_figure(subject), _kind_figure(facts)) if figure is not None
    ]
    if figures:
        blocks.append(Figures(tuple(figures)))
    if facts.machines and facts.machines[0].weights is not None:
        blocks.append(weight_figures(subject))
    blocks.append(_machine_table(facts))
    return blocks


def _what_it_is(facts: Any) -> str:
    words = f"It consists of {counted(len(facts.machines), 'machine')}"
    if facts.kernel is not None:
        values = ", ".join(f"{name} = {number(v)}" for name, v in facts.kernel.parameters.items()
                           if isinstance(v, (int, float)))  # fmt: skip
        words += f" with the kernel {visible(facts.kernel.name)}" + (
            f" ({values})" if values else ""
        )
        if facts.kernel.formula:
            words += f", K(x, z) = {visible(facts.kernel.formula.rstrip('.'), 200)}"
    else:
        words += ", each a plane with a weight for every feature"
    return f"{words}."


def _cards(facts: Any) -> list[Card]:
    cards = []
    if isinstance(facts, PerceptronFacts):
        cards += [
            Card("mistakes", number(facts.mistakes), "during training"),
            Card("Novikoff's bound", number(facts.novikoff_bound), "on the number of mistakes"),
            Card("separated", {True: "yes", False: "no", None: "—"}[facts.separated],
                 "all training rows are on their side"),
            Card("epochs", count(facts.epochs)),
        ]  # fmt: skip
    elif facts.n_support is not None:
        share = (
            f"{percent(facts.n_support / facts.n_samples)} of the rows" if facts.n_samples else ""
        )
        cards.append(Card("support vectors", count(facts.n_support), share))
    if len(facts.machines) == 1 and facts.machines[0].margin_width is not None:
        cards.append(
            Card("margin", number(facts.machines[0].margin_width), "width in feature space")
        )
    tube = getattr(facts, "tube", None)
    if tube is not None:
        cards.append(Card("tube", number(tube), "smaller errors cost nothing"))
    nonzero = getattr(facts, "n_nonzero", None)
    if nonzero is not None:
        cards.append(Card("weights", count(nonzero), "that are not zero"))
    if facts.proof is not None:
        cards.append(Card("gap", percent(facts.proof.relative_gap, 4), "to the best possible"))
    cards.append(Card("iterations", count(facts.iterations)))
    return cards


def _proof_blocks(facts: Any) -> list[Block]:
    if facts.proof is None:
        if not facts.unproven:
            return []
        return [Remarks((Remark("notice", f"There is no proof: {visible(facts.unproven, 400)}"),))]
    proof = facts.proof
    words = (
        f"Certificate: the objective is {number(proof.primal, 8)}, and no machine of this kind can "
        f"have an objective below {number(proof.dual, 8)}. So this machine is within "
        f"{percent(proof.relative_gap, 4)} of the best possible. The largest violation of the "
        f"conditions of an optimum is {number(proof.violation, 3)}"
        + (f" ({visible(proof.place, 200)})." if proof.place else ".")
    )
    tone = "good" if proof.relative_gap < 0.01 else "warning"
    return [Remarks((Remark(tone, words, label="proof"),))]


def _margin_figure(subject: Subject) -> Figure | None:
    if subject.task != "classification" or subject.judged_targets is None:
        return None
    found = margins_of(subject.inner, subject.judged_rows, subject.judged_targets)
    counts, edges = _bins(found.margins)
    guides = [(0.0, "the boundary")] + (
        [] if found.level is None else [(found.level, "the margin")]
    )
    chart = charts.histogram(
        edges,
        counts,
        x_title=f"margin: {found.measure}" if len(found.measure) < 20 else "margin",
        label="Distribution of the margins",
        series=[_WRONG if end <= 0.0 else _RIGHT for end in edges[1:]],
        guides=guides,
    )
    n = len(found.margins)
    rows = "held-out rows" if subject.is_held_out else "training rows"
    caption = (
        f"{found.measure.capitalize() if len(found.measure) > 10 else found.measure} of {rows}: "
        f"{counted(found.n_wrong, 'row')} of {count(n)} on the wrong side"
    )
    if found.n_inside is not None:
        caption += f", {count(found.n_inside)} right but inside the margin"
    legend = (Legend(_RIGHT, "right", "bar"), Legend(_WRONG, "wrong", "bar"))
    return Figure("How clearly rows are on their side", chart, f"{caption}.", legend)


def _bins(margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts and edges, one of which is 0; outliers are counted in the outer bars."""
    low, high = np.quantile(margins, [0.005, 0.995])
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    width = (high - low) / _BINS or 1.0
    below, above = int(np.ceil(-low / width)), int(np.ceil(high / width))
    edges = np.arange(-below, max(above, 1 - below) + 1) * width
    counts, _ = np.histogram(np.clip(margins, edges[0], edges[-1]), edges)
    # A margin of exactly 0 counts as right: it is in the first bar above 0.
    return counts, edges


def _kind_figure(facts: Any) -> Figure | None:
    if not facts.kinds:
        return None
    chart = charts.ranked_bars(
        [kind.name for kind in facts.kinds],
        [kind.count for kind in facts.kinds],
        title="training rows",
        label="Support vectors by kind",
        series=2,
    )
    return Figure("Support vectors by where they lie", chart, "Each row counts once.")


def weight_figures(subject: Subject) -> Figures:
    """The largest weights of each machine of a linear model."""
    found = strongest_features(subject.last, _STRONGEST, subject.names)
    figures = []
    for strongest in found[:_MAX_WEIGHT_CHARTS]:
        name = visible(strongest.machine)
        chart = charts.ranked_bars(
            [feature.name for feature in strongest.features],
            [feature.weight for feature in strongest.features],
            title="weight",
            label=f"Largest weights, {name}",
        )
        caption = f"A positive weight supports the class named first: {name}."
        if subject.task != "classification":
            caption = ""
        title = "Largest weights" if len(found) == 1 else f"Largest weights: {name}"
        figures.append(Figure(title, chart, caption))
    left_out = len(found) - len(figures)
    if left_out:
        last = figures[-1]
        caption = f"{last.caption} {counted(left_out, 'machine')} more left out."
        figures[-1] = Figure(last.title, last.chart, caption)
    return Figures(tuple(figures))


def _machine_table(facts: Any) -> Table:
    titles = (("machine", False), ("support vectors", True), ("at their bound", True),
              ("norm of w", True), ("intercept", True), ("iterations", True),
              ("relative gap", True))  # fmt: skip
    rows = tuple(
        (
            Cell(visible(machine.name)),
            _number_cell(machine.n_support),
            _number_cell(machine.n_bounded),
            _number_cell(machine.norm),
            _number_cell(machine.intercept),
            _number_cell(machine.iterations),
            _number_cell(None if machine.proof is None else machine.proof.relative_gap),
        )
        for machine in facts.machines[:_MAX_MACHINES]
    )
    left_out = len(facts.machines) - len(rows)
    note = f"{counted(left_out, 'machine')} left out." if left_out else ""
    return Table("Machines", titles, rows, note)


def _number_cell(value: Any) -> Cell:
    return Cell(number(value), None if value is None else float(value), is_number=True)
