"""Writer of DataFrames into one Parquet file, row group by row group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, Unpack

from numparq.column.leaf_values import SourceColumn
from numparq.column.write.chunk import EncodedLeaf
from numparq.errors import ParquetError, SchemaError, error_context
from numparq.format.key_values.arrow import arrow_schema_value
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.arrow_stream import is_arrow_data, read_tables, shred_table
from numparq.from_pandas.frame import ShreddedFrame, shred_frame
from numparq.from_pandas.user_schema import UserColumn, parse_schema
from numparq.io.open import open_sink
from numparq.io.sink import BytesSink, Sink
from numparq.typing import (
    ColumnWriteOptions,
    EncryptionKeys,
    FrameOrArrow,
    PathOrBuffer,
    SortingColumns,
    StorageOptions,
)
from numparq.util.arguments import check_flag, check_optional_positive_int
from numparq.util.transaction import TransactionalWriter
from numparq.util.version import __version__

from . import writer_options
from .append import extend_key_values, open_existing
from .append_schema import hinted_columns
from .argument_advice import WRITER_ADVICE
from .arrow_types import without_dictionaries
from .assemble import FileAssembler
from .category_order import CategoryOrder
from .encryption import begin_encryption, check_encryption, encoding_options, hide_values
from .fit_frame import fit_frame, frame_schema
from .key_value_metadata import check_key_values
from .null_leaves import retyped_leaves
from .write_plan import WritePlan, write_plan
from .writer_context import WriterContext
from .writer_options import RowGroupSize, WriterOptions, check_option_names

_BATCH_VALUES = 1 << 18  # row groups are encoded together up to so many values
MAX_ALIGNMENT = 1 << 30


class ParquetWriter(TransactionalWriter):
    """Writer of DataFrames into one Parquet file.

    Each frame becomes one or more row groups, encoded when `write` returns. The file appears, complete, when the
    ``with`` block ends. Leaving it by an exception keeps what was there before. A writer that is never closed loses its
    rows, with a ResourceWarning.

    Parameters
    ----------
    path : str, os.PathLike, binary file object, or None
        Target; None keeps the file in memory (`getvalue`).
    schema : pyarrow.Schema, sequence or dict, optional
        Types of the columns; default: those of the first frame.
    row_group_size : int, optional
        Maximum rows of a row group; default 1,048,576.
    row_group_bytes : int, optional
        Approximate maximum bytes of a row group before encoding and compression. The smaller of both limits counts.
    row_group_alignment : int, optional
        Start each row group at a multiple of this many bytes, at most 1 GiB: the block size of a file system such as
        HDFS.
    sorting_columns : sequence, optional
        Sort order of the rows, recorded for readers; the writer does not sort. Names, or tuples (name, descending,
        nulls first).
    key_value_metadata : mapping of str to str or bytes, optional
        Extra keys for the footer.
    store_schema : bool
        Whether to write the ``ARROW:schema`` key.
    checkpoint_row_groups : int, optional
        Write a footer after every so many row groups; if the process dies, everything before it can be recovered
        (`numparq.format.footer.checkpoints`). Readers see an ordinary file.
    append : bool
        Whether to append to an existing local file, keeping its row groups.
    threads, progress
        As in `numparq.read_parquet`, for threads that encode.
    storage_options, filesystem, encryption
        As in `numparq.to_parquet`.
    **options
        Column options, as in `numparq.to_parquet`: ``compression``, ``compression_level``,
        ``use_dictionary``, ``column_encoding``, ``use_byte_stream_split``, ``dictionary_pagesize_limit``,
        ``data_page_size``, ``max_rows_per_page``, ``data_page_version``, ``write_statistics``,
        ``write_page_index``, ``write_page_checksum``, ``bloom_filter_options``, ``column_order``.

    Raises
    ------
    SchemaError
        If a frame's columns are not those of the file, or hold values that Parquet cannot store.

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
        path: PathOrBuffer | None,
        schema: Any = None,
        *,
        row_group_size: int | None = None,
        row_group_bytes: int | None = None,
        row_group_alignment: int | None = None,
        sorting_columns: SortingColumns = None,
        key_value_metadata: Mapping[str, str | bytes] | None = None,
        store_schema: bool = True,
        checkpoint_row_groups: int | None = None,
        append: bool = False,
        threads: int | None = None,
        progress: bool = False,
        storage_options: StorageOptions = None,
        filesystem: Any = None,
        encryption: EncryptionKeys | str | None = None,
        _context: WriterContext | None = None,
        **options: Unpack[ColumnWriteOptions],
    ) -> None:
        check_option_names("ParquetWriter", options, ParquetWriter.__init__.__annotations__, WRITER_ADVICE)
        for name, flag in (("store_schema", store_schema), ("append", append)):
            check_flag(flag, name)
        self._options = WriterOptions(**options)
        self._schema = None if schema is None else parse_schema(schema)
        self._row_group_size = RowGroupSize(row_group_size, row_group_bytes)
        self._alignment = check_optional_positive_int(row_group_alignment, "row_group_alignment")
        if self._alignment and self._alignment > MAX_ALIGNMENT:
            raise ValueError(f"row_group_alignment must be at most {MAX_ALIGNMENT:,}, not {self._alignment:,}")
        self._sorted_by = sorting_columns
        self._given_metadata = check_key_values(key_value_metadata)
        self._store_schema = store_schema
        self._checkpoint = check_optional_positive_int(checkpoint_row_groups, "checkpoint_row_groups")
        self._encryption = check_encryption(encryption, append, checkpoint_row_groups)
        self._own_context = WriterContext(threads, progress) if _context is None else None
        self._workshop = _context or self._own_context or WriterContext(1)
        self._assembler: FileAssembler | None = None
        self._columns: list[UserColumn] = []
        self._metadata: dict[str, str | bytes] = {}
        self._arrow_schema: str | None = None
        self._existing = open_existing(path, storage_options, filesystem) if append else None
        self._category_order = CategoryOrder(self._existing.name if self._existing else None)
        try:
            self._sink: Sink = open_sink(path, storage_options=storage_options, filesystem=filesystem)
        except BaseException:
            self._release()
            raise
        self._begin_writing()

    # --- frames -----------------------------------------------------------------------------------------------------

    def write(self, df: FrameOrArrow, index: bool | None = None) -> None:
        """Write a frame, or Arrow data, which are read in parts of a row group.

        Parameters
        ----------
        df : pandas.DataFrame, or Arrow data such as a polars.DataFrame
            Rows with the columns of the first ones, or of the schema, in any order. Values of another type are cast
            where all of them fit exactly. A column of nulls only, or of empty lists, may get its type later.
        index : bool, optional
            As in `numparq.to_parquet`.
        """
        self._check_writing()
        try:
            with error_context(file=self._sink.name):
                if not is_arrow_data(df):
                    self._write_shredded(shred_frame(df, index=index, schema=self._schema))
                    return
                num_rows = self.num_rows
                try:
                    for table in read_tables(df, self._row_group_size.max_rows, index):
                        self._write_shredded(shred_table(table, self._schema))
                except BaseException:
                    if self.num_rows > num_rows:  # part of the data is written
                        self.abort()
                    raise
        except ParquetError as error:
            hide_values(error, self._encryption)
            raise

    def _write_shredded(self, shredded: ShreddedFrame) -> None:
        """Write a frame, or rows of one, that is already shredded into leaf columns."""
        self._check_writing()
        with error_context(file=self._sink.name):
            if self._assembler is None:
                shredded = self._begin(shredded)
            else:
                shredded, columns = fit_frame(shredded, self._columns)
                self._check_category_order(shredded)
                leaves = self._retyped_leaves(self._columns, columns, self._assembler)
                self._extend_key_values(shredded)
                self._columns = columns
                self._retype(leaves, self._assembler)
            if self._own_context:
                self._own_context.progress.add_total(shredded.num_rows)
            try:
                self._write_rows(shredded.columns, shredded.num_rows)
            except BaseException:  # part of the frame may be written
                self.abort()
                raise

    def _begin(self, shredded: ShreddedFrame) -> ShreddedFrame:
        """Begin the file by the first frame; return it, fitted to the existing rows."""
        self._metadata, self._arrow_schema = dict(shredded.key_value_metadata), shredded.arrow_schema
        self._columns = frame_schema(shredded)
        if self._existing:
            shredded, self._columns = fit_frame(shredded, self._existing.columns)
        plan = self._plan()
        footer = self._existing.footer if self._existing else None
        assembly = FileAssembler(self._sink, plan, __version__, footer)
        assembly.alignment = self._alignment
        assembly.sorting_columns = writer_options.sorting_column_structs(self._sorted_by, plan.leaves)
        self._check_category_order(shredded)
        if self._encryption is not None:
            assembly.encryption = begin_encryption(self._encryption, plan.leaves, self._options, self._sink)
        if self._existing:
            leaves = self._retyped_leaves(self._existing.columns, self._columns, assembly)
            self._extend_key_values(shredded)  # after this only the sink can fail, which ends the writer
            self._existing.copy_row_groups(self._sink)
            self._retype(leaves, assembly)
        else:
            assembly.write_magic()
        self._assembler = assembly
        return shredded

    def _plan(self) -> WritePlan:
        nodes = [column.node for column in self._columns]
        options = self._options if self._encryption is None else encoding_options(self._options)
        return write_plan(nodes, options, self._existing.column_orders(nodes) if self._existing else None)

    def _retyped_leaves(
        self, before: Sequence[UserColumn], after: Sequence[UserColumn], assembler: FileAssembler
    ) -> dict[int, SchemaNode]:
        """Return the leaf columns, by index, that have only nulls so far and get a type, which may be nested."""
        leaves = retyped_leaves([column.node for column in before], [column.node for column in after])
        if self._existing:
            self._existing.check_only_nulls(leaves)
        rewritten = self._rewritten_leaves(leaves)
        if rewritten:
            if self._existing:
                self._existing.read_null_levels(assembler.null_levels)
            assembler.check_rewritten(rewritten, leaves)
        return leaves

    def _rewritten_leaves(self, leaves: dict[int, SchemaNode]) -> set[int]:
        """Return those of the retyped leaves, by index, whose pages do not suit the nodes in their place."""
        nested = {index for index, node in leaves.items() if node.physical is None}
        return nested | self._existing.misfit_dictionaries(leaves) if self._existing else nested

    def _retype(self, leaves: dict[int, SchemaNode], assembler: FileAssembler) -> None:
        """Replace the types of leaf columns in the rows before, which have only nulls there."""
        if leaves:
            self._arrow_schema, rewritten = None, self._rewritten_leaves(leaves)
            if self._existing:
                self._existing.retype_leaves(leaves, self._columns)
            plan, footer = self._plan(), self._existing.footer if self._existing else None
            assembler.retype_leaves(plan, leaves, rewritten, footer, self._workshop.scratch)

    def _extend_key_values(self, shredded: ShreddedFrame) -> None:
        """Extend the keys that restore a frame to this frame's rows."""
        if self._existing:
            self._metadata = self._existing.extend_key_values(shredded.key_value_metadata, shredded.num_rows)
        else:
            self._metadata = extend_key_values(self._metadata, shredded.key_value_metadata, shredded.num_rows)

    def _check_category_order(self, shredded: ShreddedFrame) -> None:
        """Check that ordered Categoricals have the category order of the rows before."""
        if shredded.num_rows:
            self._category_order.check_append(shredded.ordered_categories)

    def _write_rows(self, columns: Sequence[SourceColumn], num_rows: int) -> None:
        """Encode and write rows, as many row groups at a time as a batch holds and a checkpoint allows."""
        assembler = self._assembler
        assert assembler is not None
        if not num_rows and assembler.num_row_groups:
            return  # an empty frame adds no row group to a file that has some
        step = self._row_group_size.num_rows(columns, num_rows)
        bounds = [*range(0, num_rows, step), num_rows] if num_rows else [0, 0]
        batch = max(_BATCH_VALUES // (step * max(len(assembler.plan.leaves), 1)), 1)
        first = 0
        while first < len(bounds) - 1:
            count = min(batch, len(bounds) - 1 - first)
            if self._checkpoint:
                count = min(count, self._checkpoint - assembler.num_row_groups % self._checkpoint)
            rows = bounds[first : first + count + 1]
            encoded = self._encode(columns, rows)
            assembler.add_row_groups(encoded, [stop - start for start, stop in pairwise(rows)])
            if self._checkpoint and assembler.num_row_groups % self._checkpoint == 0:
                self._finish()
                self._sink.sync()
            self._workshop.progress.advance(rows[-1] - rows[0])
            first += count

    def _encode(self, columns: Sequence[SourceColumn], bounds: Sequence[int]) -> list[EncodedLeaf]:
        """Encode the row groups between consecutive bounds."""
        assert self._assembler is not None
        group = self._assembler.num_row_groups if len(bounds) == 2 else None
        try:
            sealing = None if self._encryption is None else self._assembler.page_sealing(len(bounds) - 1)
            return self._assembler.plan.encoder.encode(columns, bounds, group, self._workshop, sealing)
        except ParquetError:
            if group is None:  # again one by one, so that the error names the row group
                for single in pairwise(bounds):
                    self._assembler.add_row_groups(self._encode(columns, single), [single[1] - single[0]])
            raise

    # --- footer and commit ------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        assert self._assembler is not None
        self._drop_dictionaries(self._assembler.plan.delta_leaves)
        metadata = self._metadata | self._given_metadata
        if not self._existing and self._store_schema:
            fields = [column.field for column in self._columns]
            metadata["ARROW:schema"] = self._arrow_schema or arrow_schema_value(fields, metadata)
        self._assembler.write_footer(metadata)

    def _drop_dictionaries(self, leaves: Collection[int]) -> None:
        """Replace dictionaries among the Arrow types of some leaf columns, which pyarrow could not read as such."""
        if leaves:
            have = hinted_columns(self._columns, self._arrow_schema) if self._arrow_schema else self._columns
            columns = without_dictionaries(have, leaves)
            if columns != have:
                self._columns, self._arrow_schema = columns, None
                if self._existing:
                    self._existing.replace_arrow_schema(columns)

    def close(self) -> None:
        """Write the footer and commit the file."""
        if not self._process:
            return
        self._check_writing()
        try:
            with error_context(file=self._sink.name):
                if self._assembler is None:
                    self._begin_empty()
                self._finish()
            if self._existing:
                self._existing.check_unchanged()
            self._sink.commit()
        except BaseException:
            self.abort()
            raise
        self._end_writing()
        self._release()

    def _begin_empty(self) -> None:
        """Begin a file without row groups, from the schema."""
        import pandas as pd

        if self._schema is None:
            raise SchemaError("a file without rows needs a schema; write a frame, or use schema=...")
        self._begin(shred_frame(pd.DataFrame(), index=False, schema=self._schema))

    def _discard(self) -> None:
        self._sink.abort()
        self._release()

    def _release(self) -> None:
        if self._existing:
            self._existing.close()
        if self._own_context:
            self._own_context.close()

    @property
    def _target(self) -> str:
        return self._sink.name

    @property
    def _footer(self) -> bytes:
        """Footer that was written last: the bytes of its FileMetaData."""
        return self._assembler.last_footer if self._assembler else b""

    @property
    def _footer_digest(self) -> str | None:
        """SHA-256 of an encrypted file's footer as stored, once it is written; None for plain files."""
        return self._assembler.footer_digest if self._assembler else None

    @property
    def num_rows(self) -> int:
        """Number of rows in the file so far."""
        return self._assembler.num_rows if self._assembler else 0

    @property
    def num_bytes(self) -> int:
        """Number of bytes written so far."""
        return self._sink.position

    def getvalue(self) -> bytes:
        """Return the bytes of a closed file that was written into memory."""
        if not isinstance(self._sink, BytesSink) or self._process:
            raise ValueError("getvalue() needs a writer without a path that is closed")
        return self._sink.getvalue()
