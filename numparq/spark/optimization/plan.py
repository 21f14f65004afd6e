"""Plan an optimize run: sort columns, writer options, expected files, pieces for each task."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from numparq.column.projection import unknown_column_error
from numparq.dataset.splits.table import SplitTable
from numparq.errors import SchemaError
from numparq.file.writer import ParquetWriter
from numparq.tools.optimize.hilbert import HilbertClustering
from numparq.tools.optimize.key_values import merge_key_values
from numparq.tools.optimize.layout import LAYOUT_KEY, TargetLayout
from numparq.tools.optimize.report import FileTotals
from numparq.tools.optimize.rewrite_plan import OutputSchema, RewritePiece, RewritePlan, split_by_folder
from numparq.tools.optimize.tune import ROWS_PER_PAGE, ROWS_WITH_BLOOM_FILTERS

from .sort_rows import RowPacker

TASK_BYTES = 64 << 20  # approximate stored bytes that a task reads
_MAX_BINS_PER_TASK = 64


def path_in_split(path: str, rewrite_plan: RewritePlan) -> str:
    """Return the path of a file as splits have it."""
    return path if rewrite_plan.listing.filesystem is not None else absolute_path(path)


def absolute_path(path: str) -> str:
    """Return the absolute path; URLs are returned as they are."""
    return path if "://" in path else os.path.abspath(path)


def group_by_task(pieces: Sequence[RewritePiece]) -> list[list[RewritePiece]]:
    """Group pieces by the task that reads them."""
    return [
        [piece for one in some for piece in one]
        for some in group_bins_by_task([[piece] for piece in pieces], TASK_BYTES)
    ]


def group_bins_by_task(bins: Sequence[list[RewritePiece]], num_bytes: int) -> list[list[list[RewritePiece]]]:
    """Group bins, in their order, by task: about `num_bytes` each."""
    made: list[list[list[RewritePiece]]] = []
    room = 0
    for some in bins:
        size = sum(piece.split.num_bytes for piece in some)
        if not made or size > room or len(made[-1]) >= _MAX_BINS_PER_TASK:
            made.append([])
            room = num_bytes
        made[-1].append(some)
        room -= size
    return made


class OptimizePlan:
    """Plan of a run, made from footers alone.

    Raises SchemaError for a missing column or one that cannot be sorted by, ValueError for invalid options.
    """

    def __init__(
        self,
        rewrite_plan: RewritePlan,
        target: TargetLayout,
        options: dict[str, Any],
        storage_options: dict[str, Any] | None,
    ) -> None:
        self.rewrite_plan, self.target, self._options = rewrite_plan, target, options
        split_bytes = min(TASK_BYTES, max(target.file_bytes // 8, 1 << 16))
        self.table = rewrite_plan.split(None, split_bytes, storage_options)
        folders = {
            path_in_split(file.file.path, rewrite_plan): folder.name
            for folder in rewrite_plan.folders
            for file in folder.files
        }
        self.pieces = split_by_folder(self.table, folders.__getitem__)
        self.output_schema = OutputSchema.from_schema_file(self.table.schema_file)
        self._keys_of_all = merge_key_values(rewrite_plan.files, list(self.output_schema.schema.columns))
        self.sort_by = self._keys("sort_by", target.sort_by)
        self.cluster_by = self._keys("cluster_by", target.cluster_by)
        self.row_packer()  # raises for columns that cannot be sorted by
        with ParquetWriter(None, threads=1, **self.writer_options(target.bloom_filters or ())) as trial:
            trial.write(_no_rows(self.table), index=False)  # raises for invalid options
        num_files = self.num_files(sum(folder.num_bytes for folder in rewrite_plan.folders))
        self.expected = FileTotals(max(num_files, len(rewrite_plan.folders)), 0, self.num_rows, 0)

    def _keys(self, what: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns to sort by, checked, without partition columns, which are constant in a directory."""
        names = [name for name in names if name not in self.rewrite_plan.keys]
        for name in names:
            if name not in self.output_schema.schema.columns:
                raise unknown_column_error(name, list(self.output_schema.leaf_columns), f"{what}: the dataset")
            if name not in self.output_schema.leaf_columns:
                raise SchemaError(f"{what}: rows cannot be sorted by nested values", column=name)
        return tuple(names)

    def row_packer(self, clustering: HilbertClustering | None = None) -> RowPacker:
        """Return the packer of rows that are sorted, or clustered by these quantiles."""
        folders = [folder.name for folder in self.rewrite_plan.folders]
        return RowPacker(self.table.arrow_schema, folders, self.sort_by, clustering, self.cluster_by)

    @property
    def num_rows(self) -> int:
        """Number of rows, by the footers."""
        return sum(folder.num_rows for folder in self.rewrite_plan.folders)

    def num_files(self, num_bytes: float) -> int:
        """Return the number of files for so many bytes."""
        return max(-(-int(num_bytes) // self.target.file_bytes), 1)

    def writer_options(
        self, bloom: Sequence[str], encodings: dict[str, str] | None = None, job: str | None = None
    ) -> dict[str, Any]:
        """Return the writer options of new files."""
        options: dict[str, Any] = {
            "schema": self.output_schema.schema,
            "store_schema": False,
            "max_rows_per_page": ROWS_PER_PAGE,
            "column_order": "nan_free",  # Spark skips NaN rows by bounds that exclude NaN
        }
        options |= self._options
        given = options.pop("key_value_metadata", None) or {}
        notes = {} if job is None else {LAYOUT_KEY: self.target.to_json(job)}
        options["key_value_metadata"] = {**self._keys_of_all, **self.output_schema.key_values, **given, **notes}
        if self.sort_by:
            options["sorting_columns"] = [(name, False, True) for name in self.sort_by]
        if bloom:
            options.setdefault("bloom_filter_options", dict.fromkeys(bloom, True))
            options.setdefault("row_group_size", ROWS_WITH_BLOOM_FILTERS)
        if encodings:
            options.setdefault("column_encoding", encodings)
        return options


def _no_rows(table: SplitTable) -> Any:
    from numparq.from_pandas.arrow_stream import arrow_to_frame

    return arrow_to_frame(table.arrow_schema.empty_table())
