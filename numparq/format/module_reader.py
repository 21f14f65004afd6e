"""Modules of a file (Encryption.md): pages, page indexes and Bloom filters, read by one object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from numparq.io.coalesce import (
    LOCAL_COALESCING,
    OBJECT_STORE_COALESCING,
    CoalescedRanges,
    Coalescing,
    coalesce,
)
from numparq.io.source import Source
from numparq.kernels.tables import L_END, L_START, SLACK

if TYPE_CHECKING:
    from numparq.crypto.aad import ModuleId

    from .encryption import FileDecryption

MAX_GAP_BYTES = 32 << 10


class PageBuffers(Protocol):
    """Reusable memory for pages."""

    def buffer(self, purpose: str, size: int) -> np.ndarray:
        """Return a uint8 buffer of at least `size` bytes plus SLACK, the same memory at each call for a purpose."""


class ModuleReader:
    """Reader of the modules of a file; no other object reads bytes outside the footer, so decryption has one place.

    Pages are views of memory, or lie in `PageBuffers` until these are used again. SLACK readable bytes follow them.

    Attributes
    ----------
    source : Source
        Bytes of the file.
    max_gap : int
        Bytes between two column chunks, at most, that are read with them; at most the gap of a prefetch from a remote
        file, since a larger range would be fetched again.
    keys : FileDecryption or None
        Keys of an encrypted file, whose pages are in memory that may be written to.
    """

    __slots__ = ("_user_coalescing", "keys", "max_gap", "source")

    def __init__(
        self, source: Source, user_coalescing: Coalescing | None = None, keys: FileDecryption | None = None
    ) -> None:
        self.source = source
        self.keys = keys
        self._user_coalescing = user_coalescing
        self.max_gap = min(MAX_GAP_BYTES, self.coalescing.gap) if source.is_remote else MAX_GAP_BYTES

    @property
    def coalescing(self) -> Coalescing:
        """The caller's coalescing, or the default for local files or object stores."""
        return self._user_coalescing or (OBJECT_STORE_COALESCING if self.source.is_remote else LOCAL_COALESCING)

    def at_source(self, source: Source) -> ModuleReader:
        """Return a reader of the same file from another source, such as one that prefetches."""
        return ModuleReader(source, self._user_coalescing, self.keys)

    def read_window(self, position: int, length: int, carried: np.ndarray, buffers: PageBuffers) -> np.ndarray:
        """Read a window of a column chunk; `carried` holds its first bytes."""
        view = self.source.view(position, length, SLACK) if self.keys is None else None
        if view is not None:
            return view
        carried = carried[:length]
        raw = buffers.buffer("raw", length)
        raw[: len(carried)] = carried
        self.source.read_into(position + len(carried), raw[len(carried) : length])
        return raw

    def read_chunks(
        self, starts: np.ndarray, ends: np.ndarray, row_groups: Sequence[int], buffers: PageBuffers
    ) -> tuple[np.ndarray, int, Any]:
        """Read column chunks (ends exclusive), those near each other in one row group by one request.

        Returns the bytes, their number, and the distance from each chunk's position in the file to that in the bytes.
        """
        first = int(np.minimum.reduce(starts))
        length = int(np.maximum.reduce(ends)) - first
        raw = self.source.view(first, length, SLACK) if self.keys is None else None
        if raw is not None:
            return raw, length, first
        gaps, groups = starts[1:] - ends[:-1], np.array(row_groups)
        is_apart = (gaps < 0) | (gaps > (groups[1:] == groups[:-1]) * self.max_gap)
        firsts = np.array([0, *(is_apart.nonzero()[0] + 1).tolist()])
        begins = starts[firsts]
        sizes = np.maximum.reduceat(ends, firsts) - begins
        positions = sizes.cumsum() - sizes
        length = int(sizes.sum())
        raw = buffers.buffer("raw", length)
        for begin, position, size in zip(begins.tolist(), positions.tolist(), sizes.tolist(), strict=True):
            self.source.read_into(begin, raw[position : position + size])
        counts = np.array([*firsts[1:].tolist(), len(starts)]) - firsts
        return raw, length, (begins - positions).repeat(counts)

    def read_pages(self, locations: np.ndarray, buffers: PageBuffers) -> np.ndarray:
        """Read pages, int64 (pages, LOCATION_FIELDS); their positions become those in the bytes returned (in place)."""
        starts, ends = locations[:, L_START], locations[:, L_END]
        if not np.logical_or.reduce(starts[1:] != ends[:-1]):
            start, length = int(starts[0]), int(ends[-1] - starts[0])
            raw = self.source.view(start, length, SLACK) if self.keys is None else None
            if raw is None:
                raw = buffers.buffer("raw", length)
                self.source.read_into(start, raw[:length])
            locations[:, : L_END + 1] -= start
            return raw
        runs = _join_touching(starts.tolist(), ends.tolist())
        raw = buffers.buffer("raw", sum(end - start for start, end in runs))
        position = 0
        for start, end in runs:
            self.source.read_into(start, raw[position : position + end - start])
            position += end - start
        sizes = ends - starts
        sizes.cumsum(out=ends)
        np.subtract(ends, sizes, out=starts)
        return raw

    def read_into(self, position: int, out: np.ndarray) -> None:
        """Fill `out` (uint8) with the bytes from `position`."""
        self.source.read_into(position, out)

    def read_modules(self, locations: np.ndarray, coalescing: Coalescing | None = None) -> list[np.ndarray]:
        """Read modules as stored, int64 (modules, 2) of positions and lengths above 0, coalesced into requests.

        Each array is a view of its request's bytes.
        """
        fetches = coalesce(locations.cumsum(axis=1), coalescing or self.coalescing)
        return _split_requests(fetches, self.source.read_ranges(fetches.requests.tolist()))

    def plaintext(self, stored: np.ndarray, module: ModuleId) -> np.ndarray:
        """Return a module from `read_modules` in memory of its own, SLACK bytes after it; decrypted if its chunk is.

        DecryptionError if it does not authenticate.
        """
        if self.keys is None or not self.keys.is_sealed(module.row_group, module.leaf):
            return stored.copy()
        plaintext = self.keys.open_module(stored[: len(stored) - SLACK].tobytes(), module)
        return np.frombuffer(plaintext + bytes(SLACK), np.uint8)


def _join_touching(starts: list[int], ends: list[int]) -> list[tuple[int, int]]:
    """Return byte ranges, those that touch as one."""
    runs: list[tuple[int, int]] = []
    for start, end in zip(starts, ends, strict=True):
        if runs and runs[-1][1] == start:
            start = runs.pop()[0]
        runs.append((start, end))
    return runs


def _split_requests(fetches: CoalescedRanges, responses: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return each byte range as a view of its request's array in `responses`, with SLACK readable bytes after it."""
    ranges = zip(fetches.request_index.tolist(), fetches.offset_in_request.tolist(), fetches.size.tolist(), strict=True)
    return [responses[request][offset : offset + size + SLACK] for request, offset, size in ranges]
