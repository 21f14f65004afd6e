"""Encrypted files of shared jobs and dataset writers: keys by name, checks at the commit, AAD prefixes of parts."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq import Dataset, DatasetWriter, Decryption, DecryptionError, Encryption, PartPrefix, SchemaError
from numparq.dataset.write.shared_job import SharedJob
from numparq.errors import UnsupportedError

pytest.importorskip("cryptography")

FOOTER, OTHER, COLUMN = b"marker: footer k", b"marker: another!", b"marker: first column key"
FRAME = pd.DataFrame({"day": [1, 1, 2], "a": [1, 2, 3], "s": ["marker x", "marker y", None]})
SCHEMA = pa.schema([("day", pa.int64()), ("a", pa.int64()), ("s", pa.string())])
PREFIX = PartPrefix(b"lake/events")


def encryption(**options):
    return Encryption(FOOTER, {"s": COLUMN}, encrypt_other_columns=True, **options)


def decryption(**options):
    return Decryption(FOOTER, {"s": COLUMN}, **options)


def write_job(folder, frame=FRAME, **options):
    job = SharedJob.begin(folder, partition_cols=["day"], **options)
    messages = []
    try:
        for number in range(2):
            with job.task(str(number)) as writer:
                writer.write(frame)
            messages.append(writer.message)
        job.commit(messages)
    except BaseException:
        job.abort()
        raise
    return messages


@pytest.fixture
def provider(tmp_path, monkeypatch):
    """Return the name of a new module of providers."""
    name = f"keys_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "import numparq\n"
        f"def writing():\n    return numparq.Encryption({FOOTER!r}, {{'s': {COLUMN!r}}}, encrypt_other_columns=True)\n"
        f"def reading():\n    return numparq.Decryption({FOOTER!r}, {{'s': {COLUMN!r}}})\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["inferred", "given"])
@pytest.mark.parametrize("prefix", [None, PREFIX])
def test_jobs_write_encrypted_parts(tmp_path, plaintext_footer, schema, prefix):
    keys = encryption(plaintext_footer=plaintext_footer, aad_prefix=prefix)
    for _ in range(2):
        messages = write_job(tmp_path / "data", encryption=keys, schema=schema)
    assert not any(b"marker" in pickle.dumps(message) for message in messages)
    contents = [path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert len(contents) == 8
    assert not any(b"marker" in content for content in contents)
    read = numparq.read_parquet(tmp_path / "data", decryption=decryption(aad_prefix=prefix))
    assert sorted(read["a"]) == sorted([*FRAME["a"]] * 4)
    with pytest.raises(DecryptionError, match="pass decryption="):
        numparq.read_parquet(tmp_path / "data", columns=["s"])


def test_jobs_travel_by_the_name_of_a_provider_alone(tmp_path, provider):
    for options in ({"encryption": encryption()}, {"encryption": f"{provider}:writing", "decryption": decryption()}):
        job = SharedJob.begin(tmp_path / "data", **options)
        with pytest.raises(TypeError, match=r"a shared job cannot be pickled .*'package.module:attribute'"):
            pickle.dumps(job)
        job.abort()
    job = SharedJob.begin(
        tmp_path / "data",
        schema=SCHEMA,
        encryption=f"{provider}:writing",
        decryption=f"{provider}:reading",
        outlives=True,
    )
    pickled = pickle.dumps(job)
    assert b"marker" not in pickled
    script = (
        "import pickle, pandas\n"
        f"job = pickle.loads({pickled!r})\n"
        "with job.task('0') as writer:\n"
        "    writer.write(pandas.DataFrame({'day': [1], 'a': [7], 's': ['written elsewhere']}))\n"
        "print(pickle.dumps(writer.message).hex())"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    job.commit([pickle.loads(bytes.fromhex(done.stdout))])
    assert numparq.read_parquet(tmp_path / "data", decryption=decryption())["s"].tolist() == ["written elsewhere"]


def test_tasks_encrypt_as_their_job(tmp_path):
    job = SharedJob.begin(tmp_path / "data")
    with pytest.raises(ValueError, match=r"pass encryption= to SharedJob\.begin"):
        job.task("0", encryption=encryption())
    job.abort()
    with pytest.raises(SchemaError, match="column_keys names 'absent'"):
        SharedJob.begin(tmp_path / "data", schema=SCHEMA, encryption=Encryption(FOOTER, {"absent": COLUMN}))
    with pytest.raises(SchemaError, match="column_keys names 'day'"):
        SharedJob.begin(
            tmp_path / "data", schema=SCHEMA, partition_cols=["day"], encryption=Encryption(FOOTER, {"day": COLUMN})
        )


def write_with_job(folder, frame, **options):
    return write_job(folder, frame, **options)


def write_with_writer(folder, frame, **options):
    with DatasetWriter(
        folder, partition_cols=["day"], existing_data_behavior="overwrite_or_ignore", **options
    ) as writer:
        writer.write(frame)


@pytest.mark.parametrize("write", [write_with_job, write_with_writer])
@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_added_files_are_compared_with_existing_ones(tmp_path, write, plaintext_footer):
    folder = tmp_path / "data"
    write(folder, FRAME, encryption=encryption(plaintext_footer=plaintext_footer))
    files = sorted(folder.rglob("*.parquet"))
    wrong = FRAME.assign(a=["not", "a", "number"])
    other = Encryption(OTHER, plaintext_footer=plaintext_footer)
    for options in ({"encryption": encryption()}, {"encryption": other, "decryption": decryption()}):
        with pytest.raises(SchemaError, match="do not form one table"):
            write(folder, wrong, **options)
    with pytest.raises(DecryptionError, match="cannot be compared with an existing one") as caught:
        write(folder, wrong, encryption=other)
    assert "pass decryption= with the keys of the existing files" in str(caught.value)
    assert "marker" not in str(caught.value)
    with pytest.raises(SchemaError if plaintext_footer else DecryptionError):
        write(folder, wrong)  # plain files: a plaintext footer tells the types without keys
    assert sorted(folder.rglob("*.parquet")) == files
    write(folder, FRAME, encryption=encryption(), decryption=decryption())
    assert sum(len(each) for each in numparq.Dataset(folder, decryption=decryption()).iter_batches()) >= 2 * len(FRAME)


def test_types_of_existing_encrypted_files_count(tmp_path):
    schema = pa.schema([("a", pa.int8()), ("s", pa.string())])
    with DatasetWriter(tmp_path, schema, encryption=encryption()) as writer:
        writer.write(FRAME[["a", "s"]])
    numparq.to_parquet(FRAME[["a", "s"]], tmp_path, partition_cols=[], append=True, encryption=encryption())
    for path in tmp_path.glob("*.parquet"):
        assert numparq.ParquetFile(path, decryption=decryption()).read()["a"].dtype == "int8"


def test_metadata_files_over_encrypted_parts_are_refused(tmp_path):
    frame = FRAME[["a", "s"]]
    for number, plaintext_footer in enumerate((False, True)):
        folder = tmp_path / str(number)
        with DatasetWriter(folder, encryption=encryption(plaintext_footer=plaintext_footer)) as writer:
            writer.write(frame)
        keys = decryption(allow_plaintext_files=True)
        writer = DatasetWriter(
            folder, existing_data_behavior="overwrite_or_ignore", write_metadata_file=True, decryption=keys
        )
        with pytest.raises(UnsupportedError, match="encrypted"), writer:
            writer.write(frame)
        assert len(list(folder.iterdir())) == 1


def test_errors_of_tasks_quote_no_values(tmp_path):
    job = SharedJob.begin(
        tmp_path / "data", schema=pa.schema([("a", pa.int64()), ("s", pa.int64())]), encryption=encryption()
    )
    with pytest.raises(SchemaError) as caught, job.task("0") as writer:
        writer.write(pd.DataFrame({"a": [1], "s": ["marker value"]}))
    assert "marker" not in str(caught.value)
    assert caught.value.__cause__ is None
    job.abort()


@pytest.mark.parametrize("store", [True, False])
def test_parts_have_prefixes_of_their_paths(tmp_path, store):
    folder = tmp_path / "events"
    with DatasetWriter(folder, partition_cols=["day"], encryption=encryption(aad_prefix=PREFIX)) as writer:
        writer.write(FRAME)
    if not store:
        folder = tmp_path / "again"
        with DatasetWriter(
            folder, partition_cols=["day"], encryption=encryption(aad_prefix=PREFIX, store_aad_prefix=False)
        ) as writer:
            writer.write(FRAME)
    keys = decryption(aad_prefix=PREFIX)
    with Dataset(folder, decryption=keys) as dataset:
        assert sorted(dataset.read()["a"]) == [1, 2, 3]
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        own = decryption(aad_prefix=PREFIX.of(name))
        rows = numparq.read_parquet(path, decryption=own)
        assert len(rows) in (1, 2)
        rooted = decryption(aad_prefix=PartPrefix(PREFIX.prefix, root=folder))
        for read in (path, path.parent, [path], str(path.parent / "*.parquet")):
            assert numparq.read_parquet(read, decryption=rooted)["a"].tolist() == rows["a"].tolist()
        assert numparq.ParquetFile(path, decryption=rooted).read()["a"].tolist() == rows["a"].tolist()
        for read in (path, [path], str(path.parent / "*.parquet")):
            with pytest.raises(ValueError, match=r"pass PartPrefix\(\.\.\., root=\)"):
                numparq.read_parquet(read, decryption=keys)
        with pytest.raises(ValueError, match="is not below"):
            numparq.read_parquet(path, decryption=decryption(aad_prefix=PartPrefix(b"x", root=tmp_path / "other")))
        with pytest.raises(DecryptionError, match="AAD prefix differs" if store else "did not authenticate"):
            numparq.read_parquet(path.parent, decryption=keys)


def test_a_part_of_a_dataset_is_written_by_its_root(tmp_path):
    rooted = PartPrefix(b"lake", root=tmp_path)
    with DatasetWriter(tmp_path / "day=1", encryption=encryption(aad_prefix=rooted)) as writer:
        writer.write(FRAME[["a", "s"]])
    read = numparq.read_parquet(tmp_path, decryption=decryption(aad_prefix=PartPrefix(b"lake")))
    assert read["a"].tolist() == [1, 2, 3]
    with pytest.raises(UnsupportedError, match=r"for one file pass aad_prefix=PartPrefix\(\.\.\.\)\.of\(path\)"):
        numparq.to_parquet(FRAME, tmp_path / "a.parquet", encryption=encryption(aad_prefix=PREFIX))


@pytest.mark.parametrize("internal", [True, False], ids=["in the files", "outside"])
def test_keys_of_a_kms_by_the_name_of_a_provider(tmp_path, monkeypatch, internal):
    """Jobs and datasets are pickled, and parts tied to their paths, wherever the key material is."""
    masters = {name: base64.b64encode(os.urandom(16)).decode() for name in ("lake", "pay")}
    (tmp_path / "keys.json").write_text(json.dumps(masters))
    (tmp_path / "keys.json").chmod(0o600)
    name = f"kms_of_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(
        "import numparq\n"
        "from numparq.keys.clients import FileKms\n"
        f"kms, prefix = FileKms({str(tmp_path / 'keys.json')!r}), numparq.PartPrefix(b'lake/events')\n"
        "def reading():\n    return numparq.KmsDecryption(kms, aad_prefix=prefix)\n"
        "def writing():\n"
        f"    options = {{'internal_key_material': {internal}, 'encrypt_other_columns': True}}\n"
        "    return numparq.KmsEncryption(kms, 'lake', {'pay': ['s']}, aad_prefix=prefix, **options)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    names = {"encryption": f"{name}:writing", "decryption": f"{name}:reading"}
    folder, parts = tmp_path / "data", {}
    for _ in range(2):
        job = SharedJob.begin(folder, partition_cols=["day"], **names)
        with pickle.loads(pickle.dumps(job)).task("0") as writer:
            writer.write(FRAME)
        job.commit([writer.message])
        parts |= writer.message.parts
    material = list(folder.rglob("_KEY_MATERIAL_FOR_*"))
    assert len(material) == (0 if internal else len(parts))
    with Dataset(folder, decryption=names["decryption"], expected_parts=parts) as dataset:
        pickled = pickle.dumps(dataset)
        assert not any(key.encode() in pickled for key in masters.values())
        assert sorted(pickle.loads(pickled).read()["a"]) == sorted(dataset.read()["a"]) == [1, 1, 2, 2, 3, 3]
    with pytest.raises(SchemaError, match="do not form one table"):
        write_job(folder, FRAME.assign(a="x"), encryption=names["encryption"])
    first, last = sorted(parts)[0], sorted(parts)[-1]
    contents = (folder / first).read_bytes(), (folder / last).read_bytes()
    (folder / first).write_bytes(contents[1]), (folder / last).write_bytes(contents[0])
    with pytest.raises(DecryptionError):
        numparq.read_parquet(folder, decryption=names["decryption"])
