"""Path patterns: glob wildcards, and the hidden names that are never data."""

from __future__ import annotations

import re
from fnmatch import translate

__all__ = ["COMMON_METADATA_FILE", "METADATA_FILE", "GlobPattern", "has_wildcard", "is_hidden", "is_hidden_path"]

METADATA_FILE, COMMON_METADATA_FILE = "_metadata", "_common_metadata"
# What stands for a null in the name of a directory, since Hive.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Object stores have no directories: Hadoop puts an empty object in their place, named like this.
_HADOOP_FOLDER_SUFFIX = "_$folder$"

_MAGIC = re.compile(r"[*?\[]")
_NOTHING: frozenset[int] = frozenset()


def is_hidden(name: str, is_directory: bool) -> bool:
    """Say whether a name is of something that is no data, whatever lies in it.

    Parameters
    ----------
    name : str
        Of a file or directory, without what is above it.
    is_directory : bool
        A directory ``_x=1`` is a partition by a column ``_x``, as in Spark, and the null partition is one, whatever
        the column. (pyarrow leaves them out, which loses rows.)

    Returns
    -------
    bool
        True for names that begin with "." or "_", as ``_SUCCESS``, ``_temporary`` and ``.part-0.crc`` do.
    """
    first = name[:1]
    if first == "_":
        return not (is_directory and ("=" in name or name == HIVE_NULL))
    return first == "." or name.endswith(_HADOOP_FOLDER_SUFFIX)


def is_hidden_path(path: str) -> bool:
    """Say whether a part of a relative path is hidden: a directory on the way, or the file itself."""
    if "/." not in path and "/_" not in path and path[:1] not in "._" and not path.endswith(_HADOOP_FOLDER_SUFFIX):
        return False
    *directories, name = path.split("/")
    return is_hidden(name, False) or any(is_hidden(directory, True) for directory in directories)


def has_wildcard(path: str) -> bool:
    """Say whether a path is a pattern, if there is no file of just that name."""
    return _MAGIC.search(path) is not None


class GlobPattern:
    """A pattern, matched name by name on the way down from a directory.

    Parameters
    ----------
    parts : sequence of str
        What is matched below that directory: a part a name. Nothing at all matches everything in it.

    Notes
    -----
    On the way down, one knows which parts of the pattern may come next: a frozenset of their ordinals, `start` at the
    top, and then what `step` gives. The ordinal behind the last one stands for "matched": a directory that is matched
    brings all that is in it, but for what is hidden. A wildcard matches hidden names only where the part itself
    begins with that "." or "_".
    """

    def __init__(self, parts: list[str]) -> None:
        # The first character of a part, and what matches a name with it; of "**" neither.
        self._parts = [None if part == "**" else (part[:1], re.compile(translate(part)).match) for part in parts]
        self._matched = frozenset((len(parts),))
        self.start = self._with_skipped({0})

    @classmethod
    def split(cls, path: str) -> tuple[str, GlobPattern]:
        """Take a path with wildcards apart.

        Parameters
        ----------
        path : str
            With ``/`` between its parts.

        Returns
        -------
        base : str
            The directory that everything it matches is below: the parts in front of the first with a wildcard. Empty
            for the current one.
        pattern : GlobPattern
            Of the parts behind.
        """
        segments = path.split("/")
        first = next(place for place, segment in enumerate(segments) if has_wildcard(segment))
        base = "/".join(segments[:first]) or ("/" if first else "")
        return base, cls([segment for segment in segments[first:] if segment])

    def matches_rest(self, states: frozenset[int]) -> bool:
        """Say whether whatever comes behind that which `step` gave these for is matched, unless its name is hidden."""
        return states == self._matched

    def step(self, states: frozenset[int], name: str, is_directory: bool) -> frozenset[int]:
        """Give what may come behind a name; nothing where neither it nor anything in it matches."""
        hidden = is_hidden(name, is_directory)
        if self.matches_rest(states):
            return _NOTHING if hidden else states
        found: set[int] = set()
        for state in states:
            part = self._parts[state] if state < len(self._parts) else None
            if part is None:
                found |= _NOTHING if hidden else {state}
            elif (not hidden or part[0] == name[:1]) and part[1](name):
                found.add(state + 1)
        return self._with_skipped(found) if is_directory else frozenset(found)

    def is_match(self, states: frozenset[int]) -> bool:
        """Say whether that which `step` gave these for is matched."""
        return len(self._parts) in states

    def matches(self, path: str) -> bool:
        """Say whether a file is matched, or a directory that it is in.

        Parameters
        ----------
        path : str
            Relative, with ``/`` between its parts.
        """
        *directories, name = path.split("/")
        states = self.start
        for directory in directories:
            states = self.step(states, directory, True)
        return self.is_match(self.step(states, name, False))

    def _with_skipped(self, states: set[int]) -> frozenset[int]:
        """Add what comes behind each ``**``, which may stand for no directory."""
        for state in range(len(self._parts)):
            if state in states and self._parts[state] is None:
                states.add(state + 1)
        return frozenset(states)
