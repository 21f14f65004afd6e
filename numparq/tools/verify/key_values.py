"""Check key-value metadata: duplicate keys, ARROW:schema, and pandas metadata against the columns."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from typing import Any

from numparq.format.key_values.arrow import decode_schema_message
from numparq.format.key_values.flatbuffer import FlatbufferError

from .deviations import Findings
from .schema_elements import SchemaTreeNode

__all__ = ["check_key_values"]

_FIELDS = 1  # vtable slot in an Arrow Schema
_NAME, _MAX_NAME_BYTES = 0, 1 << 16  # vtable slot in an Arrow Field, and a limit


def check_key_values(metadata: dict[str, Any], root: SchemaTreeNode, findings: Findings) -> None:
    """Check the key-value metadata of a footer."""
    pairs = metadata.get("key_value_metadata") or []
    counts = Counter(pair.get("key") for pair in pairs)
    for key, count in counts.items():
        if count > 1:
            findings.add("key-duplicate", f"key {key!r} occurs {count} times; readers use only one of the values")
    values = {pair.get("key"): pair["value"] for pair in reversed(pairs) if "value" in pair}
    columns = [child.path[-1] for child in root.children]
    if "ARROW:schema" in values:
        _check_arrow_schema(values["ARROW:schema"], columns, findings)
    if "pandas" in values:
        _check_pandas(values["pandas"], columns, findings)


def _check_arrow_schema(value: str, columns: list[str], findings: Findings) -> None:
    try:
        names = _field_names(value)
    except (binascii.Error, UnicodeError, FlatbufferError, ValueError) as error:
        findings.add("key-arrow-schema", f"ARROW:schema is not a valid Arrow schema: {error}")
        return
    if len(names) != len(columns):
        findings.add("key-columns", f"ARROW:schema has {len(names)} fields, the file {len(columns)} columns")
    elif names != columns:
        first = next(number for number, name in enumerate(names) if name != columns[number])
        findings.add(
            "key-columns", f"column {first} is {names[first]!r} in ARROW:schema, but {columns[first]!r} in the file"
        )


def _field_names(value: str) -> list[str]:
    """Return the field names of a base64-encoded Arrow schema message."""
    base64.b64decode(value.encode("ascii", "strict"), validate=True)
    schema = decode_schema_message(value)
    count = schema.vector_length(_FIELDS)
    return [schema.vector_item(_FIELDS, number).text(_NAME, _MAX_NAME_BYTES) or "" for number in range(count)]


def _check_pandas(value: str, columns: list[str], findings: Findings) -> None:
    try:
        document = json.loads(value)
        described = [column.get("field_name") or column.get("name") for column in document.get("columns", [])]
        index = [item for item in document.get("index_columns", []) if isinstance(item, str)]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        findings.add("key-pandas", f"the pandas metadata cannot be read: {error}")
        return
    known = set(columns)
    missing = [name for name in [*described, *index] if isinstance(name, str) and name not in known]
    if missing:
        findings.add("key-columns", f"the pandas metadata describe column {missing[0]!r}, which the file lacks")
