"""Requests that run for ever, eat memory or die: the server goes on."""

from __future__ import annotations

import os
import time

import pytest
from tests.interrupts import PATIENCE, is_alive
from tests.studio.server.running import RunningStudio

from margrove.studio.worker.worker_supervisor import Limits, worker_memory


def test_135_a_fit_hears_the_cancel_and_the_server_answers_meanwhile(studio, tab):
    """Within the grace that it has: else another process would be there afterwards."""
    before = tab.ask("who")["body"]["process"]
    tab.send("fit")
    tab.wait_for_progress()
    for _ in range(20):
        assert studio.get("/health").json() == {"status": "ok"}
    tab.send("cancel")
    assert tab.answer()["kind"] == "cancelled"
    tab.answer()
    assert tab.ask("who")["body"]["process"] == before


def test_135_who_does_not_hear_the_cancel_is_replaced(studio, tab, monkeypatch):
    monkeypatch.setattr(studio.studio.supervisor, "_limits", Limits(seconds=PATIENCE, grace=0.1))
    before = tab.ask("who")["body"]["process"]
    sent = tab.send("deaf", seconds=600)
    while (
        studio.studio.supervisor._running is None or not studio.studio.supervisor._running.has_begun
    ):
        time.sleep(0.01)
    tab.send("cancel")
    assert tab.answer() == {"kind": "cancelled", "id": sent, "channel": "c"}
    tab.answer()
    after = tab.ask("who")["body"]["process"]
    assert after != before
    assert not is_alive(before)
    assert tab.notes[-1]["note"] == "starting"


def test_135_a_child_that_dies_is_an_error_of_one_request(studio, tab):
    with studio.tab() as other:
        tab.send("die")
        other.send("echo", say="still here")
        answer = tab.answer()
        assert answer["kind"] == "error"
        assert "process ended during" in answer["message"]
        assert other.answer()["body"] == {"said": "still here"}


@pytest.mark.skipif(os.name != "posix", reason="needs limits of memory")
def test_129_135_memory_is_bounded(studio, tab):
    """An upload that grows without end is read here, too."""
    answer = tab.ask("eat", megabytes=64_000)
    assert answer["kind"] == "error"
    assert "more memory than the studio may take" in answer["message"]
    assert tab.ask("eat", megabytes=64)["body"] == {"eaten": 2}


def test_135_time_is_bounded(studio, tab, monkeypatch):
    """Who hears that it is over ends by itself; who does not would be killed."""
    limits = Limits(seconds=0.3, slow_seconds=PATIENCE, slow=frozenset({"deaf"}), grace=PATIENCE)
    before = tab.ask("who")["body"]["process"]
    with monkeypatch.context() as patch:
        patch.setattr(studio.studio.supervisor, "_limits", limits)
        message = tab.ask("sleep", seconds=600)["message"]
        assert message.startswith("This took longer than 0.3 s")
        assert tab.ask("deaf", seconds=0.5)["kind"] == "result"
    assert tab.ask("who")["body"]["process"] == before


@pytest.mark.nightly
def test_137_a_second_studio_keeps_apart(studio, tmp_path):
    """Two at once have ports, keys and processes of their own."""
    file = tmp_path / "people.csv"
    file.write_text("a,b\n1,2\n")
    other = RunningStudio(tmp_path, file=file)
    try:
        assert other.address.port != studio.address.port
        with other.tab() as tab, studio.tab() as elsewhere:
            assert tab.welcome["file"] == "people.csv"
            assert tab.ask("tables")["body"] == {"file": ["people.csv", "a,b\n1,2\n"]}
            assert not other.studio.keys.is_known(elsewhere.key)
            assert not studio.studio.keys.is_known(tab.key)
            process = tab.ask("who")["body"]["process"]
            assert process != elsewhere.ask("who")["body"]["process"]
            tab.send("deaf", seconds=600)
    finally:
        other.stop()
    assert not is_alive(process)


def test_134_tabs_share_nothing_that_could_be_broken(studio, tab):
    """There is no model to save or delete: what a tab asks holds all that the answer needs."""
    with studio.tab() as other:
        for k in range(10):
            tab.send("echo", say=k)
            other.send("echo", say=-k)
        ended = [(tab.answer(), other.answer()) for _ in range(10)]
    assert ended[-1][0]["body"] == {"said": 9}
    assert ended[-1][1]["body"] == {"said": -9}


@pytest.mark.nightly
def test_a_module_that_cannot_be_loaded_is_said_so_to_each_request(tmp_path):
    running = RunningStudio(tmp_path, answers="tests.studio.server.no_such_module")
    try:
        with running.tab() as tab:
            for _ in range(2):
                answer = tab.ask("echo")
                assert answer["kind"] == "error"
                assert answer["message"].startswith("The studio could not be loaded.")
    finally:
        running.stop()


def test_memory_of_the_child_leaves_room_for_others():
    limit = worker_memory()
    assert limit is None or limit >= 2 << 30
