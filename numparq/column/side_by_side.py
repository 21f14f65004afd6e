"""Chunks of values of a fixed size whose outputs are not the same, fetched and walked over together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ..kernels.tables import C_NULL_COUNT, P_CHUNK
from .fixed import FixedOutput
from .fixed_job import FixedJob
from .pages import Pages

__all__ = ["SideBySideJob"]


@dataclass(eq=False, repr=False)
class SideBySideJob(FixedJob):
    """Small chunks, which lie in one window.

    Parameters
    ----------
    outputs : mapping of int to FixedOutput
        By column, as `columns` counts them.
    """

    outputs: Mapping[int, FixedOutput] = field(kw_only=True)

    def _decode(self, pages: Pages, dictionary: np.ndarray | None) -> None:
        """Decode the chunks of each output by themselves."""
        null_counts = np.zeros(len(pages.chunks), np.int64)
        chunks_of: dict[int, list[int]] = {}
        for chunk, column in enumerate(self.columns):
            chunks_of.setdefault(id(self.outputs[column]), []).append(chunk)
        for chunks in chunks_of.values():
            self.output = self.outputs[self.columns[chunks[0]]]
            is_one = np.zeros(len(pages.chunks), np.bool_)
            is_one[chunks] = True
            table = pages.pages[is_one[pages.pages[:, P_CHUNK]]]
            super()._decode(Pages(pages.raw, pages.chunks, table), dictionary)
            # Where one of them has to be decoded as something else, the others' counts begin again.
            null_counts[chunks] = pages.chunks[chunks, C_NULL_COUNT]
        pages.chunks[:, C_NULL_COUNT] = null_counts
