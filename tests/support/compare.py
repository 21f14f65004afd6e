"""What end-to-end tests share: how frames are compared, and what pandas reads with pyarrow."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd

BACKENDS = (None, "numpy_nullable", "pyarrow")


def backend_options(name):
    """Give the keyword argument for a ``dtype_backend``, which pandas does not want to see where it is the default."""
    return {} if name is None else {"dtype_backend": name}


def read_by_pandas(source, **options):
    """Read as pandas does with pyarrow."""
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.read_parquet(source, engine="pyarrow", **options)


def assert_frames_equal(got, expected):
    """Hold a frame against the one expected: values, dtypes, index, labels, the types of objects."""
    nested = [place for place in range(expected.shape[1]) if is_nested(expected.iloc[:, place])]
    for place in nested:
        assert nested_values_equal(got.iloc[:, place].to_numpy(), expected.iloc[:, place].to_numpy()), got.columns[
            place
        ]
    if nested:
        flat = [place for place in range(expected.shape[1]) if place not in nested]
        assert got.columns.tolist() == expected.columns.tolist()
        assert got.dtypes.tolist() == expected.dtypes.tolist()
        got, expected = got.iloc[:, flat], expected.iloc[:, flat]
    pd.testing.assert_frame_equal(got, expected, check_exact=True, check_freq=False)
    assert type(got.index) is type(expected.index)
    assert list(got.index.names) == list(expected.index.names)
    assert type(got.columns) is type(expected.columns)
    assert got.columns.dtype == expected.columns.dtype
    assert got.attrs == expected.attrs
    for place in range(expected.shape[1]):
        mine, theirs = got.iloc[:, place], expected.iloc[:, place]
        if theirs.dtype == object:
            assert [type(value) for value in mine] == [type(value) for value in theirs]
        if isinstance(theirs.dtype, pd.CategoricalDtype):
            assert mine.cat.categories.dtype == theirs.cat.categories.dtype
            assert mine.cat.codes.dtype == theirs.cat.codes.dtype
        if isinstance(theirs.dtype, pd.StringDtype):
            assert mine.dtype.storage == theirs.dtype.storage


def is_nested(column):
    """Tell whether a column holds lists, dicts and the like."""
    return column.dtype == object and any(isinstance(value, (np.ndarray, dict, list)) for value in column)


def nested_values_equal(got, expected):
    """Tell whether nested values are the same, in all that they are made of.

    What pyarrow makes of integers beside nulls in a struct depends on what else is in the file; an equal number will
    do. So does the dtype of lists of them and of booleans.
    """
    if isinstance(expected, np.ndarray):
        known = got.dtype == expected.dtype or {got.dtype.kind, expected.dtype.kind} <= set("iufbO")
        return known and len(got) == len(expected) and all(map(nested_values_equal, got.tolist(), expected.tolist()))
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and list(got) == list(expected)
            and all(nested_values_equal(got[key], value) for key, value in expected.items())
        )
    if isinstance(expected, (list, tuple)):
        return (
            type(got) is type(expected) and len(got) == len(expected) and all(map(nested_values_equal, got, expected))
        )
    if isinstance(expected, float):
        return (isinstance(got, (int, float)) and (got == expected or (got != got and expected != expected))) or (
            got is None and expected != expected
        )
    return type(got) is type(expected) and (got is expected or got == expected)


def write_by_pyarrow(table, **options):
    """Give the bytes of the file that pyarrow makes of a table or a frame."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table) if isinstance(table, pd.DataFrame) else table, buffer, **options)
    return buffer.getvalue()


def write_by_pandas(frame, **options):
    """Give the bytes of the file that pandas makes of a frame with pyarrow."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.to_parquet(buffer, engine="pyarrow", **options)
    return buffer.getvalue()


def assert_equal_to_pandas(data, oracle_options=None, **options):
    """Hold numparq's answer against pandas' own; give it."""
    from numparq import read_parquet

    got = read_parquet(data, **options)
    assert_frames_equal(got, read_by_pandas(data, **(oracle_options or options)))
    return got
