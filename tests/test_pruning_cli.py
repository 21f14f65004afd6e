"""``numparq plan``: filters as text, and what is printed of a plan."""

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
from numparq.expr.parse import FilterSyntaxError, parse_filter

FILTERS = {
    "a = 3": col("a") == 3,
    "a == -3.5e2": col("a") == -350.0,
    "a<>3": col("a") != 3,
    "a >= .5 AND b < 'x'": (col("a") >= 0.5) & (col("b") < "x"),
    "a>3 or b=1 and not c=2": (col("a") > 3) | ((col("b") == 1) & ~(col("c") == 2)),
    "(a>3 or b=1) and c=2": ((col("a") > 3) | (col("b") == 1)) & (col("c") == 2),
    "a in (1, 2,3)": col("a").isin([1, 2, 3]),
    "a not in ('x')": ~col("a").isin(["x"]),
    "a between 1 and 2 and b = true": col("a").between(1, 2) & (col("b") == True),  # noqa: E712
    "a not between '2024-01-01' and '2024-02-01'": ~col("a").between("2024-01-01", "2024-02-01"),
    "a is null or s.b is not null": col("a").is_null() | col("s.b").is_not_null(),
    "a like 'x%'": col("a").like("x%"),
    "a not like '10!%' escape '!'": ~col("a").like("10!%", escape="!"),
    "a startswith 'it''s'": col("a").startswith("it's"),
    "tags contains 'x'": col("tags").contains("x"),
    '"the ""fare""" = "x"': col('the "fare"') == "x",
    "`not` != 1": col("not") != 1,
    "größe > 1": col("größe") > 1,
    "not not a = 1": ~~(col("a") == 1),
}


@pytest.mark.parametrize("text", FILTERS)
def test_filters_that_are_read(text):
    assert repr(parse_filter(text)) == repr(FILTERS[text])


def test_numbers_beside_decimals():
    assert parse_filter("a in (1.10, 2) or b = 1.10", lambda name: name == "a") == (
        col("a").isin([Decimal("1.10"), 2]) | (col("b") == 1.1)
    )


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("", "name of a column is missing", 1),
        ("a", "an operator is missing", 2),
        ("a >", "a number, true, false or a string", 4),
        ("a > 3 b", "'b' is not expected", 7),
        ("a > b", "a number, true, false or a string", 5),
        ("3 < a", "name of a column is missing", 1),
        ("(a > 3", "')' is missing", 7),
        ("a in 3", "'(' is missing", 6),
        ("a in ()", "a number, true, false or a string", 7),
        ("a between 1 or 2", "'and' is missing", 13),
        ("a is 3", "'null' is missing", 6),
        ("a = 'x", '"\'" means nothing here', 5),
        ("a = 3; import os", "';' means nothing here", 6),
        ("a.__class__()", "an operator is missing", 12),
        ("a = 3x", "means nothing here", 5),
        ("and = 3", "name of a column is missing", 1),
        ("a not = 3", "an operator is missing", 7),
        ("(" * 200 + "a = 1" + ")" * 200, "nested too deeply", 102),
        ("not " * 5000 + "a = 1", "nested too deeply", 405),
    ],
)
def test_filters_that_cannot_be_read(text, message, place):
    with pytest.raises(FilterSyntaxError, match="at character") as caught:
        parse_filter(text)
    assert message in str(caught.value)
    assert f"at character {place} of" in str(caught.value)


@pytest.fixture
def path(tmp_path):
    frame = pd.DataFrame(
        {"ride": np.arange(3000), "fare": np.arange(3000) / 7, "price": [Decimal(n).scaleb(-2) for n in range(3000)]}
    )
    numparq.to_parquet(frame, tmp_path / "rides.parquet", row_group_size=1000, max_rows_per_page=100)
    return str(tmp_path / "rides.parquet")


def test_a_plan_is_printed(path, capsys):
    assert (
        main(["plan", path, "--filter", "ride between 1190 and 1210 and fare > 0", "--columns", "fare", "--pages"]) == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 columns, 200 of 3,000 rows")
    assert any(line.startswith("  statistics") and "col('ride') <= 1210" in line for line in lines)
    assert any(line.startswith("planning took ") for line in lines)
    assert lines[lines.index("row group 1: 200 of 1,000 rows") + 1] == "  fare .##....... 2 of 10"
    assert lines[-1] == "row group 2: skipped"


def test_a_plan_of_everything(path, capsys):
    assert main(["plan", path]) == 0
    assert "3,000 of 3,000 rows" in capsys.readouterr().out


def test_numbers_beside_a_column_of_decimals(path, capsys):
    assert main(["plan", path, "--filter", "price = 1.10"]) == 0
    assert "100 of 3,000 rows" in capsys.readouterr().out


@pytest.mark.parametrize(("text", "message"), [("fare ! 3", "means nothing here"), ("fair > 3", "did you mean 'fare'")])
def test_trouble_is_told_in_a_line(path, text, message, capsys):
    assert main(["plan", path, "--filter", text]) == 1
    assert message in capsys.readouterr().err


def test_many_pages_are_drawn_together(tmp_path, capsys):
    path = str(tmp_path / "many.parquet")
    numparq.to_parquet(pd.DataFrame({"x": np.arange(30_000)}), path, max_rows_per_page=100)
    assert main(["plan", path, "--filter", "x in (5, 29999) or x between 10000 and 20000", "--pages"]) == 0
    drawn = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("  x "))
    marks = drawn.split()[1]
    assert len(marks) == 72
    assert marks[0] == marks[-1] == "+"
    assert set(marks) == {"#", "+", "."}


def test_maps_fit_into_a_narrow_terminal(tmp_path):
    path = tmp_path / "many.parquet"
    frame = pd.DataFrame({"x": np.arange(30_000), "a longer name": np.arange(30_000)})
    numparq.to_parquet(frame, path, row_group_size=5000, max_rows_per_page=50)
    with numparq.ParquetFile(path) as file:
        plan = file.plan(filters=col("x") > 10_060)
    lines = [row.plain for row in page_map(plan, 60)]
    assert lines[0] == "row groups 0 to 1: skipped"
    assert max(map(len, lines)) <= 60
    assert lines[2].split()[1] == "+" + "#" * 27


def test_lines_are_folded_between_words_in_a_terminal(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["plan", path, "--filter", "ride between 1190 and 1210"]) == 0
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 50
    assert "      (col('ride') >= 1190) & (col('ride') <=" in lines


def test_the_plan_of_a_directory(tmp_path, capsys):
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "year": [2023, 2023, 2024, 2024]})
    numparq.to_parquet(frame, tmp_path, partition_cols=["year"])
    assert main(["plan", str(tmp_path), "--filter", "year = 2024 and a > 3", "--columns", "a"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("1 of 2 files, 2 rows")
    assert "partitions" in out
    assert "year=2023" not in out
