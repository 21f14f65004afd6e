"""Open a path as a table: one file, or a dataset."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from numparq.dataset.listing.table_formats import check_table_format
from numparq.errors import InvalidFileError, UnsupportedError
from numparq.file.readable_file import ReadableFile
from numparq.io.open import open_source
from numparq.keys.part_keys import keys_of_single_file
from numparq.typing import PathOrBuffer, PathOrPaths
from numparq.util.arguments import check_flag

if TYPE_CHECKING:
    from numparq.io.source import Source

    from .dataset import Dataset
    from .prune.file_query import QueryPruner
    from .prune.pruners import FilePruner


def open_table(
    path: PathOrPaths,
    schema: Any,
    resolve: str,
    on_error: str,
    external_files: bool,
    partitioning: Any,
    categories: Collection[str] | None,
    table_format: str,
    opening: dict[str, Any],
    pruners: Sequence[FilePruner | QueryPruner] = (),
) -> ReadableFile | Dataset:
    """Open a path as one file, however it is named, or as a dataset; `opening` are arguments of both.

    `pruners` are those of a dataset.
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', not {on_error!r}")
    if external_files is not False:
        check_flag(external_files, "external_files")
    if table_format != "auto":
        check_table_format(table_format)
    if partitioning is not None and partitioning != "hive":
        from .partitions.partitioning import parse_partitioning

        partitioning = parse_partitioning(partitioning)  # one file ignores it, but not a mistake
    if hasattr(path, "__fspath__"):  # converted once, as pathlib does it in Python
        path = os.fspath(path)
        path = os.fsdecode(path) if isinstance(path, bytes) else path
    is_plain = schema is None and resolve == "name"
    if is_plain and _is_one_file(path, opening["filesystem"]):
        return _open_file(path, on_error, external_files=external_files, **opening)
    from .dataset import Dataset

    of_table = {"schema": schema, "resolve": resolve, "categories": categories, "table_format": table_format}
    opened: Any = path
    if not isinstance(path, (str, list, tuple)):
        opened = open_source(path, opening["storage_options"], opening["filesystem"])
        opening = {**opening, "storage_options": None, "filesystem": None}
    dataset = Dataset(opened, partitioning=partitioning, pruners=pruners, **of_table, **opening)
    source = dataset._single_source() if is_plain else None
    if source is None:
        if external_files:
            with dataset:
                _reject_external_files(dataset)
        return dataset
    options = {"coalescing": opening["coalescing"], "decryption": dataset._keys_of_single_file()}
    return _open_file(source, on_error, external_files=external_files, **options)


def _is_one_file(path: PathOrPaths, filesystem: Any) -> TypeGuard[PathOrBuffer]:
    """Whether a path is known to be one file without a request: not a name, or a local file."""
    if not isinstance(path, str):
        return not isinstance(path, (list, tuple))
    return filesystem is None and "://" not in path and os.path.isfile(path)


def _open_file(path: PathOrBuffer | Source, on_error: str, **options: Any) -> ReadableFile:
    """Open a file; with ``on_error="skip"``, a damaged footer's error points to `numparq salvage`."""
    if "decryption" in options:
        options["decryption"] = keys_of_single_file(options["decryption"], path, options.get("filesystem"))
    try:
        return ReadableFile(path, **options)
    except InvalidFileError as error:
        if on_error == "skip":
            error.message += "; a file needs its footer: `numparq salvage` may rebuild it"
        raise


def _reject_external_files(dataset: Dataset) -> None:
    """Raise UnsupportedError: only a single file has sibling files of column chunks."""
    advice = "leave it out, since all files of a dataset are opened anyway"
    if dataset.partition_keys and len(dataset.files) == 1:
        advice = "partitioning=None reads its only file without partition columns"
    raise UnsupportedError(f"external_files=True needs a single file, but the path is a dataset; {advice}")
