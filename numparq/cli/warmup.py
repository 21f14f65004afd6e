"""`numparq warmup`: compile all kernels into the kernel cache."""

from __future__ import annotations

import time

from numparq.kernels.kernel_groups import warmup as compile_kernels
from numparq.util import disk_cache

from .terminal import open_console

# What is said of each way to run kernels.
RUN_BY = {
    "library": ", installed with numparq",
    "object": "",
    "dispatcher": ", run by Numba's dispatchers",
    "python": ", run as Python code without Numba",
}


def warmup() -> None:
    """Compile all kernels and print the directory of the kernel cache."""
    console = open_console()
    began = time.perf_counter()
    mode = compile_kernels()
    console.print(f"kernels are ready after {time.perf_counter() - began:.1f} s{RUN_BY[mode]}; {_cache_location()}")


def _cache_location() -> str:
    try:
        return f"cached in {disk_cache.directory()}"
    except OSError as error:
        return f"not cached: {error}"
