"""Files of secrets, which their owner alone may use."""

from __future__ import annotations

import os
import shlex
import stat

_MAX_BYTES = 1 << 20


def read_private(path: str) -> bytes:
    """Return the bytes of a file of keys; PermissionError if others than its owner may use it."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise PermissionError(f"others may use the file of keys {path!r}; run: chmod 600 {shlex.quote(path)}")
        data = file.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(f"the file of keys {path!r} has more than {_MAX_BYTES:,} bytes")
    return data
