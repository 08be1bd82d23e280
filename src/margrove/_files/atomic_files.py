"""Writes a file completely or not at all."""

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
    """Write a temporary file in the same folder, then rename it to `path` in one step.

    If anything goes wrong (a full disk, an interrupt), an existing file stays unchanged and the
    temporary file is removed. Only a process that is killed leaves its temporary file behind, named
    like `.NAME.1f2e3d4c.saving`.
    """
    target = Path(os.path.realpath(path))  # a link stays; the file that it points to is replaced
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
    """The permissions of the file that will be replaced; None if there is no such file."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(
                f"There is no folder {target.parent}. Create it first."
            ) from None
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{target} is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        raise OSError(f"{target} is not a regular file and would be replaced. Use another name.")
    return stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Sync the folder, so that the new name survives a power failure; not needed on Windows."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
