"""Frames with conflicting orders of an ordered Categorical are refused: a file has one order."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from numparq.errors import SchemaError


def frame(categories, ordered=True, rows=1):
    values = pd.Categorical([categories[-1]] * rows, categories, ordered=ordered)
    return pd.DataFrame({"n": range(rows), "size": values})


def in_one_writer(path, first, second):
    with numparq.ParquetWriter(path) as writer:
        writer.write(first, index=None)
        writer.write(second, index=None)


def by_append(path, first, second):
    numparq.to_parquet(first, path)
    numparq.to_parquet(second, path, append=True)


WRITE_METHODS = pytest.mark.parametrize("write", [in_one_writer, by_append])
COMPATIBLE = [
    ("abc", "abc", "abc"),
    ("abc", "ab", "abc"),
    ("abc", "bc", "abc"),
    ("ab", "abc", "abc"),
    ("ac", "acx", "acx"),
    ("ab", "bx", "abx"),
    ("ab", "xy", "abxy"),
]
REFUSED = [
    ("abc", "acb", "'b' comes after 'c'"),
    ("bc", "abc", "'b' comes after 'a'"),
    ("ab", "axb", "'b' comes"),
    (["low", "high"], ["high", "low"], "'low' comes after 'high'"),
]


@WRITE_METHODS
@pytest.mark.parametrize(("first", "second", "merged"), COMPATIBLE)
def test_compatible_orders_are_merged(write, first, second, merged, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list(first)), frame(list(second)))
    got = numparq.read_parquet(path)["size"]
    assert got.tolist() == [first[-1], second[-1]]
    assert got.cat.ordered
    assert got.cat.categories.tolist() == list(merged)


@WRITE_METHODS
@pytest.mark.parametrize(("first", "second", "words"), REFUSED)
def test_conflicting_orders_are_refused(write, first, second, words, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(SchemaError, match=f"keep the order.*{words}.*column 'size'"):
        write(path, frame(list(first)), frame(list(second)))
    assert not path.exists() or numparq.read_parquet(path)["size"].tolist() == [first[-1]]


@WRITE_METHODS
def test_unordered_categories_may_differ_in_order(write, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list("abc"), False), frame(list("cxb"), False))
    assert numparq.read_parquet(path)["size"].tolist() == ["c", "b"]


@WRITE_METHODS
def test_frames_without_rows_do_not_affect_the_order(write, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list("ab")), frame(list("ba"), rows=0))
    assert numparq.read_parquet(path)["size"].cat.categories.tolist() == ["a", "b"]


@WRITE_METHODS
@pytest.mark.parametrize("levels", [["size"], ["n", "size"]])
def test_index_levels(write, levels, tmp_path):
    path = tmp_path / "a.parquet"
    first, second, third = (frame(list(text)).assign(x=1.5).set_index(levels) for text in ("ab", "abc", "ba"))
    write(path, first, second)
    with pytest.raises(SchemaError, match="keep the order"):
        numparq.to_parquet(third, path, append=True)


@WRITE_METHODS
def test_conflicting_order_of_numbers(write, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(SchemaError, match="1 comes after 5"):
        write(path, frame([1, 5]), frame([5, 1]))


def test_third_frame_is_checked_against_both(tmp_path):
    with numparq.ParquetWriter(None) as writer:
        writer.write(frame(list("ab")))
        writer.write(frame(list("bc")))
        with pytest.raises(SchemaError, match="'b' comes after 'c'"):
            writer.write(frame(list("cb")))
        writer.write(frame(list("ac")))
    assert numparq.read_parquet(writer.getvalue())["size"].cat.categories.tolist() == list("abc")
