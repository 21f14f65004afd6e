"""Encrypted files that numparq writes and reads: all modes equal the plain file, filters and Bloom filters included."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Decryption, DecryptionError, Encryption, ParquetFile
from numparq.prune.index_reader import BLOOM_FILTER, IndexLocations

FOOTER, FIRST, SECOND = b"f" * 16, b"1" * 24, b"2" * 32
NUMBERS = np.arange(1500)
FRAME = pd.DataFrame(
    {
        "a": NUMBERS,
        "s": [f"x{number % 7}" if number % 5 else None for number in NUMBERS],
        "u": [f"u{number * 7919 % 1500}" for number in NUMBERS],
        "l": [[number, number + 1] if number % 4 else None for number in NUMBERS],
        "t": [{"x": number, "y": str(number)} for number in NUMBERS],
        "f": np.where(NUMBERS % 9, NUMBERS / 3, np.nan),
    }
)
OPTIONS = {"row_group_size": 600, "max_rows_per_page": 100, "bloom_filter_options": {"u": True}}
COLUMN_KEYS = {"a": FIRST, ("l",): SECOND, "t.y": SECOND, "s": None}
MODES = {
    "uniform": {},
    "columns": {"column_keys": COLUMN_KEYS, "encrypt_other_columns": True},
    "partial": {"column_keys": COLUMN_KEYS},
}
KEYS = Decryption(FOOTER, {"a": FIRST, "l": SECOND, "t.y": SECOND})
FILTERS = [
    [("a", "==", 1123)],
    [("u", "==", "u700")],
    [("u", "==", "u7000")],
    [("s", "==", "x3"), ("a", "<", 100)],
    [("f", ">", 490.0)],
]


def write(mode, **options):
    settings = {name: options.pop(name) for name in ("algorithm", "plaintext_footer", "aad_prefix") if name in options}
    return numparq.to_parquet(FRAME, encryption=Encryption(FOOTER, **MODES[mode], **settings), **OPTIONS | options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_reads_equal_those_of_the_plain_file(algorithm, mode):
    for plaintext_footer, version, compression in product([False, True], ["1.0", "2.0"], ["zstd", None]):
        options = {"data_page_version": version, "compression": compression}
        plain = ParquetFile(numparq.to_parquet(FRAME, **OPTIONS | options))
        content = write(mode, algorithm=algorithm, plaintext_footer=plaintext_footer, **options)
        file = ParquetFile(content, decryption=KEYS)
        pd.testing.assert_frame_equal(file.read(), plain.read())
        for filters in FILTERS:
            pd.testing.assert_frame_equal(file.read(filters=filters), plain.read(filters=filters))
            columns = ["l", "t.y", "f"]
            pd.testing.assert_frame_equal(file.read(columns, filters), plain.read(columns, filters))
            assert file.plan(None, filters).num_rows == plain.plan(None, filters).num_rows


def test_bloom_filters_prune():
    file = ParquetFile(write("uniform"), decryption=KEYS)
    assert "Bloom filter" in file.plan(None, [("u", "==", "u7000")]).explain()


def test_bloom_filters_of_unknown_length_prune(monkeypatch):
    locate = IndexLocations.locate

    def without_lengths(self, what, *chunks):
        return [(chunk, start, length * (what != BLOOM_FILTER)) for chunk, start, length in locate(self, what, *chunks)]

    file = ParquetFile(write("uniform"), decryption=KEYS)
    with monkeypatch.context() as patch:
        patch.setattr(IndexLocations, "locate", without_lengths)
        assert "Bloom filter" in file.plan(None, [("u", "==", "u7000")]).explain()
        assert len(file.read(filters=[("u", "==", "u700")])) == 1


def test_bloom_filters_larger_than_their_chunk_are_not_read():
    options = {"row_group_size": 600, "bloom_filter_options": {"a": {"ndv": 100_000}}}
    frame = FRAME[["a"]].sample(frac=1, random_state=0)
    file = ParquetFile(numparq.to_parquet(frame, encryption=Encryption(FOOTER), **options), decryption=KEYS)
    plain = ParquetFile(numparq.to_parquet(frame, **options))
    for each, prunes in ((plain, True), (file, False)):
        assert ("Bloom filter" in each.plan(None, [("a", "==", 700)]).explain()) == prunes
        assert len(each.read(filters=[("a", "==", 700)])) == 1


def test_dictionaries_prune():
    frame = pd.DataFrame({"k": [f"k{number // 500 * 2}" for number in NUMBERS], "v": NUMBERS})
    options = {"row_group_size": 500}
    content = numparq.to_parquet(frame, encryption=Encryption(FOOTER), **options)
    plain, file = ParquetFile(numparq.to_parquet(frame, **options)), ParquetFile(content, decryption=KEYS)
    for key, count in (("k2", 500), ("k1", 0)):
        for each in (plain, file):
            assert len(each.read(filters=[("k", "==", key)])) == count


def test_arrow_and_batches():
    plain = ParquetFile(numparq.to_parquet(FRAME, **OPTIONS))
    file = ParquetFile(write("columns"), decryption=KEYS)
    assert file.to_arrow().equals(plain.to_arrow())
    batches = zip(file.iter_batches(batch_rows=400), plain.iter_batches(batch_rows=400), strict=True)
    for batch, expected in batches:
        pd.testing.assert_frame_equal(batch, expected)


def test_pages_of_a_list_without_keys_of_their_parent():
    file = ParquetFile(write("partial", plaintext_footer=True), decryption=Decryption(FOOTER, {"a": FIRST}))
    assert file.read(["a", "u", "f", "t.x"]).shape == (1500, 4)
    for name in ("l", "t.y"):
        with pytest.raises(DecryptionError, match="is encrypted with a key that was not given"):
            file.read([name])
        left = file.read(["a", name], on_error="skip")
        assert list(left.columns) == ["a"]


def test_aad_prefixes():
    content = write("uniform", aad_prefix=b"lake/1")
    assert len(ParquetFile(content, decryption=Decryption(FOOTER, aad_prefix=b"lake/1")).read()) == 1500
    assert len(ParquetFile(content, decryption=Decryption(FOOTER)).read()) == 1500
    with pytest.raises(DecryptionError, match="AAD prefix differs"):
        ParquetFile(content, decryption=Decryption(FOOTER, aad_prefix=b"lake/2"))


def test_long_footers_are_cached_for_readers_with_the_same_keys(tmp_path):
    frame = pd.DataFrame({f"column {number}": [number] for number in range(3000)})
    path = tmp_path / "wide.parquet"
    numparq.to_parquet(frame, path, encryption=Encryption(FOOTER))
    for _ in range(2):
        pd.testing.assert_frame_equal(numparq.read_parquet(path, decryption=KEYS), frame)
        with pytest.raises(DecryptionError, match="footer did not authenticate"):
            numparq.read_parquet(path, decryption=Decryption(b"g" * 16))
        with pytest.raises(DecryptionError, match="pass decryption="):
            numparq.read_parquet(path)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("column", ["a", "u", "f"])
def test_a_damaged_page_loses_its_rows_alone(algorithm, column):
    """The second data page of the second row group: its header, and its body. Pages before it are decrypted, too."""
    content = write("columns", algorithm=algorithm, compression=None)
    file = ParquetFile(content, decryption=KEYS)
    whole = file.read()
    chunk = file.plan([column], [("a", ">=", 700), ("a", "<", 800)])[1].chunks[0]
    start, size = chunk.locations[1][:2].tolist()
    assert chunk.locations[1][2] == 100
    for position in (start + 20, start + size - 20):
        damaged = bytearray(content)
        damaged[position] ^= 1
        file = ParquetFile(bytes(damaged), decryption=KEYS)
        with pytest.raises(numparq.ParquetError) as caught:
            file.read()
        assert caught.value.where["row_group"] == 1
        assert caught.value.where["column"] == column
        left = file.read(on_error="skip")
        pd.testing.assert_frame_equal(left, whole.drop(index=range(700, 800)))
        (lost,) = left.attrs["numparq.lost"]
        assert "did not authenticate" in str(lost) or "checksum" in str(lost)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_many_small_files(tmp_path, plaintext_footer):
    """Without keys their footers may be read as a table and the files joined; with keys they are read one by one."""
    for number in range(40):
        frame = pd.DataFrame({"a": NUMBERS[:50] + 50 * number, "b": NUMBERS[:50]})
        encryption = Encryption(FOOTER, {"a": FIRST}, plaintext_footer=plaintext_footer)
        numparq.to_parquet(frame, tmp_path / f"{number:02}.parquet", encryption=encryption)
    for filters, count in ((None, 2000), ([("a", "==", 777)], 1), ([("b", "<", 2)], 80)):
        assert len(numparq.read_parquet(tmp_path, filters=filters, decryption=KEYS)) == count
        with pytest.raises(DecryptionError, match="pass decryption="):
            numparq.read_parquet(tmp_path, filters=filters)
    if plaintext_footer:
        assert len(numparq.read_parquet(tmp_path, ["b"], filters=[("b", "<", 2)])) == 80


def test_threads_open_the_same_metadata_at_once():
    content = write("columns", plaintext_footer=True)
    expected = ParquetFile(content, decryption=KEYS).read()
    for turn in range(10):
        keys = Decryption(FOOTER, {"a": FIRST, "l": SECOND, "t.y": SECOND, "none": bytes([turn + 1]) * 16})
        file = ParquetFile(content, decryption=keys)
        with ThreadPoolExecutor(6) as pool:
            for found in pool.map(lambda number, read=file.read: read(threads=1 + number % 2), range(6)):
                pd.testing.assert_frame_equal(found, expected)
