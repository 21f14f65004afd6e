"""Frames behind each other whose ordered Categoricals do not agree: refused, since one file has one order."""

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


WAYS = pytest.mark.parametrize("write", [in_one_writer, by_append])
KEPT = [
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


@WAYS
@pytest.mark.parametrize(("first", "second", "joined"), KEPT)
def test_an_order_that_holds_for_both(write, first, second, joined, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list(first)), frame(list(second)))
    found = numparq.read_parquet(path)["size"]
    assert found.tolist() == [first[-1], second[-1]]
    assert found.cat.ordered
    assert found.cat.categories.tolist() == list(joined)


@WAYS
@pytest.mark.parametrize(("first", "second", "words"), REFUSED)
def test_an_order_that_does_not(write, first, second, words, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(SchemaError, match=f"keep the order.*{words}.*column 'size'"):
        write(path, frame(list(first)), frame(list(second)))
    assert not path.exists() or numparq.read_parquet(path)["size"].tolist() == [first[-1]]


@WAYS
def test_unordered_ones_may_be_in_any_order(write, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list("abc"), False), frame(list("cxb"), False))
    assert numparq.read_parquet(path)["size"].tolist() == ["c", "b"]


@WAYS
def test_no_rows_have_no_order(write, tmp_path):
    path = tmp_path / "a.parquet"
    write(path, frame(list("ab")), frame(list("ba"), rows=0))
    assert numparq.read_parquet(path)["size"].cat.categories.tolist() == ["a", "b"]


@WAYS
@pytest.mark.parametrize("levels", [["size"], ["n", "size"]])
def test_levels_of_the_index(write, levels, tmp_path):
    path = tmp_path / "a.parquet"
    first, second, third = (frame(list(text)).assign(x=1.5).set_index(levels) for text in ("ab", "abc", "ba"))
    write(path, first, second)
    with pytest.raises(SchemaError, match="keep the order"):
        numparq.to_parquet(third, path, append=True)


@WAYS
def test_categories_of_numbers(write, tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(SchemaError, match="1 comes after 5"):
        write(path, frame([1, 5]), frame([5, 1]))


def test_a_third_frame_is_held_against_both(tmp_path):
    with numparq.ParquetWriter(None) as writer:
        writer.write(frame(list("ab")))
        writer.write(frame(list("bc")))
        with pytest.raises(SchemaError, match="'b' comes after 'c'"):
            writer.write(frame(list("cb")))
        writer.write(frame(list("ac")))
    assert numparq.read_parquet(writer.getvalue())["size"].cat.categories.tolist() == list("abc")
