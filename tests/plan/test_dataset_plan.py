"""The picture of a dataset's plan."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from numparq.plan.dataset_plan import DatasetPlan, FileCut
from numparq.plan.read_plan import ReadPlan

SVG = "{http://www.w3.org/2000/svg}"
LONG = "s3://a-bucket/with/a/long/path/to/the/table of <rides>/year=2024/month=07/part-0001.parquet"


def whole_file(num_rows: int) -> ReadPlan:
    return ReadPlan.read_all(["a"], [num_rows], np.array([[4]]), np.array([[100]]))


def picture(*names: str) -> ElementTree.Element:
    files = tuple((name, whole_file(10)) for name in names)
    plan = DatasetPlan(len(names) + 1, (FileCut("partitions", 1, 0),), files)
    return ElementTree.fromstring(plan._repr_html_())


def test_long_names_are_cut_off_within_a_box_left_of_the_bars():
    drawn = picture(LONG, "b.parquet")
    svg = drawn.find(f"{SVG}svg")
    assert svg is not None
    lanes = svg.findall(f"{SVG}g")
    assert [lane.find(f"{SVG}title").text.split(": ")[0] for lane in lanes] == [LONG.split(": ")[0], "b.parquet"]
    for number, lane in enumerate(lanes):
        box, (bar, read) = lane.find(f"{SVG}svg"), lane.findall(f"{SVG}rect")
        label = box.find(f"{SVG}text")
        assert float(box.get("x")) + float(box.get("width")) < float(bar.get("x"))
        assert (label.get("text-anchor"), label.get("x")) == ("end", box.get("width"))
        assert label.text == [LONG, "b.parquet"][number]
        assert float(box.get("y")) == float(bar.get("y")) == number * 16
        assert float(read.get("width")) == float(bar.get("width"))
    assert svg.get("viewBox") == "0 0 820 32"
    assert not list(drawn.iter("span"))


def test_few_files_are_drawn_and_the_others_counted():
    drawn = picture(*(f"{number}.parquet" for number in range(25)))
    svg = drawn.find(f"{SVG}svg")
    assert len(svg.findall(f"{SVG}g")) == 20
    assert svg.find(f"{SVG}text").text == "and 5 more files"
    assert picture().find(f"{SVG}svg") is None
