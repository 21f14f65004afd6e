"""The footer key `numparq.skipping`: what a part that numparq wrote knows of its files besides the cells."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from numparq.dataset.prune.file_query import PrunedFiles
from numparq.dataset.schema_merge.schema_file import without_rows
from numparq.dataset.schema_merge.schema_groups import schema_key
from numparq.errors import ParquetError
from numparq.format.open_file import OpenFile

OWN_KEY = "numparq.skipping"
_FORMAT = 1
_MOST_BYTES = 64 << 20  # of the records, uncompressed; parts of more have none
_MOST_SCHEMAS = 1000
_NONE, _SOME, _UNKNOWN = range(3)  # nulls of a leaf in a file, by its footer
_NO_SCHEMA = -1


@dataclass(frozen=True)
class FileColumnsRecord:
    """Columns of one file, as its footer says.

    Attributes
    ----------
    schema : bytes
        A file without rows that has its columns; equal for files of equal columns and writers.
    states : bytes
        Whether it has rows (1 or 0), then for each leaf whether it has nulls.
    """

    schema: bytes
    states: bytes


class ColumnsRecorder:
    """Builder of the records of files; files of equal columns share one schema."""

    def __init__(self) -> None:
        self._schemas: dict[object, bytes] = {}

    def record(self, file: OpenFile) -> FileColumnsRecord:
        """Return the record of a file."""
        key = schema_key(file), file.footer.created_by
        schema = self._schemas.get(key)
        if schema is None:
            schema = self._schemas[key] = without_rows(file)
        return FileColumnsRecord(schema, bytes([int(file.num_rows > 0)]) + _null_states(file))


def _null_states(file: OpenFile) -> bytes:
    num_leaves = file.schema.num_leaves
    if not num_leaves:
        return b""
    counts = file.footer.chunks.read_table(range(file.num_row_groups), range(num_leaves))["null_count"]
    if not len(counts):
        return bytes(num_leaves)
    states = np.where((counts < 0).any(axis=0), _UNKNOWN, (counts.sum(axis=0) > 0).astype(np.int64))
    return states.astype(np.uint8).tobytes()


@dataclass(frozen=True)
class OwnMetadata:
    """Knowledge of a part that numparq wrote about its files.

    Attributes
    ----------
    dataset : str
        URI or absolute path of the dataset.
    bucket : str
        Bucket of an object store, which object names leave out.
    changed : int
        Latest change time of a local file when it was listed, in nanoseconds; 0 if that is not known.
    local_times : tuple of str
        Columns of the part whose INT96 hold local times.
    schemas : sequence of bytes
        Files without rows that have the columns of the part's files.
    schema_of : int32 array, (rows,)
        Ordinal of each file's schema; -1 if that is not known.
    states : sequence of bytes
        Of each file that has a schema, the states of `FileColumnsRecord`, one after another.
    """

    dataset: str
    bucket: str = ""
    changed: int = 0
    local_times: tuple[str, ...] = ()
    schemas: Sequence[bytes] = ()
    schema_of: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    states: bytes = b""

    @classmethod
    def from_records(
        cls, dataset: OwnMetadata, local_times: tuple[str, ...], records: Sequence[FileColumnsRecord | None]
    ) -> OwnMetadata:
        """Build the metadata of a part with one record a row, None where there is none; `dataset` is of all parts."""
        schemas: dict[bytes, int] = {}
        ordinals = [
            _NO_SCHEMA if record is None else schemas.setdefault(record.schema, len(schemas)) for record in records
        ]
        states = b"".join(record.states for record in records if record is not None)
        if len(states) + 4 * len(records) > _MOST_BYTES or len(schemas) > _MOST_SCHEMAS:
            return replace(dataset, local_times=local_times)
        return replace(
            dataset,
            local_times=local_times,
            schemas=list(schemas),
            schema_of=np.array(ordinals, np.int32),
            states=states,
        )

    def encode(self) -> str:
        """Return the value of the footer key."""
        return json.dumps(
            {
                "format": _FORMAT,
                "dataset": self.dataset,
                "bucket": self.bucket,
                "changed": self.changed,
                "local_times": list(self.local_times),
                "schemas": [_pack(schema) for schema in self.schemas],
                "files": _pack(self.schema_of.astype("<i4").tobytes()),
                "states": _pack(self.states),
            }
        )

    @classmethod
    def decode(cls, text: str | None) -> OwnMetadata | None:
        """Parse the value of the footer key; None without one, or if it is damaged or of another format."""
        try:
            parts = None if text is None else json.loads(text)
            if not isinstance(parts, dict) or parts.get("format") != _FORMAT:
                return None
            schemas = [_unpack(each) for each in parts["schemas"][:_MOST_SCHEMAS]]
            ordinals = np.frombuffer(_unpack(parts["files"]), "<i4").astype(np.int32)
            if type(parts["changed"]) is not int:
                return None
            names = str(parts["dataset"]), str(parts["bucket"])
            local_times = tuple(map(str, parts["local_times"]))
            return cls(*names, parts["changed"], local_times, schemas, ordinals, _unpack(parts["states"]))
        except (ValueError, KeyError, TypeError, RecursionError, zlib.error, binascii.Error):
            return None

    def records(self) -> list[FileColumnsRecord | None]:
        """Return the record of each row, None where there is none."""
        ends = self._ends
        return [
            None if ordinal < 0 else FileColumnsRecord(self.schemas[ordinal], self.states[ends[row] : ends[row + 1]])
            for row, ordinal in enumerate(self._sound_ordinals.tolist())
        ]

    @cached_property
    def files(self) -> list[OpenFile | None]:
        """The schemas as open files; None for one that cannot be read."""
        opened: list[OpenFile | None] = []
        for schema in self.schemas:
            try:
                file = OpenFile(schema)
                _ = file.schema
                opened.append(file)
            except ParquetError:
                opened.append(None)
        return opened

    @cached_property
    def _sound_ordinals(self) -> np.ndarray:
        """Ordinals of the schemas that can be read; if the states do not fit them, none."""
        known = np.array([file is not None for file in self.files] + [False])
        in_range = (self.schema_of >= 0) & (self.schema_of < len(self.schemas))
        ordinals = np.where(in_range & known[np.where(in_range, self.schema_of, -1)], self.schema_of, _NO_SCHEMA)
        is_sound = np.array_equal(ordinals, self.schema_of) and int(self._lengths(ordinals).sum()) == len(self.states)
        return ordinals if is_sound else np.full(len(ordinals), _NO_SCHEMA, np.int32)

    def _lengths(self, ordinals: np.ndarray) -> np.ndarray:
        sizes = np.array([0 if file is None else 1 + file.schema.num_leaves for file in self.files] + [0], np.int64)
        lengths: np.ndarray = sizes[ordinals]
        return lengths

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self._lengths(self._sound_ordinals))])

    def pruned_files(self, rows: np.ndarray, ordinals: np.ndarray) -> list[PrunedFiles] | None:
        """Return the columns of some rows' files, whose ordinals in the query are given; None if one is not known."""
        if len(rows) and (len(self._sound_ordinals) <= rows.max() or (self._sound_ordinals[rows] < 0).any()):
            return None
        pruned = []
        for ordinal in np.unique(self._sound_ordinals[rows]).tolist():
            chosen = self._sound_ordinals[rows] == ordinal
            file = self.files[ordinal]
            assert file is not None
            width = 1 + file.schema.num_leaves
            data = np.frombuffer(self.states, np.uint8)
            states = data[self._ends[rows[chosen]][:, None] + np.arange(width)]
            with_rows = states[states[:, 0] > 0, 1:]
            unknown, some = (with_rows == _UNKNOWN).any(axis=0), (with_rows == _SOME).any(axis=0)
            counts = [
                None if is_unknown else int(has)
                for is_unknown, has in zip(unknown.tolist(), some.tolist(), strict=True)
            ]
            first = int(ordinals[chosen].min())
            pruned.append(
                PrunedFiles(OpenFile(self.schemas[ordinal]), first, len(states), bool(len(with_rows)), counts)
            )
        return pruned


def _pack(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _unpack(text: str) -> bytes:
    decoder = zlib.decompressobj()
    data = decoder.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
    if not decoder.eof:
        raise ValueError("it is cut, or larger than a part's")
    return data
