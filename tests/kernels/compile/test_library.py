"""The library's objects: their symbols, their instructions, and the same bytes from every build."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import marshal
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from numparq.kernels.compile import library
from numparq.kernels.compile.level_objects import LibraryError, level_objects
from numparq.kernels.compile.library import build_library, check_symbols, try_library
from numparq.kernels.compile.targets import LIBRARY_TARGETS
from numparq.kernels.groups import import_group

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux" or platform.machine() not in LIBRARY_TARGETS, reason="no library for this system"
)
OBJECTS = """
import hashlib
from numparq.kernels.compile.level_objects import level_objects
from numparq.kernels.groups import import_group
print(hashlib.sha256(level_objects(dict(import_group("checksums")), "x86_64", 0)).hexdigest())
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A library of two groups, one of which touches Python objects."""
    try:
        library.find_linker(platform.machine())
    except LibraryError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMPARQ_BUILD_PROCESSES", "1")
        path = tmp_path_factory.mktemp("library") / "_kernels.abi3.so"
        build_library(path, platform.machine(), ["checksums", "objects"])
    return path


def load(path):
    loader = importlib.machinery.ExtensionFileLoader("_kernels", str(path))
    module = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("_kernels", loader, origin=str(path)))
    loader.exec_module(module)
    return module


def test_every_level_runs(path):
    try_library(path, platform.machine())
    module = load(path)
    assert module.levels.split() == [target.level for target in LIBRARY_TARGETS[platform.machine()]]
    for level in range(module.level() + 1):
        module.use(level, np.ndarray)
        assert module.crc32c(np.frombuffer(b"123456789", np.uint8), 9) == 0xE3069283
        with pytest.raises(TypeError, match="kernel crc32c takes 2 arguments, not 1"):
            module.crc32c(5)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), TypeError),
        ((0,), TypeError),
        ((0, None), TypeError),
        ((0, np.zeros(1)), TypeError),
        (("0", np.ndarray), TypeError),
        ((-1, np.ndarray), ValueError),
        ((99, np.ndarray), ValueError),
        ((1 << 70, np.ndarray), OverflowError),
    ],
)
def test_wrong_levels_and_types_are_refused(path, arguments, error):
    with pytest.raises(error):
        load(path).use(*arguments)


def test_symbols_that_python_lacks_are_refused(path):
    with pytest.raises(LibraryError, match="crc32c, decode"):
        check_symbols([_object("crc32c"), _object("decode")], {"other"})
    check_symbols([_object("memcpy")], set())


def _object(symbol):
    """Return an object file that calls a function."""
    import llvmlite.binding as llvm

    from numparq.kernels.compile.build import emit_object

    text = f"declare void @{symbol}()\ndefine void @visible() {{\n  call void @{symbol}()\n  ret void\n}}\n"
    return emit_object(llvm.parse_assembly(""), LIBRARY_TARGETS["x86_64"][0], [text], {"visible"})


def test_library_that_crashes_is_refused(path, tmp_path):
    damaged = tmp_path / path.name
    damaged.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(LibraryError, match="does not run"):
        try_library(damaged, platform.machine())


@pytest.mark.slow
def test_objects_do_not_depend_on_the_process():
    digests = set()
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", OBJECTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_levels_hold_no_larger_registers():
    """AVX-512 is in none of the levels, and the registers of AVX are not in the lower one."""
    codes = marshal.loads(level_objects(dict(import_group("checksums")), "x86_64", 0))
    for code, words in zip(codes, (("%ymm", "%zmm"), ("%zmm",)), strict=True):
        instructions = _disassembled(code)
        assert "ret" in instructions
        assert not any(word in instructions for word in words)


def _disassembled(code):
    import shutil
    import tempfile

    if shutil.which("objdump") is None:
        pytest.skip("objdump is not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "code.o").write_bytes(code)
        return subprocess.run(
            ["objdump", "-d", Path(folder, "code.o")], capture_output=True, text=True, check=True
        ).stdout
