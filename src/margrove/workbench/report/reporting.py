"""`report`: from a fitted model and its rows to a page that can be shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from margrove._files import write_atomically
from margrove.workbench.report.blocks import Remark, Remarks, Section
from margrove.workbench.report.document import page_of, require_jinja
from margrove.workbench.report.judgement import judgement_of
from margrove.workbench.report.profile import table_profile
from margrove.workbench.report.sections import (
    data_section,
    dependence_section,
    judged_section,
    leaderboard_section,
    model_section,
    reproduction_section,
    summary_section,
    tuning_of,
    tuning_section,
)
from margrove.workbench.report.subject import subject_of
from margrove.workbench.report.texts import visible

__all__ = ["Report", "report"]


@dataclass(frozen=True, repr=False)
class Report:
    """A report as one page of HTML.

    Attributes
    ----------
    html : str
        All of it: it loads nothing and sends nothing.
    title : str
    gaps : tuple of str
        Sections that could not be made, and why; the page says so in their place.
    """

    html: str
    title: str
    gaps: tuple[str, ...] = field(default=())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file, as a whole or not at all.

        Parameters
        ----------
        path : str or path
            By custom, names end in ".html".
        overwrite : bool, default=False
            Whether a file that is there may be replaced.

        Returns
        -------
        Path
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} is there already. Use overwrite=True to replace it, or another name."
            )
        write_atomically(path, [self.html.encode("utf-8")])
        return path

    def _repr_html_(self) -> str:
        """In a notebook, the page in a frame of its own, which may run its script and no more."""
        from html import escape

        return (
            f'<iframe title="Report" sandbox="allow-scripts" width="100%" height="800" '
            f'srcdoc="{escape(self.html, quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report {self.title!r}, {len(self.html.encode()) / 1e3:,.0f} kB>"


def report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    test_rows: Any = None,
    comparison: Any = None,
    diagnosis: Any = None,
    tuning: Any = None,
    title: str | None = None,
    source: Any = None,
    seed: Any = None,
    recipe: Any = None,
) -> Report:
    """A report on a fitted model: one page of HTML that needs nothing else.

    It has a summary in sentences, the data, the models that were compared, what tuning tried, the
    model itself (machine, tree, forest or boosting), how good it is on rows that it has not seen,
    what moves its answer, and how to do it again.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Ours, or any under scikit-learn's API. Of a pipeline, the last step is described.
    X, y : the rows it was trained on, and their targets
    X_test, y_test : optional
        Rows that it has not seen. Without them it is judged by those of the training, and the
        report says that this flatters it.
    test_rows : array-like, optional
        Numbers of these rows in the table that they are from, by which mistakes are named.
    comparison : Comparison, optional
        What `margrove.compare` returns.
    diagnosis : Diagnosis, optional
        What `margrove.doctor` returns.
    tuning : optional
        What `margrove.autotune` returns, or a fitted SVCCV, SVRCV or LinearSVCCV. By default what
        the model itself remembers.
    title : str, optional
    source : str or path, optional
        Where the data are from, such as the name of a file; its folder is not shown.
    seed : int, optional
        The seed that was used, to be told.
    recipe : str or mapping, optional
        How the model was made, to be told: text, or settings by name, of which "command" is a
        command line and "target" the name of what is predicted.

    Returns
    -------
    Report
        With `html` and `save`. The same arguments give the same bytes.

    Examples
    --------
    >>> import margrove
    >>> from margrove.workbench.report import report
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> tree = margrove.DecisionTreeClassifier(max_depth=2).fit(X[::2], y[::2])
    >>> found = report(tree, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2], title="Flowers")
    >>> found.html.startswith("<!DOCTYPE html>"), found.gaps
    (True, ())
    """
    require_jinja()
    subject = subject_of(model, X, y, X_test, y_test, recipe, test_rows)
    judgement = judgement_of(subject)
    place = "" if source is None else os.path.basename(str(source)) or str(source)
    profile = table_profile(subject.X)
    tuned = tuning_of(tuning, model)
    parts: list[tuple[str, str, Callable[[], Section]]] = [
        ("summary", "Summary",
         lambda: summary_section(subject, judgement, profile, comparison, diagnosis)),
        ("data", "Data", lambda: data_section(subject, profile, diagnosis, comparison is not None)),
    ]  # fmt: skip
    if comparison is not None:
        parts.append(("leaderboard", "Models compared", lambda: leaderboard_section(comparison)))
    if tuned is not None:
        parts.append(("tuning", "Tuning", lambda: tuning_section(tuned)))
    parts.append(("model", "The model", lambda: model_section(subject)))
    if subject.judged_answers is not None:
        parts.append(("judged", "How good it is", lambda: judged_section(subject, judgement)))
    if subject.task in ("classification", "regression"):
        parts.append(("dependence", "What moves the answer",
                      lambda: dependence_section(subject)))  # fmt: skip
    parts.append(("reproduction", "How to do it again",
                  lambda: reproduction_section(subject, place, seed, recipe)))  # fmt: skip
    sections, gaps = _made(parts)
    shown = visible(title, 200) if title else _usual_title(subject.estimator, subject.target)
    return Report(page_of(shown, visible(place, 200) if place else "", sections), shown, gaps)


def _usual_title(estimator: str, target: str) -> str:
    return f"{visible(estimator)} for {visible(target)}" if target else visible(estimator)


def _made(
    parts: list[tuple[str, str, Callable[[], Section]]],
) -> tuple[list[Section], tuple[str, ...]]:
    """One chart that cannot be drawn must not cost the whole report: it says so instead."""
    sections, gaps = [], []
    for name, title, make in parts:
        try:
            sections.append(make())
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            gaps.append(f"{title}: {type(error).__name__}: {first}")
            words = f"This part could not be made: {type(error).__name__}: {visible(first, 400)}"
            sections.append(Section(name, title, [Remarks((Remark("warning", words),))]))
    return sections, tuple(gaps)
