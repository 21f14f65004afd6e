"""Keys by the name of a provider: resolved in each process, errors, and what pickles hold."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import pandas as pd
import pytest

import numparq
from numparq import Dataset, Decryption, DecryptionError, Encryption, ParquetFile
from numparq.keys.provider import NamedKeys, as_encryption_keys, as_key_source, check_provider_name
from numparq.pandas.engine import NumparqImpl

pytest.importorskip("cryptography")

FRAME = pd.DataFrame({"a": [1, 2, 3], "s": ["marker one", "marker two", None]})
PROVIDER = """
import os
from numparq import Decryption, Encryption

calls = []
KEY = b"marker: the key."
READING = Decryption(KEY)

def reading():
    calls.append("reading")
    return Decryption(KEY)

def writing():
    return Encryption(KEY)

def broken():
    raise ValueError("the secret")

class Holder:
    keys = READING

nothing = 7
"""


@pytest.fixture
def provider(tmp_path, monkeypatch):
    """Return the name of a new module of providers."""
    name = f"keys_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("attribute", ["READING", "reading", "Holder.keys"])
def test_names_stand_for_objects_and_functions(provider, tmp_path, attribute):
    path = tmp_path / "a.parquet"
    numparq.to_parquet(FRAME, path, encryption=f"{provider}:writing")
    name = f"{provider}:{attribute}"
    for _ in range(2):
        pd.testing.assert_frame_equal(numparq.read_parquet(path, decryption=name), FRAME)
    read = NumparqImpl().read(path, decryption=name, to_pandas_kwargs={"maps_as_pydicts": "strict"})
    assert read["a"].tolist() == [1, 2, 3]
    assert sys.modules[provider].calls in ([], ["reading"])
    with pytest.raises(DecryptionError, match="the footer is encrypted"):
        numparq.read_parquet(path)


def test_pickles_hold_the_name_alone(provider, tmp_path):
    name = f"{provider}:reading"
    numparq.to_parquet(FRAME, tmp_path / "data" / "a.parquet", partition_cols=[], encryption=f"{provider}:writing")
    folder = tmp_path / "data" / "a.parquet"
    (path,) = folder.glob("*.parquet")
    for opened in (ParquetFile(path, decryption=name), Dataset(folder, decryption=name)):
        pickled = pickle.dumps(opened)
        assert name.encode() in pickled
        assert b"marker" not in pickled
        for other in (pickle.loads(pickled), copy.copy(opened)):
            pd.testing.assert_frame_equal(other.read(), FRAME)
    script = f"import pickle, sys; print(pickle.loads({pickled!r}).read()['s'].tolist())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert "marker two" in done.stdout
    with pytest.raises(TypeError, match="pass the name of a key provider"):
        pickle.dumps(Dataset(folder, decryption=Decryption(b"marker: the key.")))


def test_errors_say_what_to_change(provider):
    for name in ("nonsense", "a:b:c", "a.b", ":b", "a:", "0a:b", "a b:c"):
        with pytest.raises(ValueError, match=r"decryption must be the name .* 'package.module:attribute'") as caught:
            as_key_source(name)
        assert name not in str(caught.value) or len(name) < 4, "it might be a key"
    with pytest.raises(ImportError, match="No module named 'no_such_module'; its module must be importable"):
        as_key_source("no_such_module:keys")
    with pytest.raises(ImportError, match=f"{provider}:absent"):
        as_encryption_keys(f"{provider}:absent")
    with pytest.raises(TypeError, match=r"must be, or return, a numparq.Decryption for decryption=, not int"):
        as_key_source(f"{provider}:nothing")
    with pytest.raises(TypeError, match=r"a numparq.Decryption for decryption=, not Encryption"):
        as_key_source(f"{provider}:writing")
    with pytest.raises(TypeError, match=r"a numparq.Encryption for encryption=, not Decryption"):
        as_encryption_keys(f"{provider}:READING")
    with pytest.raises(DecryptionError, match="failed: ValueError") as caught:
        as_key_source(f"{provider}:broken")
    assert "secret" not in str(caught.value)
    for other in (7, b"0123456789abcdef", Decryption, Encryption(b"0123456789abcdef")):
        with pytest.raises(TypeError, match=r"decryption must be a numparq.Decryption, the name .*, or None") as caught:
            as_key_source(other)
        assert "0123" not in str(caught.value)


def test_objects_with_keys_are_refused_where_names_are_needed():
    with pytest.raises(
        TypeError, match=r"keys do not travel .*: decryption='package.module:attribute', not Decryption"
    ):
        check_provider_name(Decryption(b"0123456789abcdef"), "decryption")


def test_named_keys_show_their_name(provider):
    keys = as_key_source(f"{provider}:reading")
    assert repr(keys) == f"NamedKeys('{provider}:reading')"
    assert isinstance(keys, NamedKeys)
    assert keys.identity == as_key_source(f"{provider}:READING").identity
    assert as_key_source(None) is None
