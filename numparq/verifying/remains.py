"""What is left of a file that has no footer: the last one of a checkpoint, and pages that look whole."""

from __future__ import annotations

from ..errors import InvalidFileError
from ..io.source import Source
from ..kernels.tables import DICTIONARY_PAGE
from ..metadata.recovery import last_footer_in
from .walk import walk_pages

__all__ = ["describe_remains"]

_MAGIC_BYTES = 4


def describe_remains(source: Source) -> list[str]:
    """Say what could be saved of a file.

    Parameters
    ----------
    source : Source
        The file, whose footer is gone.

    Returns
    -------
    list of str
        Lines for a report.
    """
    start = _MAGIC_BYTES
    try:
        checkpoint = last_footer_in(source)
    except InvalidFileError as error:
        lines = [error.message]
    else:
        start = checkpoint.end
        lines = [f"a footer that was left on the way ends at byte {start:,}: up to there it is a good file of "
                 f"{checkpoint.num_rows:,} rows in {checkpoint.num_row_groups:,} row groups"]  # fmt: skip
    walk = walk_pages(source, start)
    if not walk.pages:
        return [*lines, f"there is no page behind it, from byte {start:,} on"] if start > _MAGIC_BYTES else lines
    dictionaries = sum(page.header["type"] == DICTIONARY_PAGE for page in walk.pages)
    values = sum(page.about["num_values"] for page in walk.pages if page.header["type"] != DICTIONARY_PAGE)
    lines.append(
        f"from byte {start:,} to {walk.end:,} there are {len(walk.pages):,} pages that look whole ({dictionaries:,} of "
        f"them dictionaries, {walk.num_checksums:,} with a checksum that is right), with {values:,} values"
    )
    if walk.end < source.size:
        lines.append(f"{source.size - walk.end:,} bytes are behind them; {walk.reason}")
    return [*lines, "numparq salvage can make a good file of what is whole"]
