"""The file that an append continues: locked, its footer taken apart, its bytes copied by the operating system."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence

from .appending import extended
from .io.copying import copy_prefix
from .io.growing import GrowingFile
from .io.sink import Sink
from .io.source import open_source
from .json_columns import parse_object
from .leaves import Node
from .metadata.agreement import agreed_columns
from .metadata.footer import read_tail
from .metadata.rewrite import take_apart
from .statistics import NO_ORDER, Order, orders_of

_ORDERS = {"TYPE_ORDER": "type", "IEEE_754_TOTAL_ORDER": "ieee754"}  # those that we write bounds in


class ExistingFile:
    """A Parquet file to which rows are to be added.

    Parameters
    ----------
    path : str or os.PathLike
        A local file.

    Attributes
    ----------
    name : str
        Its path.
    footer : ExistingFooter
        What its footer is made of.
    key_value_metadata : dict of str to str or bytes
        Its keys, without what they tell of the rows so far alone.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    InvalidFileError, UnsupportedError
        When it is no Parquet file, or one that cannot grow.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fsdecode(path).removeprefix("file://")
        self._growing = GrowingFile(self.name)
        try:
            self._footer, self._footer_start = read_tail(open_source(self._growing.file))
            self.footer = take_apart(self._footer)
        except BaseException:
            self._growing.close()
            raise
        self.key_value_metadata: dict[str, str | bytes] = {
            key: _OF_ITS_ROWS[key](value) if key in _OF_ITS_ROWS else value
            for key, value in self.footer.key_value_metadata.items()
        }

    def copy_to(self, sink: Sink) -> None:
        """Put all that is in front of the footer into a sink: row groups, their indexes and filters."""
        copy_prefix(self._growing.file.fileno(), sink, self._footer_start)

    def agreed(self, columns: Sequence[Node]) -> list[Node]:
        """Compare its schema with that of a frame; give it as the file has it, or raise SchemaError."""
        return agreed_columns(self._footer, columns)

    def orders(self, columns: Sequence[Node]) -> list[Order]:
        """Say how the values of each leaf compare in its statistics; there are no bounds where it does not say it."""
        names, by_type = self.footer.column_orders, orders_of(list(columns))
        if names is None or len(names) != len(by_type):
            return [NO_ORDER] * len(by_type)
        found = orders_of(list(columns), [_ORDERS.get(name, "type") for name in names])
        return [order if name in _ORDERS else NO_ORDER for name, order in zip(names, found, strict=True)]

    def extended(self, following: Mapping[str, str | bytes], num_rows: int) -> dict[str, str | bytes]:
        """Give the keys for its rows and those of a frame behind them.

        Parameters
        ----------
        following : mapping of str to str or bytes
            The keys of the frame.
        num_rows : int
            Its rows.
        """
        self.key_value_metadata = extended(self.key_value_metadata, following, num_rows)
        return self.key_value_metadata

    def check(self) -> None:
        """Raise OSError when somebody else has changed the file meanwhile."""
        self._growing.check()

    def close(self) -> None:
        """Let others have the file."""
        self._growing.close()


def _without_extents(value: bytes) -> bytes:
    """Leave out of what GeoParquet says the extents of geometries, and of which kinds these are."""
    document = parse_object(value)
    columns = None if document is None else document.get("columns")
    if document is None or not isinstance(columns, dict):
        return value
    kept = {name: {**{key: part for key, part in notes.items() if key != "bbox"}, "geometry_types": []}
            for name, notes in columns.items() if isinstance(notes, dict)}  # fmt: skip
    return json.dumps({**document, "columns": kept}).encode()


# Keys that tell of the rows so far, and what is left of them: of the order that a job has put these in, nothing.
_OF_ITS_ROWS: dict[str, Callable[[bytes], bytes]] = {"numparq.layout": lambda value: b"", "geo": _without_extents}
