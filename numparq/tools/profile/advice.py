"""Advice on the layout of a dataset, with the figures that justify it; the most important comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from numparq.util.format_numbers import format_decimal_bytes, format_percent
from numparq.util.pluralize import pluralize

from .figures import ColumnProfile
from .profile import Profile

_SMALL_FILE, _MIN_FILES = 32 << 20, 8
_LARGE_GROUP = 1 << 30
_FEW_ROWS = 10_000
_BAD_LOOKUP, _GOOD_LOOKUP = 0.5, 0.2  # share of row groups that a look-up reads
_FEW_VALUES = 10  # that occur in nearly every row group, whatever the order
_MAX_COLUMNS = 3
_UNCOMPRESSED, _WORTH = 1 << 20, 0.05
# From so many files on, footers cost more than the look-up; an index that leaves more files is not worth its bytes.
_MANY_FILES, _MAX_FILE_SHARE, _MAX_LIST_LENGTH = 100, 0.1, 200
# Columns that are most likely looked up: times, then names that end like a key, then numbers and strings.
_TIMES, _NUMBERS = ("TIMESTAMP", "DATE", "int96"), ("INTEGER", "int32", "int64", "STRING", "UUID")
_KEY_ENDINGS = ("id", "key", "uuid", "code", "number", "no")
_TIME_ENDINGS = ("ts", "time", "date")


def advise(profile: Profile) -> Iterator[str]:
    """Yield advice on a dataset's layout, one sentence each, the most important first."""
    for rule in _RULES:
        yield from rule(profile)


def _damage(profile: Profile) -> Iterator[str]:
    if profile.damaged_files:
        yield (
            f"damaged: {pluralize(profile.damaged_files, 'file')} could not be read in full; numparq verify "
            "reports the damage, numparq salvage saves the rest"
        )


def _small_files(profile: Profile) -> Iterator[str]:
    mean = profile.size / max(profile.num_files, 1)
    if profile.num_files >= _MIN_FILES and mean < _SMALL_FILE:
        yield (
            f"small files: {pluralize(profile.num_files, 'file')} of {format_decimal_bytes(mean)} on average -> "
            f"numparq spark optimize {profile.path}"
        )


def _row_groups(profile: Profile) -> Iterator[str]:
    if not profile.num_row_groups:
        return
    mean = profile.compressed / profile.num_row_groups
    rows = profile.num_rows / profile.num_row_groups
    if mean > _LARGE_GROUP:
        yield f"large row groups: {format_decimal_bytes(mean)} on average; a reader may hold a whole one in memory"
    if rows < _FEW_ROWS and profile.num_row_groups > 2 * profile.num_files:
        yield (
            f"small row groups: {pluralize(round(rows), 'row')} on average; each costs a footer entry and "
            "requests of its own -> write larger ones (row_group_size=)"
        )


def _statistics(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        for bug in list(column.distrusted)[:1]:
            writers = _first_names(profile.writers, "program")
            yield f"statistics of {column.name} are not used ({bug}): written by {writers}"
    bare = [column.name for column in profile.columns if column.chunks and not column.with_statistics]
    if bare:
        yield f"no statistics of {_first_names(bare)}: filters on them prune nothing, in whatever order the rows are"


def _page_indexes(profile: Profile) -> Iterator[str]:
    chunks = sum(column.chunks for column in profile.columns)
    without = chunks - sum(min(column.with_offset_index, column.chunks) for column in profile.columns)
    if without:
        share = "no page index" + (
            "" if without == chunks else f" in {format_percent(without / chunks)} of column chunks"
        )
        yield f"{share}: written by {_first_names(profile.writers, 'program')}; row groups can only be read whole"


def _sorting(profile: Profile) -> Iterator[str]:
    """Advise a sort order if the rows have none: by one column, since only the first column of an order helps."""
    columns = sorted(filter(_is_sortable, profile.columns), key=_lookup_rank)
    bad = [column for column in columns if column.lookup and column.lookup.row_groups >= _BAD_LOOKUP]
    if bad and not any(_is_in_order(column, profile) for column in columns):
        name, share = bad[0].name, format_percent(bad[0].lookup.row_groups)  # type: ignore[union-attr]
        yield f"sort by {name}: a look-up on {name} reads {share} of row groups; bounds overlap"


def _bloom_filters(profile: Profile) -> Iterator[str]:
    names = [
        column.name
        for column in profile.columns
        if _is_sortable(column)
        and not _is_in_order(column, profile)
        and not column.with_bloom
        and column.type.startswith(_NUMBERS)
        and column.name.lower().endswith(_KEY_ENDINGS)
        and (column.distinct or 0) > 0.1 * max(column.num_values, 1)
    ]
    if names and profile.num_files < _MANY_FILES:
        yield f"Bloom filters on {_first_names(names)}: many distinct values in no order"


def _skipping_store(profile: Profile) -> Iterator[str]:
    """Advise a store of indexes if there are many files, and it would leave few of them."""
    if profile.num_files < _MANY_FILES:
        return
    indexes = {column.name: _best_index(column, profile) for column in sorted(profile.columns, key=_lookup_rank)}
    chosen = [f'{index}("{name}")' for name, index in indexes.items() if index][:_MAX_COLUMNS]
    if chosen:
        yield (
            f"data-skipping store: a look-up opens the footers of all {pluralize(profile.num_files, 'file')} -> "
            f"numparq.skipping.Store.build(..., indexes=[{', '.join(chosen)}])"
        )


def _best_index(column: ColumnProfile, profile: Profile) -> str:
    """Return the index by which a look-up opens few files; empty if none does."""
    if column.is_partition or column.is_index or column.is_nested or column.lookup is None:
        return ""
    if column.lookup.files <= _MAX_FILE_SHARE and column.min is not None:
        return "MinMax"
    if column.file_share is None or column.file_share > _MAX_FILE_SHARE or not column.type.startswith(_NUMBERS):
        return ""
    in_file = column.file_share * (column.distinct or 0)
    return "ValueList" if in_file <= _MAX_LIST_LENGTH else "BloomFilter"


def _is_sortable(column: ColumnProfile) -> bool:
    """Whether rows may be sorted by a column: flat, with statistics, no index level, of a type that is looked up."""
    return (
        not (column.is_partition or column.is_index or column.is_nested)
        and column.lookup is not None
        and column.with_statistics == column.chunks
        and not column.distrusted
        and column.type.startswith((*_TIMES, *_NUMBERS, "DECIMAL"))
        and (column.distinct is None or column.distinct > _FEW_VALUES)
    )


def _is_in_order(column: ColumnProfile, profile: Profile) -> bool:
    """Whether a small range reads few row groups by their bounds: a fifth, or one and a half."""
    most = max(_GOOD_LOOKUP, 1.5 / max(profile.num_row_groups, 1))
    return column.small_range is not None and column.small_range.row_groups <= most


def _lookup_rank(column: ColumnProfile) -> tuple[bool, bool, bool, float]:
    name = column.name.lower()
    is_key = name.endswith((*_KEY_ENDINGS, *_TIME_ENDINGS))
    return not column.type.startswith(_TIMES), not is_key, not column.type.startswith(_NUMBERS), -column.share


def _codecs(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        plain = column.codecs.get("UNCOMPRESSED", 0)
        if plain and column.compressed > _UNCOMPRESSED and column.share > _WORTH:
            yield f"{column.name} is stored uncompressed: {format_decimal_bytes(column.compressed)}"


def _types(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        if " or " in column.type or len(column.physical) > 1:
            yield f"{column.name} has several types: {column.type} ({', '.join(column.physical)})"


def _first_names(names: Iterable[str], noun: str = "column") -> str:
    first, others = list(names)[:_MAX_COLUMNS], list(names)[_MAX_COLUMNS:]
    return ", ".join(first) + (f" and {pluralize(len(others), f'more {noun}')}" if others else "")


_RULES: tuple[Callable[[Profile], Iterator[str]], ...] = (
    _damage,
    _statistics,
    _small_files,
    _row_groups,
    _page_indexes,
    _sorting,
    _bloom_filters,
    _skipping_store,
    _codecs,
    _types,
)
