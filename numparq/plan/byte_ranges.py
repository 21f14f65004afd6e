"""Byte ranges that lie near each other are fetched together: fewer requests, for some bytes that nobody wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..kernels import kernels
from ..kernels.byte_ranges import G_BLOB, G_POSITION, G_SIZE, PLACE_FIELDS

__all__ = ["LOCAL", "OBJECT_STORE", "Coalescing", "Fetches", "coalesce"]

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Coalescing:
    """How much is fetched at once.

    Parameters
    ----------
    gap : int
        Bytes that nobody wants: at most so many between two wanted ranges are fetched along. 0 joins ranges that touch.
    max_bytes : int
        A request is for no more, unless for a single range that is larger by itself.

    Notes
    -----
    A gap is worth fetching as long as its bytes take no longer than the request that it saves: latency times
    bandwidth, over the number of requests that wait side by side. A request should be large enough for its latency not
    to matter, and no larger, for then it only keeps others from running side by side, and decoding waiting.
    """

    gap: int
    max_bytes: int

    def __post_init__(self) -> None:
        if self.gap < 0 or self.max_bytes < 1:
            raise ValueError(f"a gap is 0 bytes or more, max_bytes at least 1; got {self.gap} and {self.max_bytes}")


# To read two ranges of a cached local file instead of one costs 2 us, which nobody notices; and so no byte is fetched
# that nobody wants. A read takes 1 us more for each 16 to 20 KiB; from 1 MiB on, only bytes count.
LOCAL = Coalescing(gap=0, max_bytes=4 << 20)
# Of 50 ms a request and 100 MB/s, five requests side by side: 1 MB takes 10 ms. 16 MiB take 160 ms, three latencies.
OBJECT_STORE = Coalescing(gap=1 << 20, max_bytes=16 << 20)


@dataclass(frozen=True, slots=True, eq=False)
class Fetches:
    """What to fetch, and where each wanted range is in it.

    Parameters
    ----------
    blobs : int64 array, (blobs, 2)
        First byte, and the byte behind the last, of each request; in the order of the file, without overlap.
    blob_of, position, size : int64 array, (ranges,)
        Of each wanted range, as they were given: the blob that it is in, where in the blob it begins, and its bytes.
    """

    blobs: np.ndarray
    blob_of: np.ndarray
    position: np.ndarray
    size: np.ndarray

    @property
    def num_bytes(self) -> int:
        """How many bytes are fetched."""
        return int((self.blobs[:, 1] - self.blobs[:, 0]).sum())

    def piece(self, fetched: Sequence[np.ndarray], wanted: int) -> np.ndarray:
        """Give the bytes of a wanted range.

        Parameters
        ----------
        fetched : sequence of uint8 array
            The bytes of each blob.
        wanted : int
            Which range.

        Returns
        -------
        uint8 array
            A view.
        """
        start = int(self.position[wanted])
        return fetched[self.blob_of[wanted]][start : start + int(self.size[wanted])]


def coalesce(wanted: np.ndarray, how: Coalescing = LOCAL) -> Fetches:
    """Put byte ranges together to requests.

    No byte is fetched twice: ranges that overlap are always in one blob.

    Parameters
    ----------
    wanted : int array, (ranges, 2)
        First byte, and the byte behind the last; in any order, none empty.
    how : Coalescing
        The largest gap and request.

    Returns
    -------
    Fetches

    Raises
    ------
    ValueError
        When a range begins below 0, or is empty.
    """
    wanted = np.ascontiguousarray(wanted, np.int64).reshape(-1, 2)
    if np.count_nonzero((wanted[:, 0] < 0) | (wanted[:, 0] >= wanted[:, 1])):
        raise ValueError("a byte range begins below 0, or has no bytes")
    order = wanted[:, 0].argsort(kind="stable")
    blobs, places = np.empty_like(wanted), np.empty((len(wanted), PLACE_FIELDS), np.int64)
    count = kernels.coalesce_ranges(
        order, wanted.reshape(-1), len(wanted), min(how.gap, _MOST), min(how.max_bytes, _MOST), blobs.reshape(-1),
        places.reshape(-1),
    )  # fmt: skip
    return Fetches(blobs[:count], places[:, G_BLOB], places[:, G_POSITION], places[:, G_SIZE])
