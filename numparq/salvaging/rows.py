"""The rows of a file that are whole, beside damaged ones, written into another file of the same columns."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..api import to_parquet
from ..codecs import NAMES
from ..errors import ParquetError
from ..reader import ParquetFile
from ..recovery.reading import LOST
from ..schema import Schema
from ..writer import ParquetWriter
from .report import Salvaged

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rewritten"]


def rewritten(name: str, out: Any) -> Salvaged | None:
    """Write the rows that a read with ``on_error="skip"`` gives.

    Parameters
    ----------
    name : str
        The damaged file.
    out : path
        The file to write.

    Returns
    -------
    Salvaged or None
        None where that cannot be done without columns of other types than they were, or at all: then nothing is
        written.
    """
    saved = Salvaged()
    writer: ParquetWriter | None = None
    try:
        with ParquetFile(name) as file:
            for frame in _frames(file, saved):
                if writer is None:
                    if not _keeps_types(frame, file.schema):
                        return None
                    writer = ParquetWriter(out, compression=_compression(file), progress=False)
                writer.write(frame)
                saved.num_rows, saved.num_row_groups = saved.num_rows + len(frame), saved.num_row_groups + 1
        if writer is not None:
            writer.close()
            saved.kept.append("the rows that are whole in all columns, written anew")
            return saved
    except (ParquetError, TypeError, ValueError, NotImplementedError, MemoryError):
        pass
    finally:
        if writer is not None:
            writer.abort()  # which does nothing once it is closed
    return None


def _frames(file: ParquetFile, saved: Salvaged) -> Iterator[pd.DataFrame]:
    """Read row group by row group what is whole; what is not is noted."""
    backend = "pyarrow" if find_spec("pyarrow") is not None else "numpy"
    for group in range(file.num_row_groups):
        frame = file.read(row_groups=[group], on_error="skip", dtype_backend=backend)
        saved.lost += [_described(loss) for loss in frame.attrs.pop(LOST, [])]
        if not set(frame.index.names) & set(file.schema.columns):
            frame = frame.reset_index(drop=True)
        if len(frame):
            yield frame


def _keeps_types(frame: pd.DataFrame, schema: Schema) -> bool:
    """Tell whether a frame, written, has the columns that the file has."""
    made = to_parquet(frame[:1])
    assert made is not None
    with ParquetFile(made) as file:
        return _columns(file.schema) == _columns(schema)


def _columns(schema: Schema) -> list[tuple[Any, ...]]:
    """Give what has to be the same of the columns of two files."""
    return [(leaf.path, leaf.physical, leaf.type_length, leaf.logical, leaf.max_definition_level,
             leaf.max_repetition_level) for leaf in schema]  # fmt: skip


def _compression(file: ParquetFile) -> str:
    """Give the codec of the first column, or ZSTD where numparq does not write it."""
    groups = file.metadata.row_groups
    name = NAMES[codec] if groups and 0 <= (codec := groups[0].columns[0].meta_data.codec) < len(NAMES) else "ZSTD"
    return {"UNCOMPRESSED": "none", "LZO": "zstd", "LZ4": "lz4", "LZ4_RAW": "lz4"}.get(name, name.lower())


def _described(loss: Any) -> str:
    rows = "" if loss.rows is None else f"rows {loss.rows[0]:,} to {loss.rows[1] - 1:,}"
    column = "" if loss.column is None else f"column {loss.column!r}"
    return f"{' of '.join(filter(None, (rows, column)))}: {loss.reason}"
