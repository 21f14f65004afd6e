"""Damaged files and files with wrong metadata: each is read, or refused with a ParquetError that names the location.

Subprocesses with limits on memory and time read them. A failure prints the sample, the seed and the damage's number,
which reproduce it: see `support.hostile`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from numparq import CorruptPageError, read_parquet
from support.files.builder import (
    INT64,
    OPTIONAL,
    RLE_DICTIONARY,
    FileColumn,
    build_file,
    data_page,
    data_page_v2,
    dictionary_page,
    encode_indices,
    encode_levels,
    encode_plain,
)
from support.files.samples import SAMPLES
from support.hostile.oversized_files import OVERSIZED, OVERSIZED_SLOW

pytest.importorskip("pyarrow")

TESTS = Path(__file__).resolve().parents[1]
SECONDS = 600
FUZZ = int(os.environ.get("NUMPARQ_FUZZ", "1"))  # factor for the number of cases of the slow tests
NAMES = list(SAMPLES)
BATCHES = [NAMES[first::4] for first in range(4)]
SMALL = 8 << 10  # bytes of the largest conformance file in quick tests


def attack(folder: Path, tasks: list[dict]) -> dict:
    """Read the damaged files of some tasks in a subprocess; return its report."""
    plan = folder / "plan.json"
    plan.write_text(json.dumps(tasks))
    path = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "support.hostile.attack", str(plan)],
        env={**os.environ, "PYTHONPATH": path},
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        now = Path(f"{plan}.now")
        last = now.read_text(errors="replace").strip() if now.exists() else "nothing yet"
        pytest.fail(f"the process ended with {done.returncode} over: {last}\n{done.stderr[-4000:]}", pytrace=False)
    report = json.loads(done.stdout)
    if report["problems"]:
        pytest.fail(f"{report['outcomes']}\n" + "\n".join(report["problems"]), pytrace=False)
    return report


def tasks_of(folder: Path, names: list[str], **how: int) -> list[dict]:
    tasks = []
    for name in names:
        path = folder / f"{name}.parquet"
        path.write_bytes(SAMPLES[name]())
        tasks.append({"name": name, "path": str(path), **how})
    return tasks


@pytest.mark.slow
@pytest.mark.parametrize("names", BATCHES, ids=", ".join)
def test_truncated_and_flipped_files(tmp_path, names):
    report = attack(tmp_path, tasks_of(tmp_path, names, cuts=6, seed=1, count=40))
    assert report["outcomes"]["frame"] > 40
    assert report["outcomes"]["InvalidFileError"] > 40


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("names", BATCHES, ids=", ".join)
def test_wrong_metadata(tmp_path, names):
    attack(tmp_path, tasks_of(tmp_path, names, seed=1, lies=12))


@pytest.mark.slow
def test_damaged_pandas_metadata_and_arrow_schema(tmp_path):
    wide = tasks_of(tmp_path, ["every type, nulls", "pandas"], seed=5, arrow=30)
    attack(tmp_path, [*wide, *tasks_of(tmp_path, ["pandas"], seed=5, pandas=100)])


# Oversized files that some reads accept, and those that need unsupported features.
READ = {
    f"{2**40} rows, and no columns",
    "many empty pages",
    "many pages of one value",
    "a bomb of codec 0",
    "names of a megabyte",
    "a dictionary offset beyond any number",
    "statistics of nothing",
    "sizes of nothing",
    "many row groups",
    "many keys",
    "a large Arrow schema",
    "a footer of unions",
    "groups of nothing",
    "many dictionaries",
    "more deltas than values",
    "a chunk that ends beyond any number",
}
NOT_YET = {"groups of nothing", "a chunk in another file", "a bomb of codec 3", "a bomb of codec 5"}


@pytest.mark.slow
def test_oversized_files(tmp_path):
    tasks = []
    for name, make in OVERSIZED.items():
        path = tmp_path / f"{len(tasks)}.parquet"
        path.write_bytes(make())
        tasks.append({"name": name, "path": str(path), "times": 9})
    outcomes_by_name = attack(tmp_path, tasks)["by_name"]
    assert outcomes_by_name.keys() == OVERSIZED.keys()
    assert {name for name, outcomes in outcomes_by_name.items() if "frame" in outcomes} == READ
    assert {name for name, outcomes in outcomes_by_name.items() if "UnsupportedError" in outcomes} <= NOT_YET
    assert outcomes_by_name["a chunk over all"] == ["CorruptPageError"]


@pytest.mark.parametrize(
    "options",
    [{}, {"threads": 2}, {"dtype_backend": "pyarrow"}, {"filters": [("a", ">", 1)]}, {"row_range": (1, 3)}],
    ids=str,
)
def test_pages_beyond_the_values_of_a_chunk(options):
    """Pages must fill their chunk: a chunk over the pages of another column is an error with its location."""
    with pytest.raises(CorruptPageError, match="the number of values does not match the page header") as caught:
        read_parquet(OVERSIZED["a chunk over all"](), columns=["a"], **options)
    assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "a", "page": 1}


def test_files_beyond_the_memory_limit(tmp_path):
    """Sound files that need more memory than the process may have raise LimitError."""
    tasks = []
    for name, make in OVERSIZED_SLOW.items():
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(make())
        tasks.append({"name": name, "path": str(path), "times": 9})
    for name, outcomes in attack(tmp_path, tasks)["by_name"].items():
        assert set(outcomes) <= {"LimitError", "frame"}, name
        assert "LimitError" in outcomes, name


def test_checksums_cover_every_byte_of_a_page():
    """A flipped bit of a page with a checksum is an error that names the page."""
    indices = b"\x02" + encode_indices([3, 2, 1, 0], 2)
    unchecked = [
        dictionary_page(4, encode_plain(INT64, [1, 2, 3, 4])),
        data_page(4, encode_levels([1] * 4) + indices, RLE_DICTIONARY),
        data_page_v2(4, 1, encode_indices([1, 0, 1, 1], 1), encode_plain(INT64, [5, 6, 7])),
        data_page(4, encode_levels([1, 1, 1, 0]) + encode_plain(INT64, [8, 9, 10])),
    ]
    pages = [page.with_crc() for page in unchecked]
    sound = build_file([12], [FileColumn("a", INT64, [pages], OPTIONAL)]).stored()
    assert len(read_parquet(sound)) == 12
    for number, page in enumerate(pages):
        start = sound.index(page.body)
        for place in range(start, start + len(page.body)):
            damaged = bytearray(sound)
            damaged[place] ^= 1 << place % 8
            with pytest.raises(CorruptPageError, match="checksum") as caught:
                read_parquet(bytes(damaged), threads=1)
            assert caught.value.where == {"file": "<bytes>", "row_group": 0, "column": "a", "page": number}


@pytest.mark.slow
def test_many_damaged_pandas_metadata_and_arrow_schema(tmp_path):
    wide = tasks_of(tmp_path, ["every type, nulls", "pandas"], seed=6, arrow=600 * FUZZ)
    attack(tmp_path, [*wide, *tasks_of(tmp_path, ["pandas"], seed=6, pandas=1_200 * FUZZ)])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_truncated_and_flipped_files(tmp_path, name):
    attack(tmp_path, tasks_of(tmp_path, [name], cuts=600 * FUZZ, seed=2, count=600 * FUZZ))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_wrong_metadata(tmp_path, name):
    attack(tmp_path, tasks_of(tmp_path, [name], seed=2, lies=200 * FUZZ))


# A few kilobytes that decode to a GiB of strings.
HUGE = {"large_string_map.brotli.parquet"}


def conformance_tasks(folder: Path, most: int, **how: int) -> list[dict]:
    paths = [path for part in ("data", "bad_data") for path in sorted((folder / part).glob("*.parquet"))]
    small = [path for path in paths if path.stat().st_size <= most and path.name not in HUGE]
    return [{"name": path.name, "path": str(path), **how} for path in small]


@pytest.mark.slow
def test_damaged_conformance_files(tmp_path, parquet_testing):
    attack(tmp_path, conformance_tasks(parquet_testing, SMALL, cuts=2, seed=3, count=6))


@pytest.mark.slow
def test_many_damaged_conformance_files(tmp_path, parquet_testing):
    attack(tmp_path, conformance_tasks(parquet_testing, 10 * SMALL, cuts=20 * FUZZ, seed=4, count=60 * FUZZ))
