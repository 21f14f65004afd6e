"""`read_parquet`: Parquet files to DataFrames in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from .errors import UnsupportedError
from .reader import ParquetFile

if TYPE_CHECKING:
    import pandas as pd

_DEFAULT = object()
DTYPE_BACKENDS = ("numpy", "numpy_nullable", "pyarrow")


def read_parquet(
    path: Any,
    columns: Sequence[str] | None = None,
    filters: Any = None,
    *,
    dtype_backend: Any = _DEFAULT,
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
    row_groups: Sequence[int] | None = None,
    row_range: tuple[int | None, int | None] | None = None,
    nrows: int | None = None,
    partitioning: str | None = "hive",
    schema: Any = None,
    resolve: str = "name",
    categories: Collection[str] | None = None,
    include: Sequence[str] = (),
    decryption: Any = None,
    verify_crc: bool = True,
    on_error: str = "raise",
    memory_limit: int | None = None,
    threads: int | None = None,
) -> pd.DataFrame:
    """Read a Parquet file into a DataFrame.

    What comes back equals ``pandas.read_parquet(path, engine="pyarrow")``, dtypes and index included, but for what
    that gets wrong; ``docs/differences.md`` has the list.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, or binary file object
        The file's name, its bytes, or an object with ``read`` and ``seek``.
    columns : list of str, optional
        Names of the columns to read, in the order wanted; by default all. The columns of the index are read along.
    dtype_backend : {"numpy_nullable", "pyarrow"}, optional
        As in pandas; by default columns of NumPy dtypes, and ``str`` for strings.
    row_groups : list of int, optional
        Ordinals of the row groups to read, in the order wanted.
    row_range : (int, int), optional
        First row, and the one behind the last, counted over the whole file. Together with `row_groups`: the rows
        that both select.
    nrows : int, optional
        At most so many rows, the first of those selected.
    categories : collection of str, optional
        Columns to read as Categorical. Those that were Categorical when they were written are so anyway.
    include : list of {"file", "row_group", "row_number"}, optional
        Virtual columns to add behind the others: the file's name, the ordinal of the row group, the row's
        position in the file (from 0).
    verify_crc : bool
        Whether pages that have a checksum are held against it.
    threads : int, optional
        Threads that decode; by default one for each core that this process may use.
    filters, storage_options, filesystem, partitioning, schema, resolve, decryption, on_error, memory_limit
        Not supported yet: anything but the default raises UnsupportedError.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidFileError
        When the file is damaged, or no Parquet file; the message says where.
    SchemaError
        When the file has no such column.
    UnsupportedError
        For what this version does not read.
    LimitError
        When memory does not suffice.

    Examples
    --------
    >>> import io, pandas, numparq
    >>> buffer = io.BytesIO()
    >>> pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]}).to_parquet(buffer)
    >>> numparq.read_parquet(buffer, columns=["b"], row_range=(1, 3))
         b
    0    y
    1  NaN
    """
    _refuse(
        filters=(filters, lambda value: value is None),
        storage_options=(storage_options, lambda value: not value),
        filesystem=(filesystem, lambda value: value is None),
        partitioning=(partitioning, lambda value: value in ("hive", None)),
        schema=(schema, lambda value: value is None),
        resolve=(resolve, lambda value: value == "name"),
        decryption=(decryption, lambda value: value is None),
        on_error=(on_error, lambda value: value == "raise"),
        memory_limit=(memory_limit, lambda value: value is None),
    )
    with ParquetFile(path) as file:
        return file.read(
            columns, dtype_backend=_backend(dtype_backend), row_groups=row_groups, row_range=row_range, nrows=nrows,
            categories=categories, include=include, verify_crc=verify_crc, threads=threads,
        )  # fmt: skip


def _refuse(**arguments: tuple[Any, Callable[[Any], bool]]) -> None:
    for name, (value, is_default) in arguments.items():
        if not is_default(value):
            raise UnsupportedError(f"read_parquet({name}={value!r}) is not supported by this version of numparq")


def _backend(dtype_backend: Any) -> str:
    """Settle the ``dtype_backend`` argument; pandas' own mark for "not given" counts as that."""
    if dtype_backend is _DEFAULT or dtype_backend is None or "no_default" in str(dtype_backend):
        return "numpy"
    if dtype_backend not in DTYPE_BACKENDS:
        raise ValueError(f"dtype_backend must be 'numpy_nullable' or 'pyarrow', not {dtype_backend!r}")
    return dtype_backend
