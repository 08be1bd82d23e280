"""The settings that were tried: a map of C and gamma, or scores against a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from margrove.workbench.report import charts
from margrove.workbench.report.blocks import Block, Cell, Figure, Legend, Section, Table, Words
from margrove.workbench.report.plot_area import PlotArea
from margrove.workbench.report.texts import counted, duration, number, visible

__all__ = ["tuning_of", "tuning_section"]

_MAX_LINES = 7
_BEST_ROWS, _MAX_ROWS = 10, 40  # settings that are shown at once, and on demand


def tuning_of(source: Any, subject_model: Any) -> Any:
    """A Tuning of autotune or a search with cells, given or stored in the model, or None."""
    found = _stored_tuning(subject_model if source is None else source)
    if found is None and source is not None:
        raise TypeError(
            "tuning must be the result of margrove.autotune, or a fitted SVCCV, SVRCV or "
            f"LinearSVCCV. Got {type(source).__name__}."
        )
    return found


def _stored_tuning(model: Any) -> Any:
    tuned = getattr(model, "tuning_", model)
    if hasattr(tuned, "candidates") and hasattr(tuned, "chosen"):
        return tuned
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    return last if getattr(last, "cells_", None) is not None else None


def tuning_section(tuned: Any) -> Section:
    blocks = _of_search(tuned) if hasattr(tuned, "cells_") else _of_tuning(tuned)
    return Section("tuning", "Tuning", blocks)


def _of_search(search: Any) -> list[Block]:
    cells = search.cells_
    best = ", ".join(f"{name} = {number(value)}" for name, value in search.best_params_.items())
    words = Words(
        f"{counted(cells.means.size, 'setting')} tried by cross-validation in "
        f"{counted(cells.scores.shape[2], 'fold')}. The choice is {best}, with a mean score of "
        f"{number(search.best_score_)}. It is the best of many scores, so it is somewhat too high."
    )
    if np.isnan(cells.gammas).any():
        area = PlotArea(
            {"values": cells.Cs, "may_be_log": True},
            {"values": cells.means},
            x_title="C",
            y_title="mean score",
            label="Cross-validated score against C",
        )
        means, errors = cells.means[:, 0], cells.standard_errors[:, 0]
        area.band(cells.Cs, means - errors, means + errors)
        area.line(cells.Cs, means)
        area.upright(float(search.best_params_["C"]), title="chosen")
        figure = Figure("Score against C", area.svg(), "The band is one standard error.")
        return [words, figure]
    chosen = (
        int(np.argmin(np.abs(np.log(cells.gammas / search.best_params_["gamma"])))),
        int(np.argmin(np.abs(np.log(cells.Cs / search.best_params_["C"])))),
    )
    chart = charts.heat_map(
        [number(C, 2) for C in cells.Cs],
        [number(gamma, 2) for gamma in cells.gammas],
        cells.means.T,
        x_title="C",
        y_title="gamma",
        label="Cross-validated score for each C and gamma",
        chosen=chosen,
    )
    low, high = np.nanmin(cells.means), np.nanmax(cells.means)
    caption = (
        f"The stronger the colour, the better: from {number(low)} to {number(high)}. The frame is "
        "the choice."
    )
    return [words, Figure("Score for each C and gamma", chart, caption)]


def _of_tuning(tuned: Any) -> list[Block]:
    blocks: list[Block] = [Words(visible(sentence, 2000)) for sentence in tuned.explanation]
    blocks.append(Words(f"All of it took {duration(tuned.seconds)}.", "faint"))
    figure = _map_of(tuned) or _curves_of(tuned)
    if figure is not None:
        blocks.append(figure)
    blocks += _tables_of(tuned)
    return blocks


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _map_of(tuned: Any) -> Figure | None:
    """A map of scores, if C and gamma are a full grid."""
    pairs = [_c_and_gamma(candidate) for candidate in tuned.candidates]
    known = [pair for pair in pairs if pair is not None]
    Cs, gammas = sorted({c for c, _ in known}), sorted({g for _, g in known})
    if len(known) != len(pairs) or len(Cs) < 2 or len(gammas) < 2:
        return None
    values = np.full((len(gammas), len(Cs)), np.nan)
    for (c, g), score in zip(known, tuned.scores.tolist(), strict=True):
        values[gammas.index(g), Cs.index(c)] = score
    c, g = known[tuned.chosen]
    chart = charts.heat_map(
        [number(C, 2) for C in Cs],
        [number(gamma, 2) for gamma in gammas],
        values,
        x_title="C",
        y_title="gamma",
        label=f"{visible(tuned.scoring)} for each C and gamma",
        chosen=(gammas.index(g), Cs.index(c)),
    )
    low, high = np.nanmin(values), np.nanmax(values)
    caption = (
        f"The stronger the colour, the better: from {number(low)} to {number(high)}. The frame is "
        "the choice."
    )
    return Figure(f"{visible(tuned.scoring)} for each C and gamma", chart, caption)


def _c_and_gamma(candidate: Mapping[str, Any]) -> tuple[float, float] | None:
    values = {name.rpartition("__")[2]: value for name, value in candidate.items()}
    if not (_is_number(values.get("C")) and _is_number(values.get("gamma"))):
        return None
    return float(values["C"]), float(values["gamma"])


def _curves_of(tuned: Any) -> Figure | None:
    """Scores against the numeric parameter with the most values that all candidates have."""
    counts = {}
    for name in tuned.candidates[0]:
        tried = [candidate.get(name) for candidate in tuned.candidates]
        if all(_is_number(value) for value in tried):
            counts[name] = len(set(tried))
    if not counts or max(counts.values()) < 2:
        return None
    axis = max(counts, key=lambda name: counts[name])
    lines: dict[str, list[int]] = {}
    for place, candidate in enumerate(tuned.candidates):
        others = ", ".join(
            f"{name}={_in_words(value)}" for name, value in candidate.items() if name != axis
        )
        lines.setdefault(others, []).append(place)
    values = np.array([candidate[axis] for candidate in tuned.candidates], dtype=np.float64)
    area = PlotArea(
        {"values": values, "may_be_log": True},
        {"values": tuned.scores},
        x_title=visible(axis, 40),
        y_title=visible(tuned.scoring, 40),
        label=f"{visible(tuned.scoring)} against {visible(axis)}",
    )
    legend = []
    for code, (name, places) in enumerate(list(lines.items())[:_MAX_LINES]):
        order = np.array(places)[np.argsort(values[places], kind="stable")]
        scores, errors = tuned.scores[order], tuned.standard_errors[order]
        area.band(values[order], scores - errors, scores + errors, code)
        area.line(values[order], scores, code, name=name)
        legend.append(Legend(code, visible(name or "all", 60)))
    area.dots([values[tuned.chosen]], [tuned.score], 0, titles=["chosen"], radius=5.0, kind="pick")
    left_out = max(len(lines) - _MAX_LINES, 0)
    caption = "The ring is the choice; bands are one standard error."
    if left_out:
        caption += f" {counted(left_out, 'line')} left out."
    shown = tuple(legend) if len(legend) > 1 else ()
    return Figure(f"{visible(tuned.scoring)} against {visible(axis)}", area.svg(), caption, shown)


def _in_words(value: Any) -> str:
    return number(value) if _is_number(value) else visible(repr(value), 30)


def _tables_of(tuned: Any) -> list[Block]:
    """The best settings, with the chosen one, and the next ones on demand."""
    order = np.argsort(-np.nan_to_num(tuned.scores, nan=-np.inf), kind="stable").tolist()
    first = order[:_BEST_ROWS]
    if tuned.chosen not in first:
        first = [*first[:-1], tuned.chosen]
    rest = [k for k in order if k not in first]
    tables: list[Block] = [
        _table_of(tuned, first, "What was tried, the best first", _ties_in_words(tuned))
    ]
    if rest:
        shown = rest[: _MAX_ROWS - len(first)]
        left_out = len(rest) - len(shown)
        note = f"{counted(left_out, 'setting')} with lower scores left out." if left_out else ""
        words = f"{counted(len(shown), 'setting')} more"
        tables.append(_table_of(tuned, shown, "What else was tried", note, folded=words))
    return tables


def _ties_in_words(tuned: Any) -> str:
    n_best = int(np.count_nonzero(tuned.scores == np.nanmax(tuned.scores)))
    return f"{counted(n_best, 'setting')} share the highest score." if n_best > 1 else ""


def _table_of(
    tuned: Any, places: list[int], caption: str, note: str = "", *, folded: str = ""
) -> Table:
    names = list(dict.fromkeys(name for candidate in tuned.candidates for name in candidate))[:8]
    rows = tuple(
        (
            *(_parameter_cell(tuned.candidates[k].get(name)) for name in names),
            Cell(number(tuned.scores[k]), float(tuned.scores[k]), is_number=True,
                 is_strong=k == tuned.chosen),
            Cell(number(tuned.standard_errors[k], 2), float(tuned.standard_errors[k]),
                 is_number=True),
            Cell("chosen" if k == tuned.chosen else ""),
        )
        for k in places
    )  # fmt: skip
    titles = (*((visible(name, 40), True) for name in names), (visible(tuned.scoring, 40), True),
              ("standard error", True), ("", False))  # fmt: skip
    return Table(caption, titles, rows, note, folded=folded)


def _parameter_cell(value: Any) -> Cell:
    order = float(value) if _is_number(value) else None
    return Cell(_in_words(value), order, is_number=True)
