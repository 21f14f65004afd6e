"""The schema of a store: Spark's schema JSON in the footer, with version, table identifier and indexes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from numparq.errors import InvalidFileError, UnsupportedError

Json: TypeAlias = Any

OBJECT_NAME, PARTITION_PREFIX = "obj_name", "virtual_"
LATEST_VERSION = 4
_FIRST_ESCAPED, _FIRST_NATIVE, _FIRST_WITH_MAPS = 2, 1, 3
_MOST_CHARACTERS = 64 << 20
_PARAMETER_PREFIXES = ("spark.ibm.metaindex.", "com.ibm.metaindex.")
PARAMETER_PREFIX = "io.xskipper."


@dataclass(frozen=True)
class StoreIndex:
    """An index of a store.

    Attributes
    ----------
    name : str
        Name of its kind, such as ``"minmax"``.
    columns : tuple of str
        Columns of the dataset, in lower case; a dotted one is a path into structs.
    column : str
        Column of the store that holds its cells.
    params : mapping of str to str
        Parameters, as the latest version names them.
    key_label : str or None
        Label of the key that encrypts it.
    type : object
        Spark's type of the cells, as JSON.
    """

    name: str
    columns: tuple[str, ...]
    column: str
    params: Mapping[str, str] = field(default_factory=dict)
    key_label: str | None = None
    type: Any = None

    def __str__(self) -> str:
        return f"{self.name} on {', '.join(self.columns)}"


@dataclass(frozen=True)
class StoreSchema:
    """Schema of a store, or of one part of it.

    Attributes
    ----------
    version : int
        Version of the format.
    identifier : str
        Table identifier of the dataset.
    partitions : mapping of str to object
        Spark's type, as JSON, of each partition column of the dataset, by name.
    indexes : tuple of StoreIndex
        The indexes, in order.
    encryption : mapping of str to str
        Labels of keys; empty unless the store is encrypted.
    """

    version: int
    identifier: str
    partitions: Mapping[str, Any]
    indexes: tuple[StoreIndex, ...]
    encryption: Mapping[str, str] = field(default_factory=dict)


def index_column(name: str, columns: Sequence[str], version: int = LATEST_VERSION) -> str:
    """Return the column of a store that holds the cells of an index."""
    if version < _FIRST_ESCAPED:
        return f"{(':', '_')[version].join(columns)}_{name}"
    escaped = [column.replace("#", "##").replace(".", "$#$") for column in columns]
    lengths = "-".join(str(len(each.encode("utf-16-le")) // 2) for each in escaped)
    return f"{'_'.join(escaped)}_{name}_{lengths}"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    pairs_by_name = dict(pairs)
    if len(pairs_by_name) != len(pairs):
        raise ValueError("a name occurs twice")
    return pairs_by_name


def parse_store_schema(text: str | None, file: str) -> StoreSchema:
    """Parse the schema of a part from Spark's schema JSON.

    Raises InvalidFileError if it is no schema of a store, UnsupportedError if its version is later than 4.
    """
    try:
        if text is None or len(text) > _MOST_CHARACTERS:
            raise ValueError("it has no schema of Spark" if text is None else "its schema is too long")
        fields = {each["name"]: each for each in json.loads(text, object_pairs_hook=_distinct)["fields"]}
        return _schema(fields, json.loads(text)["fields"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f": {error}" if type(error) is ValueError else ""
        raise InvalidFileError(f"the file is no part of a data-skipping store{reason}", file=file) from None
    except UnsupportedError as error:
        error.where.setdefault("file", file)
        raise


def _schema(fields: dict[str, Any], listed: list[Any]) -> StoreSchema:
    if len(fields) != len(listed):
        raise ValueError("two columns have the same name")
    if OBJECT_NAME not in fields:
        raise ValueError(f"it has no column {OBJECT_NAME}")
    own = _mapping(fields[OBJECT_NAME].get("metadata") or {})
    version = own.get("version", 0)
    if type(version) is not int or version < 0:
        raise ValueError(f"its version is {version!r}")
    if version > LATEST_VERSION:
        raise UnsupportedError(
            f"the data-skipping store has version {version}; numparq reads versions up to {LATEST_VERSION}"
        )
    partitions: dict[str, Any] = {}
    indexes = []
    identifier = own.get("tableIdentifier")
    for name, each in fields.items():
        metadata = _mapping(each.get("metadata") or {})
        if "index" in metadata:
            known = _mapping(metadata["index"])
            indexes.append(_index(name, each["type"], known))
            identifier = identifier or known.get("tableIdentifier")
        elif name.startswith(PARTITION_PREFIX) and version == LATEST_VERSION:
            partitions[name.removeprefix(PARTITION_PREFIX)] = each["type"]
    labels = {str(key): str(value) for key, value in _mapping(own.get("encryption") or {}).items()}
    return StoreSchema(version, str(identifier or ""), partitions, tuple(indexes), labels)


def _mapping(value: Json) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("metadata of a column are no object")
    return value


def _index(column: str, kind: Json, known: dict[str, Any]) -> StoreIndex:
    columns = known["cols"]
    if not (isinstance(columns, list) and columns and all(isinstance(each, str) for each in columns)):
        raise ValueError("an index names no columns")
    label = known.get("key_metadata")
    return StoreIndex(
        str(known["name"]),
        tuple(columns),
        column,
        _params(known.get("params") or {}),
        None if label is None else str(label),
        kind,
    )


def _params(params: Json) -> dict[str, str]:
    """Return the parameters of an index: a list of texts up to version 2, a map from version 3 on."""
    pairs = params.items() if isinstance(params, dict) else [str(each).partition(":")[::2] for each in params]
    return {_parameter(str(key)): str(value) for key, value in pairs}


def _parameter(name: str) -> str:
    for prefix in _PARAMETER_PREFIXES:
        if name.startswith(prefix):
            return PARAMETER_PREFIX + name.removeprefix(prefix)
    return name


def format_store_schema(schema: StoreSchema) -> str:
    """Return Spark's schema JSON of a store of the latest version."""
    own: dict[str, Any] = {"tableIdentifier": schema.identifier, "version": LATEST_VERSION}
    if schema.encryption:
        own = {"encryption": dict(schema.encryption), **own}
    fields = [_field(OBJECT_NAME, "string", own)]
    fields += [_field(PARTITION_PREFIX + name, kind, {}) for name, kind in schema.partitions.items()]
    for index in schema.indexes:
        known: dict[str, Any] = {"cols": list(index.columns), "name": index.name}
        if index.key_label is not None:
            known["key_metadata"] = index.key_label
        if index.params:
            known["params"] = dict(index.params)
        fields.append(_field(index.column, index.type, {"index": known}))
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)


def _field(name: str, kind: Json, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}
