"""Files in Spark's legacy calendar, forged by footer keys, are read as files of the rebased values are, in all ways."""

import datetime
import io
from itertools import islice

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import UnsupportedError
from numparq.format.bloom_filter import BloomFilter, hash_values
from numparq.format.physical_type import INT96
from numparq.format.schema_node import OPTIONAL, SchemaNode
from numparq.tools.salvage import salvage
from support.compare import assert_frames_equal
from support.files.page_damage import damage_body, data_pages
from support.oracles.legacy_calendar import rebase_day, rebase_second

VERSION, ZONE = "org.apache.spark.version", "org.apache.spark.timeZone"
LEGACY, LEGACY_INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
PARIS = {VERSION: "3.5.0", LEGACY: "", LEGACY_INT96: "", ZONE: "Europe/Paris"}
HOUR, DAY = 3600, 86_400
EPOCH = datetime.date(1970, 1, 1).toordinal()


def stored_numbers(count, seed=0):
    """Days and seconds since 1970, many of them near what the calendars disagree on, sorted with some disorder."""
    rng = np.random.default_rng(seed)
    days = np.concatenate(
        [
            rng.integers(-700_000, 20_000, count // 2),
            rng.integers(-171_610, -171_580, count // 4),  # 1500-02-29
            rng.integers(-141_440, -141_410, count - count // 2 - count // 4),  # 1582-10-15
        ]
    )
    days.sort()
    seconds = days * DAY + rng.integers(0, DAY, count)
    seconds[-count // 8 :] = rng.integers(-2_208_988_800 - 2 * HOUR, -2_208_988_800 + 2 * HOUR, count // 8)
    return days, seconds


def frame_of(days, seconds):
    """A frame of all types that the calendar is of, flat and nested, with a null in each column."""
    dates = [datetime.date.fromordinal(EPOCH + int(day)) for day in days]
    moments = pd.Series(np.array(seconds, "M8[s]").astype("M8[us]") + np.timedelta64(1000, "us"))
    made = pd.DataFrame({"key": np.arange(len(days))})
    made["date"] = pd.Series([None, *dates[1:]], dtype=object)
    made["ms"], made["us"] = (moments.astype(f"M8[{unit}]").dt.tz_localize("UTC") for unit in ("ms", "us"))
    made["int96"] = pd.Series(np.array(seconds, "M8[s]"))[lambda some: some > "1700"].astype("M8[ns]")  # as far as fits
    made["local"] = moments
    made.loc[1, ["ms", "us", "int96"]] = None
    made["dates"] = pd.Series([None, [], [dates[0], None, dates[1]], *([date] for date in dates[3:])], dtype=object)
    made["struct"] = [
        {"at": moment.tz_localize("UTC"), "day": date} for moment, date in zip(moments, dates, strict=True)
    ]
    return made


def pair(count=64, keys=PARIS, seed=0, **options):
    """A file in the legacy calendar, and one of the values that it is to be read as."""
    days, seconds = stored_numbers(count, seed)
    read = [rebase_day(int(day)) for day in days], [rebase_second(int(some), "Europe/Paris", HOUR) for some in seconds]
    legacy, plain = frame_of(days, seconds), frame_of(*read)
    plain["local"] = legacy["local"]  # Spark never moves timestamps without a time zone
    schema = {"int96": SchemaNode("int96", OPTIONAL, INT96)}
    return (
        numparq.to_parquet(legacy, schema=schema, key_value_metadata=keys, **options),
        numparq.to_parquet(plain, schema=schema, **options),
    )


LAYOUT = {"row_group_size": 16, "max_rows_per_page": 4, "bloom_filter_options": True}


@pytest.fixture(scope="module")
def files():
    """The pair in small row groups and pages, with Bloom filters."""
    return pair(**LAYOUT)


def batches(data, **options):
    with numparq.ParquetFile(data).iter_batches(batch_rows=7, **options) as made:
        return pd.concat(list(made), ignore_index=True)


WAYS = {
    "numpy": numparq.read_parquet,
    "datetime64": lambda data: numparq.read_parquet(data, dates="datetime64"),
    "nullable": lambda data: numparq.read_parquet(data, dtype_backend="numpy_nullable"),
    "arrow": lambda data: numparq.read_parquet(data, dtype_backend="pyarrow"),
    "categories": lambda data: numparq.read_parquet(data, columns=["us", "date"], categories=["us", "date"]),
    "skip": lambda data: numparq.read_parquet(data, on_error="skip"),
    "rows": lambda data: numparq.read_parquet(data, row_range=(5, 41)),
    "one thread": lambda data: numparq.read_parquet(data, threads=1, nrows=20),
    "exploded": lambda data: numparq.read_parquet(data, explode="dates"),
    "exploded and filtered": lambda data: numparq.read_parquet(
        data, explode="dates", filters=[("date", ">=", datetime.date(1500, 3, 1))]
    ),
    "batches": batches,
    "Arrow batches": lambda data: batches(data, dtype_backend="pyarrow"),
    "a column of a struct": lambda data: numparq.read_parquet(data, columns=["struct.at", "struct.day"]),
    "look-up": lambda data: [numparq.read_parquet(data, filters=[("key", "==", 3)]) for _ in range(3)][-1],
}


@pytest.mark.parametrize("way", WAYS)
def test_values_are_rebased(files, way):
    legacy, plain = map(WAYS[way], files)
    assert_frames_equal(legacy, plain)


def literals(plain):
    """Filters on each column around values of the calendars' edges, and comparisons of columns."""
    frame = numparq.read_parquet(plain)
    edges = [datetime.date(1500, 3, 1), datetime.date(1500, 2, 28), datetime.date(1582, 10, 15)]
    for name in ("date", "us", "ms", "int96"):
        found = frame[name].dropna()
        some = [*found.iloc[[0, 3, len(found) // 2, -2, -1]], *(edges if name == "date" else [])]
        for value in some:
            yield from ([(name, op, value)] for op in ("==", "!=", "<", "<=", ">", ">="))
        yield [(name, "in", some)]
        yield [(name, "not in", some[:2])]
    yield [("struct.at", "<=", frame["us"][9]), ("struct.day", ">", datetime.date(1400, 1, 1))]
    yield [("struct.at", ">", frame["us"].iloc[-3])]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(3))
def test_filters_and_pruning_use_the_rebased_values(files, part):
    legacy, plain = files
    wanted = numparq.read_parquet(plain)
    for filters in islice(literals(plain), part, None, 3):
        rows = numparq.read_parquet(plain, filters=filters)["key"]
        got = numparq.read_parquet(legacy, filters=filters)
        assert got["key"].tolist() == rows.tolist(), filters
        assert_frames_equal(got, wanted.loc[rows].reset_index(drop=True))


COLUMNS = [(one, other) for one in ("us", "ms", "struct.at") for other in ("us", "ms", "struct.at") if one != other]


@pytest.mark.parametrize("op", ["__eq__", "__lt__", "__le__"])
def test_columns_are_compared_as_read(files, op):
    for one, other in [*COLUMNS, ("int96", "local"), ("date", "struct.day"), ("date", "local")]:
        rows = [
            numparq.read_parquet(data, ["key"], filters=getattr(numparq.col(one), op)(numparq.col(other)))["key"]
            for data in files
        ]
        assert rows[0].tolist() == rows[1].tolist(), (one, other)


def test_lists_contain_what_is_read(files):
    for day in (datetime.date(1500, 3, 1), datetime.date(1582, 10, 15), datetime.date(1500, 3, 11)):
        legacy, plain = (
            numparq.read_parquet(data, ["key"], filters=numparq.col("dates").contains(day)) for data in files
        )
        assert legacy["key"].tolist() == plain["key"].tolist()


def test_runtime_filters(files):
    legacy, plain = files
    values = numparq.read_parquet(plain, ["us"])["us"].dropna()
    wanted = values.iloc[[0, 9, -1]].tolist()
    hashes = hash_values(numparq.ParquetFile(plain).schema.flat_leaf(3), values.to_numpy("M8[us]").view("u1"))
    filters = [numparq.RuntimeFilter("us", wanted), numparq.RuntimeFilter("us", bloom_filter=BloomFilter.build(hashes))]
    got, rows = (numparq.read_parquet(data, runtime_filters=filters)["key"].tolist() for data in (legacy, plain))
    assert got == rows
    assert len(got) >= 3


# --- datasets ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(files, tmp_path_factory):
    """Two datasets: files of both calendars, the legacy one first, and the same rows in today's calendar."""
    other = pair(40, {VERSION: "2.4.8"}, seed=1)[1]
    spark2 = pair(24, keys={**PARIS, VERSION: "2.4.8"}, seed=2)
    made = []
    for which in (0, 1):
        folder = tmp_path_factory.mktemp(f"calendar{which}")
        for number, data in enumerate((files[which], other, spark2[which])):
            (folder / f"{number}.parquet").write_bytes(data)
        made.append(folder)
    return made


def wide_types():
    pa = pytest.importorskip("pyarrow")
    instant = pa.timestamp("us", "UTC")
    return {"date": pa.timestamp("ms"), "ms": instant, "struct": pa.struct({"at": instant})}


DATASET_WAYS = {
    "numpy": numparq.read_parquet,
    "arrow": lambda path: numparq.read_parquet(path, dtype_backend="pyarrow"),
    "batches": lambda path: pd.concat(list(numparq.Dataset(path).iter_batches()), ignore_index=True),
    "reversed": lambda path: numparq.read_parquet([str(path / f"{number}.parquet") for number in (1, 2, 0)]),
    "legacy only": lambda path: numparq.read_parquet([str(path / f"{number}.parquet") for number in (0, 2)]),
    "given schema": lambda path: numparq.read_parquet(path, schema=wide_types()),
    "filtered": lambda path: numparq.read_parquet(path, filters=[("date", "==", datetime.date(1500, 3, 1))]),
    "filtered by instants": lambda path: numparq.read_parquet(
        path, filters=[("us", "<", pd.Timestamp("1500-03-05", tz="UTC"))]
    ),
    "filtered, given schema": lambda path: numparq.read_parquet(
        path, schema=wide_types(), filters=[("date", "<", pd.Timestamp("1500-03-05")), ("date", ">", "1500-02-20")]
    ),
    "filtered by instants, given schema": lambda path: numparq.read_parquet(
        path, schema=wide_types(), filters=[("ms", "<", pd.Timestamp("1500-03-05", tz="UTC"))]
    ),
    "compared": lambda path: numparq.read_parquet(path, filters=numparq.col("us") >= numparq.col("ms")),
}


@pytest.mark.parametrize("way", DATASET_WAYS)
def test_datasets_of_both_calendars(folders, way):
    legacy, plain = map(DATASET_WAYS[way], folders)
    assert len(legacy)
    assert_frames_equal(legacy, plain)


@pytest.mark.parametrize("seed", [11, 12])
def test_a_file_and_the_dataset_of_it_share_no_columns(tmp_path, seed):
    legacy, plain = pair(24, seed=seed)
    (tmp_path / "0.parquet").write_bytes(legacy)
    wanted = numparq.read_parquet(plain, ["date", "us"])
    ways = [
        lambda: numparq.ParquetFile(legacy).read(["date", "us"]),
        lambda: numparq.Dataset(tmp_path).read(["date", "us"]),
    ]
    for way in (ways if seed == 11 else ways[::-1]) * 2:
        assert_frames_equal(way(), wanted)


def test_small_files_are_not_joined_across_calendars(tmp_path):
    data = [*(pair(9, seed=seed)[seed % 2] for seed in range(4))]
    paths = [tmp_path / f"{number}.parquet" for number in range(4)]
    for path, some in zip(paths, data, strict=True):
        path.write_bytes(some)
    wanted = [numparq.read_parquet(pair(9, seed=seed)[1]) for seed in range(4)]
    assert_frames_equal(numparq.read_parquet(tmp_path), pd.concat(wanted, ignore_index=True))


# --- what the keys say ------------------------------------------------------------------------------------------------


def one_file(keys):
    day, second = -171_604, -12_219_292_800 - DAY
    frame = frame_of([day] * 3, [second] * 3)[["date", "us", "local"]].assign(int96=pd.Timestamp("1880-01-01"))
    data = numparq.to_parquet(frame, schema={"int96": SchemaNode("int96", OPTIONAL, INT96)}, key_value_metadata=keys)
    found = numparq.read_parquet(data).iloc[2]
    return found["date"] != frame["date"][2], found["us"] != frame["us"][2], found["int96"] != frame["int96"][2]


@pytest.mark.parametrize(
    ("keys", "rebased"),
    [
        ({}, (False, False, False)),
        ({VERSION: "3.5.0", ZONE: "Europe/Paris"}, (False, False, False)),
        ({LEGACY: "", LEGACY_INT96: "", ZONE: "Europe/Paris"}, (False, False, False)),  # not of Spark
        ({VERSION: "3.5.0", LEGACY: "", ZONE: "Europe/Paris"}, (True, True, False)),
        ({VERSION: "3.5.0", LEGACY_INT96: "", ZONE: "Europe/Paris"}, (False, False, True)),
        ({VERSION: "3.0.1", ZONE: "Europe/Paris"}, (False, False, True)),
        ({VERSION: "2.4.8", ZONE: "Europe/Paris"}, (True, True, True)),
        ({VERSION: "2.4.8"}, (True, True, False)),  # in UTC, where 1880 is the same
    ],
)
def test_keys_decide(keys, rebased):
    assert one_file(keys) == rebased


def test_int96_before_1677():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    stored = np.array(["1500-06-11T01:02:03.000004", "0100-01-01", "2020-01-01", "1899-01-01", "NaT"], "M8[us]")
    out = io.BytesIO()
    table = pa.table({"x": stored}).replace_schema_metadata({**PARIS, ZONE: "UTC"})
    pq.write_table(table, out, use_deprecated_int96_timestamps=True)
    found = numparq.read_parquet(out.getvalue())["x"]
    assert found.astype(str).tolist()[:2] == ["1500-06-01 01:02:03.000004", "0100-01-03 00:00:00.000000"]
    kept = numparq.read_parquet(out.getvalue(), filters=[("x", "==", pd.Timestamp("1500-06-01 01:02:03.000004"))])
    assert len(kept) == 1


def test_int96_beyond_nanoseconds_names_the_column():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    out = io.BytesIO()
    table = pa.table({"x": np.array([-(1 << 63) + 1], "M8[ns]")}).replace_schema_metadata(
        {**PARIS, ZONE: "Asia/Kolkata"}
    )
    pq.write_table(table, out, use_deprecated_int96_timestamps=True)
    with pytest.raises(UnsupportedError, match=r"legacy calendar is outside .* column 'x'"):
        numparq.read_parquet(out.getvalue())


def test_int96_beyond_microseconds_are_bytes_as_stored():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    out, moment = io.BytesIO(), np.datetime64("1880-01-01T01:02:03.123456", "ns")
    table = pa.table({"x": [moment, moment]}).replace_schema_metadata(PARIS)
    pq.write_table(table, out, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none")
    time, day = (moment - np.datetime64("1880-01-01")).astype(int), 2_440_588 + int(moment.astype("M8[D]").astype(int))
    stored = int(time).to_bytes(8, "little") + day.to_bytes(4, "little")
    beyond = bytes(8) + b"\xff" * 3 + b"\x7f"
    data = out.getvalue().replace(stored * 2, stored + beyond)
    assert numparq.read_parquet(data)["x"].tolist() == [stored, beyond]


# --- copies -----------------------------------------------------------------------------------------------------------


def test_copies_through_arrow_are_not_rebased_again(files):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    legacy, plain = files
    out = io.BytesIO()
    pq.write_table(numparq.ParquetFile(legacy).to_arrow(), out)
    assert numparq.read_parquet(out.getvalue())["us"].equals(numparq.read_parquet(plain)["us"])


def test_nothing_is_appended_to_a_legacy_file(files, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(files[0])
    with pytest.raises(UnsupportedError, match="legacy calendar, in which appended rows would be read wrongly"):
        numparq.to_parquet(numparq.read_parquet(files[0]), path, append=True)
    path.write_bytes(numparq.to_parquet(pd.DataFrame({"x": [1]}), key_value_metadata={VERSION: "2.4.8"}))
    numparq.to_parquet(pd.DataFrame({"x": [2]}), path, append=True)  # without days, calendars do not matter
    assert numparq.read_parquet(path)["x"].tolist() == [1, 2]


def test_statistics_leave_out_bounds_that_move(files):
    file = numparq.ParquetFile(files[0])
    found = file.statistics("date")
    assert found[0].min is found[0].max is None
    assert found[0].null_count == 1
    late = numparq.ParquetFile(pair(8, {VERSION: "2.4.8"})[0])
    assert late.statistics("local")[0].min is not None
    modern = numparq.to_parquet(frame_of([0, 1, 2], [0, 1, 2])[["us"]], key_value_metadata=PARIS)
    assert numparq.ParquetFile(modern).statistics("us")[0].max is not None


def test_salvage_writes_values_as_read(files, tmp_path):
    legacy, plain = files
    start = numparq.ParquetFile(legacy).metadata.row_groups[2].columns[0].meta_data.data_page_offset
    (tmp_path / "damaged").write_bytes(legacy[: start + 40] + bytes([legacy[start + 40] ^ 0x55]) + legacy[start + 41 :])
    salvage(tmp_path / "damaged", tmp_path / "out")
    got, wanted = numparq.read_parquet(tmp_path / "out"), numparq.read_parquet(plain).drop(range(32, 36))
    assert got["date"].tolist() == wanted["date"].tolist()
    assert got["us"].dropna().tolist() == wanted["us"].dropna().tolist()


LEAVES = ["date", "us", "int96", "dates.list.element", "struct.at", "struct.day"]
SKIPPING = {
    "read": lambda path, **options: numparq.read_parquet(path, **options),
    "batches": lambda path, **options: pd.concat(numparq.ParquetFile(path).iter_batches(batch_rows=9, **options)),
    "filtered": lambda path, **options: numparq.read_parquet(path, filters=[("key", ">", 2)], **options),
    "dates": lambda path, **options: numparq.read_parquet(
        path, filters=numparq.col("dates").contains(rebased_days()[40]), **options
    ),
    "of many files": lambda path, **options: numparq.read_parquet([path, path], **options),
}


def rebased_days():
    return [datetime.date.fromordinal(EPOCH + rebase_day(int(day))) for day in stored_numbers(64)[0]]


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("way", SKIPPING)
@pytest.mark.parametrize("leaf", LEAVES)
def test_intact_rows_beside_damage_are_rebased(tmp_path, leaf, way, index):
    """Two pages of the second row group are lost, and values before and behind them are in parts of their own."""
    legacy, plain = pair(**LAYOUT, write_page_index=index)
    pages = data_pages(legacy, 1, leaf)
    (tmp_path / "damaged").write_bytes(damage_body(damage_body(legacy, pages[0]), pages[2]))
    (tmp_path / "plain").write_bytes(plain)
    got = SKIPPING[way](tmp_path / "damaged", on_error="skip", include=["row_number"])
    wanted = SKIPPING[way](tmp_path / "plain", include=["row_number"])
    is_whole = leaf.startswith("dates") and not index  # rows of lists behind damage are not known
    lost = [*range(16, 32)] if is_whole else [*range(16, 20), *range(24, 28)]
    wanted = wanted[~wanted["row_number"].isin(lost)]
    got.attrs = {}
    assert_frames_equal(got.reset_index(drop=True), wanted.reset_index(drop=True))


def test_salvage_rebases_nested_values_beside_damage(tmp_path):
    legacy, plain = pair(**LAYOUT)
    damaged = damage_body(legacy, data_pages(legacy, 1, "struct.day")[1])
    (tmp_path / "damaged").write_bytes(damaged)
    saved = salvage(tmp_path / "damaged", tmp_path / "out")
    assert saved.num_rows == 60
    got, wanted = numparq.read_parquet(tmp_path / "out"), numparq.read_parquet(plain).drop(range(20, 24))
    assert_frames_equal(got, wanted.reset_index(drop=True))


def test_metadata_files_do_not_describe_legacy_files(files, tmp_path):
    frame = numparq.read_parquet(files[1], ["date", "us"])
    (tmp_path / "0.parquet").write_bytes(numparq.to_parquet(frame, key_value_metadata=PARIS))
    with pytest.raises(UnsupportedError, match="legacy calendar, which a _metadata file cannot record"):
        numparq.to_parquet(frame, tmp_path, append=True, partition_cols=[], write_metadata_file=True)
