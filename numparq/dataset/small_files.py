"""Read many small files, given by path or as bytes, into one frame with each row's file ordinal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from numparq.expr.filters import as_expression
from numparq.expr.runtime_filter import check_runtime_filters
from numparq.format.open_file import OpenFile
from numparq.io.filesystem import resolve_paths
from numparq.io.local_source import BytesSource
from numparq.keys.part_keys import DatasetKeys, keys_of_single_file
from numparq.keys.provider import as_key_source
from numparq.scan.options import ScanOptions
from numparq.scan.scan import Scan
from numparq.scan.scan_file import ScanFile
from numparq.typing import Columns, Filters, PathLike, PathOrBuffer, RuntimeFilters, StorageOptions

from .discover.files import DatasetListing
from .discover.open_files import open_files
from .listing.files import DataFile
from .prune.dataset_filter import DatasetFilter
from .scan.projected_columns import project_columns
from .scan.schema_only import SchemaOnlyColumns, SchemaOnlyPartitions
from .schema_merge.dataset_schema import DatasetSchema
from .splits.serialized_schema import SerializedSchema

if TYPE_CHECKING:
    import pandas as pd

    from numparq.crypto.key import KeySource

_CELL = "numparq: which cell"  # partition column; each cell is a partition


def read_small_files(
    cells: Sequence[PathOrBuffer],
    columns: Columns = None,
    filters: Filters = None,
    *,
    runtime_filters: RuntimeFilters = (),
    schema: Any = None,
    resolve: str = "name",
    storage_options: StorageOptions = None,
    filesystem: Any = None,
    dtype_backend: str = "numpy",
    dates: str = "objects",
    include: Collection[str] = (),
    verify_crc: bool = True,
    threads: int | None = None,
    decryption: KeySource | str | None = None,
) -> tuple[pd.DataFrame, np.ndarray]:
    """Read many small files into one frame.

    Parameters
    ----------
    cells : sequence of (str or os.PathLike), or of bytes-like
        Paths or URLs of files, or the bytes of files; all of one kind. The same one may be there several times.
    columns, filters, runtime_filters, dtype_backend, dates, include, verify_crc, threads, decryption
        As in `numparq.read_parquet`.
    schema, resolve, storage_options, filesystem
        As of `numparq.Dataset`.

    Returns
    -------
    frame : pandas.DataFrame
        The rows of all cells, in their order. Dtypes are by the schema of all cells (or the given one) alone:
        integers and booleans are nullable ones unless the column is REQUIRED, no column is a Categorical or an index.
    which : int64 array
        For each row, the ordinal of its cell.

    Raises
    ------
    ParquetError
        As for a `Dataset` of these files; a cell of bytes is called ``<cell 3>``.
    ValueError
        When there is neither a cell nor a schema.
    """
    options = ScanOptions(
        filters=None if filters is None else as_expression(filters),
        runtime_filters=tuple(check_runtime_filters(runtime_filters)),
        dtype_backend=dtype_backend,
        dates=dates,
        include=tuple(include),
        verify_crc=verify_crc,
        threads=threads,
    )
    with _open_cells(cells, storage_options, filesystem, as_key_source(decryption)) as opened:
        merged = SerializedSchema(DatasetSchema.from_files(opened, resolve=resolve, schema=schema), resolve).schema
        partitions = SchemaOnlyPartitions([_CELL], [(str(at),) for at in range(len(opened))], {_CELL: "int64"})
        names = None if columns is None else [*columns, _CELL]
        selected = project_columns(merged, partitions, names, options).selected
        projection = SchemaOnlyColumns(merged.schema_file, selected, options, partitions)
        files = _scan_files(
            opened, DatasetFilter(options.filters, merged, partitions, options.runtime_filters), options
        )
        projection.map_files(merged, files)
        scan = Scan(projection, files, options)
        frame = scan.read_unit(files, None, scan.to_frame)[2]
    which = frame.pop(_CELL)
    return frame, which.to_numpy(np.int64)


def _scan_files(opened: Sequence[OpenFile], filters: DatasetFilter, options: ScanOptions) -> list[ScanFile]:
    """Return all files with rows that the filter does not exclude."""
    files = []
    for at, file in enumerate(opened):
        cell = DataFile(file.source.name, file.source.name, values=(str(at),))
        files.append(ScanFile(file, at, predicate=filters.scan_predicate(file, cell, options.runtime_filters)))
    return [one for one in files if one.file.num_rows and not one.matches_nothing]


@contextmanager
def _open_cells(
    cells: Sequence[PathOrBuffer], storage_options: StorageOptions, filesystem: Any, keys: KeySource | None
) -> Iterator[list[OpenFile]]:
    """Open all cells, and close them at the end."""
    files: list[OpenFile] = []
    try:
        if any(isinstance(cell, bytes | bytearray | memoryview) for cell in cells):
            for at, cell in enumerate(cells):
                if not isinstance(cell, bytes | bytearray | memoryview):
                    raise TypeError(f"cell {at} is {type(cell).__name__}, but other cells are bytes; use one kind")
                own = keys_of_single_file(keys, cell)
                files.append(OpenFile(BytesSource(cell, f"<cell {at}>"), decryption=own))
        elif cells:
            paths = resolve_paths(cast("Sequence[PathLike]", list(cells)), storage_options, filesystem)
            named = [DataFile(path, paths.display_name(path)) for path in paths.paths]
            parts = None if keys is None else DatasetKeys.of_dataset(keys, None, paths.filesystem is None)
            listing = DatasetListing(named, filesystem=paths.filesystem)  # type: ignore[arg-type]
            files = open_files(listing, named, keys=parts)
        yield files
    finally:
        for file in files:
            file.close()
