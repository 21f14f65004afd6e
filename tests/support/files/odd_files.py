"""Files of one column and a row number, written by hand and oddly: what real writers do, each oddity by itself.

A `Draft` is a sound file before its bytes are written; an oddity edits it, and returns False where it does not apply.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import cramjam

from support.oracles import delta, hybrid_rle
from support.oracles.delta import BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY

from .builder import (
    BIT_PACKED,
    BOOLEAN,
    BYTE_ARRAY,
    DATA_PAGE,
    DATA_PAGE_V2,
    DICTIONARY_PAGE,
    DOUBLE,
    FIXED_LEN_BYTE_ARRAY,
    INT32,
    INT64,
    MAGIC,
    OPTIONAL,
    PLAIN,
    PLAIN_DICTIONARY,
    REPEATED,
    REQUIRED,
    RLE,
    RLE_DICTIONARY,
    extended_idl,
    to_bytes,
    with_footer,
)

UNCOMPRESSED, SNAPPY, GZIP, ZSTD = 0, 1, 2, 6
LIST = 3  # converted types
TEXT = {"converted_type": 0}
DECIMAL = {"converted_type": 5, "precision": 4, "scale": 2}
SPLITS = (9, 12)  # rows of the pages
ROWS = sum(SPLITS)


@dataclass(frozen=True)
class Kind:
    """Values of a leaf column: physical type, encoding of its data pages, the value of a number, and its annotation."""

    physical: int
    encoding: int
    value: Callable[[int], Any]
    element: dict[str, Any] = field(default_factory=dict)


def text(i: int) -> bytes:
    return b"value %d" % (i % 5)


KINDS = {
    "int64": Kind(INT64, PLAIN, lambda i: i * 7919),
    "int32": Kind(INT32, PLAIN, lambda i: i * 7919),
    "double": Kind(DOUBLE, PLAIN, lambda i: i / 3),
    "string": Kind(BYTE_ARRAY, PLAIN, text, TEXT),
    "bytes": Kind(BYTE_ARRAY, PLAIN, text),
    "fixed": Kind(FIXED_LEN_BYTE_ARRAY, PLAIN, lambda i: b"%04d" % i, {"type_length": 4}),
    "decimal": Kind(BYTE_ARRAY, PLAIN, lambda i: bytes([i]), DECIMAL),
    "decimal dictionary": Kind(BYTE_ARRAY, RLE_DICTIONARY, lambda i: bytes([i % 5]), DECIMAL),
    "bool": Kind(BOOLEAN, PLAIN, lambda i: i % 3 == 1),
    "bool runs": Kind(BOOLEAN, RLE, lambda i: i % 3 == 1),
    "int64 dictionary": Kind(INT64, RLE_DICTIONARY, lambda i: i % 5 * 7919),
    "string dictionary": Kind(BYTE_ARRAY, RLE_DICTIONARY, text, TEXT),
    "fixed dictionary": Kind(FIXED_LEN_BYTE_ARRAY, RLE_DICTIONARY, lambda i: b"%04d" % (i % 5), {"type_length": 4}),
    "int64 deltas": Kind(INT64, DELTA_BINARY_PACKED, lambda i: i * i * 7919),
    "int32 deltas": Kind(INT32, DELTA_BINARY_PACKED, lambda i: i * i * 7919),
    "string lengths": Kind(BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, text, TEXT),
    "string prefixes": Kind(BYTE_ARRAY, DELTA_BYTE_ARRAY, text, TEXT),
    "double streams": Kind(DOUBLE, BYTE_STREAM_SPLIT, lambda i: i / 3),
}
LAYOUTS = ("required", "optional", "list")
VERSIONS = (1, 2)
_LETTERS = {INT32: "i", INT64: "q", DOUBLE: "d"}


def encode_plain(physical: int, values: Sequence[Any]) -> bytes:
    if physical == BYTE_ARRAY:
        return b"".join(struct.pack("<I", len(value)) + value for value in values)
    if physical == BOOLEAN:
        return hybrid_rle.pack([int(value) for value in values], 1)
    if physical == FIXED_LEN_BYTE_ARRAY:
        return b"".join(values)
    return struct.pack(f"<{len(values)}{_LETTERS[physical]}", *values)


def packed(numbers: Sequence[int], width: int) -> bytes:
    """Encode numbers in one bit-packed run."""
    return hybrid_rle.encode([("packed", [*numbers, *[0] * (-len(numbers) % 8)])], width) if numbers else b""


def repeated(numbers: Sequence[int], width: int, more: int = 0) -> bytes:
    """Encode numbers in RLE runs, the last one longer by `more`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][0] == number:
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    if runs:
        runs[-1][1] += more
    return hybrid_rle.encode([("rle", value, count) for value, count in runs], width)


@dataclass
class Page:
    """A data page or the dictionary page before it is encoded; `fields` replace those of its headers."""

    values: list[Any]
    definition: list[int] | None = None
    repetition: list[int] | None = None
    encoding: int = PLAIN
    encode_levels: Callable[[Sequence[int], int], bytes] = packed
    encode_indices: Callable[[Sequence[int], int], bytes] = packed
    index_width: int = 3
    section: Callable[[bytes], bytes] = lambda section: section  # changes the value section
    levels: Callable[[bytes], bytes] = lambda levels: levels  # changes each level section, within its length
    body: Callable[[bytes], bytes] = lambda body: body  # changes the compressed bytes
    fields: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    is_compressed: bool = True
    crc: Callable[[int], int | None] = lambda crc: None

    @property
    def num_values(self) -> int:
        return len(self.values) if self.definition is None else len(self.definition)


@dataclass
class Draft:
    """A file before it is written: its column, pages, and what its footer says."""

    kind: Kind
    layout: str
    version: int
    pages: list[Page]
    dictionary: list[Any] | None
    codec: int = UNCOMPRESSED
    dictionary_page: Page | None = None
    extra_pages: dict[int, bytes] = field(default_factory=dict)  # stored before the data page of a number
    before: bytes = b""  # before the first page
    behind: bytes = b""  # behind the last page
    counted: int = 0  # by how much the chunk's sizes are larger
    edits: list[Callable[[Any], None]] = field(default_factory=list)  # of the footer
    facts: list[Callable[[Any], None]] = field(default_factory=list)  # of the ColumnMetaData


def draft(name: str, layout: str, version: int) -> Draft:
    """Return a sound file."""
    kind = KINDS[name]
    pages, row = [], 0
    distinct = list(dict.fromkeys(kind.value(i) for i in range(100))) if kind.encoding == RLE_DICTIONARY else None
    for count in SPLITS:
        values: list[Any] = []
        definition: list[int] = []
        repetition: list[int] = []
        for i in range(row, row + count):
            _add_row(layout, kind, i, values, definition, repetition)
        pages.append(
            Page(
                values,
                definition if layout != "required" else None,
                repetition if layout == "list" else None,
                kind.encoding,
            )
        )
        row += count
    made = Draft(kind, layout, version, pages, distinct)
    if distinct is not None:
        made.dictionary_page = Page(distinct)
    return made


def _add_row(layout: str, kind: Kind, i: int, values: list[Any], definition: list[int], repetition: list[int]) -> None:
    if layout == "required":
        values.append(kind.value(i))
    elif layout == "optional":
        definition.append(int(i % 3 != 2))
        values += [kind.value(i)] * definition[-1]
    else:
        for place in range(max(i % 3, 1)):
            definition.append((0, 3, 3 if place else 2)[i % 3] if i % 6 else 1)
            repetition.append(int(place > 0))
            values += [kind.value(i + place)] * (definition[-1] == 3)
            if definition[-1] < 2:
                break


def max_levels(layout: str) -> tuple[int, int]:
    """Return the maximum definition and repetition level."""
    return {"required": (0, 0), "optional": (1, 0), "list": (3, 1)}[layout]


def _compress(data: bytes, codec: int) -> bytes:
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data))
    return data


def _encode_values(made: Draft, page: Page) -> bytes:
    values, physical = page.values, made.kind.physical
    if page.encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY):
        assert made.dictionary is not None
        indices = [made.dictionary.index(value) for value in values]
        return bytes([page.index_width]) + page.encode_indices(indices, page.index_width)
    if page.encoding == RLE:
        section = page.encode_indices([int(value) for value in values], 1)
        return struct.pack("<I", len(section)) + section
    if page.encoding == DELTA_BINARY_PACKED:
        return delta.encode(values, 32 if physical == INT32 else 64)
    if page.encoding == DELTA_LENGTH_BYTE_ARRAY:
        return delta.encode_length(values)
    if page.encoding == DELTA_BYTE_ARRAY:
        return delta.encode_byte_array(values)
    plain = encode_plain(physical, values)
    if page.encoding == BYTE_STREAM_SPLIT:
        return b"".join(plain[byte::8] for byte in range(8))
    return plain


def store_page(made: Draft, page: Page) -> bytes:
    """Encode a data page with its header."""
    module = extended_idl()
    most_definition, most_repetition = max_levels(made.layout)
    sections = [
        b"" if levels is None else page.levels(page.encode_levels(levels, most.bit_length()))
        for levels, most in ((page.repetition, most_repetition), (page.definition, most_definition))
    ]
    values = page.section(_encode_values(made, page))
    starts = page.repetition.count(0) if page.repetition is not None else page.num_values
    if made.version == 2:
        levels = b"".join(sections)
        stored = page.body(_compress(values, made.codec) if page.is_compressed and values else values)
        body, size = levels + stored, len(levels) + len(values)
        about: dict[str, Any] = {
            "num_values": page.num_values,
            "num_nulls": page.num_values - len(page.values),
            "num_rows": starts,
            "encoding": page.encoding,
            "repetition_levels_byte_length": len(sections[0]),
            "definition_levels_byte_length": len(sections[1]),
            **({} if page.is_compressed else {"is_compressed": False}),
            **page.about,
        }
        fields: dict[str, Any] = {"type": DATA_PAGE_V2, "data_page_header_v2": module.DataPageHeaderV2(**about)}
    else:
        levels = b"".join(
            struct.pack("<I", len(section)) + section
            for section, most in zip(sections, (most_repetition, most_definition), strict=True)
            if most
        )
        plain = levels + values
        body, size = page.body(_compress(plain, made.codec)), len(plain)
        about = {
            "num_values": page.num_values,
            "encoding": page.encoding,
            "definition_level_encoding": RLE,
            "repetition_level_encoding": RLE,
            **page.about,
        }
        about = {name: value for name, value in about.items() if name not in ("num_nulls", "num_rows")}
        fields = {"type": DATA_PAGE, "data_page_header": module.DataPageHeader(**about)}
    return _store(page, fields, body, size)


def store_dictionary(made: Draft, page: Page) -> bytes:
    """Encode the dictionary page with its header."""
    plain = page.section(encode_plain(made.kind.physical, page.values))
    about = {"num_values": len(page.values), "encoding": PLAIN, **page.about}
    fields = {
        "type": DICTIONARY_PAGE,
        "dictionary_page_header": extended_idl().DictionaryPageHeader(**about),
    }
    return _store(page, fields, page.body(_compress(plain, made.codec)), len(plain))


def _store(page: Page, fields: dict[str, Any], body: bytes, size: int) -> bytes:
    crc = page.crc(zlib.crc32(body))
    sizes = {"uncompressed_page_size": size, "compressed_page_size": len(body)}
    if crc is not None:
        sizes["crc"] = crc - (1 << 32) if crc >> 31 else crc
    return to_bytes(extended_idl().PageHeader(**{**sizes, **fields, **page.fields})) + body


def store(made: Draft) -> bytes:
    """Return the bytes of the file: the column `v`, and a column `k` of row numbers behind it."""
    module = extended_idl()
    data = MAGIC + made.before
    start = len(data)
    dictionary_start = None
    if made.dictionary_page is not None:
        dictionary_start = start
        data += store_dictionary(made, made.dictionary_page)
    first = len(data)
    for number, page in enumerate(made.pages):
        data += made.extra_pages.get(number, b"") + store_page(made, page)
    data += made.extra_pages.get(len(made.pages), b"") + made.behind
    size = len(data) - start - len(made.behind) + made.counted
    facts = module.ColumnMetaData(
        type=made.kind.physical,
        encodings=sorted({made.kind.encoding, RLE, PLAIN}),
        path_in_schema=["v", "list", "element"] if made.layout == "list" else ["v"],
        codec=made.codec,
        num_values=sum(page.num_values for page in made.pages),
        total_uncompressed_size=size,
        total_compressed_size=size,
        data_page_offset=first,
        dictionary_page_offset=dictionary_start,
    )
    for edit in made.facts:
        edit(facts)
    chunks = [module.ColumnChunk(file_offset=start, meta_data=facts)]
    numbers = Draft(KINDS["int64"], "required", 1, [Page(list(range(ROWS)))], None)
    place = len(data)
    data += store_page(numbers, numbers.pages[0])
    numbers_facts = module.ColumnMetaData(
        type=INT64,
        encodings=[PLAIN],
        path_in_schema=["k"],
        codec=UNCOMPRESSED,
        num_values=ROWS,
        total_uncompressed_size=len(data) - place,
        total_compressed_size=len(data) - place,
        data_page_offset=place,
    )
    chunks.append(module.ColumnChunk(file_offset=place, meta_data=numbers_facts))
    footer = module.FileMetaData(
        version=1,
        schema=_schema(made),
        num_rows=ROWS,
        row_groups=[module.RowGroup(columns=chunks, total_byte_size=len(data) - 4, num_rows=ROWS)],
        created_by="Odd writer version 1.0.0",
    )
    for edit in made.edits:
        edit(footer)
    return with_footer(data, footer)


def _schema(made: Draft) -> list[Any]:
    element = extended_idl().SchemaElement
    leaf: dict[str, Any] = {"type": made.kind.physical, **made.kind.element}
    root = element(name="schema", num_children=2)
    numbers = element(name="k", type=INT64, repetition_type=REQUIRED)
    if made.layout == "list":
        outer = element(name="v", num_children=1, repetition_type=OPTIONAL, converted_type=LIST)
        middle = element(name="list", num_children=1, repetition_type=REPEATED)
        return [root, outer, middle, element(name="element", repetition_type=OPTIONAL, **leaf), numbers]
    repetition = OPTIONAL if made.layout == "optional" else REQUIRED
    return [root, element(name="v", repetition_type=repetition, **leaf), numbers]


Oddity = Callable[[Draft], Any]


def _set(name: str, value: Any) -> Oddity:
    """Return an oddity that sets an attribute of all data pages."""

    def change(made: Draft) -> None:
        for page in made.pages:
            setattr(page, name, value)

    return change


def _about(only: int = 0, **about: Any) -> Oddity:
    """Return an oddity that sets fields of the headers of data pages, of one version or both."""

    def change(made: Draft) -> Any:
        for page in made.pages:
            page.about |= about
        return not only or made.version == only

    return change


def _facts(**facts: Any) -> Oddity:
    """Return an oddity that sets fields of the ColumnMetaData."""

    def change(made: Draft) -> None:
        made.facts.append(lambda chunk: [setattr(chunk, name, value) for name, value in facts.items()])

    return change


def _footer(edit: Callable[[Any], Any]) -> Oddity:
    return lambda made: made.edits.append(edit)


def has_indices(made: Draft) -> bool:
    return made.dictionary is not None


def has_levels(made: Draft) -> bool:
    return made.layout != "required"


def _where(condition: Callable[[Draft], bool], change: Oddity) -> Oddity:
    """Return an oddity that applies to some files only."""
    return lambda made: condition(made) and change(made) is not False


def _behind(behind: bytes, counted: int | None = None) -> Oddity:
    def change(made: Draft) -> None:
        made.behind, made.counted = behind, len(behind) if counted is None else counted

    return change


def _insert_page(number: int) -> Oddity:
    def change(made: Draft) -> None:
        empty = Page([], None if made.layout == "required" else [], [] if made.layout == "list" else None)
        empty.encoding = made.kind.encoding
        made.pages.insert(number, empty)

    return change


def _index_page(number: int) -> Oddity:
    def change(made: Draft) -> None:
        module = extended_idl()
        header = module.PageHeader(
            type=1, uncompressed_page_size=4, compressed_page_size=4, index_page_header=module.IndexPageHeader()
        )
        made.extra_pages[number] = to_bytes(header) + b"\1\2\3\4"

    return change


def _compressed(codec: int, behind: bytes) -> Oddity:
    def change(made: Draft) -> None:
        made.codec = codec
        for page in [*made.pages, *filter(None, [made.dictionary_page])]:
            page.body = lambda body: body + behind

    return change


def _not_compressed(made: Draft) -> Any:
    made.codec = SNAPPY
    for page in made.pages:
        page.is_compressed = False
    return made.version == 2


def _dictionary(**what: Any) -> Oddity:
    def change(made: Draft) -> Any:
        for name, value in what.items():
            setattr(made.dictionary_page, name, value)

    return _where(has_indices, change)


def _more_entries(made: Draft) -> Any:
    assert made.dictionary_page is not None
    made.dictionary_page.values = [*made.dictionary_page.values, *made.dictionary_page.values]


def _one_entry(made: Draft) -> Any:
    assert made.dictionary is not None
    assert made.dictionary_page is not None
    for page in made.pages:
        page.values = [made.dictionary[0]] * len(page.values)
        page.index_width, page.encode_indices = 0, repeated
    made.dictionary_page.values = made.dictionary[:1]


def _all_null(made: Draft) -> Any:
    for page in made.pages:
        page.values = []
        page.definition = [0] * len(page.definition or [])
        page.repetition = None if page.repetition is None else [0] * len(page.repetition)
        page.section = lambda section: b""
    return made.layout == "optional"


def _delta_tail(made: Draft, change: Callable[[list[int]], bytes]) -> Any:
    for page in made.pages:
        numbers = page.values
        page.section = lambda section, numbers=numbers: change(numbers)
    return made.kind.encoding == DELTA_BINARY_PACKED and made.kind.physical == INT64


def _without_padding(made: Draft) -> Any:
    def cut(numbers: list[int]) -> bytes:
        whole = delta.encode(numbers, 64)
        end = whole.rstrip(b"\0")
        return end

    return _delta_tail(made, cut)


def _garbage_widths(made: Draft) -> Any:
    def change(numbers: list[int]) -> bytes:
        deltas = [after - before for before, after in pairwise(numbers)]
        least = min(deltas)
        width = max(value - least for value in deltas).bit_length()
        values = [value - least for value in deltas] + [0] * (32 - len(deltas))
        head = b"".join(map(hybrid_rle.uleb, (128, 4, len(numbers), delta.zigzag(numbers[0]), delta.zigzag(least))))
        return head + bytes([width, 77, 200, 255]) + hybrid_rle.pack(values, width)

    return _delta_tail(made, change)


def _more_deltas(made: Draft) -> Any:
    return _delta_tail(made, lambda numbers: delta.encode([*numbers, 1, 2, 3], 64))


def _more_lengths(made: Draft) -> Any:
    """The lengths are more than the values, with bytes for them."""
    for page in made.pages:
        values = [*page.values, b"more", b""]
        page.section = lambda section, values=values: delta.encode_length(values)
    return made.kind.encoding == DELTA_LENGTH_BYTE_ARRAY


def _without_bytes(made: Draft) -> Any:
    """Zeros are stored as no bytes."""
    for page in made.pages:
        page.values = [value.lstrip(b"\0") for value in page.values]
    if made.dictionary is not None and made.dictionary_page is not None:
        made.dictionary_page.values = made.dictionary = [value.lstrip(b"\0") for value in made.dictionary]


def _statistics(**values: Any) -> Oddity:
    return lambda made: made.facts.append(
        lambda chunk: setattr(chunk, "statistics", extended_idl().Statistics(**values))
    )


def _page_statistics(made: Draft) -> None:
    for page in made.pages:
        page.about["statistics"] = extended_idl().Statistics(max=b"abcdefghi" * 9, min=b"", null_count=99)


def _levels_are_empty(made: Draft) -> Any:
    for page in made.pages:
        page.levels = lambda section: b""
        assert page.definition is not None
        page.definition = [1] * len(page.definition)
        page.values = [made.kind.value(i) for i in range(len(page.definition))]
    return made.layout == "optional"


def _future(made: Draft) -> None:
    future = extended_idl().FutureStruct(number=5, bytes=b"abc", flag=True)
    for page in made.pages:
        page.fields["future"] = future
        page.about["future"] = future
    made.facts.append(lambda chunk: setattr(chunk, "future", future))
    made.edits.append(lambda footer: setattr(footer, "future", future))


def _wider(by: int) -> Oddity:
    def change(made: Draft) -> None:
        for page in made.pages:
            page.index_width += by

    return _where(has_indices, change)


def _data_page_offset_at_dictionary(missing: bool) -> Oddity:
    def edit(chunk: Any) -> None:
        chunk.data_page_offset = chunk.dictionary_page_offset
        if missing:
            chunk.dictionary_page_offset = None

    return _where(has_indices, lambda made: made.facts.append(edit))


def _add(name: str, by: int) -> Oddity:
    return lambda made: made.facts.append(lambda chunk: setattr(chunk, name, getattr(chunk, name) + by))


def _checksum(function: Callable[[int], int | None]) -> Oddity:
    return _set("crc", function)


def _sorted_columns(footer: Any) -> None:
    footer.row_groups[0].sorting_columns = [
        extended_idl().SortingColumn(column_idx=0, descending=True, nulls_first=True)
    ]


def _cut_group(numbers: Sequence[int], width: int) -> bytes:
    """Encode numbers in one bit-packed run that ends at the last byte needed."""
    whole = packed(numbers, width)
    return whole[: len(whole) - (-len(numbers) % 8 * width) // 8]


ODDITIES: dict[str, Oddity] = {
    "sound": lambda made: None,
    "zeros behind the values": _set("section", lambda section: section + bytes(8)),
    "garbage behind the values": _set("section", lambda section: section + b"\xfe\xff\xff"),
    "much behind the values": _set("section", lambda section: section + bytes(5000)),
    "zeros behind the levels": _where(has_levels, _set("levels", lambda levels: levels + bytes(2))),
    "garbage behind the levels": _where(has_levels, _set("levels", lambda levels: levels + b"\xff\xff\xff")),
    "empty run behind the levels": _where(
        has_levels, _set("encode_levels", lambda levels, width: packed(levels, width) + b"\0\0")
    ),
    "empty packed run behind the levels": _where(
        has_levels, _set("encode_levels", lambda levels, width: packed(levels, width) + b"\1")
    ),
    "levels' run is longer": _where(
        has_levels, _set("encode_levels", lambda levels, width: repeated(levels, width, 7))
    ),
    "levels' run is much longer": _where(
        has_levels, _set("encode_levels", lambda levels, width: repeated(levels, width, 1 << 20))
    ),
    "levels' groups are more": _where(
        has_levels, _set("encode_levels", lambda levels, width: packed([*levels, *[1] * 16], width))
    ),
    "levels' group is cut": _where(has_levels, _set("encode_levels", _cut_group)),
    "levels are empty": _where(has_levels, _levels_are_empty),
    "empty run behind the indices": _where(
        has_indices, _set("encode_indices", lambda indices, width: packed(indices, width) + b"\0\0")
    ),
    "empty run before the indices": _where(
        has_indices, _set("encode_indices", lambda indices, width: b"\0\0" + packed(indices, width))
    ),
    "empty run before the levels": _where(
        has_levels, _set("encode_levels", lambda levels, width: b"\0\0" + packed(levels, width))
    ),
    "indices' run is longer": _where(
        has_indices, _set("encode_indices", lambda indices, width: repeated(indices, width, 7))
    ),
    "indices' groups are more": _where(
        has_indices, _set("encode_indices", lambda indices, width: packed([*indices, *[7] * 16], width))
    ),
    "indices' group is cut": _where(has_indices, _set("encode_indices", _cut_group)),
    "indices are wider": _wider(1),
    "indices are much wider": _wider(20),
    "indices have no bits": _where(has_indices, _one_entry),
    "booleans' run is longer": _where(
        lambda made: made.kind.encoding == RLE,
        _set("encode_indices", lambda values, width: repeated(values, width, 7) + b"\0\0\0"),
    ),
    "num_nulls is 7": _about(2, num_nulls=7),
    "num_nulls is -1": _about(2, num_nulls=-1),
    "num_nulls is 0": _about(2, num_nulls=0),
    "num_nulls is huge": _about(2, num_nulls=1 << 30),
    "num_rows is 0": _about(2, num_rows=0),
    "num_rows is 7": _about(2, num_rows=7),
    "zeros behind the pages": _behind(bytes(16)),
    "garbage behind the pages": _behind(b"\xff\x15\x00\x07" * 4),
    "chunk is longer by 5": _behind(b"", 5),
    "chunk is longer by 16 than both sizes": _behind(b"", 16),
    "compressed size is longer by 10": _add("total_compressed_size", 10),
    "uncompressed size is 0": _facts(total_uncompressed_size=0),
    "uncompressed size is huge": _facts(total_uncompressed_size=1 << 40),
    "uncompressed size is negative": _facts(total_uncompressed_size=-1),
    "zeros behind the entries": _dictionary(section=lambda section: section + bytes(9)),
    "entries are more than used": _where(has_indices, _more_entries),
    "entries are said to be sorted": _dictionary(about={"is_sorted": True}),
    "dictionary page is PLAIN_DICTIONARY": _dictionary(about={"encoding": PLAIN_DICTIONARY}),
    "pages are PLAIN_DICTIONARY": _where(has_indices, _set("encoding", PLAIN_DICTIONARY)),
    "no dictionary_page_offset": _where(has_indices, _facts(dictionary_page_offset=None)),
    "dictionary_page_offset is 0": _facts(dictionary_page_offset=0),
    "data_page_offset is the dictionary's": _data_page_offset_at_dictionary(missing=False),
    "only data_page_offset, the dictionary's": _data_page_offset_at_dictionary(missing=True),
    "dictionary_page_offset without a dictionary": _where(
        lambda made: not has_indices(made),
        lambda made: made.facts.append(lambda chunk: setattr(chunk, "dictionary_page_offset", chunk.data_page_offset)),
    ),
    "no encodings": _facts(encodings=[]),
    "wrong encodings": _facts(encodings=[BIT_PACKED]),
    "chunk has fewer values": _add("num_values", -1),
    "chunk has more values": _add("num_values", 1),
    "empty page first": _insert_page(0),
    "empty page between": _insert_page(1),
    "empty page last": _insert_page(2),
    "index page first": _index_page(0),
    "index page between": _index_page(1),
    "index page last": _index_page(2),
    "last miniblock is cut": _without_padding,
    "unneeded miniblocks have widths": _garbage_widths,
    "deltas are more": _more_deltas,
    "lengths are more": _more_lengths,
    "decimals of no bytes": _where(lambda made: made.kind.element is DECIMAL, _without_bytes),
    "snappy": _compressed(SNAPPY, b""),
    "snappy with bytes behind": _compressed(SNAPPY, bytes(3)),
    "gzip with bytes behind": _compressed(GZIP, bytes(3)),
    "zstd with bytes behind": _compressed(ZSTD, bytes(3)),
    "uncompressed_page_size is 0": _set("fields", {"uncompressed_page_size": 0}),
    "uncompressed_page_size is larger": _set("fields", {"uncompressed_page_size": 999}),
    "is_compressed is false": _not_compressed,
    "is_compressed is true without a codec": _about(2, is_compressed=True),
    "no values are stored": _all_null,
    "footer says sorted": _footer(_sorted_columns),
    "unknown fields": _future,
    "statistics are short": _statistics(min_value=b"\1", max_value=b"\2"),
    "statistics are crossed": _statistics(min_value=b"\xff" * 8, max_value=bytes(8)),
    "null_count is negative": _statistics(null_count=-5),
    "null_count is huge": _statistics(null_count=1 << 40),
    "null_count is 0": _statistics(null_count=0),
    "distinct_count is negative": _statistics(distinct_count=-1),
    "page statistics are wrong": _page_statistics,
    "no created_by": _footer(lambda footer: setattr(footer, "created_by", None)),
    "odd created_by": _footer(lambda footer: setattr(footer, "created_by", "parquet-mr version x.y (build \xe9)")),
    "version is 0": _footer(lambda footer: setattr(footer, "version", 0)),
    "file_offset is 0": _footer(lambda footer: setattr(footer.row_groups[0].columns[0], "file_offset", 0)),
    "file_offset is beyond the file": _footer(
        lambda footer: setattr(footer.row_groups[0].columns[0], "file_offset", 1 << 40)
    ),
    "total_byte_size is 0": _footer(lambda footer: setattr(footer.row_groups[0], "total_byte_size", 0)),
    "num_rows of the file is wrong": _footer(lambda footer: setattr(footer, "num_rows", ROWS + 5)),
    "path_in_schema is wrong": _facts(path_in_schema=["other"]),
    "checksums": _checksum(lambda crc: crc),
    "checksums are wrong": _checksum(lambda crc: crc ^ 1),
    "definition levels are said to be bit-packed": _where(
        lambda made: not has_levels(made), _about(1, definition_level_encoding=BIT_PACKED)
    ),
    "repetition levels are said to be bit-packed": _where(
        lambda made: made.layout != "list", _about(1, repetition_level_encoding=BIT_PACKED)
    ),
    "level encodings are PLAIN": _where(
        lambda made: not has_levels(made),
        _about(1, repetition_level_encoding=PLAIN, definition_level_encoding=PLAIN),
    ),
    "bytes before the pages": lambda made: setattr(made, "before", bytes(11)),
    "bytes between the chunks": _behind(bytes(11), 0),
}


@dataclass(frozen=True)
class OddFile:
    """An odd file: how it was made, and its bytes."""

    oddity: str
    kind: str
    layout: str
    version: int
    data: bytes

    def __str__(self) -> str:
        return f"{self.oddity}: {self.kind}, {self.layout}, version {self.version}"


def make(name: str, kind: str, layout: str, version: int) -> OddFile | None:
    """Return an odd file; None if the oddity does not apply."""
    made = draft(kind, layout, version)
    if ODDITIES[name](made) is False:
        return None
    return OddFile(name, kind, layout, version, store(made))


def make_all(names: Sequence[str] = tuple(ODDITIES)) -> Iterator[OddFile]:
    """Yield each oddity of each kind of values, layout and page version."""
    for name, kind, layout, version in product(names, KINDS, LAYOUTS, VERSIONS):
        made = make(name, kind, layout, version)
        if made is not None:
            yield made
