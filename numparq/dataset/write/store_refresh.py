"""Refresh a data-skipping store after a commit, so that it knows the new files."""

from __future__ import annotations

import warnings
from typing import Protocol

from numparq.errors import ParquetError
from numparq.typing import PathLike


class RefreshableStore(Protocol):
    """Protocol of `numparq.skipping.Store`, as far as a commit needs it."""

    def refresh(self, dataset: PathLike) -> object:
        """Index the files of a dataset that are new or changed."""
        ...


def check_refreshable(skipping: RefreshableStore | None) -> RefreshableStore | None:
    """Return the `skipping` argument of a writer; TypeError unless it is None or has a method ``refresh``."""
    if skipping is not None and not hasattr(skipping, "refresh"):
        raise TypeError(f"skipping must be a numparq.skipping.Store, not {type(skipping).__name__}")
    return skipping


def refresh_store(skipping: RefreshableStore | None, dataset: PathLike) -> None:
    """Refresh a store after a commit, which cannot be undone: an error becomes a warning.

    A store that was not refreshed costs time, never rows: files that it does not know are read.
    """
    if skipping is None:
        return
    try:
        skipping.refresh(dataset)
    except (ParquetError, OSError, ValueError) as error:
        message = f"the write is committed, but its data-skipping store is not refreshed: {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
