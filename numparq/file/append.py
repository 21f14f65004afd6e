"""Append rows to a file: lock, copy, check the schema, extend the key-value metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from numparq.errors import SchemaError, UnsupportedError, error_context
from numparq.format.column_order import NO_ORDER, ColumnOrder, leaf_orders
from numparq.format.footer.rewrite import split_footer
from numparq.format.footer.tail import read_footer
from numparq.format.key_values.arrow import arrow_schema_value, replace_metadata
from numparq.format.key_values.json_document import parse_json_object
from numparq.format.physical_type import BOOLEAN
from numparq.format.schema import footer_schema
from numparq.format.schema_node import SchemaNode, leaf_columns
from numparq.from_pandas.nested.column import nested_column
from numparq.from_pandas.user_schema import UserColumn
from numparq.io.copy import copy_prefix
from numparq.io.file_lock import LockedFile
from numparq.io.filesystem import is_url, strip_file_scheme
from numparq.io.open import open_source
from numparq.io.sink import Sink
from numparq.typing import PathOrBuffer, StorageOptions

from .append_schema import file_columns
from .null_leaves import NullLevels, nested_null_leaves
from .readable_file import ReadableFile

Metadata = Mapping[str, str | bytes]
_PANDAS_KEY, _ARROW_KEY = "pandas", "ARROW:schema"
_CODE_TYPES = ("int8", "int16", "int32", "int64")  # numpy_type of a categorical, narrowest first

_COLUMN_ORDERS = {"TYPE_ORDER": "type", "IEEE_754_TOTAL_ORDER": "ieee754"}  # orders in which we write bounds


def _reset_geo_extents(value: bytes) -> bytes:
    """Reset bounding boxes and geometry types in GeoParquet's metadata."""
    document = parse_json_object(value)
    columns = None if document is None else document.get("columns")
    if document is None or not isinstance(columns, dict):
        return value
    kept = {
        name: {**{key: part for key, part in notes.items() if key != "bbox"}, "geometry_types": []}
        for name, notes in columns.items()
        if isinstance(notes, dict)
    }
    return json.dumps({**document, "columns": kept}).encode()


# Keys that describe the existing rows only, and what remains valid of them.
_ROW_DEPENDENT_KEYS: dict[str, Callable[[bytes], bytes]] = {
    "numparq.layout": lambda value: b"",
    "geo": _reset_geo_extents,
}


def extend_key_values(metadata: Metadata, appended: Metadata, num_rows: int | None = None) -> dict[str, str | bytes]:
    """Merge the key-value metadata of a file with that of an appended frame.

    `num_rows` counts the frame's rows if its index was not stored. Raises SchemaError for indexes that do not continue.
    """
    result = dict(metadata)
    before, after = _parse_pandas(metadata), _parse_pandas(appended)
    if before is None or after is None:  # a file without the key has no index to keep
        return result
    index = _extend_index(_get_list(before, "index_columns"), _get_list(after, "index_columns"), num_rows)
    columns = _extend_columns(_get_list(before, "columns"), _get_list(after, "columns"))
    if index == before.get("index_columns") and columns == before.get("columns"):
        return result
    changed = json.dumps({**before, "index_columns": index, "columns": columns})
    result[_PANDAS_KEY] = changed if isinstance(metadata[_PANDAS_KEY], str) else changed.encode()
    _update_arrow_schema(result)
    return result


def _parse_pandas(metadata: Metadata) -> dict[str, Any] | None:
    """Parse the ``pandas`` key; None if missing or invalid."""
    try:
        found = json.loads(metadata[_PANDAS_KEY])
    except (KeyError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _get_list(document: dict[str, Any], key: str) -> list[Any]:
    found = document.get(key)
    return found if isinstance(found, list) else []


# --- index levels ---------------------------------------------------------------------------------------------------


def _extend_index(before: list[Any], after: list[Any], num_rows: int | None) -> list[Any]:
    """Merge two lists of index levels."""
    if not any(_is_range(level) for level in (*before, *after)):
        if before == after:
            return before
        raise SchemaError(f"the index columns differ: the file has {before}, the frame {after}")
    if before and after:
        if len(before) == len(after) == 1 and _is_range(before[0]) and _is_range(after[0]):
            return [_extend_range(before[0], after[0])]
        raise SchemaError(
            f"the indexes differ: the file has {_describe_level(before[0])}, the frame {_describe_level(after[0])}"
        )
    if not before:  # the file keeps no index
        if _is_default(after[0]) or not len(_range(after[0])):
            return []
        raise SchemaError(
            f"the file has no index, but the frame has {_describe_level(after[0])}; use index=False or reset_index()"
        )
    if num_rows is not None:
        return [_extend_range(before[0], _level(range(num_rows), None))]
    if _is_default(before[0]):
        return []
    raise SchemaError(f"the file has the index {_describe_level(before[0])}, but the frame was written without one")


def _extend_range(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Append one range to another."""
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
        f"the index of the frame, {_describe_level(after)}, neither continues that of the file, "
        f"{_describe_level(before)}, nor starts over; use index=False or reset_index()"
    )


def _is_range(level: Any) -> bool:
    return isinstance(level, dict) and level.get("kind") == "range"


def _is_default(level: Any) -> bool:
    """Whether a level is the default RangeIndex."""
    return _is_range(level) and level.get("name") is None and (_range(level).start, _range(level).step) == (0, 1)


def _range(level: dict[str, Any]) -> range:
    numbers = [level.get(key) for key in ("start", "stop", "step")]
    if not all(type(number) is int for number in numbers) or not numbers[2]:
        raise SchemaError(f"the index of the file is not a valid range to continue: {level}")
    return range(*numbers)  # type: ignore[arg-type]


def _level(numbers: range, name: Any) -> dict[str, Any]:
    return {"kind": "range", "name": name, "start": numbers.start, "stop": numbers.stop, "step": numbers.step}


def _describe_level(level: Any) -> str:
    if not _is_range(level):
        return f"the column {level!r}"
    name = f", name={level['name']!r}" if level.get("name") is not None else ""
    return f"RangeIndex({level.get('start')}, {level.get('stop')}, {level.get('step')}{name})"


# --- columns ----------------------------------------------------------------------------------------------------


def _extend_columns(before: list[Any], after: list[Any]) -> list[Any]:
    """Merge the entries of columns: the dtype where there were only nulls, the number and codes of categories."""
    by_field = {entry.get("field_name"): entry for entry in after if isinstance(entry, dict)}
    return [
        _extend_column(entry, by_field.get(entry.get("field_name"))) if isinstance(entry, dict) else entry
        for entry in before
    ]


def _extend_column(before: dict[str, Any], after: dict[str, Any] | None) -> dict[str, Any]:
    if after is not None and "empty" in str(before.get("pandas_type")):
        return after  # the rows before have only nulls, which tell no dtype
    if after is None or before.get("pandas_type") != "categorical" or after.get("pandas_type") != "categorical":
        return before
    mine, theirs = before.get("metadata"), after.get("metadata")
    if not isinstance(mine, dict) or not isinstance(theirs, dict) or mine == theirs:
        return before
    if bool(mine.get("ordered")) != bool(theirs.get("ordered")):
        raise SchemaError(
            f"the categories are {_describe_order(mine)} in the file, but {_describe_order(theirs)} in the frame",
            column=str(before.get("field_name")),
        )
    counts = [about.get("num_categories") for about in (mine, theirs)]
    if not all(type(count) is int for count in counts):
        return before
    codes = [entry.get("numpy_type") for entry in (before, after)]
    widest = max(codes, key=_CODE_TYPES.index) if all(code in _CODE_TYPES for code in codes) else codes[0]
    return {**before, "numpy_type": widest, "metadata": {**mine, "num_categories": max(counts)}}  # type: ignore[type-var]


def adopt_columns(metadata: Metadata, known: Metadata, names: Collection[str]) -> dict[str, str | bytes]:
    """Return key-value metadata whose pandas entries of some columns are those of another file, where it has any."""
    ours, theirs = _parse_pandas(metadata), _parse_pandas(known)
    if ours is None or theirs is None:
        return dict(metadata)
    entries = {entry.get("field_name"): entry for entry in _get_list(theirs, "columns") if isinstance(entry, dict)}
    columns = [
        entries.get(name, entry) if isinstance(entry, dict) and (name := entry.get("field_name")) in names else entry
        for entry in _get_list(ours, "columns")
    ]
    return {**metadata, _PANDAS_KEY: json.dumps({**ours, "columns": columns})}


def _describe_order(categorical: dict[str, Any]) -> str:
    return "ordered" if categorical.get("ordered") else "unordered"


# --- ARROW:schema ---------------------------------------------------------------------------------------------------


def _update_arrow_schema(metadata: dict[str, str | bytes]) -> None:
    """Update the copy of the keys in ``ARROW:schema``; pyarrow reads ``pandas`` from there alone if it exists."""
    if _ARROW_KEY in metadata:
        texts = {
            key: text for key, value in metadata.items() if key != _ARROW_KEY and (text := _text(value)) is not None
        }
        value = replace_metadata(metadata[_ARROW_KEY], texts)
        metadata[_ARROW_KEY] = value


def _text(value: str | bytes) -> str | None:
    """Return a value as text; None if it is not UTF-8."""
    try:
        return value if isinstance(value, str) else value.decode()
    except UnicodeDecodeError:
        return None


class ExistingFile:
    """Local Parquet file to append to, locked; `key_value_metadata` leaves out what holds for the existing rows only.

    Raises FileNotFoundError, InvalidFileError, or UnsupportedError for a file that cannot grow.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.path.expanduser(strip_file_scheme(os.fsdecode(path)))
        self._lock = LockedFile(self.name)
        try:
            self._footer, self._footer_start = read_footer(open_source(self._lock.file))
            self.footer = split_footer(self._footer)
            self._check_calendar()
        except BaseException:
            self._lock.close()
            raise
        self.columns = file_columns(self._footer)
        self._file_leaves: list[int | None] = list(range(self._footer.num_leaves))
        self._has_null_levels = False
        self.key_value_metadata: dict[str, str | bytes] = {
            key: _ROW_DEPENDENT_KEYS[key](value) if key in _ROW_DEPENDENT_KEYS else value
            for key, value in self.footer.key_value_metadata.items()
        }

    def _check_calendar(self) -> None:
        """Raise UnsupportedError if appended days or instants would be read in Spark's legacy calendar."""
        for leaf in footer_schema(self._footer):
            if leaf.rebase is not None:
                raise UnsupportedError(
                    "the file is in Spark's legacy calendar, in which appended rows would be read wrongly; "
                    "read it, and write all rows to a new file",
                    column=leaf.name,
                )

    def copy_row_groups(self, sink: Sink) -> None:
        """Copy everything before the footer into a sink: row groups, indexes and Bloom filters."""
        copy_prefix(self._lock.file.fileno(), sink, self._footer_start)

    def check_only_nulls(self, leaves: Mapping[int, SchemaNode]) -> None:
        """Raise SchemaError if leaf columns, by index, have values."""
        for leaf, node in leaves.items():
            index = self._file_leaves[leaf]
            if index is None:
                continue
            facts = self._footer.chunks.read_table(range(len(self._footer.row_group_num_rows)), [index])
            counts, values = facts["null_count"], facts["num_values"]
            if ((counts >= 0) & (counts != values)).any():
                raise SchemaError(
                    "the column has values, though the file says that it has only nulls", column=node.name
                )

    def misfit_dictionaries(self, leaves: Mapping[int, SchemaNode]) -> set[int]:
        """Return the leaf columns, by index, that get booleans, and have dictionaries: pyarrow writes empty ones."""
        misfits = set()
        for leaf, node in leaves.items():
            index = self._file_leaves[leaf]
            if index is not None and node.physical == BOOLEAN:
                chunks = self._footer.chunks.read_table(range(len(self._footer.row_group_num_rows)), [index])
                if (chunks["dictionary_page_offset"] >= 0).any():
                    misfits.add(leaf)
        return misfits

    def read_null_levels(self, levels: NullLevels) -> None:
        """Read the levels of all nested null leaves, once."""
        if self._has_null_levels:
            return
        self._has_null_levels = True
        leaves = leaf_columns([column.node for column in self.columns])
        for number, nulls in groupby(nested_null_leaves(leaves), lambda leaf: leaf.column):
            node, null_leaves = self.columns[number].node, list(nulls)
            first = next(leaf.index for leaf in leaves if leaf.column == number)
            with ReadableFile(self.name) as file:
                for row_group in range(file.num_row_groups):
                    rows = file.read([node.name], row_groups=[row_group]).reset_index()
                    values = nested_column(node.name, rows[node.name].array, node).read_leaves(0, len(rows))
                    for leaf in null_leaves:
                        each = values[leaf.index - first]
                        if each.definition_levels is not None:
                            levels.add(leaf.index, row_group, each.definition_levels, each.repetition_levels)

    def retype_leaves(self, leaves: Mapping[int, SchemaNode], columns: Sequence[UserColumn]) -> None:
        """Replace leaf columns by other nodes, those of `columns`, in the footer and in ``ARROW:schema``."""
        self.footer = self.footer.retype_leaves(leaves)
        self._file_leaves = [
            leaf
            for index, before in enumerate(self._file_leaves)
            for leaf in ([None] * len(leaf_columns([leaves[index]])) if index in leaves else [before])
        ]
        self.replace_arrow_schema(columns)

    def replace_arrow_schema(self, columns: Sequence[UserColumn]) -> None:
        """Replace ``ARROW:schema``, if the file has it, by that of other columns."""
        if _ARROW_KEY in self.key_value_metadata:
            texts = {key: text for key, value in self.key_value_metadata.items() if (text := _text(value)) is not None}
            texts.pop(_ARROW_KEY, None)
            value = arrow_schema_value([column.field for column in columns], texts)
            self.key_value_metadata[_ARROW_KEY] = value.encode()

    def column_orders(self, columns: Sequence[SchemaNode]) -> list[ColumnOrder]:
        """Return the column order of each leaf; NO_ORDER, hence no bounds, where the footer has none that we write."""
        names, by_type = self.footer.column_orders, leaf_orders(columns)
        if names is None or len(names) != len(by_type):
            return [NO_ORDER] * len(by_type)
        found = leaf_orders(columns, [_COLUMN_ORDERS.get(name, "type") for name in names])
        return [order if name in _COLUMN_ORDERS else NO_ORDER for name, order in zip(names, found, strict=True)]

    def extend_key_values(self, appended: Mapping[str, str | bytes], num_rows: int) -> dict[str, str | bytes]:
        """Merge the keys of an appended frame of `num_rows` rows into the file's, and return them."""
        self.key_value_metadata = extend_key_values(self.key_value_metadata, appended, num_rows)
        return self.key_value_metadata

    def check_unchanged(self) -> None:
        """Raise OSError if the file was changed by someone else."""
        self._lock.check_unchanged()

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()


def open_existing(path: PathOrBuffer | None, storage_options: StorageOptions, filesystem: Any) -> ExistingFile | None:
    """Open the file to append to; None if it does not exist yet."""
    name = os.fsdecode(path) if isinstance(path, (str, os.PathLike)) else None
    if name is None or is_url(name) or storage_options or filesystem is not None:
        raise ValueError("append=True needs the path of a local file; rewrite other files instead")
    with error_context(file=name):
        try:
            return ExistingFile(name)
        except FileNotFoundError:
            return None
