"""List local directories by name alone, and identify a local file's version."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence

from numparq.util.regular_file import open_regular

from .files import DirectoryListing, FileEntry
from .patterns import GlobPattern, has_wildcard, is_hidden

_EVERYTHING = GlobPattern([])


def list_local(base: str, pattern: GlobPattern = _EVERYTHING) -> DirectoryListing:
    """List the files below a directory that match a pattern, without sizes; an empty ``base`` is the current directory.

    Links are followed unless they form a loop; a broken link is listed, so that opening it raises.
    """
    paths: list[str] = []
    hidden: list[FileEntry] = []
    start = base if not base or base.endswith("/") else base + "/"
    waiting = [(start, pattern.start)]
    while waiting:
        directory, states = waiting.pop()
        takes_all = pattern.matches_rest(states)
        with os.scandir(directory or ".") as entries:
            for entry in entries:
                name = entry.name
                # Fast path for nearly all files: the name cannot be hidden.
                if takes_all and name[0] not in "._" and name[-1] != "$" and entry.is_file():
                    paths.append(directory + name)
                    continue
                is_directory = _is_directory(entry)
                if is_directory is None:
                    continue
                path = directory + name
                after = pattern.step(states, name, is_directory)
                if not after:
                    if is_hidden(name, is_directory) and pattern.is_match(states):
                        hidden.append(FileEntry(path + "/" if is_directory else path))
                elif not is_directory:
                    if pattern.is_match(after):
                        paths.append(path)
                elif not entry.is_symlink() or not _is_loop(path, start):
                    waiting.append((path + "/", after))
    paths.sort()
    return DirectoryListing(paths, hidden=hidden)


def _is_directory(entry: os.DirEntry[str]) -> bool | None:
    """Whether an entry is a directory; None if it is neither file nor directory."""
    if entry.is_dir():
        return True
    is_file = entry.is_file() or (entry.is_symlink() and not os.path.exists(entry.path))
    return False if is_file else None


def _is_loop(path: str, start: str) -> bool:
    """Whether a link leads to one of the directories that contain it."""
    target = os.stat(path)
    return any(os.path.samestat(os.stat(above), target) for above in _above(path, start))


def _above(path: str, start: str) -> Iterator[str]:
    """Yield the directories above a path, innermost first: as walked from ``start``, then by real path to the root."""
    above = path.rpartition("/")[0]
    while len(above) > len(start):
        yield above
        above = above.rpartition("/")[0]
    real = os.path.realpath(start)
    while True:
        yield real
        parent = os.path.dirname(real)
        if parent == real:
            return
        real = parent


def file_version(path: str) -> str | None:
    """Return a token of a file's size and modification time; None if the file does not exist."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return f"{found.st_size}-{found.st_mtime_ns}"


class LocalLister:
    """Looks up local files; local counterpart of `RemoteLister`."""

    def stat(self, path: str) -> FileEntry | None:
        """Return the entry of a file; None if the path is a directory."""
        status = os.stat(path)
        return None if stat.S_ISDIR(status.st_mode) else FileEntry(path, status.st_size)

    def is_pattern(self, path: str) -> bool:
        """Whether a path that no file has may be a glob."""
        return has_wildcard(path)

    def stat_all(self, paths: Sequence[str]) -> list[FileEntry | None]:
        """Return the entries of several paths."""
        return [self.stat(path) for path in paths]

    def existing_directories(self, paths: Sequence[str]) -> list[str]:
        """Return the paths at which there is a directory."""
        return [path for path in paths if os.path.isdir(path)]

    def names(self, folder: str) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(folder)

    def read(self, path: str) -> bytes:
        """Read a file."""
        with open(path, "rb", opener=open_regular) as file:
            return file.read()

    def spellings(self, folder: str) -> tuple[str, ...]:
        """Return the absolute path of a directory, and its path without links if that differs."""
        paths = os.path.abspath(folder), os.path.realpath(folder)
        return tuple(dict.fromkeys(path.replace(os.sep, "/") for path in paths))
