"""Notice that kernels are compiled, which the first use on a machine waits for."""

from __future__ import annotations

import sys
from typing import TextIO

# On two idle cores: 8 to 9.5 s, and 24 s.
READ_SECONDS, ALL_SECONDS = 10, 25

_announced = False


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
