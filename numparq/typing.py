"""Types of public parameters."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, TypeAlias, Union

from .util.column_name import ColumnName as ColumnName
from .util.column_name import Columns as Columns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow.compute as pc

    from .expr.expression import Expression
    from .expr.runtime_filter import RuntimeFilter

PathLike: TypeAlias = str | os.PathLike[str]
# A path, a URL, the bytes of a file, or a file object opened for binary reading or writing.
PathOrBuffer: TypeAlias = PathLike | bytes | bytearray | memoryview | BinaryIO
# Also a directory, a glob, or a list of files.
PathOrPaths: TypeAlias = PathOrBuffer | Sequence[PathOrBuffer]


FilterTuple: TypeAlias = tuple[ColumnName, str, Any]
# An expression of `numparq.col` or of pyarrow, text, a list of tuples (all hold), or a list of such lists (any holds).
Filters: TypeAlias = Union[
    "Expression", "pc.Expression", str, Sequence[FilterTuple], Sequence[Sequence[FilterTuple]], None
]

RuntimeFilters: TypeAlias = Iterable["RuntimeFilter"]
# First row and exclusive end; None is the start or the end of the table.
RowRange: TypeAlias = tuple[int | None, int | None] | range | slice | None

# One codec (None: uncompressed), or codecs by column.
Compression: TypeAlias = str | Mapping[str, str | None] | None
# One value for all columns, or values by column.
CompressionLevel: TypeAlias = int | Mapping[str, int | None] | None
ColumnEncoding: TypeAlias = str | Mapping[str, str | None] | None
# All columns or none, some columns by name, or flags by column.
ColumnFlags: TypeAlias = bool | Collection[str] | Mapping[str, bool]
# A name, (name, descending), (name, descending, nulls_first), or an object like `pyarrow.parquet.SortingColumn`.
SortingColumns: TypeAlias = Sequence[Any] | None


class ArrowStream(Protocol):
    """Rows of any library as an Arrow stream: polars.DataFrame, pyarrow.Table, a relation of duckdb."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


FrameOrArrow: TypeAlias = Union["pd.DataFrame", ArrowStream]

DtypeBackend: TypeAlias = Literal["numpy_nullable", "pyarrow"]
StorageOptions: TypeAlias = dict[str, Any] | None
