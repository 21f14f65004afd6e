"""Files whose schema elements have every logical and converted type, whether it fits the physical type or not."""

from __future__ import annotations

import faulthandler
import itertools
import sys
from collections.abc import Iterator
from typing import Any

from support.files.edited_footers import logical_type, write_with_footer

from .forged_hints import TABLES, check_files

_UNITS = ("MILLIS", "MICROS", "NANOS")
_PLAIN = ("STRING", "MAP", "LIST", "ENUM", "DATE", "UNKNOWN", "JSON", "BSON", "UUID", "FLOAT16", "VARIANT", "FILE")
_PARAMETERS: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in (*_PLAIN, "GEOMETRY", "GEOGRAPHY")),
    *(
        (kind, {"unit": unit, "isAdjustedToUTC": utc})
        for kind, unit, utc in itertools.product(("TIME", "TIMESTAMP"), _UNITS, (False, True))
    ),
    *(
        ("INTEGER", {"bitWidth": bits, "isSigned": sign})
        for bits, sign in itertools.product((8, 16, 32, 64, 7, -1), (False, True))
    ),
    *(("DECIMAL", {"precision": digits, "scale": scale}) for digits, scale in ((9, 2), (40, 0), (0, 0), (5, 9))),
    ("GEOMETRY", {"crs": "projjson:pandas"}),
    ("GEOGRAPHY", {"algorithm": 99}),
]
_CONVERTED = range(-1, 26)
# Physical types that an annotation may have (LogicalTypes.md); with a length after FIXED_LEN_BYTE_ARRAY's number.
_FITTING: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("STRING", "ENUM", "JSON", "BSON", "GEOMETRY", "GEOGRAPHY"), (6,)),
    "DATE": (1,),
    "TIME": (1, 2),
    "TIMESTAMP": (2,),
    "INTEGER": (1, 2),
    "DECIMAL": (1, 2, 6, 7),
    "UUID": ((7, 16),),
    "FLOAT16": ((7, 2),),
    "UNKNOWN": tuple(range(8)),
}
_CONVERTED_FITTING: dict[int, tuple[int, ...]] = {
    **dict.fromkeys((0, 4, 19, 20), (6,)),
    5: (1, 2, 6, 7),
    **dict.fromkeys((6, 7, 11, 12, 13, 15, 16, 17), (1,)),
    **dict.fromkeys((8, 9, 10, 14, 18), (2,)),
    24: tuple(range(8)),
}
_TABLES = ("numbers", "texts", "nested")


def annotation_cases(step: int) -> Iterator[tuple[str, bytes, bytes | None]]:
    """Yield (what, file, file without the annotation) of every nth combination.

    The latter is None where an annotation fits, or is on a group: it may give other values.
    """
    specs = [
        *(({"logicalType": logical_type(kind, **more)}, _FITTING.get(kind, ())) for kind, more in _PARAMETERS),
        *(({"converted_type": n, "precision": 5, "scale": 2}, _CONVERTED_FITTING.get(n, ())) for n in _CONVERTED),
    ]
    for table, element, (annotation, fitting) in itertools.islice(
        itertools.product(_TABLES, range(1, 25), specs), 0, None, step
    ):
        plain, found = _annotated(table, element, {}), _annotated(table, element, annotation)
        if plain is not None and found is not None:
            data, physical, length = found
            fits = physical is None or physical in fitting or (physical, length) in fitting
            yield f"{table}, element {element}: {annotation}", data, None if fits else plain[0]


def _annotated(table: str, element: int, annotation: dict[str, Any]) -> tuple[bytes, int | None, int | None] | None:
    """Return a file with just this annotation of an element, its physical type and length; None without the element."""
    found: list[Any] = []

    def edit(footer: Any) -> None:
        footer.key_value_metadata = None
        if element >= len(footer.schema):
            return
        changed = footer.schema[element]
        for name in ("converted_type", "logicalType", "precision", "scale"):
            setattr(changed, name, annotation.get(name))
        found.append((changed.type, changed.type_length))

    data = write_with_footer(TABLES[table], edit)
    return (data, *found[0]) if found else None


if __name__ == "__main__":
    faulthandler.enable()
    step, most = map(int, sys.argv[1:])
    sys.exit("\n\n".join(check_files(annotation_cases(step), most)) or None)
