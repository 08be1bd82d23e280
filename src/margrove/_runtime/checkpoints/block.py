"""The `with` block `checkpoint`: fits inside it save their state to a file.

`checkpoint` sets a `slices.CheckpointKeeper` for the fits of a `with` block. Whenever one of
them drives a process, the keeper

    numbers it, in the order in which processes begin
    describes it: the learner, its parameters, the data, and the state that it starts from
    restores the state with the same number from the resumed file, if the descriptions agree
    saves the state between slices, and writes all states to the file, from time to time and at the
    end

A process that had finished is restored like any other, and has nothing left to do. So fits that
drive several processes, and meta-estimators that fit several models, skip those quickly.

Ctrl-C waits until a slice is over, because only then is the state of a process complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

from margrove._runtime.checkpoints.keeper import CheckpointKeeper
from margrove._runtime.checkpoints.records import read_checkpoint, require_free
from margrove._runtime.slices import using_checkpoints

__all__ = ["checkpoint"]


@contextmanager
def checkpoint(
    path: str | os.PathLike[str],
    *,
    every: float | None = 30.0,
    every_rounds: int | None = None,
    resume: bool = False,
    resume_from: str | os.PathLike[str] | None = None,
    others: Literal["raise", "fit"] = "raise",
) -> Iterator[None]:
    """Save the state of the fits inside the `with` block to a file, and resume them from it.

    This works for forests, bagging, AdaBoost, gradient boosting and kernel support vector machines,
    also inside a pipeline or a grid search. It does not work for perceptrons and linear machines:
    see `others`.

    A fit that was interrupted (Ctrl-C, a killed process, `max_time`, a cancel) and is resumed with
    the same parameters and data gives the same model as without the interruption, bit for bit.
    Kernel support vector machines are the exception: they continue from their last coefficients
    and end within their tolerance.

    The file is replaced in one step and stays when the fit is done; resuming it then returns the
    same model immediately. Parameters that change the result must be the same as before. `n_jobs`,
    `verbose`, `max_time` (which counts from the last start) and `on_interrupt` may differ, and
    `n_estimators`, or `max_iter` of histogram boosting, may be larger.

    Parameters
    ----------
    path : str or path-like
        The file. An existing checkpoint of an unfinished fit is not overwritten: resume or remove
        it.
    every : float or None, default=30.0
        Seconds between two writes. None: write only when a fit ends or is interrupted.
    every_rounds : int, optional
        Write also after this many rounds (trees, epochs, ...).
    resume : bool, default=False
        Resume from `path` if it exists, else start from the beginning.
    resume_from : str or path-like, optional
        Resume from this file, which must exist; it may be `path` itself.
    others : {"raise", "fit"}, default="raise"
        What to do with Perceptron, KernelPerceptron, LinearSVC and LinearSVR, which have no
        checkpoints: raise an error before they are fitted, or fit them, from the beginning in each
        session.

    Raises
    ------
    CheckpointError
        If the file has another learner, other parameters, other data or another version, or if
        the learner has no checkpoints; the message says which.
    ModelFileError
        If the file is damaged.

    Examples
    --------
    >>> import margrove, os, tempfile
    >>> X, y = margrove.datasets.load_iris(return_X_y=True)
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = os.path.join(folder.name, "forest.margrove")
    >>> def stop_early(progress):
    ...     if progress.done >= 20:
    ...         raise KeyboardInterrupt
    >>> forest = margrove.RandomForestClassifier(n_estimators=50)
    >>> try:
    ...     with margrove.checkpoint(file), margrove.watch(on_progress=stop_early):
    ...         forest.fit(X, y)
    ... except KeyboardInterrupt:
    ...     pass
    >>> with margrove.checkpoint(file, resume=True):
    ...     len(forest.fit(X, y))
    50
    >>> folder.cleanup()
    """
    _check_arguments(path, every, every_rounds, resume, resume_from)
    if others not in ("raise", "fit"):
        raise ValueError(f"others must be 'raise' or 'fit'. Got {others!r} instead.")
    target = Path(path)
    source = target if resume and target.exists() else resume_from
    if source is not None and not os.path.exists(source):
        raise FileNotFoundError(
            f"resume_from={os.fspath(source)!r}: there is no such checkpoint. Use resume=True to "
            "start from the beginning in this case."
        )
    recorded = None if source is None else read_checkpoint(Path(source))
    is_same = source is not None and target.exists() and os.path.samefile(source, target)
    if not is_same:
        require_free(target)
    keeper = CheckpointKeeper(
        target,
        every,
        every_rounds,
        recorded,
        os.fspath(source or target),
        others_raise=others == "raise",
    )
    try:
        with using_checkpoints(keeper):
            yield
    finally:
        keeper.close()
    keeper.warn_if_no_fit()


def _check_arguments(
    path: Any, every: Any, every_rounds: Any, resume: Any, resume_from: Any
) -> None:
    for name, value in (("path", path), ("resume_from", resume_from)):
        if not isinstance(value, str | os.PathLike) and (name == "path" or value is not None):
            raise TypeError(f"{name} must be the name of a file. Got {value!r} instead.")
    is_number = isinstance(every, Real) and not isinstance(every, bool)
    if every is not None and not (is_number and every > 0):
        raise ValueError(f"every must be a number of seconds above 0, or None. Got {every!r}.")
    is_integer = isinstance(every_rounds, Integral) and not isinstance(every_rounds, bool)
    if every_rounds is not None and not (is_integer and every_rounds >= 1):
        raise ValueError(f"every_rounds must be 1 or more, or None. Got {every_rounds!r}.")
    if not isinstance(resume, bool):
        raise TypeError(
            f"resume must be True or False. Got {resume!r} instead; pass the file to "
            "resume as resume_from."
        )
    if resume and resume_from is not None:
        raise ValueError("resume=True resumes from path: pass either resume or resume_from.")
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileNotFoundError(f"path={os.fspath(path)!r}: there is no folder {str(folder)!r}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"path={os.fspath(path)!r}: the folder cannot be written to.")
    if Path(path).is_dir():
        raise IsADirectoryError(f"path={os.fspath(path)!r} is a folder. Name a file in it.")
