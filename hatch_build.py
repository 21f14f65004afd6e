"""Build backend: hatchling's, whose wheels have all kernels in a library, compiled when the wheel is built.

Editable installs and wheels for other systems have no library: they compile kernels at first use, with Numba.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hatchling.build
from hatchling.build import build_editable as build_editable
from hatchling.build import build_sdist as build_sdist
from hatchling.build import build_wheel as build_wheel
from hatchling.build import get_requires_for_build_editable as get_requires_for_build_editable
from hatchling.build import get_requires_for_build_sdist as get_requires_for_build_sdist
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# Tags of the systems that run the library: it needs no C library but its memcpy and memset.
TAGS = {
    "x86_64": "cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_2_x86_64",
    "aarch64": "cp311-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_2_aarch64",
}
# Machine that a wheel is for, if not that of this process; "none" for a wheel without a library.
MACHINE = "NUMPARQ_WHEEL_MACHINE"
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from numparq.kernels.compile.library import main
main(*sys.argv[2:])
"""


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what building a wheel needs: Numba, and a linker where there is none for the machine."""
    requires: list[str] = hatchling.build.get_requires_for_build_wheel(config_settings)
    machine = wheel_machine()
    if machine not in TAGS:
        return requires
    has_linker = shutil.which("ld.lld") or (shutil.which("ld") and machine == platform.machine())
    return [*requires, "numba>=0.62", *([] if has_linker else ["ziglang>=0.13"])]


def wheel_machine() -> str:
    """Return the machine that the wheel is for; empty on systems without a library."""
    return os.environ.get(MACHINE, platform.machine() if sys.platform == "linux" else "")


class LibraryHook(BuildHookInterface):
    """Hook that adds the library of kernels to a wheel."""

    PLUGIN_NAME = "custom"
    _folder: tempfile.TemporaryDirectory[str] | None = None  # of the library, up to the end of the build

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library; if that fails, warn that the wheel has none, or raise if its machine was named."""
        machine = wheel_machine()
        if version != "standard" or machine not in TAGS:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="numparq-")
        paths = [Path(self._folder.name, name) for name in ("_kernels.abi3.so", "_kernels.digest")]
        self.app.display_info(f"numparq compiles its kernels for {machine}, in about half a minute")
        began = time.monotonic()
        command = [sys.executable, "-c", _PROGRAM, self.root, *map(str, paths), machine]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            if MACHINE in os.environ:
                raise RuntimeError(f"the kernels for {machine} cannot be compiled: {done.stderr}")
            self.app.display_warning(f"this wheel has no compiled kernels, and needs numparq[jit]: {done.stderr}")
            return
        self.app.display_info(f"kernels are compiled after {time.monotonic() - began:.0f} s")
        build_data["pure_python"] = False
        build_data["tag"] = TAGS[machine]
        build_data["force_include"] |= {str(path): f"numparq/kernels/{path.name}" for path in paths}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built beside the wheel."""
        if self._folder is not None:
            self._folder.cleanup()
