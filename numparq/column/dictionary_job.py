"""Jobs of column chunks whose dictionary indices are wanted: codes and a dictionary, as a Categorical has them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..kernels.tables import (
    BYTE_ARRAY,
    C_CONVERSION,
    C_ITEM_SIZE,
    C_NULLS,
    C_NUM_VALUES,
    C_TYPE,
    C_TYPE_LENGTH,
    COPY,
    NULLS_MASK,
    SLACK,
)
from .binary import NO_DICTIONARY, copy_fixed_dictionary, fixed_piece
from .binary_job import BinaryJob
from .buffer import BinaryPiece, DictionaryPiece
from .fixed import FixedOutput
from .fixed_job import FixedJob
from .job import Job
from .pages import Pages
from .scratch import allocate

__all__ = ["DictionaryJob"]


@dataclass(eq=False, repr=False)
class DictionaryJob(FixedJob):
    """One chunk whose dictionary indices are wanted as they are, in one piece.

    Where a page has no dictionary, the chunk is decoded into values instead. Values of a fixed size are kept as they
    are stored, as pieces of bytes, too.

    Parameters
    ----------
    codes : int32 array
        What the output is: a code a row.
    utf8, size_hint
        As in `BinaryJob`.
    """

    codes: np.ndarray = field(kw_only=True)
    utf8: bool = field(kw_only=True)
    size_hint: int = field(kw_only=True)
    dictionary: BinaryPiece = field(default_factory=lambda: NO_DICTIONARY)

    def __call__(self) -> None:
        """Decode the chunk into codes, or else into values."""
        if not len(self.codes):
            self.chunks[0, C_NUM_VALUES] = -1  # nothing but the dictionary is wanted
        untouched = self.chunks.copy()
        super().__call__()
        if not self.failed:
            self.pieces.append(DictionaryPiece(self.codes, self.dictionary))
            return
        self.failed.clear()
        self.chunks = untouched
        if self._is_binary:
            plain = self._plain()
            plain()
            self.pieces.extend(plain.pieces)
        else:
            self.pieces.append(self._fixed_values())

    @property
    def _is_binary(self) -> bool:
        return self.chunks[0, C_TYPE] == BYTE_ARRAY

    def _begin(self, pages: Pages) -> None:
        if self._is_binary:
            found = self.binary_dictionary(pages, self.utf8)
        else:
            with self.placing(pages):
                found = copy_fixed_dictionary(pages, self.context.scratch)
        self.dictionary = found or self.dictionary

    def _plain(self) -> Job:
        """Make the job that decodes a chunk of BYTE_ARRAY values into these."""
        return BinaryJob(self.context, self.row_group, self.columns, self.chunks, self.share, utf8=self.utf8,
                         size_hint=self.size_hint)  # fmt: skip

    def _stored(self, output: FixedOutput) -> Job:
        """Make the job that decodes a chunk of values of a fixed size into what is stored."""
        return FixedJob(self.context, self.row_group, self.columns, self.chunks, self.share, output=output)

    def _fixed_values(self) -> BinaryPiece:
        """Decode a chunk of values of a fixed size, kept as they are stored."""
        width = int(self.chunks[0, C_TYPE_LENGTH])
        values, validity = allocate(len(self.codes) * width + SLACK), allocate(len(self.codes) + SLACK)
        self.chunks[0, [C_CONVERSION, C_ITEM_SIZE, C_NULLS]] = COPY, width, NULLS_MASK
        self._stored(FixedOutput(values, validity))()
        return fixed_piece(values[: len(self.codes) * width], width, validity[: len(self.codes)])
