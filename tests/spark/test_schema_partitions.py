"""Partition column types inferred from directory names as in Spark. Needs no Java."""

from __future__ import annotations

import pytest

from numparq.dataset.discover.files import list_files
from numparq.spark.schema.partitions import infer_partition_types, user_partition_types

T = pytest.importorskip("pyspark.sql.types", reason="pyspark is not installed (the extra 'spark')")

pytestmark = pytest.mark.pyspark

NULL = "__HIVE_DEFAULT_PARTITION__"
# As Spark 4.3 infers them, except timestamps, numbers valid only in Java, and "05", which stay text.
INFERRED = {
    "int32": [["5"], ["-5", "0"], ["-2147483648", NULL], ["2020"]],
    "int64": [["2147483648"], ["1", "-9223372036854775808"]],
    "decimal(19, 0)": [["9223372036854775808"]],
    "decimal(20, 0)": [["9" * 20], ["9" * 20, "3000000000", "1"]],
    "decimal(38, 0)": [["9" * 38]],
    "decimal(1, 0)": [["5."], ["1."]],
    "decimal(10, 0)": [["5.", "3"]],
    "float64": [
        ["1.0"],
        ["NaN"],
        ["NaN", "1"],
        ["NaN", "1.5"],
        ["Infinity", "-Infinity"],
        [".5"],
        ["1e-3"],
        ["1.0", "2"],
        ["9" * 39],
        ["9" * 39, "1"],
        [NULL, "1.5"],
        ["-0.0"],
    ],
    "date": [["2020-01-01"], ["0001-01-01", NULL]],
    "str": [
        ["-5", "05"],
        ["01", "1.5"],
        ["-0", "0"],
        ["nan"],
        ["inf"],
        ["a", "1"],
        ["1.0", "3000000000"],
        ["9" * 20, "1.5"],
        ["2020-01-01", "5"],
        ["2020-1-1"],
        ["2020-02-30"],
        ["12020-01-01"],
        ["true"],
        [NULL],
        ["null"],
        ["1_000"],
        ["--5"],
        ["."],
        ["e5"],
        ["1.5", "a"],
        ["+5"],
        ["1e3"],
        ["1.5f"],
        ["0x10"],
        [" 5"],
        ["2020-01-01 00:00:00"],
        ["12:00:00"],
    ],
}
CASES = [(kind, values) for kind, several in INFERRED.items() for values in several]


def listing(folder, values):
    for number, value in enumerate(values):
        (folder / f"k={value}").mkdir()
        (folder / f"k={value}" / f"{number}.parquet").write_bytes(b"PAR1")
    return list_files(folder)


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[f"{kind}: {', '.join(values)}" for kind, values in CASES])
def test_inferred_partition_types(tmp_path, kind, values):
    found = listing(tmp_path, values)
    assert infer_partition_types(found, {}, {}) == {"k": kind}
    assert infer_partition_types(found, {}, {}, infers=False) == {"k": "str"}


def test_user_types_override_inference(tmp_path):
    found = listing(tmp_path, ["1", "2"])
    assert infer_partition_types(found, {"k": "int8"}, {"k": "int64", "other": "str"}) == {"k": "int8"}
    for infers in (True, False):
        assert infer_partition_types(found, {}, {"k": "int64", "other": "str"}, infers=infers) == {"k": "int64"}
    with pytest.raises(ValueError, match="partitioning has a type for 'j', but the files are partitioned by 'k'"):
        infer_partition_types(found, {"j": "int8"}, {})


def test_single_file_has_no_partition_columns(tmp_path):
    (tmp_path / "a").write_bytes(b"PAR1")
    assert infer_partition_types(list_files(tmp_path / "a"), {"k": "int8"}, {}) == {}


def test_partition_types_of_user_schema():
    kinds = {
        "a": T.StringType(),
        "b": T.ByteType(),
        "c": T.DecimalType(9, 2),
        "d": T.DateType(),
        "e": T.TimestampType(),
        "f": T.ArrayType(T.LongType()),
        "g": T.TimestampNTZType(),
    }
    schema = T.StructType([T.StructField(name, kind) for name, kind in kinds.items()])
    assert user_partition_types(schema) == {
        "a": "str",
        "b": "int8",
        "c": "decimal(9, 2)",
        "d": "date",
        "g": "timestamp[us]",
    }
    assert user_partition_types(None) == {}
