"""False fields: every field of a footer and of page headers set to wrong values, one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from support.files.builder import parse_file, with_footer

from .byte_damage import Case

_BOOL, _DOUBLE, _STRING, _STRUCT, _LIST, _BINARY = 2, 4, 11, 12, 15, 18
_BITS = {3: 8, 6: 16, 8: 32, 10: 64}
_NUMBERS = (0, 1, 2, 3, 5, 9, 33, 255, 65536, 1 << 24, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 62), (1 << 63) - 1)
_TEXTS = (b"", b"\xff\xfe\x80", b"\x00", b"a.b", b"x" * 70_000, b"\xed\xa0\x80")

Place = tuple[str | int, ...]


def false_fields(data: bytes, seed: int, most: int) -> Iterator[Case]:
    """Yield up to `most` files with one false field, drawn by seed from footer and page headers."""
    whole = parse_file(data)
    body, footer = whole.laid_out()
    told = [(None, place, kind, lie) for place, kind in _places(footer) for lie in _wrong(_get(footer, place), kind)]
    for chunk, pages in whole.chunks.items():
        for number, page in enumerate(pages):
            told += [
                ((chunk, number), place, kind, lie)
                for place, kind in _places(page.header)
                for lie in _wrong(_get(page.header, place), kind)
            ]
    order = np.random.default_rng(seed).permutation(len(told))[:most]
    for number in sorted(order.tolist()):
        page, place, _, lie = told[number]
        where = ".".join(map(str, place)) + (f" of page {page}" if page else "")
        header = whole.chunks[page[0]][page[1]].header if page else footer
        with _told(header, place, lie):
            changed = whole.stored() if page else with_footer(body, footer)
        yield f"{where} = {str(lie)[:60]}", changed


def _places(thing: Any, at: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yield path and Thrift type of all fields that are set, including lists and structs."""
    for code, name, *about, _ in thing.thrift_spec.values():
        value = getattr(thing, name)
        if value is None:
            continue
        yield (*at, name), code
        if code == _STRUCT:
            yield from _places(value, (*at, name))
        elif code == _LIST:
            element = about[0][0] if isinstance(about[0], tuple) else about[0]
            for index, item in enumerate(value):
                yield (*at, name, index), element
                if element == _STRUCT:
                    yield from _places(item, (*at, name, index))


def _wrong(value: Any, code: int) -> list[Any]:
    """Yield wrong values for a field; None removes it."""
    if code in _BITS:
        numbers = {*_NUMBERS, *(-number - 1 for number in _NUMBERS), value + 1, value - 1, 2 * value, -value} - {value}
        most = 1 << _BITS[code] - 1
        return [None, *sorted(number for number in numbers if -most <= number < most)]
    if code == _BOOL:
        return [not value, None]
    if code == _DOUBLE:
        return [float("nan"), -value, None]
    if code in (_STRING, _BINARY):
        text = value.encode() if isinstance(value, str) else value
        return [None, *(lie for lie in (*_TEXTS, text + b"!", text[:-1], text + text) if lie != text)]
    if code == _LIST:
        return [None, [], value[:-1], value + value, value[::-1]]
    return [None] if code == _STRUCT else []


def _get(thing: Any, place: Place) -> Any:
    for step in place:
        thing = thing[step] if isinstance(step, int) else getattr(thing, step)
    return thing


@contextmanager
def _told(thing: Any, place: Place, lie: Any) -> Iterator[None]:
    """Change one field temporarily; None removes a list item."""
    owner, last = _get(thing, place[:-1]), place[-1]
    if not isinstance(last, int):
        truth = getattr(owner, last)
        setattr(owner, last, lie)
        yield
        setattr(owner, last, truth)
    else:
        truth = list(owner)
        owner[last : last + 1] = [] if lie is None else [lie]
        yield
        owner[:] = truth
