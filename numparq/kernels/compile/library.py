"""Build the prebuilt library of all kernels, for any Python of the stable ABI and several CPU levels."""

from __future__ import annotations

import marshal
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import llvmlite.binding as llvm

from numparq.kernels.groups import GROUPS

from . import cpu_levels
from .build import emit_object
from .entry import ARRAY_TYPE
from .extension_module import INITIALISE, MODULE_NAME, module_text, table_name
from .level_objects import LibraryError
from .parallel_build import build_parts
from .prebuilt import source_digest
from .targets import LIBRARY_TARGETS
from .undefined_symbols import ALLOWED, undefined_symbols

_CPU_TESTS = {"x86_64": cpu_levels.x86_text(), "aarch64": cpu_levels.ALWAYS}
_LINK_OPTIONS = ("-shared", "-nostdlib", "-z", "noexecstack", "-z", "relro", "-z", "now", "--hash-style=both", "-s")
# Loads the library as an import would, and calls a kernel of every level that this CPU runs.
_TRIAL = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
import numpy
for level in range(len(sys.argv[2].split())):
    spec = spec_from_file_location(sys.argv[1], sys.argv[3])
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.levels == sys.argv[2], module.levels
    if level <= module.level():
        module.use(level, numpy.ndarray)
        data = numpy.frombuffer(b"123456789", numpy.uint8)
        assert module.crc32c(data, 9) == 0xE3069283
"""


def build_library(path: Path, machine: str, groups: Iterable[str] = GROUPS) -> None:
    """Compile the kernels of groups for the CPU levels of a machine, and link them into the extension module `path`."""
    linker, targets = find_linker(machine), LIBRARY_TARGETS[machine]
    parts = [marshal.loads(part) for part in build_parts(list(groups), machine)]
    tables = {target.level: [table_name(target.level, number) for number in range(len(parts))] for target in targets}
    text = module_text(tables, source_digest(), _CPU_TESTS[machine])
    module = emit_object(llvm.parse_assembly(""), targets[0], [text], {INITIALISE, ARRAY_TYPE})
    codes = [module, *(code for part in parts for code in part)]
    check_symbols(codes, {ARRAY_TYPE, *(table for names in tables.values() for table in names)})
    link(linker, codes, path)


def check_symbols(codes: Iterable[bytes], defined: set[str]) -> None:
    """Raise LibraryError if object files need a symbol that is neither defined nor in every Python."""
    foreign = set().union(*(undefined_symbols(code) for code in codes)) - defined - ALLOWED
    if foreign:
        raise LibraryError(f"the kernels need symbols that Python does not have: {', '.join(sorted(foreign))}")


def find_linker(machine: str) -> list[str]:
    """Return the command of a linker: LLVM's, such as ziglang's, which links for all machines, or the system's."""
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    for name in ("ld.lld", "ld"):
        if shutil.which(name) and (name != "ld" or machine == platform.machine()):
            return [name]
    raise LibraryError(f"there is no linker for {machine}: install ziglang")


def link(linker: Sequence[str], codes: Iterable[bytes], path: Path) -> None:
    """Link object files into a shared library."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        files = []
        for number, code in enumerate(codes):
            files.append(Path(folder, f"{number}.o"))
            files[-1].write_bytes(code)
        output = Path(folder, path.name)
        done = subprocess.run(
            [*linker, *_LINK_OPTIONS, "-o", output, *files], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LibraryError(f"the linker failed: {done.stderr}")
        os.replace(output, path)


def try_library(path: Path, machine: str) -> None:
    """Load a library in another process and call a kernel of each CPU level; raise LibraryError if that fails."""
    levels = " ".join(target.level for target in LIBRARY_TARGETS[machine])
    command = [sys.executable, "-c", _TRIAL, MODULE_NAME, levels, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LibraryError(f"the library does not run (status {done.returncode}): {done.stderr}")


def main(path: str, digest_path: str, machine: str) -> None:
    """Build a library and try it if this machine can; write its digest beside it. Exit with a message on failure."""
    try:
        build_library(Path(path), machine)
        if machine == platform.machine():
            try_library(Path(path), machine)
        Path(digest_path).write_text(source_digest())
    except LibraryError as error:
        sys.exit(str(error))
