"""Whether new files go with those that a dataset has."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ParquetError, SchemaError
from ...io.source import Source
from ...opened import OpenedFile
from ..entries import Found
from ..resolution import DatasetSchema
from .changes import Changes

__all__ = ["check_fits"]


def check_fits(found: Found, changes: Changes, open_source: Callable[[str], Source], new: OpenedFile) -> None:
    """Refuse to put files beside others that no table can have together; one of these stands for all.

    Parameters
    ----------
    found : Found
        What the dataset has.
    changes : Changes
        What of it goes.
    open_source : callable
        Opens one of its files.
    new : OpenedFile
        A file that comes.

    Raises
    ------
    SchemaError
        When their columns do not go together.
    """
    going = set(changes.gone)
    staying = next((entry.path for entry in found.files if entry.path not in going), None)
    if staying is None:
        return
    source = open_source(staying)
    try:
        DatasetSchema.of([OpenedFile(source), new])
    except SchemaError as error:
        error.message = f"what is written does not go with the files that are there: {error.message}"
        raise
    except ParquetError:
        return  # what cannot be read says nothing
    finally:
        source.close()
