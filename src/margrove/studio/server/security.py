"""The outermost layer of the server: checks every request and adds headers to every response.

A foreign page in the same browser can send requests to this machine, but it cannot choose their
Host and Origin headers. They are compared, as whole strings, with what the studio's own page
sends. Every request that does not match is refused here, whatever its route, and every response
leaves with the same security headers, whether it is a page or an error.

Starlette's TrustedHostMiddleware is not enough: it ignores the port and accepts two Host headers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse

from margrove.studio.server.internal_errors import report_internal_error

__all__ = ["SecurityMiddleware", "page_policy"]

_METHODS = ("GET", "HEAD", "POST")
_SAFE_METHODS = ("GET", "HEAD")
_TRUSTED_SITES = (b"same-origin", b"none")
_LONGEST_PATH = 2_000
_LONGEST_HEADERS = 16_000
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    b"cache-control": b"no-store",
}
_NOTHING_ALLOWED = "default-src 'none'; frame-ancestors 'none'"


def page_policy(host: str) -> str:
    """The content security policy of the page: its own script, and connections to its host."""
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"font-src 'self'; connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'"
    )


class SecurityMiddleware:
    """ASGI middleware; `hosts` are all values of the Host header that the studio answers to."""

    def __init__(self, application: Any, hosts: Collection[str]) -> None:
        self._application = application
        self._hosts = frozenset(host.encode("ascii") for host in hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        response = _Response(scope, receive, send)
        try:
            host = self._checked_host(scope)
            response.policy = page_policy(host)
            _check_syntax(scope)
            _check_origin(scope, host)
            await self._application(scope, receive, response.send)
        except HTTPException as error:
            await response.send_error(error)
        except Exception as error:
            code = report_internal_error(error)
            await response.send_error(HTTPException(500, f"Something went wrong here ({code})."))

    def _checked_host(self, scope: Any) -> str:
        found = _values(scope, b"host")
        if len(found) != 1 or found[0] not in self._hosts:
            raise HTTPException(421, "The studio does not have this host name.")
        return found[0].decode("ascii")


def _values(scope: Any, name: bytes) -> list[bytes]:
    return [value for header, value in scope["headers"] if header.lower() == name]


def _check_syntax(scope: Any) -> None:
    """Refuse requests that two servers could understand differently, and long ones."""
    if not scope["path"].startswith("/") or not scope.get("raw_path", b"/").startswith(b"/"):
        raise HTTPException(400, "The request needs a path.")
    if scope.get("http_version", "1.1") not in ("1.0", "1.1"):
        raise HTTPException(505, "The studio speaks HTTP/1.1.")
    if len(scope["path"]) + len(scope.get("query_string", b"")) > _LONGEST_PATH:
        raise HTTPException(414, "The path is too long.")
    if sum(len(name) + len(value) for name, value in scope["headers"]) > _LONGEST_HEADERS:
        raise HTTPException(431, "The headers are too long.")
    lengths, encodings = _values(scope, b"content-length"), _values(scope, b"transfer-encoding")
    if (lengths and encodings) or len(lengths) > 1 or len(encodings) > 1:
        raise HTTPException(400, "The length of the request is ambiguous.")
    if scope["type"] == "http" and scope["method"] not in _METHODS:
        raise HTTPException(405)


def _check_origin(scope: Any, host: str) -> None:
    origins = _values(scope, b"origin")
    is_read = scope["type"] == "http" and scope["method"] in _SAFE_METHODS
    is_same = origins == [f"http://{host}".encode("ascii")]
    if not is_same and (origins or not is_read):
        raise HTTPException(403, "This request comes from another page.")
    sites = _values(scope, b"sec-fetch-site")
    if any(site not in _TRUSTED_SITES for site in sites) and not _is_navigation_to_page(scope):
        raise HTTPException(403, "This request comes from another page.")


def _is_navigation_to_page(scope: Any) -> bool:
    """Whether a link to the studio is followed; its page holds no data."""
    return (
        scope["type"] == "http"
        and scope["method"] in _SAFE_METHODS
        and scope["path"] == "/"
        and _values(scope, b"sec-fetch-mode") == [b"navigate"]
        and _values(scope, b"sec-fetch-dest") == [b"document"]
    )


class _Response:
    """Sends a response to one request, with the security headers."""

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        self.policy = _NOTHING_ALLOWED
        self._scope = scope
        self._receive = receive
        self._send = send
        self._has_started = False

    async def send(self, message: Any) -> None:
        if message["type"].endswith("response.start"):
            message = message | {"headers": self._with_security(message.get("headers", ()))}
        elif message["type"] == "websocket.close" and not self._has_started:
            raise HTTPException(404)  # there is no such route
        self._has_started = True
        await self._send(message)

    def _with_security(self, headers: Any) -> list[tuple[bytes, bytes]]:
        """Headers that the response already has are kept, such as the policy of a report."""
        given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
        names = {name for name, _ in given}
        added = {b"content-security-policy": self.policy.encode("ascii")} | _HEADERS
        return given + [(name, value) for name, value in added.items() if name not in names]

    async def send_error(self, error: HTTPException) -> None:
        if self._has_started:  # too late for another response: the connection ends
            if self._scope["type"] == "websocket":
                await self._send({"type": "websocket.close", "code": 1011})
            return
        # The connection closes, so that the unread rest of a body is not taken for a request.
        headers = {**(error.headers or {}), "connection": "close"}
        response = PlainTextResponse(f"{error.detail}\n", error.status_code, headers)
        await response(self._scope, self._receive, self.send)
