"""What can be got out of a file that is damaged or was never finished, as a good file (README.md, "Error recovery")."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from ..codecs import NAMES
from ..errors import InvalidFileError, ParquetError, SchemaError, located
from ..io.copying import copy_prefix
from ..io.sink import open_sink
from ..io.source import FileSource
from ..metadata.footer import MAGIC, Footer
from ..metadata.recovery import last_footer
from ..metadata.rewrite import take_apart
from ..verifying import examine
from ..verifying.deviations import Findings
from ..verifying.footer import Tail, read_bytes, read_tail
from ..verifying.walk import Walk, walk_pages
from .footer import CREATED_BY, row_group
from .groups import Ambiguous, FoundGroup, GroupFinder
from .report import Salvaged
from .rows import rewritten
from .schemas import schema_of_file, schema_of_footer

__all__ = ["Salvaged", "salvage"]

_BLOCK = 1 << 20  # bytes copied at once
_TAIL = 8


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
    with located(file=os.fspath(path)):
        _check_arguments(path, out, force)
        number = _codec_number(codec)
        source = FileSource(os.path.expanduser(os.fspath(path)))
        try:
            findings = Findings()
            tail = read_tail(source, findings)
            faults = {deviation.check for deviation in findings.deviations if deviation.severity == "error"}
            if tail is not None and faults <= {"magic-head"}:
                return _with_footer(source, tail, out)
            return _without_footer(source, out, schema, number, row_group_size)
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


def _codec_number(codec: str | None) -> int | None:
    if codec is None:
        return None
    name = {"NONE": "UNCOMPRESSED"}.get(codec.upper(), codec.upper())
    if name not in NAMES:
        raise ValueError(f"the codec is one of {', '.join(NAMES)}, not {codec!r}")
    return NAMES.index(name)


def _write(source: FileSource, out: Any, length: int, footer: bytes) -> None:
    """Write the beginning of the file, under the magic number that belongs there, and a footer."""
    with open_sink(out) as sink:
        if read_bytes(source, 0, len(MAGIC)) == MAGIC:
            copy_prefix(source.name, sink, length)
        else:
            sink.write(MAGIC)
            for position in range(len(MAGIC), length, _BLOCK):
                sink.write(read_bytes(source, position, min(_BLOCK, length - position)))
        if footer:
            sink.write(footer + len(footer).to_bytes(4, "little") + MAGIC)


# --- files whose footer is there --------------------------------------------------------------------------------------


def _with_footer(source: FileSource, tail: Tail, out: Any) -> Salvaged:
    """Save the rows that are whole; where they cannot be written as they were, the row groups that are."""
    report = examine(source.name)
    damaged: dict[int, str] = {}
    general = [deviation for deviation in report.deviations
               if deviation.severity == "error" and deviation.row_group is None]  # fmt: skip
    if any(deviation.check.startswith(("schema", "thrift")) for deviation in general):
        raise InvalidFileError(f"the schema in the footer is damaged: {general[0].message}")
    for deviation in report.deviations:
        if deviation.row_group is not None and deviation.check.startswith(_OF_DATA):
            damaged.setdefault(deviation.row_group, str(deviation))
    saved = Salvaged(report.num_rows, report.num_row_groups)
    if not damaged:
        _write(source, out, source.size, b"")
        saved.kept.append("the whole file: its footer and its pages are sound")
        return saved
    return rewritten(source.name, out) or _sound_groups(source, tail, out, damaged)


def _sound_groups(source: FileSource, tail: Tail, out: Any, damaged: dict[int, str]) -> Salvaged:
    """Keep the row groups that are sound, as they are."""
    saved = Salvaged()
    data = _array(read_bytes(source, tail.start, source.size - _TAIL - tail.start))
    footer = Footer(data, len(data))
    groups = tail.metadata["row_groups"]
    kept = [number for number in range(len(groups)) if number not in damaged]
    if not kept:
        raise InvalidFileError(f"each row group has damaged pages: {next(iter(damaged.values()))}")
    saved.num_rows, saved.num_row_groups = sum(groups[number]["num_rows"] for number in kept), len(kept)
    made = take_apart(footer).encode(_renumbered(footer, kept), saved.num_rows, {}, CREATED_BY)
    _write(source, out, tail.start, made)
    saved.kept.append(f"the row groups {_numbers(kept)}, as they are")
    saved.lost += [f"row group {number} with {groups[number]['num_rows']:,} rows: {reason}"
                   for number, reason in sorted(damaged.items())]  # fmt: skip
    return saved


def _renumbered(footer: Footer, kept: list[int]) -> list[Any]:
    """Give the structs of some row groups; those whose ordinals change are made anew."""
    structs: list[Any] = list(take_apart(footer).row_groups)
    for place, number in enumerate(kept):
        if place != number and footer.full.row_groups[number].ordinal is not None:
            structs[number] = footer.full.row_groups[number].to_dict() | {"ordinal": place}
    return [structs[number] for number in kept]


# Checks that fail where data are damaged, rather than what is said of them.
_OF_DATA = ("page-header", "page-type", "page-size", "page-counts", "page-crc", "page-decompressed", "page-dictionary",
            "page-encoding", "page-levels", "page-values", "page-utf8", "chunk-metadata", "chunk-type", "chunk-place",
            "chunk-values", "chunk-rows", "group-columns", "group-rows", "thrift")  # fmt: skip


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"


def _array(data: bytes) -> Any:
    import numpy as np

    return np.frombuffer(data, np.uint8)


# --- files whose footer is gone ---------------------------------------------------------------------------------------


def _without_footer(
    source: FileSource, out: Any, schema: Any, codec: int | None, row_group_size: int | None
) -> Salvaged:
    """Save what is in front of the last checkpoint, and the row groups behind it."""
    saved = Salvaged()
    start, known = len(MAGIC), schema_of_file(schema) if schema is not None else None
    before: list[Any] = []
    with contextlib.suppress(InvalidFileError):
        checkpoint = last_footer(source.name)
        start = checkpoint.end
        length = int.from_bytes(read_bytes(source, start - _TAIL, 4), "little")
        known = schema_of_footer(read_bytes(source, start - _TAIL - length, length))
        before += take_apart(known.footer).row_groups
        saved.num_rows, saved.num_row_groups = checkpoint.num_rows, checkpoint.num_row_groups
        saved.kept.append(f"{checkpoint.num_rows:,} rows in {checkpoint.num_row_groups:,} row groups, by the footer "
                          f"that its writer left at byte {start:,}")  # fmt: skip
    if known is None:
        raise SchemaError(
            "there is no footer of a checkpoint in the file. Its row groups can perhaps be found by their pages, if "
            "the columns are known: name a file that has the same ones as `schema`"
        )
    walk = walk_pages(source, start)
    finder = GroupFinder(source, walk, known.leaves, dict(known.codecs), codec, row_group_size)
    groups = _find_groups(finder, walk, saved)
    if not groups and start == len(MAGIC):
        raise InvalidFileError(saved.lost[0] if saved.lost else "there is no page in the file: nothing can be saved")
    made = [row_group(group, walk, saved.num_row_groups + number) for number, group in enumerate(groups)]
    rows = sum(group.num_rows for group in groups)
    if not groups:
        _write(source, out, start, b"")
        return saved
    end = walk.pages[groups[-1].behind - 1].end
    saved.num_rows, saved.num_row_groups = saved.num_rows + rows, saved.num_row_groups + len(groups)
    saved.kept.append(f"{rows:,} rows in {len(groups):,} row groups, by their pages up to byte {end:,}")
    encoded = take_apart(known.footer).encode([*before, *made], saved.num_rows, {}, CREATED_BY)
    _write(source, out, end, encoded)
    return saved


def _find_groups(finder: GroupFinder, walk: Walk, saved: Salvaged) -> list[FoundGroup]:
    """Find row groups as long as they are whole, and say what is behind the last."""
    groups: list[FoundGroup] = []
    page, reason = 0, ""
    while page < len(walk.pages):
        try:
            found = finder.find(page)
        except Ambiguous as error:
            reason = f"{error.message}; {error.what}=... would settle it"
            break
        except ParquetError as error:
            reason = error.message
            break
        if found is None:
            reason = (f"no whole row group of these columns begins there: column {finder.stuck_at!r} is cut off, or "
                      "its pages are not as the schema says")  # fmt: skip
            break
        groups.append(found)
        page = found.behind
    left = len(walk.pages) - page
    if left:
        begin = walk.pages[page].offset
        saved.lost.append(f"{left:,} pages from byte {begin:,} on, which are whole: {reason}")
    if walk.end < finder.source.size:
        saved.lost.append(f"{finder.source.size - walk.end:,} bytes from byte {walk.end:,} on: {walk.reason}")
    return groups
