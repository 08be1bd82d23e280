"""Slices: how iterative learners run, and how fits are watched, limited and cancelled.

Compiled code cannot see Ctrl-C, a clock or a listener. So a learner is a `Process` that is
advanced in slices of about 50 ms. Between two slices `drive` looks for an interrupt, the time
limit and a cancel, and reports to callbacks, step listeners and the progress bar.

The clock decides where a slice ends, which must not change the iterates: the whole state of a
process is in arrays, and they are consistent whenever the kernel returns. `checkpoints` saves this
state between two slices.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, Protocol

from margrove.exceptions import ConvergenceWarning, FitCancelled, InterruptedFitWarning

__all__ = [
    "SUPPORTS_CALLBACKS",
    "CheckpointKeeper",
    "Ending",
    "Process",
    "Progress",
    "drive",
    "is_checkpointed",
    "is_unattended",
    "is_watched_by_rounds",
    "resumed_seed",
    "step_capacity",
    "unwatched",
    "using_checkpoints",
    "watch",
]

# scikit-learn has callbacks from version 1.9 on; `watch` works with every version. Importing them
# takes as long as a small fit, so they are imported only when a callback is set.
SUPPORTS_CALLBACKS = find_spec("sklearn.callback") is not None

SLICE_SECONDS = 0.05
_FIRST_SLICE_WORK = 2_000_000
_STEP_CAPACITY = 4096

Ending = Literal["finished", "max_time", "callback", "interrupt"]


@dataclass(frozen=True)
class Progress:
    """How far a fit has come: `done` of `total` rounds, and figures of the learner."""

    learner: str
    unit: str
    done: int
    total: int | None
    seconds: float
    figures: Mapping[str, float] = field(default_factory=dict)


class Process(Protocol):
    """A computation that can be advanced in small steps.

    unit, total     the name of a round ("epoch"), and the largest number of rounds
    rounds          how many rounds are complete
    finished        whether no further round is needed
    advance(work)   does about `work` multiply-adds, at least one elementary step, but never runs
                    past the end of a round; returns how much it did
    read_steps()    returns the recorded elementary steps and empties their buffer
    figures()       numbers for people to read

    Processes that support checkpoints have two more methods. `state()`, called between slices,
    returns everything that the next slice depends on, except what the process was made from: a
    dictionary of plain values and arrays that later slices do not change, the same for any number
    of threads. `restore(state)` sets this state in a new process with the same data and parameters;
    it checks everything that could send compiled code out of bounds. `limit`, if it exists, names
    the parameter of the learner that only says when to stop.
    """

    unit: str
    total: int | None

    @property
    def rounds(self) -> int: ...
    @property
    def finished(self) -> bool: ...
    def advance(self, work: float) -> float: ...
    def read_steps(self) -> list[Any]: ...
    def figures(self) -> dict[str, float]: ...


class CheckpointKeeper(Protocol):
    """Saves the states of processes to a file; see `checkpoints`."""

    def seed(self, drawn: int) -> int:
        """The seed of the resumed session in place of `drawn`, if there is one, else `drawn`."""

    def keep(
        self, process: Process, estimator: Any, given: Mapping[str, Any]
    ) -> AbstractContextManager[Callable[[float], float]]:
        """Restore a process, and yield the function to call in place of its `advance`."""


@dataclass(frozen=True)
class _Watch:
    """The active listeners, outermost first, and the active keeper."""

    on_step: tuple[Callable[[Any], None], ...] = ()
    on_progress: tuple[Callable[[Progress], bool | None], ...] = ()
    cancel: tuple[Any, ...] = ()
    progress_bar: bool = False
    keeper: CheckpointKeeper | None = None

    @property
    def cancelled(self) -> bool:
        return any(event.is_set() for event in self.cancel)

    def tell_steps(self, steps: list[Any]) -> None:
        with _unwatched(self):
            for step in steps:
                for listener in self.on_step:
                    listener(step)

    def tell_progress(self, progress: Progress) -> bool:
        """Call the listeners; True if one of them wants the fit to end."""
        with _unwatched(self):
            answers = [listener(progress) for listener in self.on_progress]
        return any(answers)


_NO_WATCH = _Watch()
_WATCH: ContextVar[_Watch] = ContextVar("margrove_watch", default=_NO_WATCH)
_FITTING: ContextVar[tuple[int, ...]] = ContextVar("margrove_fitting", default=())
_BY_ROUNDS: ContextVar[bool] = ContextVar("by_rounds", default=False)


@contextmanager
def _unwatched(outer: _Watch) -> Iterator[None]:
    """Do not report the fits inside to listeners; they can still be cancelled."""
    token = _WATCH.set(_Watch(cancel=outer.cancel))
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def watch(
    *,
    on_step: Callable[[Any], None] | None = None,
    on_progress: Callable[[Progress], bool | None] | None = None,
    cancel: Any = None,
    progress_bar: bool = False,
) -> Iterator[None]:
    """Watch, steer or cancel every fit of this library inside the `with` block.

    Blocks may be nested: the listeners of all of them are called. Fits that a listener starts are
    not reported, nor are fits in other threads or processes, such as those of
    `cross_val_score(..., n_jobs=2)`.

    Parameters
    ----------
    on_step : callable, optional
        Called with a small record for each elementary step (a perceptron update, ...), in order.
        The fitted model is the same, bit for bit, with and without a listener.
    on_progress : callable, optional
        Called with a `Progress` about twenty times a second; if it returns True, the fit ends and
        keeps what it has learnt so far.
    cancel : object with `is_set()`, optional
        For example a `threading.Event`. Once set, the fit raises `FitCancelled` and leaves the
        estimator as it was.
    progress_bar : bool, default=False
        Show a progress bar on standard error.

    Examples
    --------
    >>> import margrove
    >>> updates = []
    >>> with margrove.watch(on_step=updates.append):
    ...     model = margrove.Perceptron().fit([[0.0, 1.0], [1.0, 0.0]], ["up", "right"])
    >>> len(updates) == model.mistakes_
    True
    """
    for name, listener in (("on_step", on_step), ("on_progress", on_progress)):
        if listener is not None and not callable(listener):
            raise TypeError(f"{name} must be callable. Got {listener!r} instead.")
    if cancel is not None and not hasattr(cancel, "is_set"):
        raise TypeError(
            f"cancel must have is_set(), as threading.Event has. Got {cancel!r} instead."
        )
    outer = _WATCH.get()
    inner = _Watch(
        outer.on_step + ((on_step,) if on_step is not None else ()),
        outer.on_progress + ((on_progress,) if on_progress is not None else ()),
        outer.cancel + ((cancel,) if cancel is not None else ()),
        outer.progress_bar or progress_bar,
        outer.keeper,
    )
    token = _WATCH.set(inner)
    try:
        yield
    finally:
        _WATCH.reset(token)


@contextmanager
def using_checkpoints(keeper: CheckpointKeeper | None) -> Iterator[None]:
    """Set the keeper of the fits inside; None for no checkpoints."""
    token = _WATCH.set(replace(_WATCH.get(), keeper=keeper))
    try:
        yield
    finally:
        _WATCH.reset(token)


def is_checkpointed() -> bool:
    """Whether fits are saved in a checkpoint, so that states of processes are needed."""
    return _WATCH.get().keeper is not None


def resumed_seed(drawn: int) -> int:
    """A seed that was drawn at random, or, in a resumed fit, the seed that it had before."""
    keeper = _WATCH.get().keeper
    return drawn if keeper is None else keeper.seed(drawn)


@contextmanager
def unwatched() -> Iterator[None]:
    """The fits inside are steps of another fit: they are not reported, but can be cancelled."""
    with _unwatched(_WATCH.get()):
        yield


def step_capacity() -> int:
    """How many elementary steps a kernel records before it returns; 0 if there is no listener."""
    return _STEP_CAPACITY if _WATCH.get().on_step else 0


def is_unattended(estimator: Any) -> bool:
    """Whether nobody watches or cancels a fit: then a short one may do without slices."""
    watched = _WATCH.get()
    return not (
        watched.on_step
        or watched.on_progress
        or watched.cancel
        or watched.progress_bar
        or watched.keeper
        or getattr(estimator, "_skl_callbacks", None)
        or id(estimator) in _FITTING.get()
    )


def is_watched_by_rounds() -> bool:
    """Whether each round of the fit that runs now is to end a slice, because somebody watches."""
    return _BY_ROUNDS.get()


def drive(
    process: Process,
    estimator: Any,
    *,
    max_time: float | None = None,
    on_interrupt: Literal["raise", "keep"] = "raise",
    verbose: int = 0,
    X: Any = None,
    y: Any = None,
    fitted: Callable[[], dict[str, Any]] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Ending:
    """Run a process to its end, slice by slice, and return how it ended.

    A process that is stopped early and keeps its result (`max_time`, or an interrupt with
    `on_interrupt="keep"`) warns. X, y and `fitted` are for scikit-learn's callbacks; `fitted()`
    returns the fitted attributes as if the process ended now. `given` are further arguments of the
    fit that change its result, such as weights: a checkpoint is resumed with the same data only.
    """
    name = type(estimator).__name__
    if id(estimator) in _FITTING.get():
        raise RuntimeError(
            f"This {name} is being fitted already: a callback of its own fit called fit again. "
            "Fit a clone instead: sklearn.base.clone(estimator).fit(X, y)."
        )
    # A new context ends with the fit, even if an interrupt comes between two lines here.
    inside = copy_context()
    inside.run(_BY_ROUNDS.set, not is_unattended(estimator))
    inside.run(_FITTING.set, (*_FITTING.get(), id(estimator)))
    try:
        arguments = {"X": X, "y": y, **(given or {})}
        with (
            _kept(process, estimator, arguments) as advance,
            _progress_bar(process, name, verbose) as bar,
        ):
            run = partial(_drive, process, advance, name, max_time, bar)
            if getattr(estimator, "_skl_callbacks", None):
                ending = inside.run(_drive_with_callbacks, estimator, process, run, X, y, fitted)
            else:
                ending = inside.run(run, _no_callback)
    except KeyboardInterrupt:
        if on_interrupt != "keep":
            raise
        ending = "interrupt"
    _warn_of_early_end(ending, name, process, max_time)
    return ending


@contextmanager
def _kept(
    process: Process, estimator: Any, given: Mapping[str, Any]
) -> Iterator[Callable[[float], float]]:
    """The function that advances a process; a keeper restores the process first."""
    keeper = _WATCH.get().keeper
    if keeper is None:
        yield process.advance
        return
    with keeper.keep(process, estimator, given) as advance:
        yield advance


def _drive(
    process: Process,
    advance: Callable[[float], float],
    name: str,
    max_time: float | None,
    bar: Callable[[Progress], None],
    on_round: Callable[[bool], bool],
) -> Ending:
    watched = _WATCH.get()
    start = time.monotonic()
    work = float(_FIRST_SLICE_WORK)
    rounds = process.rounds
    on_round(False)
    while not process.finished:
        before = time.monotonic()
        done = advance(work)
        now = time.monotonic()
        work = _work_of_next_slice(work, done, now - before)
        if watched.on_step:
            watched.tell_steps(process.read_steps())
        progress = Progress(
            name, process.unit, process.rounds, process.total, now - start, process.figures()
        )
        bar(progress)
        if watched.cancelled:
            raise FitCancelled(
                f"Fitting {name} was cancelled after {process.rounds} rounds; "
                "the estimator is as it was before."
            )
        if process.rounds > rounds:
            rounds = process.rounds
            if on_round(True):
                return "callback"
        if watched.on_progress and watched.tell_progress(progress):
            return "callback"
        if max_time is not None and now - start >= max_time and not process.finished:
            return "max_time"
    return "finished"


def _work_of_next_slice(work: float, done: float, seconds: float) -> float:
    """The work of a slice at the last speed; it changes at most by a factor of four."""
    wanted = done * SLICE_SECONDS / max(seconds, 1e-6)
    return min(4.0 * work, max(0.25 * work, wanted))


def _no_callback(completed: bool) -> bool:
    return False


def _drive_with_callbacks(
    estimator: Any,
    process: Process,
    run: Callable[[Callable[[bool], bool]], Ending],
    X: Any,
    y: Any,
    fitted: Callable[[], dict[str, Any]] | None,
) -> Ending:
    """Report each round as a task of scikit-learn's callback API."""
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    @with_callbacks
    def fit(estimator: Any) -> Ending:
        fit_task = CallbackSupportMixin._init_callback_context(
            estimator, max_subtasks=process.total
        )
        given = {"estimator": estimator, "X": X, "y": y}
        result = given | {"reconstruction_attributes": fitted}
        fit_task.call_on_fit_task_begin(**given)
        tasks: list[Any] = []

        def on_round(completed: bool) -> bool:
            stop = False
            if completed:
                stop = tasks[-1].call_on_fit_task_end(**result)
            if not stop and not process.finished:
                task = fit_task.subcontext(task_name=process.unit)
                tasks.append(task.call_on_fit_task_begin(**given))
            return bool(stop)

        before = process.rounds
        ending = run(on_round)
        if ending != "finished" and len(tasks) > process.rounds - before:  # a round was cut short
            tasks[-1].call_on_fit_task_end(**result)
        fit_task.call_on_fit_task_end(**result)
        return ending

    return fit(estimator)


def _warn_of_early_end(ending: Ending, name: str, process: Process, max_time: float | None) -> None:
    if ending not in ("max_time", "interrupt"):
        return
    closing = getattr(process, "closing_figures", process.figures)()
    figures = ", ".join(f"{key} {value:.6g}" for key, value in closing.items())
    if ending == "max_time":
        of_all = "" if process.total is None else f"of {process.total} "
        warnings.warn(
            f"{name} used up max_time={max_time:g} s after {process.rounds} {of_all}"
            f"{process.unit}s ({figures}) and keeps what it has learnt. Raise max_time for more.",
            ConvergenceWarning,
            stacklevel=4,
        )
    elif ending == "interrupt":
        warnings.warn(
            f"{name} was interrupted after {process.rounds} {process.unit}s ({figures}) and keeps "
            "what it has learnt, as on_interrupt='keep' asks.",
            InterruptedFitWarning,
            stacklevel=4,
        )


@contextmanager
def _progress_bar(
    process: Process, name: str, verbose: int
) -> Iterator[Callable[[Progress], None]]:
    if not verbose and not _WATCH.get().progress_bar:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(f"{name}, {process.unit}s", total=process.total, figures="")

        def show(progress: Progress) -> None:
            figures = "  ".join(f"{key} {value:.6g}" for key, value in progress.figures.items())
            bar.update(task, completed=progress.done, figures=figures)

        yield show
