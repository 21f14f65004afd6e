"""Ways to run kernels: compiled, and as Python with bounds checks on every load and store.

Numba checks no bounds, and compiled raw loads have none. The second way runs the same bodies with
`numparq.kernels.memory` and all indexing replaced, and so catches out-of-bounds access.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from numparq.kernels import groups as package
from numparq.kernels import memory
from numparq.kernels.kernel_groups import KERNEL_GROUPS
from numparq.kernels.registry import HELPERS, INTRINSICS, KERNELS, Kernel

_SIZES = {
    "load8": 1,
    "load16": 2,
    "load32": 4,
    "load64": 8,
    "store8": 1,
    "store16": 2,
    "store32": 4,
    "store64": 8,
    "store_float32": 4,
    "store_float64": 8,
}


class OutOfBounds(AssertionError):
    """A kernel accessed memory outside its array."""


class CheckedArray(np.ndarray):
    """An array that refuses negative indices and slices beyond its end."""

    def _check(self, index: Any) -> None:
        if isinstance(index, tuple):  # as NumPy itself asks when it prints an array
            return
        first, stop = (index.start, index.stop) if isinstance(index, slice) else (index, index + 1)
        stop = len(self) if stop is None else stop
        if first < 0 or stop < first or stop > len(self):
            raise OutOfBounds(f"{index} of {len(self)} items")

    def __getitem__(self, index: Any) -> Any:
        self._check(index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check(index)
        super().__setitem__(index, value)


def _within(array: np.ndarray, pos: int, count: int) -> None:
    if count < 0 or pos < 0 or pos + count > len(array):
        raise OutOfBounds(f"{count} bytes at {pos} of {len(array)}")


def _checked_memory(name: str, function: Callable) -> Callable:
    size = _SIZES.get(name)
    if size is not None:

        def load_or_store(array, pos, *value):
            _within(array, pos, size)
            return function(array.view(np.ndarray), pos, *value)

        return load_or_store
    if name in ("copy16", "copy_bytes"):

        def copy(out, out_pos, data, pos, count=16):
            _within(out, out_pos, count)
            _within(data, pos, count)
            if name == "copy_bytes" and np.shares_memory(out[out_pos : out_pos + count], data[pos : pos + count]):
                raise OutOfBounds("copy_bytes between places that overlap")
            out.view(np.ndarray)[out_pos : out_pos + count] = data.view(np.ndarray)[pos : pos + count].copy()

        return copy
    if name == "fill_bytes":

        def fill(out, pos, value, count):
            _within(out, pos, count)
            function(out.view(np.ndarray), pos, value, count)

        return fill
    return function


@lru_cache(maxsize=1)
def _binder() -> Callable[[Callable], Callable]:
    for group in package.GROUPS:
        package.import_group(group)
    made = {id(twin): _checked_memory(twin.__name__, twin) for twin, _ in INTRINSICS}
    inner = {id(function) for function in HELPERS} | {id(kernel.function) for kernel in KERNELS.values()}

    def bound(function: Callable) -> Callable:
        assert isinstance(function, FunctionType)
        names = dict(function.__globals__)
        made[id(function)] = copy = FunctionType(function.__code__, names, function.__name__)
        for name in set(function.__code__.co_names) & set(names):
            value = names[name]
            if id(value) in inner and id(value) not in made:
                bound(value)
            names[name] = made.get(id(value), value)
        return copy

    return bound


def bounds_checked(kernel: Kernel) -> Callable[..., int]:
    """Return a kernel as Python that raises `OutOfBounds`."""
    function = _binder()(kernel.function)

    def call(*args: Any) -> int:
        assert len(args) == len(kernel.signature)
        passed = []
        for letter, value in zip(kernel.signature, args, strict=True):
            if letter == "x":
                passed.append(int(value))
            else:
                assert value.dtype == np.dtype(letter)
                assert value.ndim == 1
                assert value.flags.c_contiguous
                passed.append(value.view(CheckedArray))
        with np.errstate(over="ignore", invalid="ignore"):  # as numparq.kernels.compile.fallback runs them
            return int(function(*passed))

    return call


class _Compiled:
    """The compiled kernels of all groups."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        for group in KERNEL_GROUPS:
            if name in package.import_group(group.group):
                return getattr(group, name)
        raise AttributeError(f"there is no kernel {name!r}")


class Engine:
    """One way to run kernels.

    Parameters
    ----------
    name : str
        ``"compiled"`` or ``"checked"``.
    scale : float
        How large tests should be: 1 for compiled kernels.
    """

    def __init__(self, name: str, scale: float) -> None:
        self.name = name
        self._scale = scale
        self._kernels: Any = None

    def __repr__(self) -> str:
        return self.name

    def size(self, count: int, least: int = 1) -> int:
        """Scale a number of values or repetitions."""
        return max(int(count * self._scale), least)

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._kernels is None:
            if self.name == "compiled":
                self._kernels = _Compiled()
            else:
                _binder()
                self._kernels = SimpleNamespace(**{name: bounds_checked(kernel) for name, kernel in KERNELS.items()})
        return getattr(self._kernels, name)


COMPILED = Engine("compiled", 1.0)
CHECKED = Engine("checked", 0.08)
ENGINES = (COMPILED, CHECKED)


assert set(_SIZES) <= set(dir(memory))


engines = pytest.mark.parametrize("engine", ENGINES, ids=repr)
