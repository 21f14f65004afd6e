"""Salvage a file: check the arguments, then repair by the damage found."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from numparq.dataset.listing.table_formats import check_plain_file
from numparq.errors import DecryptionError, InvalidFileError, ParquetError, UnsupportedError, error_context
from numparq.file.readable_file import ReadableFile
from numparq.format.bound_keys import bind_keys
from numparq.format.footer.tail import ENCRYPTED_MAGIC, leading_magic
from numparq.io.filesystem import is_url, strip_file_scheme
from numparq.io.local_source import FileSource
from numparq.kernels.enums import CODEC_NAMES
from numparq.keys.part_keys import encryption_of_part, keys_of_single_file
from numparq.keys.provider import as_encryption_keys, as_key_source
from numparq.tools.verify.deviations import Findings
from numparq.tools.verify.footer import check_footer
from numparq.util.regular_file import open_regular

from .damaged_pages import salvage_damaged_pages
from .keys import SalvageKeys
from .missing_footer import SalvageOptions, salvage_missing_footer
from .output import RestoredSource, Salvaged

if TYPE_CHECKING:
    from numparq.crypto.key import KeySource
    from numparq.typing import EncryptionKeys


def salvage(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    schema: Any = None,
    *,
    codec: str | None = None,
    row_group_size: int | None = None,
    force: bool = False,
    decryption: KeySource | str | None = None,
    encryption: EncryptionKeys | str | None = None,
    plaintext_output: bool = False,
    progress: bool = False,
    table_format: str = "auto",
) -> Salvaged:
    """Write what is left of a damaged file to a new file; the damaged file is not changed.

    A file without a footer is kept up to its last checkpoint, if its writer left any (`ParquetWriter` with
    ``checkpoint_row_groups``). After that, or if there is none, the pages are walked and decoded by the known schema
    to find where column chunks and row groups end. Pages are copied unchanged and a new footer is written. If more than
    one division fits, an error names the argument that decides; nothing is guessed.

    If the footer can be read, the new file has the rows and columns that ``read_parquet(on_error="skip")`` returns. A
    sound file is copied, and others are rewritten, or their intact row groups are kept unchanged. Stored types change
    only where rows would be lost, or metadata stay wrong, otherwise.
    The new file is read back before it gets its name. An encrypted file is always rewritten, since its pages belong to
    their place in it; nothing of it can be saved without its footer.

    Parameters
    ----------
    path : str or os.PathLike
        Damaged file.
    out : str or os.PathLike
        File to write. It appears under this name only when it is complete.
    schema : path, bytes-like, binary file object, or pyarrow.Schema, optional
        Columns of a file without any footer: a Parquet file of the same writer with the same columns (possibly without
        rows, such as ``_common_metadata``), or an Arrow schema.
    codec : str, optional
        Compression codec of the pages, if it cannot be found by decoding.
    row_group_size : int, optional
        Rows of each row group but the last, if the pages allow several divisions.
    force : bool, default False
        Whether to replace an existing `out`.
    decryption : Decryption or str, optional
        Keys of an encrypted file, or the name of their provider, as in `numparq.read_parquet`. Columns without a key
        are lost.
    encryption : Encryption or str, optional
        Keys of the new file, as in `numparq.to_parquet`.
    plaintext_output : bool, default False
        Whether the new file of an encrypted one is plain. One of it and `encryption` is needed for an encrypted file.
    progress : bool, default False
        Whether to show a progress bar, as in `numparq.read_parquet`.
    table_format : {"auto", "parquet"}
        Whether to refuse to write into tables of other systems, as in `numparq.to_parquet`.

    Returns
    -------
    Salvaged
        What was kept and what was lost.

    Raises
    ------
    DecryptionError
        If the footer is encrypted and its key was not given, or it does not authenticate.
    FileExistsError
        If `out` exists and `force` is False.
    InvalidFileError
        If nothing can be saved; the message says why.
    SchemaError
        If a schema is needed, or the one found is damaged.
    TypeError
        If `path` or `out` is not a path.
    UnsupportedError
        If `out` is in a table of another system.
    ValueError
        If `path` or `out` is a URL, `out` is the damaged file, the codec is unknown, or nothing says whether the new
        file of an encrypted one is to be encrypted.
    """
    path, out = _local_path(path), _local_path(out)
    with error_context(file=path):
        _check_arguments(path, out, force)
        number = _parse_codec(codec)
        keys = _check_keys(path, out, decryption, encryption, plaintext_output)
        check_plain_file(os.path.expanduser(out), table_format)
        source = FileSource(os.path.expanduser(path), open_regular)
        try:
            if _is_readable(path, keys.decryption):
                return salvage_damaged_pages(source, out, keys, progress)
            check_footer(source, Findings())  # refuses what is no Parquet file
            if source.size > 8 and leading_magic(source) == ENCRYPTED_MAGIC:
                raise InvalidFileError("the file is encrypted, and without its footer nothing of it can be decrypted")
            keys.check_missing_footer()
            return salvage_missing_footer(source, out, SalvageOptions(schema, number, row_group_size, progress))
        finally:
            source.close()


def _check_keys(
    path: str,
    out: str,
    decryption: KeySource | str | None,
    encryption: EncryptionKeys | str | None,
    plaintext_output: bool,
) -> SalvageKeys:
    """Check the arguments about keys, and bind the keys to their files."""
    if encryption is not None and plaintext_output:
        raise ValueError("encryption= and plaintext_output=True exclude each other")
    keys = keys_of_single_file(as_key_source(decryption), path)
    folder, name = os.path.split(os.path.abspath(os.path.expanduser(out)))
    return SalvageKeys(
        None if keys is None else bind_keys(keys, os.path.expanduser(path)),
        encryption_of_part(as_encryption_keys(encryption), folder, name, is_local=True),
        plaintext_output,
    )


def _is_readable(path: str | os.PathLike[str], keys: KeySource | None) -> bool:
    """Whether the footer can be read."""
    try:
        with ReadableFile(RestoredSource(path), decryption=keys):
            return True
    except (UnsupportedError, DecryptionError):
        raise
    except ParquetError:
        return False


def _local_path(path: Any) -> str:
    """Return a path on this machine, without the scheme of local files."""
    name = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(name, str):
        raise TypeError(f"salvage takes paths of local files, not {type(path).__name__}")
    if is_url(name):
        raise ValueError(f"salvage takes paths of local files, not URLs; copy the file to or from {name!r} yourself")
    return strip_file_scheme(name)


def _check_arguments(path: str, out: str, force: bool) -> None:
    here, there = (os.path.expanduser(each) for each in (path, out))
    if os.path.isdir(here):
        raise IsADirectoryError(errno.EISDIR, "path is a directory; salvage its files one by one", here)
    if os.path.exists(there) and os.path.samefile(here, there):
        raise ValueError("out is the damaged file, which is never changed; use another path")
    if os.path.lexists(there) and not force:
        raise FileExistsError(errno.EEXIST, "the file exists; force=True (--force) replaces it", there)


def _parse_codec(codec: str | None) -> int | None:
    if codec is None:
        return None
    name = {"NONE": "UNCOMPRESSED"}.get(codec.upper(), codec.upper())
    if name not in CODEC_NAMES:
        raise ValueError(f"codec must be one of {', '.join(CODEC_NAMES)}, not {codec!r}")
    return CODEC_NAMES.index(name)
