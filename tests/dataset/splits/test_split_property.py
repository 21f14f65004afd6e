"""Random tables in random splits: together, in order, these are what one read of the table gives."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import SchemaError
from numparq.dataset.splits import plan
from numparq.dataset.splits.split import Split
from numparq.dataset.splits.table import split_table
from support.data.split_tables import pick, random_filter, random_table, read_splits, rows_of

VIRTUAL = ("file", "row_group", "row_number")


def divided(rng, folder, dataset, **options):
    """Divide a table somehow, and say what a read of it all gives."""
    names = {*dataset.schema.columns, *dataset.partition_keys}
    asked = {"filters": random_filter(rng, names), "include": pick(rng, (), VIRTUAL)}
    columns = pick(rng, None, rng.permutation([*names])[: rng.integers(0, len(names) + 1)].tolist())
    splitting = {
        "split_bytes": int(pick(rng, 60, 300, 900, 4000, 1 << 20)),
        "min_splits": int(pick(rng, 1, 2, 9)),
        "plan_files": pick(rng, None, 4096, 0),
    }
    return split_table(str(folder), columns, **asked, **splitting, **options), columns, asked


@pytest.mark.parametrize("seed", range(30))
def test_frames_together_are_one_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    with numparq.Dataset(str(tmp_path)) as dataset:
        table, columns, asked = divided(rng, tmp_path, dataset)
        want = rows_of(dataset.read(columns, **asked))
    frames = []
    for split in table.splits:
        reader = pickle.loads(pickle.dumps(table.reader))
        size = pick(rng, None, 9, 40)
        pieces = [reader.frame(split)] if rng.random() < 0.5 else list(reader.frames(split, size))
        assert sum(map(len, pieces)) == reader.count(split)
        frames += pieces
    nothing = table.frame(Split())
    assert [list(frame.columns) for frame in frames] == [table.names] * len(frames)
    assert all(frame.dtypes.equals(nothing.dtypes) for frame in frames)
    got = rows_of(pd.concat([nothing, *frames], ignore_index=True))
    if columns is None:
        assert set(got) == set(want)  # where an index has its place in the files, and not first
    assert got == {name: want[name] for name in table.names}
    assert_disjoint(table.splits)


def assert_disjoint(splits):
    """Say that no row is in two splits, and that they are in order."""
    seen = [(part.file.path, *rows) for split in splits for part in split.parts for rows in part.groups or ()]
    assert all(start < stop for _, _, start, stop in seen)
    last = {}
    for path, group, start, stop in seen:
        assert start >= last.get((path, group), 0)
        last[path, group] = stop


@pytest.mark.parametrize("seed", range(100, 115))
def test_tables_together_are_one_read(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    with numparq.Dataset(str(tmp_path)) as dataset:
        table, _, asked = divided(rng, tmp_path, dataset)
        with dataset.iter_batches(
            table.names[: len(table.names) - len(asked["include"])], dtype_backend="pyarrow", **asked
        ) as batches:
            want = batches.reader().read_all()
    reader = pickle.loads(pickle.dumps(table.reader))
    size = pick(rng, None, 9, 40)
    tables = [part for split in [*table.splits, Split()] for part in reader.tables(split, size)]
    assert all(part.schema.equals(reader.arrow_schema, check_metadata=True) for part in tables)
    assert not any(pa.types.is_dictionary(field.type) for field in reader.arrow_schema)
    assert size is None or all(part.num_rows <= size for part in tables)
    got = pa.concat_tables(tables)
    assert got.num_rows == want.num_rows
    for name in table.names:
        assert got[name].to_pylist() == want[name].to_pylist()


@pytest.mark.parametrize("seed", range(200, 208))
def test_runtime_filters_and_given_schemas(seed, tmp_path):
    rng = np.random.default_rng(seed)
    random_table(rng, tmp_path)
    keys = numparq.RuntimeFilter("id", rng.integers(0, 500, 20).tolist(), low=int(rng.integers(0, 200)))
    schema = pa.schema({"id": pa.int64(), "i": pa.int64(), "nowhere": pa.float64(), "s": pa.string()})
    with numparq.Dataset(str(tmp_path), schema=schema) as dataset:
        table, columns, asked = divided(rng, tmp_path, dataset, runtime_filters=keys, schema=schema)
        want = rows_of(dataset.read(columns, runtime_filters=keys, **asked))
    copy = pickle.loads(pickle.dumps(table))
    got = rows_of(pd.concat([copy.frame(split) for split in [*copy.splits, Split()]], ignore_index=True))
    assert got == {name: want[name] for name in table.names}


def test_files_that_the_schema_was_not_taken_from_are_read_as_if_it_was_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "SAMPLED_FILES", 1)
    same = refused = 0
    for seed in range(300, 325):
        rng = np.random.default_rng(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        random_table(rng, folder)
        try:
            got = rows_of(
                read_splits(split_table(str(folder), plan_files=0, split_bytes=int(pick(rng, 60, 900, 1 << 20))))
            )
        except SchemaError:
            refused += 1
            continue
        with numparq.Dataset(str(folder)) as dataset:
            assert got == rows_of(dataset.read()), seed
        same += 1
    assert same > 3
    assert refused > 3
