"""What a file without a footer had in it, by another file that has the same columns."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import InvalidFileError, SchemaError, located
from ..io.source import open_source
from ..metadata.footer import Footer
from ..schema import Leaf
from ..verifying.deviations import Findings
from ..verifying.footer import read_bytes, read_tail
from ..verifying.schema import leaves_of, read_schema
from ..verifying.thrift import read_struct

__all__ = ["KnownSchema", "schema_of_file", "schema_of_footer"]

_TAIL = 8  # length and magic number


@dataclass(frozen=True)
class KnownSchema:
    """The columns of a file, and what goes with them into its footer.

    Parameters
    ----------
    leaves : list of Leaf
        The columns that hold values.
    footer : Footer
        The footer that has them: all but the row groups is taken from it.
    codecs : dict of int to int
        The codec that each leaf probably has.
    """

    leaves: list[Leaf]
    footer: Footer
    codecs: dict[int, int] = field(default_factory=dict)


def schema_of_footer(data: bytes) -> KnownSchema:
    """Make a schema of the bytes of a FileMetaData.

    Raises
    ------
    InvalidFileError
        When they are damaged.
    SchemaError
        When there are columns that cannot be read.
    """
    footer = Footer(np.frombuffer(data, np.uint8), len(data))
    findings = Findings()
    metadata, _ = read_struct("FileMetaData", data, findings.add)
    root = read_schema(metadata, findings)
    errors = [deviation for deviation in findings.deviations if deviation.check.startswith("schema")
              and deviation.severity == "error"]  # fmt: skip
    if root is None or errors:
        raise SchemaError(f"the schema is damaged: {errors[0].message if errors else 'it is no tree'}")
    leaves = leaves_of(root)
    known = [leaf for leaf in leaves if leaf is not None]
    if len(known) != len(leaves) or not known:
        raise SchemaError("the schema has no columns, or columns that cannot be read")
    groups = metadata.get("row_groups") or [{}]
    chunks = [chunk.get("meta_data", {}) for chunk in groups[-1].get("columns", [])]
    codecs = {number: chunk["codec"] for number, chunk in enumerate(chunks) if "codec" in chunk}
    return KnownSchema(known, footer, codecs)


def schema_of_file(schema: Any) -> KnownSchema:
    """Take the schema from what the user gives.

    Parameters
    ----------
    schema : path, bytes-like, binary file object, or pyarrow.Schema
        A Parquet file (one without rows too, such as ``_common_metadata``), or the schema that pyarrow would write.

    Returns
    -------
    KnownSchema

    Raises
    ------
    InvalidFileError
        When the file is damaged itself.
    SchemaError
        As `schema_of_footer`.
    """
    if type(schema).__module__.partition(".")[0] == "pyarrow":
        schema = _written(schema)
    source = open_source(schema)
    try:
        with located(file=source.name):
            tail = read_tail(source, Findings())
            if tail is None:
                raise InvalidFileError("the file that the schema is to be taken from has no footer itself")
            return schema_of_footer(read_bytes(source, tail.start, source.size - _TAIL - tail.start))
    finally:
        source.close()


def _written(schema: Any) -> bytes:
    """Write a file without rows that has a pyarrow schema."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer)
    return buffer.getvalue()
