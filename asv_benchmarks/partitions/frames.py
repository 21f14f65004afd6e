"""The table of frames written to partitions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from asv_benchmarks.frames import FrameToWrite
from asv_benchmarks.workloads import MILLION, DataFile

YEARS, REGIONS = 10, 10


def events(rng: np.random.Generator, size: int) -> pa.Table:
    """Return unsorted rows: a serial number, two measurements, text, and two keys of ten values each."""
    return pa.table(
        {
            "id": np.arange(size),
            "value": rng.normal(size=size),
            "cents": rng.integers(0, 10_000, size),
            "kind": rng.choice(np.array(["bus", "car", "ferry", "train", "tram"]), size),
            "year": 2015 + rng.integers(0, YEARS, size),
            "region": np.array([f"r{number}" for number in range(REGIONS)])[rng.integers(0, REGIONS, size)],
        }
    )


def sorted_events(rng: np.random.Generator, size: int) -> pa.Table:
    """Return the same rows sorted by the keys."""
    return events(rng, size).sort_by([("year", "ascending"), ("region", "ascending"), ("id", "ascending")])


@dataclass(frozen=True)
class PartitionedFrame(FrameToWrite):
    """A frame to write, partitioned by ``keys``."""

    keys: tuple[str, ...] = ("year", "region")


PARTITIONED: dict[str, PartitionedFrame] = {
    frame.name: frame
    for frame in (
        PartitionedFrame("events", DataFile("events", events, MILLION)),
        PartitionedFrame("events-sorted", DataFile("events-sorted", sorted_events, MILLION)),
    )
}
"""All by name, in the order in which they are run."""
