"""Bind the kernels of a group: from the object cache, newly compiled, or by the fallback."""

from __future__ import annotations

import marshal
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import TextIO

from numparq.kernels.groups import GROUPS, import_group

from .targets import LIBRARY_TARGETS

# On two idle cores: 8 to 9.5 s, and 24 s.
READ_SECONDS, ALL_SECONDS = 10, 25

# Values of NUMPARQ_KERNELS, and the ways to run kernels that each allows.
_CHOICES = {
    "library": ("library",),
    **{target.level: (target.level,) for targets in LIBRARY_TARGETS.values() for target in targets},
    "object": ("object", "dispatcher"),
    "dispatcher": ("dispatcher",),
    "python": ("python",),
}

_announced = False

_IMPORTED = time.time_ns()


def execution_modes() -> tuple[str, ...]:
    """Return the ways to run kernels, the first that works being the one: by default, all but ``"python"``.

    ``NUMPARQ_KERNELS`` decides, else Numba's ``NUMBA_DISABLE_JIT`` and ``NUMBA_BOUNDSCHECK``.
    """
    chosen = os.environ.get("NUMPARQ_KERNELS", "")
    if chosen in _CHOICES:
        return _CHOICES[chosen]
    if chosen:
        raise ValueError(f"NUMPARQ_KERNELS must be one of {', '.join(_CHOICES)}, not {chosen!r}")
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return _CHOICES["python"]
    if os.environ.get("NUMBA_BOUNDSCHECK", "0") not in ("", "0"):
        return _CHOICES["dispatcher"]
    return ("library", "object", "dispatcher")


def bind_group(group: str, modes: tuple[str, ...]) -> tuple[str, dict[str, Callable[..., int]]]:
    """Return the first of `modes` in which the kernels of a group run, and the kernels by name."""
    reasons: list[str] = []
    for mode in modes:
        try:
            if mode not in _BINDERS:
                return "library", _from_library(group, mode)
            return mode, _BINDERS[mode](group)
        except Exception as error:  # whatever failed, the next may work
            reasons.append(f"{mode}: {error}")
            if mode == modes[-1]:
                raise
            if mode == "object":
                _report_object_failure(error, reasons)
    raise AssertionError("there is no mode")


def _report_object_failure(error: Exception, reasons: list[str]) -> None:
    """Warn that the dispatcher replaces the objects; raise ImportError if there is no compiler at all."""
    if find_spec("numba") is None:
        raise ImportError(
            f"numparq's kernels are not prebuilt for this process ({'; '.join(reasons)}): "
            "pip install 'numparq[jit]' compiles them here"
        ) from error
    _warn_fallback(error)


def _from_library(group: str, level: str = "") -> dict[str, Callable[..., int]]:
    from .prebuilt import load_library

    library = load_library(level)
    return {name: library[name] for names in GROUPS[group].values() for name in names}


def _from_dispatcher(group: str) -> dict[str, Callable[..., int]]:
    from . import fallback

    return fallback.dispatchers(import_group(group), _dispatcher_folder())


def _from_python(group: str) -> dict[str, Callable[..., int]]:
    from . import fallback

    return fallback.python_functions(import_group(group))


def _from_object(group: str) -> dict[str, Callable[..., int]]:
    from . import load

    codes = _load_or_build(group, load.object_key(_excluded_modules(group)))
    return {name: kernel for code in codes for name, kernel in load.load_object(code).items()}


_BINDERS: dict[str, Callable[[str], dict[str, Callable[..., int]]]] = {
    "library": _from_library,
    "object": _from_object,
    "dispatcher": _from_dispatcher,
    "python": _from_python,
}


def _excluded_modules(group: str) -> set[str]:
    """Return the modules listed by other groups only, whose edits do not concern this one."""
    return {module for other in GROUPS.values() for module in other} - set(GROUPS[group])


def _load_or_build(group: str, key: bytes) -> list[bytes]:
    """Return the object files of a group: from the cache, or built and cached."""
    from numparq.util import disk_cache

    if _sources_changed(group):
        built: list[bytes] = marshal.loads(_compiled(group))
        return built
    name = f"kernels-{group}"
    stored = disk_cache.load(name, key)
    if stored is None:
        with disk_cache.build_lock(name, key):
            stored = disk_cache.load(name, key)  # another process may have built it meanwhile
            if stored is None:
                stored = _compiled(group)
                disk_cache.store(name, key, stored)
    codes: list[bytes] = marshal.loads(stored)
    return codes


def _sources_changed(group: str) -> bool:
    """Whether sources have changed since this process imported them, as by an upgrade while it runs.

    Then the key does not describe the code in memory: the cache may be neither read nor written.
    """
    from . import load

    return load.last_source_change(_excluded_modules(group)) > _IMPORTED


def _compiled(group: str) -> bytes:
    from .parallel_build import build_parts

    announce_compiling()
    return marshal.dumps(build_parts([group]))


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


def is_compiled(group: str) -> bool:
    """Whether the kernels of a group are in the library or in the cache."""
    modes = execution_modes()
    if modes[0] not in ("object", "dispatcher", "python"):
        with suppress(ImportError):
            return bool(_from_library(group, "" if modes[0] == "library" else modes[0]))
    if "object" not in modes:
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
