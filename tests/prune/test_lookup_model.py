"""Expected share of containers that look-ups read, by their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from numparq.prune.lookup_model import PrunableContainers, expected_reads


def containers(lows: list, highs: list, **more: object) -> PrunableContainers:
    count = len(lows)
    dtype = object if isinstance(lows[0], bytes) else None
    fields = {
        "lows": np.array(lows, dtype),
        "highs": np.array(highs, dtype),
        "known": np.ones(count, bool),
        "rows": np.ones(count),
        "costs": np.ones((count, 1)),
        "read_share": np.ones((count, 1)),
        "bloom_bytes": np.zeros(count, np.int64),
        "files": np.arange(count),
    }
    return PrunableContainers(**(fields | more))


@pytest.mark.parametrize(
    ("lows", "highs", "share"),
    [
        ([0, 10, 20, 30], [9, 19, 29, 39], 1 / 4),
        ([0, 0, 0, 0], [9, 9, 9, 9], 1.0),
        ([0, 0, 20, 20], [9, 9, 29, 29], 1 / 2),
        ([2**62, 2**62 + 1, 2**62 + 2], [2**62, 2**62 + 1, 2**62 + 2], 1 / 3),
        ([-(2**63), 0], [-1, 2**63 - 1], 1 / 2),
        ([float("-inf"), 1.5], [1.0, float("inf")], 1 / 2),
        ([b"a", b"b", b""], [b"a" * 90, b"b\xff", b"\x01"], 1 / 3),
        ([b"same/1", b"same/2"], [b"same/1zzz", b"same/2zzz"], 1 / 2),
    ],
)
def test_expected_reads_of_bounds(lows: list, highs: list, share: float) -> None:
    found = expected_reads(containers(lows, highs), len(lows))
    assert found.point.tolist() == pytest.approx([share])
    assert found.point_files == pytest.approx(share)
    assert found.small_range[0] >= found.point[0] - 1e-12


def test_containers_without_bounds_are_always_read() -> None:
    known = np.array([True, True, False, True])
    found = expected_reads(containers([0, 10, 0, 30], [9, 19, 0, 39], known=known), 4)
    assert found.point.tolist() == pytest.approx([2 / 4])


def test_many_containers_are_sampled_by_rows() -> None:
    count = 5000
    rows = np.where(np.arange(count) < 10, 10**6, 1.0)
    lows = np.arange(count) * 10
    highs = np.where(np.arange(count) < 10, 99, lows + 9)  # the large row groups overlap
    found = expected_reads(containers(lows.tolist(), highs.tolist(), rows=rows), count)
    assert 4 / count < found.point[0] < 11 / count
