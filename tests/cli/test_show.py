"""`numparq schema`, `meta` and `head`: files, datasets, narrow terminals and pipes."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.cli import main
from numparq.cli.terminal import shorten_names

NAMES = [f"customer_address_line_number_{number:02}_in_the_original_currency" for number in range(30)]


@pytest.fixture
def wide(tmp_path):
    numparq.to_parquet(pd.DataFrame({name: np.arange(10) for name in NAMES}), tmp_path / "wide.parquet")
    return str(tmp_path / "wide.parquet")


@pytest.fixture
def folder(tmp_path):
    frame = pd.DataFrame({"a": [1, 2, 3], "text": ["x" * 200, None, "z"], "year": [2023, 2024, 2024]})
    numparq.to_parquet(frame, tmp_path / "years", partition_cols=["year"])
    return str(tmp_path / "years")


def terminal_output(words, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(words) == 0
    return re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()


@pytest.mark.parametrize("width", [80, 60])
def test_meta_in_a_narrow_terminal(wide, width, monkeypatch, capsys):
    lines = terminal_output(["meta", wide], width, monkeypatch, capsys)
    words, numbers = (place for place, line in enumerate(lines) if line.startswith("column "))
    assert max(map(len, lines[words:])) <= width
    assert lines[words].split() == ["column", "type", "codec", "encodings"]
    assert lines[numbers].split() == ["column", "values", "nulls", "compressed", "uncompressed"]
    text = " ".join(lines[words:numbers])
    assert text.count("INT64  SNAPPY") == text.count("DELTA_BINARY_PACKED") == 30
    if width == 80:
        assert len({line.split()[0] for line in lines[words + 1 : numbers] if "INT64" in line}) == 30
        assert len({line.split()[0] for line in lines[numbers + 1 :]}) == 30


def test_meta_in_a_pipe_has_whole_names_on_one_line(wide, capsys):
    assert main(["meta", wide]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[-30:]] == NAMES
    assert lines[-1].split("  ")[-1].strip().isdecimal()


def test_meta_of_a_dataset_sums_its_files(folder, capsys):
    assert main(["meta", folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r".*years: 2 files, [\d,]+ bytes, 3 rows, row groups: 2, partitioned by year", lines[0])
    assert lines[2].split()[0] == "a"
    assert re.search(r" 3 +1 +\d+ +\d+$", lines[3])


def test_schema_of_a_dataset_names_its_partition_columns(folder, capsys):
    assert main(["schema", folder]) == 0
    assert capsys.readouterr().out.endswith("}\npartition columns: year\n")


def test_head_shortens_values_only_in_a_terminal(folder, monkeypatch, capsys):
    assert main(["head", folder, "-n", "2", "--columns", "text,year"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["0", "x" * 200, "2023"]
    assert lines[2].split()[-1] == "2024"
    assert max(map(len, terminal_output(["head", folder], 80, monkeypatch, capsys))) <= 80


def test_verify_checks_the_files_of_a_directory(folder, capsys):
    assert main(["verify", folder]) == 0
    assert capsys.readouterr().out.count(": sound\n") == 2


def test_names_that_stay_equal_are_not_shortened():
    assert shorten_names(["abcdef", "x"], 4) == ["a…ef", "x"]
    assert shorten_names(["1abcdef", "2abcdef"], 4) == ["1…ef", "2…ef"]
    same_ends = ["aaaa1zzzz", "aaaa2zzzz"]
    assert shorten_names(same_ends, 4) == same_ends
