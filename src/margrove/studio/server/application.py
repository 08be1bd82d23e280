"""The routes: the page, how it is, uploads, reports, and the one socket; all behind the guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from margrove.studio.server.conversations import Conversation, Reception
from margrove.studio.server.guard import Guard, RefusedError
from margrove.studio.server.served_reports import ReportShelf, report_headers
from margrove.studio.server.static_files import StaticFile, static_files
from margrove.studio.server.tab_keys import KeyRing
from margrove.studio.server.uploads import UploadedTables, UploadLimits
from margrove.studio.worker.worker_main import Plan
from margrove.studio.worker.worker_supervisor import Foreman, Limits

__all__ = ["NOT_BUILT", "Settings", "Studio"]

_DRAIN_SECONDS = 10.0
NOT_BUILT = (
    "The page of the studio is not there: it was not built. In a checkout of the repository, "
    "run `npm ci` and `npm run build` in studio-ui; a wheel has it already."
)


@dataclass(frozen=True)
class Settings:
    """What a studio is made with.

    hosts         all values of the header Host that are its own, such as "127.0.0.1:8642"
    folder        private, and there already: uploads go there
    file          a table that the command line named
    answers       module with ANSWERS, for the child
    page          folder of the page, by default that of the package
    """

    hosts: Collection[str]
    folder: Path
    file: Path | None = None
    answers: str = "margrove.studio.worker.answers"
    is_warmed: bool = True
    memory_bytes: int | None = None
    limits: Limits = field(default_factory=Limits)
    uploads: UploadLimits = field(default_factory=UploadLimits)
    most_sockets: int = 16
    page: Path | None = None


class Studio:
    """All parts of the server; `application` is what a server serves."""

    def __init__(self, settings: Settings, on_entry: Callable[[], None] = lambda: None) -> None:
        self.keys = KeyRing()
        self.reports = ReportShelf()
        self.uploads = UploadedTables(settings.folder, settings.uploads)
        self.files = static_files(settings.page)
        self._settings = settings
        plan = Plan(
            settings.answers, str(settings.folder), settings.memory_bytes, settings.is_warmed
        )
        self.foreman = Foreman(plan, settings.limits, self._tables, self.reports.keep)
        self.reception = Reception(
            self.keys,
            self.foreman,
            None if settings.file is None else settings.file.name,
            on_entry,
            settings.most_sockets,
        )
        self.routes = self._routes()
        inner = Starlette(
            routes=self.routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _plain_error, Exception: _fault},
        )
        inner.router.redirect_slashes = False  # nothing here redirects, least of all to `//host`
        self.application = Guard(inner, settings.hosts)

    def _tables(self) -> dict[str, Path]:
        given = {} if self._settings.file is None else {"file": self._settings.file}
        return self.uploads.paths() | given

    @contextlib.asynccontextmanager
    async def _lifespan(self, inner: Starlette) -> AsyncIterator[None]:
        self.foreman.start()
        try:
            yield
        finally:
            await self.foreman.stop()

    def _routes(self) -> list[BaseRoute]:
        page = [Route(path, _serving(file)) for path, file in self.files.items()]
        return [
            *(page or [Route("/", _not_built)]),
            Route("/health", self._health),
            Route("/tables", self._take_table, methods=["POST"]),
            Route("/reports/{name}", self._serve_report),
            WebSocketRoute("/socket", self._converse),
        ]

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _take_table(self, request: Request) -> Response:
        key = request.headers.get("x-margrove-key", "")
        if not self.keys.knows(key):
            raise RefusedError(401, "The key of a tab is needed for this.")
        headers, pieces = request.headers, request.stream()
        try:
            self.uploads.check(
                headers.get("content-type", ""),
                headers.get("content-length"),
                headers.get("content-encoding"),
            )
            name = await self.uploads.take_in(pieces, headers.get("x-margrove-name", "table"))
        except RefusedError:
            await _drain(pieces)
            raise
        except ClientDisconnect:
            raise RefusedError(400, "The table did not come to its end.") from None
        return JSONResponse({"table": name})

    async def _serve_report(self, request: Request) -> Response:
        page = self.reports.page(request.path_params["name"])
        if page is None:
            raise HTTPException(404)
        return Response(page, headers=report_headers(page))

    async def _converse(self, socket: WebSocket) -> None:
        reception = self.reception
        if reception.n_sockets >= reception.most_sockets:
            raise RefusedError(503, "As many tabs are open as the studio serves. Close one.")
        reception.n_sockets += 1
        try:
            await Conversation(socket, reception).run()
        finally:
            reception.n_sockets -= 1


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Let what is refused come to its end, for a while: browsers do not read an answer before."""
    with contextlib.suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in pieces:
                pass


def _serving(file: StaticFile) -> Any:
    async def serve(request: Request) -> Response:
        return Response(file.content, headers={"content-type": file.type})

    return serve


async def _not_built(request: Request) -> Response:
    return PlainTextResponse(NOT_BUILT + "\n", 503)


async def _plain_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    names = {404: "There is nothing here.", 405: "There is no such thing to do here."}
    text = names.get(error.status_code, "This was not understood.")
    return PlainTextResponse(f"{text}\n", error.status_code)


async def _fault(request: Request, error: Exception) -> Response:
    raise error  # the guard answers, and says no more than it has to
