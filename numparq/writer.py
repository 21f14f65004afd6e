"""Frames into one file: taken apart, row group by row group encoded on threads, put together behind one footer."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import __version__, writer_options
from .all_or_nothing import AllOrNothing
from .appending import extended
from .arguments import optional_size
from .assembly import FileAssembly
from .category_order import CategoryOrder
from .column.scratch import ThreadScratch
from .encode.chunk import EncodedChunk, encode_chunk
from .encode.options import ColumnOptions
from .errors import ParquetError, SchemaError, located
from .existing import ExistingFile
from .io.sink import BytesSink, Sink, open_sink
from .leaves import LeafValues, Node, SourceColumn
from .progress import Progress
from .schema import Leaf
from .shred import TakenApart, arrow_schema, take_apart
from .shred.source import ArrowField
from .statistics import Order, orders_of
from .threads import Crew, thread_count
from .writer_options import WriterOptions

if TYPE_CHECKING:
    import pandas as pd

ROW_GROUP_ROWS = 1 << 20
_SAMPLE_ROWS = 4096
_SHARED_ROWS = 4096


class Workshop:
    """What a writer works with, and several may share.

    Parameters
    ----------
    threads, progress
        As in `ParquetWriter`.

    Attributes
    ----------
    crew, alone : Crew
        The threads; and the calling one by itself.
    scratch : ThreadScratch
        Their buffers.
    progress : Progress
        The bar.
    """

    def __init__(self, threads: int | None = None, progress: bool | None = None) -> None:
        self.crew = Crew(thread_count(threads))
        self.alone = Crew(1)
        self.scratch = ThreadScratch()
        self.progress = Progress(progress)

    def close(self) -> None:
        """Wait for the threads, and let others have the buffers."""
        self.progress.close()
        self.crew.__exit__()  # after Ctrl-C jobs may still be running, in the buffers that others get next
        self.scratch.close()


class ParquetWriter(AllOrNothing):
    """Writes frames, one after the other, into one Parquet file.

    Each frame becomes one or several row groups, and is done with when `write` returns. The file is there, whole,
    after `close`, and not before; leaving a ``with`` block by an exception leaves what was there before.

    Parameters
    ----------
    path : str, os.PathLike, binary file object, or None
        Where to; None keeps the file in memory (`getvalue`).
    schema : pyarrow.Schema, sequence or dict, optional
        The columns' types; by default those of the first frame.
    row_group_size : int, optional
        Rows of a row group at the most, 1,048,576 by default.
    row_group_bytes : int, optional
        Bytes of a row group, before encoding and compression, about; the smaller of both limits counts.
    row_group_alignment : int, optional
        Each row group begins at a multiple of so many bytes: the block size of a file system such as HDFS.
    sorting_columns : sequence, optional
        What rows are sorted by, written down for readers (the writer does not sort): names, or tuples of name,
        descending, nulls first.
    key_value_metadata : mapping of str to str or bytes, optional
        For the footer, besides what restores the frame.
    store_schema : bool
        Whether the footer has the ``ARROW:schema`` key.
    checkpoint_row_groups : int, optional
        Write a footer after every so many row groups, so that what is before it can be recovered should the process
        die (`numparq.metadata.recovery`). Readers see an ordinary file.
    append : bool
        Keep the row groups of an existing local file, and write behind them.
    threads : int, optional
        Threads that encode; by default one for each core that this process may use.
    progress : bool, optional
        Whether to show a bar; by default only in a terminal or notebook, and only when it takes long.
    storage_options, filesystem
        As in `numparq.to_parquet`.
    workshop : Workshop, optional
        What it works with, where several writers share that: instead of `threads` and `progress`.
    **options
        The options of columns, as in `numparq.to_parquet`: ``compression``, ``compression_level``,
        ``use_dictionary``, ``column_encoding``, ``use_byte_stream_split``, ``dictionary_pagesize_limit``,
        ``data_page_size``, ``max_rows_per_page``, ``data_page_version``, ``write_statistics``,
        ``write_page_index``, ``write_page_checksum``, ``bloom_filter_options``, ``column_order``.

    Raises
    ------
    SchemaError
        When a frame's columns are not those of the file, or hold what Parquet cannot.

    Examples
    --------
    >>> import pandas, numparq
    >>> with numparq.ParquetWriter(None) as writer:
    ...     for number in range(3):
    ...         writer.write(pandas.DataFrame({"a": [number, number + 10]}))
    >>> numparq.read_parquet(writer.getvalue())["a"].tolist()
    [0, 10, 1, 11, 2, 12]
    """

    def __init__(
        self,
        path: Any,
        schema: Any = None,
        *,
        row_group_size: int | None = None,
        row_group_bytes: int | None = None,
        row_group_alignment: int | None = None,
        sorting_columns: Sequence[Any] | None = None,
        key_value_metadata: Mapping[str, str | bytes] | None = None,
        store_schema: bool = True,
        checkpoint_row_groups: int | None = None,
        append: bool = False,
        threads: int | None = None,
        progress: bool | None = None,
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        workshop: Workshop | None = None,
        **options: Any,
    ) -> None:
        self._options = WriterOptions(**options)
        self._schema = schema
        self._limits = _Limits(row_group_size, row_group_bytes)
        self._alignment = optional_size(row_group_alignment, "row_group_alignment")
        self._sorted_by = sorting_columns
        self._sorting: list[dict[str, Any]] | None = None
        self._given_metadata = dict(key_value_metadata or {})
        self._store_schema = store_schema
        self._checkpoint = optional_size(checkpoint_row_groups, "checkpoint_row_groups")
        self._own = Workshop(threads, progress) if workshop is None else None
        self._workshop = workshop or self._own or Workshop(1)
        self._assembly: FileAssembly | None = None
        self._columns: list[Node] = []
        self._metadata: dict[str, str | bytes] = {}
        self._fields: list[ArrowField] = []
        self._orders: list[Order] = []
        self._settled: list[ColumnOptions] = []
        self._closed = False
        self._existing = _existing(path, storage_options, filesystem) if append else None
        self._category_order = CategoryOrder(self._existing.name if self._existing else None)
        try:
            self._sink: Sink = open_sink(path, storage_options=storage_options, filesystem=filesystem)
        except BaseException:
            self._release()
            raise

    # --- frames -----------------------------------------------------------------------------------------------------

    def write(self, df: pd.DataFrame, index: bool | None = None) -> None:
        """Write a frame.

        Parameters
        ----------
        df : pandas.DataFrame
            Its columns must be those of the first frame, or of the schema.
        index : bool, optional
            As in `numparq.to_parquet`.
        """
        if self._closed:
            raise ValueError("the writer is closed")
        with located(file=self._sink.name):
            self.write_taken(take_apart(df, index=index, schema=self._schema))

    def write_taken(self, taken: TakenApart) -> None:
        """Write a frame, or rows of one, that is taken apart already."""
        if self._closed:
            raise ValueError("the writer is closed")
        with located(file=self._sink.name):
            if self._assembly is None:
                self._begin(taken)
            else:
                check_columns([column.node for column in taken.columns], self._columns)
                self._check_order(taken)
                self._extend(taken)
            if self._own:
                self._own.progress.expect(taken.num_rows)
            try:
                self._write_rows(taken.columns, taken.num_rows)
            except BaseException:  # a part of the frame may be written
                self.abort()
                raise

    def _begin(self, taken: TakenApart) -> None:
        self._columns = [column.node for column in taken.columns]
        self._metadata, self._fields = dict(taken.key_value_metadata), taken.arrow_fields
        if self._existing:
            columns, orders = self._existing.agreed(self._columns), self._existing.orders(self._columns)
        else:
            columns, orders = self._columns, orders_of(self._columns, self._options.column_order)
        footer = self._existing.footer if self._existing else None
        assembly = FileAssembly(self._sink, columns, __version__, orders, footer)
        self._orders = orders
        self._settled = self._options.settle(assembly.leaves)
        self._sorting = writer_options.sorting_columns(self._sorted_by, assembly.leaves)
        self._check_order(taken)
        if self._existing:
            self._extend(taken)  # nothing behind this fails but the sink, which ends the writer
            self._existing.copy_to(self._sink)
        else:
            assembly.begin()
        self._assembly = assembly

    def _extend(self, taken: TakenApart) -> None:
        """Let the keys that restore a frame speak of this one's rows too."""
        if self._existing:
            self._metadata = self._existing.extended(taken.key_value_metadata, taken.num_rows)
        else:
            self._metadata = extended(self._metadata, taken.key_value_metadata, taken.num_rows)

    def _check_order(self, taken: TakenApart) -> None:
        """Refuse ordered Categoricals whose order would not be theirs behind the rows that there are."""
        if taken.num_rows:
            self._category_order.extend(taken.ordered)

    def _write_rows(self, columns: Sequence[SourceColumn], num_rows: int) -> None:
        assert self._assembly is not None
        step = self._limits.rows(columns, num_rows)
        for start in range(0, num_rows, step) if num_rows else [0]:
            stop = min(start + step, num_rows)
            if not num_rows and self._assembly.num_row_groups:
                return  # a frame without rows adds nothing to a file that has some
            chunks = self._encode(columns, start, stop)
            if self._alignment:
                self._assembly.align(self._alignment)
            self._assembly.add_row_group(chunks, stop - start, self._sorting)
            if self._checkpoint and self._assembly.num_row_groups % self._checkpoint == 0:
                self._finish()
                self._sink.sync()
            self._workshop.progress.advance(stop - start)

    def _encode(self, columns: Sequence[SourceColumn], start: int, stop: int) -> list[EncodedChunk]:
        """Encode a row group; each top-level column is a job, the costly ones first."""
        assert self._assembly is not None
        group = self._assembly.num_row_groups
        of_column: dict[int, list[Leaf]] = {}
        for leaf in self._assembly.leaves:
            of_column.setdefault(leaf.column, []).append(leaf)
        chunks: list[EncodedChunk | None] = [None] * len(self._assembly.leaves)

        def encode(number: int) -> None:
            column, leaves = columns[number], of_column.get(number, [])
            with located(row_group=group, column=column.node.name):
                for leaf, values in zip(leaves, column.leaves(start, stop), strict=True):
                    chunks[leaf.index] = self._encode_leaf(leaf, values, stop - start)

        order = sorted(range(len(columns)), key=lambda number: -_cost(columns[number].node))
        # Small chunks are mostly Python's work, which threads would only get in each other's way with.
        crew = self._workshop.crew if stop - start >= _SHARED_ROWS else self._workshop.alone
        crew.run([lambda number=number: encode(number) for number in order])  # type: ignore[misc]
        return [chunk for chunk in chunks if chunk is not None]

    def _encode_leaf(self, leaf: Leaf, values: LeafValues, num_rows: int) -> EncodedChunk:
        return encode_chunk(
            leaf, self._orders[leaf.index], values, num_rows, self._settled[leaf.index], self._workshop.scratch.get()
        )

    # --- the end ----------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        assert self._assembly is not None
        metadata = self._metadata | self._given_metadata
        if not self._existing and self._store_schema:
            metadata["ARROW:schema"] = arrow_schema(self._fields, metadata)
        self._assembly.finish(metadata)

    def close(self) -> None:
        """Write the footer, and put the file in its place."""
        if self._closed:
            return
        try:
            with located(file=self._sink.name):
                if self._assembly is None:
                    self._begin_empty()
                self._finish()
            if self._existing:
                self._existing.check()
            self._sink.commit()
        except BaseException:
            self.abort()
            raise
        self._end()

    def _begin_empty(self) -> None:
        """Make a file of no row groups: from the schema, where there is one."""
        import pandas as pd

        if self._schema is None:
            raise SchemaError("nothing was written, and no schema was given: there are no columns to make a file of")
        self._begin(take_apart(pd.DataFrame(), index=False, schema=self._schema))

    def abort(self) -> None:
        """Give up: nothing is left of what was written, and what was there before stays."""
        if not self._closed:
            self._sink.abort()
            self._end()

    def _end(self) -> None:
        self._closed = True
        self._release()
        if self._own:
            self._own.close()

    def _release(self) -> None:
        if self._existing:
            self._existing.close()

    @property
    def footer(self) -> bytes:
        """The footer that was written last: the bytes of its FileMetaData."""
        return self._assembly.footer if self._assembly else b""

    @property
    def num_rows(self) -> int:
        """Rows that the file has so far."""
        return self._assembly.num_rows if self._assembly else 0

    @property
    def num_bytes(self) -> int:
        """Bytes that were written so far."""
        return self._sink.position

    def getvalue(self) -> bytes:
        """Give the file's bytes, when it was written into memory and is closed."""
        if not isinstance(self._sink, BytesSink) or not self._closed:
            raise ValueError("there are bytes only of a writer without a path, once it is closed")
        return self._sink.getvalue()


def check_columns(nodes: Sequence[Node], known: Sequence[Node]) -> None:
    """Raise SchemaError when the columns of a frame are not those of what was written before."""
    if len(nodes) != len(known):
        raise SchemaError(f"the frame has {len(nodes)} columns, the file {len(known)}")
    for node, before in zip(nodes, known, strict=True):
        if node != before:
            raise SchemaError(f"the frame has {_described(node)}, the file {_described(before)}", column=node.name)


class _Limits:
    """How many rows make a row group."""

    def __init__(self, rows: int | None, size: int | None) -> None:
        self._rows = optional_size(rows, "row_group_size") or ROW_GROUP_ROWS
        self._bytes = optional_size(size, "row_group_bytes")

    def rows(self, columns: Sequence[SourceColumn], num_rows: int) -> int:
        """Settle the rows of a row group by the size of rows spread over the frame."""
        if self._bytes is None or not num_rows:
            return self._rows
        sample = min(num_rows, _SAMPLE_ROWS)
        starts = sorted({0, (num_rows - sample) // 2, num_rows - sample})
        size = sum(_num_bytes(leaf) for start in starts for column in columns
                   for leaf in column.leaves(start, start + sample))  # fmt: skip
        return max(min(self._rows, int(self._bytes * sample * len(starts) / max(size, 1))), 1)


def _existing(path: Any, storage_options: Any, filesystem: Any) -> ExistingFile | None:
    """Open the file that is to grow; None where there is none yet, and rows make the first ones of a new file."""
    local = isinstance(path, (str, os.PathLike)) and not storage_options and filesystem is None
    if not local or ("://" in os.fsdecode(path) and not os.fsdecode(path).startswith("file://")):
        raise ValueError("append=True needs a local file: elsewhere, nothing can be copied without sending it through")
    with located(file=os.fsdecode(path)):
        try:
            return ExistingFile(path)
        except FileNotFoundError:
            return None


def _num_bytes(values: LeafValues) -> int:
    """Estimate the bytes of values as they are before encoding."""
    if values.codes is not None:
        return values.codes.nbytes
    if values.starts is not None and values.ends is not None:
        return int((values.ends - values.starts).sum()) + 4 * len(values.starts)
    return values.values.nbytes


def _cost(node: Node) -> int:
    """Say which columns take longer to encode: nested ones, then those of bytes."""
    return 3 if node.children else 2 if node.physical == 6 else 1


def _described(node: Node) -> str:
    kind = "a group" if node.physical is None else f"physical type {node.physical}"
    return f"{node.name!r} of {kind}" + (f" ({node.logical})" if node.logical else "")


__all__ = ["ParquetError", "ParquetWriter", "Workshop", "check_columns"]
