"""Keys and values of encrypted columns reach no file, log, text of an object, exception, pickle or plan."""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import logging
import os
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq.cli import main
from numparq.keys.key_file import KeyFile
from support.encryption import secrets
from support.encryption.secrets import COLUMN_KEY, FOOTER_KEY, NUMBER, TEXT, secrets_in
from support.oracles.encryption import EncryptedFile

KEYS = numparq.Decryption(FOOTER_KEY, {"s": COLUMN_KEY, "n": COLUMN_KEY, "l": COLUMN_KEY})
NAMES = ["s", "n", "l"]


def encryption(**options):
    return numparq.Encryption(FOOTER_KEY, dict.fromkeys(NAMES, COLUMN_KEY), **options)


def frame(rows=200):
    return pd.DataFrame(
        {
            "s": [f"{TEXT} {number % 5}" for number in range(rows)],
            "n": np.full(rows, NUMBER),
            "l": [[NUMBER, number] for number in range(rows)],
            "p": np.arange(rows),
        }
    )


def quoting_retriever(metadata):
    raise ValueError(f"no key like {FOOTER_KEY!r}")


@pytest.fixture
def traces(tmp_path, monkeypatch, caplog):
    """Return a function that searches folders, logs and warnings; its argument are further texts."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    caches = [Path(os.environ["NUMPARQ_CACHE_DIR"])] if "NUMPARQ_CACHE_DIR" in os.environ else []
    before = secrets.files_below(*caches)
    caplog.set_level(logging.DEBUG)

    def search(texts):
        wrong = [(name, text[:300]) for text in texts if (name := secrets_in(text))]
        after = secrets.files_below(*caches, tmp_path)
        changed = [path for path, time in after.items() if before.get(path) != time and path.name != "keys.json"]
        wrong += [(name, str(path)) for path in changed if (name := secrets_in(path.read_bytes()))]
        wrong += [(name, record.getMessage()) for record in caplog.records if (name := secrets_in(record.getMessage()))]
        return wrong

    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        yield lambda texts: search([*texts, *(str(each.message) for each in noted)])


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_reads_and_writes_leave_no_trace(traces, plaintext_footer, algorithm):
    keys = encryption(plaintext_footer=plaintext_footer, algorithm=algorithm, key_metadata=b"kf")
    options = {"compression": None, "use_dictionary": ["s"], "bloom_filter_options": {"s": True, "n": True}}
    options |= {"row_group_size": 80, "max_rows_per_page": 20}
    texts: list[str | bytes] = []
    numparq.to_parquet(frame(), "one.parquet", encryption=keys, **options)
    numparq.to_parquet(frame(), "parts", partition_cols=["p"], encryption=keys, compression=None)
    with numparq.DatasetWriter("sorted", encryption=keys, max_rows_per_file=90) as dataset_writer:
        dataset_writer.write(frame())
        texts += secrets.texts_of(dataset_writer)
    writer = numparq.ParquetWriter("two.parquet", encryption=keys)
    writer.write(frame())
    texts += secrets.texts_of(writer)
    writer.abort()
    file = numparq.ParquetFile("one.parquet", decryption=KEYS)
    dataset = numparq.Dataset("sorted", decryption=KEYS)
    assert len(file.read()) == len(dataset.read()) == 200
    assert len(file.read(filters=[("p", "==", 7)], columns=["s", "n"])) == 1
    batches = file.iter_batches(batch_rows=50)
    next(iter(batches))
    plan = file.plan(NAMES, [("p", ">", 150)])
    for thing in (KEYS, keys, file, dataset, batches, plan, file.encryption, file.schema, numparq.cache_info()):
        texts += secrets.texts_of(thing)
        texts.append(secrets.pickle_of(thing) if thing is not batches else b"")
    texts.append(plan.explain())
    assert numparq.verify("one.parquet", decryption=KEYS) == []
    numparq.salvage("one.parquet", "saved.parquet", decryption=KEYS, encryption=keys)
    assert traces(texts) == []


def test_the_search_finds_what_is_there(traces):
    numparq.to_parquet(frame(), "plain.parquet", compression=None, use_dictionary=False)
    numparq.to_parquet(frame(), "key.parquet", encryption=encryption(key_metadata=FOOTER_KEY))
    Path("tmp/key").write_text(COLUMN_KEY.hex())
    logging.getLogger("numparq").warning("%s", TEXT)
    warnings.warn(f"{NUMBER}", stacklevel=1)
    places = {place for _, place in traces([repr(FOOTER_KEY)])}
    assert {Path(place).name for place in places} >= {"plain.parquet", "key.parquet", "key", TEXT, str(NUMBER)}


BAD_FRAMES = {
    "another type": (pd.DataFrame({"n": pd.Series([1, TEXT], dtype=object)}), None),
    "too large": (pd.DataFrame({"n": pd.Series([NUMBER * 10**20], dtype=object)}), None),
    "narrower": (pd.DataFrame({"n": [NUMBER]}), pa.int32()),
    "fractions": (pd.DataFrame({"n": [NUMBER + 0.5]}), pa.int64()),
    "decimal scale": (pd.DataFrame({"n": [Decimal(f"{NUMBER}.25")]}), pa.decimal128(14, 1)),
    "decimal digits": (pd.DataFrame({"n": [Decimal(NUMBER)]}), pa.decimal128(5, 2)),
    "surrogates": (pd.DataFrame({"n": pd.Series([f"{TEXT}\ud800"], dtype=object)}), None),
    "not UTF-8": (pd.DataFrame({"n": [TEXT.encode() + b"\xff"]}), pa.string()),
    "length": (pd.DataFrame({"n": [TEXT.encode()]}), pa.binary(4)),
    "in lists": (pd.DataFrame({"n": [[1], [NUMBER]]}), pa.list_(pa.int32())),
    "in structs": (pd.DataFrame({"n": [{TEXT: 1}]}), pa.struct([("x", pa.int64())])),
    "date": (pd.DataFrame({"n": pd.Series([datetime.date(1, 1, 1), TEXT], dtype=object)}), pa.date32()),
    "class": (pd.DataFrame({"n": pd.Series([type(TEXT, (), {})()], dtype=object)}), None),
}


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_values_that_cannot_be_stored_are_not_quoted(traces, name):
    bad, data_type = BAD_FRAMES[name]
    schema = None if data_type is None else pa.schema([("n", data_type)])

    def write_second(**options):
        writer = numparq.ParquetWriter(None, **options)
        writer.write(pd.DataFrame({"n": np.ones(1, np.int32)}))
        writer.write(bad)

    calls = [
        lambda **options: numparq.to_parquet(bad, schema=schema, **options),
        lambda **options: numparq.to_parquet(bad.assign(q=1), "parts", partition_cols=["q"], **options),
        lambda **options: bad.to_parquet(io.BytesIO(), engine="numparq", schema=schema, **options),
        write_second,
    ]
    keys, texts = numparq.Encryption(FOOTER_KEY, {"n": COLUMN_KEY}), []
    for call in calls:
        try:
            call(encryption=keys)
        except Exception as error:
            texts += secrets.texts_of_error(error)
            texts.append(secrets.pickle_of(error))
    assert texts
    assert traces(texts) == []


def test_values_that_cannot_be_cast_by_a_read_are_not_quoted(traces):
    keys, texts = numparq.Encryption(FOOTER_KEY, {"n": COLUMN_KEY}), []
    decryption = numparq.Decryption(FOOTER_KEY, {"n": COLUMN_KEY})
    casts = [
        (NUMBER * 100_000 + 1, pa.float64()),
        (TEXT.encode() + b"\xff", pa.string()),
        (NUMBER + 0.25, pa.decimal128(20, 1)),
    ]
    for value, data_type in casts:
        numparq.to_parquet(pd.DataFrame({"n": [value, value]}), "cast.parquet", encryption=keys, compression=None)
        for options in ({}, {"on_error": "skip"}):
            schema = pa.schema([("n", data_type)])
            try:
                found = numparq.read_parquet(["cast.parquet"] * 2, decryption=decryption, schema=schema, **options)
                texts.append(repr(found.attrs))
            except numparq.ParquetError as error:
                texts += secrets.texts_of_error(error)
    assert sum("values of encrypted columns are not shown" in text for text in texts) >= len(casts)
    assert traces(texts) == []


def test_deviations_quote_no_values(traces):
    """Statistics that the values of an encrypted column contradict."""
    numbers = {"n": [NUMBER, NUMBER + 1], "s": [TEXT, f"{TEXT}s"], "p": [1, 2]}
    keys = numparq.Encryption(FOOTER_KEY, {"n": COLUMN_KEY, "s": COLUMN_KEY}, plaintext_footer=True)
    file = EncryptedFile(
        numparq.to_parquet(pd.DataFrame(numbers), encryption=keys), FOOTER_KEY, {"n": COLUMN_KEY, "s": COLUMN_KEY}
    )
    for leaf, bound in (
        (0, (NUMBER + 1).to_bytes(8, "little")),
        (1, f"{TEXT}r".encode()),
        (2, (7).to_bytes(8, "little")),
    ):
        metadata = file.metadata(0, leaf)
        metadata.statistics.min_value = bound
        if leaf < 2:
            file.seal_metadata(0, leaf, metadata)
    found = numparq.verify(file.save(), decryption=numparq.Decryption(FOOTER_KEY, {"n": COLUMN_KEY, "s": COLUMN_KEY}))
    bounds = {each.column: str(each) for each in found if each.check == "stats-min"}
    assert "the minimum of the statistics is 7, but value 1 is below it" in bounds["p"]
    assert bounds.keys() == {"n", "s", "p"}
    assert traces(bounds.values()) == []


def test_failures_of_keys_and_files_quote_nothing(traces):
    numparq.to_parquet(frame(), "one.parquet", encryption=encryption(key_metadata=b"kf"), compression=None)
    content = Path("one.parquet").read_bytes()
    wrong = numparq.Decryption(FOOTER_KEY[::-1], {"s": COLUMN_KEY[::-1]})
    retrieving = numparq.Decryption(key_retriever=quoting_retriever)
    returning = numparq.Decryption(key_retriever=lambda metadata: FOOTER_KEY[:-1])
    calls = [
        lambda keys=keys: numparq.read_parquet("one.parquet", decryption=keys) for keys in (wrong, returning, None)
    ]
    rng = np.random.default_rng(5)
    for position in rng.integers(4, len(content) - 8, 40).tolist():
        changed = content[:position] + bytes([content[position] ^ 32]) + content[position + 1 :]
        calls.append(lambda changed=changed: numparq.read_parquet(changed, decryption=KEYS))
        calls.append(lambda changed=changed: repr(numparq.verify(changed, decryption=KEYS)))
        calls.append(
            lambda changed=changed: repr(numparq.read_parquet(changed, decryption=KEYS, on_error="skip").attrs)
        )
    for bad_key in (FOOTER_KEY[:-1], FOOTER_KEY.decode(), bytearray(FOOTER_KEY)):
        calls += [lambda key=bad_key: numparq.Decryption(key), lambda key=bad_key: numparq.Encryption(key)]
        calls += [lambda key=bad_key: numparq.Encryption(FOOTER_KEY, {"s": key})]
        calls += [lambda key=bad_key: numparq.read_parquet("one.parquet", decryption=key)]
        calls += [lambda key=bad_key: numparq.to_parquet(frame(), "x", encryption=key)]
    texts = []
    for call in calls:
        try:
            result = call()
            texts += [result] if isinstance(result, str) else []
        except Exception as error:
            texts += secrets.texts_of_error(error)
            texts.append(secrets.pickle_of(error))
    assert len(texts) > 100
    assert traces(texts) == []
    with pytest.raises(numparq.DecryptionError) as caught:  # the function's own error is the cause, for its author
        numparq.read_parquet("one.parquet", decryption=retrieving)
    assert secrets_in(f"{caught.value} {caught.value.args} {vars(caught.value)}") == []


def test_key_files_and_commands(traces, capsys):
    import base64

    numparq.to_parquet(frame(), "one.parquet", encryption=encryption(), compression=None)
    keys = {
        "footer_key": base64.b64encode(FOOTER_KEY).decode(),
        "column_keys": dict.fromkeys(NAMES, base64.b64encode(COLUMN_KEY).decode()),
    }
    Path("keys.json").write_text(json.dumps(keys))
    Path("keys.json").chmod(0o600)
    texts: list[str | bytes] = [*secrets.texts_of(KeyFile("keys.json"))]
    for command in (["schema"], ["meta"], ["plan", "--filter", "p > 3"], ["verify"]):
        assert main([command[0], "one.parquet", *command[1:], "--key-file", "keys.json"]) == 0
    assert main(["head", "one.parquet", "--columns", "p", "--key-file", "keys.json"]) == 0
    Path("keys.json").chmod(0o644)
    assert main(["head", "one.parquet", "--key-file", "keys.json"]) == 1
    Path("keys.json").chmod(0o600)
    for broken in (json.dumps(keys)[:-1], json.dumps({**keys, "footer_key": keys["footer_key"][:-1]})):
        Path("keys.json").write_text(broken)
        assert main(["head", "one.parquet", "--key-file", "keys.json"]) == 1
        with contextlib.suppress(ValueError):
            KeyFile("keys.json")
    texts += [*capsys.readouterr()]
    assert traces(texts) == []
