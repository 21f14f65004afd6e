"""What a run of `optimize` is to do: rows divided, new files described, and what is asked for checked beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dataset.clustering import Clustering
from ..dataset.layout import LAYOUT_KEY, WantedLayout
from ..dataset.rewriting import NewFiles, Rewriting, pieces_of
from ..dataset.splits import SplitTable
from ..errors import SchemaError
from ..selection import missing
from ..writer import ParquetWriter
from .optimize_choices import ROWS_PER_PAGE, ROWS_WITH_BLOOM_FILTERS
from .optimize_keys import united_keys
from .optimize_pieces import TASK_BYTES, known_as
from .optimize_report import LaidOut
from .optimize_sorting import Packing

__all__ = ["Plan"]


class Plan:
    """What is to be done; nothing is done yet but to look at footers.

    Parameters
    ----------
    rewriting : Rewriting
        The files that go.
    wanted : WantedLayout
        What they are to become.
    options : dict
        Of new files, as in `numparq.ParquetWriter`.
    storage_options : dict or None
        Of the dataset.

    Attributes
    ----------
    table : SplitTable
        The rows, divided.
    pieces : list of Piece
        These, by folders.
    new : NewFiles
        What new files are like.
    sort_by, cluster_by : tuple of str
        The columns by which rows are sorted or clustered within a folder.
    expected : LaidOut
        What will be there, about.

    Raises
    ------
    SchemaError
        When there is no such column, or it cannot be sorted by.
    ValueError
        When there is no such option, or options do not go together.
    """

    def __init__(
        self, rewriting: Rewriting, wanted: WantedLayout, options: dict[str, Any],
        storage_options: dict[str, Any] | None,
    ) -> None:  # fmt: skip
        self.rewriting, self.wanted, self._options = rewriting, wanted, options
        split_bytes = min(TASK_BYTES, max(wanted.file_bytes // 8, 1 << 16))
        self.table = rewriting.table(None, split_bytes, storage_options)
        folders = {known_as(file.file.path, rewriting): folder.name
                   for folder in rewriting.folders for file in folder.files}  # fmt: skip
        self.pieces = pieces_of(self.table, folders.__getitem__)
        self.new = NewFiles.like(self.table.prototype)
        self._keys_of_all = united_keys(rewriting.files, list(self.new.schema.columns))
        self.sort_by = self._keys("sort_by", wanted.sort_by)
        self.cluster_by = self._keys("cluster_by", wanted.cluster_by)
        self.packing()  # which refuses columns that cannot be sorted by
        with ParquetWriter(None, threads=1, **self.writer_options(wanted.bloom_filters or ())) as trial:
            trial.write(_no_rows(self.table), index=False)  # which refuses options
        num_files = self.num_files(sum(folder.num_bytes for folder in rewriting.folders))
        self.expected = LaidOut(max(num_files, len(rewriting.folders)), 0, self.num_rows, 0)

    def _keys(self, what: str, names: Sequence[str]) -> tuple[str, ...]:
        """Check columns to sort by; in a directory, all rows have the same value of a partition column."""
        names = [name for name in names if name not in self.rewriting.keys]
        for name in names:
            if name not in self.new.schema.columns:
                raise missing(name, list(self.new.flat), f"{what}: the dataset")
            if name not in self.new.flat:
                raise SchemaError(f"{what}: rows cannot be sorted by nested values", column=name)
        return tuple(names)

    def packing(self, clustering: Clustering | None = None) -> Packing:
        """Give how rows travel that are sorted, or clustered by these quantiles."""
        folders = [folder.name for folder in self.rewriting.folders]
        return Packing(self.table.arrow_schema, folders, self.sort_by, clustering, self.cluster_by)

    @property
    def num_rows(self) -> int:
        """How many rows there are, as footers tell."""
        return sum(folder.num_rows for folder in self.rewriting.folders)

    def num_files(self, num_bytes: float) -> int:
        """Give how many files so many bytes are to be."""
        return max(-(-int(num_bytes) // self.wanted.file_bytes), 1)

    def writer_options(
        self, bloom: Sequence[str], encodings: dict[str, str] | None = None, job: str | None = None
    ) -> dict[str, Any]:
        """Give what a writer of new files is told."""
        options: dict[str, Any] = {
            "schema": self.new.schema,
            "store_schema": False,
            "max_rows_per_page": ROWS_PER_PAGE,
            "column_order": "nan_free",  # Spark skips rows of NaN by bounds that leave them out
        }
        options |= self._options
        given = options.pop("key_value_metadata", None) or {}
        notes = {} if job is None else {LAYOUT_KEY: self.wanted.note(job)}
        options["key_value_metadata"] = {**self._keys_of_all, **self.new.keys, **given, **notes}
        if self.sort_by:
            options["sorting_columns"] = [(name, False, True) for name in self.sort_by]
        if bloom:
            options.setdefault("bloom_filter_options", dict.fromkeys(bloom, True))
            options.setdefault("row_group_size", ROWS_WITH_BLOOM_FILTERS)
        if encodings:
            options.setdefault("column_encoding", encodings)
        return options


def _no_rows(table: SplitTable) -> Any:
    from ..dataset.writing.gathering import as_frame

    return as_frame(table.arrow_schema.empty_table())
