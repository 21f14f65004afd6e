"""Virtual columns of a scan: file, row group and row number of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .file_reader import FileReader

__all__ = ["virtual_columns"]


def virtual_columns(names: Sequence[str], readers: Sequence[FileReader]) -> list[tuple[str, Any]]:
    """Build the virtual columns of decoded rows."""
    from numparq.to_pandas.strings import default_string_array

    columns: list[tuple[str, Any]] = []
    counts = [count for reader in readers for count in reader.counts]
    for name in names:
        if name == "file":
            files = default_string_array([one.file.source.name for reader in readers for one in reader.files])
            columns.append((name, files.take(np.arange(len(counts)).repeat(counts))))
        else:
            arrays = [reader.virtual_column(name) for reader in readers]
            columns.append((name, np.concatenate(arrays) if arrays else np.empty(0, np.int64)))
    return columns
