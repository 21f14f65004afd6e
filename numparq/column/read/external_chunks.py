"""External column chunks: `file_path` of a ColumnChunk, as `_metadata` files use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from numparq.errors import ParquetError, UnsupportedError, error_context
from numparq.format.footer.column_chunks import ColumnChunks
from numparq.format.schema import Leaf
from numparq.io.multi_file_source import MultiFileSource

__all__ = ["ExternalChunks"]


class ExternalChunks:
    """Which file each column chunk is in.

    Parameters
    ----------
    chunks : ColumnChunks
        The footer's.
    row_groups : list of int
        Those read.
    leaves : sequence of Leaf
        The columns read.
    has_path : array, (row groups, columns)
        Which of the chunks have a path.
    end : int
        Where the data of the file itself ends.
    files : MultiFileSource or None
        What opens other files; None where nobody asked for that.
    refuse : callable
        Is handed the row group and column (its position among `leaves`) of a chunk whose file is not read, and the
        error that says why; it may raise that.

    Attributes
    ----------
    starts, ends : int64 array, (row groups, columns)
        Positions in `files` between which a chunk's file is.
    """

    def __init__(
        self,
        chunks: ColumnChunks,
        row_groups: list[int],
        leaves: Sequence[Leaf],
        has_path: np.ndarray,
        end: int,
        files: MultiFileSource | None,
        refuse: Callable[[int, int, ParquetError], None],
    ) -> None:
        self.starts = np.zeros(has_path.shape, np.int64)
        self.ends = np.full(has_path.shape, end, np.int64)
        self._paths: dict[tuple[object, object], str] = {}
        places = np.argwhere(has_path)
        groups, columns = (array.tolist() for array in places.T)
        ordinals = [row_groups[group] for group in groups]
        paths = chunks.texts("file_path", ordinals, [leaves[column].index for column in columns])
        for group, ordinal, column, path in zip(groups, ordinals, columns, paths, strict=True):
            if not path:  # no path, or a relative one to the file itself
                continue
            name = leaves[column].name
            try:
                with error_context(row_group=ordinal, column=name):
                    start, size = _file_span(path, files)
            except ParquetError as error:
                refuse(ordinal, column, error)
                continue
            self.starts[group, column], self.ends[group, column] = start, start + size
            self._paths[ordinal, name] = path

    def path_of(self, row_group: object, column: object) -> str | None:
        """Give the path of a chunk, by the name of its column; None where it is in the file itself."""
        return self._paths.get((row_group, column))


def _file_span(path: str, files: MultiFileSource | None) -> tuple[int, int]:
    if files is None:
        shown = path if len(path) <= 200 else path[:200] + "..."
        raise UnsupportedError(
            f"the column chunk is in another file, {shown!r}; with external_files=True, what lies below the folder of "
            "the file itself is read"
        )
    return files.place_of(path)
