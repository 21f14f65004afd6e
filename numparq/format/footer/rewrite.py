"""Rewrite a footer without decoding its row groups: append row groups, retype leaves, or refer to a `file_path`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from numparq.errors import InvalidFileError, UnsupportedError
from numparq.format.schema_node import SchemaNode, leaf_columns, to_schema_elements
from numparq.format.thrift.decode import Record, decoder_stack, read_record, root_record
from numparq.format.thrift.encode import EncodedThrift, encode_field, encode_field_header, encode_struct
from numparq.format.thrift.idl import load_idl
from numparq.format.thrift.layout import thrift_layout
from numparq.format.thrift.walk import (
    field_starts,
    join_fields,
    read_field,
    read_list_header,
    skip_value,
    split_list,
)
from numparq.kernels.kernel_groups import kernels
from numparq.kernels.status import check_status
from numparq.kernels.thrift import wire

from .file_metadata import Footer

_FILE_PATH = 1  # field id, the first of ColumnChunk
_SCHEMA, _COLUMN_ORDERS = 2, 7  # field ids in FileMetaData
_TYPE = 1  # field id in the SchemaElement of a leaf

_Item = TypeVar("_Item")


@dataclass(eq=False)
class FooterParts:
    """Encoded parts of a FileMetaData.

    Attributes
    ----------
    column_orders : list of str or None
        ColumnOrder member of each leaf column, "" for an unknown one. None if the file has none: readers then
        ignore its statistics.
    fields : dict of int to (int, bytes)
        All fields of the struct by id, known or not: wire type and encoded value.
    row_group_offsets : list of int
        Offset of each RowGroup struct in the footer.
    """

    row_groups: list[EncodedThrift]
    num_rows: int
    key_values: list[tuple[bytes, bytes | None]]
    column_orders: list[str] | None
    fields: dict[int, tuple[int, bytes]] = field(repr=False)
    row_group_offsets: list[int] = field(repr=False, default_factory=list)

    @property
    def key_value_metadata(self) -> dict[str, bytes]:
        """Keys with a value; the first of equal keys counts."""
        found: dict[str, bytes] = {}
        for key, value in self.key_values:
            if value is not None:
                found.setdefault(key.decode("utf-8", "surrogateescape"), value)
        return found

    def encode(
        self,
        row_groups: Sequence[EncodedThrift | dict[str, Any]],
        num_rows: int,
        key_value_metadata: Mapping[str, str | bytes],
        created_by: str,
    ) -> bytes:
        """Encode a FileMetaData with all given row groups (existing ones first) and added or replaced keys.

        A file that names its writer keeps that name, not `created_by`: readers look up writer quirks by it.
        """
        pairs = [{"key": key, "value": value} for key, value in self._pairs(key_value_metadata)]
        fields = dict(self.fields)
        fields |= _encoded(num_rows=num_rows, row_groups=list(row_groups))
        if pairs:
            fields |= _encoded(key_value_metadata=pairs)
        return join_fields(_encoded(created_by=created_by) | fields)

    def retype_leaves(self, leaves: Mapping[int, SchemaNode]) -> FooterParts:
        """Return the parts with other nodes in place of leaf columns, by index; other schema elements stay."""
        fields, orders = dict(self.fields), self.column_orders
        elements: list[EncodedThrift] = []
        leaf = 0
        for element in map(EncodedThrift, split_list(fields[_SCHEMA][1])):
            node = None
            if elements and _TYPE in field_starts(element, 0):
                node = leaves.get(leaf)
                leaf += 1
            elements += [element] if node is None else _encoded_elements(node)
        fields |= _encoded(schema=elements)
        if orders is not None and len(orders) == leaf:
            counts = [len(leaf_columns([leaves[number]])) if number in leaves else 1 for number in range(leaf)]
            members = split_list(fields[_COLUMN_ORDERS][1])
            fields |= _encoded(column_orders=_repeated(list(map(EncodedThrift, members)), counts))
            orders = _repeated(orders, counts)
        return replace(self, fields=fields, column_orders=orders)

    def _pairs(self, changes: Mapping[str, str | bytes]) -> list[tuple[str | bytes, str | bytes | None]]:
        """Replace values at the first of equal keys, and append new keys."""
        left = {key.encode("utf-8", "surrogateescape"): value for key, value in changes.items()}
        pairs: list[tuple[str | bytes, str | bytes | None]] = []
        pairs += [(key, left.pop(key, value)) for key, value in self.key_values]
        return pairs + list(left.items())


def _encoded(**values: Any) -> dict[int, tuple[int, bytes]]:
    """Encode fields of FileMetaData by id: wire type and value."""
    kinds = {"i64": wire.I64, "list": wire.LIST, "string": wire.BINARY}
    ids = {item.name: (item.id, kinds.get(item.kind, 0)) for item in load_idl().structs["FileMetaData"].fields}
    return {ids[name][0]: (ids[name][1], encode_field("FileMetaData", name, value)) for name, value in values.items()}


# --- splitting ------------------------------------------------------------------------------------------------------


def split_footer(footer: Footer, refusal: str = "nothing can be appended to it") -> FooterParts:
    """Split a footer whose row groups will be part of another footer.

    UnsupportedError, with `refusal`, if the file is encrypted, signed, or has external column chunks.
    """
    _check_whole(footer, refusal)
    try:
        return _split(footer)
    except IndexError:
        raise InvalidFileError("a field of the footer extends beyond its end") from None


def encode_without_row_groups(footer: Footer) -> bytes:
    """Encode a FileMetaData with the schema, keys and writer of another file, and no rows."""
    try:
        return _split(footer).encode([], 0, {}, footer.created_by or "")
    except IndexError:
        raise InvalidFileError("a field of the footer extends beyond its end") from None


def _split(footer: Footer) -> FooterParts:
    data = footer.data[: footer.length].tobytes()
    known = {item.id: item for item in load_idl().structs["FileMetaData"].fields}
    fields: dict[int, tuple[int, bytes]] = {}
    row_groups: list[EncodedThrift] = []
    starts: list[int] = []
    position = last = 0
    while data[position] & 15:  # low four bits 0: end of the struct, whatever the high ones are
        kind, number, start = read_field(data, position, last)
        about = known.get(number)
        if about is not None and about.name == "row_groups":
            row_groups, starts, position = _structs(footer, data, start, "RowGroup", "num_rows")
        elif about is not None and about.name == "schema":
            _, _, position = _structs(footer, data, start, "SchemaElement", "name")
        else:
            position = skip_value(data, start, kind)
        if number in fields:
            raise InvalidFileError(f"the footer has field {number} twice")
        fields[number] = kind, data[start:position]
        last = number
    full = _other_fields(footer)
    orders = None if full.column_orders is None else [order.which() or "" for order in full.column_orders]
    num_rows = int(footer.row_group_num_rows.sum())
    return FooterParts(row_groups, num_rows, _key_values(full), orders, fields, starts)


def _check_whole(footer: Footer, refusal: str) -> None:
    full = _other_fields(footer)
    if full.encryption_algorithm is not None or full.footer_signing_key_metadata is not None:
        raise UnsupportedError(f"the file is encrypted or signed: {refusal}")
    groups, columns = range(len(footer.row_group_num_rows)), range(footer.num_leaves)
    facts = footer.chunks.read_table(groups, columns)
    if facts["has_file_path"].any():
        raise UnsupportedError(f"the file describes row groups of other files: {refusal}")
    if facts["is_encrypted"].any():
        raise UnsupportedError(f"the file has encrypted columns: {refusal}")


def _other_fields(footer: Footer) -> Record:
    """Read the fields of FileMetaData that appending needs, besides schema and row groups."""
    names = ("key_value_metadata", "column_orders", "encryption_algorithm", "footer_signing_key_metadata")
    wanted = thrift_layout("FileMetaData", *names)
    return root_record(wanted, read_record(footer.data, footer.length, wanted), footer.data)


def _key_values(rest: Record) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values as the bytes in the file."""
    return [
        (
            pair.key.encode("utf-8", "surrogateescape"),
            None if pair.value is None else pair.value.encode("utf-8", "surrogateescape"),
        )
        for pair in rest.key_value_metadata or ()
    ]


def _structs(
    footer: Footer, data: bytes, position: int, struct: str, member: str
) -> tuple[list[EncodedThrift], list[int], int]:
    """Split a list of structs; return them encoded, their offsets, and the end of the list."""
    count, _, position = read_list_header(data, position)
    wanted = thrift_layout(struct, member)
    found, starts = [], []
    for _ in range(count):
        starts.append(position)
        words = np.empty(wanted.words, np.int64)
        stack = decoder_stack(len(words), len(words))
        end = check_status(
            kernels.read_thrift_struct(footer.data, position, footer.length, wanted.table, words, 0, stack),
            InvalidFileError,
        )
        found.append(EncodedThrift(data[position:end]))
        position = end
    return found, starts, position


def _encoded_elements(node: SchemaNode) -> list[EncodedThrift]:
    """Encode the SchemaElements of a node."""
    return [EncodedThrift(encode_struct("SchemaElement", item)) for item in to_schema_elements([node])[1:]]


def _repeated(items: Sequence[_Item], counts: Sequence[int]) -> list[_Item]:
    return [item for item, count in zip(items, counts, strict=True) for _ in range(count)]


def row_groups_with_file_path(footer: Footer, file_path: str) -> list[EncodedThrift]:
    """Encode a file's row groups for a metadata file, with `file_path` relative to that file's directory.

    UnsupportedError if the file is encrypted or has external column chunks itself.
    """
    parts = split_footer(footer, "a _metadata file cannot describe it; use write_metadata_file=False")
    path = encode_field_header(_FILE_PATH, wire.BINARY) + encode_field("ColumnChunk", "file_path", file_path)
    found = []
    for start, group, chunks in zip(
        parts.row_group_offsets, parts.row_groups, footer.chunks.starts.tolist(), strict=True
    ):
        out, at = bytearray(), 0
        for chunk in chunks:
            out += group[at : chunk - start] + path
            at = chunk - start
            header = group[at]
            if header >> 4:  # delta from the previous field id, which is now that of file_path
                out.append(header - (_FILE_PATH << 4))
                at += 1
        found.append(EncodedThrift(bytes(out) + group[at:]))
    return found
