"""What end-to-end tests share: how frames are compared, and what pandas reads with pyarrow."""

from __future__ import annotations

import io
import warnings

import pandas as pd

BACKENDS = (None, "numpy_nullable", "pyarrow")


def backend(name):
    """Give the keyword argument for a ``dtype_backend``, which pandas does not want to see where it is the default."""
    return {} if name is None else {"dtype_backend": name}


def oracle(source, **options):
    """Read as pandas does with pyarrow."""
    source = io.BytesIO(source) if isinstance(source, bytes) else source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pd.read_parquet(source, engine="pyarrow", **options)


def assert_same(got, expected):
    """Hold a frame against the one expected: values, dtypes, index, labels, the types of objects."""
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


def written(table, **options):
    """Give the bytes of the file that pyarrow makes of a table or a frame."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(table) if isinstance(table, pd.DataFrame) else table, buffer, **options)
    return buffer.getvalue()


def saved(frame, **options):
    """Give the bytes of the file that pandas makes of a frame with pyarrow."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame.to_parquet(buffer, engine="pyarrow", **options)
    return buffer.getvalue()


def check(data, oracle_options=None, **options):
    """Hold numparq's answer against pandas' own; give it."""
    from numparq import read_parquet

    got = read_parquet(data, **options)
    assert_same(got, oracle(data, **(oracle_options or options)))
    return got
