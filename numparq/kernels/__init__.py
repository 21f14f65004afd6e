"""Kernels: `kernels.name(*args)` runs a compiled kernel, loading or compiling its group at first use."""

from __future__ import annotations

from collections.abc import Callable

from .compile.bind import bind_group, execution_mode, is_cached
from .compile.load import COMPILE_LOCK

__all__ = [
    "GROUPS",
    "KERNEL_GROUPS",
    "alp_kernels",
    "alp_writing_kernels",
    "delta_kernels",
    "delta_writing_kernels",
    "kernels",
    "lzo_kernels",
    "nested_decode_kernels",
    "nested_encode_kernels",
    "object_kernels",
    "preload",
    "selection_kernels",
    "statistics_kernels",
    "text_kernels",
    "warmup",
    "writing_kernels",
]


class KernelGroup:
    """The kernels of one group, as attributes; the first one asked for loads them all.

    A kernel takes what its signature says: ints, and one-dimensional C-contiguous arrays of the right item size
    (so a datetime64 array may stand for int64), read-only ones too. It gives a position or count, or a negative
    status for `numparq.kernels.status.check_status`. Other threads run meanwhile, except where it makes Python objects.

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
        with COMPILE_LOCK:
            if self.mode:
                return
            mode, callables = bind_group(self.group, execution_mode())
            self.__dict__.update(callables)
            self.mode = mode


kernels = KernelGroup("reading")
object_kernels = KernelGroup("objects")
nested_decode_kernels = KernelGroup("nested")
selection_kernels = KernelGroup("selecting")
delta_kernels = KernelGroup("delta")
alp_kernels = KernelGroup("alp")
writing_kernels = KernelGroup("writing")
delta_writing_kernels = KernelGroup("delta_writing")
alp_writing_kernels = KernelGroup("alp_writing")
statistics_kernels = KernelGroup("statistics")
nested_encode_kernels = KernelGroup("shredding")
text_kernels = KernelGroup("text")
lzo_kernels = KernelGroup("lzo")
checksum_kernels = KernelGroup("checksums")
predicate_kernels = KernelGroup("predicates")
KERNEL_GROUPS = (
    kernels,
    object_kernels,
    nested_decode_kernels,
    selection_kernels,
    delta_kernels,
    alp_kernels,
    writing_kernels,
    delta_writing_kernels,
    alp_writing_kernels,
    statistics_kernels,
    nested_encode_kernels,
    text_kernels,
    lzo_kernels,
    checksum_kernels,
    predicate_kernels,
)


def warmup() -> str:
    """Compile and keep all kernels now, so that no later process has to.

    Returns
    -------
    str
        How kernels run: ``"object"``, ``"dispatcher"`` (each is then compiled at its first use) or ``"python"``.
    """
    for group in KERNEL_GROUPS:
        group.load()
    return kernels.mode


def preload() -> None:
    """Load what is compiled already, and what every read needs: for a process that others are forked from.

    Groups that the cache does not hold are left for whoever needs them, but for that of plain reads.
    """
    for group in KERNEL_GROUPS:
        if group is kernels or is_cached(group.group):
            group.load()
