"""An open file: byte source, footer, and its schema and key-value metadata, parsed on first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from numparq.errors import InvalidFileError, ParquetError, UnsupportedError, error_context
from numparq.io.open import open_source
from numparq.io.source import Source

from .footer.file_metadata import Footer
from .footer.tail import buffer_tail, read_footer, tail_bytes
from .key_values.arrow import ArrowSchema
from .key_values.pandas import PandasMetadata
from .schema import Schema, footer_schema

if TYPE_CHECKING:
    import numpy as np

    from numparq.io.coalesce import Coalescing
    from numparq.io.multi_file_source import MultiFileSource
    from numparq.typing import PathOrBuffer

    from .geospatial import GeospatialColumn
    from .thrift.decode import Record

Parsed = TypeVar("Parsed")

_MAX_CACHED_VALUE_BYTES = 64 << 10  # key-value metadata above this size is parsed without a cache


class OpenFile:
    """An open file and its footer; everything else is parsed on first use.

    Attributes
    ----------
    source : Source
        Byte source; reads within `tail` cost no request.
    multi_file_source : MultiFileSource or None
        The same source if external column chunks are allowed.
    footer_start : int
        Offset of the footer.
    user_coalescing : Coalescing or None
        The caller's coalescing, if given.
    index_cache : dict
        Page indexes and Bloom filters read by `numparq.prune`, for later reads. Threads may read the same one twice.
    """

    def __init__(
        self,
        path: PathOrBuffer | Source,
        *,
        storage_options: dict[str, Any] | None = None,
        filesystem: Any = None,
        coalescing: Coalescing | None = None,
        external_files: bool = False,
    ) -> None:
        if coalescing is not None:
            _check_coalescing(coalescing)
        self.user_coalescing = coalescing
        self.source: Source = buffer_tail(open_source(path, storage_options, filesystem))
        self.multi_file_source: MultiFileSource | None = None
        self.index_cache: dict[Any, Any] = {}
        try:
            if external_files:
                self.source = self.multi_file_source = _with_sibling_files(self.source, path)
            self.footer: Footer
            self.footer, self.footer_start = read_footer(self.source)
            self._current_stamp: Callable[[], object] = getattr(self.source, "stamp", _without_stamp)
            self._stamp = self._current_stamp()
        except BaseException as error:
            if isinstance(error, ParquetError):
                error.where.setdefault("file", self.source.name)
            self.source.close()
            raise

    def check_unchanged(self) -> None:
        """Raise InvalidFileError if a local file's size or modification time changed since it was opened."""
        if self._current_stamp() != self._stamp:
            raise InvalidFileError("the file has changed since it was opened: open it again", file=self.source.name)

    @cached_property
    def coalescing(self) -> Coalescing:
        """The caller's coalescing, or the default for local files or object stores."""
        from numparq.io.coalesce import LOCAL_COALESCING, OBJECT_STORE_COALESCING

        return self.user_coalescing or (OBJECT_STORE_COALESCING if self.source.is_remote else LOCAL_COALESCING)

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
        with error_context(file=self.source.name):
            return footer_schema(self.footer)

    @cached_property
    def metadata(self) -> Record:
        """The complete FileMetaData."""
        with error_context(file=self.source.name):
            return self.footer.record

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
            PandasMetadata.parse, keys.get("pandas"), keys.get("PANDAS_ATTRS"), self.is_written_by_numparq
        )

    @cached_property
    def arrow_schema(self) -> ArrowSchema:
        """The writer's Arrow schema (`ARROW:schema` key)."""
        return self.footer.cache.get_or_make("ARROW:schema", self._arrow_schema)

    def _arrow_schema(self) -> ArrowSchema:
        return _parse_cached(ArrowSchema, self.footer.key_value_metadata.get("ARROW:schema"), len(self.schema.columns))

    @property
    def is_written_by_numparq(self) -> bool:
        """Whether numparq wrote the file; then dtypes that pyarrow loses are restored."""
        return (self.footer.created_by or "").startswith("numparq version")

    def close(self) -> None:
        """Close the source if it was opened here."""
        self.source.close()


def _without_stamp() -> None:
    """Return None: the source has no stamp."""


def _parse_cached(make: Callable[..., Parsed], *values: Any) -> Parsed:
    """Parse footer values, cached by content unless they are large."""
    size = sum(len(value) for value in values if isinstance(value, bytes))
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
