"""Files of zero bytes, and directories without files, as a dataset."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.fs
import pytest

import numparq
from numparq.dataset import split_table
from numparq.errors import InvalidFileError

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


@pytest.fixture
def folder(tmp_path):
    """Write files of rows between files of zero bytes, which Spark and crashed writers leave."""
    numparq.to_parquet(pd.DataFrame({"n": [1, 2], "s": ["a", "b"]}), tmp_path / "1.parquet")
    numparq.to_parquet(pd.DataFrame({"n": [3], "s": ["c"]}), tmp_path / "3.parquet")
    for name in ("0.parquet", "2.parquet", "4.parquet"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("filesystem", [None, pyarrow.fs.LocalFileSystem()])
@pytest.mark.parametrize("path", ["", "/*.parquet", "/{0,1,2,3,4}.parquet"])
def test_files_of_zero_bytes_have_no_rows(folder, path, filesystem):
    with numparq.Dataset(f"{folder}{path}", filesystem=filesystem) as dataset:
        assert dataset.read()["n"].tolist() == [1, 2, 3]
        assert dataset.read().dtypes["n"] == "int64"
        assert dataset.read(["s"], "n > 1")["s"].tolist() == ["b", "c"]
        assert dataset.count_rows() == 3
        assert dataset.schema.names == ["n", "s"]


@pytest.mark.parametrize("plan_files", [None, 1])
def test_splits_have_no_files_of_zero_bytes(folder, plan_files):
    table = split_table(str(folder), plan_files=plan_files)
    assert [value for split in table.splits for value in table.frame(split)["n"]] == [1, 2, 3]
    assert all(part.file.size for split in table.splits for part in split.parts)


def test_file_of_zero_bytes_given_by_name_is_an_error(folder):
    for path in (folder / "0.parquet", [folder / "1.parquet", folder / "0.parquet"]):
        with pytest.raises(InvalidFileError, match=r"the file has 0 bytes.*0\.parquet"):
            numparq.read_parquet(path)


def test_partition_of_zero_bytes_has_the_columns_of_others(tmp_path):
    for year in (1, 2):
        numparq.to_parquet(pd.DataFrame({"n": [year], "year": year}), tmp_path, partition_cols=["year"], append=True)
    (path,) = (tmp_path / "year=2").iterdir()
    path.write_bytes(b"")
    assert numparq.read_parquet(tmp_path, filters="year = 2").columns.tolist() == ["n", "year"]


@pytest.mark.parametrize("names", [[], ["a", "b"]])
def test_directory_without_bytes_needs_a_schema(tmp_path, names):
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(InvalidFileError, match=r"no Parquet files|zero bytes"):
        numparq.read_parquet(tmp_path)
    frame = numparq.read_parquet(tmp_path, schema=SCHEMA)
    assert frame.dtypes.astype(str).to_dict() == {"n": "int64", "s": "str"}
    assert frame.empty
    assert numparq.Dataset(tmp_path, schema=SCHEMA).read(["s"], "n > 1").columns.tolist() == ["s"]
    assert not split_table(str(tmp_path), schema=SCHEMA).splits
