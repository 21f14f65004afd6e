"""Fuzz target of encrypted files: changed bytes, and changed metadata sealed or signed again by who has the keys."""

from __future__ import annotations

import os
import struct
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from support.hostile import byte_damage

from .case import FuzzCase
from .mutations import mutate, parse_struct

FOOTER, COLUMN = b"f" * 16, b"c" * 32
ROWS = 300
KINDS = [(algorithm, is_plain) for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1") for is_plain in (False, True)]
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"threads": 2},
    {"columns": ["l", "u"]},
    {"filters": [("a", "==", 123)]},
    {"filters": [("u", "==", "u7000")]},
    {"filters": [("a", ">", 50), ("s", "==", "x3")], "columns": ["l"]},
    {"row_range": (30, 170)},
    {"on_error": "skip"},
)


@cache
def frame() -> pd.DataFrame:
    numbers = np.arange(ROWS)
    return pd.DataFrame(
        {
            "a": numbers,
            "s": [f"x{number % 7}" if number % 5 else None for number in numbers],
            "u": [f"u{number}" for number in numbers],
            "l": [[number, number + 1] for number in numbers],
        }
    )


@cache
def expected_rows() -> pd.DataFrame:
    import numparq

    return numparq.read_parquet(numparq.to_parquet(frame()))


def _same_random_bytes() -> Any:
    """Replace nonces, so that a case is the same in every process."""
    return mock.patch.object(os, "urandom", lambda size: bytes(number % 251 + 1 for number in range(size)))


@cache
def encrypted(kind: int) -> bytes:
    import numparq

    algorithm, plaintext_footer = KINDS[kind]
    encryption = numparq.Encryption(
        FOOTER, {"a": COLUMN, "u": COLUMN, "l": None}, algorithm=algorithm, plaintext_footer=plaintext_footer
    )
    options = {"row_group_size": 120, "max_rows_per_page": 40, "bloom_filter_options": {"u": True}}
    with _same_random_bytes():
        return numparq.to_parquet(frame(), encryption=encryption, **options)


def _footer_with_changes(rng: np.random.Generator, data: bytes) -> bytes:
    """Return the file with changed fields in its footer, which is sealed or signed again."""
    from numparq.crypto.aad import ModuleId, ModuleType, module_aad
    from numparq.crypto.ciphers import open_module, sign_footer
    from numparq.crypto.key import Key
    from numparq.crypto.seal import Sealer
    from numparq.format.footer.encrypted_footer import read_crypto_metadata
    from numparq.format.open_file import OpenFile

    (length,) = struct.unpack("<I", data[-8:-4])
    body, stored, magic = data[: -8 - length], data[-8 - length : -8], data[-4:]
    key = Key(FOOTER)
    keys = OpenFile(data, decryption=decryption()).footer.keys
    assert keys is not None
    aad = module_aad(keys.file_aad, ModuleId(ModuleType.FOOTER))
    if magic == b"PAR1":
        changed, nonce = mutate(rng, parse_struct(stored[:-28])[0]), b"n" * 12
        footer = changed + nonce + sign_footer(key, changed, nonce, aad)
    else:
        _, end = read_crypto_metadata(np.frombuffer(stored, np.uint8))
        plaintext = open_module(key, stored[end:], aad)
        with _same_random_bytes():
            changed = mutate(rng, parse_struct(plaintext)[0])
            footer = stored[:end] + Sealer(key, keys.file_aad, False).seal_module(changed, ModuleId(ModuleType.FOOTER))
    return body + footer + struct.pack("<I", len(footer)) + magic


def decryption() -> Any:
    import numparq

    return numparq.Decryption(FOOTER, {"a": COLUMN, "u": COLUMN})


def case(rng: np.random.Generator) -> FuzzCase:
    """Draw a case."""
    data = encrypted(int(rng.integers(0, len(KINDS))))
    if rng.random() < 0.5:
        return FuzzCase("sealed: fields of the footer", "encrypted", _footer_with_changes(rng, data))
    ((what, changed),) = byte_damage.flipped_bytes(data, int(rng.integers(0, 1 << 32)), 0, 1)
    if rng.random() < 0.3:
        start, stop = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        what, changed = "left out", data[:start] + data[stop:]
    elif rng.random() < 0.3:
        (size,) = rng.integers(1, 400, 1).tolist()
        start, to = rng.integers(0, len(data) - size, 2).tolist()
        what, changed = "moved", data[:to] + data[start : start + size] + data[to + size :]
    return FuzzCase(f"bytes: {what}", "encrypted", changed)


def _read(case: FuzzCase, rng: np.random.Generator, folder: Path, options: dict[str, Any]) -> int:
    """Read the file; if its bytes alone were changed, what is read is right."""
    import numparq

    found = numparq.read_parquet(case.data, decryption=decryption(), **options)
    if case.what.startswith("bytes"):
        if "on_error" in options:
            for name in found:
                assert [*map(str, found[name])] == [*map(str, expected_rows()[name].loc[found.index])]
        else:
            expected = numparq.read_parquet(numparq.to_parquet(frame()), **options)
            pd.testing.assert_frame_equal(found, expected)
    return int(found.memory_usage(index=False, deep=True).sum())


def _verify(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    """Verify the file with keys and without; what a read refuses, verify with keys does not call sound."""
    import numparq

    numparq.verify(case.data)
    found = numparq.verify(case.data, decryption=decryption())
    if not found:
        numparq.read_parquet(case.data, decryption=decryption())
    return sum(len(str(deviation)) for deviation in found)


def _salvage(case: FuzzCase, rng: np.random.Generator, folder: Path) -> int:
    """Salvage the file: the rows that a skipping read has."""
    import numparq

    path, out = folder / "broken.parquet", folder / "saved.parquet"
    path.write_bytes(case.data)
    numparq.salvage(path, out, decryption=decryption(), plaintext_output=True, force=True)
    skipped = numparq.read_parquet(case.data, decryption=decryption(), on_error="skip")
    skipped.attrs.clear()
    pd.testing.assert_frame_equal(numparq.read_parquet(out), skipped.reset_index(drop=True))
    return int(skipped.memory_usage(index=False, deep=True).sum())


USES = (
    *((f"read {options}", partial(_read, options=options)) for options in OPTIONS),
    ("verify", _verify),
    ("salvage", _salvage),
)
