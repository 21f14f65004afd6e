"""Damaged stores: every kind of damage keeps files, or is an error that names the part."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import InvalidFileError, UnsupportedError, col
from numparq.skipping import Store
from numparq.skipping.metadata import parse_store_schema
from numparq.skipping.own_metadata import OWN_KEY, OwnMetadata
from numparq.skipping.spark_bloom import build_cell, hash_texts
from support.store_parts import bounds, lists, schema_json, skipped, write_part

x = col("x")
MINMAX = {"c": ("minmax", "x")}
CELLS = {"c": bounds(pa.int64(), [(1, 5), (7, 9)])}
TYPES = {"c": CELLS["c"].type}


def changed(text: str, **fields) -> str:
    parts = json.loads(text)
    parts["fields"][0]["metadata"] |= fields
    return json.dumps(parts)


TEXT = schema_json(MINMAX, TYPES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"fields": 5}',
        '{"fields": [{"name": "a", "type": "string"}]}',
        '{"fields": [{"name": "obj_name"}, {"name": "obj_name"}]}',
        '{"fields": [{"name": "obj_name", "name": "obj_name"}]}',
        "[" * 100_000,
        changed(TEXT, version="4"),
        changed(TEXT, version=-1),
        changed(TEXT, version=True),
        TEXT.replace('"cols": ["x"]', '"cols": "x"'),
        TEXT.replace('"cols": ["x"]', '"cols": []'),
        TEXT.replace('"cols": ["x"]', '"cols": [5]'),
        TEXT.replace('{"index": {', '{"index": 5, "more": {'),
        changed(TEXT, encryption="k"),
    ],
)
def test_damaged_schemas(tmp_path, text):
    """A part whose schema cannot be read knows no file; other parts do."""
    with pytest.raises(InvalidFileError, match="no part of a data-skipping store"):
        parse_store_schema(text, "part")
    write_part(tmp_path, MINMAX, CELLS, schema=text or " ")
    assert skipped(tmp_path, x == 20) == ""
    write_part(tmp_path, MINMAX, CELLS, name="part-1")
    assert skipped(tmp_path, x == 20) == "ab"
    store = Store(tmp_path)
    store.select(x == 20)
    assert [error.where["file"].rpartition("/")[2] for error in store.damaged] == ["part-0.parquet"]
    assert "damaged" in str(store.describe())


def test_later_versions_are_refused(tmp_path):
    write_part(tmp_path, MINMAX, CELLS, version=5)
    with pytest.raises(UnsupportedError, match="has version 5; numparq reads versions up to 4"):
        Store(tmp_path).select(x == 20)


@pytest.mark.parametrize("version", [None, 0])
def test_version_0_is_described_and_skips_nothing(tmp_path, version):
    write_part(tmp_path, {"x:_minmax": ("minmax", "x")}, {"x:_minmax": CELLS["c"]}, version=version)
    assert skipped(tmp_path, x == 20) == ""
    assert "cells of version 0 cannot be read" in str(Store(tmp_path).describe())
    assert [str(index) for index in Store(tmp_path).indexes] == ["minmax on x"]


def test_cells_cut_off(tmp_path):
    """A page that cannot be read says nothing, and neither does its column; other columns still do."""
    both = {"c": bounds(pa.int64(), [(1, 5)]), "d": lists(pa.string(), [["abcdefgh" * 4]])}
    indexes = {"c": ("minmax", "x"), "d": ("valuelist", "y")}
    path = write_part(tmp_path, indexes, both, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    place = data.index(b"\x20\0\0\0abcdefgh") + 4
    data[place] ^= 1
    path.write_bytes(data)
    assert skipped(tmp_path, col("y") == "q") == ""
    assert skipped(tmp_path, (col("y") == "q") & (x == 20)) == "a"
    path.write_bytes(data[: len(data) // 2])
    assert skipped(tmp_path, x == 20) == ""


def test_damaged_names(tmp_path):
    """Rows without a name, or whose names cannot be read, know no file."""
    names = [None, "no number sign"]
    write_part(tmp_path, MINMAX, CELLS, names)
    assert Store(tmp_path).select(x == 20).skipped == [""]
    path = write_part(tmp_path / "n", MINMAX, CELLS, write_page_checksum=True, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[data.index(b"\x0d\0\0\0/data/a") + 4] ^= 1
    path.write_bytes(data)
    assert skipped(tmp_path / "n", x == 20) == ""


def test_other_types_of_cells(tmp_path):
    """An index whose cells have another shape says nothing."""
    for number, cells in enumerate(
        [
            pa.array([1, 2]),
            pa.array([{"min": 1}, {"min": 2}]),
            pa.array([{"min": 1, "max": 2, "mid": 3}] * 2),
            pa.array([[{"min": 1, "max": 2}]] * 2),
            pa.array([{"min": [1], "max": [2]}] * 2),
            lists(pa.int64(), [[1], [2]]),
        ]
    ):
        for name in ("minmax", "bloomfilter") if number == 5 else ("minmax", "valuelist", "bloomfilter"):
            folder = tmp_path / f"{number}{name}"
            write_part(folder, {"c": (name, "x")}, {"c": cells})
            assert skipped(folder, x == 20) == "", (number, name)


@pytest.mark.parametrize("damage", ["null", "cut", "flip", "other class", "text"])
def test_damaged_filters(tmp_path, damage):
    cell = build_cell(hash_texts([b"a"]), 300, 0.01)
    damaged = {
        "null": None,
        "cut": cell[:-1],
        "flip": cell[:310] + b"\x01" + cell[311:],
        "other class": cell.replace(b"BloomFilterImpl", b"BloomFilterOmpl"),
        "text": b"a",
    }[damage]
    write_part(tmp_path, {"c": ("bloomfilter", "x")}, {"c": pa.array([cell, damaged], pa.binary())})
    assert skipped(tmp_path, x == "q") == "a"
    assert skipped(tmp_path, x == 5) == "a"  # an integer among strings: no string is one
    assert skipped(tmp_path, x == "a") == ""


def test_random_damage(tmp_path):
    """Any flipped byte of a part gives a sound answer or an error of this package: file b has the value."""
    cells = {
        "c": bounds(pa.int64(), [(1, 5), (7, 9), (1, 2)]),
        "d": lists(pa.string(), [["a"], ["b"], []]),
        "e": pa.array([build_cell(hash_texts([b"a"]), 20, 0.01)] * 3, pa.binary()),
    }
    indexes = {"c": ("minmax", "x"), "d": ("valuelist", "y"), "e": ("bloomfilter", "z")}
    path = write_part(tmp_path, indexes, cells, write_page_checksum=True)
    whole = path.read_bytes()
    rng = np.random.default_rng(5)
    filters = (x == 20) | (col("y") == "q") | (col("z") == "q")
    for place in rng.integers(0, len(whole), 300).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with contextlib.suppress(numparq.ParquetError):
            Store(tmp_path).select(filters)


def test_own_metadata_survives_and_refuses_damage():
    own = OwnMetadata("data", "", 5)
    assert OwnMetadata.decode(own.encode()) == own or OwnMetadata.decode(own.encode()).changed == 5
    whole = json.loads(own.encode())
    for name in whole:
        for value in (None, 5, [], {}, "x", [5], "eJw="):
            found = OwnMetadata.decode(json.dumps({**whole, name: value}))
            if found is not None:
                assert found.pruned_files(np.array([0]), np.array([0])) is None
                assert all(record is None for record in found.records())
    assert OwnMetadata.decode("[" * 10_000) is None
    assert OwnMetadata.decode(None) is None
    assert OWN_KEY == "numparq.skipping"


def test_no_store(tmp_path):
    with pytest.raises(FileNotFoundError):
        Store(tmp_path / "nothing").select(x == 1)
    assert Store(tmp_path).select(x == 1).kept == []
    with pytest.raises(FileNotFoundError, match="no data-skipping store"):
        _ = Store(tmp_path).schema


@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["matching first", "matching last"])
@pytest.mark.parametrize("parts", ["one row group", "two row groups", "two parts"])
def test_a_file_of_several_rows_is_skipped_only_if_all_say_so(tmp_path, parts, order):
    """Rows with one id and different cells: a refresh beside another one, or a part that was copied."""
    data, folder = tmp_path / "data", tmp_path / "store"
    data.mkdir()
    numparq.to_parquet(pd.DataFrame({"x": [1, 5]}), data / "a.parquet")
    name = f"{data}/a.parquet#{(data / 'a.parquet').stat().st_mtime_ns // 10**6}"
    cells = [[(1, 5), (70, 90)][at] for at in order]  # the second is of another file
    if parts == "two parts":
        for at, cell in enumerate(cells):
            write_part(folder, MINMAX, {"c": bounds(pa.int64(), [cell])}, [name], name=f"part-{at}")
    else:
        options = {"row_group_size": 1} if parts == "two row groups" else {}
        write_part(folder, MINMAX, {"c": bounds(pa.int64(), cells)}, [name, name], **options)
    store = Store(folder)
    for value, may_match in ((5, True), (80, True), (30, False)):
        expected = [f"{data}/a.parquet"]
        assert store.select(x == value).kept == (expected if may_match else [])
        assert store.select(x == value, data).kept == (expected if may_match else [])
        assert numparq.read_parquet(data, filters=x == value, skipping=store)["x"].tolist() == [5] * (value == 5)
