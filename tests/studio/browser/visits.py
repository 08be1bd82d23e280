"""A tab of the studio in a browser, and what nobody may see in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from margrove.studio.content.scenes import scene_from

_TWO_FRAMES = """() => new Promise((resolve) =>
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(null))))"""
MODES = ("playground", "steps", "compare", "tree", "map", "lessons", "table")


def expect(locator: Any) -> Any:
    """Playwright's, which is asked for only where there is a browser."""
    from playwright.sync_api import expect as expected

    return expected(locator)


class Watch:
    """Hears of errors in the console and in scripts, and of requests that leave the studio."""

    def __init__(self, context: Any, host: str) -> None:
        self._host = host
        self._expected: list[str] = []
        self._seen: list[str] = []
        context.on("console", self._hear)
        context.on("weberror", lambda own: self._seen.append(f"error: {own.error}"))
        context.on("request", lambda own: self._follow(own.url))
        context.on("page", self._attend)

    def expect(self, pattern: str) -> None:
        """A test that cuts a connection is told so by the browser."""
        self._expected.append(pattern)

    def complaints(self) -> list[str]:
        return [
            own for own in self._seen if not any(re.search(known, own) for known in self._expected)
        ]

    def _attend(self, page: Any) -> None:
        page.on("websocket", lambda own: self._follow(own.url))
        page.on("crash", lambda _: self._seen.append("the page crashed"))

    def _hear(self, message: Any) -> None:
        if message.type == "error":
            self._seen.append(f"console: {message.text} ({message.location.get('url')})")

    def _follow(self, url: str) -> None:
        address = urlsplit(url)
        is_inside = address.scheme in ("data", "blob") or url == "about:blank"
        if not is_inside and address.netloc != self._host:
            self._seen.append(f"request: {url[:200]}")


class Visit:
    """One tab, and the things that tests do in it."""

    def __init__(self, page: Any, watch: Watch) -> None:
        self.page = page
        self.watch = watch

    def at(self, name: str) -> Any:
        """What has this data-testid."""
        return self.page.get_by_test_id(name)

    def arrive(self, link: str) -> Visit:
        """Opens a link, and waits for the first picture."""
        self.page.goto(link)
        expect(self.at("starting")).to_have_count(0)
        expect(self.at("stage")).to_have_attribute("data-fitted", "yes")
        self.settle()
        return self

    def settle(self) -> None:
        """Until the picture is that of the scene: the page marks it a moment after a change."""
        self.page.evaluate(_TWO_FRAMES)
        expect(self.page.locator(".stage-box.waiting")).to_have_count(0)

    def open_mode(self, name: str) -> None:
        self.at(f"tab-{name}").click()
        expect(self.at(f"mode-{name}")).to_be_visible()

    def scene(self) -> dict[str, Any]:
        """The scene of the playground, as it is saved."""
        with self.page.expect_download() as saved:
            self.at("save-scene").click()
        return json.loads(Path(saved.value.path()).read_text())

    def load(self, scene: dict[str, Any]) -> Any:
        """Loads a scene file; gives the scene as the library knows it."""
        known = scene_from(scene)
        content = json.dumps(known.as_dict()).encode()
        file = {"name": "scene.json", "mimeType": "application/json", "buffer": content}
        self.at("scene-file").set_input_files(file)
        stage = self.at("stage")
        expect(stage).to_have_attribute("data-points", str(len(scene["x"])))
        expect(stage).to_have_attribute("aria-label", re.compile(rf"what {scene['learner']} "))
        expect(stage).to_have_attribute("data-fitted", "yes")
        self.settle()
        return known

    def slide(self, name: str, value: float | str) -> None:
        """Moves a slider to a place of its own scale, as a pointer does."""
        self.at(name).evaluate(
            """(own, value) => {
                own.value = value;
                own.dispatchEvent(new Event("input", { bubbles: true }));
                own.dispatchEvent(new Event("change", { bubbles: true }));
            }""",
            value,
        )

    def type_number(self, name: str, value: float) -> None:
        """Types into the field of a slider."""
        field = self.at(f"{name}-number")
        field.fill(str(value))
        field.press("Enter")

    def active(self) -> str:
        """The data-testid of what has the focus."""
        return self.page.evaluate("() => document.activeElement?.dataset.testid ?? ''")

    def pixels(self, name: str) -> list[int]:
        """How many pixels of a canvas have which colour, the most frequent first."""
        return self.at(name).evaluate(
            """(own) => {
                const { data } = own.getContext("2d").getImageData(0, 0, own.width, own.height);
                const counts = new Map();
                for (let k = 0; k < data.length; k += 4) {
                    if (data[k + 3] === 0) continue;
                    const colour = (data[k] << 16) | (data[k + 1] << 8) | data[k + 2];
                    counts.set(colour, (counts.get(colour) ?? 0) + 1);
                }
                return [...counts.values()].sort((a, b) => b - a);
            }"""
        )
