"""The last few fits, so that looking again, or going back and forth, takes no new one."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

from margrove.studio.content.scenes import Scene

__all__ = ["Recent", "key_of"]

Kept = TypeVar("Kept")


class Recent(Generic[Kept]):
    """What was made last, by key; the one that was used longest ago goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under the key, or else what `make` makes; errors are not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


def key_of(scene: Scene) -> str:
    """The same for scenes of the same content."""
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
