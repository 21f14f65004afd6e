"""The keys of a footer that restore a frame, when more rows come behind those that they describe.

What comes of it is what `pandas.concat` of the frames has, as far as a file can say it: a RangeIndex goes on where the
next one continues it or starts anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .errors import SchemaError
from .shred.arrow_message import with_metadata

__all__ = ["extended"]

Metadata = Mapping[str, str | bytes]
_DOCUMENT, _ARROW = "pandas", "ARROW:schema"
_CODES = ("int8", "int16", "int32", "int64")  # what a categorical's numpy_type is, by the number of categories


def extended(metadata: Metadata, following: Metadata, num_rows: int | None = None) -> dict[str, str | bytes]:
    """Combine what restores the rows so far with what restores some more.

    Parameters
    ----------
    metadata : mapping of str to str or bytes
        The keys of the file, or of the frames before.
    following : mapping of str to str or bytes
        Those of a frame whose rows come behind; of them only the index and categoricals count.
    num_rows : int, optional
        The rows of that frame, for one whose index was not kept.

    Returns
    -------
    dict
        The keys for all rows; with no more changes than are necessary.

    Raises
    ------
    SchemaError
        When the index of all rows together cannot be kept: a RangeIndex that does not follow the one before; or when
        a column is an ordered categorical here and an unordered one there.
    """
    result = dict(metadata)
    before, after = _document(metadata), _document(following)
    if before is None or after is None:  # a file without the key has no index to keep
        return result
    index = _index(_list(before, "index_columns"), _list(after, "index_columns"), num_rows)
    columns = _columns(_list(before, "columns"), _list(after, "columns"))
    if index == before.get("index_columns") and columns == before.get("columns"):
        return result
    changed = json.dumps({**before, "index_columns": index, "columns": columns})
    result[_DOCUMENT] = changed if isinstance(metadata[_DOCUMENT], str) else changed.encode()
    _replace_in_arrow_schema(result)
    return result


def _document(metadata: Metadata) -> dict[str, Any] | None:
    """Parse the ``pandas`` key; None where there is none, or nothing that can be understood."""
    try:
        found = json.loads(metadata[_DOCUMENT])
    except (KeyError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _list(document: dict[str, Any], key: str) -> list:
    found = document.get(key)
    return found if isinstance(found, list) else []


# --- the index ------------------------------------------------------------------------------------------------------


def _index(before: list, after: list, num_rows: int | None) -> list:
    """Combine two lists of index levels."""
    if not any(_is_range(level) for level in (*before, *after)):
        if before == after:
            return before
        raise SchemaError(f"the index of the file is in its columns {before}, that of the frame in {after}")
    if before and after:
        if len(before) == len(after) == 1 and _is_range(before[0]) and _is_range(after[0]):
            return [_joined(before[0], after[0])]
        raise SchemaError(f"the frame has {_shown(after[0])} for its index, the file {_shown(before[0])}")
    if not before:  # the file keeps no index
        if _is_default(after[0]) or not len(_range(after[0])):
            return []
        raise SchemaError(
            f"the file keeps no index, and the frame has {_shown(after[0])}: write it with index=False, or reset_index"
        )
    if num_rows is not None:
        return [_joined(before[0], _level(range(num_rows), None))]
    if _is_default(before[0]):
        return []
    raise SchemaError(f"the file has {_shown(before[0])} for its index, and the frame was written without one")


def _joined(before: dict, after: dict) -> dict:
    """Put one range behind another."""
    first, second = _range(before), _range(after)
    name = before.get("name") if after.get("name") in (before.get("name"), None) else None
    if not len(second):
        return before
    if not len(first):
        return {**after, "name": name}
    goes_on = second.start == first[-1] + first.step and (second.step == first.step or len(second) == 1)
    anew = second.start == first.start and second.step == first.step
    if goes_on or anew or _is_default(after):
        return _level(range(first.start, first.start + first.step * (len(first) + len(second)), first.step), name)
    raise SchemaError(
        f"the index of the frame, {_shown(after)}, neither continues that of the file, {_shown(before)}, nor starts "
        "anew: write it with index=False, or reset_index"
    )


def _is_range(level: Any) -> bool:
    return isinstance(level, dict) and level.get("kind") == "range"


def _is_default(level: Any) -> bool:
    """Whether a level is the index of a frame that was given none."""
    return _is_range(level) and level.get("name") is None and (_range(level).start, _range(level).step) == (0, 1)


def _range(level: dict) -> range:
    numbers = [level.get(key) for key in ("start", "stop", "step")]
    if not all(type(number) is int for number in numbers) or not numbers[2]:
        raise SchemaError(f"the file's index is no range that can be continued: {level}")
    return range(*numbers)  # type: ignore[arg-type]


def _level(numbers: range, name: Any) -> dict:
    return {"kind": "range", "name": name, "start": numbers.start, "stop": numbers.stop, "step": numbers.step}


def _shown(level: Any) -> str:
    if not _is_range(level):
        return f"the column {level!r}"
    name = f", name={level['name']!r}" if level.get("name") is not None else ""
    return f"RangeIndex({level.get('start')}, {level.get('stop')}, {level.get('step')}{name})"


# --- the columns ----------------------------------------------------------------------------------------------------


def _columns(before: list, after: list) -> list:
    """Combine what is said of categoricals: their number counts, and the type of codes for so many."""
    by_field = {entry.get("field_name"): entry for entry in after if isinstance(entry, dict)}
    return [_column(entry, by_field.get(entry.get("field_name"))) if isinstance(entry, dict) else entry
            for entry in before]  # fmt: skip


def _column(before: dict, after: dict | None) -> dict:
    if after is None or before.get("pandas_type") != "categorical" or after.get("pandas_type") != "categorical":
        return before
    mine, theirs = before.get("metadata"), after.get("metadata")
    if not isinstance(mine, dict) or not isinstance(theirs, dict) or mine == theirs:
        return before
    if bool(mine.get("ordered")) != bool(theirs.get("ordered")):
        raise SchemaError("the categories are ordered in one of the file and the frame, and unordered in the other",
                          column=str(before.get("field_name")))  # fmt: skip
    counts = [about.get("num_categories") for about in (mine, theirs)]
    if not all(type(count) is int for count in counts):
        return before
    codes = [entry.get("numpy_type") for entry in (before, after)]
    widest = max(codes, key=_CODES.index) if all(code in _CODES for code in codes) else codes[0]
    return {**before, "numpy_type": widest, "metadata": {**mine, "num_categories": max(counts)}}  # type: ignore[type-var]


# --- the copy in ARROW:schema ---------------------------------------------------------------------------------------


def _replace_in_arrow_schema(metadata: dict[str, str | bytes]) -> None:
    """Let the Arrow schema hold the same keys: where there is one, pyarrow looks for ``pandas`` nowhere else."""
    if _ARROW in metadata:
        texts = {key: text for key, value in metadata.items() if key != _ARROW and (text := _text(value)) is not None}
        value = with_metadata(metadata[_ARROW], texts)
        metadata[_ARROW] = value


def _text(value: str | bytes) -> str | None:
    """Give a value as text; None where it is none."""
    try:
        return value if isinstance(value, str) else value.decode()
    except UnicodeDecodeError:
        return None
