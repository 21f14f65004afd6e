"""Row groups of one file as the footer of another describes them: every column chunk names the file that it is in.

Nothing is decoded: the name is put in front of what each struct has.
"""

from __future__ import annotations

from ..kernels import compact_wire as wire
from .encode import Encoded, encode_value, field_header
from .footer import Footer
from .rewrite import take_apart

__all__ = ["placed_row_groups"]

_FILE_PATH = 1  # the id of the field, the first of ColumnChunk


def placed_row_groups(footer: Footer, file_path: str) -> list[Encoded]:
    """Give the row groups of a file as another file has them that lies beside or above it.

    Parameters
    ----------
    footer : Footer
        That of the file whose row groups they are.
    file_path : str
        Its path, from the folder of the other.

    Returns
    -------
    list of Encoded
        RowGroup structs.

    Raises
    ------
    UnsupportedError
        When the file is encrypted, or its row groups are in other files themselves.
    """
    parts = take_apart(footer)
    path = field_header(_FILE_PATH, wire.BINARY) + encode_value("ColumnChunk", "file_path", file_path)
    found = []
    for start, group, chunks in zip(parts.starts, parts.row_groups, footer.chunks.starts.tolist(), strict=True):
        out, at = bytearray(), 0
        for chunk in chunks:
            out += group[at : chunk - start] + path
            at = chunk - start
            header = group[at]
            if header >> 4:  # says how far its field's id is from the one before, which is now that of the path
                out.append(header - (_FILE_PATH << 4))
                at += 1
        found.append(Encoded(bytes(out) + group[at:]))
    return found
