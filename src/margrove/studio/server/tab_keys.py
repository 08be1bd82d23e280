"""The token of a link, which opens one tab, and the keys of tabs, which open it again.

A token is spent at its first use: a link that lies in a history or on a screen opens nothing. The
key that a tab gets for it is kept by that tab alone. All of them end with the process, so that a
restarted studio knows nobody.
"""

from __future__ import annotations

import secrets

__all__ = ["KeyRing"]

_BYTES = 32  # 256 bits
_MOST_KEYS = 256


class KeyRing:
    """Who may come in."""

    def __init__(self) -> None:
        self.server = secrets.token_hex(8)
        self._token: bytes | None = None
        self._keys: list[bytes] = []

    def new_token(self) -> str:
        """For the next link; a link that was not used by now is dead."""
        token = secrets.token_urlsafe(_BYTES)
        self._token = token.encode()
        return token

    def spend(self, token: str) -> str | None:
        """The key of a new tab, if this is the token of the link; never again for the same."""
        given = token.encode(errors="replace")
        if self._token is None or not secrets.compare_digest(given, self._token):
            return None
        self._token = None
        key = secrets.token_urlsafe(_BYTES)
        self._keys = [*self._keys[1 - _MOST_KEYS :], key.encode()]
        return key

    def knows(self, key: str) -> bool:
        """Whether a tab of this studio has that key. All are compared, however many match."""
        given = key.encode(errors="replace")
        return any([secrets.compare_digest(given, own) for own in self._keys])  # noqa: C419
