"""Copies of the package with few kernels, for tests of the compiled object's life cycle."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numparq
from numparq.kernels import groups

PACKAGE = Path(numparq.__file__).resolve().parent

TINY = """
import numpy as np
from .factor import FACTOR, scaled
from .memory import load32
from .registry import kernel

@kernel("u1 x i8")
def scale(data, pos, out):
    out[0] = scaled(load32(data, pos)) * FACTOR
    return pos + 4

@kernel("x", gil=True)
def same(number):
    return number
"""
FACTOR = """
from .registry import helper

FACTOR = {factor}

@helper
def scaled(value):
    return value + {term}
"""
GROUPS = f"\nGROUPS = { {group: {} for group in groups.GROUPS} | {'reading': {'tiny': ('scale', 'same')}} }\n"
RUN = """
import sys
import numpy as np
from numparq.kernels.kernel_groups import kernels
out = np.zeros(1, np.int64)
status = kernels.scale(np.frombuffer(b"....\\x03\\0\\0\\0", np.uint8), 4, out)
print(status, out[0], kernels.same(-7), kernels.mode, "numba" in sys.modules, "thriftpy2" in sys.modules)
"""


class PackageCopy:
    """A copy of the package, a cache directory, and processes that use them."""

    def __init__(self, root: Path) -> None:
        self.root, self.place = root, root / "cache"
        copy = root / "numparq" / "kernels"
        shutil.copytree(PACKAGE / "kernels" / "compile", copy / "compile", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("__init__.py", "groups.py", "kernel_groups.py", "memory.py", "registry.py", "status.py"):
            shutil.copy(PACKAGE / "kernels" / name, copy / name)
        (root / "numparq" / "util").mkdir()
        for name in ("errors.py", "util/__init__.py", "util/disk_cache.py", "util/regular_file.py"):
            shutil.copy(PACKAGE / name, root / "numparq" / name)
        (root / "numparq" / "__init__.py").write_text("")
        text, count = re.subn(r"(?ms)^GROUPS: .*?^}\n", GROUPS, (copy / "groups.py").read_text())
        assert count == 1
        (copy / "groups.py").write_text(text)
        (copy / "tiny.py").write_text(TINY)
        self.write_factor(10, 0)

    def write_factor(self, factor: int, term: int) -> None:
        text = FACTOR.format(factor=factor, term=term)
        (self.root / "numparq" / "kernels" / "factor.py").write_text(text)

    def start(self, program: str = RUN, stderr: int = subprocess.PIPE, **environment: str) -> subprocess.Popen:
        known = {name: value for name, value in os.environ.items() if not name.startswith(("NUMPARQ_", "NUMBA_"))}
        settings = {
            "PYTHONPATH": str(self.root),
            "NUMPARQ_CACHE_DIR": str(self.place),
            "NUMPARQ_BUILD_PROCESSES": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self.root,
            env=known | settings | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )

    def run(self, program: str = RUN, **environment: str) -> tuple[str, str]:
        return finish(self.start(program, **environment))

    def objects(self) -> list[Path]:
        return sorted(self.place.glob("kernels-reading-*.bin"))


def finish(process: subprocess.Popen) -> tuple[str, str]:
    try:
        output, errors = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    return output.strip(), errors
