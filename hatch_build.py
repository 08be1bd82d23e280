"""Makes a wheel for this platform, if MARGROVE_WHEEL_KERNELS names a folder of machine code.

Without it, the wheel is for any platform, and kernels are compiled at their first use.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Machine code is loaded by LLVM, and names functions of the C library only that all versions have.
_PLATFORMS = {
    "linux": f"manylinux_2_17_{platform.machine()}",
    "darwin": f"macosx_11_0_{platform.machine()}",
    "win32": "win_amd64",
}


class KernelsHook(BuildHookInterface):
    """Adds the folder of machine code to the wheel, and names the platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("MARGROVE_WHEEL_KERNELS")
        if not folder or version == "editable":
            return
        kernels = Path(folder).resolve()
        if not (kernels / "levels.json").is_file():
            raise FileNotFoundError(f"MARGROVE_WHEEL_KERNELS is {folder}, which has no levels.json")
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{_PLATFORMS[sys.platform]}"
        build_data["force_include"][str(kernels)] = "margrove/_kernels"
