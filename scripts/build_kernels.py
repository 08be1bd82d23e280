"""Compile all kernels for levels of processors, as a folder that a wheel can contain.

    python scripts/build_kernels.py build/kernels x86-64-v3

Code of x86-64 levels can be made on any x86-64 machine, also one that could not run it. Then
`MARGROVE_WHEEL_KERNELS=build/kernels pip wheel .` makes the wheel (`make wheel` does both).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import numba

from margrove._runtime.shipped_kernels import LEVELS, Level, pack_kernels

ROOT = Path(__file__).parent.parent


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    require_pinned_numba()
    shutil.rmtree(folder, ignore_errors=True)
    for level in LEVELS:
        if level.name in names:
            with tempfile.TemporaryDirectory() as cache:
                compile_all(level, Path(cache))
                count = pack_kernels(next(Path(cache).iterdir()), folder, level.name)
            megabytes = (folder / f"{level.name}.bin").stat().st_size / 1e6
            print(f"{level.name}: {count} entries, {megabytes:.0f} MB")


def require_pinned_numba() -> None:
    """The extra `kernels` names the version of Numba that can read the machine code."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = project["optional-dependencies"]["kernels"]
    if pinned != [f"numba=={numba.__version__}"]:
        sys.exit(f"The extra `kernels` is {pinned}; this is Numba {numba.__version__}.")


def compile_all(level: Level, cache: Path) -> None:
    """Fill a cache with the code of all kernels for a level.

    Kernels run while they are compiled. Without Intel's SVML the code needs no other library.
    """
    environment = os.environ | {
        "MARGROVE_CACHE_DIR": str(cache),
        "MARGROVE_KERNELS": "",
        "NUMBA_CPU_NAME": level.processor,
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_DISABLE_INTEL_SVML": "1",
    }
    subprocess.run([sys.executable, "-m", "margrove", "warmup"], env=environment, check=True)


if __name__ == "__main__":
    main()
