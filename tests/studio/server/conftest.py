"""One studio for all tests of the server: its child takes seconds to start."""

from __future__ import annotations

import pytest

pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("websockets")

from tests.studio.server.running import RunningStudio, written_page


@pytest.fixture(scope="session")
def studio(tmp_path_factory):
    page = written_page(tmp_path_factory.mktemp("page"))
    running = RunningStudio(tmp_path_factory.mktemp("studio"), page=page)
    yield running
    running.stop()


@pytest.fixture
def tab(studio):
    with studio.tab() as opened:
        yield opened
