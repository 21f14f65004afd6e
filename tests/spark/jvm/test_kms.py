"""Key material between numparq and parquet-java, whose key tools ask a KMS client in Java."""

from __future__ import annotations

import base64
import json

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import KmsDecryption, KmsEncryption

pytest.importorskip("cryptography")
pytest.importorskip("pyspark")
from support.encryption.kms import MASTER_KEYS, MemoryKms
from support.spark.java import compile_class, hadoop_options

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JAVA = """
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.crypto.keytools.*;

public class TestKms implements KmsClient {
  private Configuration options;

  public void initialize(Configuration options, String instance, String url, String token) {
    this.options = options;
  }

  private byte[] masterKey(String name) {
    return options.get("test.master." + name).getBytes(StandardCharsets.UTF_8);
  }

  public String wrapKey(byte[] key, String name) {
    return KeyToolkit.encryptKeyLocally(key, masterKey(name), name.getBytes(StandardCharsets.UTF_8));
  }

  public byte[] unwrapKey(String wrapped, String name) {
    return KeyToolkit.decryptKeyLocally(wrapped, masterKey(name), name.getBytes(StandardCharsets.UTF_8));
  }
}
"""
OPTIONS = {
    "parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
    "parquet.encryption.kms.client.class": "TestKms",
    **{f"test.master.{name}": key.decode() for name, key in MASTER_KEYS.items()},
}
COLUMN_KEYS = {"kc1": ["a"], "kc2": ["s"]}
FRAME = pd.DataFrame(
    {
        "a": np.arange(2000),
        "s": [f"x{row % 9}" if row % 5 else None for row in range(2000)],
        "c": np.arange(2000) / 4,
    }
)


@pytest.fixture(scope="module")
def kms_in_java(spark, java_classes, tmp_path_factory):
    """Compile the client, and let parquet-java use it in this session."""
    compile_class("TestKms", JAVA, tmp_path_factory.mktemp("java"), java_classes)
    with hadoop_options(spark, OPTIONS):
        yield


def assert_spark_reads(spark, path) -> None:
    read = spark.read.parquet(str(path))
    pd.testing.assert_frame_equal(read.toPandas(), FRAME, check_dtype=False)


def assert_numparq_reads(path) -> None:
    read = numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()))
    pd.testing.assert_frame_equal(read, FRAME, check_dtype=False)


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("double_wrapping", [True, False])
@pytest.mark.parametrize(
    ("algorithm", "bits", "plaintext_footer"), [("AES_GCM_V1", 128, True), ("AES_GCM_CTR_V1", 256, False)]
)
def test_spark_reads_ours(spark, kms_in_java, tmp_path, internal, double_wrapping, algorithm, bits, plaintext_footer):
    encryption = KmsEncryption(
        MemoryKms(),
        "kf",
        COLUMN_KEYS,
        double_wrapping=double_wrapping,
        internal_key_material=internal,
        data_key_length_bits=bits,
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
    )
    numparq.to_parquet(FRAME, tmp_path / "a.parquet", row_group_size=700, encryption=encryption)
    options = {"parquet.encryption.key.material.store.internally": str(internal).lower()}
    with hadoop_options(spark, options):
        assert_spark_reads(spark, tmp_path / "a.parquet")


@pytest.mark.parametrize("internal", [True, False])
@pytest.mark.parametrize("double_wrapping", [True, False])
@pytest.mark.parametrize("mode", ["columns", "uniform"])
def test_files_of_spark_are_read(spark, kms_in_java, tmp_path, internal, double_wrapping, mode):
    options = {
        "parquet.encryption.double.wrapping": str(double_wrapping).lower(),
        "parquet.encryption.key.material.store.internally": str(internal).lower(),
    }
    if mode == "uniform":
        options["parquet.encryption.uniform.key"] = "kf"
    else:
        options |= {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:a;kc2:s"}
    with hadoop_options(spark, options):
        spark.createDataFrame(FRAME).coalesce(1).write.parquet(str(tmp_path / "a"))
    assert_numparq_reads(tmp_path / "a")
    (file,) = (tmp_path / "a").glob("*.parquet")
    assert_numparq_reads(file)
    assert len([*(tmp_path / "a").glob("_KEY_MATERIAL_FOR_*.json")]) == (not internal)


def test_key_tools_of_java_rotate_ours(spark, kms_in_java, tmp_path):
    encryption = KmsEncryption(MemoryKms(), "kf", COLUMN_KEYS, internal_key_material=False)
    numparq.to_parquet(FRAME, tmp_path / "a.parquet", encryption=encryption)
    material = tmp_path / "_KEY_MATERIAL_FOR_a.parquet.json"
    before = json.loads(material.read_bytes())
    toolkit = spark._jvm.org.apache.parquet.crypto.keytools.KeyToolkit
    with hadoop_options(spark, {"parquet.encryption.key.material.store.internally": "false"}):
        toolkit.rotateMasterKeys(str(tmp_path), spark.sparkContext._jsc.hadoopConfiguration())
        after = json.loads(material.read_bytes())
        assert after.keys() == before.keys()
        assert after != before
        assert_spark_reads(spark, tmp_path / "a.parquet")
    assert_numparq_reads(tmp_path / "a.parquet")


def test_ours_rotates_files_of_spark(spark, kms_in_java, tmp_path):
    options = {
        "parquet.encryption.key.material.store.internally": "false",
        "parquet.encryption.footer.key": "kf",
        "parquet.encryption.column.keys": "kc1:a;kc2:s",
    }
    with hadoop_options(spark, options):
        spark.createDataFrame(FRAME).coalesce(1).write.parquet(str(tmp_path / "a"))
        assert numparq.rotate_master_keys(tmp_path / "a", MemoryKms(), double_wrapping=False) == 1
        assert_spark_reads(spark, tmp_path / "a")
    assert_numparq_reads(tmp_path / "a")


PROVIDER = """
import numparq
from numparq.keys.clients import FileKms

def reading():
    return numparq.KmsDecryption(FileKms({path!r}))

def writing():
    column_keys = {{"kc1": ["a"], "kc2": ["s"]}}
    return numparq.KmsEncryption(FileKms({path!r}), "kf", column_keys, internal_key_material=False)
"""


@pytest.fixture
def providers(spark, tmp_path, monkeypatch):
    """Return the name of a module of providers that the driver and the workers can import."""
    name = "kms_of_spark_tests"
    (tmp_path / "providers").mkdir()
    path = tmp_path / "providers" / "keys.json"
    path.write_text(json.dumps({name: base64.b64encode(key).decode() for name, key in MASTER_KEYS.items()}))
    path.chmod(0o600)
    (path.parent / f"{name}.py").write_text(PROVIDER.format(path=str(path)))
    monkeypatch.syspath_prepend(path.parent)
    spark.sparkContext.addPyFile(str(path.parent / f"{name}.py"))
    return name


def test_the_data_source_stores_key_material_next_to_its_files(spark, registered, kms_in_java, providers, tmp_path):
    path = tmp_path / "table"
    rows = spark.createDataFrame(FRAME).repartition(3)
    rows.write.format("numparq").option("encryption", f"{providers}:writing").mode("append").save(str(path))
    assert len([*path.glob("_KEY_MATERIAL_FOR_*.json")]) == len([*path.glob("part-*")]) > 1
    read = spark.read.format("numparq").option("decryption", f"{providers}:reading").load(str(path))
    expected = FRAME.sort_values("a", ignore_index=True)
    frames = [read.toPandas(), numparq.read_parquet(path, decryption=KmsDecryption(MemoryKms()))]
    with hadoop_options(spark, {"parquet.encryption.key.material.store.internally": "false"}):
        frames.append(spark.read.parquet(str(path)).toPandas())
    for frame in frames:
        pd.testing.assert_frame_equal(frame.sort_values("a", ignore_index=True), expected, check_dtype=False)
