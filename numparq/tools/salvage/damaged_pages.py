"""Salvage a file with a sound footer: rewrite the undamaged rows, or keep undamaged row groups."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from numparq.api import to_parquet
from numparq.errors import InvalidFileError, ParquetError
from numparq.file.reader import ParquetFile
from numparq.file.writer import ParquetWriter
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.rewrite import split_footer
from numparq.format.schema import Schema
from numparq.io.local_source import FileSource
from numparq.io.source import read_bytes
from numparq.kernels.enums import CODEC_NAMES
from numparq.scan.recovery.losses import LOST_ATTR
from numparq.tools.verify.file import check_file
from numparq.tools.verify.footer import DecodedFooter

from .output import SALVAGE_CREATED_BY, TAIL_BYTES, Salvaged, write_salvaged

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["rewrite_rows"]

# Checks that fail on damaged data, not on wrong metadata about sound data.
_DATA_CHECKS = (
    "page-header",
    "page-type",
    "page-size",
    "page-counts",
    "page-crc",
    "page-decompressed",
    "page-dictionary",
    "page-encoding",
    "page-levels",
    "page-values",
    "page-utf8",
    "chunk-metadata",
    "chunk-type",
    "chunk-place",
    "chunk-values",
    "chunk-rows",
    "group-columns",
    "group-rows",
    "thrift",
)


def rewrite_rows(name: str, out: Any) -> Salvaged | None:
    """Write the rows of a damaged file that are intact in all columns to a new file.

    Return None, with nothing written, if reading or writing fails or column types would change.
    """
    saved = Salvaged()
    writer: ParquetWriter | None = None
    try:
        with ParquetFile(name) as file:
            for frame in _read_undamaged_rows(file, saved):
                if writer is None:
                    if not _preserves_schema(frame, file.schema):
                        return None
                    writer = ParquetWriter(out, compression=_first_codec(file), progress=False)
                writer.write(frame)
                saved.num_rows, saved.num_row_groups = saved.num_rows + len(frame), saved.num_row_groups + 1
        if writer is not None:
            writer.close()
            saved.kept.append("the rows that are intact in all columns, rewritten")
            return saved
    except (ParquetError, TypeError, ValueError, NotImplementedError, MemoryError):
        pass
    finally:
        if writer is not None:
            writer.abort()  # no effect after close()
    return None


def _read_undamaged_rows(file: ParquetFile, saved: Salvaged) -> Iterator[pd.DataFrame]:
    """Yield the intact rows of each row group as a frame; add the losses to `saved`."""
    backend = "pyarrow" if find_spec("pyarrow") is not None else "numpy"
    for group in range(file.num_row_groups):
        frame = file.read(row_groups=[group], on_error="skip", dtype_backend=backend)
        saved.lost += [_describe_loss(loss) for loss in frame.attrs.pop(LOST_ATTR, [])]
        if not set(frame.index.names) & set(file.schema.columns):
            frame = frame.reset_index(drop=True)
        if len(frame):
            yield frame


def _preserves_schema(frame: pd.DataFrame, schema: Schema) -> bool:
    """Whether writing the frame gives the file's columns with the same types."""
    made = to_parquet(frame[:1])
    assert made is not None
    with ParquetFile(made) as file:
        return _column_types(file.schema) == _column_types(schema)


def _column_types(schema: Schema) -> list[tuple[Any, ...]]:
    """Return what must agree in both files for each leaf column."""
    return [
        (leaf.path, leaf.physical, leaf.type_length, leaf.logical, leaf.max_definition_level, leaf.max_repetition_level)
        for leaf in schema
    ]


def _first_codec(file: ParquetFile) -> str:
    """Return the codec of the first column chunk, or ZSTD if numparq cannot write it."""
    groups = file.metadata.row_groups
    name = (
        CODEC_NAMES[codec]
        if groups and 0 <= (codec := groups[0].columns[0].meta_data.codec) < len(CODEC_NAMES)
        else "ZSTD"
    )
    return {"UNCOMPRESSED": "none", "LZO": "zstd", "LZ4": "lz4", "LZ4_RAW": "lz4"}.get(name, name.lower())


def _describe_loss(loss: Any) -> str:
    rows = "" if loss.rows is None else f"rows {loss.rows[0]:,} to {loss.rows[1] - 1:,}"
    column = "" if loss.column is None else f"column {loss.column!r}"
    return f"{' of '.join(filter(None, (rows, column)))}: {loss.reason}"


def salvage_damaged_pages(source: FileSource, tail: DecodedFooter, out: Any) -> Salvaged:
    """Salvage a file with a sound footer: rewrite its intact rows, else keep its sound row groups.

    Raise InvalidFileError if the schema is damaged or no row group is sound.
    """
    report = check_file(source.name)
    damaged: dict[int, str] = {}
    general = [
        deviation for deviation in report.deviations if deviation.severity == "error" and deviation.row_group is None
    ]
    if any(deviation.check.startswith(("schema", "thrift")) for deviation in general):
        raise InvalidFileError(f"the schema in the footer is damaged: {general[0].message}")
    for deviation in report.deviations:
        if deviation.row_group is not None and deviation.check.startswith(_DATA_CHECKS):
            damaged.setdefault(deviation.row_group, str(deviation))
    saved = Salvaged(report.num_rows, report.num_row_groups)
    if not damaged:
        write_salvaged(source, out, source.size, b"")
        saved.kept.append("the whole file: its footer and its pages are sound")
        return saved
    return rewrite_rows(source.name, out) or _keep_row_groups(source, tail, out, damaged)


def _keep_row_groups(source: FileSource, tail: DecodedFooter, out: Any, damaged: dict[int, str]) -> Salvaged:
    """Copy the file and write a new footer with only the sound row groups."""
    saved = Salvaged()
    data = _as_uint8(read_bytes(source, tail.start, source.size - TAIL_BYTES - tail.start))
    footer = Footer(data, len(data))
    groups = tail.metadata["row_groups"]
    kept = [number for number in range(len(groups)) if number not in damaged]
    if not kept:
        raise InvalidFileError(f"every row group has damaged pages: {next(iter(damaged.values()))}")
    saved.num_rows, saved.num_row_groups = sum(groups[number]["num_rows"] for number in kept), len(kept)
    made = split_footer(footer).encode(_with_new_ordinals(footer, kept), saved.num_rows, {}, SALVAGE_CREATED_BY)
    write_salvaged(source, out, tail.start, made)
    saved.kept.append(f"row groups {_format_ordinals(kept)}, unchanged")
    saved.lost += [
        f"row group {number} with {groups[number]['num_rows']:,} rows: {reason}"
        for number, reason in sorted(damaged.items())
    ]
    return saved


def _with_new_ordinals(footer: Footer, kept: list[int]) -> list[Any]:
    """Return the structs of the row groups in `kept`; re-encode those whose ordinal changes."""
    structs: list[Any] = list(split_footer(footer).row_groups)
    for place, number in enumerate(kept):
        if place != number and footer.record.row_groups[number].ordinal is not None:
            structs[number] = footer.record.row_groups[number].to_dict() | {"ordinal": place}
    return [structs[number] for number in kept]


def _format_ordinals(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"


def _as_uint8(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8)
