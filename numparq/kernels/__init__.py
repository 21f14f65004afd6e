"""The kernels: ``kernels.name(*args)`` runs a compiled kernel, loading (or compiling) its group at first use.

`docs/kernels.md` says how to write one.
"""

from __future__ import annotations

import marshal
import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .lock import LOCK
from .registry import KERNELS, Kernel

_IMPORTED = time.time_ns()

# The modules that hold kernels. A group is compiled and loaded as a whole, when one of its kernels is first used, so
# that nobody waits for what he does not need.
GROUPS = {
    "reading": (
        "at_once",
        "binary",
        "byte_ranges",
        "compact_protocol",
        "crc32",
        "fixed",
        "located_pages",
        "pages",
        "partial",
        "placement",
        "scattered",
        "scattered_strings",
        "snappy",
        "utf8",
    ),
    "objects": ("objects",),
    "nested": ("nested",),
    "selecting": ("selecting",),
    "delta": ("byte_stream_split", "delta", "delta_strings", "to_plain"),
    "alp": ("alp",),
    "writing": ("encode_dictionary", "encode_plain", "encode_runs", "compact"),
    "delta_writing": ("encode_byte_stream_split", "encode_delta", "encode_delta_strings"),
    "alp_writing": ("encode_alp",),
    "statistics": ("bounds", "split_block_bloom"),
    "shredding": ("shred",),
    "text": ("addresses", "dates", "text"),
    "lzo": ("lzo",),
    "checksums": ("crc32c",),
    "predicates": ("byte_tests", "key_tests", "masks"),
}

__all__ = ["ALL", "GROUPS", "alp_kernels", "alp_writing_kernels", "delta_kernels", "delta_writing_kernels", "kernels",
           "lzo_kernels", "nested_kernels", "object_kernels", "preload", "selecting_kernels", "shredding_kernels",
           "statistics_kernels", "text_kernels", "warmup", "writing_kernels"]  # fmt: skip


class Kernels:
    """The kernels of one group, as attributes; the first one asked for loads them all.

    A kernel takes what its signature says: ints, and one-dimensional C-contiguous arrays of the right item size
    (so a datetime64 array may stand for int64), read-only ones too. It gives a position or count, or a negative
    status for `numparq.errors.check`. Other threads run meanwhile, except where it makes Python objects.

    Parameters
    ----------
    group : str
        One of `GROUPS`.

    Attributes
    ----------
    mode : str
        ``"object"``, ``"dispatcher"`` or ``"python"``: how they run; empty before the first use.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.mode = ""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        self.load()
        try:
            return self.__dict__[name]
        except KeyError:
            raise AttributeError(f"there is no kernel {name!r} for {self.group}") from None

    def load(self) -> None:
        """Load the group, unless that has been done."""
        if self.mode:
            return
        with LOCK:
            if self.mode:
                return
            mode, callables = bind(self.group, wanted_mode())
            self.__dict__.update(callables)
            self.mode = mode


kernels = Kernels("reading")
object_kernels = Kernels("objects")
nested_kernels = Kernels("nested")
selecting_kernels = Kernels("selecting")
delta_kernels = Kernels("delta")
alp_kernels = Kernels("alp")
writing_kernels = Kernels("writing")
delta_writing_kernels = Kernels("delta_writing")
alp_writing_kernels = Kernels("alp_writing")
statistics_kernels = Kernels("statistics")
shredding_kernels = Kernels("shredding")
text_kernels = Kernels("text")
lzo_kernels = Kernels("lzo")
checksum_kernels = Kernels("checksums")
predicate_kernels = Kernels("predicates")
ALL = (
    kernels,
    object_kernels,
    nested_kernels,
    selecting_kernels,
    delta_kernels,
    alp_kernels,
    writing_kernels,
    delta_writing_kernels,
    alp_writing_kernels,
    statistics_kernels,
    shredding_kernels,
    text_kernels,
    lzo_kernels,
    checksum_kernels,
    predicate_kernels,
)


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


def bind(group: str, mode: str) -> tuple[str, dict[str, Callable[..., int]]]:
    """Make the kernels of a group callable.

    Parameters
    ----------
    group : str
        One of `GROUPS`.
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
            return mode, _from_object(group)
        except Exception as error:  # whatever it was, Numba's own way may still work
            _say_fallback(error)
            mode = "dispatcher"
    from . import fallback

    known = registered(group)
    if mode == "python":
        return mode, fallback.python(known)
    return mode, fallback.dispatchers(known, _dispatcher_folder())


def registered(group: str) -> Mapping[str, Kernel]:
    """Import the kernel modules of a group; give what they registered.

    Parameters
    ----------
    group : str
        One of `GROUPS`.

    Returns
    -------
    mapping of str to Kernel
        Its kernels by name.
    """
    names = {import_module(f"{__name__}.{module}").__name__ for module in GROUPS[group]}
    return {name: kernel for name, kernel in KERNELS.items() if kernel.function.__module__ in names}


def _from_object(group: str) -> dict[str, Callable[..., int]]:
    from . import load

    return {
        name: bound_entry(name, signatures[name], entry)
        for signatures, code in _stored_objects(group, load.key(_foreign(group)))
        for name, entry in load.load(code, list(signatures)).items()
    }


def _foreign(group: str) -> set[str]:
    """Name the modules that hold kernels of other groups only: an edit there does not concern this one."""
    return {module for other in GROUPS.values() for module in other} - set(GROUPS[group])


def _stored_objects(group: str, key: bytes) -> list[tuple[dict[str, tuple[str, ...]], bytes]]:
    """Give the objects of a group, each with its kernels' signatures: from the cache, or made and kept."""
    from .. import cache

    if _are_newer(group):
        return marshal.loads(_compiled(group))
    name = f"kernels-{group}"
    stored = cache.load(name, key)
    if stored is None:
        with cache.making(name, key):
            stored = cache.load(name, key)  # another process may have made it meanwhile
            if stored is None:
                stored = _compiled(group)
                cache.store(name, key, stored)
    return marshal.loads(stored)


def _are_newer(group: str) -> bool:
    """Whether sources have changed since this process began to import them, as by an upgrade while it runs.

    What it compiles is then made of older ones than the key says, and what the cache has for that key is made of newer
    ones than this process has in memory: neither may be taken for the other.
    """
    from . import load

    states = (os.stat(path) for path in load.sources(_foreign(group)))
    return any(max(state.st_mtime_ns, state.st_ctime_ns) > _IMPORTED for state in states)


def _compiled(group: str) -> bytes:
    from .workers import build_all

    kernels = registered(group)
    objects = build_all(group, kernels)
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
    for group in ALL:
        group.load()
    return kernels.mode


def preload() -> None:
    """Load what is compiled already, and what every read needs: for a process that others are forked from.

    Groups that the cache does not hold are left for whoever needs them, but for that of plain reads.
    """
    for group in ALL:
        if group is kernels or _is_kept(group.group):
            group.load()


def _is_kept(group: str) -> bool:
    """Whether the cache holds the object of a group."""
    if wanted_mode() != "object":
        return False
    from .. import cache
    from . import load

    return not _are_newer(group) and cache.load(f"kernels-{group}", load.key(_foreign(group))) is not None
