"""`DatasetWriter` and partitioned `to_parquet`: layout, interoperability, file limits, existing data and errors."""

from __future__ import annotations

import datetime
import decimal
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.dataset.write.dataset_writer import DatasetWriter
from numparq.errors import SchemaError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
ds = pytest.importorskip("pyarrow.dataset")


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def folders(folder: Path) -> set[str]:
    return {name.rpartition("/")[0] for name in files(folder)}


def sample(num_rows: int = 60) -> pd.DataFrame:
    numbers = np.arange(num_rows)
    return pd.DataFrame(
        {
            "number": numbers,
            "city": np.array(["Wien", "Graz", "Linz/Ö 1"], object)[numbers % 3],
            "year": 2020 + numbers % 4,
            "object": [None if n % 7 == 0 else decimal.Decimal(n) / 4 for n in range(num_rows)],
            "kind": pd.Categorical.from_codes(numbers % 2, ["u", "v", "never"], ordered=True),
            "list": [[n] * (n % 3) if n % 5 else None for n in range(num_rows)],
        }
    )


# --- contents of the files --------------------------------------------------------------------------------------------


def test_directory_layout_equals_pyarrow(tmp_path):
    frame = sample().drop(columns="list")
    numparq.to_parquet(frame, tmp_path / "ours", partition_cols=["year", "city"])
    frame.to_parquet(tmp_path / "theirs", engine="pyarrow", partition_cols=["year", "city"])
    # non-ASCII characters are not escaped: Spark and Hive decode each escaped byte as one character
    expected = {name.replace("%C3%96", "Ö") for name in folders(tmp_path / "theirs")}
    assert folders(tmp_path / "ours") == expected
    assert len(files(tmp_path / "ours")) == 12


def test_non_ascii_partition_values(tmp_path):
    """Emoji, composed and decomposed characters and separators are not escaped; control characters are."""
    values = ["é", "e\u0301", "日本", "😀", "\u2028", "a\x85b", "ß/ß", "\x7f"]
    numparq.to_parquet(pd.DataFrame({"n": range(8), "key": values}), tmp_path / "a", partition_cols=["key"])
    texts = [*values[:5], "a%C2%85b", "ß%2Fß", "%7F"]
    assert folders(tmp_path / "a") == {f"key={text}" for text in texts}
    for read in (numparq.read_parquet, pd.read_parquet):
        got = read(tmp_path / "a").sort_values("n")
        assert got["key"].tolist() == values


@pytest.mark.parametrize("partition_cols", [["year"], ["city", "year"], ["kind"], "city"])
def test_pandas_reads_partitioned_dataset(tmp_path, partition_cols):
    frame = sample()
    frame.index = pd.MultiIndex.from_arrays([frame["number"] * 10, frame["city"]], names=["i", None])
    numparq.to_parquet(frame, tmp_path / "a", partition_cols=partition_cols)
    frame.to_parquet(tmp_path / "b", engine="pyarrow", partition_cols=partition_cols)
    ours, theirs = (pd.read_parquet(tmp_path / name, engine="pyarrow").sort_values("number") for name in "ab")
    pd.testing.assert_frame_equal(ours, theirs)


def test_all_files_have_types_of_whole_frame(tmp_path):
    frame = pd.DataFrame(
        {
            "key": [1, 1, 2, 2],
            "none here": [None, None, decimal.Decimal("1.5"), decimal.Decimal("12.25")],
            "lists": [None, None, [None], ["x"]],
            "floats": [1, 2, 2.5, 3],
        }
    ).astype({"floats": object})
    frame.index = pd.MultiIndex.from_arrays([[1, 2, None, 3]], names=["i"])
    numparq.to_parquet(frame, tmp_path, partition_cols=["key"])
    schemas = [pq.read_schema(tmp_path / name) for name in files(tmp_path)]
    assert len(schemas) == 2
    assert schemas[0].equals(schemas[1], check_metadata=True)
    assert schemas[0].field("none here").type == pa.decimal128(4, 2)


def test_types_hold_when_rows_are_split_in_steps(tmp_path, monkeypatch):
    monkeypatch.setattr("numparq.dataset.write.partition_frame._BYTES_AT_ONCE", 300)
    frame = sample()
    frame.index = pd.MultiIndex.from_arrays([frame["number"].where(frame["number"] > 30), frame["city"]])
    numparq.to_parquet(frame, tmp_path / "a", partition_cols=["city"])
    monkeypatch.undo()
    numparq.to_parquet(frame, tmp_path / "b", partition_cols=["city"])
    first, second = (pd.read_parquet(tmp_path / name, engine="pyarrow") for name in "ab")
    pd.testing.assert_frame_equal(first, second)
    assert len(files(tmp_path / "a")) == 3


def test_partition_rows_keep_their_order(tmp_path):
    frame = pd.DataFrame({"key": np.random.default_rng(1).integers(0, 5, 5000), "n": range(5000)})
    numparq.to_parquet(frame, tmp_path, partition_cols=["key"], max_rows_per_file=300)
    for key, group in frame.groupby("key"):
        names = [name for name in files(tmp_path) if name.startswith(f"key={key}/")]
        found = pd.concat([pq.ParquetFile(tmp_path / name).read().to_pandas() for name in names])
        assert found["n"].tolist() == group["n"].tolist()


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["a", "b/c d%=:", None], ["a", "b%2Fc%20d%25%3D%3A", "__HIVE_DEFAULT_PARTITION__"]),
        ([1.0, -0.0, 0.0], ["1", "-0", "0"]),
        ([1e-7, 9.99e-7, 1e-6], ["1e-7", "9.99e-7", "0.000001"]),
        ([9999999999.0, 1e10, np.nan], ["9999999999", "1e%2B10", "__HIVE_DEFAULT_PARTITION__"]),
        ([np.inf, -np.inf, 1.7976931348623157e308], ["inf", "-inf", "1.7976931348623157e%2B308"]),
        (np.array([0.1, 1 / 3, 16777216], np.float32), ["0.1", "0.33333334", "16777216"]),
        (np.array([0.1, 65504, 1], np.float16), ["0.0999755859375", "65504", "1"]),
        ([True, False, None], ["true", "false", "__HIVE_DEFAULT_PARTITION__"]),
        (np.array([0, 1, 2**64 - 1], np.uint64), ["0", "1", "18446744073709551615"]),
        (pd.array([1, None, -3], "Int64"), ["1", "__HIVE_DEFAULT_PARTITION__", "-3"]),
        (pd.Categorical([1, 3, 1], categories=[3, 2, 1]), ["1", "3", "1"]),
        (pd.Categorical([True, None, False]), ["true", "__HIVE_DEFAULT_PARTITION__", "false"]),
        (pd.Categorical([1e20, None, 0.5]), ["1e%2B20", "__HIVE_DEFAULT_PARTITION__", "0.5"]),
        (
            pd.Categorical(pd.to_datetime(["2020-01-01", None, "2021-01-01"]).as_unit("s")),
            ["2020-01-01%2000%3A00%3A00", "__HIVE_DEFAULT_PARTITION__", "2021-01-01%2000%3A00%3A00"],
        ),
        (
            pd.Categorical([datetime.date(2020, 1, 1), None, datetime.date(2021, 1, 1)]),
            ["2020-01-01", "__HIVE_DEFAULT_PARTITION__", "2021-01-01"],
        ),
        (pd.array(["x", None, "y"], "string[python]"), ["x", "__HIVE_DEFAULT_PARTITION__", "y"]),
        (
            [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), None],
            ["2020-02-29", "0001-01-01", "__HIVE_DEFAULT_PARTITION__"],
        ),
        (
            [datetime.time(1, 2, 3), datetime.time(23, 59, 59, 7), None],
            ["01%3A02%3A03.000000", "23%3A59%3A59.000007", "__HIVE_DEFAULT_PARTITION__"],
        ),
        (
            pd.to_datetime(["2020-01-01", None, "1969-12-31 23:59:59.5"], format="mixed").as_unit("ms"),
            ["2020-01-01%2000%3A00%3A00.000", "__HIVE_DEFAULT_PARTITION__", "1969-12-31%2023%3A59%3A59.500"],
        ),
        (
            pd.to_datetime(["2020-07-01"] * 3).as_unit("s").tz_localize("Europe/Vienna"),
            ["2020-06-30%2022%3A00%3A00Z"] * 3,
        ),
        (
            [decimal.Decimal("1.5"), decimal.Decimal("-0.25"), decimal.Decimal("1e20")],
            ["1.50", "-0.25", "100000000000000000000.00"],
        ),
    ],
)
def test_partition_values_are_formatted_like_pyarrow(tmp_path, values, texts):
    frame = pd.DataFrame({"key": values, "n": range(3)})
    numparq.to_parquet(frame, tmp_path / "ours", partition_cols=["key"])
    ours = tmp_path / "ours"
    found = {name: pq.ParquetFile(ours / name).read()["n"].to_pylist() for name in files(ours)}
    expected: dict[str, list[int]] = {}
    for n, text in enumerate(texts):
        expected.setdefault(f"key={text}", []).append(n)
    assert {name.split("/")[0]: rows for name, rows in found.items()} == expected
    frame.to_parquet(tmp_path / "theirs", engine="pyarrow", partition_cols=["key"])
    assert folders(tmp_path / "theirs") == set(expected)


@pytest.mark.parametrize("key", ["a b", "é%41", "x=y/z", "_k", ".k", "1"])
def test_partition_key_names_are_escaped(tmp_path, key):
    numparq.to_parquet(pd.DataFrame({key: ["x", "y"], "v": [1, 2]}), tmp_path, partition_cols=[key])
    found = ds.dataset(tmp_path, partitioning="hive").to_table().to_pylist()
    assert sorted(found, key=lambda row: row["v"]) == [{"v": 1, key: "x"}, {"v": 2, key: "y"}]


def test_non_string_column_labels(tmp_path):
    numparq.to_parquet(pd.DataFrame({0: [1, 2, 3], 1: [2, 1, 2]}), tmp_path, partition_cols=[1])
    assert folders(tmp_path) == {"1=1", "1=2"}
    assert pd.read_parquet(tmp_path, engine="pyarrow")[0].tolist() == [2, 1, 3]


# --- the index --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "index_names"),
    [
        (pd.RangeIndex(4), None),
        (pd.RangeIndex(10, 14), None),  # positions lose their meaning when rows are reordered
        (pd.RangeIndex(10, 14, name="n"), ["n"]),
        (pd.Index(list("abcd"), name="letter"), ["letter"]),
        (pd.Index([5, 6, 7, 8]), [None]),
    ],
)
def test_meaningful_index_is_kept(tmp_path, index, index_names):
    frame = pd.DataFrame({"key": [2, 1, 2, 1], "v": [1, 2, 3, 4]}, index=index)
    numparq.to_parquet(frame, tmp_path, partition_cols=["key"])
    found = pd.read_parquet(tmp_path, engine="pyarrow")
    assert found["v"].tolist() == [2, 4, 1, 3]
    if index_names is None:
        assert isinstance(found.index, pd.RangeIndex)
        assert found.index.equals(pd.RangeIndex(4))
    else:
        assert list(found.index.names) == index_names
        assert found.index.tolist() == [index[i] for i in (1, 3, 0, 2)]


@pytest.mark.parametrize(("index", "columns"), [(True, ["v", "__index_level_0__"]), (False, ["v"])])
def test_index_argument(tmp_path, index, columns):
    frame = pd.DataFrame({"key": [2, 1], "v": [1, 2]})
    numparq.to_parquet(frame, tmp_path, index=index, partition_cols=["key"])
    assert all(pq.read_schema(tmp_path / name).names == columns for name in files(tmp_path))


# --- file limits ------------------------------------------------------------------------------------------------------


def test_max_rows_per_file(tmp_path):
    numparq.to_parquet(pd.DataFrame({"n": range(25)}), tmp_path, max_rows_per_file=10, row_group_size=4)
    rows = [pq.ParquetFile(tmp_path / name) for name in files(tmp_path)]
    assert [file.metadata.num_rows for file in rows] == [10, 10, 5]
    assert rows[0].metadata.row_group(0).num_rows == 4
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path, engine="pyarrow"), pd.DataFrame({"n": range(25)}))


def test_max_bytes_per_file(tmp_path):
    frame = pd.DataFrame({"n": np.random.default_rng(1).integers(0, 2**60, 200_000)})
    numparq.to_parquet(frame, tmp_path, max_bytes_per_file=200_000)
    sizes = [(tmp_path / name).stat().st_size for name in files(tmp_path)]
    assert 7 <= len(sizes) <= 10
    assert max(sizes) < 220_000
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path, engine="pyarrow"), frame)


def test_consecutive_frames_share_files(tmp_path):
    with DatasetWriter(tmp_path, partition_cols=["key"], max_rows_per_file=5) as writer:
        for start in range(0, 30, 6):
            writer.write(pd.DataFrame({"key": [0, 1] * 3, "n": range(start, start + 6)}))
        assert files(tmp_path) == [name for name in files(tmp_path) if name.startswith(".")]
    found = pd.read_parquet(tmp_path, engine="pyarrow")
    assert found["n"].tolist() == [*range(0, 30, 2), *range(1, 30, 2)]
    assert len(files(tmp_path)) == 6


def test_number_of_open_partition_files_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("numparq.dataset.write.partition_files._MOST_OPEN", 3)
    with DatasetWriter(tmp_path, partition_cols=["key"]) as writer:
        for _ in range(2):
            writer.write(pd.DataFrame({"key": range(10), "n": range(10)}))
            assert sum(part.is_open for part in writer._spread._parts.values()) == 3
    assert len(files(tmp_path)) == 17


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_write_same_rows(tmp_path, threads):
    frame = sample(500)
    numparq.to_parquet(frame, tmp_path, partition_cols=["city", "year"], threads=threads)
    found = pd.read_parquet(tmp_path, engine="pyarrow").sort_values("number")
    assert found["object"].tolist() == frame["object"].tolist()


def test_empty_frame(tmp_path):
    numparq.to_parquet(sample(0), tmp_path / "a", partition_cols=["city"])
    assert os.listdir(tmp_path / "a") == ["_common_metadata"]
    numparq.to_parquet(sample(0), tmp_path / "b", partition_cols=[])
    (name,) = files(tmp_path / "b")
    assert pq.ParquetFile(tmp_path / "b" / name).metadata.num_rows == 0


# --- existing data ----------------------------------------------------------------------------------------------------


def write(folder: Path, keys: list, first: int, **options: object) -> None:
    frame = pd.DataFrame({"key": keys, "n": range(first, first + len(keys))})
    numparq.to_parquet(frame, folder, partition_cols=["key"], **options)


def rows(folder: Path) -> dict[str, list[int]]:
    table = ds.dataset(folder, partitioning="hive").to_table().to_pydict()
    found: dict[str, list[int]] = {}
    for key, n in zip(table["key"], table["n"], strict=True):
        found.setdefault(key, []).append(n)
    return found


def test_existing_files_raise(tmp_path):
    write(tmp_path / "a", ["x", "y"], 0)
    before = files(tmp_path)
    with pytest.raises(FileExistsError, match="has files already"):
        write(tmp_path / "a", ["x", "y"], 2)
    assert files(tmp_path) == before
    assert os.listdir(tmp_path / "a") == sorted(os.listdir(tmp_path / "a"))


@pytest.mark.parametrize("options", [{"append": True}, {"existing_data_behavior": "overwrite_or_ignore"}])
def test_append_keeps_existing_rows(tmp_path, options):
    for first in (0, 2, 4):
        write(tmp_path, ["x", "y"], first, **options)
    assert rows(tmp_path) == {"x": [0, 2, 4], "y": [1, 3, 5]}


def test_delete_matching_replaces_partitions(tmp_path):
    write(tmp_path, ["x", "y", None], 0)
    write(tmp_path, ["x", "y"], 3, append=True)
    write(tmp_path, ["y", None, "z"], 5, existing_data_behavior="delete_matching")
    assert rows(tmp_path) == {"x": [0, 3], "y": [5], None: [6], "z": [7]}
    assert set(os.listdir(tmp_path)) == {"key=x", "key=y", "key=z", "key=__HIVE_DEFAULT_PARTITION__"}


def test_delete_matching_without_partitions_replaces_all(tmp_path):
    for first in (0, 10):
        numparq.to_parquet(
            pd.DataFrame({"n": range(first, first + 5)}),
            tmp_path,
            partition_cols=[],
            existing_data_behavior="delete_matching",
        )
    assert pd.read_parquet(tmp_path, engine="pyarrow")["n"].tolist() == [10, 11, 12, 13, 14]


def test_files_of_other_writers_are_replaced(tmp_path):
    frame = pd.DataFrame({"key": ["a b", "é/="], "n": [1, 2]})
    for number, name in enumerate(["key=a%20b", "key=a b", "key=%C3%A9%2f%3d"]):
        (tmp_path / name).mkdir()
        frame[["n"]].to_parquet(tmp_path / name / f"{number}.parquet")
    numparq.to_parquet(frame, tmp_path, partition_cols=["key"], existing_data_behavior="delete_matching")
    assert rows(tmp_path) == {"a b": [1], "é/=": [2]}


def test_other_partition_columns_raise(tmp_path):
    write(tmp_path, ["x"], 0)
    before = files(tmp_path)
    for frame, columns in [
        ({"other": [1], "n": [1]}, ["other"]),
        ({"n": [1]}, []),
        ({"key": [1], "other": [1], "n": [1]}, ["key", "other"]),
    ]:
        with pytest.raises(SchemaError, match="partitioned by 'key'"):
            numparq.to_parquet(pd.DataFrame(frame), tmp_path, partition_cols=columns, append=True)
        assert files(tmp_path) == before


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        ({"k": [1], "v": [1]}, {"partition_cols": ["k", "v"]}, "all columns are partition columns"),
        ({"k": [1], "v": [1]}, {"partition_cols": ["z"]}, "no such column"),
        ({"k": [1], "v": [1]}, {"partition_cols": ["k", "k"]}, "named twice"),
        ({"k": ["", "a"], "v": [1, 2]}, {"partition_cols": ["k"]}, "empty string"),
        ({"k": ["__HIVE_DEFAULT_PARTITION__"], "v": [1]}, {"partition_cols": ["k"]}, "stands for null"),
        ({"k": ["\ud800"], "v": [1]}, {"partition_cols": ["k"]}, "Unicode|UTF-8"),
        ({"k": [b"a"], "v": [1]}, {"partition_cols": ["k"]}, "binary"),
        ({"k": [1j], "v": [1]}, {"partition_cols": ["k"]}, "cannot be partition values"),
        ({"k": [[1]], "v": [1]}, {"partition_cols": ["k"]}, "cannot be partition values"),
        ({"k": pd.to_timedelta([1], unit="s"), "v": [1]}, {"partition_cols": ["k"]}, "duration"),
        ({"k": [1, "a"], "v": [1, 2]}, {"partition_cols": ["k"]}, "different types"),
        ({"k": [1, True], "v": [1, 2]}, {"partition_cols": ["k"]}, "different types|bool"),
        ({"k": [1, 2], "v": [1, "a"]}, {"partition_cols": ["k"]}, "different types"),
        ({"": [1], "v": [1]}, {"partition_cols": [""]}, "needs a name"),
    ],
)
def test_invalid_partitioned_frames_raise(tmp_path, frame, options, message):
    frame = pd.DataFrame(
        {key: pd.Series(value, dtype=object if isinstance(value, list) else None) for key, value in frame.items()}
    )
    with pytest.raises(SchemaError, match=message):
        numparq.to_parquet(frame, tmp_path / "new" / "data", **options)
    assert os.listdir(tmp_path) == [], "no files or directories remain"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"existing_data_behavior": "append", "partition_cols": []},
            ValueError,
            "existing_data_behavior must be one of",
        ),
        ({"existing_data_behavior": "delete_matching"}, ValueError, "needs a dataset"),
        ({"existing_data_behavior": "delete_matching", "append": True, "partition_cols": []}, ValueError, "adds files"),
        ({"max_rows_per_file": 0}, ValueError, "at least 1"),
        ({"max_bytes_per_file": "1"}, TypeError, "must be an int"),
        ({"partition_cols": [], "compression": "zip"}, ValueError, "compression"),
        ({"partition_cols": ["a"], "storage_options": {"x": 1}}, ValueError, "storage_options"),
    ],
)
def test_invalid_arguments_raise(tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        numparq.to_parquet(pd.DataFrame({"a": [1], "b": [1]}), tmp_path / "new", **options)
    assert os.listdir(tmp_path) == []


def test_path_must_be_a_directory(tmp_path):
    with pytest.raises(ValueError, match="path must be a directory"):
        numparq.to_parquet(sample(), partition_cols=["year"])
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError, match="but is a file"):
        numparq.to_parquet(sample(), tmp_path / "file", partition_cols=["year"])


def test_frames_of_other_types_raise(tmp_path):
    with (
        pytest.raises(SchemaError, match="has INT64, the frame"),
        DatasetWriter(tmp_path, partition_cols=["k"]) as writer,
    ):
        writer.write(pd.DataFrame({"k": [1], "v": [1]}))
        writer.write(pd.DataFrame({"k": [2], "v": ["a"]}))
    with pytest.raises(SchemaError, match="earlier frames"), DatasetWriter(tmp_path, partition_cols=["k"]) as writer:
        writer.write(pd.DataFrame({"k": [1], "v": [1]}))
        writer.write(pd.DataFrame({"k": ["a"], "v": [1]}))
    assert os.listdir(tmp_path) == []


def test_schema_sets_types_of_partition_columns(tmp_path):
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02"]), "v": [1, 2]})
    numparq.to_parquet(frame, tmp_path, partition_cols=["day"], schema={"day": pa.date32(), "v": pa.int16()})
    assert folders(tmp_path) == {"day=2020-01-01", "day=2020-01-02"}
    assert pq.read_schema(tmp_path / files(tmp_path)[0]).field("v").type == pa.int16()


@pytest.mark.parametrize("partition_cols", [["year"], ["city", "year"], ["kind"], []])
@pytest.mark.parametrize("index", [None, "number", ["number", "city"], pd.RangeIndex(5, 65, name="r")])
def test_numparq_reads_partitioned_dataset_like_pandas(tmp_path, partition_cols, index):
    frame = sample()
    if isinstance(index, pd.RangeIndex):
        frame.index = index
    elif index:
        frame = frame.set_index(index, drop="city" not in index)
    numparq.to_parquet(frame, tmp_path, partition_cols=partition_cols)
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), pd.read_parquet(tmp_path, engine="pyarrow"))


def test_schema_selects_and_orders_columns(tmp_path):
    frame = pd.DataFrame({"b": [1, 2], "key": [1, 2], "a": [1.0, 2.0], "unnamed": [0, 0]})
    schema = pa.schema([("a", pa.float32()), ("key", pa.int64()), ("b", pa.int8())])
    numparq.to_parquet(frame, tmp_path, partition_cols=["key"], schema=schema)
    written = pq.read_schema(tmp_path / files(tmp_path)[0])
    assert written.remove_metadata() == pa.schema([("a", pa.float32()), ("b", pa.int8())])
    assert folders(tmp_path) == {"key=1", "key=2"}


def test_write_options_apply_to_every_file(tmp_path):
    numparq.to_parquet(
        sample(),
        tmp_path,
        partition_cols=["year"],
        compression={"number": "zstd"},
        row_group_size=6,
        key_value_metadata={"who": "we"},
        sorting_columns=["number"],
    )
    for name in files(tmp_path):
        found = pq.read_metadata(tmp_path / name)
        assert found.row_group(0).column(0).compression == "ZSTD"
        assert found.num_row_groups == 3
        assert found.metadata[b"who"] == b"we"
        assert found.row_group(0).sorting_columns[0].column_index == 0
    with pytest.raises(SchemaError, match="year"):  # not a column of the files
        numparq.to_parquet(sample(), tmp_path / "b", partition_cols=["year"], compression={"year": "zstd"})


def test_one_progress_bar_for_all_files(tmp_path, monkeypatch):
    shown = []

    class Display:
        def __init__(self, label):
            shown.append(label)

        def update(self, done, total, text):
            shown.append((done, total))

        def close(self):
            shown.append("closed")

    monkeypatch.setattr("numparq.util.progress._display_kind", lambda: Display)
    numparq.to_parquet(sample(), tmp_path, partition_cols=["year"], max_rows_per_file=5, progress=True)
    assert shown == ["writing", *((done, 60) for done in range(0, 65, 5)), "closed"]


def test_too_long_partition_names_raise(tmp_path):
    with pytest.raises(OSError, match="too long"):
        numparq.to_parquet(pd.DataFrame({"k": ["a", "x" * 300], "v": [1, 2]}), tmp_path / "new", partition_cols=["k"])
    assert os.listdir(tmp_path) == []


def test_duplicate_column_labels(tmp_path):
    frame = pd.DataFrame([[1, 2, 3], [4, 5, 6]], columns=["a", "b", "a"])
    numparq.to_parquet(frame, tmp_path / "b", partition_cols=["b"])
    assert pq.read_schema(tmp_path / "b" / files(tmp_path / "b")[0]).names == ["a", "a_1"]
    with pytest.raises(SchemaError, match="several columns"):
        numparq.to_parquet(frame, tmp_path / "a", partition_cols=["a"])


def test_partitioning_by_index_level_raises(tmp_path):
    with pytest.raises(SchemaError, match="reset_index"):
        numparq.to_parquet(sample().set_index("year"), tmp_path, partition_cols=["year"])


def test_polars_and_duckdb_read_partitioned_dataset(tmp_path):
    keys = ["a b", "c/d", "é", None, "a b"]
    numparq.to_parquet(pd.DataFrame({"key": keys, "n": range(5)}), tmp_path, partition_cols=["key"])
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    expected = list(zip(range(5), keys, strict=True))
    scanned = polars.scan_parquet(f"{tmp_path}/**/*.parquet", hive_partitioning=True).collect()
    assert scanned.sort("n").select("n", "key").rows() == expected
    query = f"SELECT n, key FROM read_parquet('{tmp_path}/**/*.parquet', hive_partitioning=true) ORDER BY n"
    assert duckdb.sql(query).fetchall() == expected


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_appended_frame_must_match_existing_files(tmp_path, keys):
    numparq.to_parquet(pd.DataFrame({"k": [1, 2], "a": [1, 2]}), tmp_path, partition_cols=keys)
    before = numparq.read_parquet(tmp_path)
    names = files(tmp_path)
    with pytest.raises(numparq.SchemaError, match="do not form one table with the existing ones"):
        numparq.to_parquet(pd.DataFrame({"k": [1], "a": ["x"]}), tmp_path, partition_cols=keys, append=True)
    assert files(tmp_path) == names
    pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path), before)
    more = pd.DataFrame({"k": [1], "a": pd.array([3], "int8"), "b": ["new"]})
    numparq.to_parquet(more, tmp_path, partition_cols=keys, append=True)
    assert sorted(numparq.read_parquet(tmp_path)["a"]) == [1, 2, 3]


EMPTY = {
    "frame": pd.DataFrame(
        {
            "k": pd.array([], "int64"),
            "id": pd.array([], "int64"),
            "x": pd.array([], "float32"),
            "t": pd.array([], "datetime64[ns]"),
            "s": pd.array([], "str"),
        }
    ),
    "index": pd.DataFrame({"k": pd.array([], "int8"), "x": pd.array([], "bool")}, pd.Index([], "int64", name="i")),
}


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("is_remote", [False, True])
def test_partitioned_frame_without_rows_comes_back_with_its_columns(name, is_remote, tmp_path):
    if is_remote:
        pytest.importorskip("fsspec")
    frame, folder = EMPTY[name], f"memory://{tmp_path}/d" if is_remote else str(tmp_path / "d")
    key = frame.columns[0]
    expected = frame[[*frame.columns[1:], key]]  # partition columns come last
    for options in ({}, {"append": True}, {"existing_data_behavior": "delete_matching"}, {"write_metadata_file": True}):
        numparq.to_parquet(frame, folder, partition_cols=[key], **options)
        pd.testing.assert_frame_equal(numparq.read_parquet(folder), expected, check_index_type=name == "index")
    with numparq.Dataset(folder) as dataset:
        assert (dataset.count_rows(), dataset.files) == (0, [])
        assert [list(batch.columns) for batch in dataset.iter_batches()] == [list(expected.columns)]
    values = {"str": "a", "datetime64[ns]": pd.Timestamp(1)}
    columns = {label: pd.array([values.get(str(dtype), 1)], dtype) for label, dtype in frame.dtypes.items()}
    full = pd.DataFrame(columns, pd.Index([5], "int64", name=frame.index.name))
    numparq.to_parquet(full, folder, partition_cols=[key], append=True)
    numparq.to_parquet(frame, folder, partition_cols=[key], append=True)
    found = numparq.read_parquet(folder)
    assert list(found.columns) == list(expected.columns)
    assert (len(found), str(found[key].dtype)) == (1, "category")
    with numparq.Dataset(folder) as dataset:
        assert len(dataset.files) == 1
        assert dataset.partition_keys == (str(key),)


def test_arrow_table_without_rows_comes_back_with_its_columns(tmp_path):
    table = pa.table({"k": pa.array([], pa.int8()), "a": pa.array([], pa.list_(pa.int32()))})
    numparq.to_parquet(table, tmp_path / "d", partition_cols=["k"])
    assert numparq.Dataset(tmp_path / "d").to_arrow().schema.equals(table.select(["a", "k"]).schema)
    schema = pq.read_schema(tmp_path / "d" / "_common_metadata")
    assert pq.read_table(tmp_path / "d", schema=schema).schema.equals(schema)
