"""Memory between inaccessible pages: access beyond it kills the process."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

AVAILABLE = sys.platform == "linux"
_PROT_NONE = 0


class GuardPages:
    """Allocates arrays that end at, or every other time begin after, an inaccessible page."""

    def __init__(self) -> None:
        self._protect = ctypes.CDLL(None, use_errno=True).mprotect
        self._count = 0

    def allocate(self, size: int, dtype: str | np.dtype = "u1") -> np.ndarray:
        """Return an array of pseudo-random items."""
        item = np.dtype(dtype).itemsize
        room = -(-max(size * item, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        memory = mmap.mmap(-1, room + 2 * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        for page in (start, start + mmap.PAGESIZE + room):
            if self._protect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._count += 1
        offset = mmap.PAGESIZE + (room - size * item if self._count % 2 else 0)
        array = np.frombuffer(memory, dtype, size, offset)
        bytes_ = array.view(np.uint8)[:100_000]  # what lies behind is zeros, as fresh memory is
        bytes_[:] = self._count * 37 + 0x5A & 0xFF
        return array

    def copy_of(self, data: bytes) -> np.ndarray:
        """Return the bytes in such an array."""
        array = self.allocate(len(data))
        array[:] = np.frombuffer(data, np.uint8)
        return array
