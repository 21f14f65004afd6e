"""Coalesce nearby byte ranges into requests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from numparq.kernels.byte_ranges import G_OFFSET, G_REQUEST, G_SIZE, RANGE_FIELDS
from numparq.kernels.kernel_groups import kernels

_MOST = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Limits within which nearby byte ranges are fetched by one request.

    Parameters
    ----------
    gap : int
        Largest number of unneeded bytes between two byte ranges of one request, 0 or more.
        0 joins only ranges that touch or overlap.
    max_bytes : int
        Largest size of a request in bytes, at least 1. A larger range, or ranges that overlap, are still one request.

    Raises
    ------
    ValueError
        If `gap` is negative or `max_bytes` is less than 1.

    Notes
    -----
    A gap is worth fetching while its bytes take less time than the request they save: latency times bandwidth,
    divided by the number of concurrent requests. A request should be large enough that its latency does not matter.
    A larger one delays decoding and leaves fewer requests to run concurrently.

    Examples
    --------
    >>> import numparq
    >>> numparq.Coalescing(gap=65536, max_bytes=8388608)
    Coalescing(gap=65536, max_bytes=8388608)
    """

    gap: int
    max_bytes: int

    def __post_init__(self) -> None:
        if self.gap < 0 or self.max_bytes < 1:
            raise ValueError(f"gap must be at least 0 and max_bytes at least 1, not {self.gap} and {self.max_bytes}")


# A second read of a cached local file costs only 2 us, so no unneeded byte is read.
# A read takes 1 us more for each 16 to 20 KiB; from 1 MiB on, only the number of bytes counts.
LOCAL_COALESCING = Coalescing(gap=0, max_bytes=4 << 20)
# For 50 ms latency, 100 MB/s and five concurrent requests: 1 MB takes 10 ms; 16 MiB take 160 ms, three latencies.
OBJECT_STORE_COALESCING = Coalescing(gap=1 << 20, max_bytes=16 << 20)


@dataclass(frozen=True, slots=True, eq=False)
class CoalescedRanges:
    """Requests, and the position of each byte range in them.

    Attributes
    ----------
    requests : int64 array, (requests, 2)
        Start and end (exclusive) of each request, in file order, without overlap.
    request_index, offset_in_request, size : int64 array, (ranges,)
        For each byte range, in the caller's order: its request, its offset in that request, and its length in bytes.
    """

    requests: np.ndarray
    request_index: np.ndarray
    offset_in_request: np.ndarray
    size: np.ndarray

    @property
    def num_bytes(self) -> int:
        """Total bytes of all requests."""
        return int((self.requests[:, 1] - self.requests[:, 0]).sum())


def coalesce(ranges: np.ndarray, coalescing: Coalescing = LOCAL_COALESCING) -> CoalescedRanges:
    """Coalesce byte ranges (int array (ranges, 2): starts and exclusive ends, in any order) into requests.

    Overlapping ranges share a request. Raises ValueError for a negative start or an empty range.
    """
    ranges = np.ascontiguousarray(ranges, np.int64).reshape(-1, 2)
    if np.count_nonzero((ranges[:, 0] < 0) | (ranges[:, 0] >= ranges[:, 1])):
        raise ValueError("a byte range has a negative start or no bytes")
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
