"""The log of a Spark streaming sink (`FileStreamSinkLog`): the files that its finished batches wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from numparq.errors import InvalidFileError

from .local import LocalLister

if TYPE_CHECKING:
    from .remote import RemoteLister

    Lister: TypeAlias = LocalLister | RemoteLister

_LOG_FOLDER = "_spark_metadata"
_BATCH = re.compile(r"([0-9]{1,18})(\.compact)?")
_VERSION = "v1"
_TRIES = 3
_ADD, _DELETE = "add", "delete"
_ADVICE = 'restore it, or pass table_format="parquet" to read all files as they are'


def select_sink_files(
    root: str, files: Collection[str], paths: Iterable[str], base: str | None, lister: Lister
) -> list[str]:
    """Return the paths, sorted, that the log of the sink in `root` names, and those outside the sink.

    `files` are by `read_sink_log`. All files in ``base``, the listed directory, come back, also those that the listing
    was too early for. Raises FileNotFoundError if one does not exist.
    """
    inside: dict[str, str | None] = {}
    selected, missing = [], set(files) if base is not None else set()
    for path in paths:
        folder, name = path[: path.rfind("/") + 1], path[path.rfind("/") + 1 :]
        if folder not in inside:
            inside[folder] = _relative(lister.spellings(folder), root)
        start = inside[folder]
        if start is None or start + name in files:
            selected.append(path)
            missing.discard(f"{start}{name}")
    if base is None or not missing:
        return selected
    spellings = lister.spellings(base)
    below = _relative(spellings, root)
    if below is None:  # the sink is inside the listed directory
        start, below = f"{base.rstrip('/')}/{_relative([root], spellings[0])}", ""
    else:
        start = f"{base.rstrip('/')}/"
    added = [start + name[len(below) :] for name in missing if name.startswith(below)]
    lister.stat_all(added)
    return sorted([*selected, *added])


def _relative(spellings: Iterable[str], root: str) -> str | None:
    """Return a directory's path below a root, with a final "/" if not empty; None if it is outside."""
    start = root.rstrip("/") + "/"
    inside = (f"{each.rstrip('/')}/" for each in spellings)
    return next((each[len(start) :] for each in inside if each.startswith(start)), None)


def read_sink_log(lister: Lister, root: str) -> frozenset[str]:
    """Return the files, relative to it, of the sink in a folder, by the latest compacted batch and all after it.

    Raises InvalidFileError if a batch is missing or damaged, or names a file outside the folder.
    """
    for _ in range(_TRIES):
        try:
            return _read_log(lister, root)
        except FileNotFoundError:  # Spark has compacted the log, and removed old batches
            pass
    return _read_log(lister, root)


def _read_log(lister: Lister, root: str) -> frozenset[str]:
    folder = f"{root.rstrip('/')}/{_LOG_FOLDER}"
    batches: dict[int, str] = {}
    first = 0
    for name in sorted(lister.names(folder)):  # "9" before "9.compact"
        found = _BATCH.fullmatch(name)
        if found:
            batches[int(found[1])] = f"{folder}/{name}"
            first = max(first, int(found[1])) if found[2] else first
    files: set[str] = set()
    deleted: set[str] = set()
    for number in range(first, max(batches, default=-1) + 1):
        if number not in batches:
            raise InvalidFileError(f"batch {number} of the streaming sink's log is missing; {_ADVICE}", file=folder)
        for path, action in _read_batch(lister.read(batches[number]), batches[number]):
            (deleted if action == _DELETE else files).add(_name_in_sink(lister, path, root, batches[number]))
    return frozenset(files - deleted)


def _read_batch(data: bytes, name: str) -> list[tuple[str, str]]:
    """Return the (path, action) of each file of a batch; directories are left out."""
    version, *lines = data.decode("utf-8", "replace").split("\n")
    if version != _VERSION:
        raise InvalidFileError(
            f"the streaming sink's log must begin with {_VERSION!r}, not {version[:20]!r}; {_ADVICE}", file=name
        )
    files = []
    for number, line in enumerate(filter(None, lines), 1):
        entry = _parse_entry(line)
        if entry is None:
            raise InvalidFileError(f"entry {number} of the streaming sink's log is damaged; {_ADVICE}", file=name)
        if not entry.get("isDir"):
            files.append((entry["path"], entry["action"]))
    return files


def _parse_entry(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_sound = isinstance(entry, dict) and isinstance(entry.get("path"), str) and entry.get("action") in (_ADD, _DELETE)
    return entry if is_sound else None


def _name_in_sink(lister: Lister, url: str, root: str, log: str) -> str:
    """Return the path in the sink of a file that the log names by a URL; InvalidFileError if it is outside."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    path = unquote(parts.path)
    folder, _, name = path.rpartition("/")
    spellings = (folder, parts.netloc + folder, *lister.spellings(folder or "/"))
    for start, place in product(lister.spellings(root), spellings):
        inside = _relative([place.strip("/")], start.strip("/"))
        if inside is not None and not {"", ".", ".."} & set((inside + name).split("/")):
            return inside + name
    raise InvalidFileError(
        f"the streaming sink's log names {url!r}, which is not in its folder; was it moved? Move it back, or pass "
        'table_format="parquet" to read all files as they are',
        file=log,
    )
