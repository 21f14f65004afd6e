"""Sizes by which encodings are chosen."""

from __future__ import annotations

import numpy as np
import pytest

from numparq.column.dense_values import DenseLeaf, DenseValues
from numparq.column.write.encoding_choice import choose_encodings
from numparq.column.write.options import ColumnOptions
from numparq.kernels.enums import BOOLEAN, BYTE_ARRAY, DOUBLE, PLAIN, UNCOMPRESSED

BOUNDS = [0, 3, 3, 8]


def choose(values: DenseValues, **options):
    dense = DenseLeaf(values, None, values.count, values.count, values.count)
    return choose_encodings(dense, np.array(BOUNDS), ColumnOptions(codec=UNCOMPRESSED, **options))


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_plain_sizes(use_dictionary):
    texts = [b"a", b"", b"bcd", b"ef", b"g" * 40, b"h", b"i", b"jk"]
    ends = np.cumsum([len(text) for text in texts])
    data, starts = np.frombuffer(b"".join(texts), np.uint8), np.concatenate(([0], ends[:-1]))
    chosen = choose(DenseValues(BYTE_ARRAY, 0, 8, data, starts, ends), use_dictionary=use_dictionary)
    assert chosen.plain_sizes == [16, 0, 66]
    assert chosen.encodings == [PLAIN] * 3
    assert choose(DenseValues(DOUBLE, 8, 8, np.arange(8.0))).plain_sizes == [24, 0, 40]
    assert choose(DenseValues(BOOLEAN, 1, 8, np.zeros(8, np.uint8))).plain_sizes == [1, 0, 1]
