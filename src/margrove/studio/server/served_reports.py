"""Reports that were made, each under a name that cannot be guessed.

A report is a page of its own, with the names of the user's table in it. It is served with the
policy that it was made with, which knows its one script and its one style sheet by their hashes,
and as a sandbox: whatever ran in it would be nobody's, and could not speak to the studio.
"""

from __future__ import annotations

import re

__all__ = ["ReportShelf", "report_headers"]

_MOST_REPORTS = 16
_HASHES = r"(?:'sha256-[A-Za-z0-9+/=]{44}' ?)+"
_POLICY = re.compile(
    rb'<meta http-equiv="Content-Security-Policy" content="'
    + rf"(default-src 'none'; style-src {_HASHES}; script-src {_HASHES}; ".encode()
    + rb"base-uri 'none'; form-action 'none')\">"
)
_STRICTEST = "default-src 'none'; base-uri 'none'; form-action 'none'"
_NAME = re.compile(r"[A-Za-z0-9_-]{22,64}")


class ReportShelf:
    """The last few reports of this session, in memory."""

    def __init__(self) -> None:
        self._pages: dict[str, bytes] = {}

    def keep(self, name: str, page: bytes) -> None:
        if not _NAME.fullmatch(name):  # at least 128 bits
            raise ValueError("The name of a report is a long random word.")
        self._pages[name] = page
        while len(self._pages) > _MOST_REPORTS:
            del self._pages[next(iter(self._pages))]

    def page(self, name: str) -> bytes | None:
        return self._pages.get(name)


def report_headers(page: bytes) -> dict[str, str]:
    """What a report is served with. Its policy is believed only if it is of the form that we make.

    Its opener policy is none: browsers show no sandbox that asks for one.
    """
    text = page[:4000].decode("latin-1").replace("&#39;", "'")  # as templates escape it
    found = _POLICY.search(text.encode("latin-1"))
    policy = _STRICTEST if found is None else found[1].decode()
    sandbox = "; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
    return {
        "content-security-policy": policy + sandbox,
        "cross-origin-opener-policy": "unsafe-none",
        "content-type": "text/html; charset=utf-8",
    }
