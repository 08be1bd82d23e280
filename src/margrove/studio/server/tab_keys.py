"""The token of a link, which opens one tab, and the keys with which open tabs come back.

A token is valid once: a link that is left in a history or seen on a screen opens nothing. In
exchange for it, a tab gets a key, which only this tab stores. Tokens and keys end with the process,
so a restarted studio accepts none of the old ones.
"""

from __future__ import annotations

import secrets

__all__ = ["TabKeys"]

_BYTES = 32  # 256 bits
_MOST_KEYS = 256


class TabKeys:
    """The current token and the keys of all tabs."""

    def __init__(self) -> None:
        self.server = secrets.token_hex(8)
        self._token: bytes | None = None
        self._keys: list[bytes] = []

    def new_token(self) -> str:
        """A token for the next link; an unused one becomes invalid."""
        token = secrets.token_urlsafe(_BYTES)
        self._token = token.encode()
        return token

    def spend(self, token: str) -> str | None:
        """The key of a new tab if the token is valid, which it is not again; else None."""
        given = token.encode(errors="replace")
        if self._token is None or not secrets.compare_digest(given, self._token):
            return None
        self._token = None
        key = secrets.token_urlsafe(_BYTES)
        self._keys = [*self._keys[1 - _MOST_KEYS :], key.encode()]
        return key

    def is_known(self, key: str) -> bool:
        """Whether a tab of this studio has this key. All keys are compared, whatever matches."""
        given = key.encode(errors="replace")
        return any([secrets.compare_digest(given, known) for known in self._keys])  # noqa: C419
