"""Filters are bound to the columns of a file, as its calendar and its schema say."""

from __future__ import annotations

import datetime

import pandas as pd

import numparq
from numparq import col
from numparq.format.key_values.spark import LEGACY, SparkCalendar
from numparq.format.open_file import OpenFile
from numparq.scan.predicate import bind_filters, filter_schema


def test_filter_columns_of_each_calendar():
    frame = pd.DataFrame({"day": [datetime.date(1500, 1, 1), datetime.date(2020, 1, 1)], "n": [1, 2]})
    data = numparq.to_parquet(frame)
    files = [OpenFile(data) for _ in range(3)]
    files[1].calendar = SparkCalendar(LEGACY)
    leaves = [filter_schema(file).column("day").resolved.leaf for file in files]
    assert files[0].footer is files[1].footer
    assert leaves[0] is leaves[2]
    assert [leaf.rebase is None for leaf in leaves] == [True, False, True]
    bound = [bind_filters(file, col("day") == datetime.date(1500, 1, 1)).ranges for file in files]
    assert bound[0] == bound[2] != bound[1]
