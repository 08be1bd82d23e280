"""report: from a fitted model and its rows to a page."""

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
    """A report as one HTML page.

    Attributes
    ----------
    html : str
        The page. It loads nothing and sends nothing.
    title : str
    gaps : tuple of str
        Sections that could not be made, and why; the page says so instead.
    """

    html: str
    title: str
    gaps: tuple[str, ...] = field(default=())

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file, completely or not at all.

        Parameters
        ----------
        path : str or path
            Usually a name that ends in ".html".
        overwrite : bool, default=False
            Whether an existing file is replaced.

        Returns
        -------
        Path
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists already. Use overwrite=True to replace it, or another name."
            )
        write_atomically(path, [self.html.encode("utf-8")])
        return path

    def _repr_html_(self) -> str:
        """In a notebook, the page in a sandboxed frame, which can only run its script."""
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
    """Make a report on a fitted model: one HTML page without other files.

    It has a summary in sentences, the data, the models that were compared, the settings that were
    tried, the model itself (machine, tree, forest or boosting), how good it is on rows that it has
    not seen, which columns its predictions depend on, and how to reproduce it.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Of margrove, or another with scikit-learn's API. Of a pipeline, the last step is described.
    X, y : the rows it was trained on, and their targets
    X_test, y_test : optional
        Rows that it has not seen. Without them it is judged by the training rows, and the report
        says that this is too optimistic.
    test_rows : array-like, optional
        Indices of these rows in the original table, which are used to name mistakes.
    comparison : Comparison, optional
        The result of `margrove.compare`.
    diagnosis : Diagnosis, optional
        The result of `margrove.doctor`.
    tuning : optional
        The result of `margrove.autotune`, or a fitted SVCCV, SVRCV or LinearSVCCV. By default, the
        tuning that is stored in the model.
    title : str, optional
    source : str or path, optional
        The origin of the data, such as the name of a file; its folder is not shown.
    seed : int, optional
        The seed that was used, to be shown.
    recipe : str or mapping, optional
        How the model was made, to be shown: text, or settings by name, where "command" is a command
        line and "target" the name of the target.

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
    if subject.judged_targets is not None:
        parts.append(("judged", "How good it is", lambda: judged_section(subject, judgement)))
    if subject.task in ("classification", "regression"):
        parts.append(("dependence", "What moves the answer",
                      lambda: dependence_section(subject)))  # fmt: skip
    parts.append(("reproduction", "How to do it again",
                  lambda: reproduction_section(subject, place, seed, recipe)))  # fmt: skip
    sections, gaps = _made(parts)
    shown = visible(title, 200) if title else _default_title(subject.estimator, subject.target)
    return Report(page_of(shown, visible(place, 200) if place else "", sections), shown, gaps)


def _default_title(estimator: str, target: str) -> str:
    return f"{visible(estimator)} for {visible(target)}" if target else visible(estimator)


def _made(
    parts: list[tuple[str, str, Callable[[], Section]]],
) -> tuple[list[Section], tuple[str, ...]]:
    """The sections; one that cannot be made is replaced by a remark, not by an error."""
    sections, gaps = [], []
    for name, title, make in parts:
        try:
            sections.append(make())
        except Exception as error:
            first = str(error).strip().partition("\n")[0]
            gaps.append(f"{title}: {type(error).__name__}: {first}")
            words = f"This section could not be made: {type(error).__name__}: {visible(first, 400)}"
            sections.append(Section(name, title, [Remarks((Remark("warning", words),))]))
    return sections, tuple(gaps)
