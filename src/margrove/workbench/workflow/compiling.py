"""Compiles kernels before the first run, on all cores, so that fits can be timed.

Each learner is fitted to a few rows of the table by a separate process, which stores machine code
in the cache. A file in the cache marks the learners that are done.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from margrove.workbench.tables import Task
    from margrove.workbench.workflow.observer import Observer

__all__ = ["compile_learners"]

_FEW_ROWS = 150
# The slowest to compile come first, so that no core waits for another at the end.
_SLOWEST = ("bagging", "forest", "boosting", "tree", "adaboost", "svm")
_PROGRAM = (
    "import sys; from margrove.workbench.workflow.compiling import fit_sample; "
    "fit_sample(*sys.argv[1:])"
)


def compile_learners(
    task: Task, learners: Sequence[str], observer: Observer, n_jobs: int | None
) -> None:
    """Compile the kernels of the learners, unless they are in the cache already."""
    from margrove._runtime import EVERYTHING, mark_in_cache, resolve_n_jobs, run_side_by_side

    everything = mark_in_cache(EVERYTHING)
    if everything is None or not sys.executable or everything.exists():
        return
    named = {name: mark_in_cache(f"{name}-{task.kind}") for name in learners}
    marks = {name: mark for name, mark in named.items() if mark is not None}
    missing = sorted(
        (name for name, mark in marks.items() if not mark.exists()),
        key=lambda name: _SLOWEST.index(name) if name in _SLOWEST else len(_SLOWEST),
    )
    if not missing:
        return
    observer.note("Compiling, on the first run only: this takes a minute or two.")
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.pickle")
        sample.write_bytes(pickle.dumps(_sample(task)))
        programs = [(_PROGRAM, str(sample), name, task.kind) for name in missing]
        run_side_by_side(programs, resolve_n_jobs(n_jobs, unset="all"))
    for name in missing:
        marks[name].touch()


def _sample(task: Task) -> tuple[Any, Any, dict[str, str]]:
    """A few rows of several classes: X, y and types of columns."""
    import numpy as np

    order = np.random.default_rng(0).permutation(task.n_rows)[: 20 * _FEW_ROWS]
    if task.kind == "classification":  # two of each class first
        seen = np.unique(task.y[order], return_index=True)[1]
        order = np.concatenate([order[seen], np.delete(order, seen)])
    rows = np.sort(order[:_FEW_ROWS])
    return task.X[rows], task.y[rows], task.types


def fit_sample(sample: str, learner: str, kind: Any) -> None:
    """The program of a compiling process. Errors are ignored: the fit itself raises them again."""
    from margrove.workbench.tables import table_model
    from margrove.workbench.workflow.learners import make_learner

    warnings.simplefilter("ignore")
    X, y, types = pickle.loads(Path(sample).read_bytes())
    model = table_model(make_learner(learner, kind, n_jobs=-1), types).fit(X, y)
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
