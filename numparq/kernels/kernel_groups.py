"""Groups of kernels: `kernels.name(*args)` runs a compiled kernel, loading or compiling its group at first use."""

from __future__ import annotations

from collections.abc import Callable

from .compile.bind import bind_group, execution_modes, is_compiled
from .compile.load import COMPILE_LOCK


class KernelGroup:
    """Kernels of one group, as attributes; the first access loads the group.

    A kernel takes ints and 1-D C-contiguous arrays of its signature's item sizes, by position; read-only ones too.
    It runs without the GIL unless it touches Python objects. `check_status` turns a negative result into an exception.

    Attributes
    ----------
    mode : str
        How the kernels run: ``"library"``, ``"object"``, ``"dispatcher"`` or ``"python"``; empty before the group is
        loaded.
    """

    def __init__(self, group: str) -> None:
        self.group = group
        self.mode = ""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("_"):
            raise AttributeError(name)
        self.load()
        try:
            kernel: Callable[..., int] = self.__dict__[name]
        except KeyError:
            raise AttributeError(f"kernel group {self.group!r} has no kernel {name!r}") from None
        return kernel

    def load(self) -> None:
        """Load the group unless it is loaded."""
        if self.mode:
            return
        with COMPILE_LOCK:
            if self.mode:
                return
            mode, callables = bind_group(self.group, execution_modes())
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
spark_bloom_kernels = KernelGroup("spark_bloom")
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
    spark_bloom_kernels,
)


def warmup() -> str:
    """Compile and cache all kernels now, so that no later process has to.

    Returns
    -------
    str
        How kernels run: ``"library"`` (installed with numparq), ``"object"`` (compiled ahead), ``"dispatcher"`` (each
        is compiled at its first use) or ``"python"``.
    """
    for group in KERNEL_GROUPS:
        group.load()
    return kernels.mode


def preload() -> None:
    """Load the group of plain reads, and all other groups that are compiled, before other processes are forked."""
    for group in KERNEL_GROUPS:
        if group is kernels or is_compiled(group.group):
            group.load()
