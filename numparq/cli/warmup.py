"""``numparq warmup``: compile every kernel, and keep what comes out."""

from __future__ import annotations

import time

from rich.console import Console

from .. import cache
from .. import warmup as compile_kernels
from ..metadata.footer import warm_up as keep_tables


def warmup() -> None:
    """Compile all kernels and say where they are kept."""
    console = Console(highlight=False)
    began = time.perf_counter()
    with Console(stderr=True).status("compiling the kernels of numparq ..."):
        mode = compile_kernels()
        keep_tables()
    console.print(f"kernels are ready after {time.perf_counter() - began:.1f} s ({mode} mode), {_where()}")


def _where() -> str:
    try:
        return f"kept in {cache.directory()}"
    except OSError as error:
        return f"and not kept: {error}"
