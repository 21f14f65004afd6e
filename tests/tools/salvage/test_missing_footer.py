"""`salvage` without a footer goes on behind damage, and saves only rows whose columns belong together without doubt."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.errors import InvalidFileError, ParquetError
from numparq.tools.salvage.file import salvage
from support.files.page_damage import (
    damage_body,
    data_pages,
    edit_footer,
    flip_bytes,
    footer_of,
    footer_start,
    pages_of,
)

ROWS = 20  # per row group


def written(frame: pd.DataFrame, **options) -> bytes:
    return numparq.to_parquet(frame, **{"row_group_size": ROWS, "max_rows_per_page": 8, **options})


def frame(count: int = 8 * ROWS) -> pd.DataFrame:
    return pd.DataFrame({"a": np.arange(count) / 7, "s": [f"name {n % 9}" for n in range(count)]})


def salvage_bytes(tmp_path, data: bytes, schema: bytes, **options):
    """Salvage a file that lacks its footer; return the report and the rows."""
    (tmp_path / "damaged").write_bytes(data[: -8 if len(data) > footer_start(schema) else None])
    report = salvage(tmp_path / "damaged", tmp_path / "saved", schema, force=True, **options)
    rows = numparq.read_parquet(tmp_path / "saved")
    assert report.num_rows == len(rows)
    assert numparq.verify(tmp_path / "saved") == []
    return report, rows.reset_index(drop=True)


def without(rows: pd.DataFrame, *row_groups: int) -> pd.DataFrame:
    """Return rows without those of some row groups."""
    return rows[~(rows.index // ROWS).isin(row_groups)].reset_index(drop=True)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("column", ["a", "s"])
def test_row_groups_behind_a_damaged_page_are_saved(tmp_path, column, version):
    """The header of the page says where the next one begins: equal columns are no trouble either."""
    rows = frame().assign(b=lambda some: some["a"] + 1)
    data = written(rows, data_page_version=version)
    page = data_pages(data, 2, column)[1]
    report, saved = salvage_bytes(tmp_path, damage_body(data, page), data)
    pd.testing.assert_frame_equal(saved, without(rows, 2))
    first = min(page.start for page in pages_of(data, 2, "a"))
    assert report.lost[0] == (
        f"{ROWS} rows in a row group from byte {first:,} on: the page at byte {page.start:,} is damaged: "
        "its checksum does not match its bytes"
    )


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("column", ["a", "s"])
def test_row_groups_behind_a_damaged_header_are_saved(tmp_path, column, checksums):
    """The next page is searched for, and each type is that of one column only."""
    rows = frame()
    data = written(rows, write_page_checksum=checksums)
    page = data_pages(data, 3, column)[0]
    damaged = flip_bytes(data, *range(page.start, page.start + 12))
    report, saved = salvage_bytes(tmp_path, damaged, data)
    pd.testing.assert_frame_equal(saved, without(rows, 3))
    gap = f"{page.end - page.start} bytes from byte {page.start:,} on: no intact page begins at byte {page.start:,}: "
    assert gap + "its header is damaged" in report.lost


def test_equal_columns_behind_a_damaged_header_are_lost(tmp_path):
    """A page of any of them may follow: what is before the damage is saved, and a smaller row group at the end."""
    rows = pd.DataFrame({"a": np.arange(90), "b": np.arange(90) * 2})
    data = written(rows, use_dictionary=False, column_encoding="PLAIN")
    page = data_pages(data, 1, "b")[0]
    report, saved = salvage_bytes(tmp_path, flip_bytes(data, page.start), data, row_group_size=ROWS)
    pd.testing.assert_frame_equal(saved, rows[:ROWS])
    assert any("their columns or row groups are not certain" in line for line in report.lost)


def test_damaged_dictionary_loses_its_row_group(tmp_path):
    rows = frame()
    data = written(rows)
    page = next(page for page in pages_of(data, 5, "s") if page.is_dictionary)
    _, saved = salvage_bytes(tmp_path, damage_body(data, page), data)
    pd.testing.assert_frame_equal(saved, without(rows, 5))


def test_page_without_checksum_that_cannot_be_decompressed(tmp_path):
    rows = frame()
    data = written(rows, write_page_checksum=False, compression="zstd")
    page = data_pages(data, 4, "a")[0]
    _, saved = salvage_bytes(tmp_path, flip_bytes(data, *range(page.body, page.body + 6)), data)
    pd.testing.assert_frame_equal(saved, without(rows, 4))


@pytest.mark.parametrize("column", ["i", "s", "l"])
def test_single_columns_lose_the_damaged_page_only(tmp_path, column):
    """A row of a list may go on in a damaged page: the page before it is lost, too."""
    count = 6 * ROWS
    values = {
        "i": np.arange(count),
        "s": [f"text {n}" for n in range(count)],
        "l": [[n] * (n % 3 + 1) for n in range(count)],
    }
    rows = pd.DataFrame({column: values[column]})
    data = written(rows, use_dictionary=False, data_page_version="1.0")
    leaf = "l.list.element" if column == "l" else column
    _, saved = salvage_bytes(tmp_path, damage_body(data, data_pages(data, 2, leaf)[1]), data)
    first = 2 * ROWS if column == "l" else 2 * ROWS + 8
    expected = pd.concat([rows[:first], rows[2 * ROWS + 16 :]])
    assert [*map(repr, saved[column])] == [*map(repr, numparq.read_parquet(written(expected))[column])]


def test_lost_bytes_at_the_border_of_row_groups(tmp_path):
    """Zeros that are too many to align what follows are no padding: a chunk may have been there."""
    rows = frame()
    data = written(rows)
    start, end = pages_of(data, 2, "s")[0].start, pages_of(data, 2, "s")[-1].end
    _, saved = salvage_bytes(tmp_path, data[:start] + bytes(end - start) + data[end:], data)
    pd.testing.assert_frame_equal(saved, without(rows, 2))


def test_pages_of_a_file_within_a_value_are_not_rows(tmp_path):
    """The value is a Parquet file of the same schema, and the header of its page is damaged."""
    inner = written(pd.DataFrame({"f": [b"inner"] * 40}), compression="none", use_dictionary=False)
    rows = pd.DataFrame({"f": [b"a", b"b", inner, b"c"]})
    data = written(rows, row_group_size=1, compression="none", use_dictionary=False)
    page = data_pages(data, 2, "f")[0]
    _, saved = salvage_bytes(tmp_path, flip_bytes(data, page.start), data)
    assert saved["f"].tolist() == [b"a", b"b"]


def test_files_without_rows(tmp_path):
    """Nothing is said to be readable that is not: the column has an unknown type, and no row group shows it."""
    data = numparq.to_parquet(pd.DataFrame({"a": np.arange(3)}))

    def edit(footer) -> None:
        footer.row_groups, footer.num_rows, footer.schema[1].type = [], 0, 99

    (tmp_path / "damaged").write_bytes(edit_footer(data, edit))
    with pytest.raises(InvalidFileError, match="every row of every column is lost: column 'a': the physical type 99"):
        salvage(tmp_path / "damaged", tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_files_without_columns(tmp_path):
    data = numparq.to_parquet(pd.DataFrame(index=range(3)))

    def edit(footer) -> None:
        footer.num_rows = 7

    (tmp_path / "damaged").write_bytes(edit_footer(data, edit))
    assert salvage(tmp_path / "damaged", tmp_path / "saved").num_rows == 3
    assert numparq.read_parquet(tmp_path / "saved").shape == (3, 0)
    (tmp_path / "damaged").write_bytes(data[:-9])
    with pytest.raises(ParquetError, match="the schema has no columns"):
        salvage(tmp_path / "damaged", tmp_path / "saved", data, force=True)


@pytest.mark.parametrize("url", ["s3://bucket/x.parquet", "https://host/x.parquet"])
def test_urls_are_refused_by_name(tmp_path, url):
    (tmp_path / "whole").write_bytes(written(frame()))
    for arguments in ((url, tmp_path / "saved"), (tmp_path / "whole", url)):
        with pytest.raises(ValueError, match=f"salvage takes paths of local files, not URLs; copy .* '{url}' yourself"):
            salvage(*arguments)
    assert salvage(f"file://{tmp_path}/whole", f"file://{tmp_path}/saved").num_rows == 8 * ROWS


# --- random files -----------------------------------------------------------------------------------------------------

KINDS = {
    "int": lambda n: n,
    "float": lambda n: n / 7,
    "str": lambda n: [f"s{x}" for x in n],
    "list": lambda n: [[int(x)] * (x % 5) for x in n],
    "struct": lambda n: [{"x": int(x), "y": float(x)} for x in n],
    "bool": lambda n: n % 3 == 0,
    "small": lambda n: n.astype("i4"),
}


def random_file(rng: np.random.Generator) -> tuple[bytes, bool]:
    """Return a file of random columns, some of the same type, and whether its pages have checksums."""
    count, checksums = int(rng.integers(60, 200)), bool(rng.integers(0, 2))
    kinds = rng.choice(list(KINDS), int(rng.integers(1, 6)))
    data = written(
        pd.DataFrame({f"c{at}": KINDS[kind](np.arange(count) * 10 + at) for at, kind in enumerate(kinds)}),
        row_group_size=int(rng.choice([13, 20, 40])),
        max_rows_per_page=int(rng.choice([5, 10, 40])),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        use_dictionary=bool(rng.integers(0, 2)),
        compression=str(rng.choice(["none", "snappy", "zstd"])),
        write_page_checksum=checksums,
    )
    return data, checksums


def damage_randomly(data: bytes, checksums: bool, rng: np.random.Generator) -> bytes:
    """Damage some pages; values only where a checksum tells."""
    out = bytearray(data[: footer_start(data)] if rng.integers(2) else data[:-8])
    row_groups = footer_of(data).row_groups
    for _ in range(int(rng.integers(1, 3))):
        number = int(rng.integers(len(row_groups)))
        chunk = row_groups[number].columns[int(rng.integers(len(row_groups[number].columns)))].meta_data
        pages = pages_of(data, number, b".".join(chunk.path_in_schema).decode())
        page = pages[int(rng.integers(len(pages)))]
        match int(rng.integers(4)):
            case 0 if checksums:
                out[min((page.body + page.end) // 2, page.end - 1)] ^= int(rng.integers(1, 255))
            case 1:
                out[int(rng.integers(page.start, page.body))] ^= 1 << int(rng.integers(8))
            case 2:
                out[page.start : page.end] = bytes(page.end - page.start)
            case 3:
                end = min(page.start + 300, len(out)) if checksums else page.end
                out[page.start : end] = rng.bytes(end - page.start)
    return bytes(out)


def texts(rows: pd.DataFrame) -> list[str]:
    """Return the rows as text, arrays as lists."""
    as_lists = [[getattr(value, "tolist", lambda value=value: value)() for value in rows[name]] for name in rows]
    return [repr(row) for row in zip(*as_lists, strict=True)]


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("part", range(8))
def test_no_row_is_invented(tmp_path, part):
    num_saved = 0
    for seed in range(30 * part, 30 * part + 30):
        rng = np.random.default_rng(seed)
        data, checksums = random_file(rng)
        (tmp_path / "damaged").write_bytes(damage_randomly(data, checksums, rng))
        try:
            report = salvage(tmp_path / "damaged", tmp_path / "saved", data, force=True)
        except ParquetError:
            continue
        saved = texts(numparq.read_parquet(tmp_path / "saved"))
        left = iter(texts(numparq.read_parquet(data)))
        assert all(any(row == other for other in left) for row in saved), f"seed {seed}: {report}"
        assert len(saved) == report.num_rows
        num_saved += 1
    assert num_saved > 15


def arrow_dictionary(name: str, count: int, pa) -> dict:
    """Return an Arrow column of strings whose dictionary repeats some entries."""
    entries = [f"{name} {n % 3}" for n in range(9)]
    return {
        name: pa.DictionaryArray.from_arrays(pa.array([n % 9 for n in range(count)], pa.int32()), pa.array(entries))
    }


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_repeated_dictionary_entries_of_arrow_are_saved(tmp_path, compression):
    """Arrow C++ leaves bytes behind the entries of such a dictionary page, and no page has indices into it."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"n": pa.array(range(60)), **arrow_dictionary("s", 60, pa), "x": pa.array([n / 7 for n in range(60)])}
    table = pa.table({**columns, **arrow_dictionary("t", 60, pa)})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=20, compression=compression, store_schema=False)
    data = out.getvalue()
    (tmp_path / "damaged").write_bytes(data[: footer_start(data)])
    report = salvage(tmp_path / "damaged", tmp_path / "saved", data)
    assert (report.num_rows, report.lost) == (60, [])
    assert pq.read_table(tmp_path / "saved").equals(pq.read_table(io.BytesIO(data)))
    assert numparq.read_parquet(tmp_path / "saved").equals(numparq.read_parquet(data))


def test_indices_into_a_doubtful_dictionary_are_not_saved(tmp_path):
    """A dictionary page of 64-bit integers fits a column of 32 bits, with bytes behind its entries."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    wide, narrow = (
        pa.table({"a": pa.array([1, 2, 1, 2] * 5, kind), "b": [0.5] * 20}) for kind in (pa.int64(), pa.int32())
    )
    files = []
    for table in (wide, narrow):
        out = io.BytesIO()
        pq.write_table(table, out)
        files.append(out.getvalue())
    (tmp_path / "damaged").write_bytes(files[0][: footer_start(files[0])])
    with pytest.raises(InvalidFileError, match="no complete row group begins there"):
        salvage(tmp_path / "damaged", tmp_path / "saved", files[1])
