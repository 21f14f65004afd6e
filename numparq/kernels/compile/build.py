"""Compile kernels with Numba and LLVM into one relocatable object."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from llvmlite import binding as llvm

from numparq.kernels.registry import HELPERS, INLINED, INTRINSICS, KERNELS, Kernel

from . import entry

# Allocation in a kernel is a compile error (`_nrt`); wrappers for Python would be unused.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
_BAKED_ADDRESS = re.compile(r"@numba\.dynamic\.globals|inttoptr \(i64 \d{5,} to")


class CalleeBinder:
    """Copier of kernels and helpers that replaces the functions they call by compiled ones.

    `jit` compiles a Python helper lazily, by argument types: ``numba.njit`` with its options bound.
    """

    def __init__(self, jit: Callable[..., Callable[..., Any]]) -> None:
        self._jit = jit
        self._makers = {id(twin): make for twin, make in INTRINSICS}
        self._helpers = {id(function) for function in HELPERS}
        self._helpers |= {id(kernel.function) for kernel in KERNELS.values()}
        self._made: dict[int, Callable[..., Any]] = {}

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Copy a function with the helpers and intrinsics that it names in compiled form."""
        assert isinstance(function, FunctionType)
        names = dict(function.__globals__)
        for name in _names(function.__code__):
            if callable(names.get(name)):
                names[name] = self._callee(names[name])
        copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
        return copy

    def _callee(self, function: Callable[..., Any]) -> Callable[..., Any]:
        key = id(function)
        if key not in self._made:
            if key in self._makers:
                self._made[key] = self._makers[key]()
            elif key in self._helpers:
                self._made[key] = self._jit(self.bind(function), forceinline=function in INLINED)
            else:
                return function
        return self._made[key]


def _names(code: Any) -> set[str]:
    """Return the global names that a code object, or one inside it, looks up."""
    inner = [_names(constant) for constant in code.co_consts if hasattr(constant, "co_names")]
    return set(code.co_names).union(*inner)


def argument_types(kernel: Kernel) -> list[Any]:
    """Return the Numba types of a kernel's arguments; arrays of Python objects are int64 addresses."""
    from numba import from_dtype, types

    return [
        types.int64 if letter == "x" else types.Array(from_dtype(np.dtype("i8" if letter == "O" else letter)), 1, "C")
        for letter in kernel.signature
    ]


def build_object(kernels: Mapping[str, Kernel], cpu: str | None = None, features: str | None = None) -> bytes:
    """Compile kernels into one relocatable object file, with a C entry ``np_<name>`` each (see `entry`).

    `cpu` and `features` are LLVM's names, the host's if None. Raises TypeError if it holds an address of this process.
    """
    from numba.core.errors import NumbaError

    _initialise()
    with _no_garbage_collection():
        try:
            main = _compile_with_pipeline(kernels)
        except NumbaError:
            raise  # an error in a kernel
        except Exception:
            main = _compile_with_public_api(kernels)  # Numba's internal classes have changed
        return _emit(main, kernels, cpu, features)


def _emit(main: Any, kernels: Iterable[str], cpu: str | None, features: str | None) -> bytes:
    """Optimise a module as a whole, with only its C entries visible, and emit an object file."""
    visible = {entry.ENTRY_PREFIX + name for name in kernels} | {entry.ARRAY_TYPE}
    for symbol in [*main.functions, *main.global_variables]:
        if not symbol.is_declaration and symbol.name not in visible:
            symbol.linkage = "internal"
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        opt=3,
        jit=True,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        features=llvm.get_host_cpu_features().flatten() if features is None else features,
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(main, passes)
    main.verify()
    _check_no_addresses(str(main))
    inner = [x for x in [*main.functions, *main.global_variables] if not x.is_declaration and x.name not in visible]
    for number, symbol in enumerate(inner):
        symbol.name = f"inner.{number}"  # Numba's numbers depend on the process; objects must not
    code: bytes = machine.emit_object(main)
    return code


def _check_no_addresses(text: str) -> None:
    """Raise TypeError if LLVM text holds an address of this process, which would crash the next one."""
    function = ""
    for line in text.splitlines():
        function = line if line.startswith("define") else function
        if _BAKED_ADDRESS.search(line):
            raise TypeError(f"an address of this process is baked in; use types.ExternalFunction: {line} in {function}")


def _initialise() -> None:
    """Initialise LLVM's target, and load libgcc: without it Numba aborts the process on 128-bit division."""
    import ctypes

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    with suppress(OSError):  # not Linux with glibc: the runtime has these functions
        ctypes.CDLL("libgcc_s.so.1", ctypes.RTLD_GLOBAL)


def _compile_with_pipeline(kernels: Mapping[str, Kernel]) -> Any:
    """Compile kernels with the reduced compiler into one LLVM module, not optimised yet."""
    from numba import njit, types
    from numba.core.compiler_lock import global_compiler_lock

    from . import numba_pipeline

    main, linked = llvm.parse_assembly(entry.argument_unpacker()), dict[int, Any]()
    jit = partial(njit, pipeline_class=numba_pipeline.KernelCompiler, **_OPTIONS)
    binder = CalleeBinder(lambda function, **options: numba_pipeline.compile_once_for_ints(jit(function, **options)))
    with global_compiler_lock, numba_pipeline.memoized_typing():
        for name, kernel in kernels.items():
            pipeline = numba_pipeline.NoAliasKernelCompiler if kernel.noalias else numba_pipeline.KernelCompiler
            signature = types.int64(*argument_types(kernel))
            compiled = njit(signature, pipeline_class=pipeline, **_OPTIONS)(binder.bind(kernel.function))
            result = compiled.overloads[compiled.signatures[0]]
            numba_pipeline.link_library(main, result.library, linked)
            main.link_in(llvm.parse_assembly(_entry(name, kernel, main, result.fndesc.llvm_func_name)))
    return main


def _compile_with_public_api(kernels: Mapping[str, Kernel]) -> Any:
    """Compile kernels into one LLVM module by Numba's public API only, which takes longer."""
    from numba import njit, types
    from numba.core.compiler import Compiler

    class NoAlias(Compiler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.state.flags.noalias = True

    main, binder = llvm.parse_assembly(entry.argument_unpacker()), CalleeBinder(partial(njit, **_OPTIONS))
    for name, kernel in kernels.items():
        pipeline = NoAlias if kernel.noalias else Compiler
        signature = types.int64(*argument_types(kernel))
        compiled = njit(signature, pipeline_class=pipeline, **_OPTIONS)(binder.bind(kernel.function))
        native = compiled.overloads[compiled.signatures[0]].fndesc.llvm_func_name
        main.link_in(llvm.parse_assembly(compiled.inspect_llvm(compiled.signatures[0])))
        main.link_in(llvm.parse_assembly(_entry(name, kernel, main, native)))
    return main


def _entry(name: str, kernel: Kernel, main: Any, native: str) -> str:
    """Return a kernel's C entry in LLVM text, to be linked into `main`, which has the function it calls."""
    kinds = [str(argument.type) for argument in main.get_function(native).arguments]
    stub, num_arguments = entry.entry_text(name, kernel, native)
    if len(kinds) != num_arguments:
        raise RuntimeError(f"kernel {name}: Numba passes {len(kinds)} arguments where {num_arguments} were expected")
    return f'declare i32 @"{native}"({", ".join(kinds)})\n{stub}'


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector while compiling: its rounds over a million objects take a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
