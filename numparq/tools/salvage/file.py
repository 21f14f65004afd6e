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
    """Make a good file of what is left of a damaged one, which is not changed.

    A file that was cut off is good up to the last footer in it, if its writer left some on the way (`ParquetWriter`
    with ``checkpoint_row_groups``). Behind that, or where there is none, the pages are walked: what is known of the
    columns, and that their pages decode, says where column chunks and row groups end, and a new footer is made of it.
    Pages are copied as they are. Whatever the pages leave open is asked, never guessed. Of a file whose footer is sound
    and whose pages are not, the rows are read that ``read_parquet(on_error="skip")`` gives, and written anew; where the
    columns would not be of the same types then, the row groups without damage are kept as they are.

    Parameters
    ----------
    path : str or os.PathLike
        The damaged file.
    out : str or os.PathLike
        The file to write; it is there once it is complete.
    schema : path, bytes-like, binary file object, or pyarrow.Schema, optional
        The columns, where there is no footer left that has them: another file of the same writer with the same
        columns, with rows or without (``_common_metadata``), or an Arrow schema.
    codec : str, optional
        What the pages are compressed with, where they do not tell.
    row_group_size : int, optional
        Rows of each row group but the last, where the pages do not tell.
    force : bool
        Whether an existing `out` is replaced.

    Returns
    -------
    Salvaged

    Raises
    ------
    FileExistsError
        When there is a file `out` already.
    InvalidFileError
        When nothing can be saved: it says what is missing.
    SchemaError
        When a schema is needed, or the one given is damaged.
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
        raise ValueError("the damaged file is never changed: name another one for what is saved of it")
    if os.path.lexists(there) and not force:
        raise FileExistsError(f"{there} is there already; force=True replaces it")


def _parse_codec(codec: str | None) -> int | None:
    if codec is None:
        return None
    name = {"NONE": "UNCOMPRESSED"}.get(codec.upper(), codec.upper())
    if name not in CODEC_NAMES:
        raise ValueError(f"the codec is one of {', '.join(CODEC_NAMES)}, not {codec!r}")
    return CODEC_NAMES.index(name)
