"""Search for marker keys and values in what a process leaves: files, texts of objects, exceptions, pickles."""

from __future__ import annotations

import base64
import contextlib
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOOTER_KEY, COLUMN_KEY = b"MaRkErKeY-footer", b"MaRkErKeY-column-of-32-bytes-...!"[:32]
TEXT, NUMBER = "mArKeRvAlUe", 734_512_987_651
KEYS = (FOOTER_KEY, COLUMN_KEY)
MAX_DEPTH = 4


def markers() -> dict[str, bytes]:
    """Return what must not be found, by its name."""
    found = {"text": TEXT.encode(), "number": str(NUMBER).encode(), "number stored": NUMBER.to_bytes(8, "little")}
    for key in KEYS:
        name = key.decode()
        found |= {
            name: key,
            f"{name} as hex": key.hex().encode(),
            f"{name} as base64": base64.b64encode(key),
            f"{name} as a list": ", ".join(map(str, key)).encode(),
        }
    return found


MARKERS = markers()


def secrets_in(content: str | bytes) -> list[str]:
    """Return the names of the markers in a text or bytes."""
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return [name for name, marker in MARKERS.items() if marker in data]


def texts_of(thing: object) -> Iterator[str]:
    """Yield `repr`, `str` and attributes of an object and of objects of numparq in it; keys hide theirs."""
    yield from (repr(thing), str(thing), f"{thing}")
    yield from _attributes(thing, MAX_DEPTH, set())


def _attributes(thing: object, depth: int, seen: set[int]) -> Iterator[str]:
    from numparq.crypto.key import Key

    if id(thing) in seen or not depth or isinstance(thing, Key):
        return
    seen.add(id(thing))
    names = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    values = dict(getattr(thing, "__dict__", {}))
    for name in names:
        with contextlib.suppress(AttributeError):
            values[name] = getattr(thing, name)
    for name, value in values.items():
        yield f"{name}: {value!r}"
        inner = (
            list(value.values()) if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        )
        for each in inner:
            if type(each).__module__.startswith("numparq"):
                yield from _attributes(each, depth - 1, seen)


def texts_of_error(error: BaseException) -> Iterator[str]:
    """Yield the texts of an exception, its chain, its attributes, its traceback and its pickle."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield from (str(each), repr(each), repr(each.args), repr(vars(each)))
        yield from (f"{name}: {getattr(each, name)!r}" for name in ("object", "doc") if hasattr(each, name))
        waiting += [each.__cause__, each.__context__]
    yield "".join(traceback.format_exception(error))


def pickle_of(thing: Any) -> bytes:
    """Return the pickle of an object; none if it refuses."""
    try:
        return pickle.dumps(thing)
    except (TypeError, pickle.PicklingError) as error:
        return "\n".join(texts_of_error(error)).encode()


def files_below(*folders: Path) -> dict[Path, int]:
    """Return the times at which files were changed."""
    paths = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {path: path.stat().st_mtime_ns for path in paths}
