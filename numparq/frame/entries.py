"""Objects of values that came as codes into a dictionary: made once for each of its entries, and then pointed to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..column.buffer import BinaryPiece, DictionaryPiece
from .categories import joined
from .objects import take_objects

__all__ = ["decoded", "made_by_entries"]


def made_by_entries(
    pieces: Sequence[BinaryPiece | DictionaryPiece], make: Callable[[list[BinaryPiece]], np.ndarray]
) -> np.ndarray:
    """Make an object of each value, where there are no nulls.

    Parameters
    ----------
    pieces : sequence of BinaryPiece or DictionaryPiece
        The values.
    make : callable
        Gives an array of objects, one for each value of some pieces; objects that may be had in several places.

    Returns
    -------
    object, shape (n,)
    """
    if not any(isinstance(piece, DictionaryPiece) for piece in pieces):
        return make([piece for piece in pieces if isinstance(piece, BinaryPiece)])
    parts = []
    latest, table = None, np.empty(0, object)
    for piece in pieces:
        if isinstance(piece, BinaryPiece):
            parts.append(make([piece]))
            continue
        if len(piece) < len(piece.dictionary):  # some rows of many
            piece = _used(piece)
        if piece.dictionary is not latest:  # the pieces of a chunk are next to each other
            latest, table = piece.dictionary, make([piece.dictionary])
        parts.append(take_objects(table, piece.codes))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def decoded(piece: BinaryPiece | DictionaryPiece) -> BinaryPiece:
    """Give a piece without nulls as one of byte strings."""
    if isinstance(piece, BinaryPiece):
        return piece
    used = _used(piece)
    items = _items(used.dictionary, range(len(used.dictionary)))
    return joined([items[code] for code in used.codes.tolist()])


def _used(piece: DictionaryPiece) -> DictionaryPiece:
    """Leave those entries out that no code names."""
    entries, codes = np.unique(piece.codes, return_inverse=True)
    return DictionaryPiece(codes.astype(np.int32), joined(_items(piece.dictionary, entries.tolist())))


def _items(dictionary: BinaryPiece, places: Sequence[int]) -> list[bytes]:
    offsets = dictionary.offsets
    return [dictionary.data[offsets[place] : offsets[place + 1]].tobytes() for place in places]
