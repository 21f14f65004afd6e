"""Targets of kernels' machine code: the host, and the CPU levels of the prebuilt library."""

from __future__ import annotations

from typing import NamedTuple


class Target(NamedTuple):
    """A kind of machine, in LLVM's words.

    Attributes
    ----------
    level : str
        Name of the CPU level.
    triple : str
        LLVM's triple; empty for that of this process.
    cpu, features : str
        LLVM's CPU, and features beyond or without those of it, as in ``+pclmul,-avx512f``.
    is_library : bool
        Whether the code becomes part of a shared library, and not of this process.
    """

    level: str
    triple: str
    cpu: str
    features: str
    is_library: bool = False

    @property
    def has_clmul(self) -> bool:
        """Whether the CPU has the carry-less multiplication of x86 (PCLMULQDQ)."""
        return "+pclmul" in self.features.split(",")


# CPU levels of the library by machine, the lowest first. PCLMULQDQ, for CRCs, is in none of x86's own levels.
LIBRARY_TARGETS: dict[str, tuple[Target, ...]] = {
    "x86_64": (
        Target("x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2", "+pclmul", True),
        Target("x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "+pclmul", True),
    ),
    "aarch64": (Target("aarch64", "aarch64-unknown-linux-gnu", "generic", "", True),),
}


def host_target() -> Target:
    """Return the target for code that runs in this process; needs llvmlite."""
    import llvmlite.binding as llvm

    return Target("host", "", llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
