"""The pieces of a run of `optimize` as Spark's tasks get them, and the files that they are of."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..dataset.places import place_of
from ..dataset.rewriting import Piece, Rewriting

__all__ = ["TASK_BYTES", "absolute", "check_out", "known_as", "tasks_of", "together"]

TASK_BYTES = 64 << 20  # that a task reads, about
_BINS_A_TASK = 64


def check_out(path: Any, out: Any, place: dict[str, Any]) -> None:
    """Refuse a directory in the dataset itself, whose readers would have all rows twice."""
    old, new = (place_of([each], **place) for each in (path, out))
    if old.filesystem is not new.filesystem:
        return
    base, inner = ((os.path.realpath(one.paths[0]) if one.filesystem is None else one.paths[0]).rstrip("/") + "/"
                   for one in (old, new))  # fmt: skip
    if inner.startswith(base):
        raise ValueError(f"out is in the dataset itself, whose rows would be there twice: {os.fsdecode(out)!r}")


def known_as(path: str, rewriting: Rewriting) -> str:
    """Give the path of a file as splits have it."""
    return path if rewriting.listing.filesystem is not None else absolute(path)


def absolute(path: str) -> str:
    """Give a path as it is from any folder; a URL is that already."""
    return path if "://" in path else os.path.abspath(path)


def tasks_of(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """Put pieces together that one task reads."""
    return [[piece for one in some for piece in one] for some in together([[piece] for piece in pieces], TASK_BYTES)]


def together(bins: Sequence[list[Piece]], num_bytes: int) -> list[list[list[Piece]]]:
    """Put bins together that one task does, in their order."""
    made: list[list[list[Piece]]] = []
    room = 0
    for some in bins:
        size = sum(piece.split.num_bytes for piece in some)
        if not made or size > room or len(made[-1]) >= _BINS_A_TASK:
            made.append([])
            room = num_bytes
        made[-1].append(some)
        room -= size
    return made
