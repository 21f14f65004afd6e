"""Profiles of datasets: each statistic against the decoded data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError, ParquetError, SchemaError
from numparq.tools.profile.job import profile_files
from support.typed_tables import WRITERS, leaves, table

pa = pytest.importorskip("pyarrow")
import pyarrow.compute as pc  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

MODES = ["auto", True]


def expected_statistics(values: pa.Array, num_values: int) -> dict:
    """Return the null count, NaN count, distinct count and bounds."""
    nans = 0
    items = values.to_pylist()
    if pa.types.is_floating(values.type):
        floats = np.array(items, np.float64)
        nans = int(np.isnan(floats).sum())
        items = (floats[~np.isnan(floats)] + 0.0).tolist()
    if pa.types.is_time(values.type):
        items = [
            pd.Timedelta(hours=t.hour, minutes=t.minute, seconds=t.second, microseconds=t.microsecond) for t in items
        ]
    if pa.types.is_timestamp(values.type):
        items = [pd.Timestamp(item) for item in items]
    found = {"nulls": num_values - len(values), "nans": nans, "distinct": len(set(items)), "num_values": num_values}
    return found | {"min": min(items, default=None), "max": max(items, default=None)}


def check(folder: Path, tables: list[pa.Table], data: bool | str) -> None:
    """Compare a profile with the tables in a folder."""
    found = profile_files(folder, data=data)
    whole = pa.concat_tables(tables)
    assert found.num_rows == len(whole)
    assert not found.troubles
    names = []
    for name in whole.column_names:
        for path, (values, num_values) in leaves(whole[name], name).items():
            column, expected = found[path], expected_statistics(values, num_values)
            names.append(path)
            context = path, data, column
            assert column.num_values == expected["num_values"], context
            assert column.nulls == expected["nulls"], context
            assert column.nans == expected["nans"], context
            check_distinct(column, expected["distinct"], data)
            check_bounds(column, expected["min"], expected["max"], data)
    assert [column.name for column in found] == names
    json.dumps(found.to_dict())
    assert list(found.to_pandas().index) == names


def check_distinct(column: object, distinct: int, data: bool | str) -> None:
    context = column, distinct
    assert column.distinct_at_least <= distinct <= column.distinct_at_most, context
    if column.distinct_kind == "exact":
        assert column.distinct == distinct, context
    elif column.distinct_kind == "dictionary":
        assert column.distinct == distinct, context  # dictionaries of these writers have no unused entries
        assert data == "auto"
    else:
        assert column.distinct_kind == "estimate", context
        assert abs(column.distinct - distinct) <= 0.06 * distinct, context
    if distinct <= 1000:
        assert column.distinct_kind != "estimate", context


def check_bounds(column: object, low: object, high: object, data: bool | str) -> None:
    context = column, low, high
    if low is None:
        assert column.min is None, context
        assert column.max is None, context
        return
    assert column.min == low if column.min_exact else column.min is not None and column.min <= low, context
    assert column.max == high if column.max_exact else column.max is not None and column.max >= high, context
    if data is True:
        assert column.min_exact, context
        assert column.max_exact, context


@pytest.mark.parametrize("data", MODES)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(3))
def test_profile_equals_data(tmp_path: Path, writer: str, seed: int, data: bool | str) -> None:
    rng = np.random.default_rng(seed)
    tables = [table(seed * 10 + at, int(rng.integers(1, 600))) for at in range(3)]
    if writer == "pyarrow, INT96":
        tables = [rows.drop_columns(["utc"]) for rows in tables]
    for at, rows in enumerate(tables):
        WRITERS[writer](rows, tmp_path / f"{at}.parquet", rng)
    check(tmp_path, tables, data)


def test_profile_of_footers_claims_only_what_is_certain(tmp_path: Path) -> None:
    tables = [table(at) for at in range(3)]
    for at, rows in enumerate(tables):
        WRITERS["numparq"](rows, tmp_path / f"{at}.parquet", np.random.default_rng(at))
    found, whole = profile_files(tmp_path, data=False), pa.concat_tables(tables)
    for name in whole.column_names:
        for path, (values, num_values) in leaves(whole[name], name).items():
            column, expected = found[path], expected_statistics(values, num_values)
            assert column.nulls in (None, expected["nulls"])
            assert column.nans in (None, expected["nans"])
            assert column.distinct in (None, expected["distinct"])
            assert column.distinct_at_least <= expected["distinct"] <= column.distinct_at_most
            assert column.read == 0
            if column.min is not None:
                assert column.min <= expected["min"]
                assert column.max >= expected["max"]
    assert found["flag"].distinct == 2
    assert (found["one"].distinct, found["one"].distinct_kind) == (1, "exact")
    assert (found["nothing"].distinct, found["nothing"].nulls) == (0, len(whole))
    assert found["i64"].distinct is None


def test_sizes_encodings_and_codecs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"n": np.arange(1000), "s": rng.choice(["a", "b"], 1000), "x": rng.random(1000)})
    for at, codec in enumerate(["snappy", "zstd"]):
        numparq.to_parquet(
            frame,
            tmp_path / f"{at}.parquet",
            row_group_size=500,
            compression=codec,
            bloom_filter_options={"s": True},
            max_rows_per_page=100,
        )
    found = profile_files(tmp_path, data=False)
    files = [pq.ParquetFile(tmp_path / f"{at}.parquet").metadata for at in range(2)]
    chunks = [file.row_group(g).column(c) for file in files for g in range(2) for c in range(3)]
    assert (found.num_files, found.num_row_groups, found.num_rows) == (2, 4, 2000)
    assert found.size == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert found.compressed == sum(chunk.total_compressed_size for chunk in chunks)
    assert found.uncompressed == sum(chunk.total_uncompressed_size for chunk in chunks)
    for index, name in enumerate("nsx"):
        own_chunks = chunks[index::3]
        assert found[name].compressed == sum(chunk.total_compressed_size for chunk in own_chunks)
        assert found[name].uncompressed == sum(chunk.total_uncompressed_size for chunk in own_chunks)
        assert found[name].share == pytest.approx(found[name].compressed / found.compressed)
        assert found[name].codecs == {"SNAPPY": 2, "ZSTD": 2}
        assert (found[name].chunks, found[name].with_statistics) == (4, 4)
        assert (found[name].with_column_index, found[name].with_offset_index) == (4, 4)
        assert found[name].pages == 20
    assert found["s"].dictionary_share == 1.0
    assert found["s"].with_bloom == 4
    assert found["s"].bloom_bytes > 4 * 32
    assert found["s"].page_encodings == {"RLE_DICTIONARY": 20}
    assert found["s"].mean_length == 1.0
    assert found["x"].dictionary_share == 0.0
    assert found.writers == {f"numparq version {numparq.__version__}": 2} or len(found.writers) == 1


def test_lengths_and_order_of_the_data(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "up": np.arange(300),
            "down": -np.arange(300),
            "text": [f"{n:03d}" * (n % 3 + 1) for n in range(300)],
            "coded": np.repeat(["a", "b", "c"], 100),
            "mixed": np.tile(["a", "b", "c"], 100),
        }
    )
    numparq.to_parquet(frame, tmp_path / "a.parquet", row_group_size=100, max_rows_per_page=10)
    found = profile_files(tmp_path, data=True)
    assert (found["text"].min_length, found["text"].max_length) == (3, 9)
    assert found["text"].mean_length == pytest.approx(frame["text"].str.len().mean())
    assert (found["up"].rows_in_order, found["up"].rows_out_of_order) == (3, 0)
    assert (found["down"].rows_in_order, found["down"].rows_out_of_order) == (0, 3)
    assert (found["coded"].rows_in_order, found["mixed"].rows_in_order) == (3, 0)
    assert (found["up"].pages_in_order, found["down"].pages_in_order) == (3, 3)
    assert (found["up"].files_in_order, found["down"].files_in_order, found["mixed"].files_out_of_order) == (1, 1, 1)
    assert found["up"].order == "rows in order, pages in order, row groups in order"


def test_declared_order(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": np.arange(20), "b": 1})
    numparq.to_parquet(
        frame, tmp_path / "a.parquet", row_group_size=10, sorting_columns=[pq.SortingColumn(0, descending=False)]
    )
    found = profile_files(tmp_path)
    assert found.sorted_by == {"a": 2}
    assert (found["a"].declared, found["b"].declared) == (2, 0)


# --- unreliable metadata ----------------------------------------------------------------------------------------------


def with_writer(path: Path, name: str) -> None:
    """Replace `created_by` in a file's footer by another name that is not longer."""
    data = path.read_bytes()
    own = pq.ParquetFile(path).metadata.created_by
    assert len(name) <= len(own)
    path.write_bytes(data.replace(own.encode(), name.ljust(len(own)).encode()))


def test_statistics_of_writers_with_known_bugs_are_not_used(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": ["b", "a", "d"], "n": [3, 1, 2]})
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path)
    with_writer(path, "parquet-mr version 1.7.0")
    found = profile_files(tmp_path, data=False)
    assert found["s"].min is None
    assert found["s"].max is None
    assert any("PARQUET-251" in bug for bug in found["s"].distrusted)
    assert (found["n"].min, found["n"].max) == (1, 3)
    assert any("PARQUET-251" in line for line in found.advice)
    found = profile_files(tmp_path, data="auto")
    assert (found["s"].min, found["s"].max, found["s"].min_exact, found["s"].read) == ("a", "d", False, 0)
    pq.write_table(pa.Table.from_pandas(frame), path, use_dictionary=False)
    with_writer(path, "parquet-mr version 1.7.0")
    found = profile_files(tmp_path, data="auto")
    assert (found["s"].min, found["s"].max, found["s"].min_exact, found["s"].read) == ("a", "d", True, 1)


def test_null_counts_of_writers_with_known_bugs_are_recounted(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array([1, None, 3])}), path)
    with_writer(path, "polars")
    assert profile_files(tmp_path, data=False)["n"].nulls is None
    assert profile_files(tmp_path, data="auto")["n"].nulls == 1


def test_truncated_bounds_are_not_exact(tmp_path: Path) -> None:
    texts = ["a" * 100 + "x", "b" * 100 + "y"]
    numparq.to_parquet(pd.DataFrame({"s": texts}), tmp_path / "a.parquet")
    found = profile_files(tmp_path, data=False)["s"]
    assert not found.min_exact
    assert not found.max_exact
    assert found.min <= texts[0]
    assert found.max >= texts[1]
    assert len(found.min) < 100
    found = profile_files(tmp_path, data=True)["s"]
    assert (found.min, found.max, found.min_exact, found.max_exact) == (*texts, True, True)


def test_unused_dictionary_entries(tmp_path: Path) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 2, 2], pa.int32()), pa.array(["a", "unused", "c", "more"]))
    pq.write_table(pa.table({"s": coded}), tmp_path / "a.parquet")
    found = profile_files(tmp_path, data="auto")["s"]
    assert (found.distinct, found.distinct_kind) == (4, "dictionary")
    assert found.distinct_at_least <= 2 <= found.distinct_at_most
    found = profile_files(tmp_path, data=True)["s"]
    assert (found.distinct, found.distinct_kind, found.min, found.max) == (2, "exact", "a", "c")


def test_statistics_that_contradict_the_data_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"n": pa.array([1, 2, 77777])}), path, use_dictionary=False, compression="none")
    stored = np.array([1, 2, 77777]).tobytes()
    before, after = path.read_bytes().split(stored)
    wrong = [part.replace(np.int64(77777).tobytes(), np.int64(5).tobytes()) for part in (before, after)]
    path.write_bytes(stored.join(wrong))
    found = profile_files(tmp_path, data=True)
    assert found["n"].max == 77777
    assert found.damaged_files == 1
    assert "outside the bounds" in found.troubles[0]


# --- different and damaged files --------------------------------------------------------------------------------------


def test_integers_of_different_widths_share_a_value_kind(tmp_path: Path) -> None:
    for at, dtype in enumerate(["int8", "int32", "uint32", "int64"]):
        numparq.to_parquet(pd.DataFrame({"n": np.array([1, 2, 3 + at], dtype)}), tmp_path / f"{at}.parquet")
    found = profile_files(tmp_path)["n"]
    assert (found.distinct, found.min, found.max) == (6, 1, 6)
    assert len(found.logical) >= 1
    assert len(found.physical) == 2


def test_columns_of_different_value_kinds_have_no_bounds(tmp_path: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"n": [1, 2]}), tmp_path / "a.parquet")
    numparq.to_parquet(pd.DataFrame({"n": ["x", None]}), tmp_path / "b.parquet")
    profile = profile_files(tmp_path)
    found = profile["n"]
    assert (found.min, found.distinct, found.nulls, found.lookup.row_groups) == (None, None, 1, 1.0)
    assert any("has several types" in line for line in profile.advice)


def test_columns_missing_in_some_files(tmp_path: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"a": [1, 2]}), tmp_path / "a.parquet")
    numparq.to_parquet(pd.DataFrame({"a": [3], "b": ["x"]}), tmp_path / "b.parquet")
    found = profile_files(tmp_path)
    assert [column.name for column in found] == ["a", "b"]
    assert (found["a"].num_values, found["b"].num_values) == (3, 1)
    assert found["b"].lookup.files == pytest.approx(0.5)


def test_damaged_files_are_counted_and_reported(tmp_path: Path) -> None:
    for at in range(3):
        numparq.to_parquet(pd.DataFrame({"a": [at]}), tmp_path / f"{at}.parquet")
    (tmp_path / "1.parquet").write_bytes(b"nothing of the sort")
    found = profile_files(tmp_path)
    assert (found.num_files, found.num_rows, found.damaged_files) == (3, 2, 1)
    assert "1.parquet" in found.troubles[0]
    assert found["a"].max == 2
    with pytest.raises(InvalidFileError, match=r"1\.parquet"):
        profile_files(tmp_path, strict=True)


@pytest.mark.parametrize("damaged", [False, True])
def test_files_of_zero_bytes_are_no_part_of_the_dataset(tmp_path: Path, damaged: bool) -> None:
    numparq.to_parquet(pd.DataFrame({"a": [1, 2]}), tmp_path / "1.parquet")
    for name in ("0.parquet", "2.parquet"):
        (tmp_path / name).touch()
    if damaged:
        (tmp_path / "3.parquet").write_bytes(b"nothing of the sort")
    found = profile_files(tmp_path)
    assert (found.num_files, found.num_rows, found.damaged_files) == (1 + damaged, 2, damaged)
    assert found.smallest_file > 0
    named = profile_files([tmp_path / "1.parquet", tmp_path / "0.parquet"])
    assert (named.num_files, named.damaged_files) == (2, 1)
    with pytest.raises(InvalidFileError, match=r"0 bytes.*2\.parquet"):
        profile_files(tmp_path / "2.parquet", strict=True)


def test_damaged_pages_are_reported_with_their_location(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    numparq.to_parquet(pd.DataFrame({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3]}), path, compression=None)
    data = bytearray(path.read_bytes())
    at = data.find(np.float64(2.5).tobytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))
    found = profile_files(tmp_path, data=True)
    assert found.damaged_files == 1
    assert found["b"].distinct == 3
    assert "row group 0" in found.troubles[0]
    assert "'a'" in found.troubles[0]
    assert found["a"].distinct is None
    assert found["a"].max == 3.5
    with pytest.raises(ParquetError, match="row group 0"):
        profile_files(tmp_path, data=True, strict=True)


def test_all_files_damaged(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    found = profile_files(tmp_path, columns=["x"])
    assert (found.num_rows, found.damaged_files, found.columns) == (0, 1, ())
    assert "a.parquet" in str(found)


def test_files_without_rows(tmp_path: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"a": pd.array([], "int64"), "s": pd.array([], "str")}), tmp_path / "a.parquet")
    for data in ("auto", True, False):
        found = profile_files(tmp_path, data=data)
        assert (found.num_rows, found["a"].num_values, found["a"].distinct, found["a"].min) == (0, 0, 0, None)
        assert str(found)
        assert found._repr_html_()


# --- selected columns, partitions and files ---------------------------------------------------------------------------


def sales(folder: Path) -> None:
    frame = pd.DataFrame(
        {
            "year": np.repeat([2023, 2024], 6),
            "shop": ["x", "y", None] * 4,
            "sold": np.arange(12),
            "s": [{"a": n, "b": {"c": str(n)}} for n in range(12)],
        }
    )
    numparq.to_parquet(frame, folder, partition_cols=["year", "shop"])


def test_partition_columns(tmp_path: Path) -> None:
    sales(tmp_path)
    found = profile_files(tmp_path)
    year, shop = found["year"], found["shop"]
    assert (year.is_partition, year.distinct, year.min, year.max, year.nulls) == (True, 2, 2023, 2024, 0)
    assert (shop.distinct, shop.min, shop.max, shop.nulls, shop.num_values) == (2, "x", "y", 4, 12)
    assert year.lookup.files == 0.5
    assert year.lookup.row_groups == 0.5
    assert [column.name for column in found][-2:] == ["year", "shop"]


def test_where_selects_partitions(tmp_path: Path) -> None:
    sales(tmp_path)
    for where in (numparq.col("year") == 2024, [("year", "=", 2024)], "year = 2024"):
        found = profile_files(tmp_path, where=where)
        assert (found.num_rows, found["sold"].min, found["year"].distinct) == (6, 6, 1)
    with pytest.raises(ValueError, match="not 'sold'"):
        profile_files(tmp_path, where="year = 2024 and sold > 3")


def test_selected_groups_include_all_leaves(tmp_path: Path) -> None:
    sales(tmp_path)

    def names(*expected: object) -> list[str]:
        return [column.name for column in profile_files(tmp_path, list(expected), data=False)]

    assert names("sold", "year") == ["sold", "year"]
    assert names("s") == ["s.a", "s.b.c"]
    assert names("s.b") == ["s.b.c"]
    assert names(("s", "a")) == ["s.a"]
    with pytest.raises(SchemaError, match="nowhere"):
        names("nowhere")
    with pytest.raises(TypeError, match="not one name"):
        profile_files(tmp_path, "sold")
    with pytest.raises(ValueError, match="'some'"):
        profile_files(tmp_path, data="some")


def test_profile_of_one_file_globs_and_lists(tmp_path: Path) -> None:
    for at in range(3):
        numparq.to_parquet(pd.DataFrame({"a": [at]}), tmp_path / f"{at}.parquet")
    assert profile_files(tmp_path / "1.parquet")["a"].max == 1
    assert profile_files(str(tmp_path / "[01].parquet"))["a"].max == 1
    assert profile_files([tmp_path / "0.parquet", tmp_path / "2.parquet"]).num_rows == 2
    with pytest.raises(FileNotFoundError):
        profile_files(tmp_path / "none")


def test_distinct_count_agrees_with_arrow(tmp_path: Path) -> None:
    values = pa.array(np.random.default_rng(3).integers(0, 50_000, 100_000))
    numparq.to_parquet(pd.DataFrame({"n": values.to_numpy()}), tmp_path / "a.parquet")
    found = profile_files(tmp_path)["n"]
    assert found.distinct_kind in ("estimate", "dictionary")
    assert found.distinct == pytest.approx(pc.count_distinct(values).as_py(), rel=0.04)


def test_encrypted_files_have_the_profile_of_plain_ones(tmp_path):
    frame = pd.DataFrame({"a": range(1000), "s": [f"s{number % 7}" for number in range(1000)]})
    encryption = numparq.Encryption(b"f" * 16, {"s": b"c" * 16}, encrypt_other_columns=True)
    for name, keys in (("plain", None), ("sealed", encryption)):
        (tmp_path / name).mkdir()
        numparq.to_parquet(frame, tmp_path / name / "one.parquet", encryption=keys, row_group_size=300)
    decryption = numparq.Decryption(b"f" * 16, {"s": b"c" * 16})
    for data in ("auto", True, False):
        plain = profile_files(tmp_path / "plain", data=data)
        sealed = profile_files(tmp_path / "sealed", data=data, decryption=decryption)
        for column in ("a", "s"):
            for field in ("distinct", "nulls", "min", "max"):
                assert getattr(sealed[column], field) == getattr(plain[column], field)
        assert sealed.damaged_files == 0
    assert profile_files(tmp_path / "sealed").damaged_files == 1
    some = profile_files(tmp_path / "sealed", decryption=numparq.Decryption(b"f" * 16), data=True)
    assert some["a"].distinct == 1000
    assert some.damaged_files == 1
