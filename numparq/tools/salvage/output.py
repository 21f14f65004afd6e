"""Write the salvaged file and report what was kept and lost."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numparq.errors import InvalidFileError, ParquetError
from numparq.file.readable_file import ReadableFile
from numparq.format.footer.tail import ENCRYPTED_MAGIC, MAGIC
from numparq.io.copy import copy_prefix
from numparq.io.local_sink import FileSink
from numparq.io.local_source import FileSource
from numparq.io.source import read_bytes
from numparq.util.pluralize import pluralize
from numparq.util.version import __version__

if TYPE_CHECKING:
    from numparq.typing import EncryptionKeys

    from .keys import WrittenKeys

# `created_by` of footers that have none.
SALVAGE_CREATED_BY = f"numparq-salvage version {__version__}"

_COPY_BYTES = 1 << 20  # bytes per read
TAIL_BYTES = 8


@dataclass
class Salvaged:
    """Report on a salvaged file.

    Attributes
    ----------
    num_rows, num_row_groups : int
        Rows and row groups of the new file.
    kept : list of str
        What was saved and how, in words.
    lost : list of str
        What was lost and why, in words.
    """

    num_rows: int = 0
    num_row_groups: int = 0
    kept: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"saved {pluralize(self.num_rows, 'row')} in {pluralize(self.num_row_groups, 'row group')}"]
        return "\n".join([*lines, *(f"kept: {line}" for line in self.kept), *(f"lost: {line}" for line in self.lost)])


@dataclass(frozen=True)
class NewFile:
    """The file to write: its path, keys, and whether to show a progress bar."""

    path: Any
    encryption: EncryptionKeys | None
    progress: bool


class RestoredSource(FileSource):
    """A local file that begins with the magic number, whatever its first bytes are."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(os.path.expanduser(os.fspath(path)))
        self._magic = MAGIC  # of a file so short that its end overlaps its beginning, too
        is_encrypted = self.size > len(MAGIC) and read_bytes(self, self.size - 4, 4) == ENCRYPTED_MAGIC
        self._magic = ENCRYPTED_MAGIC if is_encrypted else MAGIC

    def file_identity(self) -> None:
        """Return None: nothing of a damaged file is cached."""

    def _read_some(self, position: int, out: memoryview) -> int:
        count = super()._read_some(position, out)
        if position < len(MAGIC):
            out[: min(count, len(MAGIC) - position)] = self._magic[position : position + count]
        return count


class CheckedSink(FileSink):
    """A local file that is read back, all rows of all columns, before it gets its name.

    `num_rows` and `num_row_groups` are what was read back.
    """

    num_rows = num_row_groups = 0

    def __init__(self, out: str | os.PathLike[str], keys: WrittenKeys | None = None) -> None:
        super().__init__(os.path.expanduser(os.fspath(out)))
        self._keys = keys
        self.location = self.name, None, None  # where key material is stored

    def _complete(self) -> None:
        try:
            with ReadableFile(self.temporary, decryption=self._keys) as file:
                file.read(nrows=0)  # the columns of a file without rows
                for row_group in range(file.num_row_groups):
                    file.read(row_groups=[row_group])
                self.num_rows, self.num_row_groups = file.num_rows, file.num_row_groups
        except ParquetError as error:
            message = f"what is left cannot be read back: {error.message}; nothing was written"
            where = {part: error.where[part] for part in ("row_group", "column") if part in error.where}
            raise InvalidFileError(message, **where) from error
        super()._complete()


def write_salvaged(source: FileSource, out: Any, length: int, footer: bytes) -> None:
    """Write a sound magic number, bytes up to `length` of the source, and the footer (empty: none)."""
    with CheckedSink(out) as sink:
        if read_bytes(source, 0, len(MAGIC)) == MAGIC:
            copy_prefix(source.name, sink, length)
        else:
            sink.write(MAGIC)
            for position in range(len(MAGIC), length, _COPY_BYTES):
                sink.write(read_bytes(source, position, min(_COPY_BYTES, length - position)))
        if footer:
            sink.write(footer + len(footer).to_bytes(4, "little") + MAGIC)
