"""How a file is encrypted, as `ParquetFile.encryption` and files that cannot be opened say."""

from __future__ import annotations

import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError
from numparq.format.footer.read_encryption import read_encryption
from numparq.io.open import open_source

KEY, OTHER = b"f" * 16, b"c" * 32
FRAME = pd.DataFrame({"a": [1, 2], "l": [[1], [2, 3]], "p": ["x", "y"]})


def write(plaintext_footer, **options):
    encryption = numparq.Encryption(
        KEY,
        {"l": OTHER, "a": None},
        plaintext_footer=plaintext_footer,
        key_metadata={None: b"kf", "l": b"kl"},
        **options,
    )
    return numparq.to_parquet(FRAME, encryption=encryption, row_group_size=1)


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_with_keys(plaintext_footer, algorithm):
    content = write(plaintext_footer, algorithm=algorithm, aad_prefix=b"lake")
    file = numparq.ParquetFile(content, decryption=numparq.Decryption(KEY, {"l": OTHER}))
    for _ in range(2):
        found = file.encryption
        assert (found.has_encrypted_footer, found.algorithm) == (not plaintext_footer, algorithm)
        assert (found.footer_key_metadata, found.aad_prefix, found.needs_aad_prefix) == (b"kf", b"lake", False)
        assert found.columns == {("a",): (True, None), ("l", "list", "element"): (False, b"kl")}
        file.read()


def test_plaintext_footers_without_keys():
    found = numparq.ParquetFile(write(True, aad_prefix=b"lake", store_aad_prefix=False)).encryption
    assert found.columns == {("a",): (True, None), ("l", "list", "element"): (False, b"kl")}
    assert (found.aad_prefix, found.needs_aad_prefix) == (None, True)
    assert found.describe() == [
        "plaintext footer, AES_GCM_V1, footer key: key metadata b'kf', with an AAD prefix that it does not store",
        "encrypted column, with the footer key: 'a'",
        "encrypted column, key metadata b'kl': 'l.list.element'",
    ]


def test_plain_files():
    assert numparq.ParquetFile(numparq.to_parquet(FRAME)).encryption is None
    assert read_encryption(open_source(numparq.to_parquet(FRAME))) is None
    assert read_encryption(open_source(b"PAR")) is None


def test_encrypted_footers_without_keys():
    found = read_encryption(open_source(write(False)))
    assert (found.has_encrypted_footer, found.footer_key_metadata, found.columns) == (True, b"kf", {})


def test_columns_that_are_encrypted_in_some_row_groups():
    """No writer makes such files, but labels must not miss a column."""
    from support.oracles.encryption import EncryptedFile

    file = EncryptedFile(write(True), KEY, {"l": OTHER})
    file.footer.row_groups[0].columns[0].crypto_metadata = None
    file.footer.row_groups[0].columns[0].encrypted_column_metadata = None
    assert ("a",) in numparq.ParquetFile(file.save()).encryption.columns


def test_damaged_footers():
    content = bytearray(write(False))
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    content[start] = 0xFF
    with pytest.raises(InvalidFileError):
        read_encryption(open_source(bytes(content)))
