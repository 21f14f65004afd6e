"""Memory of a scan: estimated from the footer, limited, measured, released."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.decompress import BATCH_BYTES
from numparq.column.read.page_sources import WINDOW_BYTES
from numparq.column.scratch import ScratchShare
from numparq.errors import LimitError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.to_pandas.frame import BlockLayout
from numparq.types.choose import choose_output_type
from numparq.types.output_type import OutputType

if TYPE_CHECKING:
    from .file_columns import FileColumns
    from .file_reader import FileReader
    from .options import ScanOptions

__all__ = [
    "MemoryEstimate",
    "check_filter_memory",
    "check_memory_limit",
    "check_rows_memory",
    "decoded_bytes",
    "filled_row_bytes",
    "format_bytes",
    "release_free_memory",
    "scratch_bytes",
    "scratch_share",
    "virtual_row_bytes",
]

# Bytes of a Python object by `array_kind`: pointer and object header. Interned objects (small integers) are
# counted too, since their number is unknown.
_OBJECTS = {
    "decimals": 8 + 112,
    "dates": 8 + 32,
    "times": 8 + 40,
    "uuids": 8 + 112,
    "bytes": 8 + 40,
    "text_objects": 8 + 56,
    "bool_objects": 8,
    "nulls": 8,
}
_OBJECT = 8 + 48  # a value in a nested column
_CONTAINER = 8 + 120  # a list or dict, at least one for each row
_MARK = 1  # validity mask
_OFFSET = 8
_CODE = 4 + 4  # dictionary code: decoded, and in the Categorical
_VIRTUAL = 8 + 8 + 8  # a number of a virtual column, of its row, and of all files together
# Scratch buffers grow by a quarter beyond the requested size.
_SLACK = 1.25
_MIN_WINDOW_BYTES = 64 << 10

_Numbers = np.ndarray


def _fixed(target: OutputType, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    assert target.dtype is not None
    width = target.dtype.itemsize + (_MARK if target.nulls == "mask" else 0) + _OBJECTS.get(target.array_kind, 0)
    return rows * (width + (_CODE if target.categorical else 0))


def _binary(target: OutputType, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    objects = _OBJECTS.get(target.array_kind, 0)
    needed: _Numbers = rows * (_OFFSET + _MARK + objects) + sizes * (2 if objects else 1)
    return needed


def _dictionary(target: OutputType, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    needed: _Numbers = rows * _CODE + np.minimum(sizes, rows * 64)
    return needed


def _null(target: OutputType, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    return rows * _OBJECTS["nulls"]


def virtual_row_bytes(names: Iterable[str], file_name: str) -> int:
    """Return the bytes of a row's virtual columns."""
    size_of_name = _OFFSET + len(file_name.encode(errors="surrogatepass")) + 8  # and which file it is of
    return sum(size_of_name if name == "file" else _VIRTUAL for name in names)


_RULES = {"fixed": _fixed, "binary": _binary, "dictionary": _dictionary, "null": _null}


class MemoryEstimate:
    """Estimated bytes of decoded rows by the footer; `extra_row_bytes` counts bytes of a row outside these leaves.

    `is_lower_bound`: strings may take far more than is stored (dictionaries without size statistics).
    """

    def __init__(
        self,
        file: OpenFile,
        leaves: Sequence[Leaf],
        output_types: Sequence[OutputType],
        row_groups: Sequence[int],
        as_objects: bool = True,
        extra_row_bytes: float = 0,
    ) -> None:
        groups = list(dict.fromkeys(row_groups))
        chunks = file.footer.chunks.read_table(groups, [leaf.index for leaf in leaves])
        num_rows = np.maximum(file.footer.row_group_num_rows[groups], 1).astype(np.float64)
        self._position = {group: at for at, group in enumerate(groups)}
        self._bytes = np.zeros((len(groups), len(leaves)))
        unencoded = chunks["unencoded_byte_array_data_bytes"]
        stored = np.maximum(chunks["total_uncompressed_size"], 0)
        self.is_lower_bound = False
        for at, (leaf, target) in enumerate(zip(leaves, output_types, strict=True)):
            sizes = np.where(unencoded[:, at] >= 0, unencoded[:, at], stored[:, at]).astype(np.float64)
            values = np.maximum(chunks["num_values"][:, at], 0).astype(np.float64)
            rule = _nested if leaf.is_nested else _RULES[target.storage]
            self._bytes[:, at] = rule(target, num_rows, values, sizes, as_objects)
            has_dictionary = chunks["dictionary_page_offset"][:, at] > 0
            self.is_lower_bound |= target.storage == "binary" and bool((has_dictionary & (unencoded[:, at] < 0)).any())
        self._stored = stored + np.maximum(chunks["total_compressed_size"], 0)
        self._row_bytes = np.maximum(self._bytes.sum(axis=1) / num_rows + extra_row_bytes, 1.0).tolist()

    def row_bytes(self, row_group: int) -> float:
        """Return the mean bytes of a row of a row group."""
        found: float = self._row_bytes[self._position[row_group]]
        return found

    def row_group_bytes(self, row_group: int) -> float:
        """Return the bytes of all rows of a row group."""
        return float(self._bytes[self._position[row_group]].sum())

    def slice_bytes(self, slices: Sequence[Any]) -> int:
        """Return the bytes of the rows of slices or row selections."""
        return int(sum(len(rows) * self.row_bytes(rows.row_group) for rows in slices))

    @property
    def max_row_bytes(self) -> float:
        """Mean bytes of a row in the row group where it is largest."""
        return max(self._row_bytes, default=1.0)

    @property
    def max_chunk_bytes(self) -> int:
        """Bytes of the largest column chunk: compressed plus decompressed."""
        return int(self._stored.max(initial=0))


def _nested(target: OutputType, rows: _Numbers, values: _Numbers, sizes: _Numbers, as_objects: bool) -> _Numbers:
    """Return the bytes of levels, values, their arrays, and the Python objects if there are any."""
    width = _OFFSET if target.dtype is None else target.dtype.itemsize
    decoded = values * (2 + width) + (sizes if target.dtype is None else 0)
    # Arrow's builders hold a copy more.
    needed: _Numbers = (
        2 * decoded + values * _OBJECT + rows * _CONTAINER if as_objects else 3 * decoded + rows * _OFFSET
    )
    return needed


def scratch_bytes(estimates: Sequence[MemoryEstimate], threads: int, window: int = WINDOW_BYTES) -> int:
    """Return the bytes of the threads' scratch buffers, given the bytes of a window of pages."""
    each = min(2 * window, max((one.max_chunk_bytes for one in estimates), default=0))
    return int(threads * each * _SLACK)


def scratch_share(limit: int, threads: int) -> ScratchShare:
    """Return a thread's share of a memory limit; a larger page than the limit's third takes what it needs, up to 8 MiB.

    A window of pages, and as many bytes decompressed and transcoded, take a third of the limit.
    """
    third = limit // 3 // threads
    window = max(int(third / 2 / _SLACK), _MIN_WINDOW_BYTES)
    return ScratchShare(max(third, WINDOW_BYTES + 2 * BATCH_BYTES), min(window, WINDOW_BYTES))


def check_memory_limit(parts: Sequence[tuple[MemoryEstimate, Sequence[Any]]], threads: int, limit: int) -> None:
    """Raise LimitError if the rows of all files and the scratch buffers exceed `limit` bytes."""
    rows = sum(len(some) for _, slices in parts for some in slices)
    window = scratch_share(limit, threads).window_bytes
    needed = sum(costs.slice_bytes(slices) for costs, slices in parts)
    needed += scratch_bytes([costs for costs, _ in parts], threads, window)
    if needed > limit:
        raise LimitError(
            f"{rows:,} rows would take about {format_bytes(needed)} of memory, and memory_limit is "
            f"{format_bytes(limit)}; read fewer columns or rows (filters, row_range, nrows), or batches (iter_batches)"
        )


def check_filter_memory(readers: Sequence[FileReader], options: ScanOptions, threads: int) -> None:
    """Refuse a filter whose columns take more memory than is allowed: each thread filters a row group."""
    assert options.memory_limit is not None
    for reader in readers:
        if reader.predicate is not None and reader.num_rows:
            leaves = reader.predicate.leaves
            types = [choose_output_type(leaf, has_nulls=True) for leaf in leaves]
            largest = sorted(reader.selections.parts, key=len)[-threads:]
            groups = [rows.row_group for rows in largest]
            estimate = MemoryEstimate(reader.file, leaves, types, groups, options.dtype_backend != "pyarrow")
            check_memory_limit([(estimate, largest)], threads, options.memory_limit)


def filled_row_bytes(columns: FileColumns, types: Sequence[OutputType], as_objects: bool) -> float:
    """Return the bytes of a row in the projected leaves that files lack or cast: their own leaves do not count them."""
    one, total = np.ones(1), 0.0
    for at in (*columns.missing_positions, *(leaf for column in columns.cast for leaf in column.projected)):
        rule = _nested if types[at].nested else _RULES[types[at].storage]
        total += float(rule(types[at], one, one, 0 * one, as_objects)[0])
    return total


def check_rows_memory(
    readers: Sequence[FileReader],
    types: Sequence[OutputType],
    virtual: Sequence[str],
    options: ScanOptions,
    threads: int,
) -> None:
    """Refuse selected rows that take more memory, as the output `types` of the projected leaves, than is allowed."""
    assert options.memory_limit is not None
    estimates = []
    for reader in readers:
        parts = reader.selections.parts
        if parts:
            groups, as_objects = [rows.row_group for rows in parts], options.dtype_backend != "pyarrow"
            extra = filled_row_bytes(reader.columns, types, as_objects)
            extra += max(virtual_row_bytes(virtual, one.file.source.name) for one in reader.files)
            estimate = MemoryEstimate(reader.file, reader.leaves, reader.output_types, groups, as_objects, extra)
            estimates.append((estimate, parts))
    check_memory_limit(estimates, threads, options.memory_limit)


def format_bytes(count: float) -> str:
    """Return a byte count as text, in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} TiB"


@lru_cache(maxsize=1)
def _trim() -> Any:
    """Return glibc's `malloc_trim`; None with another allocator."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
    return trim


def release_free_memory() -> None:
    """Return freed memory to the system; glibc retains up to 64 MiB for each thread that freed a large array."""
    trim = _trim()
    if trim is not None:
        trim(0)


def decoded_bytes(layout: BlockLayout, buffers: Sequence[DecodedColumn]) -> int:
    """Return the bytes that decoded columns take."""
    arrays = [array for array in (*layout.blocks, *layout.validity) if array is not None]
    columns = zip(layout.values, layout.block_of, strict=True)
    arrays += [values for values, block in columns if values is not None and block is None]
    total = sum(array.nbytes for array in arrays)
    return total + sum(_piece_bytes(piece) for buffer in buffers for piece in buffer.arrays)


def _piece_bytes(piece: BinaryArray | DictionaryArray | NestedLeaf) -> int:
    """Return the bytes of a BinaryArray, DictionaryArray or NestedLeaf that were written to."""
    if isinstance(piece, BinaryArray):
        marks = 0 if piece.validity is None else piece.validity.nbytes
        return piece.offsets.nbytes + int(piece.offsets[-1] - piece.offsets[0]) + marks
    if isinstance(piece, DictionaryArray):
        return piece.codes.nbytes + _piece_bytes(piece.dictionary)
    levels = sum(array.nbytes for array in (piece.definition, piece.repetition) if array is not None)
    values = piece.values
    return levels + (int(values.nbytes) if isinstance(values, np.ndarray) else sum(map(_piece_bytes, values)))
