"""The one kernel decorator, and a cache of machine code that cannot go stale.

Numba's own cache stamps a compiled function with the hash of *its* file only. A kernel that
inlines a kernel of another file keeps running the old machine code after that other file
changed: a silent wrong answer after an upgrade. Here the name of a cache file contains a hash of
every source file that the kernel can take something from (`source_stamps`). The cache is an
optimisation and never a condition: no writable home, a foreign owner, a truncated file, a full
disk all end in plain compilation.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import caching
from numba.extending import overload

import margrove
from margrove._runtime.source_stamps import SourceStamps
from margrove._version import __version__

__all__ = [
    "cache_directory",
    "compiled_for_user",
    "digest_of_sources",
    "kernel",
    "mark_in_cache",
    "overload",
]

logger = logging.getLogger("margrove")

Function = TypeVar("Function", bound=Callable[..., Any])

# Not "nnan" or "ninf": missing values and overflow must stay visible.
FAST_SUMS = {"contract", "arcp", "nsz", "reassoc"}

_MOST_BYTES = 400_000_000  # of machine code for one version; all kernels together take 50 million
_KEEP_GENERATIONS = 3
_SLOW_COMPILE_SECONDS = 0.5


def kernel(
    function: Function | None = None,
    *,
    fast_sums: bool = False,
    bare: bool = False,
    inner: bool = False,
    inlined: bool = False,
) -> Any:
    """Compile a loop: nogil, no parallel, NumPy's arithmetic, cached for the library as a whole.

    `fast_sums` lets the compiler reorder float sums so that reductions use vector registers; it
    keeps NaN and infinity intact. `bare` is for kernels that allocate nothing and call only such:
    without counting references, tuples of arrays are passed on at no cost. `inner` is for bare
    kernels that only other kernels call: what would take their arguments from Python is left out,
    which with tuples of arrays is most of what there is to compile. `inlined` ones become part of
    whoever calls them: a tuple of ten arrays is seventy words to hand over, which a loop over few
    rows does not earn back.
    """
    if function is None:
        return functools.partial(
            kernel, fast_sums=fast_sums, bare=bare, inner=inner, inlined=inlined
        )
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options["fastmath"] = FAST_SUMS if fast_sums else False  # said, or it is the caller's
    if bare or inner:
        options["_nrt"] = False
    if inlined:
        options["inline"] = "always"
    if inner:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(function, **options)
    is_compiled = hasattr(compiled, "_cache")  # under NUMBA_DISABLE_JIT it is a plain function
    is_ours = function.__module__.startswith("margrove.")
    if is_compiled and is_ours and cache_directory() is not None:
        compiled._cache = _LibraryCache(function)
    return compiled


def compiled_for_user(function: Callable[..., Any]) -> Any:
    """Compile what a user has written, or a loop around it: for this process only, not cached."""
    if hasattr(function, "py_func"):
        return function
    return numba.njit(function, nogil=True, error_model="numpy")


@functools.lru_cache(maxsize=1)
def cache_directory() -> Path | None:
    """The directory of this version's machine code; None where there can be none.

    `MARGROVE_CACHE_DIR` overrides the user's cache directory; set to an empty string it
    switches caching off.
    """
    root = _cache_root()
    if root is None:
        return None
    directory = root / f"kernels-{_versions()}"
    try:
        root.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(mode=0o700, exist_ok=True)  # `parents` would leave its mode to the umask
        directory.mkdir(mode=0o700, exist_ok=True)
        if not _is_private(root) or not _is_private(directory):
            logger.warning(
                "Compiled kernels are not cached: %s can be written by another user. "
                "Remove it, or name another directory in MARGROVE_CACHE_DIR.",
                root,
            )
            return None
        probe = directory / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
        _forget_old_generations(root, directory)
    except OSError:
        return None
    return directory


def mark_in_cache(name: str) -> Path | None:
    """An empty file that says: what `name` needs is compiled, for the sources as they are now."""
    directory = cache_directory()
    return None if directory is None else directory / f"{name}-{digest_of_sources()}.nbi"


def digest_of_sources() -> str:
    """The same wherever the sources of the package are the same."""
    return _stamps().whole()


def _cache_root() -> Path | None:
    override = os.environ.get("MARGROVE_CACHE_DIR")
    if override is not None:
        return Path(override) if override else None
    try:
        if sys.platform == "win32":
            base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home directory at all
        return None
    return base / "margrove"


def _is_private(directory: Path) -> bool:
    """Cache entries are pickles, so a directory that others can write to is code of theirs."""
    if os.name != "posix":
        return True
    status = directory.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _versions() -> str:
    """What all machine code of a directory has in common."""
    versions = f"{__version__} {numba.__version__} {sys.version_info[:2]}"
    return hashlib.sha256(versions.encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def _stamps() -> SourceStamps:
    return SourceStamps(Path(margrove.__file__).parent)


def _forget_old_generations(root: Path, current: Path) -> None:
    """Remove the code of versions long gone; several may be in use side by side."""
    others = [path for path in root.glob("kernels-*") if path != current and _is_ours(path)]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEEP_GENERATIONS:]:
        shutil.rmtree(path, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    """By its name and by holding nothing but machine code: the root may be a user's folder."""
    if not re.fullmatch(r"kernels-[0-9a-f]{16}", directory.name):
        return False
    return all(path.suffix in (".nbi", ".nbc") for path in directory.iterdir())


@functools.lru_cache(maxsize=1)
def _forget_oldest(directory: Path) -> None:
    """Make room, once a process that compiles: sources that change leave old machine code."""
    files = sorted(directory.glob("*.nb?"), key=lambda path: path.stat().st_mtime)
    excess = sum(path.stat().st_size for path in files) - _MOST_BYTES
    for path in files:
        if excess <= 0:
            break
        excess -= path.stat().st_size
        path.unlink(missing_ok=True)


class _LibraryLocator(caching._CacheLocator):
    """Where a kernel's machine code is: the name of its file contains the stamp of its sources."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module = function.__module__

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _LibraryLocator:
        return cls(py_func)

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return _stamps().stamp(self._module)

    def get_disambiguator(self) -> str:
        name = f"{self._module} {self.get_source_stamp()}"
        return hashlib.sha256(name.encode()).hexdigest()[:16]


class _LibraryCacheImpl(caching.CompileResultCacheImpl):
    _locator_classes = [_LibraryLocator]  # type: ignore[list-item]  # noqa: RUF012


class _LibraryCache(caching.FunctionCache):
    """Numba's function cache, except that no fault of the disk ever reaches the user."""

    _impl_class = _LibraryCacheImpl
    _announced = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        self._started = time.perf_counter()
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a truncated or foreign entry: throw it away and compile
            self._discard()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        seconds = time.perf_counter() - self._started
        if seconds > _SLOW_COMPILE_SECONDS and not _LibraryCache._announced:
            _LibraryCache._announced = True
            logger.info("Compiling numerical kernels, on the first run only.")
        try:
            _forget_oldest(Path(self.cache_path))
            super().save_overload(sig, data)
        except Exception:  # disk full, directory gone: run uncached
            self._discard()

    def _discard(self) -> None:
        base = Path(self.cache_path)
        for path in base.glob(f"{self._impl.filename_base}.*"):
            path.unlink(missing_ok=True)
