"""``numparq salvage``: what is left of a damaged file, as a good one."""

from __future__ import annotations

import sys

from ..errors import ParquetError
from ..salvaging import salvage as save

WHOLE, PARTLY, NOTHING = 0, 1, 2


def salvage(file: str, out: str, schema: str | None, codec: str | None, row_group_size: int | None, force: bool) -> int:
    """Save what can be saved, and print what was kept and lost.

    Returns
    -------
    int
        0 where nothing was lost, 1 where something was, 2 where nothing could be saved.
    """
    try:
        saved = save(file, out, schema, codec=codec, row_group_size=row_group_size, force=force)
    except (ParquetError, OSError, ValueError) as error:
        print(f"numparq: {error}", file=sys.stderr)
        return NOTHING
    print(saved)
    return PARTLY if saved.lost else WHOLE
