"""Memory of a scan: estimated from the footer, limited, measured, released."""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from numparq.column.buffers import BinaryArray, DecodedColumn, DictionaryArray
from numparq.column.nested.levels import NestedLeaf
from numparq.column.read.decompress import BATCH_BYTES
from numparq.column.read.page_sources import WINDOW_BYTES
from numparq.column.read.row_selection import RowSelection
from numparq.column.scratch import ScratchShare
from numparq.errors import LimitError
from numparq.format.open_file import OpenFile
from numparq.format.schema import Leaf
from numparq.to_pandas.frame import BlockLayout
from numparq.types.output_type import OutputType
from numparq.util.pluralize import pluralize

from .leaf_memory import ChunkCounts, LargestPages, built_bytes, dictionary_bytes, leaf_bytes

if TYPE_CHECKING:
    from .file_columns import FileColumns
    from .file_reader import FileReader
    from .options import ScanOptions

_VIRTUAL = 8 + 8 + 8  # a number of a virtual column, of its row, and of all files together
# Scratch buffers grow by a quarter beyond the requested size.
_SLACK = 1.25
_DICTIONARY_COPIES = 4.5  # fetched, decompressed, decoded, checked, and the offsets of strings
_RETAINED = 512 << 10  # of a thread: small objects, and what the allocator retains of freed ones
_CACHED_SHARE = 8  # of the limit, for a row group of each thread in the predicate cache; all row groups may take two
_INDEX = 16  # of a row that is decoded alone
_MIN_WINDOW_BYTES = 64 << 10
# A filter without a limit takes so much memory, or so many times the bytes of the file: pages of a million equal
# values in 30 bytes take half of that.
_MIN_CLAIM_BYTES, _CLAIM_RATIO = 128 << 20, 1 << 16


def virtual_row_bytes(names: Iterable[str], file_name: str) -> int:
    """Return the bytes of a row's virtual columns."""
    size_of_name = 8 + len(file_name.encode(errors="surrogatepass")) + 8  # and which file it is of
    return sum(size_of_name if name == "file" else _VIRTUAL for name in names)


class MemoryEstimate:
    """Estimated bytes of decoded rows by the footer; `extra_row_bytes` counts bytes of a row outside these leaves.

    `largest_pages` are those of the chunks, `max_group_bytes` are those of the largest row group. `is_lower_bound`:
    strings may take far more than is stored (dictionaries without size statistics).
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
        total, held, merged = np.zeros((3, len(groups)))
        self.output_types = output_types
        self.is_lower_bound = False
        siblings = Counter(leaf.column for leaf in leaves)
        for at, (leaf, target) in enumerate(zip(leaves, output_types, strict=True)):
            width = 0 if target.dtype is None or target.storage == "dictionary" else target.dtype.itemsize
            counts = ChunkCounts.of_chunks(chunks, at, num_rows, width)
            total += leaf_bytes(target, counts, as_objects, leaf, siblings[leaf.column])
            for bytes_of, found in zip((held, merged), dictionary_bytes(target, counts), strict=True):
                bytes_of += found
            unknown = (chunks["dictionary_page_offset"][:, at] > 0) & (
                chunks["unencoded_byte_array_data_bytes"][:, at] < 0
            )
            self.is_lower_bound |= target.storage == "binary" and bool(unknown.any())
        self.largest_pages = LargestPages.of_chunks(chunks)
        self._row_bytes = np.maximum((total - held - merged) / num_rows + extra_row_bytes, 1.0).tolist()
        self._dictionary_bytes, self._merging_bytes = held.tolist(), merged.tolist()
        self.max_group_bytes: float = (total + num_rows * extra_row_bytes).max(initial=0.0)

    def row_bytes(self, row_group: int) -> float:
        """Return the mean bytes of a row of a row group, without `dictionary_bytes`."""
        found: float = self._row_bytes[self._position[row_group]]
        return found

    def dictionary_bytes(self, row_group: int) -> float:
        """Return the bytes of a row group's dictionaries, which any of its rows takes."""
        found: float = self._dictionary_bytes[self._position[row_group]]
        return found

    def rows_bytes(self, slices: Sequence[Any]) -> float:
        """Return the bytes of the rows of slices or row selections, without dictionaries."""
        return sum(len(rows) * self.row_bytes(rows.row_group) for rows in slices)

    def merged_bytes(self, slices: Sequence[Any]) -> float:
        """Return the bytes of the dictionaries of the row groups of slices, while they are merged."""
        groups = {self._position[rows.row_group] for rows in slices if len(rows)}
        total: float = sum(self._dictionary_bytes[group] + self._merging_bytes[group] for group in groups)
        return total

    def slice_bytes(self, slices: Sequence[Any]) -> int:
        """Return the bytes of the rows of slices or row selections."""
        return int(self.rows_bytes(slices) + self.merged_bytes(slices))

    @property
    def max_row_bytes(self) -> float:
        """Mean bytes of a row in the row group where they are largest, without `dictionary_bytes`."""
        return max(self._row_bytes, default=1.0)

    @property
    def max_dictionary_bytes(self) -> float:
        """Bytes of the dictionaries of the row group where they are largest."""
        return max(self._dictionary_bytes, default=0.0)


def scratch_bytes(chunk_bytes: int, threads: int, window: int = WINDOW_BYTES) -> int:
    """Return the bytes of the threads' scratch buffers, given those of the largest chunk and of a window of pages."""
    return int(threads * min(2 * window, chunk_bytes) * _SLACK)


def dictionary_scratch_bytes(largest: LargestPages, threads: int, window: int = WINDOW_BYTES) -> int:
    """Return what the scratch buffers take besides for a dictionary that is larger than a window of pages.

    It is fetched, decompressed and decoded as a whole.
    """
    return int(threads * max(largest.dictionary - window, 0) * _DICTIONARY_COPIES * _SLACK)


def scratch_share(limit: int, threads: int) -> ScratchShare:
    """Return a thread's share of a memory limit; a larger page than the limit's third takes what it needs, up to 8 MiB.

    A window of pages, and as many bytes decompressed and transcoded, take a third of the limit.
    """
    third = limit // 3 // threads
    window = max(int(third / 2 / _SLACK), _MIN_WINDOW_BYTES)
    return ScratchShare(
        max(third, WINDOW_BYTES + 2 * BATCH_BYTES), min(window, WINDOW_BYTES), limit // _CACHED_SHARE // threads
    )


def check_memory_limit(what: str, held: int, chunk_bytes: int, threads: int, limit: int) -> None:
    """Raise LimitError if `held` bytes and the scratch buffers exceed `limit` bytes; it says what takes them."""
    held += threads * _RETAINED
    needed = held + scratch_bytes(chunk_bytes, threads, scratch_share(limit, threads).window_bytes)
    if needed > limit:
        # Scratch buffers take a third of the limit, and no more than those of full windows.
        enough = held + min(scratch_bytes(chunk_bytes, threads), max(held // 2, 1 << 20))
        raise LimitError(
            f"{what} would take about {format_bytes(needed)} of memory, and memory_limit is {format_bytes(limit)}; "
            f"raise it to {format_bytes(enough, round_up=True)}, read fewer columns or rows (filters, row_range, "
            "nrows), or batches (iter_batches)"
        )


def check_filter_memory(readers: Sequence[FileReader], options: ScanOptions, threads: int) -> None:
    """Refuse a filter that takes more memory than is allowed: each thread filters a row group at a time."""
    from .filter_memory import filter_bytes

    assert options.memory_limit is not None
    for reader in readers:
        rows, held, chunk_bytes = filter_bytes(reader, threads)
        if rows:
            what = f"a filter of row groups of {pluralize(rows, 'row')}"
            check_memory_limit(what, held, chunk_bytes, threads, options.memory_limit)


def check_claimed_rows(readers: Sequence[FileReader], threads: int) -> None:
    """Refuse a filter of row groups that claim far more rows than any writer's pages hold in their bytes."""
    from .filter_memory import filter_bytes

    for reader in readers:
        (rows, held, _), size = filter_bytes(reader, threads), reader.file.source.size
        if held > max(_MIN_CLAIM_BYTES, size * _CLAIM_RATIO):
            raise LimitError(
                f"a filter of row groups of {pluralize(rows, 'row')} would take about {format_bytes(held)} of "
                "memory, and the "
                f"file has only {format_bytes(size)}; allow it by memory_limit",
                file=reader.file.source.name,
            )


def filled_row_bytes(columns: FileColumns, types: Sequence[OutputType], as_objects: bool) -> float:
    """Return the bytes of a row in the projected leaves that files lack or cast: their own leaves do not count them."""
    counts, total = ChunkCounts.of_rows(np.ones(1)), 0.0
    for at in (*columns.missing_positions, *(leaf for column in columns.cast for leaf in column.projected)):
        total += float(leaf_bytes(types[at], counts, as_objects, None, 1)[0])
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
    estimates, num_rows, held = [], 0, 0
    for reader in readers:
        parts = reader.selections.parts
        if parts:
            groups, as_objects = [rows.row_group for rows in parts], options.dtype_backend != "pyarrow"
            extra = filled_row_bytes(reader.columns, types, as_objects)
            extra += max(virtual_row_bytes(virtual, one.file.source.name) for one in reader.files)
            estimate = MemoryEstimate(reader.file, reader.leaves, reader.output_types, groups, as_objects, extra)
            estimates.append(estimate)
            num_rows += reader.num_rows
            held += estimate.slice_bytes(parts)
            if reader.selections.selections is not None:
                held += selected_bytes(reader.selections.selections, threads)
    held += max((built_bytes(one.output_types, num_rows) for one in estimates), default=0)
    what = pluralize(num_rows, "row")
    chunk_bytes = LargestPages.of_all(one.largest_pages for one in estimates).chunk
    check_memory_limit(what, held, chunk_bytes, threads, options.memory_limit)


def selected_bytes(selections: Sequence[RowSelection], threads: int) -> int:
    """Return the bytes of what a filter found: row ranges, masks, cached values, and indices while each is decoded."""
    held, indices = 0, []
    for rows in selections:
        held += rows.row_ranges.bounds.nbytes + (0 if rows.mask is None else rows.mask.nbytes)
        held += sum(column.num_bytes for column in rows.cached.values())
        is_scattered = rows.mask is not None or len(rows.row_ranges.bounds) > 1
        indices.append(_INDEX * len(rows) if is_scattered and not rows.cached else 0)
    return held + sum(sorted(indices)[-threads:])


def format_bytes(count: float, *, round_up: bool = False) -> str:
    """Return a byte count as text, in the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            digits = 0 if unit == "bytes" or count >= 10 else 1
            return f"{math.ceil(count * 10**digits) / 10**digits if round_up else count:.{digits}f} {unit}"
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
    pieces: Iterable[BinaryArray | DictionaryArray | NestedLeaf] = chain.from_iterable(one.arrays for one in buffers)
    return total + sum(piece.num_bytes for piece in pieces)
