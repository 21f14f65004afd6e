"""Random frames, keys and modes: an encrypted file equals the plain one, after a full read and after a filter.

`verify` finds nothing, and an independent decryptor makes a plain file of it with the same values.
"""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import numparq

pytest.importorskip("cryptography")

from support.oracles.encryption import decrypt_file

FOOTER = b"footer-key-bytes"
NAMES = ["number", "text", "list", "struct"]


@st.composite
def frames(draw) -> pd.DataFrame:
    rows = draw(st.integers(1, 60))
    values = draw(st.lists(st.integers(-5, 5), min_size=rows, max_size=rows))
    texts = draw(st.lists(st.sampled_from(["", "a", "bb", None]), min_size=rows, max_size=rows))
    lists = [None if value == 5 else [value] * (value + 5) for value in values]
    structs = [{"x": value, "y": [text, text]} for value, text in zip(values, texts, strict=True)]
    return pd.DataFrame({"number": values, "text": texts, "list": lists, "struct": structs})


@settings(max_examples=30, deadline=None)
@given(
    frames(),
    st.dictionaries(st.sampled_from([*NAMES, "struct.x", "struct.y"]), st.sampled_from([None, 16, 24, 32])),
    st.booleans(),
    st.fixed_dictionaries(
        {
            "algorithm": st.sampled_from(["AES_GCM_V1", "AES_GCM_CTR_V1"]),
            "plaintext_footer": st.booleans(),
            "aad_prefix": st.sampled_from([None, b"prefix"]),
            "store_aad_prefix": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {
            "row_group_size": st.sampled_from([7, 25, 1000]),
            "max_rows_per_page": st.sampled_from([3, 1000]),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "compression": st.sampled_from([None, "snappy", "zstd"]),
            "use_dictionary": st.booleans(),
            "write_page_index": st.booleans(),
            "write_page_checksum": st.booleans(),
            "bloom_filter_options": st.sampled_from([None, {"text": True}]),
            "threads": st.sampled_from([1, 2]),
        }
    ),
)
def test_encrypted_files_equal_plain_ones(frame, sizes, others, modes, options):
    keys = {name: None if size is None else bytes([at + 1]) * size for at, (name, size) in enumerate(sizes.items())}
    column_keys = keys or None
    encryption = numparq.Encryption(FOOTER, column_keys, encrypt_other_columns=others and bool(keys), **modes)
    encrypted = numparq.to_parquet(frame, encryption=encryption, **options)
    plain = numparq.to_parquet(frame, **options)
    known = {name: FOOTER if key is None else key for name, key in keys.items()}
    decryption = numparq.Decryption(FOOTER, known, aad_prefix=modes["aad_prefix"])
    for filters in (None, numparq.col("number") > 2, numparq.col("text") == "bb"):
        expected = numparq.read_parquet(plain, filters=filters)
        read = numparq.read_parquet(encrypted, filters=filters, decryption=decryption)
        pd.testing.assert_frame_equal(read, expected)
    assert numparq.verify(encrypted, decryption=decryption) == []
    decrypted = decrypt_file(encrypted, FOOTER, known, modes["aad_prefix"])
    pd.testing.assert_frame_equal(numparq.read_parquet(decrypted), numparq.read_parquet(plain))
