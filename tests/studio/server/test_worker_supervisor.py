"""The supervisor with a fake worker process."""

from __future__ import annotations

import asyncio
import json

import pytest

from margrove.studio.server.messages import PageRequest
from margrove.studio.worker import worker_supervisor as supervisor_module
from margrove.studio.worker.request_queue import QueuedRequest
from margrove.studio.worker.worker_main import WorkerSettings
from margrove.studio.worker.worker_protocol import Kind, WorkerMessage
from margrove.studio.worker.worker_supervisor import Limits, WorkerSupervisor


class FakeWorker:
    """Notes what it is told; the test speaks for it."""

    all: list = []  # noqa: RUF012

    def __init__(self, settings, heard, gone):
        self._heard, self._gone = heard, gone
        self.told = []
        self.is_killed = False
        FakeWorker.all.append(self)

    process_id = 1

    def write(self, kind, number, content=b""):
        self.told.append((kind, number))

    def kill(self):
        self.is_killed = True

    def end(self):
        self.kill()

    async def says(self, kind, number=0, content=b""):
        self._heard(self, WorkerMessage(kind, number, content))
        await asyncio.sleep(0)

    async def dies(self):
        self._gone(self)
        await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def _played(monkeypatch):
    FakeWorker.all = []
    monkeypatch.setattr(supervisor_module, "WorkerProcess", FakeWorker)


def _started(**limits):
    made = WorkerSupervisor(
        WorkerSettings("none", ""), Limits(**limits), dict, lambda name, page: None
    )
    made.start()
    return made


def _request(channel="c", number=1, owner="tab"):
    heard = []
    ask = PageRequest(number, channel, "echo", "{}")
    return QueuedRequest(owner, ask, lambda told: heard.append(json.loads(told))), heard


def test_what_has_not_begun_is_cancelled_without_any_hurry():
    """The child may be busy with something of its own, which is not to be lost."""

    async def play():
        supervisor = _started(grace=0.01)
        child = FakeWorker.all[0]
        await child.says(Kind.READY)
        request, heard = _request()
        supervisor.submit(request)
        supervisor.cancel("tab", "c")
        await asyncio.sleep(0.05)
        assert heard == [{"kind": "cancelled", "id": 1, "channel": "c"}]
        assert child.told == [(Kind.ANSWER, 1), (Kind.CANCEL, 1)]
        assert not child.is_killed
        newer, heard = _request(number=2)
        supervisor.submit(newer)
        assert child.told[2:] == []  # one at a time
        await child.says(Kind.CANCELLED, 1)
        assert child.told[2:] == [(Kind.ANSWER, 2)]
        await supervisor.stop()

    asyncio.run(play())


def test_whoever_compiles_is_not_killed():
    """What is compiled would be lost, and compiled again."""

    async def play():
        supervisor = _started(grace=0.01)
        child = FakeWorker.all[0]
        await child.says(Kind.READY)
        request, heard = _request()
        supervisor.submit(request)
        await child.says(Kind.BEGAN, 1)
        await child.says(Kind.COMPILES, 1)
        newer, heard_of_newer = _request(number=2)
        supervisor.submit(newer)
        await asyncio.sleep(0.05)
        assert [told["kind"] for told in heard] == ["progress", "cancelled"]
        assert heard[0]["note"] == "compiling, on the first run only"
        assert [told["note"] for told in heard_of_newer] == ["compiling, on the first run only"]
        assert not child.is_killed
        await child.says(Kind.CANCELLED, 1)
        assert child.told[-1] == (Kind.ANSWER, 2)
        await supervisor.stop()

    asyncio.run(play())


def test_whoever_compiles_for_ever_is_killed():
    async def play():
        supervisor = _started(grace=0.01, compile_seconds=0)
        child = FakeWorker.all[0]
        await child.says(Kind.READY)
        request, _ = _request()
        supervisor.submit(request)
        await child.says(Kind.BEGAN, 1)
        await child.says(Kind.COMPILES, 1)
        supervisor.cancel("tab", "c")
        await asyncio.sleep(0.05)
        assert child.is_killed
        await supervisor.stop()

    asyncio.run(play())


def test_an_answer_that_comes_too_late_is_not_given_twice():
    async def play():
        supervisor = _started()
        child = FakeWorker.all[0]
        await child.says(Kind.READY)
        request, heard = _request()
        supervisor.submit(request)
        await child.says(Kind.BEGAN, 1)
        supervisor.cancel("tab", "c")
        await child.says(Kind.PROGRESS, 1, b"{}")
        await child.says(Kind.RESULT, 1, b"{}")
        await child.says(Kind.ERROR, 1, b"late")
        assert [told["kind"] for told in heard] == ["cancelled"]
        await supervisor.stop()

    asyncio.run(play())


def test_a_child_that_cannot_be_started_is_not_started_for_ever():
    async def play():
        supervisor = _started()
        request, heard = _request()
        supervisor.submit(request)
        for k in range(3):
            assert len(FakeWorker.all) == k + 1
            await FakeWorker.all[k].dies()
        assert len(FakeWorker.all) == 3
        assert heard[-1]["kind"] == "error"
        assert "cannot be started" in heard[-1]["message"]
        later, heard = _request(number=2)
        supervisor.submit(later)
        assert heard[-1]["kind"] == "error"
        await supervisor.stop()

    asyncio.run(play())


def test_requests_of_a_tab_that_left_are_not_answered():
    async def play():
        supervisor = _started()
        child = FakeWorker.all[0]
        await child.says(Kind.READY)
        for channel in "ab":
            supervisor.submit(_request(channel)[0])
        supervisor.forget("tab")
        other, heard = _request(owner="other", number=3)
        supervisor.submit(other)
        await child.says(Kind.CANCELLED, 1)
        await child.says(Kind.RESULT, 2, b'{"kind": "result"}')
        assert child.told == [(Kind.ANSWER, 1), (Kind.CANCEL, 1), (Kind.ANSWER, 2)]
        assert heard == [{"kind": "result"}]
        await supervisor.stop()

    asyncio.run(play())
