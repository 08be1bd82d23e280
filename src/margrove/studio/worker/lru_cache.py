"""A cache of the last fits, so that going back to an earlier picture needs no new fit."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from margrove.studio.content import Scene

__all__ = ["LruCache", "key_of"]

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """The last used values by key; the least recently used one is dropped first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of the key; if there is none, the result of `make()`. Errors are not cached."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._values)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


def key_of(scene: Scene) -> str:
    """A hash that is equal for scenes of equal content."""
    digest = hashlib.sha256()
    for array in (scene.x, scene.y):
        digest.update(f"{array.shape} {array.dtype}".encode())
        digest.update(array.tobytes())
    others = (
        scene.task, scene.test_share, scene.seed, scene.view, scene.features, scene.target,
        scene.classes, scene.learner, sorted(scene.parameters.items()),
    )  # fmt: skip
    digest.update(ascii(others).encode())
    return digest.hexdigest()
