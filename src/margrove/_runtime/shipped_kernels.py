"""Machine code that is part of the installed package, so that users need not compile it.

A wheel for a platform has a folder `margrove/_kernels` with two files for each level of processors:

    <level>.bin    the entries that Numba would keep in its cache, one after the other
    <level>.json   the versions that they were made with; where each entry is, and its SHA-256

and `levels.json`, with the SHA-256 of each list. An entry is a pickle. So its bytes are read once,
compared with the hash, and these bytes are unpickled. This detects damage. It does not protect from
someone who can write to the folder of the package, and could as well change its Python files.

An entry has a name that depends on the sources of its kernel, the signature and the bytecode. If
there is no such entry, or if the versions of Numba or Python differ, the kernel is compiled.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import logging
import os
import pickle
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llvmlite import binding

import margrove

__all__ = [
    "LEVELS",
    "KernelSource",
    "Level",
    "ShippedKernels",
    "entry_name",
    "kernel_source",
    "pack_kernels",
]

logger = logging.getLogger("margrove")

_LIST_OF_LEVELS = "levels.json"
_V3 = frozenset({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"})
_V4 = _V3 | {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"}


@dataclass(frozen=True)
class Level:
    """A set of instructions that a processor may have.

    name       of the files; for x86-64 and Apple also the name of such a processor for LLVM
    machines   what `platform.machine()` says, in lower case
    features   LLVM's names of the instructions
    """

    name: str
    machines: tuple[str, ...]
    features: frozenset[str]

    @property
    def processor(self) -> str:
        """The processor for which LLVM compiles."""
        return "generic" if self.name == "arm64" else self.name

    def missing(self) -> list[str]:
        """What this machine lacks."""
        if platform.machine().lower() not in self.machines:
            return [f"a processor of type {self.machines[0]}"]
        found = binding.get_host_cpu_features()
        return sorted(feature for feature in self.features if not found.get(feature))


_X86 = ("x86_64", "amd64")
LEVELS = (  # the best first
    Level("x86-64-v4", _X86, _V4),
    Level("x86-64-v3", _X86, _V3),
    Level("arm64", ("aarch64", "arm64"), frozenset()),
)


@dataclass(frozen=True)
class KernelSource:
    """Where machine code comes from.

    level    the level of the shipped kernels; None if they are not used
    reason   why
    folder   of the shipped kernels; None if there are none
    """

    level: str | None
    reason: str
    folder: Path | None = None
    kernels: ShippedKernels | None = None


class ShippedKernels:
    """The entries of one level."""

    def __init__(self, path: Path, listed: dict[str, Any]) -> None:
        self._path, self._entries = path, listed["entries"]

    def __len__(self) -> int:
        return len(self._entries)

    def load(self, name: str) -> Any:
        """The unpickled entry; None if there is none of this name, or if it is damaged."""
        place = self._entries.get(name)
        if place is None:
            return None
        start, size, digest = place
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                content = file.read(size)
        except OSError as error:
            _warn_once(f"{self._path} cannot be read ({error})")
            return None
        if hashlib.sha256(content).hexdigest() != digest:
            _warn_once(f"{self._path} is damaged")
            return None
        return pickle.loads(content)


@functools.lru_cache(maxsize=1)
def kernel_source() -> KernelSource:
    """The shipped kernels that this process uses, or why it uses none; found once.

    `MARGROVE_KERNELS` names another folder; if it is empty, kernels are always compiled.
    """
    folder = _folder()
    if folder is None:
        return KernelSource(None, "MARGROVE_KERNELS is empty")
    try:
        hashes = json.loads((folder / _LIST_OF_LEVELS).read_bytes())
    except FileNotFoundError:
        return KernelSource(None, "this installation has no machine code")
    except (OSError, ValueError) as error:
        _warn_once(f"{folder / _LIST_OF_LEVELS} cannot be read ({error})")
        return KernelSource(None, f"{_LIST_OF_LEVELS} cannot be read", folder)
    source = _best_level(folder, hashes)
    if source.level is None:
        logger.info("Kernels are compiled at their first use: %s.", source.reason)
    return source


def _folder() -> Path | None:
    given = os.environ.get("MARGROVE_KERNELS")
    if given is None:
        return Path(margrove.__file__).parent / "_kernels"
    return Path(given) if given else None


def _best_level(folder: Path, hashes: dict[str, str]) -> KernelSource:
    reason = f"there is no machine code for {platform.machine()}"
    for level in LEVELS:
        if level.name not in hashes:
            continue
        lacks = level.missing()
        if lacks:
            reason = f"this processor lacks {', '.join(lacks)}"
            continue
        path = folder / f"{level.name}.json"
        try:
            content = path.read_bytes()
        except OSError as error:
            content, reason = b"", f"{path} cannot be read ({error})"
        if hashlib.sha256(content).hexdigest() != hashes[level.name]:
            _warn_once(f"{path} is damaged")
            return KernelSource(None, f"{path.name} is damaged", folder)
        listed = json.loads(content)
        different = [
            f"{what} {listed[what]} and not {found}"
            for what, found in _versions().items()
            if listed[what] != found
        ]
        if different:
            reason = f"the machine code of this installation was made with {', '.join(different)}"
            return KernelSource(None, reason, folder)
        kernels = ShippedKernels(path.with_suffix(".bin"), listed)
        return KernelSource(level.name, "it was installed with the package", folder, kernels)
    return KernelSource(None, reason, folder)


def _versions() -> dict[str, str]:
    """What machine code depends on, beside the sources and the processor."""
    return {
        "Numba": importlib.metadata.version("numba"),
        "Python": sys.implementation.cache_tag,
        "platform": sys.platform,
    }


@functools.lru_cache(maxsize=4)
def _warn_once(problem: str) -> None:
    logger.warning(
        "%s: kernels are compiled at their first use. Install margrove again to repair it.", problem
    )


def entry_name(file: str, signature: Any, bytecode: str) -> str:
    """The name of an entry.

    file       the name that Numba's cache gives the function, with the hash of its sources
    signature  the types of the arguments
    bytecode   a hash
    """
    return hashlib.sha256(f"{file} {signature} {bytecode}".encode()).hexdigest()[:40]


# -- building --


def pack_kernels(cache: Path, folder: Path, level: str) -> int:
    """Write what is in a directory of Numba's cache as the shipped kernels of a level.

    Returns the number of entries. The cache must have been filled by this version of Numba and
    Python, with NUMBA_CPU_NAME set to the processor of the level.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries: dict[str, tuple[int, int, str]] = {}
    with (folder / f"{level}.bin").open("wb") as file:
        for name, content in _cached_entries(cache):
            entries[name] = (file.tell(), len(content), hashlib.sha256(content).hexdigest())
            file.write(content)
    listed = json.dumps({**_versions(), "entries": entries}, indent=0, sort_keys=True).encode()
    (folder / f"{level}.json").write_bytes(listed)
    levels = folder / _LIST_OF_LEVELS
    hashes = json.loads(levels.read_bytes()) if levels.exists() else {}
    hashes[level] = hashlib.sha256(listed).hexdigest()
    levels.write_text(json.dumps(hashes, indent=2, sort_keys=True) + "\n")
    return len(entries)


def _cached_entries(cache: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(cache.glob("*.nbi")):
        with path.open("rb") as file:
            if path.stat().st_size == 0:  # a mark
                continue
            pickle.load(file)  # the version of Numba
            _, overloads = pickle.loads(file.read())
        for (signature, _, (bytecode, _)), name in sorted(overloads.items(), key=lambda i: i[1]):
            yield entry_name(path.stem, signature, bytecode), (cache / name).read_bytes()
