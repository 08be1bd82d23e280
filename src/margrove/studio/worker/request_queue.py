"""The queue of requests: round robin over the tabs, and over the channels of a tab.

A newer request replaces the one that waits on the same channel. So a dragged slider is answered for
its last position only, and does not delay other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from margrove.studio.server import PageRequest

__all__ = ["MOST_CHANNELS", "QueuedRequest", "RequestQueue", "TooManyError"]

MOST_CHANNELS = 32


class TooManyError(Exception):
    """The limit of waiting requests of a tab is reached."""


@dataclass(frozen=True, eq=False)
class QueuedRequest:
    """A request of a tab.

    owner      any object that stands for the tab
    message    the request as the page sent it
    answer     takes text or bytes for the page, and returns at once
    """

    owner: object
    message: PageRequest
    answer: Callable[[str | bytes], None] = field(repr=False)

    @property
    def channel(self) -> str:
        return self.message.channel


class RequestQueue:
    """Waiting requests, by tab and channel."""

    def __init__(self) -> None:
        self._waiting: dict[object, dict[str, QueuedRequest]] = {}

    def __iter__(self) -> Iterator[QueuedRequest]:
        for channels in self._waiting.values():
            yield from channels.values()

    def __len__(self) -> int:
        return sum(len(channels) for channels in self._waiting.values())

    def put(self, request: QueuedRequest) -> QueuedRequest | None:
        """Add a request; returns the one that it replaces."""
        channels = self._waiting.setdefault(request.owner, {})
        replaced = channels.get(request.channel)
        if replaced is None and len(channels) >= MOST_CHANNELS:
            raise TooManyError
        channels[request.channel] = request
        return replaced

    def take(self) -> QueuedRequest | None:
        """Remove the next request; its tab goes to the end of the queue."""
        if not self._waiting:
            return None
        owner = next(iter(self._waiting))
        channels = self._waiting.pop(owner)
        request = channels.pop(next(iter(channels)))
        if channels:
            self._waiting[owner] = channels
        return request

    def drop(self, owner: object, channel: str) -> QueuedRequest | None:
        """Remove the request of a channel, if there is one."""
        channels = self._waiting.get(owner, {})
        dropped = channels.pop(channel, None)
        if not channels:
            self._waiting.pop(owner, None)
        return dropped

    def drop_all(self, owner: object) -> list[QueuedRequest]:
        """Remove all requests of a tab."""
        return list(self._waiting.pop(owner, {}).values())
