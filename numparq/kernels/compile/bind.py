"""Bind the kernels of a group: from the object cache, newly compiled, or by the fallback."""

from __future__ import annotations

import marshal
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from numparq.kernels.groups import GROUPS, import_group

# On two idle cores: 8 to 9.5 s, and 24 s.
READ_SECONDS, ALL_SECONDS = 10, 25

_announced = False

_IMPORTED = time.time_ns()


def execution_mode() -> str:
    """Return how kernels are to run: ``"object"``, ``"dispatcher"`` or ``"python"``.

    ``NUMPARQ_KERNELS`` decides, else Numba's ``NUMBA_DISABLE_JIT`` and ``NUMBA_BOUNDSCHECK``.
    """
    chosen = os.environ.get("NUMPARQ_KERNELS", "")
    if chosen in ("object", "dispatcher", "python"):
        return chosen
    if chosen:
        raise ValueError(f"NUMPARQ_KERNELS must be object, dispatcher or python, not {chosen!r}")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "python"
    return "dispatcher" if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0") else "object"


def bind_group(group: str, mode: str) -> tuple[str, dict[str, Callable[..., int]]]:
    """Return the mode in which the kernels of a group run, and the kernels by name.

    If ``"object"`` fails, the mode is ``"dispatcher"``.
    """
    if mode == "object":
        try:
            return mode, _from_object(group)
        except Exception as error:  # whatever failed, Numba's dispatcher may work
            _warn_fallback(error)
            mode = "dispatcher"
    from . import fallback

    known = import_group(group)
    if mode == "python":
        return mode, fallback.python_functions(known)
    return mode, fallback.dispatchers(known, _dispatcher_folder())


def _from_object(group: str) -> dict[str, Callable[..., int]]:
    from . import load

    return {
        name: wrap_entry(name, signatures[name], entry)
        for signatures, code in _load_or_build(group, load.object_key(_excluded_modules(group)))
        for name, entry in load.load_object(code, list(signatures)).items()
    }


def _excluded_modules(group: str) -> set[str]:
    """Return the modules listed by other groups only, whose edits do not concern this one."""
    return {module for other in GROUPS.values() for module in other} - set(GROUPS[group])


def _load_or_build(group: str, key: bytes) -> list[tuple[dict[str, tuple[str, ...]], bytes]]:
    """Return the objects of a group, each with its kernels' signatures: from the cache, or built and cached."""
    from numparq.util import disk_cache

    if _sources_changed(group):
        built: list[tuple[dict[str, tuple[str, ...]], bytes]] = marshal.loads(_compiled(group))
        return built
    name = f"kernels-{group}"
    stored = disk_cache.load(name, key)
    if stored is None:
        with disk_cache.build_lock(name, key):
            stored = disk_cache.load(name, key)  # another process may have built it meanwhile
            if stored is None:
                stored = _compiled(group)
                disk_cache.store(name, key, stored)
    objects: list[tuple[dict[str, tuple[str, ...]], bytes]] = marshal.loads(stored)
    return objects


def _sources_changed(group: str) -> bool:
    """Whether sources have changed since this process imported them, as by an upgrade while it runs.

    Then the key does not describe the code in memory: the cache may be neither read nor written.
    """
    from . import load

    return load.last_source_change(_excluded_modules(group)) > _IMPORTED


def _compiled(group: str) -> bytes:
    from .parallel_build import build_in_parallel

    announce_compiling()
    kernels = import_group(group)
    objects = build_in_parallel(group, kernels)
    return marshal.dumps([({name: kernels[name].signature for name in names}, code) for names, code in objects])


def wrap_entry(name: str, signature: tuple[str, ...], entry: Callable[[tuple[Any, ...]], int]) -> Callable[..., int]:
    """Return the function that calls a kernel by its C entry."""
    from .entry import LAST_REFUSAL

    def call(*args: Any) -> int:
        answer = entry(args)
        if answer > LAST_REFUSAL:
            return answer
        from .fallback import check_arguments

        answer = entry(check_arguments(name, signature, args))
        if answer <= LAST_REFUSAL:
            raise TypeError(f"kernel {name} cannot be called with {args}")
        return answer

    call.__name__ = call.__qualname__ = name
    return call


def _warn_fallback(error: Exception) -> None:
    import warnings

    warnings.warn(
        f"numparq's kernels run through Numba's dispatcher, which starts more slowly: {error}",
        RuntimeWarning,
        stacklevel=2,
    )


def _dispatcher_folder() -> str | None:
    """Return the directory for Numba's own cache of these very sources, or None."""
    from numparq.util import disk_cache

    from .load import object_key

    try:
        return disk_cache.private_directory("dispatcher", object_key())
    except (ImportError, OSError):
        return None


def is_cached(group: str) -> bool:
    """Whether the cache holds the object of a group."""
    if execution_mode() != "object":
        return False
    from numparq.util import disk_cache

    from . import load

    return (
        not _sources_changed(group)
        and disk_cache.load(f"kernels-{group}", load.object_key(_excluded_modules(group))) is not None
    )


def announce_compiling() -> None:
    """Log once per process that kernels are compiled, and for how long, if somebody sees standard error.

    A warning, because `logging` prints the bare text of warnings to standard error unless it is configured.
    """
    global _announced
    if _announced or not _is_seen(sys.stderr):
        return
    _announced = True
    import logging

    logging.getLogger("numparq").warning(
        "numparq compiles its kernels, once for this machine: about %d s before the first read, %d s for all of them "
        "(`numparq warmup` compiles them ahead)",
        READ_SECONDS,
        ALL_SECONDS,
    )


def _is_seen(stream: TextIO | None) -> bool:
    """Whether text written to a stream appears in a terminal or a notebook."""
    if type(stream).__module__.startswith("ipykernel."):
        return True
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # an object of somebody else's, or a closed stream
        return False
