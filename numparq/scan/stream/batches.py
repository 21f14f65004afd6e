"""Rows of a scan in batches, read ahead, as DataFrames or an Arrow stream; or all of them as an Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from numparq.errors import InvalidFileError, ParquetError, short_traceback
from numparq.util.background_threads import BackgroundThreads

from .unit_reader import UnitReader
from .units import BatchSize

if TYPE_CHECKING:
    import pandas as pd

    from numparq.scan.options import ScanOptions
    from numparq.scan.recovery.losses import Lost
    from numparq.scan.scan import Scan

    from .range_labels import RangeLabels

_Item = TypeVar("_Item")
_END: Any = object()


class ReadAhead(Generic[_Item]):
    """Iterator whose next item is computed on its own thread once the previous one is taken.

    At most one item waits or is computed. The thread ends with the iterator, as nothing in it refers to the consumer.
    A forked child raises RuntimeError: the thread may have been at work on the items. At the end of the interpreter,
    items are computed when taken.
    """

    def __init__(self, items: Iterator[_Item]) -> None:
        self._items = items
        self._thread: BackgroundThreads | None = BackgroundThreads(1, "numparq-ahead")
        self._next: Future[_Item] | None = None

    def __iter__(self) -> ReadAhead[_Item]:
        return self

    def __next__(self) -> _Item:
        if self._thread is None:
            raise StopIteration
        if self._thread.is_forked:
            raise RuntimeError(
                "these batches are read by a thread of the parent process; call iter_batches again in the forked one"
            )
        waiting, self._next = self._next or self._submit(self._thread), None
        item = next(self._items, _END) if waiting is None else waiting.result()
        if item is _END:
            self.close()
            raise StopIteration
        self._next = self._submit(self._thread)
        return item

    def _submit(self, thread: BackgroundThreads) -> Future[_Item] | None:
        return thread.submit(partial(next, self._items, _END))

    def close(self) -> None:
        """Stop; wait for the item in progress and discard it."""
        thread, self._thread, self._next = self._thread, None, None
        if thread is not None and not thread.is_forked:
            thread.shutdown()
            if hasattr(self._items, "close"):
                self._items.close()

    def __del__(self) -> None:
        if self._thread is not None:  # without waiting: __del__ may run in any thread
            self._thread.shutdown(wait=False)


class Batches:
    """Batches of a table: DataFrames, iterated once, or any number of Arrow streams.

    Returned by `ParquetFile.iter_batches`.

    Parameters
    ----------
    units : UnitReader
        Reader of the table.
    lost : list of Lost, optional
        List to which the reader appends, with ``on_error="skip"``.

    Attributes
    ----------
    lost : list of Lost
        With ``on_error="skip"``, what the rows read so far have lost, as in ``df.attrs["numparq.lost"]`` of one read;
        rows may be read ahead of the batches.

    Notes
    -----
    All frames have the same columns and dtypes (see `ParquetFile.iter_batches`). If memory allows it, the next rows
    are read while a batch is in use. An iterator dropped before its end frees its threads; `close`, or ``with``,
    frees them at once.

    With pyarrow installed, consumers of the Arrow stream interface accept this object as it is: polars
    (``polars.from_arrow(batches)``), duckdb, pyarrow (``pyarrow.RecordBatchReader.from_stream(batches)``).

    Examples
    --------
    >>> import pandas, numparq
    >>> file = numparq.ParquetFile(numparq.to_parquet(pandas.DataFrame({"a": range(5)})))
    >>> for batch in file.iter_batches(batch_rows=2):
    ...     print(batch.index.tolist(), batch["a"].sum())
    [0, 1] 1
    [2, 3] 5
    [4] 4
    """

    def __init__(self, units: UnitReader, lost: list[Lost] | None = None) -> None:
        self.lost: list[Lost] = [] if lost is None else lost
        self._units: UnitReader | None = units
        self._frames: Iterator[pd.DataFrame] | None = None
        self._source: Any = None

    def __iter__(self) -> Batches:
        return self

    @short_traceback
    def __next__(self) -> pd.DataFrame:
        if self._frames is None:
            units = self._unread().take()
            self._units = None
            self._source = ReadAhead(units.frames()) if units.reads_ahead else units.frames()
            self._frames = _number_rows(
                _split_batches(self._source, units.batch_rows, units.has_exact_batches), units.labels
            )
        return next(self._frames)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the batches as an Arrow stream (a PyCapsule).

        Parameters
        ----------
        requested_schema : PyCapsule, optional
            Requested schema. Strings and bytes take its offset width; other types stay those of the file, as the
            protocol allows.
        """
        return self.reader().__arrow_c_stream__(None) if requested_schema is None else self._cast(requested_schema)

    def _cast(self, requested_schema: Any) -> Any:
        from .arrow_tables import negotiate_schema

        reader = self.reader()
        return reader.cast(negotiate_schema(reader.schema, requested_schema)).__arrow_c_stream__(None)

    def reader(self) -> Any:
        """Return the batches as a pyarrow.RecordBatchReader.

        Returns
        -------
        pyarrow.RecordBatchReader

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        ValueError
            If the batches are closed, or already read as frames.
        """
        from numparq.util.optional import import_pyarrow

        pa = import_pyarrow("Arrow streams need")
        units = self._unread().to_arrow()
        tables = ReadAhead(units.tables()) if units.reads_ahead else units.tables()
        most = units.batch_rows
        batches = chain.from_iterable(table.to_batches(max_chunksize=most) for table in tables)
        return pa.RecordBatchReader.from_batches(units.schema, _drop_frames(batches))

    def _unread(self) -> UnitReader:
        if self._units is None:
            raise ValueError("the batches are closed, or already read as DataFrames; call iter_batches again")
        return self._units

    def close(self) -> None:
        """Stop reading; free threads and memory. No batches follow."""
        self._units, self._frames = None, iter(())
        source, self._source = self._source, None
        if source is not None:
            source.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def read_table(scan: Scan, options: ScanOptions) -> Any:
    """Read all rows of a scan of ``dtype_backend="pyarrow"`` into one pyarrow.Table.

    Nested columns are read unit by unit: Arrow's lists have 32-bit offsets, and are built beside the decoded values.
    """
    from .arrow_tables import ArrowTableBuilder

    if scan.projection.nested:
        with Batches(UnitReader(lambda _: scan, options, BatchSize())) as batches:
            return batches.reader().read_all()
    return scan.read_unit(scan.selected, None, ArrowTableBuilder.of_scan(scan).to_table)[2]


def _drop_frames(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; drop the frames of an error, which Arrow's C stream would carry as text: 3,000 characters."""
    try:
        yield from batches
        return
    except ParquetError as error:
        error.__cause__ = error.__context__ = None
        failure = error.with_traceback(None)
    raise failure


def _split_batches(frames: Iterator[pd.DataFrame], batch_rows: int, is_exact: bool) -> Iterator[pd.DataFrame]:
    """Yield batches of `batch_rows` rows as views of the frames; batches across frames are copies.

    With `is_exact` every batch but the last has that many rows; otherwise at most, and only small frames are joined.
    """
    rest = _BatchRemainder()
    first: pd.DataFrame | None = None
    shown = 0
    for frame in frames:
        first = _without_rows(frame) if first is None else _check_dtypes(frame, first)
        if rest and not (rest.has_same_dtypes(frame) and (is_exact or rest.num_rows + len(frame) <= batch_rows)):
            shown += 1
            yield rest.take()
        if rest:
            head = frame.iloc[: batch_rows - rest.num_rows]
            frame = frame.iloc[len(head) :]
            rest.add(head)
            del head
            if rest.num_rows == batch_rows:
                shown += 1
                yield rest.take()
        parts = -(-len(frame) // batch_rows)
        size = batch_rows if is_exact or not parts else -(-len(frame) // parts)
        for start in range(0, len(frame), size):
            batch = frame.iloc[start : start + size]
            if len(batch) < size if is_exact else size < batch_rows // 2:
                rest.add(batch)
            else:
                shown += 1
                yield batch
            del batch
        del frame  # otherwise held while the next one is decoded
    if rest:
        yield rest.take()
    elif first is not None and not shown:
        yield first


class _BatchRemainder:
    """Rows that wait for the next frame to complete a batch."""

    def __init__(self) -> None:
        self._frames: list[pd.DataFrame] = []
        self.num_rows = 0

    def __bool__(self) -> bool:
        return self.num_rows > 0

    def has_same_dtypes(self, frame: pd.DataFrame) -> bool:
        """Whether a frame has the same dtypes; Categoricals with other categories would become objects."""
        return _dtypes(self._frames[0]) == _dtypes(frame)

    def add(self, frame: pd.DataFrame) -> None:
        """Append rows."""
        self._frames.append(frame)
        self.num_rows += len(frame)

    def take(self) -> pd.DataFrame:
        """Return all waiting rows as one frame and clear them."""
        import pandas as pd

        frames, self._frames, self.num_rows = self._frames, [], 0
        if len(frames) == 1:
            return frames[0]
        return pd.concat(frames, ignore_index=isinstance(frames[0].index, pd.RangeIndex))


def _dtypes(frame: pd.DataFrame) -> list[Any]:
    """Return the dtypes of columns and index."""
    index = frame.index
    return [*frame.dtypes, *(index.dtypes if index.nlevels > 1 else [index.dtype])]


def _without_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of the same columns and dtypes; a slice would keep the memory of all rows."""
    return frame.take([]) if len(frame) else frame


def _check_dtypes(frame: pd.DataFrame, first: pd.DataFrame) -> pd.DataFrame:
    """Check that a frame has the dtypes of the first one; return the first."""
    for name, dtype, known in zip(frame.columns, frame.dtypes, first.dtypes, strict=True):
        if dtype != known and not (dtype.name == "category" and known.name == "category"):
            message = f"dtype {dtype} follows dtype {known} in an earlier batch; read the column without batches"
            raise InvalidFileError(message, column=str(name))
    return first


def _number_rows(batches: Iterator[pd.DataFrame], labels: RangeLabels) -> Iterator[pd.DataFrame]:
    """Continue the RangeIndex from batch to batch."""
    import pandas as pd

    done = 0
    for batch in batches:
        if isinstance(batch.index, pd.RangeIndex):
            start = labels.start + done * labels.step
            batch.index = pd.RangeIndex(start, start + len(batch) * labels.step, labels.step, name=labels.name)
        done += len(batch)
        yield batch
        del batch
