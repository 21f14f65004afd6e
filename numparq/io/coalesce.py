"""Coalesce nearby byte ranges into requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from numparq.kernels import kernels
from numparq.kernels.byte_ranges import G_OFFSET, G_REQUEST, G_SIZE, RANGE_FIELDS
from numparq.kernels.tables import SLACK

from .source import Source

__all__ = ["LOCAL_COALESCING", "OBJECT_STORE_COALESCING", "CoalescedRanges", "Coalescing", "coalesce", "fetch_ranges"]

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
LOCAL_COALESCING = Coalescing(gap=0, max_bytes=4 << 20)
# Of 50 ms a request and 100 MB/s, five requests side by side: 1 MB takes 10 ms. 16 MiB take 160 ms, three latencies.
OBJECT_STORE_COALESCING = Coalescing(gap=1 << 20, max_bytes=16 << 20)


@dataclass(frozen=True, slots=True, eq=False)
class CoalescedRanges:
    """What to fetch, and where each wanted range is in it.

    Parameters
    ----------
    requests : int64 array, (blobs, 2)
        First byte, and the byte behind the last, of each request; in the order of the file, without overlap.
    request_index, position, size : int64 array, (ranges,)
        Of each wanted range, as they were given: the blob that it is in, where in the blob it begins, and its bytes.
    """

    requests: np.ndarray
    request_index: np.ndarray
    position: np.ndarray
    size: np.ndarray

    @property
    def num_bytes(self) -> int:
        """How many bytes are fetched."""
        return int((self.requests[:, 1] - self.requests[:, 0]).sum())

    def piece(self, fetched: Sequence[np.ndarray], ranges: int) -> np.ndarray:
        """Give the bytes of a wanted range.

        Parameters
        ----------
        fetched : sequence of uint8 array
            The bytes of each blob.
        ranges : int
            Which range.

        Returns
        -------
        uint8 array
            A view.
        """
        start = int(self.position[ranges])
        return fetched[self.request_index[ranges]][start : start + int(self.size[ranges])]


def coalesce(ranges: np.ndarray, coalescing: Coalescing = LOCAL_COALESCING) -> CoalescedRanges:
    """Put byte ranges together to requests.

    No byte is fetched twice: ranges that overlap are always in one blob.

    Parameters
    ----------
    ranges : int array, (ranges, 2)
        First byte, and the byte behind the last; in any order, none empty.
    coalescing : Coalescing
        The largest gap and request.

    Returns
    -------
    CoalescedRanges

    Raises
    ------
    ValueError
        When a range begins below 0, or is empty.
    """
    ranges = np.ascontiguousarray(ranges, np.int64).reshape(-1, 2)
    if np.count_nonzero((ranges[:, 0] < 0) | (ranges[:, 0] >= ranges[:, 1])):
        raise ValueError("a byte range begins below 0, or has no bytes")
    order = ranges[:, 0].argsort(kind="stable")
    blobs, places = np.empty_like(ranges), np.empty((len(ranges), RANGE_FIELDS), np.int64)
    count = kernels.coalesce_ranges(
        order,
        ranges.reshape(-1),
        len(ranges),
        min(coalescing.gap, _MOST),
        min(coalescing.max_bytes, _MOST),
        blobs.reshape(-1),
        places.reshape(-1),
    )
    return CoalescedRanges(blobs[:count], places[:, G_REQUEST], places[:, G_OFFSET], places[:, G_SIZE])


def fetch_ranges(source: Source, places: np.ndarray, coalescing: Coalescing) -> list[np.ndarray]:
    """Read byte ranges, those that lie near each other together.

    Parameters
    ----------
    source : Source
        The bytes of the file.
    places : int64 array, (ranges, 2)
        Position and length of each; none is empty, all are within the file.
    coalescing : Coalescing
        Which are read together.

    Returns
    -------
    list of uint8 array
        The bytes of each, and SLACK readable ones behind.
    """
    fetches = coalesce(places.cumsum(axis=1), coalescing)
    return split_fetched(fetches, source.read_ranges(fetches.requests.tolist()))


def split_fetched(fetches: CoalescedRanges, blobs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Give the bytes of each range that was wanted, and SLACK readable ones behind; `blobs` have these, too."""
    places = zip(fetches.request_index.tolist(), fetches.position.tolist(), fetches.size.tolist(), strict=True)
    return [blobs[blob][position : position + size + SLACK] for blob, position, size in places]
