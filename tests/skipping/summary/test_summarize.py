"""Summaries of columns: sound against a full read, and no more is read than needed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import ParquetError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.skipping.summary.summarize import ColumnSummary, Wish, summarize_file, summarize_files
from numparq.skipping.summary.value_kind import value_kind
from support.summary_keys import key_of, keys_of, true_keys
from support.typed_tables import WRITERS, leaves, table

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

ALL = Wish(max_distinct=10**6)


def summaries(path: Path, wish: Wish = ALL) -> dict[str, tuple[Leaf, ColumnSummary]]:
    """Summarize all leaf columns of a file, by their dotted paths."""
    file = OpenFile(path)
    columns = [file.schema.leaf(index) for index in range(file.schema.num_leaves)]
    found = summarize_file(file, {leaf.index: wish for leaf in columns})
    return {leaf.name: (leaf, found[leaf.index]) for leaf in columns}


def check_sound(path: Path, whole: pa.Table) -> None:
    """Compare the summaries of a file with pyarrow's read of it."""
    found = summaries(path)
    for name in whole.column_names:
        for column, (values, num_values) in leaves(whole[name], name).items():
            leaf, summary = found[column]
            items, context = values.to_pylist(), (column, summary)
            floats = pa.types.is_floating(values.type)
            present = [item for item in items if not (floats and math.isnan(item))]
            kind = value_kind(leaf)
            assert summary.has_values == bool(items) or (summary.has_values and not items), context
            assert summary.has_nulls in (None, num_values > len(items)), context
            assert summary.has_nans is not None, context
            assert summary.has_nans >= (len(present) < len(items)), context
            keys, _ = true_keys(leaf, OpenFile(path))
            if present:
                assert summary.low is not None, context
                assert summary.high is not None, context
                assert key_of(leaf, summary.low) <= min(keys), context
                assert key_of(leaf, summary.high) >= max(keys), context
                assert pa.types.is_time(values.type) or {kind.to_python(key) for key in keys} == set(present), context
            else:
                assert (summary.low, summary.high) == (None, None), context
            assert summary.values is not None
            entries = [key for key in keys_of(leaf, summary.values) if key == key]
            assert set(entries) >= set(keys), context
            if summary.values_source != "dictionary":
                assert set(entries) == set(keys), context


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("seed", range(3))
def test_summaries_are_sound(tmp_path: Path, writer: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = table(seed, int(rng.integers(1, 600)))
    if writer == "pyarrow, INT96":
        rows = rows.drop_columns(["utc"])
    WRITERS[writer](rows, tmp_path / "a.parquet", rng)
    check_sound(tmp_path / "a.parquet", rows)


@pytest.mark.parametrize(
    ("values", "options", "bounds_source", "values_source"),
    [
        ([3, 1, 2], {}, "footer", "dictionary"),
        ([3, 1, 2], {"use_dictionary": False}, "footer", "data"),
        ([3, 3, 3], {"use_dictionary": False}, "footer", "footer"),
        ([3, 1, None], {"write_statistics": False}, "dictionary", "dictionary"),
        ([3, 1, 2], {"write_statistics": False, "use_dictionary": False}, "data", "data"),
        ([1.5, 2.5], {}, "footer", "dictionary"),  # NaNs may be hidden: the dictionary has none
        ([1.5, 2.5], {"use_dictionary": False}, "data", "data"),
        (["a", "b" * 90], {"use_dictionary": False}, "footer", "data"),  # pyarrow does not truncate
        ([None, None], {}, "footer", "footer"),
    ],
)
def test_sources(tmp_path: Path, values: list, options: dict, bounds_source: str, values_source: str) -> None:
    kind = pa.int64() if values == [None, None] else None
    pq.write_table(pa.table({"x": pa.array(values, kind)}), tmp_path / "a.parquet", **options)
    _, found = summaries(tmp_path / "a.parquet", Wish(bounds=False, max_distinct=9))["x"]
    assert (found.low, found.high, found.values_source) == (None, None, values_source)
    _, found = summaries(tmp_path / "a.parquet", Wish())["x"]
    assert (found.values, found.bounds_source) == (None, bounds_source)


def test_nans_hidden_by_the_writer_are_found(tmp_path: Path) -> None:
    for name, options in (("dictionary", {}), ("data", {"use_dictionary": False})):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"x": [1.0, math.nan, -0.0]}), path, row_group_size=2, **options)
        _, found = summaries(path)["x"]
        assert found.has_nans
        assert (found.low, found.high) == (np.float64(-0.0).tobytes(), np.float64(1).tobytes())
        assert isinstance(found.values, np.ndarray)
        assert sorted(found.values.tolist(), key=repr) == [-0.0, 1.0, pytest.approx(math.nan, nan_ok=True)]
        _, found = summaries(path, Wish())["x"]
        assert found.has_nans


def with_writer(path: Path, name: str) -> None:
    """Replace `created_by` in a file's footer by another name that is not longer."""
    own = pq.ParquetFile(path).metadata.created_by.encode()
    path.write_bytes(path.read_bytes().replace(own, name.encode().ljust(len(own))))


@pytest.mark.parametrize(
    ("writer", "source"), [("parquet-mr version 1.10.0", "footer"), ("parquet-mr version 1.9.0", "data"), ("x", "data")]
)
def test_bounds_of_floats_by_parquet_java_mean_no_nans(tmp_path: Path, writer: str, source: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1.0, 2.0]}), path, use_dictionary=False)
    with_writer(path, writer)
    _, found = summaries(path, Wish())["x"]
    assert found.has_nans is False
    assert (found.low, found.high) == (np.float64(1).tobytes(), np.float64(2).tobytes())
    assert reads_data(path) == (source == "data")


def reads_data(path: Path) -> bool:
    """Whether a summary of bounds needs the column's pages: they are damaged to see it."""
    data = bytearray(path.read_bytes())
    data[4:20] = bytes(255 for _ in range(16))
    broken = path.with_name("broken.parquet")
    broken.write_bytes(bytes(data))
    try:
        summaries(broken, Wish())
    except ParquetError:
        return True
    return False


def test_truncated_strings_are_read_unless_declared_exact(tmp_path: Path) -> None:
    texts = ["a" * 100 + "x", "b" * 100 + "y"]
    numparq.to_parquet(pd.DataFrame({"s": texts}), tmp_path / "a.parquet", index=False, use_dictionary=False)
    _, found = summaries(tmp_path / "a.parquet", Wish())["s"]
    assert (found.low, found.high) == (texts[0].encode(), texts[1].encode())
    assert found.bounds_source == "data"
    numparq.to_parquet(pd.DataFrame({"s": ["a", "b"]}), tmp_path / "b.parquet", index=False, use_dictionary=False)
    assert summaries(tmp_path / "b.parquet", Wish())["s"][1].bounds_source == "footer"
    pq.write_table(pa.table({"s": ["a", "b"]}), tmp_path / "c.parquet", use_dictionary=False)
    with_writer(tmp_path / "c.parquet", "some writer")
    metadata = OpenFile(tmp_path / "c.parquet").footer.chunks.chunk_record(0, 0).meta_data
    assert metadata is not None
    expected = "footer" if metadata.statistics.is_min_value_exact else "data"  # as pyarrow declares since 21
    assert summaries(tmp_path / "c.parquet", Wish())["s"][1].bounds_source == expected


def test_too_many_values_are_given_up(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": np.arange(100) // 2, "s": [f"{n}" for n in range(100)], "few": 1})
    numparq.to_parquet(frame, tmp_path / "a.parquet", row_group_size=10, index=False)
    for most, counts in ((1, (None, None, 1)), (50, (50, None, 1)), (100, (50, 100, 1))):
        found = summaries(tmp_path / "a.parquet", Wish(bounds=False, max_distinct=most))
        sizes = [None if one.values is None else len(one.values) for _, one in found.values()]
        assert tuple(sizes) == counts


def test_files_without_rows_have_no_values(tmp_path: Path) -> None:
    empty = pd.DataFrame({"n": pd.array([], "int64"), "s": pd.array([], "str"), "x": np.zeros(0)})
    numparq.to_parquet(empty, tmp_path / "a.parquet", index=False)
    for _, found in summaries(tmp_path / "a.parquet").values():
        assert (found.has_values, found.has_nans, found.low, found.high) == (False, False, None, None)
        assert found.values is not None
        assert len(found.values) == 0


@pytest.mark.parametrize("wish", [ALL, Wish(), Wish(bounds=False, max_distinct=3)])
def test_files_together_are_summarized_as_one_by_one(tmp_path: Path, wish: Wish) -> None:
    rng = np.random.default_rng(0)
    for at in range(12):
        rows = int(rng.integers(0, 90)) if at % 4 else 0
        frame = pd.DataFrame({"n": rng.integers(0, 9, rows), "x": rng.choice([1.0, math.nan, -0.0], rows)})
        frame["s"] = [f"s{n}" * (at + 1) for n in frame["n"]] if at != 5 else pd.array([None] * rows, "str")
        options = {"use_dictionary": bool(at % 2), "row_group_size": 40}
        if at < 8:
            pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / f"{at:02}.parquet", **options)
        else:
            numparq.to_parquet(frame, tmp_path / f"{at:02}.parquet", index=False, **options)
    damaged = bytearray((tmp_path / "06.parquet").read_bytes())
    damaged[4:40] = bytes(36)
    (tmp_path / "06.parquet").write_bytes(bytes(damaged))
    files = [OpenFile(path) for path in sorted(tmp_path.iterdir())]
    wishes = [{leaf.index: wish for leaf in file.schema} for file in files]
    results = summarize_files(files, wishes)
    assert isinstance(results[6], ParquetError) == (wish != Wish())
    for file, found in zip(files, results, strict=True):
        if isinstance(found, Exception):
            with pytest.raises(ParquetError) as raised:
                summarize_file(file, {leaf.index: wish for leaf in file.schema})
            assert str(raised.value) == str(found)
            continue
        alone = summarize_file(file, {leaf.index: wish for leaf in file.schema})
        for index, summary in alone.items():
            for (name, one), (_, other) in zip(vars(summary).items(), vars(found[index]).items(), strict=True):
                if name != "values":
                    assert one == other, (file.source.name, name)
                elif one is None or other is None:
                    assert one is other
                else:
                    leaf = file.schema.leaf(index)
                    assert sorted(map(repr, keys_of(leaf, one))) == sorted(map(repr, keys_of(leaf, other)))


def test_damaged_pages_raise_an_error_that_names_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1.5, 2.5]}), tmp_path / "a.parquet", use_dictionary=False, compression="none")
    assert reads_data(tmp_path / "a.parquet")
    with pytest.raises(ParquetError, match="'x'"):
        summaries(tmp_path / "broken.parquet", Wish())
