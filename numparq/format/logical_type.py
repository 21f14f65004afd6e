"""Logical types (LogicalTypes.md), read from the LogicalType or ConvertedType of a schema element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .thrift.idl import enum_value
from .thrift.layout import RecordLayout


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A logical type (LogicalTypes.md); parameters that the kind does not have are None.

    Attributes
    ----------
    kind : str
        Name in the LogicalType union, or INTERVAL or MAP_KEY_VALUE, which exist only as ConvertedType.
    bit_width, signed
        For INTEGER.
    unit : str
        MILLIS, MICROS or NANOS for TIME and TIMESTAMP; None for an unknown unit.
    utc : bool
        Whether TIME and TIMESTAMP are adjusted to UTC.
    precision, scale : int
        For DECIMAL; the precision is -1 if the file lacks it.
    crs : str
        For GEOMETRY and GEOGRAPHY; None if the file lacks it.
    algorithm : str
        For GEOGRAPHY; None if the file lacks it.
    version : int
        Specification version of VARIANT, if other than 1.
    """

    kind: str
    bit_width: int | None = None
    signed: bool | None = None
    unit: str | None = None
    utc: bool | None = None
    precision: int | None = None
    scale: int | None = None
    crs: str | None = None
    algorithm: str | None = None
    version: int | None = None

    def __str__(self) -> str:
        parameters = {
            "INTEGER": (self.bit_width, "signed" if self.signed else "unsigned"),
            "DECIMAL": (self.precision, self.scale),
            "TIME": (self.unit, "utc" if self.utc else "local"),
            "TIMESTAMP": (self.unit, "utc" if self.utc else "local"),
        }.get(self.kind, tuple(item for item in (self.crs, self.algorithm, self.version) if item is not None))
        return f"{self.kind}({', '.join(map(str, parameters))})" if parameters else self.kind


def _integer(bit_width: int, signed: bool) -> LogicalType:
    return LogicalType("INTEGER", bit_width=bit_width, signed=signed)


# ConvertedType -> LogicalType. TIME and TIMESTAMP without a LogicalType count as adjusted to UTC. DECIMAL (5) takes its
# parameters from the SchemaElement.
CONVERTED_TYPES: dict[int, LogicalType] = {
    0: LogicalType("STRING"),
    1: LogicalType("MAP"),
    2: LogicalType("MAP_KEY_VALUE"),
    3: LogicalType("LIST"),
    4: LogicalType("ENUM"),
    6: LogicalType("DATE"),
    7: LogicalType("TIME", unit="MILLIS", utc=True),
    8: LogicalType("TIME", unit="MICROS", utc=True),
    9: LogicalType("TIMESTAMP", unit="MILLIS", utc=True),
    10: LogicalType("TIMESTAMP", unit="MICROS", utc=True),
    11: _integer(8, False),
    12: _integer(16, False),
    13: _integer(32, False),
    14: _integer(64, False),
    15: _integer(8, True),
    16: _integer(16, True),
    17: _integer(32, True),
    18: _integer(64, True),
    19: LogicalType("JSON"),
    20: LogicalType("BSON"),
    21: LogicalType("INTERVAL"),
}
_CONVERTED_DECIMAL = 5
LEGACY_NULL_TYPE = 24  # never in the format: parquet-cpp wrote it before UNKNOWN existed


class LogicalTypeReader:
    """Reader of logical types from schema element records, cached by content.

    `text` returns the string at a position and of a length, as `Footer.text` does.
    """

    def __init__(self, element: RecordLayout, text: Callable[[int, int], str]) -> None:
        self._text = text
        self._slots = element.slots
        self._ids = {field.name: field.id for field in element.struct.fields}
        self._union = element.slots["logicalType"]
        assert self._union.record is not None
        self._words = slice(self._union.word, self._union.word + self._union.record.words)
        self._kinds = {1 << slot.field.id: slot for slot in self._union.record.slots.values()}
        self._made: dict[tuple[int, ...], LogicalType | None] = {}

    def read(self, element: Sequence[int]) -> LogicalType | None:
        """Return the logical type of a schema element record; None if it has none or an unknown one."""
        if element[0] >> self._ids["logicalType"] & 1:
            words = tuple(element[self._words])
            if words not in self._made:
                self._made[words] = self._make(words)
            return self._made[words]
        if not element[0] >> self._ids["converted_type"] & 1:
            return None
        converted = element[self._slots["converted_type"].word]
        if converted == _CONVERTED_DECIMAL:
            scale = max(element[self._slots["scale"].word], 0)
            return LogicalType("DECIMAL", precision=element[self._slots["precision"].word], scale=scale)
        if converted == LEGACY_NULL_TYPE:
            return LogicalType("UNKNOWN")
        return CONVERTED_TYPES.get(converted)

    def _make(self, words: Sequence[int]) -> LogicalType | None:
        kind = self._kinds.get(words[0])
        if kind is None:
            return None
        make = _PARAMETER_READERS.get(kind.field.name)
        if make is None or kind.record is None:
            return LogicalType(kind.field.name)
        fields = {
            name: words[kind.word + slot.word : kind.word + slot.word + 2] for name, slot in kind.record.slots.items()
        }
        return make(kind.field.name, fields, self._text)


_Fields = dict[str, Sequence[int]]  # one or two words of each parameter
_Text = Callable[[int, int], str]
_UNITS = {1 << 1: "MILLIS", 1 << 2: "MICROS", 1 << 3: "NANOS"}  # presence mask of TimeUnit


def _int_type(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    return _integer(fields["bitWidth"][0], bool(fields["isSigned"][0]))


def _decimal(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    return LogicalType(kind, precision=fields["precision"][0], scale=fields["scale"][0])


def _temporal(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    return LogicalType(kind, unit=_UNITS.get(fields["unit"][0]), utc=bool(fields["isAdjustedToUTC"][0]))


def _geometry(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    position, length = fields["crs"]
    return LogicalType(kind, crs=text(position, length) if position >= 0 else None)


def _geography(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    position, length = fields["crs"]
    number = fields["algorithm"][0]
    algorithm = str(enum_value("EdgeInterpolationAlgorithm", number)) if number >= 0 else None
    return LogicalType(kind, crs=text(position, length) if position >= 0 else None, algorithm=algorithm)


def _variant(kind: str, fields: _Fields, text: _Text) -> LogicalType:
    version = fields["specification_version"][0]
    return LogicalType(kind, version=version if version not in (_ABSENT, 1) else None)


_ABSENT = -1

# Kinds with parameters.
_PARAMETER_READERS: dict[str, Callable[[str, _Fields, _Text], LogicalType]] = {
    "INTEGER": _int_type,
    "DECIMAL": _decimal,
    "TIME": _temporal,
    "TIMESTAMP": _temporal,
    "VARIANT": _variant,
    "GEOMETRY": _geometry,
    "GEOGRAPHY": _geography,
}
