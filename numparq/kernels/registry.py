"""Decorators that register kernels, helpers and intrinsics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

F = TypeVar("F", bound=Callable)


@dataclass(frozen=True)
class Kernel:
    """One entry point: the Python function and how its arguments are passed.

    Parameters
    ----------
    function : callable
        The body, over NumPy arrays and int64s.
    signature : tuple of str
        One item an argument: ``"x"`` for an int64, else the dtype of a C-contiguous 1-D array (``"u1"``, ``"i8"``),
        where ``"O"`` are Python objects, seen as their addresses.
    gil : bool
        Whether it touches Python objects, and so must hold the GIL while it runs.
    noalias : bool
        Whether no two of its arrays ever overlap (lets LLVM vectorise; measured where it is set).
    """

    function: Callable[..., int]
    signature: tuple[str, ...]
    gil: bool = False
    noalias: bool = False


KERNELS: dict[str, Kernel] = {}
HELPERS: list[Callable] = []
INLINED: list[Callable] = []
INTRINSICS: list[tuple[Callable, Callable]] = []


def kernel(signature: str, *, gil: bool = False, noalias: bool = False) -> Callable[[F], F]:
    """Register a kernel; the function itself is returned unchanged, so that Python can run it as it is.

    Parameters
    ----------
    signature : str
        The arguments in order, separated by blanks: ``"u1 x i8"`` is a uint8 array, an int64, an int64 array.
    gil, noalias : bool
        As in `Kernel`.
    """

    def register(function: F) -> F:
        KERNELS[function.__name__] = Kernel(function, tuple(signature.split()), gil, noalias)
        return function

    return register


def helper(function: F) -> F:
    """Register a function that kernels call; returned unchanged."""
    HELPERS.append(function)
    return function


def inlined(function: F) -> F:
    """Register a helper that becomes part of each caller: for hot paths, since a call passes each array as words."""
    INLINED.append(function)
    return helper(function)


def intrinsic_twin(make: Callable) -> Callable[[F], F]:
    """Register the Python twin of a Numba intrinsic.

    Parameters
    ----------
    make : callable
        Called with no argument once Numba is imported; returns the Numba intrinsic that compiled kernels use where
        Python would run the decorated function.
    """

    def register(function: F) -> F:
        INTRINSICS.append((function, make))
        return function

    return register
