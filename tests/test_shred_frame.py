"""Frames taken apart: the same schema, metadata and values as in the file that pyarrow writes."""

from __future__ import annotations

import base64
import json
import warnings

import numpy as np
import pandas as pd
import pytest

pa = pytest.importorskip("pyarrow")
import pandas.core.arrays.arrow.extension_types  # noqa: E402, F401  (registers pandas' extension types)
from cases import BASE, EXTENSIONS, INDEXES, LABELS, NULLS, VALUES, array_of  # noqa: E402
from driving.leaf_values import PHYSICAL, file_of, own_logical, plain, schema_of, stored  # noqa: E402

from numparq.leaves import leaves_of  # noqa: E402
from numparq.shred import take_apart  # noqa: E402


def own_schema(apart):
    return [
        (".".join(leaf.path), PHYSICAL[leaf.physical], leaf.type_length or 0, own_logical(leaf.logical),
         leaf.max_definition_level, leaf.max_repetition_level)
        for leaf in leaves_of([column.node for column in apart.columns])
    ]  # fmt: skip


def document(text):
    found = json.loads(text)
    assert found["creator"].pop("library")
    found["creator"].pop("version")
    return found


def flattened(table):
    columns = []
    for column in table.columns:
        if pa.types.is_struct(column.type):
            columns += [column.flatten()[place] for place in range(column.type.num_fields)]
        else:
            columns.append(column)
    return columns


def rows_of(apart, start, stop):
    found = []
    for column in apart.columns:
        nodes = column.node.children or (column.node,)
        leaves = column.leaves(start, stop)
        found += [plain(leaf, node, stop - start) for leaf, node in zip(leaves, nodes, strict=True)]
    return found


def check(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        apart = take_apart(frame, **options)
        table = pa.Table.from_pandas(frame, preserve_index=options.get("index"))
    file = file_of(table)
    assert own_schema(apart) == [(path, kind, max(length or 0, 0), *rest)
                                 for path, kind, length, *rest in schema_of(file)]  # fmt: skip
    assert document(apart.key_value_metadata["pandas"]) == document(table.schema.metadata[b"pandas"])
    message = base64.b64decode(apart.key_value_metadata["ARROW:schema"])
    assert pa.ipc.read_schema(pa.py_buffer(message)).equals(table.schema.remove_metadata())
    assert apart.num_rows == len(frame)
    expected = [stored(column) for column in flattened(file.read())]
    assert rows_of(apart, 0, len(frame)) == expected
    for start in range(len(frame)):
        for stop in range(start, len(frame) + 1):
            assert rows_of(apart, start, stop) == [column[start:stop] for column in expected]
    return apart


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("name", VALUES)
def test_arrow_types(name, nulls):
    arrow_type, values = VALUES[name]
    array = pa.chunked_array([array_of(arrow_type, NULLS[nulls](values))])
    check(pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(array)}))


@pytest.mark.parametrize("name", EXTENSIONS)
def test_dtypes(name):
    check(pd.DataFrame({"a": EXTENSIONS[name]}))


@pytest.mark.parametrize("index", [None, True, False])
@pytest.mark.parametrize("name", INDEXES)
def test_indexes(name, index):
    check(BASE.set_index(INDEXES[name]), index=index)


@pytest.mark.parametrize("name", LABELS)
def test_labels(name):
    check(pd.DataFrame([[1, 2], [3, 4]], columns=LABELS[name]))


@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "M8[s]",
                                   "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ms]", "m8[us]", "m8[ns]"])  # fmt: skip
def test_numpy_dtypes(dtype):
    rng = np.random.default_rng(5)
    size = np.dtype(dtype).itemsize
    if np.dtype(dtype).kind in "Mm":
        values = rng.integers(-(2**40), 2**40, 40).view(dtype)
        values[[3, 7]] = "NaT"
    elif dtype == "bool":
        values = rng.integers(0, 2, 40).astype(bool)
    else:
        values = np.frombuffer(rng.bytes(40 * size), dtype).copy()
        if values.dtype.kind == "f":
            values[[2, 5]] = [np.nan, -0.0]
    check(pd.DataFrame({"a": values}))
    check(pd.DataFrame({"a": values[:0]}))
    check(pd.DataFrame(np.repeat(values.reshape(-1, 1), 3, axis=1)[:8], columns=list("abc")))
