"""The routes of the studio: page, health, uploads, reports and the WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from margrove.studio.server.security import SecurityMiddleware
from margrove.studio.server.served_reports import ServedReports, report_headers
from margrove.studio.server.tab_keys import TabKeys
from margrove.studio.server.uploads import UploadedTables, UploadLimits
from margrove.studio.server.websocket_sessions import SessionContext, WebSocketSession
from margrove.studio.worker import Limits, WorkerSettings, WorkerSupervisor

__all__ = ["NOT_BUILT", "Settings", "Studio"]

_PAGE = Path(__file__).parents[1] / "static"
_DRAIN_SECONDS = 10.0
NOT_BUILT = (
    "The page of the studio has not been built. In a checkout of the repository, run `npm ci` "
    "and `npm run build` in studio-ui. A wheel contains the page."
)
# The registry of Windows may name other types, with which browsers do not run the page.
mimetypes.add_type("text/javascript", ".js")
mimetypes.add_type("text/css", ".css")


@dataclass(frozen=True)
class Settings:
    """Settings of a studio.

    hosts         all values of the Host header that are accepted, such as "127.0.0.1:8642"
    folder        private folder for uploads; it has to exist
    file          a table that was given on the command line
    answers       module with ANSWERS, for the worker process
    page          folder of the built page
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
    page: Path = _PAGE


class Studio:
    """All parts of the server; `application` is the ASGI application."""

    def __init__(self, settings: Settings, on_link_used: Callable[[], None] = lambda: None) -> None:
        self.keys = TabKeys()
        self.reports = ServedReports()
        self.uploads = UploadedTables(settings.folder, settings.uploads)
        self.has_page = settings.page.joinpath("index.html").is_file()
        self._settings = settings
        worker = WorkerSettings(
            settings.answers, str(settings.folder), settings.memory_bytes, settings.is_warmed
        )
        self.supervisor = WorkerSupervisor(worker, settings.limits, self._tables, self.reports.keep)
        self._sessions = SessionContext(
            self.keys,
            self.supervisor,
            None if settings.file is None else settings.file.name,
            on_link_used,
            settings.most_sockets,
        )
        self.routes = self._routes()
        inner = Starlette(
            routes=self.routes,
            lifespan=self._lifespan,
            exception_handlers={HTTPException: _raise_again, Exception: _raise_again},
        )
        inner.router.redirect_slashes = False  # no redirects, especially not to `//host`
        self.application = SecurityMiddleware(inner, settings.hosts)

    def _tables(self) -> dict[str, Path]:
        given = {} if self._settings.file is None else {"file": self._settings.file}
        return self.uploads.paths() | given

    @contextlib.asynccontextmanager
    async def _lifespan(self, inner: Starlette) -> AsyncIterator[None]:
        self.supervisor.start()
        try:
            yield
        finally:
            await self.supervisor.stop()

    def _routes(self) -> list[BaseRoute]:
        return [
            *self._page_routes(),
            Route("/health", self._health),
            Route("/tables", self._upload_table, methods=["POST"]),
            Route("/reports/{name}", self._serve_report),
            WebSocketRoute("/socket", self._serve_socket),
        ]

    def _page_routes(self) -> list[BaseRoute]:
        if not self.has_page:
            return [Route("/", _not_built)]
        assets = StaticFiles(directory=self._settings.page / "assets")
        return [Route("/", self._serve_page), Mount("/assets", assets)]

    async def _serve_page(self, request: Request) -> Response:
        return FileResponse(self._settings.page / "index.html")

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _upload_table(self, request: Request) -> Response:
        headers, chunks = request.headers, request.stream()
        if not self.keys.is_known(headers.get("x-margrove-key", "")):
            raise HTTPException(401, "This needs the key of a tab.")
        try:
            self.uploads.check_headers(
                headers.get("content-type", ""),
                headers.get("content-length"),
                headers.get("content-encoding"),
            )
            name = await self.uploads.receive(chunks, headers.get("x-margrove-name", "table"))
        except HTTPException:
            await _drain(chunks)
            raise
        except ClientDisconnect:
            raise HTTPException(400, "The upload was not complete.") from None
        return JSONResponse({"table": name})

    async def _serve_report(self, request: Request) -> Response:
        page = self.reports.page(request.path_params["name"])
        if page is None:
            raise HTTPException(404)
        return Response(page, headers=report_headers(page))

    async def _serve_socket(self, socket: WebSocket) -> None:
        sessions = self._sessions
        if sessions.n_sockets >= sessions.most_sockets:
            raise HTTPException(503, "Too many tabs are open. Close one.")
        sessions.n_sockets += 1
        try:
            await WebSocketSession(socket, sessions).run()
        finally:
            sessions.n_sockets -= 1


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read the rest of a refused upload, for a while: browsers send it before they read."""
    with contextlib.suppress(ClientDisconnect, TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass


async def _not_built(request: Request) -> Response:
    return PlainTextResponse(NOT_BUILT + "\n", 503)


async def _raise_again(request: Any, error: Exception) -> Response:
    raise error  # SecurityMiddleware responds to all errors
