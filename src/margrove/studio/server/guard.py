"""Who may speak to the studio at all: the outermost layer, for every route and for none.

A page of somebody else's in the same browser can send requests to this machine. It cannot choose
their Host and Origin, so these are compared, as whole strings, with what our own page sends. What
is not known to be right is refused here, and what is answered leaves with the same headers,
whether it is a page, an error or a refusal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from margrove.studio.server.faults import noted_fault

__all__ = ["COMMON_HEADERS", "NOTHING_ALLOWED", "Guard", "RefusedError", "page_policy"]

_METHODS = ("GET", "HEAD", "POST")
_CHANGE_NOTHING = ("GET", "HEAD")
_OWN_SITES = (b"same-origin", b"none")
_LONGEST_PATH = 2_000
_LONGEST_HEADERS = 16_000
COMMON_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"no-store",
}
NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'"


class RefusedError(Exception):
    """A status and a sentence that says nothing about the machine."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def page_policy(host: str) -> str:
    """What our page may do: run its own script, and speak to the host it came from."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"font-src 'self'; connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    )


class Guard:
    """An ASGI application around another one; `hosts` are all values of Host that are ours."""

    def __init__(self, application: Any, hosts: Collection[str]) -> None:
        self._application = application
        self._hosts = frozenset(host.encode("ascii") for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        answer = _Answer(scope, send)
        try:
            host = self._checked_host(scope)
            answer.policy = page_policy(host)
            _check_form(scope)
            _check_origin(scope, host)
            await self._application(scope, receive, answer.send)
        except RefusedError as refusal:
            await answer.refuse(refusal)
        except Exception as error:
            await answer.refuse(
                RefusedError(500, f"Something went wrong here ({noted_fault(error)}).")
            )

    def _checked_host(self, scope: Any) -> str:
        found = _values(scope, b"host")
        if len(found) != 1 or found[0] not in self._hosts:
            raise RefusedError(421, "This studio does not go by that name.")
        return found[0].decode("ascii")


def _values(scope: Any, name: bytes) -> list[bytes]:
    return [value for own, value in scope["headers"] if own.lower() == name]


def _check_form(scope: Any) -> None:
    """Requests that two servers could understand in two ways are not understood at all."""
    if not scope["path"].startswith("/") or not scope.get("raw_path", b"/").startswith(b"/"):
        raise RefusedError(400, "A path is expected here.")
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        raise RefusedError(505, "HTTP/1.1 is spoken here.")
    if len(scope["path"]) + len(scope.get("query_string", b"")) > _LONGEST_PATH:
        raise RefusedError(414, "That is too long for a path.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > _LONGEST_HEADERS:
        raise RefusedError(431, "These are too many headers.")
    lengths, encodings = _values(scope, b"content-length"), _values(scope, b"transfer-encoding")
    if (lengths and encodings) or len(lengths) > 1 or len(encodings) > 1:
        raise RefusedError(400, "A request has one length.")
    if scope["type"] == "http" and scope["method"] not in _METHODS:
        raise RefusedError(405, "There is no such thing to do here.")


def _check_origin(scope: Any, host: str) -> None:
    origins = _values(scope, b"origin")
    is_read = scope["type"] == "http" and scope["method"] in _CHANGE_NOTHING
    is_own = origins == [f"http://{host}".encode("ascii")]
    if not is_own and (origins or not is_read):
        raise RefusedError(403, "This was asked by another page.")
    sites = _values(scope, b"sec-fetch-site")
    if any(site not in _OWN_SITES for site in sites) and not _is_opening(scope):
        raise RefusedError(403, "This was asked by another page.")


def _is_opening(scope: Any) -> bool:
    """A link that is followed to the studio's page, which holds nothing."""
    return (
        scope["type"] == "http"
        and scope["method"] in _CHANGE_NOTHING
        and scope["path"] == "/"
        and _values(scope, b"sec-fetch-mode") == [b"navigate"]
        and _values(scope, b"sec-fetch-dest") == [b"document"]
    )


class _Answer:
    """What is sent, with the headers that everything has."""

    def __init__(self, scope: Any, send: Any) -> None:
        self.policy = NOTHING_ALLOWED
        self._scope = scope
        self._send = send
        self._has_started = False

    async def send(self, message: Any) -> None:
        if message["type"].endswith("response.start"):
            message = message | {"headers": self._completed(message.get("headers", ()))}
        elif message["type"] == "websocket.close" and not self._has_started:
            raise RefusedError(404, "There is nothing here.")  # no route
        self._has_started = True
        await self._send(message)

    def _completed(self, headers: Any) -> list[tuple[bytes, bytes]]:
        """What the answer has itself stays, such as the policy of a report."""
        own = [(bytes(name).lower(), bytes(value)) for name, value in headers]
        names = {name for name, _ in own}
        ours = {b"content-security-policy": self.policy.encode("ascii")} | COMMON_HEADERS
        return own + [(name, value) for name, value in ours.items() if name not in names]

    async def refuse(self, refusal: RefusedError) -> None:
        if self._has_started:  # too late for another answer: the connection ends
            if self._scope["type"] == "websocket":
                await self._send({"type": "websocket.close", "code": 1011})
            return
        prefix = "http"
        if self._scope["type"] == "websocket":
            if "websocket.http.response" not in self._scope.get("extensions", {}):
                await self._send({"type": "websocket.close", "code": 1008})
                return
            prefix = "websocket.http"
        body = b"" if self._scope.get("method") == "HEAD" else refusal.reason.encode() + b"\n"
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", str(len(refusal.reason.encode()) + 1).encode()),
            (b"connection", b"close"),  # what was not read of a body is no request
        ]
        start = {"type": f"{prefix}.response.start", "status": refusal.status, "headers": headers}
        await self.send(start)
        await self.send({"type": f"{prefix}.response.body", "body": body})
