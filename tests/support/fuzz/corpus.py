"""The valid files that fuzzing changes: `support.files.samples`, and one for each feature they lack."""

from __future__ import annotations

import copy
import datetime
import decimal
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from support.files import builder as h
from support.files.builder import (
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_plain,
    extended_idl,
    parse_file,
)
from support.files.samples import SAMPLES
from support.oracles import hybrid_rle


@dataclass(frozen=True)
class Sample:
    """A sound file.

    Parameters
    ----------
    name : str
        What is in it.
    data : bytes
        The file.
    explode : tuple of str
        Paths of lists and maps in it.
    beside : dict of str to bytes
        Files in its folder.
    """

    name: str
    data: bytes
    explode: tuple[str, ...] = ()
    beside: tuple[tuple[str, bytes], ...] = ()


# --- files that the samples lack --------------------------------------------------------------------------------------


def _own_frame(rows: int = 60) -> Any:
    import pandas as pd

    rng = np.random.default_rng(rows)
    numbers = rng.integers(-50, 50, rows).tolist()
    strings = [f"prefix {number}" if number % 5 else None for number in numbers]
    return pd.DataFrame(
        {
            "i": numbers,
            "n": pd.array([number if number % 3 else None for number in numbers], "Int32"),
            "f": np.array(numbers) / 4,
            "s": strings,
            "b": [bytes([number & 255]) * (number & 3) for number in numbers],
            "t": pd.to_datetime(numbers, unit="h", utc=True),
            "c": pd.Categorical(strings),
            "d": [decimal.Decimal(number) / 8 for number in numbers],
            "o": [number > 0 for number in numbers],
            "y": [datetime.date(2020, 1, 1) + datetime.timedelta(number) for number in numbers],
            "l": [[number] * (number & 3) if number % 7 else None for number in numbers],
            "m": [{"x": number, "y": f"y{number}"} if number % 7 else None for number in numbers],
        }
    )


def _own(columns: list[str] | None = None, **options: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        import numparq

        frame = _own_frame()
        return numparq.to_parquet(frame[columns] if columns else frame, **options)

    return made


_DELTAS = {
    "i": "DELTA_BINARY_PACKED",
    "n": "DELTA_BINARY_PACKED",
    "f": "BYTE_STREAM_SPLIT",
    "s": "DELTA_BYTE_ARRAY",
    "b": "DELTA_LENGTH_BYTE_ARRAY",
    "t": "BYTE_STREAM_SPLIT",
    "d": "BYTE_STREAM_SPLIT",
    "o": "RLE",
}


def _fixed_deltas() -> bytes:
    """Write fixed-length strings as DELTA_BYTE_ARRAY and FLOAT16 as BYTE_STREAM_SPLIT."""
    import pyarrow as pa

    import numparq

    fixed = pa.array([b"row %2d" % (number // 3) for number in range(40)], pa.binary(6)).to_pandas()
    import pandas as pd

    frame = pd.DataFrame(
        {"x": pd.Series(fixed, dtype=pd.ArrowDtype(pa.binary(6))), "h": np.arange(40, dtype=np.float16)}
    )
    encodings = {"x": "DELTA_BYTE_ARRAY", "h": "BYTE_STREAM_SPLIT"}
    return numparq.to_parquet(frame, column_encoding=encodings, max_rows_per_page=15, write_page_checksum=False)


def _old_levels() -> bytes:
    """Write BIT_PACKED levels, and RLE booleans in pages of both versions."""
    present = [1, 0, 1, 1, 0, 1, 1, 1, 1, 0]
    packed = hybrid_rle.pack_high(present)
    numbers = encode_plain(h.INT32, range(7))
    booleans = h.encode_indices([1, 0, 1, 1, 0, 1, 0, 1, 1, 1], 1)
    with_length = len(booleans).to_bytes(4, "little") + booleans
    coded = b"\x03" + h.encode_indices([0, 1, 2, 3, 4, 1, 2], 3)
    words = dictionary_page(5, encode_plain(h.BYTE_ARRAY, [b"", b"a", b"bb", b"ccc", b"dddd"]), h.PLAIN_DICTIONARY)
    return build_file(
        [10],
        [
            FileColumn("packed", h.INT32, [[data_page(10, packed + numbers, h.PLAIN, h.BIT_PACKED)]], h.OPTIONAL),
            FileColumn(
                "words",
                h.BYTE_ARRAY,
                [[words, data_page(10, packed + coded, h.PLAIN_DICTIONARY, h.BIT_PACKED)]],
                h.OPTIONAL,
            ),
            FileColumn("booleans", h.BOOLEAN, [[data_page(10, with_length, h.RLE)]]),
            FileColumn("booleans, V2", h.BOOLEAN, [[data_page_v2(10, 0, b"", with_length, h.RLE)]]),
        ],
    ).stored()


def _variants() -> bytes:
    from support.data.variants import nested_file

    return nested_file()[0]


def _plain_variants() -> bytes:
    import pandas as pd

    import numparq
    from numparq import variant
    from support.data.variants import variant_node

    rows = [
        {"a": 1, "b": [None, True, 1.5]},
        "text",
        None,
        [{"c": {}}],
        b"bytes",
        datetime.date(2020, 1, 1),
        decimal.Decimal("1.25"),
        -(2**40),
        {"": "x" * 70},
    ] * 3
    stored = [dict(zip(("metadata", "value"), variant.encode(row), strict=True)) for row in rows]
    return numparq.to_parquet(pd.DataFrame({"v": stored}), schema={"v": variant_node(None)}, max_rows_per_page=10)


def _references() -> bytes:
    from support.files.file_references import REFERENCES, write_references

    return write_references(REFERENCES * 2)


def _geometries() -> bytes:
    import pandas as pd

    import numparq

    points = [b"\x01\x01\0\0\0" + np.array([number, -number], "<f8").tobytes() for number in range(12)]
    points[5] = None  # type: ignore[call-overload]
    notes = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [0, -12, 12, 0]}
    geo = {"version": "1.1.0", "primary_column": "p", "columns": {"p": notes}}
    data = numparq.to_parquet(pd.DataFrame({"p": points, "g": points}), key_value_metadata={"geo": json.dumps(geo)})
    whole = parse_file(data)
    whole.footer.schema[2].logicalType = extended_idl().LogicalType(
        GEOGRAPHY=extended_idl().GeographyType(crs="OGC:CRS84")
    )
    whole.footer.schema[2].converted_type = None
    return whole.stored()


@cache
def _parts() -> tuple[tuple[str, bytes], ...]:
    """Write files, and one beside them with the footers of all."""
    import tempfile

    from support.files.external_files import write_parts

    names = ["part.0", "p=1/part.1"]
    with tempfile.TemporaryDirectory() as folder:
        write_parts(Path(folder), names, row_group_size=4)
        return tuple((name, (Path(folder) / name).read_bytes()) for name in [*names, "_metadata"])


_LISTS = ("l.list.element", "l")
_MORE: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "own": (_own(max_rows_per_page=20, row_group_size=35, bloom_filter_options={"i": {}, "s": {}}), _LISTS),
    "own, V2": (_own(data_page_version="2.0", compression="zstd", max_rows_per_page=25), _LISTS),
    "own, deltas": (_own(columns=list(_DELTAS), column_encoding=_DELTAS, max_rows_per_page=30), ()),
    "own, deltas, V2": (
        _own(columns=list(_DELTAS), column_encoding=_DELTAS, data_page_version="2.0", compression="lz4_hadoop"),
        (),
    ),
    "own, checkpoints": (_own(columns=["i", "s", "l"], row_group_size=15, checkpoint_row_groups=1), _LISTS),
    "fixed deltas": (_fixed_deltas, ()),
    "old levels": (_old_levels, ()),
    "variants, shredded": (_variants, ("l.list.element",)),
    "variants": (_plain_variants, ()),
    "references": (_references, ()),
    "geometries": (_geometries, ()),
}
_EXPLODE = (
    "list.list.element",
    "words",
    "structs.list.element.l.list.element",
    "structs",
    "map",
    "lists",
    "lists.list.element.list.element",
    "map.key_value",
)
NAMES = (*SAMPLES, *_MORE, "parts")


@cache
def sample(name: str) -> Sample:
    """Return a sample by name."""
    if name == "parts":
        *beside, (_, data) = _parts()
        return Sample(name, data, ("l.list.element",), tuple(beside))
    if name in _MORE:
        make, explode = _MORE[name]
        beside = (("side", b"side"), ("below/side", b"below")) if name == "references" else ()
        return Sample(name, make(), explode, tuple(beside))
    return Sample(name, SAMPLES[name](), _EXPLODE if name.startswith("nested") else ())


# --- single columns ---------------------------------------------------------------------------------------------------


@cache
def columns(name: str) -> tuple[h.HandmadeFile, ...]:
    """Split a sample into files of one column each, so that reads touch little besides its pages."""
    whole = parse_file(sample(name).data)
    found = []
    place, leaf = 1, 0
    while place < len(whole.footer.schema):
        stop = _behind(whole.footer.schema, place)
        leaves = sum(not element.num_children for element in whole.footer.schema[place:stop])
        if leaves:
            found.append(_alone(whole, slice(place, stop), slice(leaf, leaf + leaves)))
        place, leaf = stop, leaf + leaves
    return tuple(found)


def _behind(schema: list[Any], place: int) -> int:
    open_ones = 1
    while open_ones:
        open_ones += (schema[place].num_children or 0) - 1
        place += 1
    return place


def _alone(whole: h.HandmadeFile, elements: slice, leaves: slice) -> h.HandmadeFile:
    footer = copy.copy(whole.footer)
    root = copy.copy(footer.schema[0])
    root.num_children = 1
    footer.schema = [root, *footer.schema[elements]]
    footer.key_value_metadata = footer.column_orders = None
    groups = []
    for group in footer.row_groups:
        groups.append(copy.copy(group))
        groups[-1].sorting_columns = None
        groups[-1].columns = group.columns[leaves]
    footer.row_groups = groups
    chunks = {
        (number, column - leaves.start): pages
        for (number, column), pages in whole.chunks.items()
        if leaves.start <= column < leaves.stop
    }
    return h.HandmadeFile(footer, chunks)
