"""The decorator of compiled loops, and a cache of machine code that is never out of date.

Numba's own cache stamps a compiled function with the hash of *its* file only. A kernel that
inlines a kernel of another file would keep running the old machine code after a change of that
other file, and give wrong results silently after an upgrade. Here the name of a cache file contains
a hash of every source file that the kernel depends on (`source_stamps`). Nothing depends on the
cache: without a writable home, with a foreign owner, a truncated file or a full disk, kernels are
compiled without it.
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
from numba.core import caching, config
from numba.extending import overload

import margrove
from margrove._runtime.source_stamps import SourceStamps
from margrove._version import __version__

__all__ = [
    "IS_COMPILED",
    "cache_directory",
    "compile_for",
    "compiled_for_user",
    "digest_of_sources",
    "kernel",
    "mark_in_cache",
    "overload",
]

logger = logging.getLogger("margrove")

Function = TypeVar("Function", bound=Callable[..., Any])

IS_COMPILED: bool = not vars(config)["DISABLE_JIT"]

# Not "nnan" or "ninf": missing values and overflow must stay visible.
FAST_SUMS = {"contract", "arcp", "nsz", "reassoc"}

_MOST_BYTES = 400_000_000  # of machine code for one version; all kernels together take 50 million
_KEPT_VERSIONS = 3
_SLOW_COMPILE_SECONDS = 0.5


def kernel(
    function: Function | None = None,
    *,
    fast_sums: bool = False,
    bare: bool = False,
    inner: bool = False,
    hidden: bool = False,
    inlined: bool = False,
    scalar: bool = False,
) -> Any:
    """Compile a loop with Numba: without Python's lock, with NumPy's error model, cached.

    fast_sums   lets the compiler reorder float sums, so that reductions use vector registers; NaN
                and infinity stay intact
    bare        for kernels that allocate nothing and call only such kernels: references are not
                counted, so tuples of arrays are passed on at no cost
    hidden      for kernels that only other kernels call: the code that converts arguments from
                Python is left out, which is most of the code if arguments are tuples of arrays
    inner       bare and hidden
    inlined     makes the kernel part of its caller: a tuple of ten arrays is seventy words to pass,
                which costs more than a loop over few rows
    scalar      hidden, for functions of numbers: LLVM makes them part of the loop that calls them,
                however long they are, so that the loop can use vector instructions
    """
    if function is None:
        return functools.partial(
            kernel, fast_sums=fast_sums, bare=bare, inner=inner, hidden=hidden, inlined=inlined,
            scalar=scalar,
        )  # fmt: skip
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    # set explicitly, or the caller's setting is used
    options |= {"fastmath": FAST_SUMS if fast_sums else False, "forceinline": scalar}
    hidden = hidden or scalar
    if bare or inner:
        options["_nrt"] = False
    elif hidden:  # its caller may be bare, whose setting would be used
        options["_nrt"] = True
    if inlined:
        options["inline"] = "always"
    if inner or hidden:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = numba.njit(function, **options)
    is_compiled = hasattr(compiled, "_cache")  # under NUMBA_DISABLE_JIT it is a plain function
    is_ours = function.__module__.startswith("margrove.")
    if is_compiled and is_ours:
        compiled._cache = _LibraryCache(function)
    return compiled


def compiled_for_user(function: Callable[..., Any]) -> Any:
    """Compile a user's function, or a loop around it, for this process only; it is not cached."""
    if hasattr(function, "py_func"):
        return function
    return numba.njit(function, nogil=True, error_model="numpy")


def compile_for(compiled: Any, *arguments: Any) -> None:
    """Compile a kernel, or load it from the cache, for arguments like these, without calling it."""
    if IS_COMPILED:
        compiled.compile(tuple(map(numba.typeof, arguments)))


@functools.lru_cache(maxsize=1)
def cache_directory() -> Path | None:
    """The directory of this version's machine code; None if there is no usable one.

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
        _remove_old_versions(root, directory)
    except OSError:
        return None
    return directory


def mark_in_cache(name: str) -> Path | None:
    """The path of an empty file; if it exists, all kernels for `name` are in the cache."""
    directory = cache_directory()
    return None if directory is None else directory / f"{name}-{digest_of_sources()}.nbi"


def digest_of_sources() -> str:
    """A hash of all source files of the package."""
    return _stamps().of_package()


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
    """Whether only this user can write; cache entries are pickles, which can run any code."""
    if os.name != "posix":
        return True
    status = directory.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _versions() -> str:
    """A hash of the versions that all machine code of one directory has in common."""
    versions = f"{__version__} {numba.__version__} {sys.version_info[:2]}"
    return hashlib.sha256(versions.encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=1)
def _stamps() -> SourceStamps:
    return SourceStamps(Path(margrove.__file__).parent)


def _remove_old_versions(root: Path, current: Path) -> None:
    """Remove the code of old versions; the newest ones stay, because they may still be in use."""
    others = [path for path in root.glob("kernels-*") if path != current and _is_ours(path)]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEPT_VERSIONS:]:
        shutil.rmtree(path, ignore_errors=True)


def _is_ours(directory: Path) -> bool:
    """Whether name and contents are those of our cache: the root may be a user's folder."""
    if not re.fullmatch(r"kernels-[0-9a-f]{16}", directory.name):
        return False
    return all(path.suffix in (".nbi", ".nbc") for path in directory.iterdir())


@functools.lru_cache(maxsize=1)
def _limit_size(directory: Path) -> None:
    """Remove the oldest files above the size limit; called once in each process that compiles."""
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
    """Numba's function cache, except that errors of the disk never reach the user."""

    _impl_class = _LibraryCacheImpl
    _announced = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        self._started = time.perf_counter()
        shipped = self._load_shipped(sig, target_context)
        if shipped is not None or cache_directory() is None:
            return shipped
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a truncated or foreign entry: remove it and compile
            self._discard()
            return None

    def _load_shipped(self, sig: Any, target_context: Any) -> Any:
        from margrove._runtime.shipped_kernels import entry_name, kernel_source

        kernels = kernel_source().kernels
        if kernels is None:
            return None
        bytecode = hashlib.sha256(self._py_func.__code__.co_code).hexdigest()
        found = kernels.load(entry_name(self._impl.filename_base, sig, bytecode))
        if found is None:
            return None
        target_context.refresh()
        return self._impl.rebuild(target_context, found)

    def save_overload(self, sig: Any, data: Any) -> None:
        if cache_directory() is None:
            return
        seconds = time.perf_counter() - self._started
        if seconds > _SLOW_COMPILE_SECONDS and not _LibraryCache._announced:
            _LibraryCache._announced = True
            logger.info("Compiling numerical kernels, on the first run only.")
        try:
            _limit_size(Path(self.cache_path))
            super().save_overload(sig, data)
        except Exception:  # disk full or directory removed: run without the cache
            self._discard()

    def _discard(self) -> None:
        base = Path(self.cache_path)
        for path in base.glob(f"{self._impl.filename_base}.*"):
            path.unlink(missing_ok=True)
