"""One studio and one browser; a test opens as many tabs of it as it likes."""

from __future__ import annotations

import shutil

import pytest
from tests.studio.browser.cables import Cable
from tests.studio.browser.running import RunningStudio
from tests.studio.browser.visits import Visit, Watch

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SWITCHES = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
]  # fmt: skip
_PATIENCE = 60_000  # milliseconds that anything may take on a busy machine
WINDOW = {"width": 1280, "height": 900}


@pytest.fixture(scope="package")
def playwright():
    found = pytest.importorskip(
        "playwright.sync_api", reason="tests in a browser need Playwright: pip install playwright"
    )
    pytest.importorskip("starlette", reason='the studio needs pip install "margrove[studio]"')
    found.expect.set_options(timeout=_PATIENCE)
    with found.sync_playwright() as running:
        yield running


@pytest.fixture(scope="package")
def chromium(playwright):
    """Launches a Chromium with further switches; all are closed in the end."""
    path = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("tests in a browser need Chromium: apt-get install chromium")
    launched = []

    def launch(*switches):
        own = playwright.chromium.launch(executable_path=path, args=[*_SWITCHES, *switches])
        launched.append(own)
        return own

    yield launch
    for own in launched:
        own.close()


@pytest.fixture(scope="package")
def studio(playwright):
    running = RunningStudio()
    yield running
    running.close()


@pytest.fixture(scope="package")
def cable(studio):
    """What pages that are opened as `localhost` go through."""
    laid = Cable(studio.port)
    yield laid
    laid.close()


@pytest.fixture(scope="package")
def browser(chromium, studio, cable):
    return chromium(f"--host-resolver-rules=MAP localhost:{studio.port} 127.0.0.1:{cable.port}")


@pytest.fixture
def tabs(browser, studio):
    """`tabs.open()` opens the studio in a new tab; in the end nothing may have gone wrong."""
    opened = Tabs(browser, studio)
    yield opened
    opened.close()


@pytest.fixture
def visit(tabs):
    """A tab with the first picture in it."""
    return tabs.open()


class Tabs:
    """Tabs of one test, each with a storage of its own."""

    def __init__(self, browser, studio):
        self._browser = browser
        self._studio = studio
        self._opened = []

    def blank(self, host=None, **options):
        """An empty tab that belongs to a studio."""
        context = self._browser.new_context(**{"viewport": WINDOW} | options)
        context.set_default_timeout(_PATIENCE)
        watch = Watch(context, host or self._studio.host)
        self._opened.append((context, watch))
        return Visit(context.new_page(), watch)

    def open(self, **options):
        return self.blank(**options).arrive(self._studio.link())

    def close(self):
        for context, _ in self._opened:
            context.close()
        complaints = [own for _, watch in self._opened for own in watch.complaints()]
        assert complaints == []
        assert self._studio.complaints() == ""
