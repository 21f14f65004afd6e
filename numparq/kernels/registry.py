"""Decorators that register kernels, helpers and intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Kernel:
    """One kernel: its Python function, and how its arguments are passed.

    Attributes
    ----------
    signature : tuple of str
        One item an argument: ``"x"`` for an int64, else the dtype of a C-contiguous 1-D array (``"u1"``, ``"i8"``).
        ``"O"`` is an array of Python objects, seen as their addresses.
    gil : bool
        Whether it touches Python objects, and so holds the GIL.
    noalias : bool
        Whether no two of its arrays ever overlap. This lets LLVM vectorise; it is set where that was measured to help.
    """

    function: Callable[..., int]
    signature: tuple[str, ...]
    gil: bool = False
    noalias: bool = False


KERNELS: dict[str, Kernel] = {}
HELPERS: list[Callable[..., Any]] = []
INLINED: list[Callable[..., Any]] = []
INTRINSICS: list[tuple[Callable[..., Any], Callable[[], Any]]] = []


def kernel(signature: str, *, gil: bool = False, noalias: bool = False) -> Callable[[F], F]:
    """Register a kernel and return the function unchanged, so that Python can run it as it is.

    `signature` lists the arguments: ``"u1 x i8"`` is a uint8 array, an int64 and an int64 array, as in `Kernel`.
    """

    def register(function: F) -> F:
        KERNELS[function.__name__] = Kernel(function, tuple(signature.split()), gil, noalias)
        return function

    return register


def helper(function: F) -> F:
    """Register a function that kernels call, and return it unchanged."""
    HELPERS.append(function)
    return function


def inlined(function: F) -> F:
    """Register a helper that is inlined into its callers, for hot paths: a call passes each array as many words."""
    INLINED.append(function)
    return helper(function)


def intrinsic_twin(make: Callable[[], Any]) -> Callable[[F], F]:
    """Register the Python twin of a Numba intrinsic, for kernels that run as Python.

    `make` is called once Numba is imported, and returns the intrinsic that compiled kernels use instead.
    """

    def register(function: F) -> F:
        INTRINSICS.append((function, make))
        return function

    return register
