"""Types of public parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias, Union

if TYPE_CHECKING:
    from .expr.expression import Expression

__all__ = [
    "ColumnName",
    "Columns",
    "DtypeBackend",
    "FilterTuple",
    "Filters",
    "PathLike",
    "PathOrBuffer",
    "PathOrPaths",
    "StorageOptions",
]

PathLike: TypeAlias = str | os.PathLike[str]
# A path, a URL, the bytes of a file, or a file object opened for binary reading or writing.
PathOrBuffer: TypeAlias = PathLike | bytes | bytearray | memoryview | BinaryIO
# Also a directory, a glob, or a list of files.
PathOrPaths: TypeAlias = PathOrBuffer | Sequence[PathOrBuffer]

# A dotted name is first a top-level column of exactly that name, then a path; a tuple is always a path.
ColumnName: TypeAlias = str | tuple[str, ...]
Columns: TypeAlias = Sequence[ColumnName] | None

FilterTuple: TypeAlias = tuple[ColumnName, str, Any]
# An expression of `numparq.col`, a list of tuples (all hold), or a list of such lists (any holds).
Filters: TypeAlias = Union["Expression", Sequence[FilterTuple], Sequence[Sequence[FilterTuple]], None]

DtypeBackend: TypeAlias = Literal["numpy_nullable", "pyarrow"]
StorageOptions: TypeAlias = Mapping[str, Any] | None
