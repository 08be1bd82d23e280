"""Pages work without a network: a build fails if one of them would load something from elsewhere.

Links that a reader may follow are free to lead anywhere.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

__all__ = ["loaded_from_elsewhere", "setup"]

_LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
    "link": "href",
}
_HARMLESS_LINKS = {"canonical", "alternate", "next", "prev", "search", "index", "author", "license"}
_ELSEWHERE = re.compile(r"(?:https?:)?//")
_IN_STYLES = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(?:https?:)?//[^'\")\s]*")


class _Loads(HTMLParser):
    """Collects addresses that a browser would fetch by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(_LOADING.get(tag, "")) or ""
        kinds = set((given.get("rel") or "").split())
        if tag == "link" and kinds <= _HARMLESS_LINKS:
            return
        if _ELSEWHERE.match(address):
            self.found.append(address)


def loaded_from_elsewhere(text: str, suffix: str) -> list[str]:
    """Addresses outside the site that a page or a style sheet loads by itself."""
    if suffix == ".css":
        return _IN_STYLES.findall(text)
    reader = _Loads()
    reader.feed(text)
    return reader.found + _IN_STYLES.findall(" ".join(re.findall(r"<style.*?</style>", text, re.S)))


def _check(app: Any, failed: Exception | None) -> None:
    if failed is not None or app.builder.format != "html":
        return
    from sphinx.errors import SphinxError

    folder = Path(app.outdir)
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.css")]):
        found = loaded_from_elsewhere(path.read_text(encoding="utf-8"), path.suffix)
        if found:
            raise SphinxError(f"{path.relative_to(folder)} loads {found[0]} from elsewhere.")


def setup(app: Any) -> dict[str, Any]:
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
