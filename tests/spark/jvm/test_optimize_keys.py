"""`numparq.spark.optimize` and `profile` of encrypted datasets: keys by the names of providers."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import numparq

pytest.importorskip("cryptography")
pytest.importorskip("pyspark")

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OLD, NEW, COLUMN = b"old footer key..", b"new footer key..", b"key of a column."
NAME = "keys_of_optimize_tests"
PROVIDER = f"""
import numparq

def reading():
    return numparq.Decryption({OLD!r}, {{"s": {COLUMN!r}}})

def writing():
    return numparq.Encryption({NEW!r}, {{"s": {COLUMN!r}}}, encrypt_other_columns=True)

def parts():
    return numparq.Encryption({NEW!r}, aad_prefix=numparq.PartPrefix(b"lake"))
"""


@pytest.fixture(scope="module")
def provider(spark, tmp_path_factory):
    """Put a module of providers on the paths of the driver and of the workers."""
    folder = tmp_path_factory.mktemp("providers")
    path = folder / f"{NAME}.py"
    path.write_text(PROVIDER)
    spark.sparkContext.addPyFile(str(path))
    sys.path.insert(0, str(folder))
    yield NAME
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def optimize(spark, provider):
    from numparq.spark import optimize

    return lambda path, **options: optimize(spark, path, **{"target_file_bytes": 100_000, **options})


def frame():
    numbers = np.arange(3000)
    return pd.DataFrame({"day": numbers % 2, "row": numbers, "s": [f"value {number % 13}" for number in numbers]})


def write(path, encryption):
    for number in range(6):
        some = frame()[number * 500 : number * 500 + 500]
        with numparq.DatasetWriter(
            path, partition_cols=["day"], encryption=encryption, existing_data_behavior="overwrite_or_ignore"
        ) as writer:
            writer.write(some)
    return path


def rows_of(path, decryption=None):
    found = numparq.read_parquet(path, decryption=decryption)
    return found.sort_values("row", ignore_index=True)[["row", "s"]]


@pytest.fixture
def encrypted(tmp_path):
    return write(tmp_path / "events", numparq.Encryption(OLD, {"s": COLUMN}, encrypt_other_columns=True))


def test_files_get_new_keys(optimize, encrypted):
    report = optimize(encrypted, sort_by="s", decryption=f"{NAME}:reading", encryption=f"{NAME}:writing")
    assert (report.status, report.before.files, report.after.rows) == ("done", 12, 3000)
    new = numparq.Decryption(NEW, {"s": COLUMN})
    pd.testing.assert_frame_equal(rows_of(encrypted, new), frame()[["row", "s"]])
    for path in encrypted.rglob("*.parquet"):
        assert path.read_bytes()[:4] == b"PARE"
        assert numparq.read_parquet(path, decryption=new)["s"].is_monotonic_increasing
        assert [each for each in numparq.verify(path, decryption=new) if each.severity == "error"] == []


def test_plain_files_become_encrypted_and_plain_again(optimize, tmp_path):
    path = write(tmp_path / "events", None)
    assert optimize(path).status == "done"
    assert optimize(path).status == "nothing to do"
    assert optimize(path, encryption=f"{NAME}:writing").status == "done"
    new = numparq.Decryption(NEW, {"s": COLUMN})
    pd.testing.assert_frame_equal(rows_of(path, new), frame()[["row", "s"]])
    with pytest.raises(numparq.DecryptionError, match="the footer is encrypted"):
        optimize(path, plaintext_output=True)


def test_part_prefixes(optimize, encrypted):
    assert optimize(encrypted, decryption=f"{NAME}:reading", encryption=f"{NAME}:parts").status == "done"
    keys = numparq.Decryption(NEW, aad_prefix=numparq.PartPrefix(b"lake"))
    pd.testing.assert_frame_equal(rows_of(encrypted, keys), frame()[["row", "s"]])


def test_plain_output(optimize, encrypted, tmp_path):
    out = tmp_path / "out"
    assert optimize(encrypted, out=out, decryption=f"{NAME}:reading", plaintext_output=True).status == "done"
    pd.testing.assert_frame_equal(rows_of(out), frame()[["row", "s"]])


def test_refusals(optimize, encrypted):
    with pytest.raises(ValueError, match="pass encryption= with keys for the new files, or plaintext_output=True"):
        optimize(encrypted, decryption=f"{NAME}:reading")
    with pytest.raises(TypeError, match="must be the name of a key provider here"):
        optimize(encrypted, decryption=numparq.Decryption(OLD), encryption=f"{NAME}:writing")
    with pytest.raises(ValueError, match="exclude each other"):
        optimize(encrypted, decryption=f"{NAME}:reading", encryption=f"{NAME}:writing", plaintext_output=True)


def test_profile(spark, provider, encrypted):
    from numparq.spark import profile

    found = profile(spark, encrypted, decryption=f"{NAME}:reading")
    assert (found["s"].distinct, found["row"].min, found["row"].max, found.damaged_files) == (13, 0, 2999, 0)
    with pytest.raises(TypeError, match="must be the name of a key provider here"):
        profile(spark, encrypted, decryption=numparq.Decryption(OLD))
