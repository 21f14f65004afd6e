"""Kernels without the object: Numba's dispatcher or plain Python, with arguments checked."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from numparq.kernels.registry import Kernel


def check_arguments(name: str, signature: tuple[str, ...], args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check the arguments of a kernel against its signature, or raise TypeError.

    Return them with array subclasses viewed as plain arrays, and NumPy's integers as ints.
    """
    if len(args) != len(signature):
        raise TypeError(f"kernel {name} takes {len(signature)} arguments, not {len(args)}")
    plain = []
    for i, (letter, value) in enumerate(zip(signature, args, strict=True)):
        if letter == "x":
            if not hasattr(value, "__index__"):
                raise TypeError(f"kernel {name}: argument {i} must be an int, not {type(value).__name__}")
            plain.append(value.__index__())
            continue
        if not isinstance(value, np.ndarray):
            raise TypeError(f"kernel {name}: argument {i} must be an array ({letter}), not {type(value).__name__}")
        trouble = _array_error(letter, value)
        if trouble:
            raise TypeError(f"kernel {name}: argument {i} ({letter}): {trouble}")
        plain.append(value.view(np.ndarray))
    return tuple(plain)


def _array_error(letter: str, array: np.ndarray) -> str | None:
    dtype = np.dtype(letter)
    if array.dtype.hasobject != dtype.hasobject or array.dtype.itemsize != dtype.itemsize:
        return f"the array has dtype {array.dtype}"
    if not array.dtype.isnative:
        return "the array is not in native byte order"
    if array.ndim != 1 or not array.flags.c_contiguous or not array.flags.aligned:
        return f"the array has {array.ndim} dimensions and strides {array.strides}"
    return None


def dispatchers(kernels: Mapping[str, Kernel], folder: str | None) -> dict[str, Callable[..., int]]:
    """Return each kernel as a Numba dispatcher, compiled at its first call.

    `folder` (None: no cache) is for these very sources: Numba's cache misses edits of helpers in other files.
    """
    import numba

    from .build import CalleeBinder

    binder = CalleeBinder(partial(numba.njit, error_model="numpy"))
    config: Any = numba.config
    before = config.CACHE_DIR
    if folder is not None:
        config.CACHE_DIR = folder
    try:
        # No signature: that would compile all kernels now, instead of each at its first call.
        made = {
            name: numba.njit(cache=folder is not None, nogil=not kernel.gil, error_model="numpy")(
                binder.bind(kernel.function)
            )
            for name, kernel in kernels.items()
        }
    finally:
        config.CACHE_DIR = before
    return {name: _call_with_views(name, kernel, made[name]) for name, kernel in kernels.items()}


def python_functions(kernels: Mapping[str, Kernel]) -> dict[str, Callable[..., int]]:
    """Return each kernel as a Python function."""
    return {name: _call_with_views(name, kernel, kernel.function) for name, kernel in kernels.items()}


def _call_with_views(name: str, kernel: Kernel, function: Callable[..., Any]) -> Callable[..., int]:
    """Wrap a function so that it gets each array as a writable view in the dtype of the signature."""

    def call(*args: Any) -> int:
        plain = check_arguments(name, kernel.signature, args)
        seen = [
            value if letter == "x" else _writable_view(value, letter)
            for letter, value in zip(kernel.signature, plain, strict=True)
        ]
        with np.errstate(over="ignore", invalid="ignore"):  # as in compiled kernels
            return int(function(*seen))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = kernel.function.__doc__
    return call


def _writable_view(array: np.ndarray, letter: str) -> np.ndarray:
    dtype = np.dtype("i8" if letter == "O" else letter)
    if array.dtype == dtype and array.flags.writeable:
        return array
    if not len(array):
        return np.empty(0, dtype)
    # Numba's type of read-only arrays differs from that of writable ones, for which kernels are compiled.
    memory: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    return np.frombuffer(memory, dtype)
