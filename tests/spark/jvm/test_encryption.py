"""Encrypted files between numparq and parquet-java, whose readers and writers get their keys from a class in Java."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import numparq

pytest.importorskip("cryptography")
pytest.importorskip("pyspark")
from support.oracles.encryption import decrypt_file
from support.spark.java import compile_class, hadoop_options

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# Key metadata is the key itself, so that Java finds keys by metadata and Python by columns.
FOOTER, FIRST = b"footer key of 16", b"first column key of 24 b"
SECOND = b"second key of a column: 32 bytes"
METADATA = {None: FOOTER, "a": FIRST, "s": SECOND}
JAVA = """
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.crypto.*;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.ColumnPath;

public class TestKeys implements DecryptionPropertiesFactory, EncryptionPropertiesFactory {
  public FileDecryptionProperties getFileDecryptionProperties(Configuration options, Path file) {
    FileDecryptionProperties.Builder builder = FileDecryptionProperties.builder();
    return builder.withKeyRetriever(metadata -> metadata).withPlaintextFilesAllowed().build();
  }

  public FileEncryptionProperties getFileEncryptionProperties(
      Configuration options, Path file, WriteSupport.WriteContext context) {
    Map<ColumnPath, ColumnEncryptionProperties> columns = new HashMap<>();
    for (String name : new String[] {"a", "s"}) {
      byte[] key = options.get("test.key." + name).getBytes();
      ColumnEncryptionProperties.Builder column = ColumnEncryptionProperties.builder(name);
      columns.put(ColumnPath.get(name), column.withKey(key).withKeyMetaData(key).build());
    }
    byte[] footer = options.get("test.key.footer").getBytes();
    FileEncryptionProperties.Builder builder = FileEncryptionProperties.builder(footer)
        .withFooterKeyMetadata(footer)
        .withEncryptedColumns(columns)
        .withAlgorithm(ParquetCipher.valueOf(options.get("test.algorithm")));
    return (options.get("test.footer").equals("plain") ? builder.withPlaintextFooter() : builder).build();
  }
}
"""
FRAME = pd.DataFrame(
    {
        "a": np.arange(3000),
        "s": [f"x{row % 9}" if row % 5 else None for row in range(3000)],
        "c": np.arange(3000) / 4,
    }
)


@pytest.fixture(scope="module")
def keys_in_java(spark, java_classes, tmp_path_factory):
    """Compile the class, and let parquet-java use it in this session."""
    compile_class("TestKeys", JAVA, tmp_path_factory.mktemp("java"), java_classes)
    with hadoop_options(spark, {"parquet.crypto.factory.class": "TestKeys"}):
        yield


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("vectorized", [False, True])
def test_spark_reads_our_files(spark, keys_in_java, tmp_path, algorithm, plaintext_footer, vectorized):
    encryption = numparq.Encryption(
        FOOTER,
        {"a": FIRST, "s": SECOND},
        key_metadata=METADATA,
        algorithm=algorithm,
        plaintext_footer=plaintext_footer,
    )
    numparq.to_parquet(FRAME, tmp_path / "a.parquet", row_group_size=1000, max_rows_per_page=250, encryption=encryption)
    spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorized)
    read = spark.read.parquet(str(tmp_path / "a.parquet"))
    pd.testing.assert_frame_equal(read.toPandas(), FRAME, check_dtype=False)
    assert read.filter("a = 1234").select("c").collect()[0].c == 308.5


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("footer", ["encrypted", "plain"])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_files_of_spark_are_read(spark, keys_in_java, tmp_path, algorithm, footer, version):
    options = {"test.key.footer": FOOTER.decode(), "test.key.a": FIRST.decode(), "test.key.s": SECOND.decode()}
    options |= {"test.algorithm": algorithm, "test.footer": footer, "parquet.writer.version": version}
    options |= {"parquet.page.row.count.limit": "200"}
    with hadoop_options(spark, options):
        spark.createDataFrame(FRAME).coalesce(1).write.parquet(str(tmp_path / "a"))
    for keys in (
        numparq.Decryption(FOOTER, {"a": FIRST, "s": SECOND}),
        numparq.Decryption(key_retriever=lambda metadata: metadata),
    ):
        pd.testing.assert_frame_equal(numparq.read_parquet(tmp_path / "a", decryption=keys), FRAME, check_dtype=False)
        rows = numparq.read_parquet(tmp_path / "a", filters=[("a", ">=", 2990)], decryption=keys)
        pd.testing.assert_frame_equal(rows, FRAME[2990:].reset_index(drop=True), check_dtype=False)
    (file,) = (tmp_path / "a").glob("*.parquet")
    assert file.read_bytes()[-4:] == (b"PAR1" if footer == "plain" else b"PARE")
    found = numparq.verify(file, decryption=numparq.Decryption(FOOTER, {"a": FIRST, "s": SECOND}))
    assert [str(each) for each in found if each.severity == "error"] == []
    quirks = [
        name for name, is_there in (("levels", version == "v2"), ("size-statistics", footer == "plain")) if is_there
    ]
    known = sorted(each.check for each in found if each.check.startswith("writer-"))
    assert sorted(set(known)) == [f"writer-{name}" for name in quirks]
    decrypted = decrypt_file(file.read_bytes(), FOOTER, {"a": FIRST, "s": SECOND})
    pd.testing.assert_frame_equal(numparq.read_parquet(decrypted), FRAME, check_dtype=False)
    partial = numparq.ParquetFile(file, decryption=numparq.Decryption(FOOTER, {"a": FIRST}))
    assert partial.read(["a"])["a"].tolist() == FRAME["a"].tolist()
    with pytest.raises(numparq.DecryptionError, match="'s'"):
        partial.read(["s"])
