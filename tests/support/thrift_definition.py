"""The format's definition, parsed by thriftpy2: the tests' oracle, and the source of the package's tables.

``python tests/support/thrift_definition.py``, after an edit of thrift/parquet.thrift, writes the tables anew.
"""

from __future__ import annotations

import io
import json
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import thriftpy2

import numparq

REPOSITORY = Path(__file__).resolve().parents[2]
DEFINITION = REPOSITORY / "thrift" / "parquet.thrift"
TABLES = Path(numparq.__file__).resolve().parent / "format" / "thrift" / "parquet.json"
_SCALARS = {2: "bool", 3: "i8", 4: "double", 6: "i16", 8: "i32", 10: "i64", 11: "string", 18: "binary"}
_STRUCT, _LIST = 12, 15


def idl_text() -> str:
    """Return the text of the definition."""
    return DEFINITION.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def thrift_module() -> ModuleType:
    """Load the definition with thriftpy2, as a module with a class for each struct and enum."""
    return thriftpy2.load_fp(io.StringIO(idl_text()), module_name="numparq_parquet_thrift")


def tables_text() -> str:
    """Return the tables of the package in JSON: one line for each struct, union and enum."""
    known = thrift_module().__thrift_meta__
    structs = {
        kind.__name__: (union, _fields(kind))
        for union, kinds in ((False, known["structs"]), (True, known["unions"]))
        for kind in kinds
    }
    enums = {kind.__name__: kind._NAMES_TO_VALUES for kind in known["enums"]}
    return f'{{"structs": {{\n{_lines(structs)}\n}}, "enums": {{\n{_lines(enums)}\n}}}}\n'


def _lines(tables: dict[str, Any]) -> str:
    return ",\n".join(f"{json.dumps(name)}: {json.dumps(table)}" for name, table in tables.items())


def _fields(kind: Any) -> list[tuple[Any, ...]]:
    """Return the fields of a struct by ascending id, as `numparq.format.thrift.idl.IdlField` has them."""
    defaults = dict(kind.default_spec)
    fields = []
    for field_id, (code, name, *about, required) in sorted(kind.thrift_spec.items()):
        element, refers = None, None
        if code == _LIST:
            inner = about[0] if isinstance(about[0], tuple) else (about[0],)
            element, refers = _kind(*inner)
            this = "list"
        else:
            this, refers = _kind(code, *about)
        fields.append((field_id, name, this, element, refers, required, defaults[name]))
    return fields


def _kind(code: int, about: Any = None) -> tuple[str, str | None]:
    """Return the kind of a thriftpy2 type code, and its struct or enum."""
    if code == _STRUCT:
        return "struct", about.__name__
    return ("enum", about.__name__) if about is not None else (_SCALARS[code], None)


if __name__ == "__main__":
    TABLES.write_text(tables_text())
