"""Typical mistakes of a first use, writing: the exception and its exact message, which says what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import ParquetWriter, SchemaError, to_parquet
from numparq.dataset.write.dataset_writer import DatasetWriter

FRAME = pd.DataFrame({"a": [1, 2, 3], "text": ["x", "y", None], "flag": [True, False, True]})
CODECS = "none, uncompressed, snappy, gzip, brotli, zstd, lz4, lz4_raw, lz4_hadoop, or None"
FLAGS = "must be True, False, or a list or dict of columns, not"
UNEXPECTED = "to_parquet() got an unexpected keyword argument "
NO_TEXT = "which is not UTF-8, as Parquet requires; encode it as text, such as base64"
KEY_VALUES = "key_value_metadata must be a dict of str to str or bytes"

# Arguments of to_parquet(FRAME, None, ...) -> exception and its text before the location.
WRITES = [
    (
        {"compression": "zstd:3"},
        ValueError,
        f"compression 'zstd:3' is not one of {CODECS}; use compression='zstd', compression_level=3",
    ),
    ({"compression": "ZTSD"}, ValueError, f"compression 'ZTSD' is not one of {CODECS}; did you mean 'zstd'?"),
    (
        {"compression": ["zstd"]},
        TypeError,
        "compression must be the name of a codec, None or a dict of these by column, not ['zstd']",
    ),
    (
        {"compression": {"Text": "zstd"}},
        SchemaError,
        "compression names the column 'Text', which does not exist; did you mean 'text'?",
    ),
    (
        {"compression_level": 3},
        ValueError,
        "compression_level=3 needs compression='gzip', 'brotli' or 'zstd', not 'snappy', which has no levels",
    ),
    (
        {"compression": "zstd", "compression_level": "3"},
        TypeError,
        "compression_level must be an int, None or a dict of these by column, not '3'",
    ),
    (
        {"compression": "zstd", "compression_level": 99},
        ValueError,
        "the compression level of ZSTD must be from -22 to 22, not 99",
    ),
    ({"index": "a"}, TypeError, "index must be True, False or None, not 'a'"),
    (
        {"partition_cols": ["a"]},
        ValueError,
        "partitions and size limits need many files; path must be a directory, not None",
    ),
    ({"row_group_size": "1"}, TypeError, "row_group_size must be an int, not '1'"),
    ({"data_page_version": "3.0"}, ValueError, "data_page_version must be '1.0' or '2.0', not '3.0'"),
    ({"use_dictionary": "a"}, TypeError, f"use_dictionary {FLAGS} 'a'; use ['a'] for one column"),
    ({"write_statistics": 1}, TypeError, f"write_statistics {FLAGS} 1"),
    ({"use_dictionary": {"a": "no"}}, TypeError, "use_dictionary['a'] must be True or False, not 'no'"),
    ({"write_page_index": "a"}, TypeError, "write_page_index must be True or False, not 'a'"),
    ({"store_schema": 1}, TypeError, "store_schema must be True or False, not 1"),
    ({"append": "yes"}, TypeError, "append must be True or False, not 'yes'"),
    (
        {"column_encoding": ["PLAIN"]},
        TypeError,
        "column_encoding must be the name of an encoding, None or a dict of these by column, not ['PLAIN']",
    ),
    (
        {"use_byte_stream_split": ["text"]},
        ValueError,
        "column 'text' of physical type binary cannot be written in encoding BYTE_STREAM_SPLIT",
    ),
    ({"bloom_filter_options": {"flag": True}}, SchemaError, "a BOOLEAN column cannot have a Bloom filter"),
    (
        {"bloom_filter_options": {"a": {"fpp": "low"}}},
        TypeError,
        "fpp, the false positive rate, must be a number between 0 and 1, not 'low'",
    ),
    (
        {"bloom_filter_options": {"a": {"ndv": 1.5}}},
        TypeError,
        "ndv, the number of distinct values, must be an int, not 1.5",
    ),
    (
        {"sorting_columns": "a"},
        TypeError,
        "sorting_columns must be a list of columns, not 'a'; use ['a'] for one column",
    ),
    (
        {"sorting_columns": ["A"]},
        SchemaError,
        "sorting_columns names the column 'A', which does not exist; did you mean 'a'?",
    ),
    (
        {"sorting_columns": [1]},
        TypeError,
        "sorting_columns must hold names or tuples (name, descending, nulls_first), not 1",
    ),
    (
        {"sorting_columns": [("a", "down")]},
        TypeError,
        "descending of sorting_columns must be True or False, not 'down'",
    ),
    ({"key_value_metadata": "a"}, TypeError, f"{KEY_VALUES}, not 'a'"),
    ({"key_value_metadata": {1: "a"}}, TypeError, f"{KEY_VALUES}, but has 1: 'a'"),
    ({"key_value_metadata": {"a": 1}}, TypeError, f"{KEY_VALUES}, but has 'a': 1"),
    ({"key_value_metadata": {"a": b"\xff"}}, ValueError, r"key_value_metadata has b'\xff' in 'a', " + NO_TEXT),
    ({"key_value_metadata": {"a": "\ud800"}}, ValueError, r"key_value_metadata has '\ud800' in 'a', " + NO_TEXT),
    ({"key_value_metadata": {"\ud800": ""}}, ValueError, r"key_value_metadata has '\ud800' in '\ud800', " + NO_TEXT),
    (
        {"compresion": "zstd"},
        TypeError,
        f"{UNEXPECTED}'compresion'; did you mean 'compression' or 'compression_level'?",
    ),
    (
        {"coerce_timestamps": "ms"},
        TypeError,
        f"{UNEXPECTED}'coerce_timestamps'; convert the columns with "
        '.astype("datetime64[ms]") first, or use schema={...}',
    ),
    ({"preserve_index": False}, TypeError, f"{UNEXPECTED}'preserve_index'; use index"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), WRITES, ids=lambda value: None)
def test_writes(arguments, kind, message):
    with pytest.raises(kind) as raised:
        to_parquet(FRAME, None, **arguments)
    assert getattr(raised.value, "message", str(raised.value)) == message


@pytest.mark.parametrize(
    ("data", "kind"), [([1], "list"), (None, "NoneType"), (FRAME["a"], "pandas.Series; call its to_frame() first")]
)
def test_data_that_is_no_table(data, kind, tmp_path):
    message = f"df must be a pandas.DataFrame, or Arrow data such as a polars.DataFrame, not {kind}"
    for target in ({"path": None}, {"path": tmp_path / "d", "partition_cols": ["a"]}):
        with pytest.raises(TypeError) as raised:
            to_parquet(data, **target)
        assert str(raised.value) == message


def test_writers_refuse_wrong_options_before_they_write(tmp_path):
    with pytest.raises(TypeError, match=r"ParquetWriter\(\) got an .* 'compresion'; did you mean 'compression'"):
        ParquetWriter(tmp_path / "x.parquet", compresion="zstd")
    with pytest.raises(ValueError, match="did you mean 'zstd'"):
        DatasetWriter(tmp_path / "x", compression="ztsd", compression_level=3)
    with pytest.raises(TypeError, match="partition_cols must be a list of labels, not 1"):
        DatasetWriter(tmp_path / "x", partition_cols=1)
    with pytest.raises(SchemaError, match="no such column to partition by; did you mean 'text'"):
        to_parquet(FRAME, tmp_path / "x", partition_cols=["Text"])
    assert not list(tmp_path.glob("*.parquet"))


def test_one_level_applies_to_the_codecs_that_have_levels():
    data = to_parquet(FRAME, None, {"a": "zstd", "text": "snappy"}, compression_level=3)
    assert [str(chunk.meta_data.codec) for chunk in numparq.ParquetFile(data).metadata.row_groups[0].columns] == [
        "ZSTD",
        "SNAPPY",
        "SNAPPY",
    ]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (FRAME.assign(a=FRAME["a"] + 0.5), "row 0: 1.5 does not fit int64; convert the column, or begin the file with"),
        (FRAME.assign(a=FRAME["a"].astype(str)), "the file has INT64, the frame BYTE_ARRAY STRING; convert the column"),
        (FRAME.drop(columns="flag"), "the file has the column 'flag', but the frame does not"),
        (
            FRAME.set_axis(["x", "y", "z"]),
            "the frame has the column '__index_level_0__', but the file does not; use index=False, or the same index",
        ),
        (
            FRAME.assign(text=FRAME["text"].astype(object).map(lambda text: [text])),
            "the file has BYTE_ARRAY STRING, the frame a group LIST; convert",
        ),
    ],
)
def test_frames_with_other_columns_name_the_difference(second, message):
    with ParquetWriter(None) as writer:
        writer.write(FRAME)
        with pytest.raises(SchemaError) as raised:
            writer.write(second)
    assert raised.value.message.startswith(message)


def test_difference_inside_a_nested_column():
    lists = [pd.DataFrame({"l": [{"x": np.int64(1), "y": 2}]}), pd.DataFrame({"l": [{"x": 1.5, "y": 2}]})]
    with ParquetWriter(None) as writer:
        writer.write(lists[0])
        with pytest.raises(SchemaError, match=r"1\.5 is not a whole number .*; convert .*column 'l\.x'\)"):
            writer.write(lists[1])


def test_home_directory_and_file_urls(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for path in ("~/x.parquet", f"file:{tmp_path}/x.parquet", f"file://{tmp_path}/x.parquet"):
        to_parquet(FRAME, path, append=path != "~/x.parquet")
        to_parquet(FRAME, path, append=True)
    assert len(numparq.read_parquet(tmp_path / "x.parquet")) == 18
    for path in ("~/x.parquet", f"file:{tmp_path}/x.parquet"):
        assert len(numparq.ParquetFile(path, external_files=True).read()) == len(numparq.read_parquet(path)) == 18
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="path is a directory; name a file in it"):
        to_parquet(FRAME, "~/folder")
