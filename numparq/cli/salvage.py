"""`numparq salvage`: write what is readable of a damaged file to a new file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from numparq.errors import ParquetError
from numparq.tools.salvage.file import salvage as save

from . import describe_error

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.typing import EncryptionKeys

COMPLETE, PARTIAL, NOTHING = 0, 1, 2


def salvage(
    file: str,
    out: str,
    schema: str | None,
    codec: str | None,
    row_group_size: int | None,
    force: bool,
    table_format: str,
    decryption: KeySource | None,
    encryption: EncryptionKeys | None,
    plaintext_output: bool,
) -> int:
    """Salvage a file and print what was kept and lost.

    Return 0 if nothing was lost, 1 if something was, 2 if nothing could be saved.
    """
    try:
        saved = save(
            file,
            out,
            schema,
            codec=codec,
            row_group_size=row_group_size,
            force=force,
            decryption=decryption,
            encryption=encryption,
            plaintext_output=plaintext_output,
            progress=True,
            table_format=table_format,
        )
    except (ParquetError, OSError, ValueError) as error:
        print(f"numparq: {describe_error(error)}", file=sys.stderr)
        return NOTHING
    print(saved)
    return PARTIAL if saved.lost else COMPLETE
