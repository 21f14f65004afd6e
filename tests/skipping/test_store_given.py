"""The 60 stores of Xskipper's version tests: their skip sets, filters and schemas."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import numparq
from numparq.format.open_file import OpenFile
from numparq.skipping.location import store_folder
from numparq.skipping.metadata import OBJECT_NAME, format_store_schema, parse_store_schema
from numparq.skipping.spark_bloom import build_cell, hash_texts
from numparq.skipping.store import Store

pytestmark = pytest.mark.usefixtures("xskipper_stores")


def cases(folder: Path) -> list[dict]:
    return json.loads((folder / "cases.json").read_text())


def condition(query: str) -> str:
    """Return the WHERE clause of a query as filter text."""
    where = query.split(" WHERE ")[1]
    return where.replace("to_timestamp('", "TIMESTAMP '").replace("Z'))", "Z')")


def base_names(paths) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in paths)


def test_skip_sets_of_all_given_stores(xskipper_stores):
    found = cases(xskipper_stores)
    assert len(found) == 60
    for case in found:
        selection = Store((xskipper_stores / case["store"]).parent).select(condition(case["query"]))
        assert base_names(selection.skipped) == base_names(case["skippable"]), (case["version"], case["testID"])


def test_files_outside_of_partitions(xskipper_stores):
    for case in cases(xskipper_stores):
        if case["testID"] == 37:
            selection = Store((xskipper_stores / case["store"]).parent).select(condition(case["query"]))
            assert len(selection.outside) == (3 if case["version"] == 4 else 0)


def test_filters_are_those_of_the_indexed_files(xskipper_stores):
    """All Bloom filters, rebuilt from the CSV files, equal the given ones; those of version 3 and 4 whole."""
    count = 0
    for case in cases(xskipper_stores):
        if "bloomfilter address" not in case["indexes"]:
            continue
        frame = numparq.read_parquet(xskipper_stores / case["store"])
        for name, cell in zip(frame[OBJECT_NAME], frame.iloc[:, 1], strict=True):
            data = xskipper_stores / case["dataset"] / name.rpartition("#")[0].rpartition("/")[2]
            with open(data, newline="") as file:
                rows = list(csv.DictReader(file))
            texts = [row["address"].encode() for row in rows if row["address"]]  # Spark reads empty ones as nulls
            built = build_cell(hash_texts(texts), 100_000, 0.01)
            if case["version"] >= 3:
                assert built == cell
            assert built[309:] == cell[309 if case["version"] >= 3 else 333 :]
            count += 1
    assert count == 24


def test_schemas_are_read_and_written(xskipper_stores):
    for case in cases(xskipper_stores):
        part = OpenFile(xskipper_stores / case["store"])
        text = part.footer.key_value_metadata.text("org.apache.spark.sql.parquet.row.metadata")
        schema = parse_store_schema(text, "part")
        assert schema.version == case["version"]
        assert [f"{index.name} {index.columns[0]}" for index in schema.indexes] == case["indexes"]
        if case["version"] == 4:
            assert json.loads(format_store_schema(schema)) == json.loads(text)
        assert store_folder("base", schema.identifier) == "base/" + case["store"].split("/")[2]


def test_schemas_of_encrypted_stores(xskipper_stores):
    for version in (1, 2, 3, 4):
        text = (xskipper_stores / f"schema_extraction/version={version}/encrypted_footer/schema.json").read_text()
        schema = parse_store_schema(text, "part")
        assert schema.encryption["encryption.footer.key"] == "k1"
        assert [index.key_label for index in schema.indexes] == ["k1", "k1", None]
        assert schema.indexes[1].params == {
            "io.xskipper.index.bloom.fpp": "0.01",
            "io.xskipper.index.bloom.ndv": "100000",
        }
        assert list(schema.partitions) == (["dt", "year"] if version == 4 else [])
