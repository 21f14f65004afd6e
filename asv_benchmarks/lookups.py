"""Look-ups of a few lineitem rows: by row number in numparq, by filter in pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from asv_benchmarks.counting_file import CountingFile
from asv_benchmarks.page_index import chunk_bytes

KEY = "orderkey"
COLUMNS = [KEY, "extendedprice", "comment"]
COUNT = 8
ROWS = 10
DESCRIPTION = (
    f"{len(COLUMNS)} columns ({', '.join(COLUMNS)}) of {ROWS} rows by row_range; by pyarrow of the rows of one {KEY}"
)


@dataclass(frozen=True)
class LookUp:
    """What one look-up is for.

    Attributes
    ----------
    rows : (int, int)
        First row, and the one behind the last.
    key : int
        The order key of the first of them.
    """

    rows: tuple[int, int]
    key: int


def spread(frame: pd.DataFrame) -> list[LookUp]:
    """Return look-ups spread over the frame, away from page and row group boundaries of round sizes."""
    starts = [int(len(frame) * (turn + 0.5) / COUNT) for turn in range(COUNT)]
    keys = frame[KEY]
    return [LookUp((start, min(start + ROWS, len(frame))), int(keys.iloc[start])) for start in starts]


def _by_position(source: Any, wanted: LookUp, threads: int) -> pd.DataFrame:
    import numparq

    return numparq.read_parquet(source, columns=COLUMNS, row_range=wanted.rows, threads=threads)


def _by_key(source: Any, wanted: LookUp, threads: int) -> pd.DataFrame:
    # pyarrow's threads are those of `readers.load`.
    return pd.read_parquet(source, engine="pyarrow", columns=COLUMNS, filters=[(KEY, "==", wanted.key)])


_LOOK_UPS: Mapping[str, Callable[[Any, LookUp, int], pd.DataFrame]] = {
    "lookup": _by_position,
    "lookup_pyarrow": _by_key,
}


def _all(look_up: Callable[[Any, LookUp, int], pd.DataFrame]) -> Callable[[Path, Sequence[LookUp], int], None]:
    def run(path: Path, wanted: Sequence[LookUp], threads: int) -> None:
        for one in wanted:
            look_up(path, one, threads)

    return run


READERS = {name: _all(look_up) for name, look_up in _LOOK_UPS.items()}
"""``READERS[name](path, wanted, threads)`` does all look-ups, each on a file that is opened for it."""


def bytes_asked(name: str, path: Path, wanted: Sequence[LookUp], threads: int) -> float:
    """Average bytes that a look-up reads, footer and indexes included.

    Raises
    ------
    ValueError
        When the rows that come back are not those that were wanted.
    """
    total = 0
    for one in wanted:
        with CountingFile(path) as file:
            frame = _LOOK_UPS[name](file, one, threads)
            total += file.bytes
        if not len(frame) or frame[KEY].iloc[0] != one.key:
            raise ValueError(f"{name} of rows {one.rows} gave other rows")
    return total / len(wanted)


def bytes_by_index(path: Path, wanted: Sequence[LookUp]) -> float:
    """Return the average bytes that a look-up by row number must read with the offset index.

    That is the footer, and per column and row group the offset index, dictionary page and data pages with the rows: the
    lower bound for any reader.
    """
    import numparq

    with numparq.ParquetFile(path) as file, path.open("rb") as raw:
        raw.seek(-8, 2)
        footer = 8 + int.from_bytes(raw.read(4), "little")
        groups = file.metadata.row_groups
        ends = np.cumsum([group.num_rows for group in groups]).tolist()
        total = 0
        for one in wanted:
            total += footer
            for group, end in zip(groups, ends, strict=True):
                start, stop = (row - (end - group.num_rows) for row in one.rows)
                if start < group.num_rows and stop > 0:
                    total += sum(
                        chunk_bytes(raw, chunk, start, stop)
                        for chunk in group.columns
                        if ".".join(chunk.meta_data.path_in_schema) in COLUMNS
                    )
    return total / len(wanted)
