"""The child process, seen from inside: one request after the other, and small fits in between.

Three threads: this one computes; one listens to the server, so that a cancel is heard during a fit
and the end of the server is the end of this process; one looks whether kernels are being compiled.
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

from margrove.studio.server.faults import noted_fault
from margrove.studio.server.messages import packed_result, progress
from margrove.studio.worker.worker_protocol import Kind, Letter, order_of, sealed_report

__all__ = ["Job", "Plan", "work"]

_SILENT_SECONDS = 0.15  # what is done by then needs no progress
_BETWEEN_NOTES = 0.05
_LOOK_EVERY = 0.2
_PAUSE_SECONDS = 1.0
_LONGEST_MESSAGE = 600
_OUT_OF_MEMORY = (
    "This needs more memory than the studio may take. Use fewer points or rows, or a smaller model."
)


@dataclass(frozen=True)
class Plan:
    """What a child is started with.

    answers         module with ANSWERS: for each kind of request a function of (ask, job)
    folder          where uploaded tables are; removed when the server is gone
    memory_bytes    that it may take, None for no limit
    is_warmed       whether small models are fitted while nobody asks
    """

    answers: str
    folder: str
    memory_bytes: int | None = None
    is_warmed: bool = True


def _not_told(note: str, done: int, total: int | None) -> None:
    """For jobs that nobody listens to."""


def _not_kept(name: str, page: str) -> None:
    """For jobs without a server."""


@dataclass
class Job:
    """What an answer is given beside the request.

    tables    paths of tables by the names that the page knows, "file" for that of the command line
    cancel    set when nobody waits for the answer any more; fits see to it by themselves
    """

    tables: Mapping[str, Path] = field(default_factory=dict)
    cancel: threading.Event = field(default_factory=threading.Event)
    tell: Callable[[str, int, int | None], None] = _not_told
    keep: Callable[[str, str], None] = _not_kept
    _next_note: float = field(default_factory=lambda: time.monotonic() + _SILENT_SECONDS)

    def progress(self, note: str, done: int, total: int | None) -> None:
        """Tell the page how far it is; what comes too fast to be read is left out."""
        now = time.monotonic()
        if now >= self._next_note:
            self._next_note = now + _BETWEEN_NOTES
            self.tell(note, done, total)

    def keep_report(self, html: str) -> str:
        """Have a report served, and give the name that it can be had by."""
        name = secrets.token_urlsafe(24)
        self.keep(name, html)
        return name


def work(connection: Any, plan: Plan) -> None:
    """What the process does until the server ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    warnings.simplefilter("ignore")  # answers collect those that are worth telling
    _limit_resources(plan.memory_bytes)
    _Workroom(connection, plan).run()


def _limit_resources(memory_bytes: int | None) -> None:
    """Memory that is written to, not addresses: threads and compilers reserve many of these."""
    if sys.platform == "win32":
        return
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the user's data
    if memory_bytes is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


class _Workroom:
    def __init__(self, connection: Any, plan: Plan) -> None:
        self._connection = connection
        self._plan = plan
        self._sending = threading.Lock()
        self._orders: queue.SimpleQueue[Letter] = queue.SimpleQueue()
        self._cancels: dict[int, threading.Event] = {}
        self._tables: dict[str, Path] = {}

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._look_for_compiling, daemon=True).start()
        from margrove import watch  # noqa: F401  # no request waits for the library to be read

        answers = _loaded(self._plan.answers)
        chores = self._chores(answers)
        self._send(Kind.READY)
        pause = 0.0
        while True:
            try:
                letter = self._orders.get(timeout=pause)
            except queue.Empty:
                pause = 0.0
                if next(chores, None) is not None:
                    continue
                letter = self._orders.get()
            self._answer(letter, answers)
            pause = _PAUSE_SECONDS  # whoever has asked may ask on

    def _chores(self, answers: Mapping[str, Any]) -> Iterator[bool]:
        """What makes the first answers quick; gives way after each."""
        if not self._plan.is_warmed:
            return
        from margrove.studio.worker.small_fits import warm_steps

        for step in warm_steps(answers):
            with contextlib.suppress(Exception):  # whoever asks for it will be told
                step()
            yield True

    # -- the other threads ---------------------------------------------------------------------

    def _listen(self) -> None:
        try:
            while True:
                letter = Letter.opened(self._connection.recv_bytes())
                if letter.kind is Kind.ANSWER:
                    self._cancels[letter.number] = threading.Event()
                    self._orders.put(letter)
                elif letter.kind is Kind.CANCEL:
                    wanted = self._cancels.get(letter.number)  # None: it has just ended
                    if wanted is not None:
                        wanted.set()
        except (EOFError, OSError):  # the server is gone, however it ended
            shutil.rmtree(self._plan.folder, ignore_errors=True)
            os._exit(0)

    def _look_for_compiling(self) -> None:
        """What is seen once may be over; what is seen twice is told."""
        before = told = False
        while True:
            time.sleep(_LOOK_EVERY)
            compiles = _is_compiling(threading.main_thread().ident)
            if before == compiles != told:
                told = compiles
                self._send(Kind.COMPILES, int(compiles))
            before = compiles

    def _send(self, kind: Kind, number: int = 0, content: bytes = b"") -> None:
        with self._sending, contextlib.suppress(OSError):  # the listener sees to the end
            self._connection.send_bytes(Letter(kind, number, content).sealed())

    # -- requests ------------------------------------------------------------------------------

    def _answer(self, letter: Letter, answers: Mapping[str, Any]) -> None:
        number = letter.number
        cancel = self._cancels[number]
        try:
            if not cancel.is_set():
                self._send(Kind.BEGAN, number)
                self._send(Kind.RESULT, number, self._result(letter, cancel, answers))
                return
        except Exception as error:
            if not cancel.is_set():
                self._send(Kind.ERROR, number, self._words_of(error).encode(errors="replace"))
                return
        finally:
            del self._cancels[number]
        self._send(Kind.CANCELLED, number)

    def _result(self, letter: Letter, cancel: threading.Event, answers: Mapping[str, Any]) -> bytes:
        from margrove import watch

        order, text = order_of(letter.content)
        page_id, channel, kind = order["id"], order["channel"], order["kind"]

        def tell(note: str, done: int, total: int | None) -> None:
            told = progress(page_id, channel, str(note), int(done), total)
            self._send(Kind.PROGRESS, letter.number, told.encode())

        def keep(name: str, page: str) -> None:
            self._send(Kind.REPORT, letter.number, sealed_report(name, page))

        self._tables = {name: Path(path) for name, path in order["tables"].items()}
        job = Job(self._tables, cancel, tell, keep)
        if kind not in answers:
            raise ValueError(f"The studio has no answer to {kind!r}.")

        def report(fit: Any) -> None:
            job.progress("fitting", fit.done, fit.total)

        with watch(cancel=cancel, on_progress=report):
            body = answers[kind](json.loads(text), job)
        return packed_result(page_id, channel, body)

    def _words_of(self, error: Exception) -> str:
        """What the page may know: our own sentences, and of faults a number."""
        text = str(error)
        for path in self._tables.values():
            text = text.replace(str(path), path.name)
        if isinstance(error, MemoryError):
            return text[:_LONGEST_MESSAGE] if "is available" in text else _OUT_OF_MEMORY
        if isinstance(error, (ValueError, ImportError)) or _is_for_people(error):
            return text.replace(self._plan.folder, "")[:_LONGEST_MESSAGE]
        return _fault(error)


def _is_for_people(error: Exception) -> bool:
    return type(error).__name__ == "StudioError" and type(error).__module__.startswith("margrove.")


def _fault(error: Exception) -> str:
    return (
        f"This is a fault of margrove's own ({type(error).__name__}, {noted_fault(error)}). Please "
        "report it, with what the terminal shows after a start with MARGROVE_TRACEBACK=1."
    )


def _loaded(module: str) -> Mapping[str, Any]:
    """ANSWERS of a module; if it cannot be imported, each request is told so."""
    try:
        answers: Mapping[str, Any] = importlib.import_module(module).ANSWERS
    except Exception as error:
        message = f"The studio could not be loaded. {_fault(error)}"
    else:
        return answers

    def refuse(ask: Any, job: Job) -> Any:
        raise ValueError(message)

    return _Always(refuse)


class _Always(dict[str, Any]):
    """Has the same answer to everything."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Any:
        return self._answer


def _is_compiling(thread: int | None) -> bool:
    """Whether Numba's compiler is at work on a thread: its files are somewhere on the stack."""
    frame = sys._current_frames().get(thread or 0)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("compiler.py") and f"numba{os.sep}core{os.sep}" in name:
            return True
        frame = frame.f_back
    return False
