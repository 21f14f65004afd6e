"""Load a compiled object through LLVM's OrcJIT, and compute its cache key."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import resources
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from . import entry
from .extension_module import INITIALISE, MODULE_NAME

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable
    from types import ModuleType

COMPILE_LOCK = threading.RLock()

T = TypeVar("T")

_API_VERSION = 3  # of the stable ABI, as modules name it

_numbers = itertools.count()
_compilers: list[Any] = []  # LLVM's one, once it is needed


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=COMPILE_LOCK.acquire, after_in_parent=COMPILE_LOCK.release, after_in_child=COMPILE_LOCK.release
    )


class ObjectLayoutError(RuntimeError):
    """CPython or NumPy lay out their objects in a way that the entries do not know."""


def load_object(code: bytes) -> dict[str, Callable[..., int]]:
    """Load the extension module in an object file and return its kernels by name. Raises RuntimeError."""
    check_layout()
    with COMPILE_LOCK:
        import llvmlite.binding as llvm

        if not _compilers:
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
            _compilers.append(_immortal(llvm.create_lljit_compiler(machine, suppress_errors=True)))
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(INITIALISE)
        # A failure uses up the name, too.
        library = _immortal(builder.link(_compilers[0], f"numparq{next(_numbers)}"))
        return use_level(_module_at(library[INITIALISE]), 0)


def _immortal(owner: T) -> T:
    """Keep an object of LLVM until the process ends: Python reads a function's method table even to delete it."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))
    return owner


def _module_at(address: int) -> ModuleType:
    """Create a module as CPython's import does, by its ``PyInit`` function at an address."""
    api = ctypes.pythonapi
    definition = ctypes.PYFUNCTYPE(ctypes.c_void_p)(address)()
    create = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_int)
    execute = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
    spec = ModuleSpec(f"{__package__}.{MODULE_NAME}", None)
    module: ModuleType = create(("PyModule_FromDefAndSpec2", api))(definition, spec, _API_VERSION)
    execute(("PyModule_ExecDef", api))(module, definition)
    return module


def use_level(module: ModuleType, level: int) -> dict[str, Callable[..., int]]:
    """Add the kernels of a CPU level, by its number, to an extension module, and return them by name."""
    before = set(module.__dict__)
    module.use(level, np.ndarray)
    return {name: value for name, value in module.__dict__.items() if name not in before}


def check_layout() -> None:
    """Read the struct of an array as the entries do, and compare it with what NumPy reports.

    Raises ObjectLayoutError.
    """
    if object.__basicsize__ != entry.OBJECT_HEAD_BYTES:
        raise ObjectLayoutError(
            f"the size of an object's head in bytes is {object.__basicsize__}, not {entry.OBJECT_HEAD_BYTES}"
        )
    array = np.zeros(3, np.dtype("M8[us]"))
    fields = id(array) + entry.OBJECT_HEAD_BYTES
    try:
        descr = ctypes.c_void_p.from_address(fields + entry.ARRAY_FIELDS["descr"]).value
        seen: tuple[Any, ...] = (
            sys.implementation.name,
            sys.byteorder,
            ctypes.sizeof(ctypes.c_void_p),
            descr,
            ctypes.c_void_p.from_address(id(array) + entry.OBJECT_HEAD_BYTES - entry.POINTER).value,
            ctypes.c_void_p.from_address(fields + entry.ARRAY_FIELDS["data"]).value,
            ctypes.c_int.from_address(fields + entry.ARRAY_FIELDS["ndim"]).value,
            ctypes.c_int.from_address(fields + entry.ARRAY_FIELDS["flags"]).value & entry.CONTIGUOUS_AND_ALIGNED,
        )
        known: tuple[Any, ...] = (
            "cpython",
            "little",
            entry.POINTER,
            id(array.dtype),
            id(np.ndarray),
            array.ctypes.data,
            1,
            entry.CONTIGUOUS_AND_ALIGNED,
        )
        if seen == known:
            fields = id(array.dtype) + entry.OBJECT_HEAD_BYTES
            seen = (
                ctypes.c_int.from_address(fields + entry.DESCR_FIELDS["type_num"]).value,
                ctypes.c_ssize_t.from_address(fields + entry.DESCR_FIELDS["itemsize"]).value,
                ctypes.c_char.from_address(fields + entry.DESCR_FIELDS["byteorder"]).value,
            )
            known = (array.dtype.num, array.dtype.itemsize, array.dtype.byteorder.encode())
    except (AttributeError, TypeError) as error:
        raise ObjectLayoutError(str(error)) from None
    if seen != known:
        raise ObjectLayoutError(f"arrays are laid out as {seen}, not {known}")


def object_key(foreign: Iterable[str] = ()) -> bytes:
    """Return a SHA-256 digest of all that an object depends on: sources, versions, interpreter, CPU.

    `foreign` are modules of this package that do not count.
    """
    digest = hashlib.sha256()
    sources = kernel_sources(foreign) | {name: _version_file(name) for name in ("numba", "llvmlite")}
    for name in sorted(sources):
        digest.update(hashlib.sha256(name.encode()).digest())
        digest.update(hashlib.sha256(sources[name].read_bytes()).digest())
    with COMPILE_LOCK:
        import llvmlite
        import llvmlite.binding as llvm

        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    facts = (
        sys.version,
        sys.implementation.cache_tag,
        platform.machine(),
        sys.platform,
        np.__version__,
        llvmlite.__version__,
        cpu,
        features,
    )
    digest.update(repr(facts).encode())
    return digest.digest()


def kernel_sources(foreign: Iterable[str] = ()) -> dict[str, Traversable]:
    """Return the source files of the package `kernels` by module name, without the modules `foreign`.

    They lie in a folder, or in a zip file.
    """
    found: dict[str, Traversable] = {}
    waiting = [("", resources.files("numparq.kernels"))]
    while waiting:
        start, folder = waiting.pop()
        for path in folder.iterdir():
            if path.is_dir():
                waiting.append((f"{start}{path.name}.", path))
            elif path.name.endswith(".py"):
                found[start + path.name.removesuffix(".py")] = path
    return {name: found[name] for name in found.keys() - set(foreign)}


def last_source_change(foreign: Iterable[str] = ()) -> int:
    """Return when the sources of `kernel_sources`, or the zip file that holds them, last changed, in nanoseconds."""
    archive = getattr(__spec__.loader, "archive", None)
    paths = [str(path) for path in kernel_sources(foreign).values()] if archive is None else [archive]
    states = [os.stat(path) for path in paths]
    return max(max(state.st_mtime_ns, state.st_ctime_ns) for state in states)


def _version_file(package: str) -> Path:
    """Return the file that states a package's version, without importing the package."""
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0], "_version.py")
