"""Public function `read_parquet`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from numparq.dataset.open_table import open_table
from numparq.errors import short_traceback
from numparq.file.argument_advice import READ_ADVICE
from numparq.keys.provider import as_key_source
from numparq.scan.options import ScanOptions
from numparq.types.choose import resolve_dtype_backend
from numparq.typing import (
    ColumnName,
    Columns,
    Dates,
    DtypeBackend,
    Files,
    Filters,
    Geometries,
    Include,
    OnError,
    PathLike,
    PathOrPaths,
    Resolve,
    RowRange,
    RuntimeFilters,
    StorageOptions,
    TableFormat,
    Variants,
)
from numparq.util.arguments import explain_unknown_arguments

if TYPE_CHECKING:
    import pandas as pd

    from numparq.crypto.key import KeySource
    from numparq.dataset.prune.file_query import QueryPruner
    from numparq.dataset.prune.pruners import FilePruner
    from numparq.io.coalesce import Coalescing


@short_traceback
@explain_unknown_arguments(READ_ADVICE)
def read_parquet(
    path: PathOrPaths,
    columns: Columns = None,
    filters: Filters = None,
    *,
    runtime_filters: RuntimeFilters = (),
    explode: ColumnName | None = None,
    dtype_backend: DtypeBackend | None = None,
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    coalescing: Coalescing | None = None,
    row_groups: Sequence[int] | None = None,
    row_range: RowRange = None,
    nrows: int | None = None,
    partitioning: Any = "hive",
    schema: Any = None,
    resolve: Resolve = "name",
    categories: Collection[str] | None = None,
    table_format: TableFormat = "auto",
    pruners: Sequence[FilePruner | QueryPruner] = (),
    skipping: QueryPruner | PathLike | None = None,
    include: Include = (),
    dates: Dates = "objects",
    geometries: Geometries = "wkb",
    variants: Variants = "values",
    files: Files = "references",
    decryption: KeySource | str | None = None,
    verify_crc: bool = True,
    on_error: OnError = "raise",
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: bool = False,
    external_files: bool = False,
) -> pd.DataFrame:
    """Read a Parquet file, or many as one table, into a DataFrame.

    The result equals ``pandas.read_parquet(path, engine="pyarrow")``, dtypes and index included, except where that is
    wrong; ``docs/differences.md`` lists the cases. A list, glob or directory of one file is that file. Many files have
    the dtypes that one file with all their rows would have.

    Parameters
    ----------
    path : str, os.PathLike, bytes-like, binary file object, or list of str or os.PathLike
        File name or URL (with ``fsspec``), the file's bytes, or an object with ``read`` and ``seek``. A directory, a
        glob or a list of names is a dataset, whose rows come in the order of the file names (``docs/datasets.md``).
    columns : list of str, optional
        Columns to read, in this order; default: all. Index columns are read as well. A dotted name that matches no
        column is a path into a nested column, as is a tuple of names; only the leaf columns below it are read. A
        field of structs becomes a column; for lists and maps (``"l.list.element.x"``) the other fields are left out.
    filters : expression, str, or list of tuples, optional
        Predicate: an expression on `numparq.col` or of `pyarrow.compute`, text such as ``"fare > 10 and zone = 'A'"``,
        or tuples ``(column, operator, value)`` as in pandas. All tuples of a list must hold; of a list of lists, one
        list must. Nulls satisfy no comparison (``docs/filtering.md``). Pages that cannot contain matching rows are not
        read. Filter columns need not be in `columns`.
    runtime_filters : list of RuntimeFilter, optional
        Filters that drop rows as soon as they are known, which may be during the read.
    explode : str or tuple of str, optional
        Path of a list or map whose elements become rows, one each (``docs/exploding.md``). Other columns are
        repeated; a null or empty list gives no row. Structs inside become one column a field, maps a key and a
        value column.
    dtype_backend : {"numpy_nullable", "pyarrow"}, optional
        As in pandas; default: NumPy dtypes, and ``str`` for strings.
    storage_options : dict, optional
        Options for the file system of a URL.
    filesystem : fsspec or pyarrow file system, optional
        File system that contains `path`.
    coalescing : Coalescing, optional
        Which byte ranges are fetched together: the largest gap between two of them (`gap`) and the largest request
        (`max_bytes`). Default: no gap for local files, up to 1 MiB for remote files.
    row_groups : list of int, optional
        Ordinals of the row groups to read, in this order; those of many files count on from file to file.
    row_range : (int, int), optional
        First row and end (exclusive), counted over the whole file, or all. With `row_groups`, rows must be in both.
    nrows : int, optional
        Maximum number of rows: the first selected ones; with `filters`, the first that satisfy them.
    categories : collection of str, optional
        Columns to read as Categorical. Columns written as Categorical always are.
    include : list of {"file", "row_group", "row_number"}, optional
        Virtual columns to append: file name, row group ordinal, row position in the file (from 0). With `explode`
        also ``"position"``, the element's position in its list.
    dates : {"objects", "datetime64"}
        Output of DATE columns: `datetime.date` objects, as in pandas, or ``datetime64[ms]``, which is several times
        faster. With ``dtype_backend="pyarrow"`` they are always ``date32[day]``.
    geometries : {"wkb", "geopandas"}
        Output of GEOMETRY and GEOGRAPHY columns: well-known binary, or geometries in a GeoDataFrame (requires
        geopandas). `ParquetFile.geospatial` has their CRS and bounding boxes.
    variants : {"values", "bytes"}
        Output of VARIANT columns, shredded or not: Python objects (dicts, lists, numbers, strings, dates, and so on),
        or dicts of ``metadata`` and ``value``, bytes for `numparq.variant.decode`. With ``dtype_backend="pyarrow"``
        they are always an Arrow struct of these two.
    files : {"references", "bytes"}
        Output of FILE columns: dicts of the reference's fields (``uri``, ``offset``, ``size``, ...), or the bytes
        referred to: inline, in this file, or, with `external_files`, in a sibling file.
    verify_crc : bool
        Whether to verify page checksums.
    on_error : {"raise", "skip"}
        What to do about damage: raise, or skip it. ``"skip"`` drops rows that are damaged in any column, and columns
        that would leave no rows; row labels stay those of all rows, unless filtered. ``df.attrs["numparq.lost"]`` then
        lists (file, row group, column, row range, reason). A damaged footer still raises.
    threads : int, optional
        Threads that decode; default: one for each core that this process may use, at most 8.
    progress : bool, default False
        Whether to show a progress bar: in a terminal (on standard error) or a notebook; elsewhere nothing is shown.
    external_files : bool
        Whether column chunks may be read from sibling files that the file names, as ``_metadata`` files do. Only
        regular files below the file's own folder, on the same file system, are opened.
    partitioning : {"hive"}, None, list or dict
        For datasets, how directory names become columns: ``key=value``; not at all; or by position, given a list of
        names. A dict (or a list of pairs) gives the types as well.
    schema : pyarrow.Schema, sequence or dict, optional
        Columns of the table; files may lack some, or store a narrower type. Default: the columns of all files.
    resolve : {"name", "position", "field_id"}
        How columns of different files are matched.
    table_format : {"auto", "parquet"}
        ``"auto"`` reads a directory that Spark streams to by its log, and refuses tables of Delta Lake, Hudi and
        Iceberg; ``"parquet"`` reads all files as they are (``docs/table-formats.md``).
    pruners : sequence of FilePruner
        Additional file pruners of a dataset, as in `numparq.Dataset`.
    skipping : numparq.skipping.Store, or its folder, optional
        Data-skipping store of a dataset: files that it rules out for `filters` are not opened (``docs/skipping.md``).
    memory_limit : int, optional
        Bytes of memory. A read that would take more, as estimated from the footers, raises LimitError before it
        starts; `ParquetFile.iter_batches` reads in parts.
    decryption : Decryption or str, optional
        Keys of encrypted files, or the name ``"package.module:attribute"`` of what provides them
        (``docs/encryption.md``). With keys, a file that is not encrypted is refused unless the keys allow it.

    Returns
    -------
    pandas.DataFrame

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ImportError
        For a URL, if fsspec or the package for this kind of URL is not installed.
    InvalidFileError
        If the file is damaged, or not a Parquet file; the message says where.
    SchemaError
        If the file has no such column.
    UnsupportedError
        If the file or the call needs a feature that this version lacks.
    LimitError
        If the read exceeds the available memory or `memory_limit`.

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
    keys = None if decryption is None else as_key_source(decryption)
    options = ScanOptions(
        filters=filters,
        runtime_filters=runtime_filters,
        explode=explode,
        dtype_backend="numpy" if dtype_backend is None else resolve_dtype_backend(dtype_backend),
        row_groups=row_groups,
        row_range=row_range,
        nrows=nrows,
        categories=categories,
        include=include,
        dates=dates,
        geometries=geometries,
        variants=variants,
        files=files,
        verify_crc=verify_crc,
        on_error=on_error,
        threads=threads,
        memory_limit=memory_limit,
        progress=progress,
    )
    opening = {"storage_options": storage_options, "filesystem": filesystem, "coalescing": coalescing}
    if keys is not None:
        opening["decryption"] = keys
    if skipping is not None:
        from numparq.skipping.open_store import open_store

        pruners = *pruners, open_store(skipping)
    table = open_table(
        path, schema, resolve, on_error, external_files, partitioning, categories, table_format, opening, pruners
    )
    try:
        return table._read(columns, options)
    finally:
        table.close()
