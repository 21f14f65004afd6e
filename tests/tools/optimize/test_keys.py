"""Keys of a rewrite: which files have to be rewritten, and keys that travel by the name of their provider."""

from __future__ import annotations

import pickle
import sys

import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import numparq
from numparq.dataset.splits.table import split_table
from numparq.tools.optimize.keys import RewriteKeys
from numparq.tools.optimize.layout import TargetLayout
from numparq.tools.optimize.rewrite_plan import plan_rewrite

OLD, NEW = b"MaRkEr of old k.", b"MaRkEr of new k."
NAME = "keys_of_rewrite_tests"
PROVIDER = f"""
import numparq

reading = numparq.Decryption({OLD!r})
mixed = numparq.Decryption({OLD!r}, allow_plaintext_files=True)
writing = numparq.Encryption({NEW!r}, aad_prefix=numparq.PartPrefix(b"lake"))
"""


@pytest.fixture
def provider(tmp_path, monkeypatch):
    (tmp_path / f"{NAME}.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop(NAME, None)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    for number in range(3):
        frame = pd.DataFrame({"a": range(number, number + 5)})
        encryption = numparq.Encryption(OLD)
        numparq.to_parquet(frame, tmp_path / "data" / f"{number}.parquet", encryption=encryption)
    return tmp_path / "data"


def plan(folder, decryption=None, encryption=None, plaintext_output=False, **options):
    names = [None if name is None else f"{NAME}:{name}" for name in (decryption, encryption)]
    keys = RewriteKeys.from_names(*names, plaintext_output)
    return plan_rewrite(folder, TargetLayout(), rewrite_keys=keys, **options)


def test_encrypted_files_are_planned_with_keys(provider, folder):
    found = plan(folder, "reading", "writing")
    assert [len(one.files) for one in found.folders] == [3]
    assert all(file.is_encrypted for file in found.files)
    table = found.split(None, 1 << 20)
    data = pickle.dumps(table.reader)
    assert b"MaRkEr" not in data
    reader = pickle.loads(data)
    rows = [row for split in table.splits for part in reader.tables(split) for row in part["a"].to_pylist()]
    assert sorted(rows) == sorted([*range(5), *range(1, 6), *range(2, 7)])


def test_nothing_is_planned_without_keys_or_a_decision(provider, folder):
    with pytest.raises(numparq.DecryptionError, match="the footer is encrypted"):
        plan(folder)
    with pytest.raises(ValueError, match="pass encryption= with keys for the new files, or plaintext_output=True"):
        plan(folder, "reading")
    assert plan(folder, "reading", plaintext_output=True).folders
    with pytest.raises(ValueError, match="exclude each other"):
        plan(folder, "reading", "writing", plaintext_output=True)
    for argument in ("decryption", "encryption"):
        arguments = {"decryption": None, "encryption": None, argument: numparq.Decryption(OLD)}
        with pytest.raises(TypeError, match="must be the name of a key provider here"):
            RewriteKeys.from_names(**arguments, plaintext_output=False)


def test_files_of_the_right_layout_are_rewritten_to_be_encrypted(provider, tmp_path):
    tmp_path = tmp_path / "one"
    tmp_path.mkdir()
    numparq.to_parquet(pd.DataFrame({"a": range(5)}), tmp_path / "one.parquet")
    assert plan(tmp_path).folders == []
    assert len(plan(tmp_path, None, "writing").folders) == 1
    numparq.to_parquet(pd.DataFrame({"a": range(5)}), tmp_path / "one.parquet", encryption=numparq.Encryption(OLD))
    assert plan(tmp_path, "reading", "writing").folders == []
    assert len(plan(tmp_path, "reading", plaintext_output=True).folders) == 1


def test_staged_files_are_read_by_the_keys_that_wrote_them(provider, tmp_path):
    keys = RewriteKeys.from_names(None, f"{NAME}:writing", plaintext_output=False)
    numparq.to_parquet(
        pd.DataFrame({"a": range(5)}), tmp_path / "staged", encryption=numparq.Encryption(NEW, aad_prefix=b"lake/x")
    )
    reader = keys.staged()
    data = pickle.dumps(reader)
    assert b"MaRkEr" not in data + repr(reader).encode()
    for decryption in (reader, pickle.loads(data)):
        table = split_table([tmp_path / "staged"], partitioning=None, decryption=decryption)
        assert sum(part.num_rows for split in table.splits for part in table.reader.tables(split)) == 5
    assert RewriteKeys().staged() is None
