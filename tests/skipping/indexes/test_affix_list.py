"""Prefix and suffix lists."""

from __future__ import annotations

import json

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import UnsupportedError, col
from numparq.skipping import PrefixList, Store, SuffixList
from support.random_stores import recent_files
from support.store_parts import lists, schema_json, skipped, write_part

x = col("x")


def write(folder, name, cells, params):
    array = lists(pa.string(), cells)
    schema = json.loads(schema_json({"c": (name, "x")}, {"c": array.type}))
    schema["fields"][1]["metadata"]["index"]["params"] = params
    write_part(folder, {}, {"c": array}, schema=json.dumps(schema))


def test_prefixes(tmp_path):
    cells = [["abc", "q"], ["abd"], [], None, ["ab"]]
    write(tmp_path, "prefixlist", cells, {"io.numparq.index.affix.length": "3"})
    assert skipped(tmp_path, x == "abcdef") == "bce"
    assert skipped(tmp_path, x == "ab") == "abc"
    assert skipped(tmp_path, x == "qq") == "abce"  # "q" is the whole value
    assert skipped(tmp_path, x.startswith("ab")) == "c"
    assert skipped(tmp_path, x.startswith("abcd")) == "bce"
    assert skipped(tmp_path, x > "abe") == "bce"
    assert skipped(tmp_path, x.like("abd%x")) == "ace"
    assert skipped(tmp_path, ~x.startswith("ab")) == "bce"
    assert skipped(tmp_path, ~x.like("%x")) == "c"
    assert skipped(tmp_path, x.is_not_null()) == "c"
    assert skipped(tmp_path, x == 5) == ""


def test_suffixes(tmp_path):
    cells = [["xyz", "q"], ["éyz"], [], None, ["yz"]]
    write(tmp_path, "suffixlist", cells, {"io.numparq.index.affix.length": "3"})
    assert skipped(tmp_path, x == "abxyz") == "bce"
    assert skipped(tmp_path, x.like("%yz")) == "c"
    assert skipped(tmp_path, x.like("%éyz")) == "ace"
    assert skipped(tmp_path, x.like("%aéyz")) == "ace"
    assert skipped(tmp_path, x.like("%y_")) == ""
    assert skipped(tmp_path, x.isin(["a", "q"])) == "bce"
    assert skipped(tmp_path, ~x.like("%yz")) == ""
    assert skipped(tmp_path, x.startswith("a")) == ""


@pytest.mark.parametrize("params", [{}, {"io.numparq.index.affix.length": "x"}, {"io.numparq.index.affix.length": "0"}])
def test_without_a_length_cells_say_nothing(tmp_path, params):
    write(tmp_path, "prefixlist", [["abc"]], params)
    assert skipped(tmp_path, x == "q") == ""


def test_built(tmp_path):
    (tmp_path / "d").mkdir()
    numparq.to_parquet(pd.DataFrame({"x": ["report.csv", "é"], "n": [1, 2]}), tmp_path / "d/a.parquet")
    with recent_files():
        store = Store.build(tmp_path / "d", base=tmp_path, indexes=[PrefixList("x", 3), SuffixList("x", 4)])
        with pytest.raises(UnsupportedError, match="are of strings, not of long"):
            Store.build(tmp_path / "d", folder=tmp_path / "s", indexes=[PrefixList("n")])
        store.compact()
    frame = numparq.read_parquet(store.folder)
    assert frame["x_prefixlist_1"][0].tolist() == ["rep", "é"]
    assert frame["x_suffixlist_1"][0].tolist() == [".csv", "é"]
    assert len(store.select(x.endswith(".txt")).skipped) == 1
    assert len(store.select(x.endswith("csv")).skipped) == 0
    assert len(store.select(x.startswith("list")).skipped) == 1
    assert len(store.select(x == "é").skipped) == 0
    with pytest.raises(ValueError, match="length"):
        PrefixList("x", 0)
