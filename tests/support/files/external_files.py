"""Files with external column chunks."""

from __future__ import annotations

import struct

import numpy as np
import pandas as pd

from .builder import from_bytes, with_footer


def numbered_frame(rows: int, first: int = 0) -> pd.DataFrame:
    numbers = range(first, first + rows)
    return pd.DataFrame(
        {
            "a": numbers,
            "s": [f"s{number % 7}" for number in numbers],
            "c": pd.Categorical([f"c{number % 3}" for number in numbers], [f"c{number}" for number in range(3)]),
            "f": np.sqrt(np.arange(first, first + rows)),
            "l": [list(range(number % 4)) for number in numbers],
        }
    )


def footer_of(data: bytes):
    (length,) = struct.unpack("<I", data[-8:-4])
    return from_bytes("FileMetaData", data[-8 - length : -8])[0]


def write_parts(folder, paths, rows=10, **options):
    """Write files of ten rows each, and one with the footers of all; return the expected rows."""
    groups, frames, footer = [], [], None
    for number, path in enumerate(paths):
        name = folder / path
        name.parent.mkdir(parents=True, exist_ok=True)
        frames.append(numbered_frame(rows, rows * number))
        frames[-1].to_parquet(name, engine="pyarrow", **options)
        footer = footer_of(name.read_bytes())
        for group in footer.row_groups:
            for chunk in group.columns:
                chunk.file_path = path
            groups.append(group)
    footer.row_groups, footer.num_rows = groups, rows * len(paths)
    footer.key_value_metadata = None
    (folder / "_metadata").write_bytes(with_footer(b"PAR1", footer))
    return pd.concat(frames, ignore_index=True)
