"""Columns without a common type: an error for whoever reads them, and no matter to anyone else."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.cli import main
from numparq.dataset.splits.table import split_table

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two files that agree on `id` and `s.x` alone."""
    made = tmp_path_factory.mktemp("conflicts") / "d"
    made.mkdir()
    first = {"id": [1, 2], "q": ["a", "b"], "s": [{"x": 1, "y": 1}] * 2, "l": [[1], None]}
    second = {"id": [3, 4], "q": [1, 2], "s": [{"x": 2, "y": "a"}] * 2, "l": [["b"], None]}
    pq.write_table(pa.table(first), made / "a.parquet")
    pq.write_table(pa.table(second), made / "b.parquet")
    return made


def read_splits(path: str, **options: Any) -> pd.DataFrame:
    table = split_table(path, **options)
    return pd.concat([table.frame(split) for split in table.splits], ignore_index=True)


READS = {
    "read_parquet": lambda path, columns: numparq.read_parquet(path, columns),
    "skip": lambda path, columns: numparq.read_parquet(path, columns, on_error="skip"),
    "batches": lambda path, columns: pd.concat(numparq.Dataset(path).iter_batches(columns=columns), ignore_index=True),
    "arrow": lambda path, columns: numparq.Dataset(path).to_arrow(columns).to_pandas(),
    "splits": lambda path, columns: read_splits(path, columns=columns),
    "sampled splits": lambda path, columns: read_splits(path, columns=columns, plan_files=1),
    "plan": lambda path, columns: numparq.Dataset(path).plan(columns),
}


@pytest.mark.parametrize("name", READS)
def test_conflict_matters_to_its_column_alone(folder: Path, name: str) -> None:
    read = READS[name]
    for columns, expected in ((["id"], {"id": [1, 2, 3, 4]}), (["s.x", "id"], {"x": [1, 1, 2, 2], "id": [1, 2, 3, 4]})):
        frame = read(str(folder), columns)
        if name != "plan":
            assert frame.to_dict("list") == expected
    for columns, path in ((None, "q"), (["q"], "q"), (["s"], "s.y"), (["s.y"], "s.y"), (["id", "l"], "l.element")):
        with pytest.raises(numparq.SchemaError, match=r"here, but (string|int64) in") as raised:
            read(str(folder), columns)
        assert raised.value.where == {"file": str(folder / "b.parquet"), "column": path}
        assert str(folder / "a.parquet") in str(raised.value)


def test_conflict_matters_to_its_filter_alone(folder: Path) -> None:
    assert numparq.read_parquet(folder, ["id"], col("s.x") == 2)["id"].tolist() == [3, 4]
    with numparq.Dataset(folder) as dataset:
        assert (dataset.num_rows, dataset.count_rows(col("id") > 1)) == (4, 3)
        for predicate in (col("q") == "a", col("s.y") == 1, col("l").contains(1), col("q").is_null()):
            with pytest.raises(numparq.SchemaError, match="no type holds both without loss"):
                dataset.count_rows(predicate)
    kept = [numparq.RuntimeFilter("q", ["a"])]
    with pytest.raises(numparq.SchemaError, match="no type holds both without loss"):
        numparq.read_parquet(folder, ["id"], runtime_filters=kept)


def test_schema_of_a_dataset_tells_conflicts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with numparq.Dataset(folder) as dataset:
        schema = dataset.schema
    assert schema.columns == ["id", "q", "s", "l"]
    for text in (str(schema), str(pickle.loads(pickle.dumps(schema)))):
        *_, end, first, second, third = text.split("\n")
        assert end == "}"
        for line, column in ((first, "'q'"), (second, "'s.y'"), (third, "'l.element'")):
            assert line.startswith("conflict: the column is ")
            assert f"column {column}" in line
            assert "a.parquet" in line
            assert "b.parquet" in line
    assert main(["schema", str(folder)]) == 0
    assert capsys.readouterr().out == f"{schema}\n"
    assert main(["head", str(folder), "--columns", "id"]) == 0
    assert main(["head", str(folder)]) == 1
    assert "no type holds both" in capsys.readouterr().err
    assert numparq.read_parquet(folder, ["id"], schema=schema)["id"].tolist() == [1, 2, 3, 4]
    with pytest.raises(numparq.SchemaError, match="'q'"):
        numparq.read_parquet(folder, schema=schema)


def test_files_that_do_not_conform_to_a_schema_conflict_likewise(folder: Path) -> None:
    schema = {"id": pa.int64(), "q": pa.int64()}
    assert numparq.read_parquet(folder, ["id"], schema=schema)["id"].tolist() == [1, 2, 3, 4]
    with pytest.raises(numparq.SchemaError, match="string here, and cannot be cast to int64"):
        numparq.read_parquet(folder, schema=schema)


def test_conflict_names_the_files_of_its_own_dataset(folder: Path, tmp_path: Path) -> None:
    """Merged schemas are cached across datasets, conflicts are not."""
    for name in ("a", "b"):
        (tmp_path / f"other-{name}.parquet").write_bytes((folder / f"{name}.parquet").read_bytes())
    for path, name in ((folder, "a"), (tmp_path, "other-a")):
        with pytest.raises(numparq.SchemaError, match=f"{name}.parquet"):
            numparq.read_parquet(path)


def test_index_levels_that_conflict_are_no_index(tmp_path: Path) -> None:
    for name, index in (("a", [1, 2]), ("b", ["x", "y"])):
        pd.DataFrame({"v": [1, 2]}, index=pd.Index(index, name="i")).to_parquet(tmp_path / f"{name}.parquet")
    frame = numparq.read_parquet(tmp_path, ["v"])
    assert (frame["v"].tolist(), frame.index.tolist()) == ([1, 2, 1, 2], [0, 1, 2, 3])
    with pytest.raises(numparq.SchemaError, match="'i'"):
        numparq.read_parquet(tmp_path)


def test_files_with_a_conflict_are_not_appended(folder: Path, tmp_path: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"v": [1]}), tmp_path / "d", partition_cols=[])
    with pytest.raises(numparq.SchemaError, match="do not form one table"):
        numparq.to_parquet(pd.DataFrame({"v": ["x"]}), tmp_path / "d", partition_cols=[], append=True)
