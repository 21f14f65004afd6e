"""Open a path as a table: one file, or a dataset."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeGuard

from numparq.errors import InvalidFileError
from numparq.file.reader import ParquetFile
from numparq.typing import PathOrBuffer, PathOrPaths

if TYPE_CHECKING:
    from numparq.io.source import Source

    from .dataset import Dataset

__all__ = ["open_table"]


def open_table(
    path: PathOrPaths,
    schema: Any,
    resolve: str,
    on_error: str,
    external_files: bool,
    partitioning: Any,
    categories: Collection[str] | None,
    opening: dict[str, Any],
) -> ParquetFile | Dataset:
    """Open a path as one file or a dataset; `opening` are arguments of both."""
    is_plain = schema is None and resolve == "name"
    if is_plain and _is_one_file(path, opening["filesystem"]):
        return _open_file(path, on_error, external_files=external_files, **opening)
    from .dataset import Dataset

    if not isinstance(path, (str, os.PathLike, list, tuple)):
        raise TypeError(f"schema and resolve need a path or a list of paths, not {type(path).__name__}")
    dataset = Dataset(path, partitioning=partitioning, schema=schema, resolve=resolve, categories=categories, **opening)
    source = dataset.single_source() if is_plain else None
    if source is None:
        return dataset
    return _open_file(source, on_error, external_files=external_files, coalescing=opening["coalescing"])


def _is_one_file(path: PathOrPaths, filesystem: Any) -> TypeGuard[PathOrBuffer]:
    """Whether a path is known to be one file without a request: not a name, or a local file."""
    if isinstance(path, (list, tuple)):
        return False
    if not isinstance(path, (str, os.PathLike)):
        return True
    name = os.fsdecode(path)
    return filesystem is None and "://" not in name and os.path.isfile(name)


def _open_file(path: PathOrBuffer | Source, on_error: str, **options: Any) -> ParquetFile:
    """Open a file; with ``on_error="skip"``, a damaged footer's error points to `numparq salvage`."""
    try:
        return ParquetFile(path, **options)
    except InvalidFileError as error:
        if on_error == "skip":
            error.message += "; a file needs its footer: `numparq salvage` may rebuild it"
        raise
