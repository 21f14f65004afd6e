"""Whether new files go with those that a dataset has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from ...errors import ParquetError, SchemaError
from ...io.source import Source
from ...opened import OpenedFile
from ..entries import Found
from ..resolution import DatasetSchema
from .changes import Changes

__all__ = ["check_fits"]


def check_fits(
    found: Found, changes: Changes, open_source: Callable[[str], Source], new: Sequence[OpenedFile],
    same_name: Callable[[str], str] = str,
) -> None:  # fmt: skip
    """Refuse to put files beside others that no table can have together; one of those there stands for all.

    Parameters
    ----------
    found : Found
        What the dataset has.
    changes : Changes
        What of it goes.
    open_source : callable
        Opens one of its files.
    new : sequence of OpenedFile
        Of the files that come, one with each choice of columns.
    same_name : callable
        Gives the same for names of columns that are one to whom the dataset is for.

    Raises
    ------
    SchemaError
        When their columns do not go together.
    """
    if len(new) > 1:
        _check_together(new, same_name, "files of the write do not go together")
    going = set(changes.gone)
    staying = next((entry.path for entry in found.files if entry.path not in going), None)
    if staying is None:
        return
    try:
        with closing(open_source(staying)) as source:
            _check_together([OpenedFile(source), *new], same_name,
                            "what is written does not go with the files that are there")  # fmt: skip
    except SchemaError:
        raise
    except (ParquetError, FileNotFoundError):
        return  # what cannot be read, or has been replaced since it was listed, says nothing


def _check_together(files: Sequence[OpenedFile], same_name: Callable[[str], str], what: str) -> None:
    """Refuse files that no table can have together; `what` says so."""
    first, *others = files
    try:
        DatasetSchema.of(files)
        for other in others:
            _check_names(first.schema.columns, other.schema.columns, same_name)
    except SchemaError as error:
        error.where.pop("file", None)  # where a new file lies, or that it is none yet, tells nobody anything
        error.message = f"{what}: {error.message}"
        raise


def _check_names(old: Sequence[str], new: Sequence[str], same_name: Callable[[str], str]) -> None:
    """Refuse names that are other ones and yet the same: the dataset would have both columns."""
    known = {same_name(name): name for name in old}
    for name in new:
        other = known.get(same_name(name), name)
        if name not in old and other != name:
            raise SchemaError(f"their column is called {other!r}, and readers are to take both for one", column=name)
