"""Salvage a file with a sound footer: rewrite the undamaged rows, or keep undamaged row groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from numparq.api.write import to_parquet
from numparq.errors import DecryptionError, InvalidFileError, ParquetError, SchemaError
from numparq.file.readable_file import ReadableFile
from numparq.file.writer import ParquetWriter
from numparq.format.footer.file_metadata import Footer
from numparq.format.footer.rewrite import split_footer
from numparq.format.key_values.arrow import pyarrow_schema
from numparq.format.key_values.spark import drop_calendar
from numparq.format.schema import REQUIRED, Leaf, Schema
from numparq.format.schema_node import SchemaNode
from numparq.from_pandas.frame import shred_frame
from numparq.io.local_source import FileSource
from numparq.kernels.enums import BYTE_ARRAY, CODEC_NAMES
from numparq.plan.row_ranges import RowRanges
from numparq.scan.recovery.losses import LOST_ATTR, Lost, choose_columns
from numparq.tools.verify.deviations import Deviation
from numparq.tools.verify.file import check_file
from numparq.typing import AnyDtypeBackend, Codec
from numparq.util.pluralize import agree_verb, pluralize
from numparq.util.progress import ProgressBar

from .keys import SalvageKeys, WrittenKeys
from .output import SALVAGE_CREATED_BY, CheckedSink, NewFile, RestoredSource, Salvaged, write_salvaged

if TYPE_CHECKING:
    import pandas as pd

_REFUSAL = "numparq cannot keep its row groups"
_KEYS_CHECKED = {"key-arrow-schema": "ARROW:schema", "key-pandas": "pandas"}


def rewrite_rows(
    file: ReadableFile,
    survey: DamageSurvey,
    new_file: NewFile,
    *,
    change_types: bool = False,
) -> Salvaged | None:
    """Write the rows and columns that are intact, and the valid key-value metadata, to a new file.

    Return None, with nothing written, if writing fails or, unless `change_types`, stored types would change.
    """
    saved = Salvaged()
    key_values: dict[str, str | bytes] = {}
    sink: CheckedSink | None = None
    writer: ParquetWriter | None = None
    keys = None if new_file.encryption is None else WrittenKeys(new_file.encryption)
    try:
        variants = _variant_nodes(file.schema, survey.dropped)
        with ProgressBar(new_file.progress, "rewriting") as bar:
            bar.add_total(survey.kept.count)
            for frame in _read_intact_rows(file, survey):
                if writer is None:
                    changed = _changed_columns(frame, variants, file.schema, survey.dropped)
                    if changed and not change_types:
                        return None
                    types = f", with other stored types of {', '.join(map(repr, changed))}" if changed else ""
                    saved.kept.append(f"the rows that are intact in all columns, rewritten{types}")
                    is_same = not changed and not survey.dropped
                    stale = survey.invalid_keys if is_same else [*survey.invalid_keys, "ARROW:schema"]
                    key_values = _valid_key_values(file, stale)
                    sink = CheckedSink(new_file.path, keys)
                    writer = ParquetWriter(
                        cast(Any, sink), compression=_first_codec(file), store_schema=not is_same, encryption=keys
                    )
                shredded = shred_frame(frame, schema=variants)
                writer._write_shredded(replace(shredded, key_value_metadata=key_values))
                key_values = {}  # written with the first frame
                bar.advance(len(frame))
                del frame, shredded  # before the next ones are made
        if writer is not None and sink is not None:
            writer.close()
            saved.num_rows, saved.num_row_groups = sink.num_rows, sink.num_row_groups
            return saved
    except SchemaError:  # `encryption` names a column that is none
        if keys is not None:
            raise
    except (ParquetError, TypeError, ValueError, NotImplementedError, MemoryError):
        pass
    finally:
        if writer is not None:
            writer.abort()  # no effect after close()
    return None


def _valid_key_values(file: ReadableFile, stale: Collection[str]) -> dict[str, str | bytes]:
    """Return the key-value metadata of a file, for the rows as read, without the keys in `stale`."""
    keys = drop_calendar(file.footer.key_value_metadata)
    arrow = keys.get("ARROW:schema")
    if arrow is not None and find_spec("pyarrow") is not None and pyarrow_schema(arrow) is None:
        stale = [*stale, "ARROW:schema"]
    return {key: value for key, value in keys.items() if key not in stale}


def _read_intact_rows(file: ReadableFile, survey: DamageSurvey) -> Iterator[pd.DataFrame]:
    """Yield the intact rows of each row group as a frame; one without rows if there are none."""
    backend: AnyDtypeBackend = "pyarrow" if find_spec("pyarrow") is not None else "numpy"
    columns = [name for name in file.schema.columns if name not in survey.dropped] if survey.dropped else None
    groups = [[group] for group in range(file.num_row_groups) if survey.num_intact_rows(group)]
    for row_groups in groups or [[]]:
        frame = file.read(columns, row_groups=row_groups, on_error="skip", dtype_backend=backend)
        frame.attrs.pop(LOST_ATTR)
        num_rows = sum(map(survey.num_intact_rows, row_groups))
        if len(frame) != num_rows:
            raise InvalidFileError(
                f"{pluralize(num_rows, 'row')} {agree_verb(num_rows, 'are')} intact, but {len(frame):,} could be read"
            )
        if not set(frame.index.names) & set(file.schema.columns):
            frame = frame.reset_index(drop=True)
        yield frame
        del frame


def _variant_nodes(schema: Schema, dropped: Collection[str]) -> dict[str, SchemaNode]:
    """Return the schema nodes of the columns with VARIANTs, except those in `dropped`: a frame has these as structs."""
    kept = [position for position, name in enumerate(schema.columns) if name not in dropped]
    nodes = [_schema_node(schema, schema.column_element(position)) for position in kept]
    return {node.name: node for node in nodes if _has_variant(node)}


def _schema_node(schema: Schema, number: int) -> SchemaNode:
    """Return the schema node of a schema element, its VARIANTs not shredded."""
    element = schema.schema_element(number)
    field_id = schema.field_id(number)
    if element.leaf is not None:
        leaf = schema.leaf(element.leaf)
        stored = leaf.physical, leaf.type_length or 0, leaf.logical
        return SchemaNode(element.name, element.repetition, *stored, field_id=field_id)
    children = tuple(_schema_node(schema, child) for child in element.children)
    if element.logical is not None and element.logical.kind == "VARIANT" and _is_variant(children):
        children = tuple(SchemaNode(name, REQUIRED, BYTE_ARRAY) for name in ("metadata", "value"))
    return SchemaNode(element.name, element.repetition, logical=element.logical, children=children, field_id=field_id)


def _has_variant(node: SchemaNode) -> bool:
    is_variant = node.logical is not None and node.logical.kind == "VARIANT"
    return (is_variant and _is_variant(node.children)) or any(map(_has_variant, node.children))


def _is_variant(children: Sequence[SchemaNode]) -> bool:
    """Whether a group has the fields of a VARIANT (VariantShredding.md)."""
    physical = {child.name: child.physical for child in children}
    stored = [physical.get("metadata"), physical.get("value", BYTE_ARRAY)]
    return stored == [BYTE_ARRAY] * 2 and len(physical) > 1 and physical.keys() <= {"metadata", "value", "typed_value"}


def _changed_columns(
    frame: pd.DataFrame, variants: dict[str, SchemaNode], schema: Schema, dropped: Collection[str]
) -> list[str]:
    """Return the columns, except those in `dropped`, whose stored types change when the frame is written."""
    sample = to_parquet(frame[:1], schema=variants)
    assert sample is not None
    with ReadableFile(sample) as file:
        new = _column_types(file.schema)
    return [name for name, types in _column_types(schema).items() if name not in dropped and new.get(name) != types]


def _column_types(schema: Schema) -> dict[str, list[tuple[Any, ...]]]:
    """Return what must agree in both files for the leaves of each column."""
    types: dict[str, list[tuple[Any, ...]]] = {}
    for leaf in readable_leaves(schema):
        levels = leaf.max_definition_level, leaf.max_repetition_level
        types.setdefault(leaf.path[0], []).append((leaf.path, leaf.physical, leaf.type_length, leaf.logical, *levels))
    return types


def _first_codec(file: ReadableFile) -> Codec:
    """Return the codec of the first column chunk, or ZSTD if there is none, or numparq cannot write it."""
    name = "ZSTD"
    with suppress(InvalidFileError, DecryptionError):
        if not (file.num_row_groups and file.footer.num_leaves):
            return "zstd"
        codec = int(file.footer.chunks.read_table([0], [0])["codec"][0, 0])
        name = CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else name
    codec_names = {"UNCOMPRESSED": "none", "LZO": "zstd", "LZ4": "lz4", "LZ4_RAW": "lz4"}
    return cast(Codec, codec_names.get(name, name.lower()))


def _describe_loss(loss: Any) -> str:
    rows = "" if loss.rows is None else f"rows {loss.rows[0]:,} to {loss.rows[1] - 1:,}"
    column = "" if loss.column is None else f"column {loss.column!r}"
    return f"{' of '.join(filter(None, (rows, column)))}: {loss.reason}"


def salvage_damaged_pages(source: FileSource, out: Any, keys: SalvageKeys, progress: bool = False) -> Salvaged:
    """Salvage a file with a readable footer: copy it if it is sound, else keep what ``on_error="skip"`` reads.

    Raise InvalidFileError if nothing is intact.
    """
    report = check_file(source.name, decryption=keys.decryption, progress=progress)
    errors = [one for one in report.deviations if one.severity == "error" and one.check != "magic-head"]
    saved = _keep_intact_rows(source, out, errors, keys, progress)
    if saved is None:
        reason = (
            f"all rows can be read, but not rewritten, and `numparq verify` reports: {errors[0].message}"
            if errors
            else "its footer and its pages are sound"
        )
        saved = Salvaged(report.num_rows, report.num_row_groups, [f"the whole file: {reason}"])
        write_salvaged(source, out, source.size, b"")
    return saved


def _keep_intact_rows(
    source: FileSource, out: Any, errors: list[Deviation], keys: SalvageKeys, progress: bool
) -> Salvaged | None:
    """Write what ``on_error="skip"`` reads to a new file; raise InvalidFileError if nothing is intact.

    Return None if nothing is lost and a copy is as good: the file is sound, or cannot be rewritten.
    """
    with ReadableFile(RestoredSource(source.name), decryption=keys.decryption) as file:
        _check_is_salvageable(file.footer)
        must_rewrite, new_file = keys.must_rewrite(file.encryption), NewFile(out, keys.encryption, progress)
        survey = survey_damage(file)
        if not survey.losses and not errors and not must_rewrite:
            return None
        is_nothing_left = len(survey.dropped) == len(file.schema.columns) or (
            bool(survey.starts[-1]) and not survey.kept
        )
        if survey.losses and is_nothing_left:
            raise InvalidFileError(f"every row of every column is lost: {_describe_loss(survey.losses[0])}")
        survey.invalid_keys = [_KEYS_CHECKED[one.check] for one in errors if one.check in _KEYS_CHECKED]
        saved = (
            rewrite_rows(file, survey, new_file)
            or (_keep_row_groups(source, file, out, survey) if survey.confines(errors) and not must_rewrite else None)
            or rewrite_rows(file, survey, new_file, change_types=True)
            or (_keep_row_groups(source, file, out, survey) if survey.losses and not must_rewrite else None)
        )
    if saved is None and (survey.losses or must_rewrite):
        cause = f": {_describe_loss(survey.losses[0])}" if survey.losses else ""
        raise InvalidFileError(f"the intact rows of the file cannot be written to a new one{cause}")
    if saved is not None:
        saved.lost += [_describe_loss(loss) for loss in survey.losses]
        saved.lost += [
            f"column {name!r}: no row of it is intact where the other columns are" for name in survey.dropped
        ]
    return saved


def _check_is_salvageable(footer: Footer) -> None:
    """Raise InvalidFileError for a file whose column chunks lie in other files."""
    row_groups, columns = range(len(footer.row_group_num_rows)), range(footer.num_leaves)
    names: list[str] = []
    with suppress(InvalidFileError, DecryptionError):  # a damaged chunk
        external = np.argwhere(footer.chunks.read_table(row_groups, columns)["has_file_path"])
        names = list(filter(None, footer.chunks.read_texts("file_path", *external.T.tolist())))
    if names:
        raise InvalidFileError(
            f"the file holds no data, only the metadata of column chunks in other files, such as {names[0]!r}; "
            "salvage those files"
        )


def _keep_row_groups(source: FileSource, file: ReadableFile, out: Any, survey: DamageSurvey) -> Salvaged | None:
    """Copy the file and write a new footer with only the row groups that lost nothing.

    Return None, with nothing written, if this would lose more than `survey` does.
    """
    num_rows = file.footer.row_group_num_rows
    kept = [number for number in range(len(num_rows)) if survey.num_intact_rows(number)]
    if survey.dropped or any(survey.num_intact_rows(number) < num_rows[number] for number in kept):
        return None
    saved = Salvaged(int(num_rows[kept].sum()), len(kept), [f"row groups {_format_ordinals(kept)}, unchanged"])
    made = split_footer(file.footer, _REFUSAL).encode(
        _with_new_ordinals(file.footer, kept), saved.num_rows, {}, SALVAGE_CREATED_BY
    )
    write_salvaged(source, out, file.footer_start, made)
    return saved


def _with_new_ordinals(footer: Footer, kept: list[int]) -> list[Any]:
    """Return the structs of the row groups in `kept`; re-encode those whose ordinal changes."""
    structs: list[Any] = list(split_footer(footer, _REFUSAL).row_groups)
    for place, number in enumerate(kept):
        if place != number and footer.record.row_groups[number].ordinal is not None:
            structs[number] = footer.record.row_groups[number].to_dict() | {"ordinal": place}
    return [structs[number] for number in kept]


def _format_ordinals(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return shown if len(numbers) <= 10 else f"{shown} and {len(numbers) - 10} more"


@dataclass
class DamageSurvey:
    """Rows and columns of a file that ``on_error="skip"`` returns, and its losses.

    Attributes
    ----------
    losses : list of Lost
        All losses, as a read of each row group reports them.
    dropped : set of str
        Lost columns.
    kept : RowRanges
        Rows, counted over the whole file, that are intact in all other columns.
    starts : list of int
        First row of each row group, and the number of rows.
    invalid_keys : list of str
        Keys of the key-value metadata whose values are invalid, by `verify`.
    """

    losses: list[Lost]
    dropped: set[str]
    kept: RowRanges
    starts: list[int]
    invalid_keys: list[str] = field(default_factory=list)

    def num_intact_rows(self, row_group: int) -> int:
        """Return the number of rows kept of a row group."""
        return self.kept.clip(*self.starts[row_group : row_group + 2]).count

    def confines(self, errors: Sequence[Deviation]) -> bool:
        """Whether row groups are lost, and all errors that `verify` finds are in these."""
        groups = [one.row_group for one in errors]
        return bool(self.losses) and all(group is not None and not self.num_intact_rows(group) for group in groups)


def readable_leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the leaf columns whose schema elements are valid."""
    for index in range(schema.num_leaves):
        with suppress(InvalidFileError):
            yield schema.leaf(index)


def survey_damage(file: ReadableFile) -> DamageSurvey:
    """Read each row group, skipping damage, and choose rows and columns as a read of the whole file does."""
    columns = list(file.schema.columns)
    leaf_columns = {leaf.name: leaf.path[0] for leaf in readable_leaves(file.schema)}
    starts = [0, *np.cumsum(file.footer.row_group_num_rows).tolist()]
    losses: list[Lost] = []
    dropped: set[str] = set()
    lost_rows: dict[str, list[tuple[int, int]]] = {}
    for row_groups in [[number] for number in range(file.num_row_groups)] or [[]]:
        for loss in file.read(row_groups=row_groups, on_error="skip").attrs[LOST_ATTR]:
            losses.append(loss)
            name = leaf_columns.get(loss.column, loss.column)
            if loss.rows is None:
                dropped.add(name)
            else:
                lost_rows.setdefault(name, []).append(loss.rows)
    left = [name for name in columns if name not in dropped]
    unreadable, kept = choose_columns([RowRanges(lost_rows.get(name, ())) for name in left], RowRanges.all(starts[-1]))
    dropped.update(left[position] for position in unreadable)
    return DamageSurvey(losses, dropped, kept, starts)
