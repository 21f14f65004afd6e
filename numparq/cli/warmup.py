"""`numparq warmup`: compile all kernels into the kernel cache."""

from __future__ import annotations

import time

from rich.console import Console

from numparq.format.footer.file_metadata import warm_up as keep_tables
from numparq.kernels import warmup as compile_kernels
from numparq.util import disk_cache


def warmup() -> None:
    """Compile all kernels and print the directory of the kernel cache."""
    console = Console(highlight=False)
    began = time.perf_counter()
    with Console(stderr=True).status("compiling the kernels of numparq ..."):
        mode = compile_kernels()
        keep_tables()
    console.print(f"kernels are ready after {time.perf_counter() - began:.1f} s ({mode} mode), {_cache_location()}")


def _cache_location() -> str:
    try:
        return f"cached in {disk_cache.directory()}"
    except OSError as error:
        return f"not cached: {error}"
