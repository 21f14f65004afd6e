"""Encrypted files on Spark: keys by the name of a provider, which every process resolves; nothing else travels."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import Decryption, Encryption

pytest.importorskip("cryptography")
pyspark = pytest.importorskip("pyspark")

from pyspark import cloudpickle  # noqa: E402

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FOOTER, COLUMN, OTHER = b"marker: footer k", b"marker: first column key", b"marker: another!"
NAME = "keys_of_spark_tests"
PROVIDER = f"""
import numparq

KEYS = {{"s": {COLUMN!r}}}
PREFIX = numparq.PartPrefix(b"lake/events")

def reading():
    return numparq.Decryption({FOOTER!r}, KEYS)

def partial():
    return numparq.Decryption({FOOTER!r})

def other():
    return numparq.Decryption({OTHER!r}, KEYS)

def parts():
    return numparq.Decryption({FOOTER!r}, KEYS, aad_prefix=PREFIX)

def writing():
    return numparq.Encryption({FOOTER!r}, KEYS, encrypt_other_columns=True)

def writing_parts():
    return numparq.Encryption({FOOTER!r}, KEYS, encrypt_other_columns=True, aad_prefix=PREFIX)

def rotated():
    return numparq.Encryption({OTHER!r}, plaintext_footer=True)

def broken():
    raise ValueError("marker of a secret")
"""
ROWS = pd.DataFrame(
    {
        "a": np.arange(4000),
        "s": [f"marker value {row % 9}" for row in range(4000)],
        "day": np.arange(4000) // 1000,
    }
)
READING = f"{NAME}:reading"


@pytest.fixture(scope="module")
def provider(spark, tmp_path_factory, registered):
    """Put a module of providers on the paths of the driver and of the workers."""
    import sys

    folder = tmp_path_factory.mktemp("providers")
    path = folder / f"{NAME}.py"
    path.write_text(PROVIDER)
    spark.sparkContext.addPyFile(str(path))
    sys.path.insert(0, str(folder))
    yield NAME
    sys.path.remove(str(folder))


@pytest.fixture
def folder(tmp_path, provider):
    """Write an encrypted dataset."""
    encryption = Encryption(FOOTER, {"s": COLUMN}, encrypt_other_columns=True)
    with numparq.DatasetWriter(tmp_path / "table", partition_cols=["day"], encryption=encryption) as writer:
        writer.write(ROWS)
    return str(tmp_path / "table")


def sorted_rows(frame):
    return frame.select("a", "s", "day").toPandas().sort_values("a", ignore_index=True)


def expect(rows, expected=ROWS):
    pd.testing.assert_frame_equal(rows, expected.reset_index(drop=True), check_dtype=False)


def plan_text(frame, capsys):
    frame.explain(True)
    return capsys.readouterr().out


def test_the_data_source_reads_with_a_provider(spark, folder, capsys):
    frame = spark.read.format("numparq").option("decryption", READING).load(folder)
    expect(sorted_rows(frame))
    filtered = spark.read.format("numparq").options(decryption=READING, filter="a > 3900").load(folder)
    expect(sorted_rows(filtered), ROWS[3901:])
    assert frame.count() == 4000
    assert "marker" not in plan_text(frame, capsys) + plan_text(filtered, capsys)
    with pytest.raises(Exception, match="the footer is encrypted; pass decryption="):
        spark.read.format("numparq").load(folder).collect()


def test_read_and_jobs_take_a_name(spark, folder, capsys):
    frame = numparq.spark.read(spark, folder, decryption=READING)
    expect(sorted_rows(frame))
    assert frame.count() == 4000
    assert "marker" not in plan_text(frame, capsys)
    assert b"marker" not in cloudpickle.dumps((frame._scan.splits, frame._scan.batch_reader))
    assert NAME.encode() in cloudpickle.dumps(frame._scan.batch_reader)
    mapped = numparq.spark.map_pandas(spark, folder, lambda rows: rows[["a"]], "a bigint", ["a"], decryption=READING)
    assert sorted(row.a for row in mapped.collect()) == ROWS["a"].tolist()
    total = numparq.spark.aggregate_pandas(
        spark, folder, lambda rows: rows.groupby("s")["a"].sum(), lambda sums: sums.sum(), decryption=READING
    )
    assert total == ROWS["a"].sum()
    small = spark.createDataFrame([(5,), (3999,)], "a bigint")
    joined = numparq.spark.read(spark, folder, runtime_filters={"a": small}, decryption=READING).join(small, "a")
    assert sorted(row.a for row in joined.collect()) == [5, 3999]
    paths = spark.createDataFrame(pd.DataFrame({"path": numparq.Dataset(folder, decryption=READING).files}))

    def rows(frames):
        for each in frames:
            yield numparq.spark.decode_paths(each["path"], ["a"], decryption="keys_of_spark_tests:reading")

    assert paths.mapInPandas(rows, "a bigint").count() == 4000


@pytest.mark.driver_reads
def test_rows_of_encrypted_files_never_pass_through_a_temporary_file(spark, folder, monkeypatch):
    from numparq.spark.scan import local_frame

    def refuse(*arguments):
        raise AssertionError("plaintext in a temporary file")

    monkeypatch.setattr(local_frame, "create_local_frame", refuse)
    frame = numparq.spark.read(spark, folder, ["a", "s", "day"], "a < 3", decryption=READING)
    expect(sorted_rows(frame), ROWS[:3])


def test_other_keys_and_none_get_their_own_answers(spark, folder):
    for _ in range(2):
        expect(sorted_rows(numparq.spark.read(spark, folder, decryption=READING)))
        with pytest.raises(numparq.DecryptionError, match="did not authenticate"):
            numparq.spark.read(spark, folder, decryption=f"{NAME}:other")
        with pytest.raises(numparq.DecryptionError, match="pass decryption="):
            numparq.spark.read(spark, folder)
        partial = numparq.spark.read(spark, folder, ["a"], decryption=f"{NAME}:partial")
        assert partial.count() == 4000
        assert {row.a for row in partial.collect()} == set(range(4000))
        with pytest.raises(Exception, match="column 's' is encrypted with a key that was not given"):
            numparq.spark.read(spark, folder, ["s"], decryption=f"{NAME}:partial").collect()


def test_objects_with_keys_are_refused_by_name(spark, folder):
    keys = Decryption(FOOTER, {"s": COLUMN})
    for call in (
        lambda: numparq.spark.read(spark, folder, decryption=keys),
        lambda: numparq.spark.map_pandas(spark, folder, lambda rows: rows, "a bigint", decryption=keys),
        lambda: numparq.spark.aggregate_pandas(spark, folder, len, sum, decryption=keys),
    ):
        with pytest.raises(TypeError, match=r"keys do not travel .*'package.module:attribute', not Decryption"):
            call()
    for text in (keys, "bWFya2VyOiBmb290ZXIgaw=="):
        with pytest.raises(Exception, match="must be the name of a key provider") as caught:
            spark.read.format("numparq").option("decryption", text).load(folder)
        assert "bWFya2Vy" not in str(caught.value)


def test_errors_of_providers_say_what_to_change(spark, folder):
    with pytest.raises(ImportError, match="must be importable in every process that opens files"):
        numparq.spark.read(spark, folder, decryption="no_such_module:keys")
    with pytest.raises(Exception, match="must be importable in every process that opens files"):
        spark.read.format("numparq").option("decryption", "no_such_module:keys").load(folder)
    with pytest.raises(Exception, match="the key provider 'keys_of_spark_tests:broken' failed: ValueError"):
        spark.read.format("numparq").option("decryption", f"{NAME}:broken").load(folder)


def write(frame, folder, mode="append", **options):
    frame.write.format("numparq").mode(mode).options(**options).save(folder)


def test_the_writer_encrypts_with_a_provider(spark, tmp_path, provider):
    folder = str(tmp_path / "written")
    frame = spark.createDataFrame(ROWS).repartition(3)
    for _ in range(2):
        write(frame, folder, encryption=f"{NAME}:writing", partitionBy="day")
    files = [path for path in (tmp_path / "written").rglob("*") if path.is_file()]
    assert not any(b"marker" in path.read_bytes() for path in files)
    assert all(path.read_bytes()[-4:] == b"PARE" for path in files if path.suffix == ".parquet")
    assert len(numparq.read_parquet(folder, decryption=READING)) == 8000
    write(frame, folder, "overwrite", encryption=f"{NAME}:writing", partitionBy="day")
    expect(sorted_rows(numparq.spark.read(spark, folder, decryption=READING)))


def test_commits_compare_with_existing_encrypted_parts(spark, tmp_path, provider):
    folder = str(tmp_path / "written")
    frame = spark.createDataFrame(ROWS).coalesce(1)
    write(frame, folder, encryption=f"{NAME}:writing")
    wrong = frame.selectExpr("s as a", "s", "day")
    with pytest.raises(Exception, match="do not form one table with the existing ones"):
        write(wrong, folder, encryption=f"{NAME}:writing")
    with pytest.raises(Exception, match="pass decryption= with the keys of the existing files"):
        write(frame, folder, encryption=f"{NAME}:rotated")
    with pytest.raises(Exception, match="pass decryption= with the keys of the existing files"):
        write(frame, folder)
    assert len(numparq.read_parquet(folder, decryption=READING)) == 4000
    write(frame, folder, encryption=f"{NAME}:rotated", decryption=READING)


def test_parts_are_tied_to_their_paths(spark, tmp_path, provider):
    folder = tmp_path / "events"
    frame = spark.createDataFrame(ROWS).coalesce(1)
    write(frame, str(folder), encryption=f"{NAME}:writing_parts", partitionBy="day")
    parts = f"{NAME}:parts"
    expect(sorted_rows(numparq.spark.read(spark, str(folder), decryption=parts)))
    expect(sorted_rows(spark.read.format("numparq").option("decryption", parts).load(str(folder))))
    (first,), (second,) = ((folder / f"day={day}").glob("*.parquet") for day in (0, 1))
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1]), second.write_bytes(contents[0])
    with pytest.raises(numparq.DecryptionError, match="AAD prefix differs"):
        numparq.spark.read(spark, str(folder), decryption=parts)
    first.write_bytes(contents[0]), second.write_bytes(contents[1])
    expected = numparq.Dataset(folder, decryption=parts).parts
    assert numparq.spark.read(spark, str(folder), decryption=parts, expected_parts=expected).count() == 4000
    options = {"decryption": parts, "expectedParts": json.dumps(expected)}
    assert spark.read.format("numparq").options(**options).load(str(folder)).count() == 4000
    second.unlink()
    with pytest.raises(Exception, match="parts of expected_parts are missing"):
        spark.read.format("numparq").options(**options).load(str(folder))
    with pytest.raises(numparq.InvalidFileError, match="parts of expected_parts are missing"):
        numparq.spark.read(spark, str(folder), decryption=parts, expected_parts=expected)


def test_jobs_of_the_writer_hold_names_alone(spark, tmp_path, provider):
    from pyspark.sql.types import LongType, StructField, StructType

    from numparq.spark.data_source.writer import make_writer

    schema = StructType([StructField("s", LongType())])
    options = {"path": str(tmp_path / "data"), "encryption": f"{NAME}:writing", "decryption": READING}
    writer = make_writer(options, schema, False)
    for dump in (pickle.dumps, cloudpickle.dumps):
        pickled = dump(writer)
        assert NAME.encode() in pickled
        assert b"marker" not in pickled
    writer.abort([])


def test_a_base_path_is_the_root_of_parts(spark, tmp_path, provider):
    folder = tmp_path / "events"
    write(spark.createDataFrame(ROWS).coalesce(1), str(folder), encryption=f"{NAME}:writing_parts", partitionBy="day")
    parts = f"{NAME}:parts"
    read = spark.read.format("numparq").options(decryption=parts, basePath=str(folder)).load(f"{folder}/day=2")
    expect(sorted_rows(read), ROWS[2000:3000])
    with pytest.raises(Exception, match="AAD prefix differs"):
        spark.read.format("numparq").option("decryption", parts).load(f"{folder}/day=2")
