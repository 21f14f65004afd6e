"""Salvage a file: check the arguments, then repair by the damage found."""

from __future__ import annotations

import os
from typing import Any

from numparq.errors import error_context
from numparq.io.local_source import FileSource
from numparq.kernels.enums import CODEC_NAMES
from numparq.tools.verify.deviations import Findings
from numparq.tools.verify.footer import check_footer

from .damaged_pages import salvage_damaged_pages
from .missing_footer import salvage_missing_footer
from .output import Salvaged

__all__ = ["salvage"]


def salvage(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    schema: Any = None,
    *,
    codec: str | None = None,
    row_group_size: int | None = None,
    force: bool = False,
) -> Salvaged:
    """Write what is left of a damaged file to a new file; the damaged file is not changed.

    A file without a footer is kept up to its last checkpoint, if its writer left any (`ParquetWriter` with
    ``checkpoint_row_groups``). After that, or if there is none, the pages are walked and decoded by the known schema
    to find where column chunks and row groups end. Pages are copied unchanged and a new footer is written. If more than
    one division fits, an error names the argument that decides; nothing is guessed.

    If the footer is sound but pages are damaged, the rows that ``read_parquet(on_error="skip")`` returns are rewritten.
    If that would change column types, the undamaged row groups are kept unchanged instead.

    Parameters
    ----------
    path : str or os.PathLike
        Damaged file.
    out : str or os.PathLike
        File to write. It appears under this name only when it is complete.
    schema : path, bytes-like, binary file object, or pyarrow.Schema, optional
        Columns of a file without any footer: a Parquet file of the same writer with the same columns (possibly without
        rows, such as ``_common_metadata``), or an Arrow schema.
    codec : str, optional
        Compression codec of the pages, if it cannot be found by decoding.
    row_group_size : int, optional
        Rows of each row group but the last, if the pages allow several divisions.
    force : bool, default False
        Whether to replace an existing `out`.

    Returns
    -------
    Salvaged
        What was kept and what was lost.

    Raises
    ------
    FileExistsError
        If `out` exists and `force` is False.
    InvalidFileError
        If nothing can be saved; the message says why.
    SchemaError
        If a schema is needed, or the one found is damaged.
    TypeError
        If `path` or `out` is not a path.
    ValueError
        If `out` is the damaged file, or the codec is unknown.
    """
    with error_context(file=os.fspath(path)):
        _check_arguments(path, out, force)
        number = _parse_codec(codec)
        source = FileSource(os.path.expanduser(os.fspath(path)))
        try:
            findings = Findings()
            tail = check_footer(source, findings)
            faults = {deviation.check for deviation in findings.deviations if deviation.severity == "error"}
            if tail is not None and faults <= {"magic-head"}:
                return salvage_damaged_pages(source, tail, out)
            return salvage_missing_footer(source, out, schema, number, row_group_size)
        finally:
            source.close()


def _check_arguments(path: Any, out: Any, force: bool) -> None:
    for each in (path, out):
        if not isinstance(each, (str, os.PathLike)):
            raise TypeError(f"salvage takes paths of local files, not {type(each).__name__}")
    there = os.path.expanduser(os.fspath(out))
    if os.path.exists(there) and os.path.samefile(os.path.expanduser(os.fspath(path)), there):
        raise ValueError("out is the damaged file, which is never changed; use another path")
    if os.path.lexists(there) and not force:
        raise FileExistsError(f"{there} exists already; force=True replaces it")


def _parse_codec(codec: str | None) -> int | None:
    if codec is None:
        return None
    name = {"NONE": "UNCOMPRESSED"}.get(codec.upper(), codec.upper())
    if name not in CODEC_NAMES:
        raise ValueError(f"codec must be one of {', '.join(CODEC_NAMES)}, not {codec!r}")
    return CODEC_NAMES.index(name)
