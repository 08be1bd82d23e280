"""Requests to an application without a server, with any headers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict
    body: bytes


def asked(application, path="/", *, method="GET", kind="http", headers=(), body=(), **scope):
    """Ask once. For a socket, the status is 101 if it would be opened.

    Headers are pairs of bytes; `body` holds pieces that come one after the other.
    """
    names = {"type": kind, "method": method, "path": path, "raw_path": path.encode("latin-1")}
    names |= {"headers": list(headers), "query_string": b"", "root_path": "", "scheme": "http"}
    names |= {"extensions": {"websocket.http.response": {}}, "http_version": "1.1"}
    pieces = list(body) or [b""]
    sent = []

    async def receive():
        if kind == "websocket":
            if any(own["type"] == "websocket.accept" for own in sent):
                return {"type": "websocket.disconnect", "code": 1000}
            return {"type": "websocket.connect"}
        if not pieces:  # a server waits for the client to disconnect
            await asyncio.Event().wait()
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    async def send(message):
        sent.append(message)

    asyncio.run(application(names | scope, receive, send))
    start = sent[0]
    if start["type"] == "websocket.accept":
        return Answered(101, {}, b"")
    assert start["type"].endswith("response.start"), start
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answered(start["status"], found, b"".join(own.get("body", b"") for own in sent[1:]))
