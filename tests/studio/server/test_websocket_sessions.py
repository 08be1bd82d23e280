"""What a page and the library say to each other."""

from __future__ import annotations

import asyncio
import json
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from tests.interrupts import PATIENCE
from tests.studio.server.running import Tab
from websockets.exceptions import ConnectionClosed, InvalidStatus

import margrove
from margrove.studio.server import websocket_sessions
from margrove.studio.server.messages import LONGEST_MESSAGE, progress
from margrove.studio.server.tab_keys import TabKeys


def test_a_tab_is_welcomed_once_for_a_token_and_ever_after_for_its_key(studio):
    token = studio.studio.keys.new_token()
    with Tab(studio.socket(), token) as first:
        assert first.welcome["kind"] == "welcome"
        assert first.welcome["version"] == margrove.__version__
        assert first.welcome["file"] is None
    with Tab(studio.socket(), token) as second:
        assert second.welcome["kind"] == "refused"
        assert "Enter" in second.welcome["reason"]
        with pytest.raises(ConnectionClosed):
            second.next()
    with studio.socket() as again:
        again.send(json.dumps({"kind": "hello", "token": token, "key": first.key}))
        assert json.loads(again.recv())["key"] == first.key


@pytest.mark.parametrize("sent", ["", "[]", "{", '{"kind": "echo"}', "null", "x" * 2000])
def test_whoever_does_not_say_hello_is_refused(studio, sent):
    with studio.socket() as socket:
        socket.send(sent)
        assert json.loads(socket.recv())["kind"] == "refused"
        with pytest.raises(ConnectionClosed):
            socket.recv(timeout=PATIENCE)


def test_125_whoever_says_nothing_is_not_waited_for(studio, monkeypatch):
    monkeypatch.setattr(websocket_sessions, "_HELLO_SECONDS", 0.1)
    with studio.socket() as socket:
        assert json.loads(socket.recv())["kind"] == "refused"


def test_a_tab_that_does_not_read_gets_no_progress_but_all_answers():
    session = websocket_sessions.WebSocketSession(None, None)
    for _ in range(1000):
        session._answer(progress(1, "c", "fitting", 1, 2))
    n_progress = session._unsent.qsize()
    assert n_progress < 100
    for _ in range(30):
        session._answer(b"result")
    assert session._unsent.qsize() == n_progress + 30


def test_a_tab_that_does_not_read_is_not_read_from():
    """So the number of its answers that wait is bounded, whatever it sends."""
    n_read = 0

    class Socket:
        async def receive_text(self):
            nonlocal n_read
            n_read += 1
            return '{"kind": "cancel", "channel": "c", "id": 1}'

        async def send_text(self, text):
            await asyncio.sleep(PATIENCE)

    async def exchange():
        supervisor = SimpleNamespace(cancel=lambda owner, channel: None)
        context = SimpleNamespace(supervisor=supervisor)
        session = websocket_sessions.WebSocketSession(Socket(), context)
        task = asyncio.create_task(session._exchange())
        for _ in range(1000):
            await asyncio.sleep(0)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(exchange())
    assert 0 < n_read < 100


def test_a_request_is_answered_under_its_number_and_channel(tab):
    answer = tab.ask("echo", "pictures", say="Grüße")
    assert (answer["kind"], answer["id"], answer["channel"]) == ("result", 1, "pictures")
    assert answer["body"] == {"said": "Grüße"}


def test_arrays_come_as_they_were(tab):
    body = tab.ask("arrays")["body"]
    np.testing.assert_array_equal(body["grid"]["values"], np.arange(6, dtype=np.float32))
    assert body["grid"]["shape"] == [2, 3]
    whole, real, logical = body["many"]
    assert (whole.dtype, real.dtype, logical.dtype) == (np.int32, np.float64, np.uint8)
    assert whole.tolist() == [1, 2**31 - 1]
    np.testing.assert_array_equal(real, [0.5, np.nan])
    assert logical.tolist() == [1, 0]
    assert (body["count"], body["nothing"]) == (7, None)


def test_a_newer_request_cancels_what_runs_and_what_waits_on_its_channel(tab):
    first = tab.send("sleep", seconds=60)
    tab.wait_for_progress()
    other = tab.send("echo", "other", say=1)
    second = tab.send("sleep", seconds=60)
    third = tab.send("echo", say=2)
    ended = [tab.answer() for _ in range(4)]
    assert [(own["id"], own["kind"]) for own in ended] == [
        (first, "cancelled"),
        (second, "cancelled"),
        (other, "result"),
        (third, "result"),
    ]


def test_cancel_cancels_one_channel(tab):
    running = tab.send("sleep", "a", seconds=60)
    tab.wait_for_progress()
    waiting = tab.send("sleep", "b", seconds=0)
    tab.send("cancel", "b")
    assert tab.answer() == {"kind": "cancelled", "id": waiting, "channel": "b"}
    assert tab.answer()["kind"] == "cancelled"  # the answer to `cancel` itself
    tab.send("cancel", "a")
    assert tab.answer() == {"kind": "cancelled", "id": running, "channel": "a"}


def test_progress_is_told_with_the_number_of_the_request(tab):
    answer = tab.ask("sleep", "naps", seconds=0.4)
    assert answer["body"] == {"slept": True}
    assert tab.notes[-1] == {
        "kind": "progress", "id": 1, "channel": "naps", "note": "sleeping", "done": 1, "total": 2,
    }  # fmt: skip


def test_a_fit_tells_how_far_it_is_and_ends_when_it_is_cancelled(tab, studio):
    tab.send("fit")
    while (note := tab.next())["note"] != "fitting":
        pass
    assert note["total"] == 10**6
    child = studio.studio.supervisor.worker_id
    tab.send("cancel")
    assert tab.answer()["kind"] == "cancelled"
    tab.answer()
    assert tab.ask("who")["body"] == {"process": child}  # the same process goes on


def test_a_tab_that_leaves_takes_its_requests_with_it(studio, tab):
    with studio.tab() as other:
        other.send("sleep", "a", seconds=60)
        other.wait_for_progress()
        other.send("sleep", "b", seconds=60)
    assert tab.ask("echo", say=1)["body"] == {"said": 1}


def test_tabs_take_turns(studio, tab):
    with studio.tab() as other:
        tab.send("sleep", "z", seconds=0.5)
        tab.wait_for_progress()
        for channel in "abc":
            tab.send("sleep", channel, seconds=0.3)
        other.ask("echo")
        assert tab.answer()["channel"] == "z"
        assert tab.answer()["channel"] == "a"
        tab.socket.ping().wait(PATIENCE)
        assert [tab.answer()["channel"] for _ in "bc"] == ["b", "c"]


def test_errors_are_sentences_for_the_page(tab, studio):
    answer = tab.ask("wrong", value=3)
    assert answer["kind"] == "error"
    assert answer["message"].startswith("The value 3 is wrong.")
    assert str(studio.folder) not in answer["message"]
    assert tab.ask("nonsense")["message"] == "The studio has no answer to 'nonsense'."


def test_136_faults_show_neither_data_nor_places(tab):
    answer = tab.ask("fault", secret="4111 1111")
    assert answer["kind"] == "error"
    assert "KeyError" in answer["message"]
    for part in ("4111", "own_answers", "/", "Traceback"):
        assert part not in answer["message"]


def test_nan_is_no_json(tab):
    assert tab.ask("bad")["kind"] == "error"


@pytest.mark.parametrize(
    "sent",
    [
        "{",
        "[1]",
        '{"kind": "echo", "channel": "c"}',
        '{"kind": "echo", "channel": "c", "id": -1}',
        '{"kind": "echo", "channel": "c", "id": true}',
        '{"kind": "echo", "channel": "c", "id": 1e400}',
        '{"kind": "echo", "channel": "c", "id": NaN}',
        '{"kind": "echo", "channel": "", "id": 1}',
        '{"kind": "echo", "channel": "\\u202e", "id": 1}',
        '{"kind": 5, "channel": "c", "id": 1}',
        '{"kind": "echo", "channel": "' + 100 * "c" + '", "id": 1}',
        '{"kind": "echo", "channel": "c", "id": 1, "x": ' + 100_000 * "[",
        '{"kind": "echo", "channel": "c", "id": ' + 5000 * "1" + "}",
        b"binary",
    ],
    ids=range(14),
)
def test_what_is_no_request_ends_the_session(studio, tab, sent):
    tab.socket.send(sent)
    with pytest.raises(ConnectionClosed) as closed:
        tab.next()
    assert closed.value.rcvd.code == 1007
    assert studio.get("/health").status_code == 200


def test_too_many_requests_of_one_tab_are_refused(tab):
    tab.send("sleep", "first", seconds=60)
    tab.wait_for_progress()
    for k in range(33):
        tab.send("echo", f"c{k}")
    answer = tab.answer()
    assert (answer["channel"], answer["kind"]) == ("c32", "error")
    tab.send("cancel", "first")


def test_125_a_frame_is_bounded(studio):
    with studio.tab() as tab, pytest.raises(ConnectionClosed, match=r"1009|no close frame"):
        _send_and_read(tab, "x" * (LONGEST_MESSAGE + 1))
    assert studio.get("/health").status_code == 200


def _send_and_read(tab, text):
    tab.socket.send(text)
    tab.next()


def test_138_a_restarted_studio_knows_nobody(studio):
    """Its keys are made anew, and the page is told what to say."""
    earlier = TabKeys()
    key = earlier.spend(earlier.new_token())
    assert earlier.server != studio.studio.keys.server
    with studio.socket() as socket:
        socket.send(json.dumps({"kind": "hello", "key": key}))
        refused = json.loads(socket.recv())
    assert refused["kind"] == "refused"
    assert "restarted" in refused["reason"]


def test_125_sockets_are_counted(studio):
    with ExitStack() as opened:
        for _ in range(6):
            opened.enter_context(studio.socket())
        with pytest.raises(InvalidStatus, match="503"):
            opened.enter_context(studio.socket())
    with studio.tab() as tab:
        assert tab.ask("echo", say=1)["body"] == {"said": 1}
