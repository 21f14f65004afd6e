"""What a write changes of a dataset that is there already: by ``existing_data_behavior``, as pyarrow names it."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from ...errors import InvalidFileError, SchemaError
from ..entries import Entry, Found
from ..names import COMMON_METADATA, METADATA, segment_keys
from .division import Values

__all__ = ["BEHAVIORS", "MODES", "Changes", "Gone", "Replaced", "changes_of", "check_empty"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a commit does besides adding files.

    Parameters
    ----------
    gone : list of str
        Paths of files that go.
    over : dict of str to bytes
        Files that are new, or replace those of the same name: places in the dataset, and contents.
    """

    gone: list[str] = field(default_factory=list)
    over: dict[str, bytes] = field(default_factory=dict)


Gone = Callable[[str, list[Entry], Sequence[str], Collection[Values]], list[str]]


def _nothing(base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
    return []


def _none_there(base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
    check_empty(base, files)
    return []


def _matching(base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
    """Give the files of the partitions that were written: all, where there are no partitions."""
    start = _start(base)
    gone = []
    for entry in files:
        found = _partition(entry.path[start:])
        if tuple(found.get(key, "") for key in keys) in written:
            gone.append(entry.path)
    return gone


def _none_at_all(base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
    check_empty(base, files, _MODE_SAYS)
    return []


def _all(base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
    return [entry.path for entry in files]


BEHAVIORS: dict[str, Gone] = {"error": _none_there, "overwrite_or_ignore": _nothing, "delete_matching": _matching}

# The same as those who write with several processes say it.
MODES: dict[str, Gone] = {"append": _nothing, "error": _none_at_all, "overwrite": _all, "delete_matching": _matching}


@dataclass(frozen=True, slots=True)
class Replaced:
    """What goes are these files, as they were at a time before, and nothing goes if one of them is another by now.

    Parameters
    ----------
    versions : dict of str to (str or None)
        By their paths, what was known of each.
    version_of : callable
        Says the same of a file now.
    """

    versions: dict[str, str | None]
    version_of: Callable[[Entry], str | None]

    def __call__(self, base: str, files: list[Entry], keys: Sequence[str], written: Collection[Values]) -> list[str]:
        """Give their paths."""
        there = {entry.path: entry for entry in files}
        for path, version in self.versions.items():
            if path not in there:
                raise InvalidFileError("a file that is to be replaced is not there any more; nothing was changed",
                                       file=path)  # fmt: skip
            if self.version_of(there[path]) != version:
                raise InvalidFileError("a file that is to be replaced was changed meanwhile; nothing was changed",
                                       file=path)  # fmt: skip
        return list(self.versions)


_BEHAVIOR_SAYS = (
    "existing_data_behavior says what is to become of them: 'overwrite_or_ignore' (or append=True) adds to them, "
    "'delete_matching' replaces partitions"
)
_MODE_SAYS = "the mode says what is to become of them: append adds to them, overwrite replaces them"


def check_empty(base: str, files: Sequence[Entry], advice: str = _BEHAVIOR_SAYS) -> None:
    """Raise FileExistsError when a dataset has files; the message says what to do."""
    if files:
        raise FileExistsError(errno.EEXIST, f"the dataset has files already; {advice}", base)


def changes_of(
    gone_of: Gone, base: str, found: Found, keys: Sequence[str], written: Collection[Values],
    kinds: Mapping[str, str] | None = None,
) -> Changes:  # fmt: skip
    """Say what is to be changed of what is there.

    Parameters
    ----------
    gone_of : callable
        One of `BEHAVIORS` or `MODES`, or a `Replaced`.
    base : str
        The dataset's folder.
    found : Found
        What it has.
    keys : sequence of str
        The names of the partition columns.
    written : collection of tuple of (str or None)
        The partitions that there are rows for.
    kinds : mapping of str to str, optional
        Of partition columns, as far as they are known, the kinds of types that their values are of.

    Raises
    ------
    FileExistsError
        When there are files, and there may be none.
    SchemaError
        When those that stay are partitioned by other columns.
    """
    gone = gone_of(base, found.files, keys, _spelled_otherwise(base, found.files, keys, written, kinds or {}))
    going = set(gone)
    if written:
        _check_keys(base, [entry for entry in found.files if entry.path not in going], keys)
    # Both would speak of other files than there are, or of columns that these do not have.
    start = _start(base)
    stale = [entry.path for entry in found.hidden if entry.path[start:] in (METADATA, COMMON_METADATA)]
    if not gone and not written:
        return Changes()
    return Changes(gone + stale)


def _check_keys(base: str, staying: list[Entry], keys: Sequence[str]) -> None:
    """Refuse to put files beside others that are partitioned by other columns: no reader reads them together."""
    start = _start(base)
    for entry in staying:
        theirs = tuple(_partition(entry.path[start:]))
        if theirs != tuple(keys):
            shown = [", ".join(map(repr, names)) or "nothing" for names in (theirs, keys)]
            raise SchemaError(f"the dataset is partitioned by {shown[0]}, and the frame by {shown[1]}", file=entry.path)


# What makes equal texts of equal values, of kinds whose values can be spelled in several ways.
_SPELLED: dict[str, tuple[re.Pattern[str], Callable[[str], str]]] = {
    "int": (re.compile(r"-?[0-9]{1,40}"), lambda text: str(int(text))),
    "float": (re.compile(r"[-+]?([0-9]*\.?[0-9]+|[0-9]+\.)([eE][-+]?[0-9]+)?|-?(inf|infinity|nan)", re.IGNORECASE),
              lambda text: repr(float(text))),
    "decimal": (re.compile(r"-?[0-9]{1,80}(\.[0-9]{0,80})?"), lambda text: str(Fraction(text))),
    "bool": (re.compile("true|false", re.IGNORECASE), str.lower),
}  # fmt: skip


def _spelled_otherwise(
    base: str, files: Sequence[Entry], keys: Sequence[str], written: Collection[Values], kinds: Mapping[str, str]
) -> Collection[Values]:
    """Give partitions, and those that are there and have the same values, as ``month=01`` where 1 is written."""
    if not any(kinds.get(key) in _SPELLED for key in keys):
        return written
    start = _start(base)
    there = set()
    for entry in files:
        found = _partition(entry.path[start:])
        there.add(tuple(found.get(key, "") for key in keys))

    def meant(values: Values) -> Values:
        return tuple(_meant(kinds.get(key, ""), text) for key, text in zip(keys, values, strict=True))

    wanted = set(map(meant, written))
    return {*written, *(values for values in there if meant(values) in wanted)}


def _meant(kind: str, text: str | None) -> str | None:
    if text is None or kind not in _SPELLED:
        return text
    pattern, make = _SPELLED[kind]
    return make(text) if pattern.fullmatch(text) else text


def _partition(name: str) -> dict[str, str | None]:
    return segment_keys(name.rpartition("/")[0])


def _start(base: str) -> int:
    return len(base.rstrip("/")) + 1
