"""The kernels: ``kernels.name(*args)`` runs a compiled kernel, loading (or compiling) them at first use.

`docs/kernels.md` says how to write one.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .lock import LOCK
from .registry import KERNELS, Kernel

# Every module that holds kernels.
MODULES = ("binary", "compact_protocol", "crc32", "fixed", "objects", "pages", "placement", "snappy", "utf8")

__all__ = ["MODULES", "kernels", "warmup"]


class Kernels:
    """All kernels, as attributes; the first one asked for loads them all.

    A kernel takes what its signature says: ints, and one-dimensional C-contiguous arrays of the right item size
    (so a datetime64 array may stand for int64), read-only ones too. It gives a position or count, or a negative
    status for `numparq.errors.check`. Other threads run meanwhile, except where it makes Python objects.

    Attributes
    ----------
    mode : str
        ``"object"``, ``"dispatcher"`` or ``"python"``: how they run; empty before the first use.
    """

    def __init__(self) -> None:
        self.mode = ""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        if not self.mode:
            self._load()
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"there is no kernel {name!r}") from None

    def _load(self) -> None:
        with LOCK:
            if self.mode:
                return
            mode, callables = bind(wanted_mode())
            self.__dict__.update(callables)
            self.mode = mode


kernels = Kernels()


def wanted_mode() -> str:
    """Say how kernels are to run: ``NUMPARQ_KERNELS``, or what Numba's own switches ask for.

    Returns
    -------
    str
        ``"object"``, ``"dispatcher"`` or ``"python"``.
    """
    chosen = os.environ.get("NUMPARQ_KERNELS", "")
    if chosen in ("object", "dispatcher", "python"):
        return chosen
    if chosen:
        raise ValueError(f"NUMPARQ_KERNELS is object, dispatcher or python, not {chosen!r}")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "python"
    return "dispatcher" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else "object"


def bind(mode: str) -> tuple[str, dict[str, Callable[..., int]]]:
    """Make the kernels callable.

    Parameters
    ----------
    mode : str
        How they are to run; where ``"object"`` does not work, ``"dispatcher"`` does.

    Returns
    -------
    mode : str
        How they run.
    callables : dict of str to callable
        The kernels.
    """
    if mode == "object":
        try:
            return mode, _from_object()
        except Exception as error:  # whatever it was, Numba's own way may still work
            _say_fallback(error)
            mode = "dispatcher"
    from . import fallback

    known = registered()
    if mode == "python":
        return mode, fallback.python(known)
    return mode, fallback.dispatchers(known, _dispatcher_folder())


def registered() -> Mapping[str, Kernel]:
    """Import every kernel module; give what they registered.

    Returns
    -------
    mapping of str to Kernel
        All kernels by name.
    """
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    return KERNELS


def _from_object() -> dict[str, Callable[..., int]]:
    from . import load

    return {
        name: bound_entry(name, signatures[name], entry)
        for signatures, code in _stored_objects(load.key())
        for name, entry in load.load(code, list(signatures)).items()
    }


def _stored_objects(key: bytes) -> list[tuple[dict[str, tuple[str, ...]], bytes]]:
    """Give the objects of all kernels, each with its kernels' signatures: from the cache, or made and kept."""
    from .. import cache

    stored = cache.load("kernels", key)
    if stored is None:
        with cache.making("kernels", key):
            stored = cache.load("kernels", key)  # another process may have made it meanwhile
            if stored is None:
                stored = _compiled()
                cache.store("kernels", key, stored)
    return marshal.loads(stored)


def _compiled() -> bytes:
    from .workers import build_all

    kernels = registered()
    objects = build_all(kernels)
    return marshal.dumps([({name: kernels[name].signature for name in names}, code) for names, code in objects])


def bound_entry(name: str, signature: tuple[str, ...], entry: Callable[[tuple], int]) -> Callable[..., int]:
    from .entry import LAST_REFUSAL

    def call(*args: Any) -> int:
        answer = entry(args)
        if answer > LAST_REFUSAL:
            return answer
        from .fallback import checked

        answer = entry(checked(name, signature, args))
        if answer <= LAST_REFUSAL:
            raise TypeError(f"kernel {name} does not take {args}")
        return answer

    call.__name__ = call.__qualname__ = name
    return call


def _say_fallback(error: Exception) -> None:
    import warnings

    warnings.warn(
        f"numparq's kernels run through Numba's dispatcher, which starts slower ({error})", RuntimeWarning, stacklevel=2
    )


def _dispatcher_folder() -> str | None:
    """Find (or not) a folder in which Numba may keep what it compiled of these very sources."""
    from .. import cache
    from .load import key

    try:
        return cache.folder_for("dispatcher", key())
    except (ImportError, OSError):
        return None


def warmup() -> str:
    """Compile and keep all kernels now, so that no later process has to.

    Returns
    -------
    str
        How kernels run: ``"object"``, ``"dispatcher"`` (each is then compiled at its first use) or ``"python"``.
    """
    if not kernels.mode:
        kernels._load()
    return kernels.mode
