"""Parts of the child process, in this one."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

import margrove
from margrove._runtime.jit import compiled_for_user
from margrove.studio.worker import warm_up, worker_main
from margrove.studio.worker.worker_main import Job, _is_compiling


def test_a_job_can_be_had_without_a_server():
    job = Job()
    assert job.tables == {}
    assert not job.cancel.is_set()
    job.progress("fitting", 1, None)
    assert job.keep_report("<p>") != job.keep_report("<p>")


def test_progress_is_told_after_a_while_and_not_too_often(monkeypatch):
    readings = iter([0.0, 0.1, 0.2, 0.21, 0.3])
    clock = SimpleNamespace(monotonic=lambda: next(readings))  # not that of the server's thread
    monkeypatch.setattr(worker_main, "time", clock)
    told = []
    job = Job(tell=lambda *note: told.append(note))
    for k in range(4):
        job.progress("fitting", k, 4)
    assert told == [("fitting", 1, 4), ("fitting", 3, 4)]


def test_reports_get_names_of_at_least_128_bits():
    kept = {}
    name = Job(keep=kept.__setitem__).keep_report("<p>")
    assert kept == {name: "<p>"}
    assert len(name) >= 22


def test_136_the_terminal_is_told_where_a_fault_is_and_nothing_else(capsys):
    try:
        {}["4111 1111"]
    except KeyError as error:
        message = worker_main._bug_message(error)
    shown = capsys.readouterr().err
    assert "KeyError in test_worker_main.py:" in shown
    code = shown.split("internal error ")[1].split(":")[0]
    assert code in message
    assert "4111" not in shown + message


def test_learners_that_are_warmed_exist():
    assert set(warm_up._LEARNERS) <= set(margrove.__all__)
    warm_up._fit_small("Perceptron")
    asked = []
    steps = list(warm_up.warm_steps({"catalogue": lambda ask, job: asked.append(ask["kind"])}))
    steps[-1]()
    assert asked == ["catalogue"]
    assert len(steps) == len(warm_up._LEARNERS) + 1


def test_compiling_is_seen():
    """While a kernel that was never compiled is called for the first time."""

    def own(values):
        total = 0.0
        for value in values:
            total += np.sqrt(value) if value > 0 else -value
        return total

    kernel = compiled_for_user(own)
    if not hasattr(kernel, "py_func"):
        pytest.skip("nothing is compiled")
    worker = threading.Thread(target=kernel, args=(np.ones(3),))
    assert not _is_compiling(threading.get_ident())
    worker.start()
    seen = False
    while worker.is_alive() and not seen:
        seen = _is_compiling(worker.ident)
    worker.join()
    assert seen
