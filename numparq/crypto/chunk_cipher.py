"""Ciphers of the pages of one column chunk: headers and bodies opened where they lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.errors import DecryptionError

from .aad import MAX_ORDINAL, ModuleId, ModuleType, module_aad
from .ciphers import (
    CTR_OVERHEAD,
    GCM_OVERHEAD,
    LENGTH_BYTES,
    PLAINTEXT_OFFSET,
    TAG_BYTES,
    apply_counter_mode,
    failure,
    make_gcm,
    module_length,
)

if TYPE_CHECKING:
    from .key import Key

_DATA_PAGE, _DICTIONARY_PAGE = ModuleType.DATA_PAGE, ModuleType.DICTIONARY_PAGE
_DATA_HEADER, _DICTIONARY_HEADER = ModuleType.DATA_PAGE_HEADER, ModuleType.DICTIONARY_PAGE_HEADER


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

    __slots__ = ("_aads", "_decrypt", "_gcm", "_invalid_tag", "_is_ctr")

    def __init__(self, key: Key, file_aad: bytes, row_group: int, leaf: int, is_ctr: bool) -> None:
        self._gcm, self._is_ctr = make_gcm(key), is_ctr
        self._aads = [module_aad(file_aad, ModuleId(kind, row_group, leaf)) for kind in ModuleType]
        from cryptography.exceptions import InvalidTag

        self._decrypt, self._invalid_tag = self._gcm.decrypt_into, InvalidTag

    def open_header(self, raw: memoryview, position: int, end: int, page: int | None) -> int:
        """Decrypt the page header at a position, whose module ends before `end`; return its stored length.

        `page` is the ordinal of a data page; None: the dictionary page.
        """
        length = module_length(raw, position, end, GCM_OVERHEAD)
        self._open(raw[position : position + length], _DICTIONARY_HEADER if page is None else _DATA_HEADER, page)
        return length

    def open_body(self, raw: memoryview, start: int, stored_length: int, page: int | None) -> None:
        """Decrypt the body of a page, `stored_length` bytes from `start`; `page` is as in `open_header`."""
        end = start + stored_length
        if module_length(raw, start, end, CTR_OVERHEAD if self._is_ctr else GCM_OVERHEAD) != stored_length:
            raise DecryptionError("the length of the page differs from that in its header: the file was changed")
        if self._is_ctr:
            self._open_ctr(raw[start:end])
        else:
            self._open(raw[start:end], _DICTIONARY_PAGE if page is None else _DATA_PAGE, page)

    def _open(self, module: memoryview, kind: ModuleType, page: int | None) -> None:
        """Decrypt a whole GCM module where it lies; its plaintext begins at PLAINTEXT_OFFSET.

        A plaintext that does not authenticate is zeroed: the library writes it before it checks the tag.
        """
        aad = self._aads[kind]
        if page is not None:
            if page > MAX_ORDINAL:
                raise DecryptionError(f"the column chunk has more than {MAX_ORDINAL + 1:,} data pages")
            aad += page.to_bytes(2, "little")
        plaintext = module[PLAINTEXT_OFFSET:-TAG_BYTES]
        try:
            self._decrypt(module[LENGTH_BYTES:PLAINTEXT_OFFSET], module[PLAINTEXT_OFFSET:], aad, plaintext)
        except self._invalid_tag:
            module[PLAINTEXT_OFFSET:] = bytes(len(module) - PLAINTEXT_OFFSET)
            raise failure(kind.label) from None

    def _open_ctr(self, module: memoryview) -> None:
        """Decrypt a whole CTR module where it lies, as `_open` does; nothing authenticates it."""
        content = module[PLAINTEXT_OFFSET:]
        apply_counter_mode(self._gcm, bytes(module[LENGTH_BYTES:PLAINTEXT_OFFSET]), content, content)
