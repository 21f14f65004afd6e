"""``_metadata`` and ``_common_metadata``: the footers of all files of a dataset in one, and their schema alone.

Row groups are copied as bytes, each chunk with the path of its file from the dataset's folder. Statistics are copied
but for what would mean something else, or be trusted where it must not be, under the one footer that all have there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import __version__
from ...assembly import CREATED_BY, MAGIC
from ...column.writers import Faults, faults_of
from ...errors import SchemaError, UnsupportedError, located
from ...leaves import Node
from ...metadata.agreement import agreed_columns
from ...metadata.encode import Encoded
from ...metadata.footer import Footer
from ...metadata.placed import placed_row_groups
from ...metadata.rewrite import take_apart
from ..names import COMMON_METADATA, METADATA
from .comparable import misread_under, without

__all__ = ["footer_of", "metadata_files"]


def footer_of(data: bytes) -> Footer:
    """Make a Footer of the bytes of a FileMetaData."""
    return Footer(np.frombuffer(data, np.uint8), len(data))


def metadata_files(files: Sequence[tuple[str, Footer]], columns: Sequence[Node], template: Footer) -> dict[str, bytes]:
    """Make both files.

    Parameters
    ----------
    files : sequence of (str, Footer)
        The files of the dataset, in the order of their rows: the path of each from the folder, and its footer.
    columns : sequence of Node
        The columns that all of them have.
    template : Footer
        That of one whose schema and keys the files get.

    Returns
    -------
    dict of str to bytes
        Contents by name.

    Raises
    ------
    SchemaError
        When a file has other columns.
    UnsupportedError
        When one is encrypted, or has pages that are read by who wrote them.
    """
    first = take_apart(template)
    groups: list[Encoded] = []
    num_rows = 0
    for name, footer in files:
        with located(file=name):
            _check_columns(footer, template, columns)
            _check_pages(footer)
            misread = misread_under(template, footer)
            groups += [without(group, misread) for group in placed_row_groups(footer, name)]
        num_rows += int(footer.row_group_num_rows.sum())
    created_by = CREATED_BY.format(version=__version__)
    contents = {METADATA: (groups, num_rows), COMMON_METADATA: ([], 0)}
    return {name: _file(first.encode(rows, count, {}, created_by)) for name, (rows, count) in contents.items()}


def _check_columns(footer: Footer, template: Footer, columns: Sequence[Node]) -> None:
    """Refuse a file whose chunks cannot be read by the schema of the others."""
    if footer.schema_part is template.schema_part:
        return
    if agreed_columns(footer, columns) != list(columns):
        raise SchemaError("a file that is there names parts of its columns otherwise, or has columns without nulls; "
                          "one _metadata cannot tell of both: write with write_metadata_file=False")  # fmt: skip


def _check_pages(footer: Footer) -> None:
    """Refuse a file whose pages are decoded by what their writer got wrong: who reads `_metadata` would not know."""
    if faults_of(footer.created_by) != Faults():
        writer = f"written by {footer.created_by!r}" if footer.created_by else "which does not say what wrote it"
        raise UnsupportedError(f"a file that is there, {writer}, has pages that are read in a way of their own; one "
                               "_metadata cannot tell of it: write with write_metadata_file=False")  # fmt: skip


def _file(footer: bytes) -> bytes:
    return MAGIC + footer + len(footer).to_bytes(4, "little") + MAGIC
