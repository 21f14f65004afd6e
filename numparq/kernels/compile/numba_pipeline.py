"""Numba's compiler reduced to the passes that kernels need."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from numba import types
from numba.core import base
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target

# Passes for closures, `with`, `literally`, array expressions, ...
_NOT_NEEDED = frozenset(
    (
        "WithLifting",
        "InlineClosureLikes",
        "RewriteSemanticConstants",
        "RewriteDynamicRaises",
        "InlineInlinables",
        "MakeFunctionToJitFunction",
        "FindLiterallyCalls",
        "LiteralUnroll",
        "LiteralPropagationSubPipelinePass",
        "InlineOverloads",
        "NopythonRewrites",
        "AnnotateTypes",
        "DumpParforDiagnostics",
    )
)


class _CodegenWithoutEnvironment:
    """Code generator that leaves out what only code running in this process needs."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Ignore the environment: it serves code that uses Numba's Python objects."""


class KernelLibrary(JITCodeLibrary):
    """LLVM module of one function, as Numba wrote it, not optimised."""

    @property
    def codegen(self) -> _CodegenWithoutEnvironment:
        """Code generator of the library."""
        return _CodegenWithoutEnvironment(self._codegen)

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Mark the library as complete, without linking others into it."""
        self._raise_if_finalized()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0


class KernelCompiler(CompilerBase):
    """Numba's pipeline without the passes that kernels do not need, ending in a `KernelLibrary`."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *rest: Any) -> None:
        super().__init__(typingctx, targetctx, library or KernelLibrary(targetctx.codegen(), "kernel"), *rest)

    def define_pipelines(self) -> list[PassManager]:
        """Return the pass manager."""
        manager = PassManager("kernel")
        manager._ENFORCING = False  # no check of Numba's own rules after every pass
        for step, reason in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if step.__name__ not in _NOT_NEEDED:
                manager.add_pass(step, reason)
        manager.finalize()
        return [manager]


class NoAliasKernelCompiler(KernelCompiler):
    """`KernelCompiler` for kernels whose arrays never overlap."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.state.flags.noalias = True


def compile_once_for_ints(dispatcher: Any) -> Any:
    """Compile a helper once for all ints, instead of once for every literal argument."""
    template = dispatcher.get_call_template

    def get_call_template(args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        return template(tuple(types.unliteral(arg) for arg in args), kws)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def link_library(main: Any, library: Any, linked: dict[int, Any]) -> None:
    """Link a library and those it needs into a module; `linked` has those already linked, by id."""
    if id(library) in linked:
        return
    linked[id(library)] = library
    # Numba's own functions may be in several libraries, and are linked after what refers to them.
    own = isinstance(library, KernelLibrary)
    main.link_in(library._final_module if own else library._get_module_for_linking(), preserve=True)
    for other in library._linking_libraries:
        link_library(main, other, linked)


@contextmanager
def memoized_typing() -> Iterator[None]:
    """Cache what Numba otherwise computes for every instruction.

    That is: result types of operators and builtins on numbers, sizes of types, and whether a lowering takes ``loc``.
    """
    typing, target, has_loc = cpu_target.typing_context, cpu_target.target_context, base._has_loc
    typing.resolve_function_type = _remembering_types(typing.resolve_function_type)
    target.get_abi_sizeof = _remembering_sizes(target.get_abi_sizeof)
    base._has_loc = cache(has_loc)
    try:
        yield
    finally:
        del typing.resolve_function_type, target.get_abi_sizeof
        base._has_loc = has_loc


def _remembering_types(resolve: Callable[..., Any]) -> Callable[..., Any]:
    numbers, modules = (types.Integer, types.Boolean, types.Float), (operator.add.__module__, bool.__module__)
    known: dict[tuple[Any, ...], Any] = {}

    def remembering(func: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        plain = tuple(types.unliteral(arg) for arg in args)
        on_numbers = not kws and all(isinstance(arg, numbers) for arg in plain)
        if not on_numbers or getattr(getattr(func, "typing_key", None), "__module__", "") not in modules:
            return resolve(func, args, kws)
        if (func, plain) not in known:
            known[func, plain] = resolve(func, plain, kws)
        return known[func, plain]

    return remembering


def _remembering_sizes(measure: Callable[[Any], int]) -> Callable[[Any], int]:
    known: dict[str, int] = {}  # by the type's text, which names all of its fields

    def remembering(kind: Any) -> int:
        text = str(kind)
        if text not in known:
            known[text] = measure(kind)
        return known[text]

    return remembering
