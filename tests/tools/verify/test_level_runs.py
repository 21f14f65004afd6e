"""Long runs of levels are shortened before `verify` decodes them, and counted as before."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import numparq
from numparq.tools.verify.level_runs import LevelRuns, RemovedEntries, shorten_runs
from support.files.spec_violations import VIOLATIONS
from support.files.writer_quirks import QUIRKS
from support.oracles.hybrid_rle import decode, random_encoding


@pytest.fixture
def shorten_all(monkeypatch):
    """Shorten runs of three entries and more in every page."""
    monkeypatch.setattr("numparq.tools.verify.level_runs.LONG_RUN", 0)
    monkeypatch.setattr("numparq.tools.verify.page_levels._MANY", 0)


def test_entries_are_removed_where_both_sections_have_runs(shorten_all):
    rng = np.random.default_rng(1)
    for _ in range(50):
        definition, repetition = (np.repeat(rng.integers(0, most + 1, 9), rng.integers(1, 40, 9)) for most in (3, 1))
        count = min(len(definition), len(repetition))
        levels = definition[:count].tolist(), repetition[:count].tolist()
        one, two = (random_encoding(rng, values, width) for values, width in zip(levels, (2, 1), strict=True))
        mine, other = LevelRuns.parse(one, count, 2), LevelRuns.parse(two, count, 1)
        assert (mine.encoded(), other.encoded()) == (one, two)
        removed = shorten_runs(mine, other, 3)
        left = count - sum(run.number for run in removed)
        entries = [*zip(decode(mine.encoded(), 2, left), decode(other.encoded(), 1, left), strict=True)]
        entries += [(run.definition, run.repetition) for run in removed for _ in range(run.number)]
        assert sorted(entries) == sorted(zip(*levels, strict=True))
        assert all(run.definition < 3 for run in removed)


def test_flat_levels(shorten_all):
    definition = LevelRuns.parse(b"\x80\x01\x00", 64, 1)
    assert shorten_runs(definition, LevelRuns.parse(b"", 64, 0), 1) == [RemovedEntries(62, 0, 0)]
    assert definition.encoded() == b"\x04\x00"


@pytest.mark.parametrize("section", [b"", b"\x80", b"\x80\x01", b"\x00\x01", b"\x03", b"\xff" * 6, b"\x80\x01\x01\x80"])
def test_damaged_sections_stay(section):
    found = LevelRuns.parse(section, 100, 1)
    assert found.encoded() == section


def tables() -> dict[str, pa.Table]:
    rng = np.random.default_rng(1)
    missing = np.repeat(rng.random(40) < 0.5, 50)
    numbers = [None if gap else n // 7 for n, gap in enumerate(missing.tolist())]
    lists = [None if gap else [n] * (n % 3) for n, gap in enumerate(missing.tolist())]
    long = [[None] * 300, [], None, [1] * 200, [None, 2]] * 4
    return {
        "flat": pa.table({"a": numbers, "b": pa.array(range(2000))}),
        "lists": pa.table({"a": lists, "s": [None if x is None else {"x": x} for x in numbers]}),
        "long lists": pa.table({"a": long, "n": [[row] for row in long]}),
    }


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", ["flat", "lists", "long lists"])
def test_counts_are_those_of_all_entries(shorten_all, name, version):
    """Statistics and histograms of sound files agree with the shortened levels."""
    table, out = tables()[name], io.BytesIO()
    for compression in ("none", "snappy"):
        data = numparq.to_parquet(table, data_page_version=version, compression=compression, max_rows_per_page=700)
        assert numparq.verify(data) == []
    pq.write_table(table, out, data_page_version=version, write_page_index=True)
    assert [one for one in numparq.verify(out.getvalue()) if one.severity == "error"] == []


def test_deviations_are_found_as_without(shorten_all, monkeypatch):
    made = [make() for make, _ in VIOLATIONS.values()] + [make(writer) for make, writer, _ in QUIRKS.values()]
    shortened = [outcome(data) for data in made]
    monkeypatch.undo()
    assert shortened == [outcome(data) for data in made]


def outcome(data: bytes) -> list[str]:
    try:
        return [str(one) for one in numparq.verify(data)]
    except numparq.ParquetError as error:
        return [str(error)]
