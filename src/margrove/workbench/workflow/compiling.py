"""The first run compiles kernels: on all cores, before anything is timed.

Each learner is fitted to a few rows of the table by a process of its own, which leaves machine code
in the cache. A file in the cache remembers for which learners that has been done.
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
# Those that take longest to compile go first, so that no core waits for another at the end.
_SLOWEST = ("bagging", "forest", "boosting", "tree", "adaboost", "svm")
_PROGRAM = (
    "import sys; from margrove.workbench.workflow.compiling import fit_sample; "
    "fit_sample(*sys.argv[1:])"
)


def compile_learners(
    task: Task, learners: Sequence[str], observer: Observer, n_jobs: int | None
) -> None:
    """Put what the learners need into the cache; from the second run on, it is there."""
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
    """A few rows, of several classes."""
    import numpy as np

    order = np.random.default_rng(0).permutation(task.n_rows)[: 20 * _FEW_ROWS]
    if task.kind == "classification":  # two of each class first
        seen = np.unique(task.y[order], return_index=True)[1]
        order = np.concatenate([order[seen], np.delete(order, seen)])
    rows = np.sort(order[:_FEW_ROWS])
    return task.X[rows], task.y[rows], task.types


def fit_sample(sample: str, learner: str, kind: Any) -> None:
    """The program of a compiling process. An error here comes again in the fit itself."""
    from margrove.workbench.tables import table_model
    from margrove.workbench.workflow.learners import make_learner

    warnings.simplefilter("ignore")
    X, y, types = pickle.loads(Path(sample).read_bytes())
    model = table_model(make_learner(learner, kind, n_jobs=-1), types).fit(X, y)
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
