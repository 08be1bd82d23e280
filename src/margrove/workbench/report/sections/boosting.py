"""Boosting: errors and their bound round by round, margins, losses, importances."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.facts import (
    boosting_errors,
    loss_curve,
    margin_distributions,
    ranked_importances,
    stump_rules,
)
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import (
    Block,
    Card,
    Cards,
    Cell,
    Figure,
    Figures,
    Legend,
    Table,
    Words,
)
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, number, percent, visible

__all__ = ["boosting_blocks", "gradient_blocks"]

_IMPORTANT = 15
_RULES = 12
_MAX_MARGINS = 400  # points of a curve


# -- AdaBoost --------------------------------------------------------------------------------------


def boosting_blocks(subject: Subject) -> list[Block]:
    facts = subject.facts
    figures = [_error_figure(subject)]
    figures += [
        figure for figure in (_margin_figure(subject), _importance_figure(subject)) if figure
    ]
    blocks: list[Block] = [
        Words(
            f"{counted(facts.n_rounds, 'round')} of {visible(facts.algorithm)} with "
            f"{visible(facts.learner)}; it ended because: {visible(facts.outcome_in_words)}."
        ),
        Cards(tuple(_boosting_cards(facts))),
        Figures(tuple(figures)),
    ]
    table = _rule_table(subject)
    return blocks if table is None else [*blocks, table]


def _boosting_cards(facts: Any) -> list[Card]:
    cards = [
        Card("rounds", count(facts.n_rounds)),
        Card("training error", percent(facts.training_error, 2)),
    ]
    if facts.bound is not None:
        cards.append(Card("bound", percent(min(facts.bound, 1.0), 2), "the error cannot exceed it"))
    if facts.validation_error is not None:
        cards.append(Card("validation error", percent(facts.validation_error, 2)))
    if facts.least_margin is not None:
        cards.append(Card("least margin", number(facts.least_margin, 3), "of the training rows"))
    return cards


def _error_figure(subject: Subject) -> Figure:
    rows, answers = None, None
    if subject.is_held_out:
        rows, answers = subject.prepared(subject.X_test), subject.y_test
    found = boosting_errors(subject.last, rows, answers)
    lines: list[tuple[str, Any, int, str]] = [("training rows", found.training, 0, "")]
    if found.validation is not None:
        lines.append(("validation rows", found.validation, 2, ""))
    if found.test is not None:
        lines.append(("held-out rows", found.test, 5, ""))
    if found.bound is not None:
        lines.append(("bound of the training error", np.minimum(found.bound, 1.0), 3, "dashed"))
    top = max(float(np.nanmax(values)) for _, values, _, _ in lines[:3])
    area = PlotArea(
        {"values": found.rounds, "may_be_log": len(found.rounds) > 100, "is_whole": True},
        {"values": [0.0, min(1.0, max(2.0 * top, 0.05))], "is_share": True},
        x_title="rounds",
        y_title="share misclassified",
        label="Errors against the number of rounds",
    )
    for name, values, code, kind in lines:
        area.line(found.rounds[: len(values)], values, code, name=name, kind=kind)
    legend = tuple(Legend(code, name, kind or "line") for name, _, code, kind in lines)
    last = f"After {counted(found.n_kept, 'round')}: {percent(found.training[found.n_kept - 1], 2)}"
    caption = f"{last} of the training rows are misclassified."
    if found.test is not None:
        caption = f"{caption[:-1]}, and {percent(found.test[-1], 2)} of the held-out rows."
    return Figure("Errors, round by round", area.svg(), caption, legend)


def _margin_figure(subject: Subject) -> Figure | None:
    if subject.y is None:
        return None
    found = margin_distributions(subject.last, subject.prepared(subject.X), subject.y)
    area = PlotArea(
        {"values": np.concatenate([after.margins for after in found])},
        {"values": [0.0, 1.0], "is_share": True},
        x_title="margin",
        y_title="share of the rows up to it",
        label="Distribution of the margins after some rounds",
    )
    for code, after in enumerate(found):
        chosen = np.unique(
            np.linspace(0, len(after.margins) - 1, min(len(after.margins), _MAX_MARGINS))
            .round()
            .astype(int)
        )
        area.line(after.margins[chosen], after.shares[chosen], code,
                  name=counted(after.n_rounds, "round"))  # fmt: skip
    area.upright(0.0, title="rows to the left are misclassified")
    legend = tuple(
        Legend(code, counted(after.n_rounds, "round")) for code, after in enumerate(found)
    )
    caption = "Of the training rows. More rounds move margins to the right."
    return Figure("How clearly rows are right", area.svg(), caption, legend)


def _importance_figure(subject: Subject) -> Figure | None:
    if subject.facts.importances is None:
        return None
    found = ranked_importances(subject.facts.importances, _IMPORTANT, subject.names)
    chart = charts.ranked_bars(
        found.names, found.values, title="importance, as a share", label="Importances"
    )
    return Figure("What it depends on", chart)


def _rule_table(subject: Subject) -> Table | None:
    try:
        found = stump_rules(subject.last, _RULES, subject.names)
    except (TypeError, ValueError):  # its members are not stumps, or predict probabilities
        return None
    rows = tuple(
        (
            Cell(visible(rule.text, 300)),
            Cell(number(rule.weight), rule.weight, is_number=True),
            Cell(count(rule.n_rounds), rule.n_rounds, is_number=True),
        )
        for rule in found
    )
    titles = (("rule", False), ("weight", True), ("rounds", True))
    return Table("The rules that vote, the one with the largest weight first", titles, rows)


# -- gradient boosting ---------------------------------------------------------------------------


def gradient_blocks(subject: Subject) -> list[Block]:
    facts = subject.facts
    chart = charts.ranked_bars(
        (found := ranked_importances(facts.importances, _IMPORTANT, subject.names)).names,
        found.values,
        title="gain of the splits, as a share",
        label="Importances of the features",
    )
    return [
        Words(
            f"{counted(facts.n_trees, 'tree')} in {counted(facts.n_rounds, 'round')}, each fitted "
            f"to the gradient of the loss ({visible(facts.loss)}); it ended because: "
            f"{visible(facts.outcome_in_words)}."
        ),
        Cards(
            (
                Card("rounds", count(facts.n_rounds)),
                Card("loss", number(facts.loss_at_end), f"at first {number(facts.loss_at_start)}"),
                Card("mean leaves", number(facts.leaves.mean, 3),
                     f"{count(facts.leaves.least)} to {count(facts.leaves.most)}"),
                Card("size", f"{facts.n_bytes / 1e6:,.2f} MB", "in memory"),
            )
        ),
        Figures((_loss_figure(subject), Figure("What it depends on", chart))),
    ]  # fmt: skip


def _loss_figure(subject: Subject) -> Figure:
    rows, answers = None, None
    if subject.is_held_out:
        rows, answers = subject.prepared(subject.X_test), subject.y_test
    found = loss_curve(subject.last, rows, answers)
    lines: list[tuple[str, Any, int]] = [("training rows", found.training, 0)]
    if found.validation is not None:
        lines.append(("validation rows", found.validation, 2))
    if found.test is not None:
        lines.append(("held-out rows", found.test, 5))
    area = PlotArea(
        {"values": found.rounds, "is_whole": True},
        {"values": np.concatenate([values for _, values, _ in lines]), "may_be_log": True},
        x_title="rounds",
        y_title=f"mean loss ({visible(found.loss, 24)})",
        label="Mean loss against the number of rounds",
    )
    for name, values, code in lines:
        area.line(found.rounds[: len(values)], values, code, name=name)
    legend = tuple(Legend(code, name) for name, _, code in lines)
    caption = ""
    if found.best_round is not None:
        area.upright(float(found.best_round), title=f"best after {found.best_round} rounds")
        caption = f"Best after {counted(found.best_round, 'round')}, on rows not used for training."
    return Figure("Loss, round by round", area.svg(), caption, legend)
