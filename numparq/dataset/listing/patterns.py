"""Path patterns: glob wildcards, and the hidden names that are never data."""

from __future__ import annotations

import re
from fnmatch import translate

METADATA_FILE, COMMON_METADATA_FILE = "_metadata", "_common_metadata"
# Directory value of the null partition, as Hive writes it.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
# Object stores have no directories: Hadoop writes an empty object with this suffix instead.
_HADOOP_FOLDER_SUFFIX = "_$folder$"

_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")
_MAGIC = re.compile(r"[*?\[]|" + _BRACES.pattern)
_NOTHING: frozenset[int] = frozenset()


def is_hidden(name: str, is_directory: bool) -> bool:
    """Whether a file or directory name is hidden: it begins with "." or "_", or ends with ``_$folder$``.

    Directories ``_x=1`` and the null partition are not, as in Spark; pyarrow hides them, which loses rows.
    """
    first = name[:1]
    if first == "_":
        return not (is_directory and ("=" in name or name == HIVE_NULL))
    return first == "." or name.endswith(_HADOOP_FOLDER_SUFFIX)


def is_hidden_path(path: str) -> bool:
    """Whether any segment of a relative file path is hidden."""
    if "/." not in path and "/_" not in path and path[:1] not in "._" and not path.endswith(_HADOOP_FOLDER_SUFFIX):
        return False
    *directories, name = path.split("/")
    return is_hidden(name, False) or any(is_hidden(directory, True) for directory in directories)


def has_wildcard(path: str) -> bool:
    """Whether a path contains a glob wildcard, or braces such as ``{a,b}``."""
    return _MAGIC.search(path) is not None


def expand_braces(pattern: str) -> list[str]:
    """Return the distinct patterns that a pattern with ``{a,b}`` stands for, as in a shell; braces may be nested."""
    found = _BRACES.search(pattern)
    if found is None:
        return [pattern]
    start, end = pattern[: found.start()], pattern[found.end() :]
    inner = (expand_braces(start + word + end) for word in found[1].split(","))
    return list(dict.fromkeys(one for several in inner for one in several))


class GlobPattern:
    """Glob pattern without braces, matched name by name from a directory down; without parts, it matches everything.

    The state is a frozenset of the ordinals of the parts that may come next: `start` at the top, then what `step`
    returns. The ordinal after the last part means matched: a matched directory brings all that is not hidden in it.
    A wildcard matches a hidden name only if its part begins with the same "." or "_".
    """

    def __init__(self, parts: list[str]) -> None:
        # First character and matcher of each part; None for "**".
        self._parts = [None if part == "**" else (part[:1], re.compile(translate(part)).match) for part in parts]
        self._matched = frozenset((len(parts),))
        self.start = self._with_skipped({0})

    @classmethod
    def split_base(cls, path: str) -> tuple[str, GlobPattern]:
        """Split a path at its first segment with a wildcard: return the base directory, and the pattern of the rest.

        An empty base is the current directory.
        """
        segments = path.split("/")
        first = next(place for place, segment in enumerate(segments) if has_wildcard(segment))
        base = "/".join(segments[:first]) or ("/" if first else "")
        return base, cls([segment for segment in segments[first:] if segment])

    def matches_rest(self, states: frozenset[int]) -> bool:
        """Whether everything below that is not hidden matches."""
        return states == self._matched

    def step(self, states: frozenset[int], name: str, is_directory: bool) -> frozenset[int]:
        """Return the states after a name; empty if neither it nor anything below it can match."""
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
        """Whether the path that led to these states matches."""
        return len(self._parts) in states

    def matches(self, path: str) -> bool:
        """Whether the file with this relative path matches, or a directory above it."""
        *directories, name = path.split("/")
        states = self.start
        for directory in directories:
            states = self.step(states, directory, True)
        return self.is_match(self.step(states, name, False))

    def _with_skipped(self, states: set[int]) -> frozenset[int]:
        """Add the states after each ``**``, which may match no directory."""
        for state in range(len(self._parts)):
            if state in states and self._parts[state] is None:
                states.add(state + 1)
        return frozenset(states)
