"""Advice on the layout of a dataset, with the figures that justify it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from numparq.util.pluralize import pluralize

from .figures import ColumnProfile
from .profile import Profile
from .render import format_bytes, format_percent

_SMALL_FILE, _MANY_FILES = 32 << 20, 8
_LARGE_GROUP = 1 << 30
_FEW_ROWS = 10_000
_BAD_LOOKUP = 0.5
_MOST_COLUMNS = 3
_UNCOMPRESSED, _WORTH = 1 << 20, 0.05
# Columns that are most likely looked up: times, then names that end like a key, then numbers and strings.
_TIMES, _NUMBERS = ("TIMESTAMP", "DATE", "int96"), ("INTEGER", "int32", "int64", "STRING", "UUID")
_KEY_ENDINGS = ("id", "key", "uuid", "code", "number", "no", "ts", "time", "date")


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
    if profile.num_files >= _MANY_FILES and mean < _SMALL_FILE:
        yield (
            f"small files: {pluralize(profile.num_files, 'file')} of {format_bytes(mean)} on average -> "
            f"numparq spark optimize {profile.path}"
        )


def _row_groups(profile: Profile) -> Iterator[str]:
    if not profile.num_row_groups:
        return
    mean = profile.compressed / profile.num_row_groups
    rows = profile.num_rows / profile.num_row_groups
    if mean > _LARGE_GROUP:
        yield f"large row groups: {format_bytes(mean)} on average; a reader may hold a whole one in memory"
    if rows < _FEW_ROWS and profile.num_row_groups > 2 * profile.num_files:
        yield (
            f"small row groups: {pluralize(round(rows), 'row')} on average; each costs a footer entry and "
            "requests of its own"
        )


def _sorting(profile: Profile) -> Iterator[str]:
    """Advise to sort by columns whose look-ups read most row groups, the likeliest look-ups first."""
    if profile.num_row_groups < 2:
        return
    bad = [column for column in profile.columns if _is_unselective(column)]
    for column in sorted(bad, key=_lookup_rank)[:_MOST_COLUMNS]:
        assert column.lookup is not None
        why = "it has no usable bounds" if column.min is None else "bounds overlap"
        yield (
            f"sort by {column.name}: a look-up on {column.name} reads {format_percent(column.lookup.row_groups)} of "
            f"row groups; {why}"
        )
    if len(bad) > _MOST_COLUMNS:
        yield (
            f"look-ups on {pluralize(len(bad) - _MOST_COLUMNS, 'more column')} read as much; "
            "a sort order helps only its first column"
        )


def _is_unselective(column: ColumnProfile) -> bool:
    if column.lookup is None or column.is_partition or column.is_nested or column.lookup.row_groups < _BAD_LOOKUP:
        return False
    return column.distinct is None or column.distinct > 10  # fewer values occur in nearly every row group


def _lookup_rank(column: ColumnProfile) -> tuple[bool, bool, bool, float]:
    name = column.name.lower()
    is_time = column.type.startswith(_TIMES)
    return not is_time, not name.endswith(_KEY_ENDINGS), not column.type.startswith(_NUMBERS), -column.share


def _bloom_filters(profile: Profile) -> Iterator[str]:
    wanted = [
        column.name
        for column in profile.columns
        if _is_unselective(column)
        and not column.with_bloom
        and column.type.startswith(_NUMBERS)
        and column.name.lower().endswith(_KEY_ENDINGS[:6])
        and (column.distinct or 0) > 0.1 * max(column.num_values, 1)
    ]
    if wanted and profile.num_row_groups > 1:
        yield f"Bloom filters on {', '.join(wanted[:_MOST_COLUMNS])}: many distinct values in no order"


def _page_indexes(profile: Profile) -> Iterator[str]:
    stored = [column for column in profile.columns if column.chunks]
    chunks = sum(column.chunks for column in stored)
    without = chunks - sum(min(column.with_offset_index, column.chunks) for column in stored)
    if without and chunks:
        how_many = (
            "no page index"
            if without == chunks
            else f"no page index in {format_percent(without / chunks)} of column chunks"
        )
        yield f"{how_many}: written by {_writer_names(profile)}; row groups can only be read whole"


def _statistics(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        for bug in list(column.distrusted or ())[:1]:
            yield f"statistics of {column.name} are not used ({bug}): written by {_writer_names(profile)}"
    bare = [column.name for column in profile.columns if column.chunks and not column.with_statistics]
    if bare:
        more = f" and {pluralize(len(bare) - _MOST_COLUMNS, 'more column')}" if len(bare) > _MOST_COLUMNS else ""
        yield f"no statistics of {', '.join(bare[:_MOST_COLUMNS])}{more}: filters on them prune nothing"


def _codecs(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        plain = (column.codecs or {}).get("UNCOMPRESSED", 0)
        if plain and column.compressed > _UNCOMPRESSED and column.share > _WORTH:
            yield f"{column.name} is stored uncompressed: {format_bytes(column.compressed)}"


def _types(profile: Profile) -> Iterator[str]:
    for column in profile.columns:
        if " or " in column.type or len(column.physical) > 1:
            yield f"{column.name} has several types: {column.type} ({', '.join(column.physical)})"


def _writer_names(profile: Profile) -> str:
    names = list(profile.writers)
    return ", ".join(names[:2]) + (f" and {pluralize(len(names) - 2, 'more program')}" if len(names) > 2 else "")


_RULES: tuple[Callable[[Profile], Iterator[str]], ...] = (
    _damage,
    _small_files,
    _sorting,
    _bloom_filters,
    _page_indexes,
    _statistics,
    _row_groups,
    _codecs,
    _types,
)
