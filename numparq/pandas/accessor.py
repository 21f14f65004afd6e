"""DataFrame accessor `df.numparq`: write, Parquet schema, lost rows."""

from __future__ import annotations

from typing import Any

import pandas as pd

from numparq.api.write import to_parquet
from numparq.file.assemble import FileAssembler
from numparq.file.readable_file import ReadableFile
from numparq.file.write_plan import write_plan
from numparq.file.writer_options import WriterOptions
from numparq.format.schema import Schema
from numparq.from_pandas.frame import shred_frame
from numparq.io.sink import BytesSink
from numparq.scan.recovery.losses import LostRows
from numparq.typing import Compression, PathOrBuffer
from numparq.util.version import __version__


class NumparqAccessor:
    """Accessor ``df.numparq``.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def to_parquet(
        self, path: PathOrBuffer | None = None, compression: Compression = "snappy", **options: Any
    ) -> bytes | None:
        """Write the frame with `numparq.to_parquet`, which has the arguments.

        Returns
        -------
        bytes or None
            The file, if `path` is None.
        """
        return to_parquet(self._frame, path, compression, **options)

    def to_bytes(self, compression: Compression = "snappy", **options: Any) -> bytes:
        """Return the frame as the bytes of a Parquet file; `numparq.to_parquet` has the arguments.

        Returns
        -------
        bytes
        """
        data = to_parquet(self._frame, None, compression, **options)
        assert data is not None
        return data

    @property
    def schema(self) -> Schema:
        """Parquet schema that a file of the frame would have, index columns included.

        Columns of Python objects are scanned for their types; nothing is encoded.

        Raises
        ------
        SchemaError
            If a column holds a value that Parquet cannot store.
        """
        taken = shred_frame(self._frame)
        nodes = [column.node for column in taken.columns]
        sink = BytesSink()
        assembly = FileAssembler(sink, write_plan(nodes, WriterOptions()), __version__)
        assembly.write_magic()
        assembly.write_footer({})
        sink.commit()
        with ReadableFile(sink.getvalue()) as file:
            return file.schema

    @property
    def lost(self) -> list[LostRows]:
        """Losses of a frame that was read with ``on_error="skip"``.

        Tuples of file, row group, column, row range and reason; empty for any other frame.
        """
        return list(self._frame.attrs.get("numparq.lost", ()))
