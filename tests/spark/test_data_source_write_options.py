"""Options of ``df.write.format("numparq")``: names, precedence, errors. Needs no Java."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed (the extra 'spark')")

from numparq.spark.data_source.write_options import parse_write_options

pytestmark = pytest.mark.pyspark


def parsed(**options):
    path, arguments = parse_write_options({"path": "file:///data", **options})
    assert path == "/data"
    return arguments


@pytest.mark.parametrize(
    ("options", "argument", "value"),
    [
        ({"COMPRESSION": "ZSTD"}, "compression", "zstd"),
        ({"parquet.compression": "UNCOMPRESSED"}, "compression", "none"),
        ({"parquet.compression.codec": "gzip"}, "compression", "gzip"),
        ({"parquet.compression.codec": "gzip", "Parquet.Compression": "zstd"}, "compression", "zstd"),
        ({"parquet.compression": "zstd", "compression": "lz4raw"}, "compression", "lz4_raw"),
        ({"codec": "lz4", "parquet.compression.codec": "gzip", "parquet.compression": "zstd"}, "compression", "lz4"),
        ({"parquet.compression.codec.zstd.level": "9"}, "compression_level", 9),
        ({"parquet.block.size": "134217728"}, "row_group_bytes", 1 << 27),
        ({"parquet.writer.version": "v2"}, "data_page_version", "2.0"),
        ({"parquet.writer.version": "PARQUET_1_0"}, "data_page_version", "1.0"),
        ({"parquet.column.statistics.enabled": "false"}, "write_statistics", False),
        ({"maxRecordsPerFile": "100"}, "max_rows_per_file", 100),
        ({"maxRecordsPerFile": "0"}, "max_rows_per_file", None),
        ({"max_records_per_file": "-1"}, "max_rows_per_file", None),
        ({"keepReplaced": "0"}, "keep_replaced", 0),
        ({"keepReplaced": "600"}, "keep_replaced", 600),
        ({"mapreduce.fileoutputcommitter.marksuccessfuljobs": "False"}, "marks_success", False),
    ],
)
def test_names_of_spark_and_parquet_java(options, argument, value):
    assert parsed(**options) == {argument: value}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec": "snappy", "compression": "zstd"}, "the options compression and codec are synonyms; set only one"),
        ({"keepReplaced": "-1"}, "must be a whole number of at least 1, not '-1'"),
        ({"maxRecordsPerFile": "-x"}, "must be a whole number"),
        ({"maxRecordsPerFile": "many"}, "must be a whole number of at least 1, not 'many'"),
        ({"parquet.writer.version": "v3"}, r"must be 1.0 or 2.0, not 'v3'"),
        ({"compresion": "zstd"}, r"for writing; did you mean 'compression'.*\? the options are:\n"),
        ({"parquet.bloom.filter.fpp.x#a": "0.1"}, "no option 'parquet.bloom.filter.fpp.x#a' for writing"),
        ({"mergeSchema": "true"}, "no option 'mergeSchema' for writing"),
        ({"mapreduce.fileoutputcommitter.marksuccessfuljobs": "maybe"}, "must be true or false, not 'maybe'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        parsed(**options)
