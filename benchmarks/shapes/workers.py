"""A process for each library, which fits and predicts when it is asked to."""

from __future__ import annotations

import multiprocessing
import pickle
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from shapes import contestants
from shapes.contestants import Estimator

__all__ = ["Failed", "Library", "TookTooLong"]

_SECONDS_TO_START = 120.0


class TookTooLong(Exception):  # noqa: N818
    """A call did not end in its time; its process has been ended."""


class Failed(Exception):  # noqa: N818
    """A call raised an error."""


class Library:
    """The process of one library; it is started again after a call that took too long."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._folder = name, folder
        self._process: Any = None

    def ask(self, what: str, *arguments: Any, seconds: float = 600.0) -> Any:
        """The answer of the process to a call of one of the methods of `_Served`."""
        if self._process is None:
            self._start()
        self._ours.send((what, arguments))
        if not self._ours.poll(seconds):
            self.stop()
            raise TookTooLong
        try:
            is_good, answer = self._ours.recv()
        except EOFError:  # it was killed, for want of memory perhaps
            self.stop()
            raise Failed("the process is gone") from None
        if not is_good:
            raise Failed(answer)
        return answer

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self.name, str(self._folder), sys.path), daemon=True
        )
        self._process.start()
        theirs.close()
        if not self._ours.poll(_SECONDS_TO_START):
            raise Failed("the process did not start")
        self._ours.recv()


def _serve(connection: Any, library: str, folder: str, path: list[str]) -> None:
    sys.path[:] = path
    warnings.simplefilter("ignore")
    served = _Served(library, Path(folder))
    connection.send("ready")
    while True:
        try:
            what, arguments = connection.recv()
        except EOFError:
            return
        try:
            connection.send((True, getattr(served, what)(*arguments)))
        except BaseException as error:
            traceback.print_exc(file=sys.stderr) if "--trace" in sys.argv else None
            connection.send((False, f"{type(error).__name__}: {str(error)[:200]}"))


class _Served:
    """What a process does: times are seconds of one call, the mean of `repeats` of them."""

    def __init__(self, library: str, folder: Path) -> None:
        self._library, self._folder = library, folder
        self._table: tuple[str, Any] = ("", None)
        self._model: Any = None
        if library == contestants.OURS:
            import margrove  # noqa: F401

    def fit(
        self, table: str, estimator: Estimator, settings: dict[str, Any], repeats: int
    ) -> float:
        X, y, *_ = self._rows_of(table, estimator)
        start = time.perf_counter()
        for _ in range(repeats):
            model = contestants.made(self._library, estimator, settings, X.shape[0])
            self._model = contestants.fit(model, estimator, X, y)
        return (time.perf_counter() - start) / repeats

    def quality(self, table: str, estimator: Estimator) -> tuple[float, float]:
        """The figure that must not be larger than a peer's, and by how much it may be."""
        X, y, X_test, y_test = self._rows_of(table, estimator)
        if estimator.quality == "objective":
            found = contestants.objective(self._model, estimator, X, y)
            return found, 2e-3 * abs(found)
        each = contestants.losses(self._model, estimator, X_test, y_test)
        return float(each.mean()), 2.0 * float(each.std() / np.sqrt(len(each))) + 1e-12

    def predict(self, table: str, estimator: Estimator, n: int, repeats: int) -> float:
        """Rows of the test, as often as it takes."""
        X = self._rows_of(table, estimator)[2]
        rows = np.arange(n) % X.shape[0]
        wanted = X[rows]
        if hasattr(self._model, "n_jobs") and self._library != contestants.OURS:
            self._model.n_jobs = -1 if n >= 1000 else None
        start = time.perf_counter()
        for _ in range(repeats):
            self._model.predict(wanted)
        return (time.perf_counter() - start) / repeats

    def _rows_of(self, table: str, estimator: Estimator) -> Any:
        key = f"{table}, {estimator.name}"
        if self._table[0] != key:
            X, y, X_test, y_test = pickle.loads((self._folder / table).read_bytes())
            dense = contestants.dense_if_needed
            X, X_test = (dense(self._library, estimator, Z) for Z in (X, X_test))
            self._table = key, (X, y, X_test, y_test)
        return self._table[1]
