"""Which open files have no wanted rows, by the statistics in their footers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..opened import OpenedFile
from ..predicate.bound import leaves_of
from ..predicate.expression import Constant
from ..pruning.chunk_facts import chunk_runs
from ..pruning.match import runs_that_may
from ..pruning.reasons import reason

if TYPE_CHECKING:
    from .file_filter import FileFilter
    from .files import DataFile

__all__ = ["StatisticsPruner"]


class StatisticsPruner:
    """Drops files of which no row group can have a wanted row, as far as their footers tell; nothing else is read.

    Parameters
    ----------
    file_filter : FileFilter
        What is asked.
    opened : mapping of str to OpenedFile
        The files that are open, by `DataFile.path`. Others are kept.
    runtime_filters : RuntimeFilter, or iterable of these
        Those that have arrived count.

    Attributes
    ----------
    name : str
        ``"statistics"``.
    reason : str
        What is asked.
    """

    name = "statistics"

    def __init__(self, file_filter: FileFilter, opened: Mapping[str, OpenedFile], runtime_filters: Any = ()) -> None:
        self._filter = file_filter
        self._opened = opened
        self._runtime = runtime_filters
        self.reason = reason(file_filter.asked)

    def keep(self, files: Sequence[DataFile]) -> np.ndarray:
        """Say which files may have wanted rows; see `FilePruner`."""
        return np.array([self._may(file, self._opened.get(file.path)) for file in files], np.bool_)

    def _may(self, data_file: DataFile, file: OpenedFile | None) -> bool:
        if file is None:
            return True
        condition = self._filter.condition(file, data_file, self._runtime)
        bound = None if condition is None else condition.now()
        if bound is None or isinstance(bound, Constant):
            return bound is None or bound.value
        groups = range(file.num_row_groups)
        runs = {leaf.index: chunk_runs(file, leaf, groups) for leaf in leaves_of(bound)}
        return bool(runs_that_may(bound, runs, len(groups)).any())
