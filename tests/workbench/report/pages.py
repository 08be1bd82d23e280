"""A parsed HTML page, for tests."""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser

_EMPTY = {"meta", "link", "br", "hr", "img", "input", "base", "source", "embed"}


class Page(HTMLParser):
    """Tags with their attributes, the text of elements, and all visible text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.comments: list[str] = []
        self.unclosed: list[str] = []
        self._words: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice: {tag} {attrs}"
        if tag not in _EMPTY:
            self.unclosed.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.unclosed.pop() == tag

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def handle_data(self, data: str) -> None:
        if self.unclosed:
            self.texts[self.unclosed[-1]][-1] += data
            if self.unclosed[-1] not in ("script", "style"):
                self._words.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(f"{word} " for word in self._words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def policy(self) -> str:
        (found,) = [
            meta["content"]
            for meta in self.all("meta")
            if meta.get("http-equiv") == "Content-Security-Policy"
        ]
        assert found is not None
        return found


def hash_of(text: str) -> str:
    """The hash of a text as a content security policy has it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


ALLOWED_TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "a",
    "header",
    "div",
    "p",
    "h1",
    "h2",
    "h3",
    "button",
    "nav",
    "ol",
    "ul",
    "li",
    "main",
    "section",
    "dl",
    "dt",
    "dd",
    "span",
    "details",
    "summary",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "svg",
    "g",
    "path",
    "line",
    "rect",
    "circle",
    "text",
    "pre",
    "code",
    "footer",
    "script",
}
ALLOWED_ATTRIBUTES = {
    "lang",
    "charset",
    "http-equiv",
    "content",
    "name",
    "class",
    "href",
    "id",
    "type",
    "aria-label",
    "aria-labelledby",
    "aria-pressed",
    "aria-hidden",
    "aria-live",
    "role",
    "tabindex",
    "scope",
    "data-order",
    "data-node",
    "data-to",
    "data-tree",
    "data-told",
    "hidden",
    "viewbox",
    "x",
    "y",
    "x1",
    "x2",
    "y1",
    "y2",
    "cx",
    "cy",
    "r",
    "rx",
    "d",
    "width",
    "height",
    "text-anchor",
    "transform",
    "fill-opacity",
}


def require_harmless(html: str) -> Page:
    """Check that a page has no event handlers, inline styles, or links except to its sections."""
    page = Page(html)
    assert page.unclosed == []
    assert page.comments == []
    for tag, attributes in page.tags:
        assert tag in ALLOWED_TAGS, tag
        for name, value in attributes.items():
            assert name in ALLOWED_ATTRIBUTES, (tag, name)
            if name == "href":
                assert value is not None
                assert value.startswith("#"), value
    scripts = page.all("script")
    assert [script.get("type") for script in scripts] == ["application/json", None]
    assert len(page.all("style")) == 1
    (style,), (_, script) = page.texts["style"], page.texts["script"]
    policy = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["style-src"] == hash_of(style)
    assert policy["script-src"] == hash_of(script)
    assert policy["base-uri"] == policy["form-action"] == "'none'"
    return page
