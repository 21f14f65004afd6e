"""Output of ``numparq plan``."""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.cli import main
from numparq.cli.plan import page_map


@pytest.fixture
def path(tmp_path):
    frame = pd.DataFrame(
        {"ride": np.arange(3000), "fare": np.arange(3000) / 7, "price": [Decimal(n).scaleb(-2) for n in range(3000)]}
    )
    numparq.to_parquet(frame, tmp_path / "rides.parquet", row_group_size=1000, max_rows_per_page=100)
    return str(tmp_path / "rides.parquet")


def test_plan_with_filter_columns_and_pages(path, capsys):
    assert (
        main(["plan", path, "--filter", "ride between 1190 and 1210 and fare > 0", "--columns", "fare", "--pages"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 columns, 200 of 3,000 rows")
    assert any(line.startswith("  statistics") and "col('ride') <= 1210" in line for line in lines)
    assert any(line.startswith("planning took ") for line in lines)
    assert lines[lines.index("row group 1: 200 of 1,000 rows") + 1] == "  fare .##....... 2 of 10"
    assert lines[-1] == "row group 2: skipped"


def test_plan_without_filter(path, capsys):
    assert main(["plan", path]) == 0
    assert "3,000 of 3,000 rows" in capsys.readouterr().out


def test_literal_of_a_decimal_column(path, capsys):
    assert main(["plan", path, "--filter", "price = 1.10"]) == 0
    assert "100 of 3,000 rows" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "message"), [("fare ! 3", "is not expected"), ("fair > 3", "did you mean 'fare'")])
def test_invalid_filter_prints_one_line_error(path, text, message, capsys):
    assert main(["plan", path, "--filter", text]) == 1
    assert message in capsys.readouterr().err


def test_page_map_merges_many_pages(tmp_path, capsys):
    path = str(tmp_path / "many.parquet")
    numparq.to_parquet(pd.DataFrame({"x": np.arange(30_000)}), path, max_rows_per_page=100)
    assert main(["plan", path, "--filter", "x in (5, 29999) or x between 10000 and 20000", "--pages"]) == 0
    drawn = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  x "))
    marks = drawn.split()[1]
    assert len(marks) == 72
    assert marks[0] == marks[-1] == "+"
    assert set(marks) == {"#", "+", "."}


def test_page_map_fits_a_narrow_terminal(tmp_path):
    path = tmp_path / "many.parquet"
    frame = pd.DataFrame({"x": np.arange(30_000), "a longer name": np.arange(30_000)})
    numparq.to_parquet(frame, path, row_group_size=5000, max_rows_per_page=50)
    with numparq.ParquetFile(path) as file:
        plan = file.plan(filters=col("x") > 10_060)
    lines = [row.plain for row in page_map(plan, 60)]
    assert lines[0] == "row groups 0 to 1: skipped"
    assert max(map(len, lines)) <= 60
    assert lines[2].split()[1] == "+" + "#" * 27


def test_lines_wrap_at_words_in_a_terminal(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["plan", path, "--filter", "ride between 1190 and 1210"]) == 0
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 50
    assert "      (col('ride') >= 1190) & (col('ride') <=" in lines


def test_plan_of_a_partitioned_directory(tmp_path, capsys):
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "year": [2023, 2023, 2024, 2024]})
    numparq.to_parquet(frame, tmp_path, partition_cols=["year"])
    assert main(["plan", str(tmp_path), "--filter", "year = 2024 and a > 3", "--columns", "a"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 2 files, 2 rows")
    assert "partitions" in out
    assert "year=2023" not in out


def test_pages_of_a_dataset_are_drawn_file_by_file(tmp_path, capsys):
    frame = pd.DataFrame({"a": np.arange(300), "year": np.repeat([2022, 2023, 2024], 100)})
    numparq.to_parquet(frame, tmp_path, partition_cols=["year"], max_rows_per_page=10)
    assert main(["plan", str(tmp_path), "--filter", "year > 2022 and a between 195 and 204", "--pages"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("  a ")] == ["  a .........# 1 of 10", "  a #......... 1 of 10"]
    assert [line.split("/")[-2] for line in lines if line.endswith(".parquet:")] == ["year=2023", "year=2024"]
