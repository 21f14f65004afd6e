"""Pruning by dictionaries."""

from __future__ import annotations

import io
import os
import struct
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.io import local_source
from numparq.prune import dictionaries
from numparq.util.byte_budget_cache import CachedFile
from support.files.builder import from_bytes, with_footer
from support.planned_file import ROWS, PlannedFile, pruning_steps


def test_dictionary_ignores_nulls_and_negated_contains():
    rows = np.arange(4000)
    frame = pd.DataFrame(
        {
            "pad": np.random.default_rng(1).random(4000),
            "c": np.where(rows % 3, "a", "c"),
            "e": pd.array([None if row % 5 == 0 else row % 2 * 100 for row in rows], "Int64"),
            "l": [[5] if row % 4 else [1, 9] for row in rows],
        }
    )
    data = numparq.to_parquet(frame, row_group_size=2000, use_dictionary=["c", "e", "l"])
    expression = ((col("c") == "a") & col("e").is_null()) | (col("e") == 50)
    assert "dictionary" in pruning_steps(PlannedFile(data).pruned(col("e") == 50))
    assert PlannedFile(data).pruned(expression).num_rows == 4000
    assert len(numparq.read_parquet(data, filters=expression)) == np.count_nonzero((rows % 3 > 0) & (rows % 5 == 0))
    expression = (col("l").contains(5) & ~col("l").contains(7)) | (col("e") == 50)
    assert len(numparq.read_parquet(data, filters=expression)) == 3000


def test_dictionary_with_plain_fallback_does_not_prune():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    numbers = [0, 1 << 40, *np.random.default_rng(2).integers(0, 1 << 40, 9998).tolist()]
    out = io.BytesIO()
    pq.write_table(
        pa.table({"n": numbers, "pad": np.random.default_rng(3).random(10_000)}),
        out,
        dictionary_pagesize_limit=2000,
        data_page_size=4000,
    )
    for row in (3, 9999):
        assert numparq.read_parquet(out.getvalue(), filters=col("n") == numbers[row])["n"].tolist() == [numbers[row]]


def test_false_encoding_stats_do_not_prune():
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out, table = io.BytesIO(), pa.table({"s": [f"v{row % 5}" for row in range(ROWS)], "k": range(ROWS)})
    pq.write_table(
        table,
        out,
        use_dictionary=False,
        write_statistics=False,
        data_page_size=1,
        write_batch_size=100,
        data_page_version="2.0",
    )
    data = out.getvalue()
    (length,) = struct.unpack("<I", data[-8:-4])
    footer, _ = from_bytes("FileMetaData", data[-8 - length : -8])
    for chunk, expression in zip(footer.row_groups[0].columns, (col("s") == "v1", col("k") == 1), strict=True):
        meta = chunk.meta_data
        first, size = from_bytes("PageHeader", data[meta.data_page_offset :])
        meta.dictionary_page_offset = meta.data_page_offset
        meta.data_page_offset += size + first.compressed_page_size
        for stat in meta.encoding_stats:
            stat.encoding = 8
        false_stats = PlannedFile(with_footer(data[: -8 - length], footer))
        assert false_stats.pruned(expression).num_rows == ROWS


@pytest.fixture
def decoded(monkeypatch):
    """Record the row groups of which a dictionary page is decoded to prune."""
    found: list[int] = []
    original = dictionaries.decode_dictionary

    def counted(data, row_group, *others):
        found.append(row_group)
        return original(data, row_group, *others)

    monkeypatch.setattr(dictionaries, "decode_dictionary", counted)
    return found


def write_words(path, word: str) -> None:
    """Write a file whose strings `word0` to `word8` lie in every row group, where all bounds hold them."""
    words = [f"{word}{row % 5 * 2}" for row in range(4000)]
    with open(path, "wb") as file:  # in place: the inode stays
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({"s": words, "n": np.random.default_rng(4).random(4000)}), file, row_group_size=2000)


def num_rows(path, word: str) -> int:
    return len(numparq.read_parquet(path, filters=col("s") == word))


def test_dictionaries_of_an_unchanged_file_are_decoded_once(tmp_path, monkeypatch, decoded):
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    write_words(tmp_path / "a", "x")
    before = numparq.cache_info().num_bytes
    assert (num_rows(tmp_path / "a", "x3"), num_rows(tmp_path / "a", "x4")) == (0, 800)
    assert sorted(decoded) == [0, 1]
    assert numparq.cache_info().num_bytes > before
    assert (num_rows(tmp_path / "a", "x5"), num_rows(tmp_path / "a", "x6")) == (0, 800)
    assert sorted(decoded) == [0, 1]


@pytest.mark.parametrize("settled_ns", [0, local_source.SETTLED_NS])
def test_dictionaries_of_a_replaced_file_are_decoded_anew(tmp_path, monkeypatch, decoded, settled_ns):
    monkeypatch.setattr(local_source, "SETTLED_NS", settled_ns)
    for word in ("x", "y", "x"):
        write_words(tmp_path / "a", word)
        os.utime(tmp_path / "a", ns=(1, 1))  # the time of change tells them apart
        assert [num_rows(tmp_path / "a", f"{word}{number}") for number in (3, 4, 5)] == [0, 800, 0]
        assert num_rows(tmp_path / "a", "y4" if word == "x" else "x4") == 0
    assert len(decoded) >= 6


def test_dictionaries_beyond_the_budget_are_decoded_again(tmp_path, monkeypatch, decoded):
    monkeypatch.setattr(local_source, "SETTLED_NS", 0)
    monkeypatch.setattr(CachedFile, "put_dictionary", lambda self, key, value, num_bytes: None)
    write_words(tmp_path / "a", "x")
    assert (num_rows(tmp_path / "a", "x3"), num_rows(tmp_path / "a", "x4")) == (0, 800)
    assert sorted(decoded) == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", ["half", "decimal", "bytes"])
def test_dictionaries_of_fixed_len_byte_arrays(kind):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    make, type_ = {
        "half": (lambda number: np.float16(number / 4), pa.float16()),
        "decimal": (lambda number: Decimal(number) / 4, pa.decimal128(25, 2)),
        "bytes": (lambda number: b"%06d" % (number + 500), pa.binary(6)),
    }[kind]
    numbers = [[-300, -7, 5, 300], [-300, 8, 9, 300]]  # both row groups have the same bounds
    rows = [number for group in numbers for number in group * 500]
    out = io.BytesIO()
    pad = np.random.default_rng(4).random(len(rows))
    pq.write_table(
        pa.table({"x": pa.array([*map(make, rows)], type_), "n": rows, "pad": pad}), out, row_group_size=2000
    )
    for number in (-300, -8, -7, 5, 6, 8, 9, 300):
        found = numparq.read_parquet(out.getvalue(), filters=col("x") == make(number))["n"].tolist()
        assert found == [row for row in rows if row == number]
        steps = pruning_steps(PlannedFile(out.getvalue()).pruned(col("x") == make(number)))
        assert ("dictionary" in steps) == (abs(number) < 300)
