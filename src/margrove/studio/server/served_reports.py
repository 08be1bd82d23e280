"""Reports of this session, each under a name that cannot be guessed.

A report is a separate page that contains names from the user's table. It is served with the content
security policy that it was made with, which allows its one script and its one style sheet by their
hashes, and as a sandbox: a script in it has no origin and cannot send requests to the studio.
"""

from __future__ import annotations

import re

__all__ = ["ServedReports", "report_headers"]

_MOST_REPORTS = 16
_HASHES = r"(?:'sha256-[A-Za-z0-9+/=]{44}' ?)+"
_POLICY = re.compile(
    rb'<meta http-equiv="Content-Security-Policy" content="'
    + rf"(default-src 'none'; style-src {_HASHES}; script-src {_HASHES}; ".encode()
    + rb"base-uri 'none'; form-action 'none')\">"
)
_STRICTEST = "default-src 'none'; base-uri 'none'; form-action 'none'"
_NAME = re.compile(r"[A-Za-z0-9_-]{22,64}")


class ServedReports:
    """The last few reports of this session, in memory."""

    def __init__(self) -> None:
        self._pages: dict[str, bytes] = {}

    def keep(self, name: str, page: bytes) -> None:
        if not _NAME.fullmatch(name):  # at least 128 bits
            raise ValueError("The name of a report has to be long and random.")
        self._pages[name] = page
        while len(self._pages) > _MOST_REPORTS:
            del self._pages[next(iter(self._pages))]

    def page(self, name: str) -> bytes | None:
        return self._pages.get(name)


def report_headers(page: bytes) -> dict[str, str]:
    """The headers of a report. The policy in the page is used only if it has the expected form.

    The opener policy has to be `unsafe-none`: browsers do not show a sandbox with another one.
    """
    text = page[:4000].decode("latin-1").replace("&#39;", "'")  # as Jinja escapes quotes
    found = _POLICY.search(text.encode("latin-1"))
    policy = _STRICTEST if found is None else found[1].decode()
    sandbox = "; frame-ancestors 'none'; sandbox allow-scripts allow-downloads"
    return {
        "content-security-policy": policy + sandbox,
        "cross-origin-opener-policy": "unsafe-none",
        "content-type": "text/html; charset=utf-8",
    }
