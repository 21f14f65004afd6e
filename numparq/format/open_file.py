"""An open file: byte source, footer, and its schema and key-value metadata, parsed on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

from numparq.crypto.key import check_named
from numparq.errors import InvalidFileError, ParquetError, UnsupportedError, error_context
from numparq.io.open import open_source
from numparq.io.opened_path import OpenedPath, Reopenable
from numparq.io.source import Source
from numparq.util.byte_budget_cache import CachedFile, file_cache

from .bound_keys import bind_keys
from .footer.file_metadata import Footer
from .footer.tail import buffer_tail, read_footer, tail_bytes
from .key_values.arrow import ArrowSchema
from .key_values.pandas import PandasMetadata
from .module_reader import ModuleReader
from .schema import Schema, footer_schema

if TYPE_CHECKING:
    import numpy as np

    from numparq.crypto.key import KeySource
    from numparq.io.coalesce import Coalescing
    from numparq.io.multi_file_source import MultiFileSource
    from numparq.typing import PathOrBuffer

    from .encryption_metadata import EncryptionMetadata
    from .geospatial import GeospatialColumn
    from .key_values.spark import SparkCalendar
    from .thrift.decode import Record

Parsed = TypeVar("Parsed")

_MAX_CACHED_VALUE_BYTES = 64 << 10  # key-value metadata above this size is parsed without a cache


class OpenFile(Reopenable):
    """An open file and its footer; everything else is parsed on first use.

    Copies and pickles hold the path, or the file's bytes; they open the file again at first use (`_FileReopener`).

    Attributes
    ----------
    source : Source
        Byte source; reads within `tail` cost no request.
    reader : ModuleReader
        Reader of everything but the footer.
    multi_file_source : MultiFileSource or None
        The same source if external column chunks are allowed.
    footer_start : int
        Offset of the footer.
    stamp : tuple, or None
        Size and modification time (ns) of a local file, or size and version of a remote one, when it was opened.
    user_coalescing : Coalescing or None
        The caller's coalescing, if given.
    calendar : SparkCalendar or None
        Calendar of a file that does not say, and whether INT96 are instants; set before `schema` is used.
    bloom_filters : dict
        Bloom filters read by `numparq.prune`, for later reads with this object.
    is_alias : bool
        Whether it was made by `alias`, so that parsed attributes need not be those of the footer.
    model : OpenFile or None
        Another file whose footer differs from this one's in its rows alone, if that is known (`UnparsedFile`).
    """

    _keys: KeySource | None = None
    calendar: SparkCalendar | None = None
    is_alias = False
    model: OpenFile | None = None
    multi_file_source: MultiFileSource | None = None

    def __init__(
        self,
        path: PathOrBuffer | Source,
        *,
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        external_files: bool = False,
        decryption: KeySource | None = None,
    ) -> None:
        if coalescing is not None:
            _check_coalescing(coalescing)
        self._opened_path: OpenedPath | None = OpenedPath(path, storage_options, filesystem)
        source, siblings = buffer_tail(open_source(path, storage_options, filesystem)), None
        if external_files:
            try:
                source = siblings = _with_sibling_files(source, path)
            except BaseException:
                source.close()
                raise
        try:
            keys = None if decryption is None else bind_keys(decryption, path, storage_options, filesystem)
        except BaseException:
            source.close()
            raise
        self._open(source, coalescing, keys)
        self._keys = decryption  # which a pickle may name; those of the file never travel
        self.multi_file_source = siblings

    @classmethod
    def from_source(
        cls,
        source: Source,
        coalescing: Coalescing | None,
        calendar: SparkCalendar | None,
        decryption: KeySource | None = None,
    ) -> Self:
        """Open a file that is one of many, with its tail in memory; it cannot be pickled.

        `decryption` is bound to the file (`bind_keys`).
        """
        file = object.__new__(cls)
        file._opened_path, file.calendar = None, calendar
        file._open(source, coalescing, decryption)
        return file

    def _open(self, source: Source, coalescing: Coalescing | None, keys: KeySource | None = None) -> None:
        """Read the footer; if that fails, close the source."""
        self._is_closed, self._keys = False, keys
        self.user_coalescing = coalescing
        self.source: Source = source
        self.bloom_filters: dict[Any, Any] = {}
        self._current_stamp: Callable[[], tuple[Any, Any] | None] = getattr(source, "stamp", _without_stamp)
        try:
            self.footer: Footer
            self.footer, self.footer_start = read_footer(source, keys)
            self.reader = ModuleReader(source, coalescing, self.footer.keys)
            self.stamp = getattr(source, "stamp_as_read", None) or self._current_stamp()
        except BaseException as error:
            try:
                if isinstance(error, ParquetError):
                    error.where.setdefault("file", source.name)
                    if source.is_remote and source.current_stamp() != source.stamp_as_read:  # type: ignore[attr-defined]
                        from numparq.io.remote_version import replaced_file_error

                        raise replaced_file_error(source.name) from error
            finally:
                source.close()
            raise

    @property
    def has_keys(self) -> bool:
        """Whether it was opened with keys."""
        return self._keys is not None

    @cached_property
    def entry(self) -> CachedFile:
        """Page indexes for later reads; shared by all that open a local file with the same identity and footer."""
        identity = getattr(self.source, "file_identity", _without_stamp)()
        if identity is None:
            return CachedFile()
        content, keys = self.footer.end_digest, self.footer.keys
        return file_cache().entry((identity, content) if keys is None else (identity, content, keys.identity))

    def check_unchanged(self) -> None:
        """Raise InvalidFileError if the file's size, modification time or version changed since it was opened.

        For a remote file that costs a request, unless all of its bytes so far were read by one.
        """
        if self._current_stamp() != self.stamp:
            if self.source.is_remote:
                from numparq.io.remote_version import replaced_file_error

                raise replaced_file_error(self.source.name)
            raise InvalidFileError("the file has changed since it was opened: open it again", file=self.source.name)

    def data_end(self, position: int) -> int:
        """Return the end of the data of the file that has the byte at a position."""
        return self.footer_start

    @property
    def coalescing(self) -> Coalescing:
        """The caller's coalescing, or the default for local files or object stores."""
        return self.reader.coalescing

    @property
    def tail(self) -> np.ndarray:
        """The last bytes of the file (uint8, 64 KiB or the whole file), read together with the footer."""
        return tail_bytes(self.source)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.footer.row_group_num_rows.sum())

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return len(self.footer.row_group_num_rows)

    @cached_property
    def schema(self) -> Schema:
        """The schema of the file."""
        known: Schema | None = self.footer.plain_schema if self.calendar is None else None
        if known is not None:
            return known
        with error_context(file=self.source.name):
            return footer_schema(self.footer, self.calendar)

    @cached_property
    def metadata(self) -> Record:
        """The complete FileMetaData."""
        with error_context(file=self.source.name):
            return self.footer.record

    @cached_property
    def encryption(self) -> EncryptionMetadata | None:
        """How the file is encrypted, known without keys; None: it is not."""
        from .footer.read_encryption import read_encryption

        with error_context(file=self.source.name):
            return read_encryption(self.source, self.footer)

    @cached_property
    def geospatial(self) -> dict[str, GeospatialColumn]:
        """Geospatial columns by name: kind, CRS, bounding boxes (Geospatial.md)."""
        from .geospatial import find_geospatial_columns

        with error_context(file=self.source.name):
            return find_geospatial_columns(self.footer, self.schema)

    @cached_property
    def pandas_metadata(self) -> PandasMetadata | None:
        """Metadata of the written DataFrame (`pandas` key), if any."""
        return self.footer.cache.get_or_make("pandas", self._pandas_metadata)

    def _pandas_metadata(self) -> PandasMetadata | None:
        keys = self.footer.key_value_metadata
        return _parse_cached(
            PandasMetadata.parse, keys.text("pandas"), keys.text("PANDAS_ATTRS"), self.is_written_by_numparq
        )

    @cached_property
    def arrow_schema(self) -> ArrowSchema:
        """The writer's Arrow schema (`ARROW:schema` key)."""
        return self.footer.cache.get_or_make("ARROW:schema", self._arrow_schema)

    def _arrow_schema(self) -> ArrowSchema:
        keys, count = self.footer.key_value_metadata, self.schema.num_columns
        if keys.sizes().get("ARROW:schema", 0) > _MAX_CACHED_VALUE_BYTES:
            return ArrowSchema(keys.view("ARROW:schema"), count)
        return _parse_cached(ArrowSchema, keys.get("ARROW:schema"), count)

    @property
    def is_written_by_numparq(self) -> bool:
        """Whether numparq wrote the file; then dtypes that pyarrow loses are restored."""
        return (self.footer.created_by or "").startswith("numparq version")

    def close(self) -> None:
        """Close the source if it was opened here."""
        self._is_closed = True
        self.source.close()

    def alias(self) -> Self:
        """Return another object for the same open file: parsed attributes can be replaced in it."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.is_alias = True
        return made

    def _reopener(self) -> _FileReopener:
        check_named(self._keys, "a file")
        path = None if self._opened_path is None else self._opened_path.path
        if self._opened_path is None or not isinstance(path, (str, os.PathLike, bytes, bytearray, memoryview)):
            raise TypeError(
                f"a file opened from a {type(path).__name__} cannot be pickled or copied; open it by its path, or pass "
                "its bytes"
            )
        return _FileReopener(
            self._opened_path if isinstance(path, (str, os.PathLike)) else OpenedPath(bytes(path)),
            self.user_coalescing,
            self.multi_file_source is not None,
            self.calendar,
            self._is_closed,
            self._identity(),
            self._keys,
        )

    def _identity(self) -> tuple[object, ...]:
        """Return what changes with the file's content: its size, time of modification, and a hash of its footer."""
        return self.source.size, self.stamp, self.footer.content_digest


@dataclass(frozen=True)
class _FileReopener:
    """Opens a file again, if it has not changed."""

    path: OpenedPath
    coalescing: Coalescing | None
    external_files: bool
    calendar: SparkCalendar | None
    is_closed: bool
    identity: tuple[object, ...]
    decryption: KeySource | None = None

    def __call__(self) -> OpenFile:
        at = self.path.from_here()
        file = OpenFile(
            at.path,
            storage_options=at.storage_options,
            filesystem=at.filesystem,
            coalescing=self.coalescing,
            external_files=self.external_files,
            decryption=self.decryption,
        )
        file.calendar = self.calendar
        is_same = file._identity() == self.identity
        if self.is_closed or not is_same:
            file.close()
        if not is_same:
            raise InvalidFileError("the file has changed since it was pickled: open it again", file=file.source.name)
        return file


def _without_stamp() -> None:
    """Return None: the source has no stamp."""


def _parse_cached(make: Callable[..., Parsed], *values: Any) -> Parsed:
    """Parse footer values, cached by content unless they are large."""
    size = sum(len(value) for value in values if isinstance(value, (bytes, str)))
    parsed: Parsed = _parse_with_lru(make, *values) if size <= _MAX_CACHED_VALUE_BYTES else make(*values)
    return parsed


@lru_cache(maxsize=128)
def _parse_with_lru(make: Callable[..., Any], *values: Any) -> Any:
    return make(*values)


def _check_coalescing(coalescing: Any) -> None:
    from numparq.io.coalesce import Coalescing

    if not isinstance(coalescing, Coalescing):
        raise TypeError(f"coalescing must be a numparq.Coalescing or None, not {type(coalescing).__name__}")


def _with_sibling_files(source: Source, path: PathOrBuffer | Source) -> MultiFileSource:
    """Open sibling files as the file's column chunks name them."""
    from numparq.io.multi_file_source import MultiFileSource
    from numparq.io.sibling_files import SiblingFiles

    if source.is_remote:
        raise UnsupportedError("external_files=True needs a local file: sibling files of a remote file are not opened")
    return MultiFileSource(source, SiblingFiles(path))
