"""What the library runs on: versions, processor, and where machine code comes from."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from dataclasses import asdict, dataclass
from typing import Any

import margrove

__all__ = ["SystemFacts", "system_facts"]

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")


@dataclass(frozen=True)
class SystemFacts:
    """What `system_facts` found.

    versions    of Python and of packages, by name
    processor   its name for LLVM
    cores       that this process may use
    kernels     the level of processors for which the kernels of the package were compiled before;
                None if kernels are compiled on this machine
    reason      why
    cache       the directory of kernels that were compiled here; None if there is none
    """

    versions: dict[str, str]
    platform: str
    processor: str
    cores: int
    kernels: str | None
    reason: str
    cache: str | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        kernels = "compiled at their first use" if self.kernels is None else f"for {self.kernels}"
        cache = self.cache or "none: what is compiled is lost when the process ends"
        return "\n".join(
            (
                f"versions: {', '.join(f'{name} {v}' for name, v in self.versions.items())}",
                f"machine: {self.platform}, {self.processor}, {self.cores} cores",
                f"kernels: {kernels}, because {self.reason}",
                f"cache: {cache}",
            )
        )


def system_facts() -> SystemFacts:
    """Versions, processor, and where machine code comes from.

    Returns
    -------
    SystemFacts
    """
    from llvmlite import binding

    from margrove._runtime import cache_directory, kernel_source, resolve_n_jobs

    source, cache = kernel_source(), cache_directory()
    versions = {"margrove": margrove.__version__, "Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in _PACKAGES}
    return SystemFacts(
        versions,
        f"{sys.platform} {platform.machine()}",
        binding.get_host_cpu_name(),
        resolve_n_jobs(None, unset="all"),
        source.level,
        source.reason,
        None if cache is None else str(cache),
    )
