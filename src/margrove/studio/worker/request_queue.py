"""Whose request comes next: tabs take turns, and so do the channels of a tab.

A newer request on a channel takes the place of the one that waits there. A slider that is dragged
therefore asks for its last position only, and does not push others back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from margrove.studio.server.messages import Ask

__all__ = ["MOST_CHANNELS", "Request", "TooManyError", "Turns"]

MOST_CHANNELS = 32


class TooManyError(Exception):
    """A tab has as many requests waiting as it may."""


@dataclass(frozen=True, eq=False)
class Request:
    """What a tab asks, and where it wants to be answered.

    owner     the tab, whatever that is
    answer    takes text or bytes, as they go to the page, and never waits
    """

    owner: object
    ask: Ask
    answer: Callable[[str | bytes], None] = field(repr=False)

    @property
    def channel(self) -> str:
        return self.ask.channel


class Turns:
    """Requests that wait."""

    def __init__(self) -> None:
        self._waiting: dict[object, dict[str, Request]] = {}

    def __iter__(self) -> Iterator[Request]:
        for channels in self._waiting.values():
            yield from channels.values()

    def __len__(self) -> int:
        return sum(len(channels) for channels in self._waiting.values())

    def put(self, request: Request) -> Request | None:
        """Have a request wait; gives the one whose place it takes."""
        channels = self._waiting.setdefault(request.owner, {})
        replaced = channels.get(request.channel)
        if replaced is None and len(channels) >= MOST_CHANNELS:
            raise TooManyError
        channels[request.channel] = request
        return replaced

    def take(self) -> Request | None:
        """The next one. Its tab goes to the end of the line."""
        if not self._waiting:
            return None
        owner = next(iter(self._waiting))
        channels = self._waiting.pop(owner)
        request = channels.pop(next(iter(channels)))
        if channels:
            self._waiting[owner] = channels
        return request

    def drop(self, owner: object, channel: str) -> Request | None:
        """Take one out, if it waits."""
        channels = self._waiting.get(owner, {})
        dropped = channels.pop(channel, None)
        if not channels:
            self._waiting.pop(owner, None)
        return dropped

    def drop_all(self, owner: object) -> list[Request]:
        """Take out all of a tab that is gone."""
        return list(self._waiting.pop(owner, {}).values())
