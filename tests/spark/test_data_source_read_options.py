"""Invalid options of ``spark.read.format("numparq")``: each error names the option. Needs no Java."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError, SchemaError

pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed (the extra 'spark')")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from numparq.spark.data_source.read_options import READ_OPTIONS  # noqa: E402
from numparq.spark.data_source.source import NumparqDataSource  # noqa: E402

pytestmark = pytest.mark.pyspark


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write two partitions of two rows, with a struct and a list."""
    path_ = tmp_path_factory.mktemp("stored")
    table = pa.table({"a": [1, 2], "s": [{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], "l": [[1], [2, 3]], "t": ["u", "v"]})
    for key in (1, 2):
        (path_ / f"k={key}").mkdir()
        pq.write_table(table, path_ / f"k={key}" / "a.parquet")
    return str(path_)


def count(path, **options):
    """Load as Spark does and count the rows."""
    source = NumparqDataSource(options if "paths" in options else {"path": path, **options})
    reader = source.reader(source.schema())
    return sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part))


# By option: invalid texts and the error that each raises.
SIZE, COUNT, TRUTH = (
    "must be a number of bytes, such as 67108864",
    "must be a whole number of at least 1, not",
    "must be true or false, not",
)
NAMES, PATHS, COLUMNS = (
    "must be a list of names, separated by commas",
    "must be a list of names, or of lists",
    "the dataset has no column",
)
LEVELS, TYPES = (
    "must be hive, none, a list of distinct level names",
    "must be a JSON object of types, .*the type of 'k' is unknown",
)
WRONG = {
    "splitBytes": dict.fromkeys(
        ["", "x", "0", "-1", "1x", "1e3", "1.5m", "1t", "nan", "1kk", "64mm", "gb", "9" * 25, "9" * 18 + "g"], SIZE
    ),
    **{
        name: dict.fromkeys(["", "x", "0", "-1", "1.5", "9" * 25, "1_0", "٣", "null"], COUNT)
        for name in ("minSplits", "planFiles", "rowsPerBatch")
    },
    **{
        name: dict.fromkeys(["", "no", "1", "null"], TRUTH)
        for name in ("verifyCrc", "pushdown", "partitionColumnTypeInference", "caseSensitive")
    },
    "columns": {
        **dict.fromkeys(["a,,b", ",", "[", '["a"'], NAMES),
        **dict.fromkeys(["[[]]", "[1]", "[[1]]"], PATHS),
        **dict.fromkeys(
            ["nope", "A", "a, nope", '["nope"]', '[["s", "nope"]]', '[["a", "x"]]', '{"a": 1}', "null", "x.y"], COLUMNS
        ),
        "a, a": "two columns have this name",
    },
    "filter": {
        **dict.fromkeys(
            ["", " ", "a >", "a = 1 and", "a in ()", "((a = 1", "a is", "not"],
            "the filter cannot be parsed",
        ),
        "a": "a column alone is a condition only if it is boolean",
        "a = t": "cannot be compared with 't' of type",
        **dict.fromkeys(["nope = 1", "a = NaN"], COLUMNS),
        "s.nope > 1": "has no column",
        "a = 'x'": "cannot be compared with the column 'a'",
        "k = 'x'": "cannot be compared with the column 'k'",
        "s = 1": "the column is nested",
        "l = 1": "the column is a list",
        "t like 1": "takes a string",
        "t like 'a' escape 'bb'": "escape must be one character",
    },
    "partitioning": {
        **dict.fromkeys(["", "[]", "k, k", '[["k", "int32"]]'], LEVELS),
        "hive,": NAMES,
        "[1]": PATHS,
        "{": "must be a JSON object, not",
        "none, k": "too few directories for the partition columns 'none', 'k'",
        **dict.fromkeys(
            ['{"k": "nope"}', '{"k": 1}', '{"k": null}', '{"k": {}}', '{"k": ["int32"]}', '{"k": "decimal(50,2)"}'],
            TYPES,
        ),
        **dict.fromkeys(
            ['{"k": "bool"}', '{"k": "date"}', '{"k": "timestamp[us]"}'], "partition value '[12]' is not a valid"
        ),
        '{"j": "int32"}': "partitioning has a type for 'j', but the files are partitioned by 'k'",
    },
    "resolve": {**dict.fromkeys(["", "luck"], "must be name or position or field_id"), "field_id": "has no field id"},
    "include": {
        **dict.fromkeys(
            ["nope", "file, nope", "FILE", "a", '{"x": 1}', '[["file"]]'], "must be any of file, row_group, row_number"
        ),
        "[": NAMES,
        "[1]": PATHS,
    },
    "nanoseconds": dict.fromkeys(["", "luck"], "must be exact or floor"),
    "storageOptions": {
        **dict.fromkeys(["", "[]", "{", "null", "1"], "must be a JSON object"),
        '{"anon": true}': "storage_options need a URL",
    },
    "paths": dict.fromkeys(
        ["[1]", '{"a": 1}', '["a", 1]', "[", '"x"', "nope", "null", "[null]"],
        'must be a JSON list of paths, such as ["a", "b"]',
    ),
    "tableFormat": dict.fromkeys(["", "delta"], "must be auto or parquet"),
    "basePath": {"/nowhere": "the base path '/nowhere' is not above"},
    "pathGlobFilter": dict.fromkeys(["", "*.pq", "{x,y}*", "k=1"], "the directory has no Parquet files that"),
    **{
        name: dict.fromkeys(["", "yesterday", "2024-13-01", "1700000000000", "null"], "must be a time such as 2024-")
        | {text: "the directory has no Parquet files that"}
        for name, text in {
            "modifiedAfter": "2200-01-01T00:00:00Z",
            "modifiedBefore": "1970-01-01 02:00:00+02:00",
        }.items()
    },
    "decryption": dict.fromkeys(["", "a key", "YSBrZXk="], "must be the name of a key provider, package.module:attr"),
    "expectedParts": dict.fromkeys(
        ["", "a", "7", '"a"', "[1]", '{"a": 1}'], "must be a JSON list of names of parts, or"
    ),
    "timeZone": dict.fromkeys(["", "nowhere", "+25:00", "../etc"], "must be a time zone such as Europe/Paris"),
    "recursiveFileLookup": dict.fromkeys(["", "false"], "must be true, since folders below the path are always read"),
    "mergeSchema": dict.fromkeys(["", "false"], "must be true, since the schemas of all files are always merged"),
    **{
        name: dict.fromkeys(["", "true"], "must be false, since ")
        for name in ("ignoreCorruptFiles", "ignoreMissingFiles", "ignoreInvalidPartitionPaths")
    },
    **{
        name: dict.fromkeys(["", "JULIAN"], "must be CORRECTED, LEGACY or EXCEPTION, not")
        for name in ("datetimeRebaseMode", "int96RebaseMode")
    },
}
CASES = [(name, text, message) for name, texts in WRONG.items() for text, message in texts.items()]


@pytest.mark.parametrize(("name", "text", "message"), CASES, ids=[f"{name}={text}"[:40] for name, text, _ in CASES])
def test_error_names_the_option(folder, name, text, message):
    message = message if name != "paths" else r"must be a JSON list of paths, such as \[\"a\", \"b\"\], not"
    with pytest.raises((ValueError, SchemaError), match=f"^the option '{name}'(:.*)? {message}"):
        count(folder, **{name: text})


@pytest.mark.parametrize("text", ["a secret key", "YSBzZWNyZXQga2V5"])
def test_no_message_quotes_what_may_be_a_key(folder, text):
    with pytest.raises(ValueError, match="the option 'decryption'") as caught:
        count(folder, decryption=text)
    assert text not in str(caught.value)


def test_every_option_is_tested():
    assert {option.name for option in READ_OPTIONS} <= set(WRONG)


@pytest.mark.parametrize(
    "options",
    [
        {"splitBytes": " 64 M "},
        {"datetimeRebaseMode": "exception", "int96RebaseMode": "LEGACY", "timeZone": "Europe/Paris"},
        {"minSplits": " 5 "},
        {"planFiles": "1"},
        {"rowsPerBatch": "+7"},
        {"columns": ""},
        {"columns": '["a", ["s", "x"]]'},
        {"columns": "s.x, k"},
        {"filter": "`a` > 0 and K < 9"},
        {"partitioning": "HIVE"},
        {"partitioning": "none"},
        {"partitioning": "level"},
        {"partitioning": "{}"},
        {"partitioning": '{"k": "decimal(9, 2)"}'},
        {"resolve": "NAME"},
        {"include": ""},
        {"include": '["file"]'},
        {"verifyCrc": "TRUE"},
        {"nanoseconds": " Floor"},
        {"pushdown": "false"},
        {"pathGlobFilter": "{a,b}.par*", "PATHglobFILTER": "[a]*"},
        {"modifiedAfter": "2000-01-01", "timeZone": "GMT+2"},
        {"modifiedAfter": "2000-01-01T00:00:00Z", "modifiedBefore": "2200-01-01 00:00:00.5+01:00"},
        {"mergeSchema": "TRUE", "ignoreCorruptFiles": "False", "recursiveFileLookup": " true"},
        {"datetimeRebaseMode": "Corrected", "int96RebaseMode": "CORRECTED"},
    ],
    ids=str,
)
def test_valid_options(folder, options):
    assert count(folder, **options) == 4


def test_error_names_the_wrong_one_of_many_options(folder):
    """The error names the option without which planning succeeds; with none such it is unchanged."""
    good = {"columns": "a, k", "resolve": "position", "include": "file", "splitBytes": "1k"}
    with pytest.raises(SchemaError, match=r"^the option 'filter': the dataset has no column 'nope'"):
        count(folder, **good, filter="nope = 1")
    with pytest.raises(
        SchemaError, match=r"^the option 'columns': .* 'nope'; its columns are 'a', 's', 'l', 't', 'k'$"
    ):
        count(folder, columns="nope")
    with pytest.raises(SchemaError, match=r"^the dataset has no column 'gone'"):
        count(folder, columns="nope", filter="gone = 1")
    with pytest.raises(ValueError, match=r"^the option 'storage\.anon': storage_options need a URL"):
        count(folder, **{"storage.anon": "true"}, **good)
    with pytest.raises(ValueError, match=r"^the option 'columns': "):
        count(folder, COLUMNS="nope")


def test_error_of_damaged_file_names_no_option(folder, tmp_path):
    numparq.to_parquet(pd.DataFrame({"a": np.arange(3)}), tmp_path / "a.parquet", index=False)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(InvalidFileError, match=r"^(?!the option).*b\.parquet"):
        count(str(tmp_path), columns="a", filter="a = 1")
    with pytest.raises(FileNotFoundError):
        count(str(tmp_path / "none"), columns="a", filter="a = 1")


def test_unknown_options_are_refused_with_the_nearest_names(folder):
    hints = {
        "compression": ";",
        "schema": "; did you mean 'mergeSchema'\\?",
        "colums": "; did you mean 'columns'\\?",
        "": ";",
    }
    for name, hint in hints.items():
        with pytest.raises(ValueError, match=f"^numparq has no option '{name}' for reading{hint} the options are:\n  "):
            count(folder, **{name: "x"})
    with pytest.raises(ValueError, match="'partitioning' and 'recursiveFileLookup' exclude each other"):
        count(folder, partitioning="hive", recursiveFileLookup="true")
    with pytest.raises(ValueError, match="time 2024-01-31T00:00:00 has no time zone; set the option 'timeZone'"):
        count(folder, modifiedAfter="2024-01-31")


def test_base_path_gives_partition_columns(folder):
    for path in (f"{folder}/k=1", f"{folder}/k={{1,3}}", f"{folder}/k=1/a.parquet"):
        for base in (folder, f"file://{folder}/"):
            source = NumparqDataSource({"path": path, "basePath": base})
            assert source.schema().names == ["a", "s", "l", "t", "k"]
            assert count(path, basePath=base, filter="k = 1") == 2
    assert NumparqDataSource({"path": f"{folder}/k=1"}).schema().names == ["a", "s", "l", "t"]
    assert NumparqDataSource({"path": folder, "recursiveFileLookup": "true"}).schema().names == ["a", "s", "l", "t"]


def test_modification_times_are_exclusive_bounds_in_milliseconds(folder, tmp_path):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    for key, nanoseconds in ((1, 1_600_000_000_123_000_000), (2, 1_600_000_000_123_999_999)):
        os.utime(tmp_path / f"k={key}" / "a.parquet", ns=(nanoseconds, nanoseconds))
    (tmp_path / "k=3").mkdir()
    shutil.copy(tmp_path / "k=2" / "a.parquet", tmp_path / "k=3")
    moment = "2020-09-13T12:26:40.123Z"  # of both
    assert count(str(tmp_path), modifiedBefore="2020-09-13T12:26:40.124Z") == 4
    assert count(str(tmp_path), modifiedAfter=moment) == 2
    assert count(str(tmp_path), modifiedAfter="2020-09-13 14:26:40.1229", timeZone="Europe/Paris") == 6
    with pytest.raises(InvalidFileError, match=r"^the option 'modifiedBefore': the directory has no Parquet files"):
        count(str(tmp_path), modifiedBefore=moment)
