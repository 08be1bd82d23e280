"""Forests and bagging: size, out-of-bag error, importances."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.facts import ForestFacts, ranked_importances
from margrove.workbench.report import charts
from margrove.workbench.report.blocks import Block, Card, Cards, Figure, Figures, Words
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, number, percent, visible

__all__ = ["ensemble_blocks", "importance_figure"]

_IMPORTANT = 15
_MAX_CELLS = 2_000_000  # rows times columns, up to which features are permuted


def ensemble_blocks(subject: Subject) -> list[Block]:
    facts = subject.facts
    figures = [
        figure for figure in (_out_of_bag_figure(facts), importance_figure(subject)) if figure
    ]
    blocks: list[Block] = [Words(_what_it_is(facts)), Cards(tuple(_cards(facts)))]
    if figures:
        blocks.append(Figures(tuple(figures)))
    return blocks


def _what_it_is(facts: Any) -> str:
    what = "tree" if isinstance(facts, ForestFacts) else visible(facts.member)
    sample = (
        "each grown on rows drawn with replacement" if facts.bootstrap else "each grown on all rows"
    )
    return f"{counted(facts.n_members, what)}, {sample}. The prediction is {facts.answer}."


def _cards(facts: Any) -> list[Card]:
    cards = [Card("members", count(facts.n_members))]
    if facts.out_of_bag is not None and facts.out_of_bag.score is not None:
        bag = facts.out_of_bag
        shown = percent(bag.score) if bag.score_name == "accuracy" else number(bag.score)
        cards.append(Card(f"out-of-bag {visible(bag.score_name)}", shown,
                          "by trees that have not seen the row"))  # fmt: skip
    if facts.depth is not None:
        ends = f"{count(facts.depth.least)} to {count(facts.depth.most)}"
        cards.append(Card("mean depth", number(facts.depth.mean, 3), ends))
        ends = f"{count(facts.leaves.least)} to {count(facts.leaves.most)}"
        cards.append(Card("mean leaves", number(facts.leaves.mean, 3), ends))
    if facts.n_bytes is not None:
        cards.append(Card("size", f"{facts.n_bytes / 1e6:,.2f} MB", "in memory"))
    return cards


def _out_of_bag_figure(facts: Any) -> Figure | None:
    bag = facts.out_of_bag
    if bag is None or bag.curve is None or not np.isfinite(bag.curve).any():
        return None
    trees = np.arange(1, len(bag.curve) + 1)
    is_share = bag.error_name == "share misclassified"
    area = PlotArea(
        {"values": trees, "is_whole": True},
        {"values": bag.curve, "is_share": is_share},
        x_title="trees",
        y_title=bag.error_name,
        label="Out-of-bag error against the number of trees",
    )
    area.line(trees, bag.curve)
    shown = percent(bag.error, 2) if is_share else number(bag.error)
    caption = f"After {counted(len(trees), 'tree')}: {shown}."
    if bag.n_unscored:
        caption += f" {counted(bag.n_unscored, 'row')} had no out-of-bag prediction."
    return Figure("Out-of-bag error", area.svg(), caption)


def importance_figure(subject: Subject) -> Figure | None:
    """Permutation importances of out-of-bag rows with intervals if possible, else by impurity."""
    study = _study(subject)
    if study is None and subject.facts.importances is None:
        return None
    source = subject.facts.importances if study is None else study
    found = ranked_importances(source, _IMPORTANT, subject.names)
    measure = found.measure if study is not None else "decrease of the impurity, as a share"
    chart = charts.ranked_bars(
        found.names,
        found.values,
        low=found.low,
        high=found.high,
        title=measure,
        label="Importances of the features",
    )
    caption = f"With {found.interval}." if found.interval else ""
    if found.n_features > len(found.names):
        caption += f" {count(len(found.names))} of {counted(found.n_features, 'feature')}."
    return Figure("What the forest depends on", chart, caption.strip())


def _study(subject: Subject) -> Any:
    facts = subject.facts
    is_small = subject.n_rows * max(subject.outline.n_features, 1) <= _MAX_CELLS
    has_bags = isinstance(facts, ForestFacts) and facts.bootstrap and facts.n_outputs == 1
    if not (is_small and has_bags and facts.n_samples == subject.n_rows):
        return None
    from margrove.ensemble.forest import oob_importances

    try:
        return oob_importances(subject.last, subject.prepared(subject.X), subject.y, random_state=0)
    except ValueError:  # it was grown on other rows, or there are no out-of-bag rows
        return None
