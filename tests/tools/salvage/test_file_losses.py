"""`salvage` loses what ``on_error="skip"`` loses, and its output is sound: random mutations, parquet-testing."""

from __future__ import annotations

import base64
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.errors import InvalidFileError, ParquetError
from numparq.format import LogicalType, SchemaNode
from numparq.tools.salvage.file import salvage
from support.files import builder as h
from support.files.builder import FileColumn, data_page, encode_plain
from support.files.page_damage import damage_body, data_pages, edit_footer, footer_start
from support.files.spec_violations import VIOLATIONS
from support.hostile.byte_damage import flipped_bytes

ROWS = 60


def small_file(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    columns = {
        "i": np.arange(ROWS),
        "f": rng.random(ROWS),
        "s": pd.Series([None if n % 7 == 0 else f"key {n % 9}" for n in range(ROWS)], dtype="str"),
        "l": [[int(n)] * (n % 3) for n in range(ROWS)],
        "st": [None if n % 5 == 0 else {"x": n, "y": f"y{n}"} for n in range(ROWS)],
    }
    names = rng.permutation(list(columns))[: int(rng.integers(2, 6))]
    return numparq.to_parquet(
        pd.DataFrame({name: columns[name] for name in names}),
        row_group_size=int(rng.choice([20, 30, 60])),
        max_rows_per_page=int(rng.choice([7, 20])),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        use_dictionary=bool(rng.integers(0, 2)),
        compression=str(rng.choice(["none", "snappy", "zstd"])),
        write_page_checksum=bool(rng.integers(0, 4)),
    )


def check_salvage(path: str, out: str) -> str:
    """Compare the salvaged file with the rows that ``on_error="skip"`` returns; return the outcome."""
    try:
        skipped = numparq.read_parquet(path, on_error="skip")
    except ParquetError:
        skipped = None
    lost = [] if skipped is None else skipped.attrs.pop("numparq.lost")
    assert numparq.verify(path) or not lost
    reason = ""
    try:
        report = salvage(path, out, force=True)
    except ParquetError as error:
        reason = error.message
    if reason:
        assert not os.path.exists(out)
        assert skipped is None or not skipped.size, reason
        return "refused"
    saved = numparq.read_parquet(out)
    assert report.num_rows == len(saved)
    if skipped is None:  # a damaged magic number, which `salvage` restores
        return "restored"
    assert bool(report.lost) == bool(lost)
    pd.testing.assert_frame_equal(saved.reset_index(drop=True), skipped.reset_index(drop=True), check_index_type=False)
    kept = {"key-utf8"} & {one.check for one in numparq.verify(path)}  # a key's value is kept as it is
    assert {one.check for one in numparq.verify(out) if one.severity == "error"} == kept
    with numparq.ParquetFile(out) as file:
        assert file.num_row_groups == report.num_row_groups
    return "some lost" if lost else "nothing lost"


@pytest.mark.parametrize(("seed", "count"), [(1, 12), *(pytest.param(s, 150, marks=pytest.mark.slow) for s in (2, 3))])
def test_losses_equal_those_of_skip(tmp_path, seed, count):
    outcomes = []
    for number in range(count):
        sound = small_file(seed * 1000 + number // 4)
        pages = sound[: footer_start(sound)]
        whole = [data for _, data in flipped_bytes(sound, seed, number, 1)]
        damaged = [data + sound[len(pages) :] for _, data in flipped_bytes(pages, seed, number, 1)]
        (data,) = whole if number % 4 == 0 else damaged
        (tmp_path / "damaged").write_bytes(data)
        outcomes.append(check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")))
        (tmp_path / "saved").unlink(missing_ok=True)
    assert outcomes.count("some lost") > count // 4


@pytest.mark.parametrize(
    "names",
    [
        ["schema-logical", "schema-type", "stats-min", "footer-rows"],
        pytest.param([*VIOLATIONS], marks=pytest.mark.slow),
    ],
    ids=["some", "all"],
)
def test_wrong_metadata(tmp_path, names):
    """A file whose schema or metadata alone are wrong is rewritten, so that `verify` finds nothing in the new one."""
    for name in names:
        (tmp_path / "damaged").write_bytes(VIOLATIONS[name][0]())
        outcome = check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved"))
        assert outcome == "nothing lost" or len(names) > 4
        (tmp_path / "saved").unlink(missing_ok=True)


def test_row_groups_are_counted_in_the_new_file(tmp_path, monkeypatch):
    """A row group longer than those of the writer becomes several."""
    monkeypatch.setattr("numparq.file.writer_options.DEFAULT_ROW_GROUP_ROWS", 25)
    (tmp_path / "damaged").write_bytes(edit_footer(small_file(1), lambda footer: setattr(footer, "num_rows", 1)))
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "nothing lost"
    assert numparq.ParquetFile(tmp_path / "saved").num_row_groups > 2


def with_wrong_size(footer) -> None:
    footer.row_groups[0].columns[0].meta_data.total_uncompressed_size += 1


def test_variants_stay_variants(tmp_path):
    parts = [SchemaNode(name, repetition=0, physical=6) for name in ("metadata", "value")]
    schema = {"v": SchemaNode("v", logical=LogicalType("VARIANT"), children=tuple(parts))}
    rows = pd.DataFrame({"v": [{"a": 1}, None, "text"], "k": [1, 2, 3]})
    (tmp_path / "damaged").write_bytes(edit_footer(numparq.to_parquet(rows, schema=schema), with_wrong_size))
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "nothing lost"
    assert numparq.read_parquet(tmp_path / "saved")["v"].tolist() == [{"a": 1}, None, "text"]


@pytest.mark.parametrize("field", ["type", "repetition_type"])
def test_unknown_type_of_one_column(tmp_path, field):
    data = edit_footer(small_file(1), lambda footer: setattr(footer.schema[-1], field, 77))
    (tmp_path / "damaged").write_bytes(data)
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "some lost"


def test_wrong_metadata_beside_lost_rows(tmp_path):
    """A row group with wrong metadata is not kept as it is, even if the rows get other types."""
    schema = pa.schema([pa.field("a", pa.int64(), False)])
    data = numparq.to_parquet(pd.DataFrame({"a": [1, 2, 3, 4]}), schema=schema, row_group_size=2)
    damaged = edit_footer(damage_body(data, data_pages(data, 1, "a")[0]), with_wrong_size)
    (tmp_path / "damaged").write_bytes(damaged)
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "some lost"


def test_arrow_schema_that_pyarrow_refuses(tmp_path):
    raw = pa.schema([("a", pa.int64())]).serialize().to_pybytes()
    wrong = base64.b64encode(raw.replace(b"\x40\x00\x00\x00", b"\x60\x00\x00\x00"))

    def edit(footer) -> None:
        with_wrong_size(footer)
        footer.key_value_metadata = [h.extended_idl().KeyValue(key="ARROW:schema", value=wrong.decode())]

    (tmp_path / "damaged").write_bytes(edit_footer(numparq.to_parquet(pd.DataFrame({"a": [1]})), edit))
    with pytest.raises(pa.ArrowException):
        pq.read_table(tmp_path / "damaged")
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "nothing lost"
    assert pq.read_table(tmp_path / "saved").num_rows == 1


def test_pandas_metadata_of_another_writer(tmp_path):
    """It names no dtypes that numparq restores: pandas' strings stay strings."""
    metadata = {
        "creator": {"library": "fastparquet", "version": "2026.9.0"},
        "index_columns": [],
        "columns": [
            {"name": "s", "field_name": "s", "pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        ],
    }

    def edit(footer) -> None:
        with_wrong_size(footer)
        footer.created_by = "fastparquet"
        footer.key_value_metadata = [h.extended_idl().KeyValue(key="pandas", value=json.dumps(metadata))]

    (tmp_path / "damaged").write_bytes(edit_footer(numparq.to_parquet(pd.DataFrame({"s": ["x", None]})), edit))
    assert check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved")) == "nothing lost"
    assert numparq.read_parquet(tmp_path / "saved")["s"].dtype == "str"


@pytest.mark.slow
def test_parquet_testing_files(tmp_path, parquet_testing):
    folders = ("data", "bad_data", "shredded_variant")
    paths = sorted(path for name in folders for path in (parquet_testing / name).glob("*.parquet*"))
    paths = [path for path in paths if path.suffix != ".json"]  # key material
    for path in paths:
        if path.name == "large_string_map.brotli.parquet":  # a few kilobytes that decode to a GiB of strings
            continue
        (tmp_path / "saved").unlink(missing_ok=True)
        if path.name.endswith(".encrypted"):
            with pytest.raises((ParquetError, ValueError), match="encrypted"):
                salvage(path, tmp_path / "saved")
            assert not (tmp_path / "saved").exists()
            continue
        check_salvage(str(path), str(tmp_path / "saved"))


def test_encrypted_column_is_lost(tmp_path, parquet_testing):
    path = parquet_testing / "data" / "encrypt_columns_plaintext_footer.parquet.encrypted"
    report = salvage(path, tmp_path / "saved", plaintext_output=True)
    assert report.num_rows == 50
    assert all("encrypted" in line or "no row of it" in line for line in report.lost)
    assert len(numparq.read_parquet(tmp_path / "saved").columns) == 6


def test_file_of_external_chunks_is_refused(tmp_path):
    data = numparq.to_parquet(pd.DataFrame({"k": [1, 2], "a": [3, 4]}))

    def move_chunks(footer):
        for chunk in footer.row_groups[0].columns:
            chunk.file_path = "part.parquet"

    (tmp_path / "_metadata").write_bytes(edit_footer(data, move_chunks))
    with pytest.raises(InvalidFileError, match=r"in other files, such as 'part.parquet'; salvage those files"):
        salvage(tmp_path / "_metadata", tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_empty_decimal_is_lost(tmp_path):
    """A decimal without bytes decompresses, but cannot be read."""
    decimal = {"converted_type": 5, "precision": 5, "scale": 1}
    body = encode_plain(h.BYTE_ARRAY, [b"\1", b"", b"\2"])
    columns = [
        FileColumn("d", h.BYTE_ARRAY, [[data_page(3, body)]], element=decimal),
        FileColumn("a", h.INT64, [[data_page(3, encode_plain(h.INT64, [1, 2, 3]))]]),
    ]
    (tmp_path / "damaged").write_bytes(h.build_file([3], columns).stored())
    check_salvage(str(tmp_path / "damaged"), str(tmp_path / "saved"))


def test_output_is_read_back_before_it_has_its_name(tmp_path, monkeypatch):
    data = small_file(5)
    (tmp_path / "damaged").write_bytes(data[:-9])
    (tmp_path / "schema").write_bytes(data)
    out = tmp_path / "saved"

    def fail(*args: object, **options: object) -> None:
        raise InvalidFileError("unreadable", row_group=1, column="f", file="temporary")

    monkeypatch.setattr("numparq.tools.salvage.output.ReadableFile", fail)
    message = "what is left cannot be read back: unreadable; nothing was written"
    with pytest.raises(InvalidFileError, match=message) as caught:
        salvage(tmp_path / "damaged", out, tmp_path / "schema")
    assert caught.value.where == {"file": str(tmp_path / "damaged"), "row_group": 1, "column": "f"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "schema"]
