"""Splits of encrypted files: keys stay in the process, or travel by the name of their provider."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Decryption, DecryptionError, Encryption, InvalidFileError
from numparq.dataset.splits.table import split_table

pytest.importorskip("cryptography")

FOOTER, FIRST, SECOND = b"marker: footer k", b"marker: first column key", b"marker: a key of 32 bytes, twice"
KEYS = {"first": FIRST, "second": SECOND}
ROWS = pd.DataFrame(
    {
        "first": np.arange(9000),
        "second": [f"marker value {row % 50}" for row in range(9000)],
        "third": np.arange(9000) % 7,
    }
)


@pytest.fixture(params=[False, True], ids=["encrypted footer", "plaintext footer"])
def folder(tmp_path, request):
    encryption = Encryption(FOOTER, KEYS, plaintext_footer=request.param, encrypt_other_columns=True)
    for number in range(3):
        path = tmp_path / "table" / f"k={number % 2}" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = ROWS[number * 3000 : (number + 1) * 3000]
        numparq.to_parquet(rows, path, index=False, encryption=encryption, row_group_size=400, max_rows_per_page=100)
    return tmp_path / "table"


@pytest.fixture
def provider(tmp_path, monkeypatch):
    name = f"keys_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        f"import numparq\n\ndef keys():\n    return numparq.Decryption({FOOTER!r}, {KEYS!r})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return f"{name}:keys"


def rows_of(table):
    return pd.concat([table.frame(split) for split in table.splits], ignore_index=True)


@pytest.mark.parametrize("plan_files", [None, 1], ids=["by rows", "by bytes"])
@pytest.mark.parametrize("keys", [KEYS, {"second": SECOND}], ids=["all keys", "first column locked"])
def test_splits_have_the_rows_of_the_dataset(folder, plan_files, keys):
    decryption = Decryption(FOOTER, keys)
    columns = [*keys, "third", "k"]
    for filters in (None, [("third", "=", 3)], [("k", "=", 1)], [("second", "=", "marker value 7")]):
        table = split_table(folder, columns, filters, decryption=decryption, plan_files=plan_files, split_bytes=4000)
        rows = rows_of(table)
        whole = numparq.read_parquet(folder, columns=columns, filters=filters, decryption=decryption)
        assert len(table) > 3
        assert rows["second"].tolist() == whole["second"].tolist()
        assert rows["third"].tolist() == whole["third"].tolist()
        assert sum(map(table.count, table.splits)) == len(whole)
    if "first" not in keys:
        with pytest.raises(DecryptionError, match="column 'first' is encrypted"):
            rows_of(split_table(folder, decryption=decryption, plan_files=plan_files))


def test_processes_agree_on_row_groups_whichever_keys_they_have(folder):
    tables = [
        split_table(folder, ["third"], decryption=Decryption(FOOTER, keys), plan_files=1, split_bytes=2000)
        for keys in (KEYS, {"first": FIRST}, {})
    ]
    splits = tables[0].splits
    assert len(splits) > 6
    for table in tables:
        assert [table.frame(split)["third"].tolist() for split in splits] == [
            tables[0].frame(split)["third"].tolist() for split in splits
        ]


@pytest.mark.parametrize("plan_files", [None, 1])
def test_the_name_of_a_provider_travels_and_no_key_or_value(folder, provider, tmp_path, plan_files):
    table = split_table(folder, decryption=provider, plan_files=plan_files, split_bytes=20_000)
    pickled = pickle.dumps((table.reader, table.splits))
    assert provider.encode() in pickled
    assert b"marker" not in pickled
    assert b"marker" not in pickle.dumps(table)
    script = (
        f"import pickle; reader, splits = pickle.loads({pickled!r}); "
        "print(sum(reader.frame(split)['first'].sum() for split in splits))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) == ROWS["first"].sum()
    environment["PYTHONPATH"] = os.pathsep.join(each for each in sys.path if each != str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert f"the key provider '{provider}' was not found" in done.stderr
    assert "on PYTHONPATH" in done.stderr


def test_given_keys_stay_in_the_process(folder):
    table = split_table(folder, decryption=Decryption(FOOTER, KEYS))
    for thing in (table, table.reader):
        with pytest.raises(TypeError, match="pass the name of a key provider instead"):
            pickle.dumps(thing)
    with pytest.raises(DecryptionError, match="pass decryption="):
        rows_of(split_table(folder, ["second"]))


def test_changed_files_are_noticed(folder):
    table = split_table(folder, decryption=Decryption(FOOTER, KEYS))
    path = folder / "k=0" / "0.parquet"
    status = path.stat()
    options = {"plaintext_footer": path.read_bytes()[-4:] == b"PAR1", "encrypt_other_columns": True}
    options = {"index": False, "row_group_size": 400, "max_rows_per_page": 100} | {
        "encryption": Encryption(FOOTER, KEYS, **options)
    }
    for _ in range(200):  # checksums of ciphertext, which differ each time, have one to five bytes
        numparq.to_parquet(ROWS[:3000], path, **options)
        if path.stat().st_size == status.st_size:
            break
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InvalidFileError, match="has changed since the table was divided"):
        rows_of(table)


@pytest.mark.parametrize("plan_files", [None, 1], ids=["by rows", "by bytes"])
def test_splits_notice_other_parts(folder, plan_files):
    decryption = Decryption(FOOTER, KEYS)
    with numparq.Dataset(folder, decryption=decryption) as dataset:
        parts = dataset.parts
    options = {"decryption": decryption, "plan_files": plan_files, "split_bytes": 20_000}
    assert len(rows_of(split_table(folder, expected_parts=parts, **options))) == len(ROWS)
    with pytest.raises(InvalidFileError, match="another version than that of expected_parts"):
        rows_of(split_table(folder, expected_parts=parts | {"k=1/1.parquet": parts["k=0/0.parquet"]}, **options))
    (folder / "k=1/1.parquet").unlink()
    with pytest.raises(InvalidFileError, match=r"parts of expected_parts are missing: 'k=1/1\.parquet'"):
        split_table(folder, expected_parts=parts, **options)
