"""Rendering of profiles: text, terminal table, HTML, JSON and DataFrame."""

from __future__ import annotations

import datetime
import io
import json
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import numparq
from numparq.cli.spark import print_profile
from numparq.tools.profile.job import profile_files
from numparq.tools.profile.profile import Profile


@pytest.fixture
def found(tmp_path: Path) -> Profile:
    day = datetime.date(2024, 2, 29)
    for at in range(2):
        frame = pd.DataFrame(
            {
                "when": pd.date_range("2024-01-01", periods=50, freq="h") + pd.Timedelta(days=at),
                "n": np.arange(50) * at,
                "price": [Decimal("1.50"), Decimal("2.25")] * 25,
                "day": [day, None] * 25,
                "raw": [b"\x00\xff", b"<b>"] * 25,
                "x": [0.5, float("nan")] * 25,
                "<tag> [red]": ["a\nb", "c" * 100] * 25,
            }
        )
        folder = tmp_path / f"year={2023 + at}"
        folder.mkdir()
        numparq.to_parquet(frame, folder / "a.parquet", row_group_size=25)
    (tmp_path / "year=2024" / "b.parquet").write_bytes(b"damaged")
    return profile_files(tmp_path)


def test_text_has_a_line_for_each_column(found: Profile) -> None:
    lines = str(found).splitlines()
    assert "3 files" in lines[0]
    assert "4 row groups" in lines[0]
    assert "100 rows" in lines[0]
    for name in ("when", "n", "price", "day", "raw", "x", "<tag> [red]", "year"):
        assert sum(line.startswith(name + " ") for line in lines) == 1
    (line,) = (line for line in lines if line.startswith("price "))
    assert "DECIMAL" in line
    assert "1.50" in line
    assert "2.25" in line
    (line,) = (line for line in lines if line.startswith("day "))
    assert "50 %" in line
    assert "2024-02-29" in line
    assert "advice" in lines
    assert "could not be read" in lines
    assert any("b.parquet" in line for line in lines)
    assert not any("a\nb" in line for line in lines)


def test_terminal_shows_a_table(found: Profile) -> None:
    out = io.StringIO()
    Console(file=out, width=260, force_terminal=True).print(found)
    text = out.getvalue()
    assert "\x1b[" in text
    assert "<tag> [red]" in text
    assert "b.parquet" in text
    assert repr(found).startswith("<Profile of ")
    assert "8 columns" in repr(found)


class Tags(HTMLParser):
    """Record tags and check that they are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_notebook_shows_html(found: Profile) -> None:
    text = found._repr_html_()
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert tags.seen.count("tr") == 9
    assert "tag" not in tags.seen
    assert "b" in tags.seen
    assert "&lt;tag&gt;" in text
    assert "<tag>" not in text


def test_json_has_all_statistics(found: Profile) -> None:
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    columns = {column["name"]: column for column in again["columns"]}
    assert columns["when"]["min"] == "2024-01-01T00:00:00"
    assert columns["day"]["max"] == "2024-02-29"
    assert columns["price"]["min"] == "1.50"
    assert columns["raw"]["min"] == "00ff"
    assert columns["x"]["nans"] + columns["x"]["nulls"] == 50
    assert columns["n"]["lookup"]["row_groups"] <= 1
    assert again["damaged_files"] == 1
    assert len(again["troubles"]) == 1
    assert set(columns["n"]) == set(columns["year"])


def test_dataframe_has_a_row_for_each_column(found: Profile) -> None:
    frame = found.to_pandas()
    assert frame.index.name == "column"
    assert list(frame.index) == [column.name for column in found]
    assert frame.loc["day", "nulls"] == 50
    assert frame.loc["day", "null_share"] == 0.5
    assert frame.loc["n", "lookup_row_groups"] == found["n"].lookup.row_groups
    assert frame.loc["n", "range_num_bytes"] == found["n"].small_range.num_bytes
    assert frame["compressed"].sum() == found.compressed
    assert str(frame["distinct"].dtype) == "Int64"


def test_command_prints_json_or_text(found: Profile, capsys: pytest.CaptureFixture) -> None:
    print_profile(found, as_json=True)
    assert json.loads(capsys.readouterr().out)["num_rows"] == 100
    print_profile(found, as_json=False)
    assert capsys.readouterr().out == str(found) + "\n"


def test_names_with_invalid_utf8(tmp_path: Path) -> None:
    numparq.to_parquet(pd.DataFrame({"odd_name": [1, 2]}), tmp_path / "a.parquet", compression=None)
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(b"odd_name", b"odd\xffname"))
    found = profile_files(tmp_path)
    assert [column.name for column in found] == ["odd\\udcffname"]
    assert json.dumps(found.to_dict(), ensure_ascii=False).encode()
    assert str(found).encode()
    assert list(found.to_pandas().index) == ["odd\\udcffname"]


def test_columns_by_name(found: Profile) -> None:
    assert found["n"].name == "n"
    with pytest.raises(KeyError):
        found["nowhere"]
