"""Ciphers of the pages of one column chunk: headers and bodies opened where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.errors import DecryptionError

from .aad import MAX_ORDINAL, ModuleId, ModuleType, module_aad
from .ciphers import CTR_OVERHEAD, GCM_OVERHEAD, decrypt_ctr, decrypt_gcm, make_gcm, module_length

if TYPE_CHECKING:
    import numpy as np

    from .key import Key


class ChunkCipher:
    """Cipher of the pages of one column chunk; threads may share it.

    Parameters
    ----------
    key : Key
        The key of the column.
    file_aad : bytes
        AAD prefix and `aad_file_unique`.
    row_group, leaf : int
        Ordinals of the chunk.
    is_ctr : bool
        Whether bodies are encrypted by CTR.
    """

    __slots__ = ("_aads", "_gcm", "_is_ctr", "_key")

    def __init__(self, key: Key, file_aad: bytes, row_group: int, leaf: int, is_ctr: bool) -> None:
        self._key, self._gcm, self._is_ctr = key, make_gcm(key), is_ctr
        self._aads = [module_aad(file_aad, ModuleId(kind, row_group, leaf)) for kind in ModuleType]

    def _page_aad(self, kind: int, page: int) -> bytes:
        if page > MAX_ORDINAL:
            raise DecryptionError(f"the column chunk has more than {MAX_ORDINAL + 1:,} data pages")
        return self._aads[kind] + page.to_bytes(2, "little")

    def open_header(self, raw: np.ndarray, position: int, end: int, page: int | None) -> int:
        """Decrypt the page header at a position, whose module ends before `end`; return its stored length.

        `page` is the ordinal of a data page; None: the dictionary page.
        """
        view = memoryview(raw)  # type: ignore[arg-type]
        length = module_length(view, position, end, GCM_OVERHEAD)
        module = view[position : position + length]
        if page is None:
            decrypt_gcm(self._gcm, module, self._aads[5], "dictionary page header")
        else:
            decrypt_gcm(self._gcm, module, self._page_aad(4, page), "page header")
        return length

    def open_body(self, raw: np.ndarray, start: int, stored_length: int, page: int | None) -> None:
        """Decrypt the body of a page, `stored_length` bytes from `start`; `page` is as in `open_header`."""
        view = memoryview(raw)  # type: ignore[arg-type]
        end = start + stored_length
        if module_length(view, start, end, CTR_OVERHEAD if self._is_ctr else GCM_OVERHEAD) != stored_length:
            raise DecryptionError("the length of the page differs from that in its header: the file was changed")
        if self._is_ctr:
            decrypt_ctr(self._key, view[start:end])
        elif page is None:
            decrypt_gcm(self._gcm, view[start:end], self._aads[3], "dictionary page")
        else:
            decrypt_gcm(self._gcm, view[start:end], self._page_aad(2, page), "data page")
