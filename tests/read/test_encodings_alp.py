"""ALP pages: written with ``column_encoding="ALP"`` and read back bit by bit."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import CorruptPageError, ParquetFile, UnsupportedError, read_parquet, to_parquet
from numparq.format.thrift.idl import Encoding
from support.files.builder import (
    DOUBLE,
    FLOAT,
    INT64,
    OPTIONAL,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    encode_levels,
    encode_plain,
)
from support.oracles import alp

ALP = 10
ROWS = 5000


def frame(missing: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    df = pd.DataFrame(
        {
            "price": np.round(rng.normal(100, 20, ROWS), 2),
            "share": np.round(rng.random(ROWS), 3).astype("f4"),
            "noise": rng.random(ROWS),
            "count": rng.integers(0, 100, ROWS),
            "name": rng.choice(["a", "b"], ROWS),
        }
    )
    df.loc[[5, 99, 4000], "price"] = [-0.0, math.inf, 5e-324]
    if missing:
        for name in ("price", "share"):
            df[name] = df[name].astype("Float64" if name == "price" else "Float32").mask(rng.random(ROWS) < 0.3)
    return df


def encodings(data: bytes) -> dict[str, list]:
    return {
        column.meta_data.path_in_schema[0]: list(column.meta_data.encodings)
        for column in ParquetFile(data).metadata.row_groups[0].columns
    }


def assert_same_bits(got: pd.DataFrame, df: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(got, df, check_exact=True)
    for name in df.columns:
        if df[name].dtype.kind == "f" and isinstance(df[name].dtype, np.dtype):
            assert got[name].to_numpy().tobytes() == df[name].to_numpy().tobytes()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", [None, "snappy", "zstd"])
@pytest.mark.parametrize("missing", [False, True])
def test_round_trip(missing, codec, version):
    df = frame(missing)
    data = to_parquet(
        df,
        column_encoding="ALP",
        compression=codec,
        data_page_version=version,
        max_rows_per_page=700,
        row_group_size=3000,
    )
    for name, used in encodings(data).items():
        assert (Encoding.ALP in used) == (name in ("price", "share", "noise"))
    for threads in (1, 2):
        assert_same_bits(read_parquet(data, threads=threads), df)
    for start, stop in ((0, 1), (650, 750), (2999, 3001), (4990, 5000)):
        got = read_parquet(data, row_range=(start, stop))
        assert_same_bits(got, df.iloc[start:stop].reset_index(drop=True))


def test_alp_compresses_decimals():
    sizes = [len(to_parquet(frame()[["price"]], column_encoding=name, compression=None)) for name in ("ALP", "PLAIN")]
    assert sizes[0] < 0.3 * sizes[1]


def test_column_encoding_accepts_alp_for_floats_only():
    df = frame()
    data = to_parquet(df, column_encoding={"price": "alp"})
    assert [name for name, used in encodings(data).items() if Encoding.ALP in used] == ["price"]
    for name in ("count", "name"):
        with pytest.raises(ValueError, match=f"column '{name}' of physical type .* cannot be written in encoding ALP"):
            to_parquet(df, column_encoding={name: "ALP"})
    assert not any(Encoding.ALP in used for used in encodings(to_parquet(df)).values())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_nested_columns(version):
    rng = np.random.default_rng(2)
    lists = [
        None if rng.random() < 0.2 else np.round(rng.random(int(rng.integers(0, 5))), 2).tolist() for _ in range(500)
    ]
    structs = [{"x": i / 4, "y": [1.5, -0.0, i / 10]} for i in range(500)]
    df = pd.DataFrame({"lists": lists, "structs": structs})
    data = to_parquet(df, column_encoding="ALP", data_page_version=version, max_rows_per_page=70)
    columns = ParquetFile(data).metadata.row_groups[0].columns
    assert [Encoding.ALP in column.meta_data.encodings for column in columns] == [True] * 3
    got = read_parquet(data)
    assert [None if value is None else list(value) for value in got["lists"]] == lists
    assert [{"x": value["x"], "y": list(value["y"])} for value in got["structs"]] == structs


def test_conformance_suite_file(parquet_testing):
    """ALP columns with any vector size have the bits of the PLAIN column. Older copies of the suite lack the file."""
    path = parquet_testing / "data" / "alp_extended.zstd.parquet"
    if not path.exists():
        pytest.skip("this copy of parquet-testing has no ALP file")
    got = read_parquet(path, dtype_backend="numpy_nullable")
    for kind in ("float", "double"):
        expected = got[f"{kind}_plain"].array
        for vector in ("1024", "4096", "32"):
            column = got[f"{kind}_alp_{vector}"].array
            assert (column.isna() == expected.isna()).all()
            assert column._data[~column.isna()].tobytes() == expected._data[~expected.isna()].tobytes()


def extremes(size: int) -> list[bytes]:
    """Return values as in the conformance file: decimals with few and many exceptions, noise, a constant."""
    rng = np.random.default_rng(7)
    base, noise = np.round(rng.uniform(-10, 10, 8000), 2), rng.random(8000)
    parts = [base[:1024].copy() for _ in range(3)]
    parts[1][[0, 476, 1023]], parts[1][[976, 977, 978]] = math.nan, [math.inf, -math.inf, -0.0]
    parts[1][979], parts[2][452] = 5e-324 if size == 8 else 1e-45, math.pi
    large = base[:1024].copy()
    large[[28, 639]] = 44974934523.343, -1243432432.3432
    mixed = np.where(np.arange(1024) % 2, base[:1024], noise[:1024])
    more = np.round(rng.uniform(-10, 10, 1024), 4)
    numbers = np.concatenate([*parts, large, mixed, noise[:1024], more, np.full(1024, 7.77), base[:800]])
    raw = numbers.astype(f"f{size}").tobytes()
    return [raw[start : start + size] for start in range(0, len(raw), size)]


@pytest.mark.parametrize("log", [3, 5, 10, 12, 15])
@pytest.mark.parametrize("size", [4, 8])
def test_vector_sizes_of_other_writers(size, log):
    """The oracle encodes vectors of any size."""
    values = extremes(size)
    vectors = -(-len(values) // (1 << log))
    section = alp.encode(values, size, [(6, 4) if size == 4 else (14, 12)] * vectors, log)
    pages = [[data_page(len(values), section, ALP)]]
    data = build_file([len(values)], [FileColumn("a", FLOAT if size == 4 else DOUBLE, pages)]).stored()
    assert read_parquet(data)["a"].to_numpy().tobytes() == b"".join(values)


def test_empty_and_null_columns():
    df = pd.DataFrame({"a": pd.array([None] * 10, "Float64"), "b": pd.array([1.5] + [None] * 9, "Float32")})
    for version in ("1.0", "2.0"):
        for rows in (0, 1, 10):
            data = to_parquet(df[:rows], column_encoding="ALP", data_page_version=version)
            pd.testing.assert_frame_equal(read_parquet(data), df[:rows])


def test_categories_are_written_without_a_dictionary():
    df = pd.DataFrame({"a": pd.Categorical([1.5, 2.5, 1.5, None])})
    data = to_parquet(df, column_encoding="ALP")
    assert Encoding.ALP in encodings(data)["a"]
    pd.testing.assert_frame_equal(read_parquet(data), df)


def test_alp_pages_between_other_encodings():
    """Each page is transcoded to PLAIN by the decoder of its encoding."""
    values = [1.25, -0.0, 3e300, 7.0]
    octets = [encode_plain(DOUBLE, [value]) for value in values]
    section = alp.encode(octets, 8, [(2, 0)])
    split = bytes(octet[byte] for byte in range(8) for octet in octets)
    pages = [
        data_page(4, section, ALP),
        data_page(4, b"".join(octets)),
        data_page(4, split, 9),
        data_page_v2(4, 0, b"", section, ALP),
        data_page(4, section, ALP),
    ]
    data = build_file([20], [FileColumn("a", DOUBLE, [pages])]).stored()
    assert read_parquet(data)["a"].to_numpy().tobytes() == b"".join(octets) * 5
    nulls = [data_page(5, encode_levels([1, 1, 0, 1, 1]) + section, ALP)] * 2
    data = build_file([10], [FileColumn("a", DOUBLE, [nulls], OPTIONAL)]).stored()
    got = read_parquet(data)["a"].tolist()
    assert [value for value in got if not math.isnan(value)] == values * 2
    assert math.isnan(got[2])


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_damage_names_the_page(damaged):
    section = alp.encode([encode_plain(FLOAT, [1.5])] * 20, 4, [(1, 0)])
    for body, kind, message in (
        (section[:-1], CorruptPageError, "ends too early"),
        (section[:2] + b"\x02" + section[3:], CorruptPageError, "ALP encoding is damaged"),
        (b"\x01" + section[1:], UnsupportedError, "does not read yet"),
    ):
        pages = [data_page(20, body if number == damaged else section, ALP) for number in range(3)]
        data = build_file([60], [FileColumn("x", FLOAT, [pages])]).stored()
        with pytest.raises(kind, match=message) as caught:
            read_parquet(data)
        assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "x", "page": damaged}


def test_alp_pages_of_integers_are_refused():
    data = build_file([4], [FileColumn("x", INT64, [[data_page(4, bytes(40), ALP)]])]).stored()
    with pytest.raises(UnsupportedError, match="does not read yet"):
        read_parquet(data)


def test_alp_kernels_are_loaded_only_for_alp_pages(tmp_path):
    for name, encoding in (("alp", "ALP"), ("split", "BYTE_STREAM_SPLIT")):
        to_parquet(frame(), tmp_path / name, column_encoding=encoding)
    code = """
import sys, numparq
from numparq.kernels.kernel_groups import alp_kernels, alp_writing_kernels
numparq.read_parquet(sys.argv[1])
print(bool(alp_kernels.mode), bool(alp_writing_kernels.mode))
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / name)], capture_output=True, text=True, check=True
        ).stdout.split()
        for name in ("split", "alp")
    ]
    assert outputs[0][:2] == ["False", "False"]
    assert outputs[1][:2] == ["True", "False"]


def test_metadata_shows_alp(tmp_path, capsys):
    from numparq.cli import main

    path = tmp_path / "a.parquet"
    to_parquet(frame(), path, column_encoding="ALP")
    main(["meta", str(path)])
    assert "ALP" in capsys.readouterr().out
    stats = ParquetFile(path).metadata.row_groups[0].columns[0].meta_data.encoding_stats
    assert [str(entry.encoding) for entry in stats] == ["ALP"]
    assert numparq.read_parquet(path, columns=["price"]).shape == (ROWS, 1)
