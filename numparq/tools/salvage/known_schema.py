"""The schema for a file without a footer, from a checkpoint, another file, or a pyarrow schema."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numparq.errors import InvalidFileError, SchemaError, error_context
from numparq.format.footer.file_metadata import Footer
from numparq.format.schema import Leaf
from numparq.io.open import open_source
from numparq.io.source import read_bytes
from numparq.tools.verify.deviations import Findings
from numparq.tools.verify.footer import check_footer
from numparq.tools.verify.schema import read_schema_tree, schema_leaves
from numparq.tools.verify.thrift import read_struct

__all__ = ["SalvageSchema", "schema_from_file", "schema_from_footer"]

_TAIL_BYTES = 8  # footer length and magic number


@dataclass(frozen=True)
class SalvageSchema:
    """Leaf columns of a file and the footer that describes them.

    Attributes
    ----------
    footer : Footer
        Source of the new footer's fields, except its row groups.
    codec_guesses : dict of int to int
        Likely codec of each leaf column, by its index.
    """

    leaves: list[Leaf]
    footer: Footer
    codec_guesses: dict[int, int] = field(default_factory=dict)


def schema_from_footer(data: bytes) -> SalvageSchema:
    """Read the schema from the bytes of a FileMetaData.

    Raise SchemaError if the schema is damaged or has columns that cannot be read.
    """
    footer = Footer(np.frombuffer(data, np.uint8), len(data))
    findings = Findings()
    metadata, _ = read_struct("FileMetaData", data, findings.add)
    root = read_schema_tree(metadata, findings)
    errors = [
        deviation
        for deviation in findings.deviations
        if deviation.check.startswith("schema") and deviation.severity == "error"
    ]
    if root is None or errors:
        raise SchemaError(f"the schema is damaged: {errors[0].message if errors else 'its elements form no tree'}")
    leaves = schema_leaves(root)
    known = [leaf for leaf in leaves if leaf is not None]
    if len(known) != len(leaves) or not known:
        raise SchemaError("the schema has no columns, or columns that cannot be read")
    groups = metadata.get("row_groups") or [{}]
    chunks = [chunk.get("meta_data", {}) for chunk in groups[-1].get("columns", [])]
    codecs = {number: chunk["codec"] for number, chunk in enumerate(chunks) if "codec" in chunk}
    return SalvageSchema(known, footer, codecs)


def schema_from_file(schema: Any) -> SalvageSchema:
    """Read the schema from the footer of a Parquet file, or from the file that pyarrow writes for a pyarrow schema.

    Raise InvalidFileError if that file has no footer, SchemaError as `schema_from_footer`.
    """
    if type(schema).__module__.partition(".")[0] == "pyarrow":
        schema = _write_empty_file(schema)
    source = open_source(schema)
    try:
        with error_context(file=source.name):
            tail = check_footer(source, Findings())
            if tail is None:
                raise InvalidFileError("the file passed as schema has no footer; use a complete file")
            return schema_from_footer(read_bytes(source, tail.start, source.size - _TAIL_BYTES - tail.start))
    finally:
        source.close()


def _write_empty_file(schema: Any) -> bytes:
    """Write a file with a pyarrow schema and no rows; return its bytes."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(schema.empty_table(), buffer)
    return buffer.getvalue()
