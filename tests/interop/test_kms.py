"""Key material between numparq and pyarrow, both ways: in the file and next to it, both kinds of wrapping, rotation."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq import KmsDecryption, KmsEncryption

pytest.importorskip("pyarrow.parquet.encryption")
pytest.importorskip("cryptography")
import pyarrow.parquet.encryption as pe

from support.encryption.kms import MASTER_KEYS, MemoryKms

ROWS = 300
FRAME = pd.DataFrame(
    {
        "a": np.arange(ROWS),
        "s": [f"x{row % 7}" if row % 5 else None for row in range(ROWS)],
        "l": [[row, row + 1] for row in range(ROWS)],
        "c": 1.5,
    }
)
COLUMN_KEYS = {"kc1": ["a", "l.list.element"], "kc2": ["s"]}
CONNECTION = pe.KmsConnectionConfig()


class ArrowKms(pe.KmsClient):
    """`MemoryKms` as a client of pyarrow."""

    def __init__(self, keys=None) -> None:
        super().__init__()
        self.kms = MemoryKms(keys)

    def wrap_key(self, key_bytes, master_key_identifier):
        return self.kms.wrap_key(key_bytes, master_key_identifier).encode()

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return self.kms.unwrap_key(wrapped_key, master_key_identifier)


def factory(keys=None) -> pe.CryptoFactory:
    return pe.CryptoFactory(lambda _: ArrowKms(keys))


def read_by_pyarrow(source, keys=None, **options) -> pd.DataFrame:
    properties = factory(keys).file_decryption_properties(CONNECTION, pe.DecryptionConfiguration(), **options)
    frame = pq.ParquetFile(source, decryption_properties=properties).read().to_pandas()
    return frame.assign(l=[list(each) for each in frame["l"]])


def write_by_pyarrow(sink, *, internal=True, path=None, **options) -> None:
    options = {"column_keys": COLUMN_KEYS} | options
    config = pe.EncryptionConfiguration("kf", internal_key_material=internal, **options)
    properties = factory().file_encryption_properties(CONNECTION, config, *([] if path is None else [path]))
    pq.write_table(pa.Table.from_pandas(FRAME), sink, encryption_properties=properties)


@pytest.mark.parametrize("double_wrapping", [True, False])
@pytest.mark.parametrize("mode", ["columns", "uniform", "others"])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize(("algorithm", "bits"), [("AES_GCM_V1", 128), ("AES_GCM_CTR_V1", 256), ("AES_GCM_V1", 192)])
def test_pyarrow_reads_ours(double_wrapping, mode, plaintext_footer, algorithm, bits):
    keys = {"columns": COLUMN_KEYS, "uniform": None, "others": {"kc1": ["a"]}}[mode]
    encryption = KmsEncryption(
        MemoryKms(),
        "kf",
        keys,
        double_wrapping=double_wrapping,
        plaintext_footer=plaintext_footer,
        algorithm=algorithm,
        data_key_length_bits=bits,
        encrypt_other_columns=mode == "others",
    )
    data = numparq.to_parquet(FRAME, encryption=encryption, row_group_size=100)
    pd.testing.assert_frame_equal(read_by_pyarrow(io.BytesIO(data)), FRAME)


@pytest.mark.parametrize("double_wrapping", [True, False])
@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize(("algorithm", "bits"), [("AES_GCM_V1", 128), ("AES_GCM_CTR_V1", 256)])
def test_files_of_pyarrow_are_read(double_wrapping, plaintext_footer, algorithm, bits):
    sink = io.BytesIO()
    write_by_pyarrow(
        sink,
        double_wrapping=double_wrapping,
        plaintext_footer=plaintext_footer,
        encryption_algorithm=algorithm,
        data_key_length_bits=bits,
    )
    keys = KmsDecryption(MemoryKms())
    pd.testing.assert_frame_equal(numparq.read_parquet(sink.getvalue(), decryption=keys), FRAME)
    read = numparq.read_parquet(sink.getvalue(), filters=[("a", ">=", 290)], decryption=keys)
    assert read["a"].tolist() == [*range(290, 300)]


def test_uniform_files_of_pyarrow_are_read():
    sink = io.BytesIO()
    write_by_pyarrow(sink, column_keys={}, uniform_encryption=True)
    read = numparq.read_parquet(sink.getvalue(), decryption=KmsDecryption(MemoryKms()))
    pd.testing.assert_frame_equal(read, FRAME)


@pytest.mark.parametrize("double_wrapping", [True, False])
def test_key_material_next_to_files(tmp_path, double_wrapping):
    ours, theirs = str(tmp_path / "ours.parquet"), str(tmp_path / "theirs.parquet")
    options = {"double_wrapping": double_wrapping}
    numparq.to_parquet(
        FRAME, ours, encryption=KmsEncryption(MemoryKms(), "kf", COLUMN_KEYS, internal_key_material=False, **options)
    )
    write_by_pyarrow(theirs, internal=False, path=theirs, **options)
    for path in (ours, theirs):
        pd.testing.assert_frame_equal(read_by_pyarrow(path, parquet_file_path=path), FRAME)
        pd.testing.assert_frame_equal(numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms())), FRAME)
    new = {name: b"n" + key[1:] for name, key in MASTER_KEYS.items()}
    kms = MemoryKms(new)
    kms.unwrap_key = MemoryKms().unwrap_key
    assert numparq.rotate_master_keys(tmp_path, kms, double_wrapping=not double_wrapping) == 2
    for path in (ours, theirs):
        pd.testing.assert_frame_equal(read_by_pyarrow(path, new, parquet_file_path=path), FRAME)
        pd.testing.assert_frame_equal(numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms(new))), FRAME)


def test_pyarrow_rotates_ours(tmp_path):
    path = str(tmp_path / "a.parquet")
    encryption = KmsEncryption(MemoryKms(), "kf", COLUMN_KEYS, internal_key_material=False)
    numparq.to_parquet(FRAME, path, encryption=encryption)
    before = (tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json").read_bytes()
    factory().rotate_master_keys(CONNECTION, path)
    assert (tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json").read_bytes() != before
    pd.testing.assert_frame_equal(numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms())), FRAME)


def test_clients_of_pyarrow_are_clients_of_ours():
    data = numparq.to_parquet(FRAME, encryption=KmsEncryption(ArrowKms(), "kf", {"kc1": ["a"]}))
    pd.testing.assert_frame_equal(numparq.read_parquet(data, decryption=KmsDecryption(ArrowKms())), FRAME)
