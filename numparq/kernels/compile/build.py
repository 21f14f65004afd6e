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

from . import cpu_levels, entry
from .extension_module import INITIALISE, module_text, table_name, table_text
from .targets import Target, host_target

# Allocation in a kernel is a compile error (`_nrt`); wrappers for Python would be unused.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": False,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
# Functions of CPython that a kernel may call if they are there.
NOT_IN_STABLE_ABI = {"PyUnicode_New"}
FOLD_SYMBOL = "numparq.fold_crc32"  # as in `kernels.checksums`
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


def build_object(kernels: Mapping[str, Kernel], target: Target | None = None) -> bytes:
    """Compile kernels into one object file that is an extension module of its own (see `extension_module`).

    `target` defaults to the host. Raises TypeError if the code holds an address of this process.
    """
    target = host_target() if target is None else target
    table = table_name(target.level)
    texts = [table_text(table, kernels), module_text({target.level: [table]}, "", cpu_levels.ALWAYS)]
    return emit_object(compile_kernels(kernels), target, texts, {INITIALISE})


def compile_kernels(kernels: Mapping[str, Kernel], is_portable: bool = False) -> llvm.ModuleRef:
    """Compile kernels with Numba into one LLVM module, not optimised yet; `is_portable`: for any CPU."""
    from numba.core.errors import NumbaError

    _initialise()
    with _no_garbage_collection():
        try:
            return _compile_with_pipeline(kernels)
        except NumbaError:
            raise  # an error in a kernel
        except Exception:
            if is_portable:
                raise  # Numba's public API optimises for the host
            return _compile_with_public_api(kernels)  # Numba's internal classes have changed


def emit_object(main: llvm.ModuleRef, target: Target, texts: Iterable[str], visible: set[str]) -> bytes:
    """Link LLVM texts into a module, optimise all with only the symbols `visible` visible, and emit an object file."""
    _initialise()
    for text in [*texts, *_texts_of_target(main, target)]:
        main.link_in(llvm.parse_assembly(text))
    for symbol in [*main.functions, *main.global_variables]:
        if not symbol.is_declaration and symbol.name not in visible:
            symbol.linkage = "internal"
        if target.is_library and symbol.name in NOT_IN_STABLE_ABI:
            symbol.linkage = "external_weak"  # a null pointer in a Python without it
    machine = target_machine(target)
    if target.is_library:
        main.triple, main.data_layout = target.triple, str(machine.target_data)
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


def target_machine(target: Target) -> llvm.TargetMachine:
    """Return LLVM's machine for a target."""
    if target.is_library:
        return llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=3, jit=False, reloc="pic", codemodel="default"
        )
    host = llvm.Target.from_triple(llvm.get_process_triple())
    reloc = "static" if host.name.startswith("x86") else "default"
    return host.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, jit=True, reloc=reloc, codemodel="jitdefault"
    )


def _texts_of_target(main: llvm.ModuleRef, target: Target) -> list[str]:
    """Return LLVM texts of functions that kernels of a module call and that depend on the CPU."""
    if not target.has_clmul or FOLD_SYMBOL not in {function.name for function in main.functions}:
        return []
    from .crc_fold import fold_text

    return [fold_text()]


def _check_no_addresses(text: str) -> None:
    """Raise TypeError if LLVM text holds an address of this process, which would crash the next one."""
    function = ""
    for line in text.splitlines():
        function = line if line.startswith("define") else function
        if _BAKED_ADDRESS.search(line):
            raise TypeError(f"an address of this process is baked in; use types.ExternalFunction: {line} in {function}")


def _initialise() -> None:
    """Initialise LLVM's targets, and load libgcc: without it Numba aborts the process on 128-bit division."""
    import ctypes

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()  # of inline assembly
    with suppress(OSError):  # not Linux with glibc: the runtime has these functions
        ctypes.CDLL("libgcc_s.so.1", ctypes.RTLD_GLOBAL)


def _compile_with_pipeline(kernels: Mapping[str, Kernel]) -> llvm.ModuleRef:
    """Compile kernels with the reduced compiler into one LLVM module, not optimised yet."""
    from numba import njit, types
    from numba.core.compiler_lock import global_compiler_lock

    from . import numba_pipeline

    main, linked = llvm.parse_assembly(entry.shared_text()), dict[int, Any]()
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


def _compile_with_public_api(kernels: Mapping[str, Kernel]) -> llvm.ModuleRef:
    """Compile kernels into one LLVM module by Numba's public API only, which takes longer."""
    from numba import njit, types
    from numba.core.compiler import Compiler

    class NoAlias(Compiler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.state.flags.noalias = True

    main, binder = llvm.parse_assembly(entry.shared_text()), CalleeBinder(partial(njit, **_OPTIONS))
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
