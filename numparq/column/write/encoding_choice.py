"""Choose the encoding of a column chunk by physical type and sampled values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from numparq.column.dense_values import DenseLeaf, gather_values
from numparq.column.encodings import index_bit_width
from numparq.kernels import delta_writing_kernels
from numparq.kernels.enums import BOOLEAN, DELTA_BINARY_PACKED, INT32, INT64, PLAIN, RLE, RLE_DICTIONARY

from .dictionary import build_dictionary
from .options import ColumnOptions

SAMPLES, SAMPLE_SIZE = 8, 1024
# Most bytes of DELTA_BINARY_PACKED relative to PLAIN, and to a dictionary (which is faster to read).
MAX_DELTA_TO_PLAIN = 0.7
MAX_DELTA_TO_DICTIONARY = 0.6
# Size limit of a dictionary that must be kept: page headers hold sizes in 31 bits.
MAX_DICTIONARY_BYTES = 1 << 30


def choose_encoding(dense: DenseLeaf, options: ColumnOptions, keeps_dictionary: bool = False) -> tuple[DenseLeaf, int]:
    """Choose the encoding of a chunk; return its values and the encoding.

    The values have codes exactly if the encoding is RLE_DICTIONARY.
    """
    if dense.codes is not None:
        if _keeps_dictionary(dense, options, MAX_DICTIONARY_BYTES if keeps_dictionary else 0):
            return dense, RLE_DICTIONARY
        dense = _without_dictionary(dense)
    if options.encoding == RLE_DICTIONARY or (options.encoding is None and options.use_dictionary):
        found = build_dictionary(dense, options)
        if found is not None and not (options.encoding is None and _delta_is_smaller(dense, found)):
            return found, RLE_DICTIONARY
    if options.encoding is not None and options.encoding != RLE_DICTIONARY:
        return dense, options.encoding
    return dense, _by_type(dense, options)


def _keeps_dictionary(dense: DenseLeaf, options: ColumnOptions, room: int) -> bool:
    """Whether a column that comes with a dictionary keeps it."""
    assert dense.codes is not None
    wanted = options.use_dictionary if options.encoding is None else options.encoding == RLE_DICTIONARY
    if not wanted or dense.values.physical == BOOLEAN or not dense.values.count:
        return False
    return dense.values.plain_size <= max(options.dictionary_page_size, room)


def _without_dictionary(dense: DenseLeaf) -> DenseLeaf:
    assert dense.codes is not None
    return DenseLeaf(
        gather_values(dense.values, dense.codes),
        None,
        dense.num_values,
        dense.num_entries,
        dense.num_rows,
        dense.present,
        dense.definition,
        dense.repetition,
    )


def _by_type(dense: DenseLeaf, options: ColumnOptions) -> int:
    if dense.values.physical == BOOLEAN:
        return RLE if options.data_page_version == 2 else PLAIN  # old readers know no other encoding in V1 pages
    size = _delta_size(dense)
    return DELTA_BINARY_PACKED if size is not None and size < MAX_DELTA_TO_PLAIN * dense.values.plain_size else PLAIN


def _delta_is_smaller(dense: DenseLeaf, found: DenseLeaf) -> bool:
    size = _delta_size(dense)
    codes = dense.num_values * index_bit_width(found.values.count) // 8
    return size is not None and size < MAX_DELTA_TO_DICTIONARY * (codes + found.values.plain_size)


def _delta_size(dense: DenseLeaf) -> float | None:
    """Estimate the bytes of DELTA_BINARY_PACKED from samples; None if the type has no such encoding."""
    measure = _MEASURES.get(dense.values.physical)
    count = dense.values.count
    if measure is None or not count:
        return None
    if count <= SAMPLES * SAMPLE_SIZE:
        return measure(dense.values.data, 0, count)
    starts = np.linspace(0, count - SAMPLE_SIZE, SAMPLES).astype(int).tolist()
    sizes = [measure(dense.values.data, start, start + SAMPLE_SIZE) for start in starts]
    return sum(sizes) / (SAMPLES * SAMPLE_SIZE) * count


_MEASURES: dict[int, Callable[[np.ndarray, int, int], int]] = {
    INT32: lambda values, start, stop: delta_writing_kernels.delta_size4(values, start, stop),
    INT64: lambda values, start, stop: delta_writing_kernels.delta_size8(values, start, stop),
}
