"""The main loop of the worker process: one request after the other, with warm-up fits between.

It has three threads. The main thread computes. One reads from the server, so that a cancel arrives
during a fit, and so that the worker ends with the server. One checks whether Numba compiles.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import secrets
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from margrove.studio.server import packed_result, progress, report_internal_error
from margrove.studio.worker.worker_protocol import (
    Kind,
    WorkerMessage,
    packed_report,
    unpacked_command,
)

__all__ = ["Job", "WorkerSettings", "run_worker"]

_SILENT_SECONDS = 0.15  # shorter requests show no progress
_PROGRESS_INTERVAL = 0.05
_COMPILER_CHECK_INTERVAL = 0.2
_IDLE_SECONDS = 1.0  # after a request, before the warm-up goes on
_LONGEST_MESSAGE = 600
_OUT_OF_MEMORY = (
    "This needs more memory than the studio may take. Use fewer points or rows, or a smaller model."
)


@dataclass(frozen=True)
class WorkerSettings:
    """Settings of a worker process.

    answers         module with ANSWERS: for each kind of request a function of (request, job)
    folder          of the uploaded tables; removed when the server has ended
    memory_bytes    limit of its memory, None for no limit
    is_warmed       whether it fits small models while there are no requests
    """

    answers: str
    folder: str
    memory_bytes: int | None = None
    is_warmed: bool = True


def _no_progress(note: str, done: int, total: int | None) -> None:
    """For jobs whose progress is not shown."""


def _no_report(name: str, page: str) -> None:
    """For jobs without a server."""


@dataclass
class Job:
    """What a function of ANSWERS gets besides the request.

    tables    paths of the tables by their names, "file" for the one of the command line
    cancel    set when the request is cancelled; fits check it themselves
    tell      sends progress to the page
    keep      sends a report to the server
    """

    tables: Mapping[str, Path] = field(default_factory=dict)
    cancel: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[str, int, int | None], None] = _no_progress
    keep: Callable[[str, str], None] = _no_report
    _next_note: float = field(default_factory=lambda: time.monotonic() + _SILENT_SECONDS)

    def progress(self, note: str, done: int, total: int | None) -> None:
        """Show progress in the page; notes that come too fast to be read are left out."""
        now = time.monotonic()
        if now >= self._next_note:
            self._next_note = now + _PROGRESS_INTERVAL
            self.tell(note, done, total)

    def keep_report(self, html: str) -> str:
        """Have the server keep a report; returns its name."""
        name = secrets.token_urlsafe(24)
        self.keep(name, html)
        return name


def run_worker(connection: Any, settings: WorkerSettings) -> None:
    """Answer requests until the server ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl-C and ends the worker
    warnings.simplefilter("ignore")  # answers collect the warnings that the page shows
    _limit_resources(settings.memory_bytes)
    _Worker(connection, settings).run()


def _limit_resources(memory_bytes: int | None) -> None:
    """Limit the data segment; threads and compilers reserve much more address space."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):  # a core dump would contain the user's data
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


class _Worker:
    """The state of the process; `run` never returns."""

    def __init__(self, connection: Any, settings: WorkerSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._sending = threading.Lock()
        self._requests: queue.SimpleQueue[WorkerMessage] = queue.SimpleQueue()
        self._cancels: dict[int, threading.Event] = {}
        self._tables: dict[str, Path] = {}

    def run(self) -> None:
        threading.Thread(target=self._read_messages, daemon=True).start()
        threading.Thread(target=self._watch_compiler, daemon=True).start()
        from margrove import watch  # noqa: F401  # so that no request waits for the import

        answers = _loaded(self._settings.answers)
        warm_up = self._warm_up(answers)
        self._send(Kind.READY)
        pause = 0.0
        while True:
            try:
                message = self._requests.get(timeout=pause)
            except queue.Empty:
                pause = 0.0
                if next(warm_up, None) is not None:
                    continue
                message = self._requests.get()
            self._answer(message, answers)
            pause = _IDLE_SECONDS  # the next request may follow soon

    def _warm_up(self, answers: Mapping[str, Any]) -> Iterator[bool]:
        """Fit small models, one each time, so that the first answers are quick."""
        if not self._settings.is_warmed:
            return
        from margrove.studio.worker.warm_up import warm_steps

        for step in warm_steps(answers):
            with contextlib.suppress(Exception):  # a request for the same model will show the error
                step()
            yield True

    # -- the other threads ---------------------------------------------------------------------

    def _read_messages(self) -> None:
        try:
            while True:
                message = WorkerMessage.from_bytes(self._connection.recv_bytes())
                if message.kind is Kind.ANSWER:
                    self._cancels[message.number] = threading.Event()
                    self._requests.put(message)
                elif message.kind is Kind.CANCEL:
                    wanted = self._cancels.get(message.number)  # None: it has just ended
                    if wanted is not None:
                        wanted.set()
        except (EOFError, OSError):  # the server has ended, perhaps by kill -9
            shutil.rmtree(self._settings.folder, ignore_errors=True)
            os._exit(0)

    def _watch_compiler(self) -> None:
        """Report a change once it was seen twice in a row: short compilations do not matter."""
        before = reported = False
        while True:
            time.sleep(_COMPILER_CHECK_INTERVAL)
            compiles = _is_compiling(threading.main_thread().ident)
            if before == compiles != reported:
                reported = compiles
                self._send(Kind.COMPILES, int(compiles))
            before = compiles

    def _send(self, kind: Kind, number: int = 0, content: bytes = b"") -> None:
        with self._sending, contextlib.suppress(OSError):  # the reading thread ends the process
            self._connection.send_bytes(WorkerMessage(kind, number, content).to_bytes())

    # -- requests ------------------------------------------------------------------------------

    def _answer(self, message: WorkerMessage, answers: Mapping[str, Any]) -> None:
        number = message.number
        cancel = self._cancels[number]
        try:
            if not cancel.is_set():
                self._send(Kind.BEGAN, number)
                self._send(Kind.RESULT, number, self._result(message, cancel, answers))
                return
        except Exception as error:
            if not cancel.is_set():
                self._send(Kind.ERROR, number, self._message_of(error).encode(errors="replace"))
                return
        finally:
            del self._cancels[number]
        self._send(Kind.CANCELLED, number)

    def _result(
        self, message: WorkerMessage, cancel: threading.Event, answers: Mapping[str, Any]
    ) -> bytes:
        from margrove import watch

        command, text = unpacked_command(message.content)
        page_id, channel, kind = command["id"], command["channel"], command["kind"]

        def tell(note: str, done: int, total: int | None) -> None:
            text = progress(page_id, channel, str(note), int(done), total)
            self._send(Kind.PROGRESS, message.number, text.encode())

        def keep(name: str, page: str) -> None:
            self._send(Kind.REPORT, message.number, packed_report(name, page))

        self._tables = {name: Path(path) for name, path in command["tables"].items()}
        job = Job(self._tables, cancel, tell, keep)
        if kind not in answers:
            raise ValueError(f"The studio has no answer to {kind!r}.")

        def report(fit: Any) -> None:
            job.progress("fitting", fit.done, fit.total)

        with watch(cancel=cancel, on_progress=report):
            body = answers[kind](json.loads(text), job)
        return packed_result(page_id, channel, body)

    def _message_of(self, error: Exception) -> str:
        """The text of an error for the page: no paths, and for a bug only its code."""
        text = str(error)
        for path in self._tables.values():
            text = text.replace(str(path), path.name)
        if isinstance(error, MemoryError):
            return text[:_LONGEST_MESSAGE] if "is available" in text else _OUT_OF_MEMORY
        if isinstance(error, (ValueError, ImportError)) or _is_studio_error(error):
            return text.replace(self._settings.folder, "")[:_LONGEST_MESSAGE]
        return _bug_message(error)


def _is_studio_error(error: Exception) -> bool:
    return type(error).__name__ == "StudioError" and type(error).__module__.startswith("margrove.")


def _bug_message(error: Exception) -> str:
    code = report_internal_error(error)
    return (
        f"This is a bug of margrove ({type(error).__name__}, {code}). Please report it, with what "
        "the terminal shows when the studio is started with MARGROVE_TRACEBACK=1."
    )


def _loaded(module: str) -> Mapping[str, Any]:
    """ANSWERS of a module; if it cannot be imported, every request gets the error."""
    try:
        answers: Mapping[str, Any] = importlib.import_module(module).ANSWERS
    except Exception as error:
        message = f"The studio could not be loaded. {_bug_message(error)}"
    else:
        return answers

    def refuse(request: Any, job: Job) -> Any:
        raise ValueError(message)

    return _Always(refuse)


class _Always(dict[str, Any]):
    """A dictionary with one value for all keys."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return self._answer


def _is_compiling(thread: int | None) -> bool:
    """Whether a thread is in Numba's compiler: one of its files is on the stack."""
    frame = sys._current_frames().get(thread or 0)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("compiler.py") and f"numba{os.sep}core{os.sep}" in name:
            return True
        frame = frame.f_back
    return False
