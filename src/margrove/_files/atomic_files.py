"""Files that are either there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

__all__ = ["write_atomically"]

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_atomically(
    path: str | os.PathLike[str], chunks: Iterable[bytes | bytearray | memoryview]
) -> None:
    """Write a file next to its place, then put it there in one step.

    Whatever goes wrong on the way (a full disk, an interrupt), the file that was there before is as
    it was, and the new one is removed. Only a process that is killed outright leaves its unfinished
    file behind, named like `.NAME.1f2e3d4c.saving`.
    """
    target = Path(os.path.realpath(path))  # a link stays, what it points to is replaced
    mode = _mode_of(target)
    unfinished = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}.saving")
    try:
        with open(os.open(unfinished, _NEW_FILE, 0o666), "wb") as file:
            if mode is not None:
                os.chmod(unfinished, mode)
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    _sync_folder(target.parent)


def _mode_of(target: Path) -> int | None:
    """The permissions of the file that will be replaced, if there is one."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(f"There is no folder {target.parent}. Make it first.") from None
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(f"{target} is a folder. Name a file in it.")
    if not stat.S_ISREG(found):
        raise OSError(f"{target} is not a plain file and would be replaced. Give another name.")
    return stat.S_IMODE(found)


def _sync_folder(folder: Path) -> None:
    """Make the new name outlive a power cut; Windows has no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
