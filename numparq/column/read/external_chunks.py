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
    """Files that hold the column chunks of a read.

    `files` opens sibling files; None means that these are not allowed. `refuse` handles a chunk whose file
    cannot be read: it gets the row group, the column's position among `leaves` and the error.

    Attributes
    ----------
    starts, ends : numpy.ndarray
        int64, (row groups, columns): position of a chunk's file in `files`, end exclusive.
    """

    def __init__(
        self,
        chunks: ColumnChunks,
        row_groups: list[int],
        leaves: Sequence[Leaf],
        has_path: np.ndarray,
        end: int | np.ndarray,
        files: MultiFileSource | None,
        refuse: Callable[[int, int, ParquetError], None],
    ) -> None:
        self.starts = np.zeros(has_path.shape, np.int64)
        self.ends = np.empty(has_path.shape, np.int64)
        self.ends[:] = end
        self._paths: dict[tuple[object, object], str] = {}
        places = np.argwhere(has_path)
        groups, columns = (array.tolist() for array in places.T)
        ordinals = [row_groups[group] for group in groups]
        paths = chunks.read_texts("file_path", ordinals, [leaves[column].index for column in columns])
        for group, ordinal, column, path in zip(groups, ordinals, columns, paths, strict=True):
            if not path:  # unset or empty: the chunk is in the file itself
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
        """Return the path of a chunk's file, by row group and column name; None if it is in the file itself."""
        return self._paths.get((row_group, column))


def _file_span(path: str, files: MultiFileSource | None) -> tuple[int, int]:
    if files is None:
        shown = path if len(path) <= 200 else path[:200] + "..."
        raise UnsupportedError(
            f"the column chunk is in another file, {shown!r}; use external_files=True to read files below the folder "
            "of this file"
        )
    return files.add_file(path)
