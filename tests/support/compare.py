"""Comparison of frames in end-to-end tests, and reads by pandas with pyarrow."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd

BACKENDS = (None, "numpy_nullable", "pyarrow")


def backend_options(name):
    """Return the keyword arguments for a ``dtype_backend``; none for the default, which pandas refuses by name."""
    return {} if name is None else {"dtype_backend": name}


def read_by_pandas(source, **options):
    """Read with pandas and pyarrow."""
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.read_parquet(source, engine="pyarrow", **options)


def assert_frames_equal(got, expected):
    """Check that frames are equal in values, dtypes, index, labels and object types."""
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
    """Whether a column holds lists, dicts or the like."""
    return column.dtype == object and any(isinstance(value, (np.ndarray, dict, list)) for value in column)


def nested_values_equal(got, expected):
    """Whether nested values are equal, recursively.

    pyarrow's types for integers and booleans beside nulls depend on the rest of the file, so equal numbers suffice.
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
    """Return the file that pyarrow writes for a table or a frame."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table) if isinstance(table, pd.DataFrame) else table, buffer, **options)
    return buffer.getvalue()


def write_by_pandas(frame, **options):
    """Return the file that pandas writes for a frame with pyarrow."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.to_parquet(buffer, engine="pyarrow", **options)
    return buffer.getvalue()


def assert_equal_to_pandas(data, oracle_options=None, **options):
    """Check that numparq reads the file as pandas does; return the frame."""
    from numparq import read_parquet

    got = read_parquet(data, **options)
    assert_frames_equal(got, read_by_pandas(data, **(oracle_options or options)))
    return got
