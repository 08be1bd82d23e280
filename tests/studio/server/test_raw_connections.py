"""Bytes that no browser sends."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack

import pytest
from tests.interrupts import PATIENCE, wait_until

from margrove.studio.server.serving import HeaderTimeoutProtocol


def _exchanged(studio, sent):
    """What the server answers until it closes the connection or says no more."""
    with socket.create_connection(("127.0.0.1", studio.address.port), PATIENCE) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        received = b""
        while piece := raw.recv(65536):
            received += piece
    return received


def _request(studio, line=b"GET /health HTTP/1.1", *headers, body=b""):
    host = b"Host: " + studio.host.encode()
    return b"\r\n".join([line, host, b"Connection: close", *headers, b"", body])


def test_133_a_plain_request_is_answered(studio):
    assert _exchanged(studio, _request(studio)).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("line", "headers"),
    [
        (b"POST /tables HTTP/1.1", [b"Content-Length: 4", b"Transfer-Encoding: chunked"]),
        (b"POST /tables HTTP/1.1", [b"Content-Length: 4", b"Content-Length: 5"]),
        (b"POST /tables HTTP/1.1", [b"Transfer-Encoding: gzip, chunked"]),
        (b"POST /tables HTTP/1.1", [b"Transfer-Encoding: chunked", b"Transfer-Encoding: x"]),
        (b"POST /tables HTTP/1.1", [b"Content-Length: -1"]),
        (b"POST /tables HTTP/1.1", [b"Content-Length: +4"]),
        (b"POST /tables HTTP/1.1", [b"Content-Length: 4\x00"]),
        (b"GET /health HTTP/1.1", [b"Host: evil.com"]),
        (b"GET /health HTTP/1.1", [b"X: " + 40_000 * b"x"]),
        (b"GET /health HTTP/1.1", [b"X%d: x" % k for k in range(5000)]),
        (b"GET /" + 40_000 * b"x" + b" HTTP/1.1", []),
        (b"GET http://evil.com/ HTTP/1.1", []),
        (b"GET /health HTTP/1.1 HTTP/1.1", []),
        (b"GET /health", []),
        (b"GET  /health HTTP/1.1", []),
        (b"GET /health HTTP/3.0", []),
        (b"GET /health\x00 HTTP/1.1", []),
        (b"\x16\x03\x01\x02\x00\x01\x00", []),
        (b"PRI * HTTP/2.0", []),
        (b"GET /health HTTP/1.1", [b"no colon"]),
        (b"GET /health HTTP/1.1", [b"Host : " + b"evil.com"]),
    ],
    ids=range(21),
)
def test_133_121_what_is_no_clear_request_is_refused(studio, line, headers):
    answer = _exchanged(studio, _request(studio, line, *headers, body=b"0\r\n\r\nGET / HTTP/1.1"))
    assert answer[9:12] in (b"400", b"414", b"421", b"431", b"505"), answer
    assert answer.count(b"\r\ncontent-type: ") == 1  # what follows is not taken for another request
    # What is not HTTP is answered by uvicorn, in plain text; all else by the studio.
    assert b"default-src 'none'" in answer or answer.endswith(b"Invalid HTTP request received.")
    assert b"Traceback" not in answer
    assert studio.get("/health").status_code == 200


def test_133_http_0_9_and_1_0_without_a_host_are_refused(studio):
    for sent in (b"GET /\r\n", b"GET / HTTP/1.0\r\n\r\n", b"\r\n\r\n"):
        answer = _exchanged(studio, sent)
        assert not answer.startswith(b"HTTP/1.1 200")
        assert b"<title>" not in answer


def test_125_a_handshake_from_elsewhere_is_refused(studio):
    upgrade = [
        b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]  # fmt: skip
    host = b"Host: " + studio.host.encode()
    own = b"Origin: " + studio.origin.encode()
    for headers, status in (
        ([host, own], b"101"),
        ([host], b"403"),
        ([host, b"Origin: http://evil.com"], b"403"),
        ([host, b"Origin: null"], b"403"),
        ([b"Host: evil.com", own], b"421"),
        ([own], b"400"),
    ):
        sent = b"\r\n".join([b"GET /socket?token=x HTTP/1.1", *upgrade, *headers, b"", b""])
        answer = _exchanged(studio, sent)
        assert answer[9:12] == status, headers


def test_133_slow_requests_are_not_waited_for(studio, monkeypatch):
    """Slowloris: headers that come a message at a time, and connections that say nothing."""
    address = ("127.0.0.1", studio.address.port)
    with (
        monkeypatch.context() as patch,
        ExitStack() as opened,
    ):
        patch.setattr(HeaderTimeoutProtocol, "header_seconds", 0.3)
        silent, slow = (
            opened.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(2)
        )
        assert _is_closed(silent)
        with pytest.raises(OSError):  # noqa: PT011
            _send_slowly(slow)
    assert studio.get("/health").status_code == 200


def _send_slowly(connection):
    for message in 100 * b"GET / ":
        connection.sendall(bytes([message]))
        time.sleep(0.02)


def _is_closed(connection):
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_133_requests_beyond_the_limit_of_connections_are_refused(studio, monkeypatch):
    address = ("127.0.0.1", studio.address.port)
    with monkeypatch.context() as patch, ExitStack() as opened:
        patch.setattr(studio.server.config, "limit_concurrency", 4)
        for _ in range(12):
            opened.enter_context(socket.create_connection(address, PATIENCE))
        assert studio.get("/health").status_code == 503
    wait_until(lambda: studio.get("/health").status_code == 200)


def test_133_many_requests_are_answered(studio):
    sent = b"GET /health HTTP/1.1\r\nHost: " + studio.host.encode() + b"\r\n\r\n"
    answer = _exchanged(studio, 300 * sent)
    assert answer.count(b"HTTP/1.1 200") == 300
