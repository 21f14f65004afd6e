"""The frames stored as files in `stored_files.py`."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd

FRAMES: dict[str, pd.DataFrame] = {
    "numbers": pd.DataFrame(
        {
            "int8": np.array([1, -2, 3], "i1"),
            "uint64": np.array([1, 2**63, 3], "u8"),
            "float32": np.array([1.5, np.nan, 2], "f4"),
            "bool": [True, False, True],
            "gaps": [1.0, np.nan, 3.0],
        }
    ),
    "nullable": pd.DataFrame(
        {
            "exact": pd.array([2**60 + 1, None, 3], "Int64"),
            "small": pd.array([1, None, 3], "Int8"),
            "flag": pd.array([True, None, False], "boolean"),
        }
    ),
    "strings": pd.DataFrame(
        {
            "text": pd.array(["a", None, "déjà vu"], "str"),
            "kind": pd.Categorical(["x", "y", None], ["y", "x"], ordered=True),
            "raw": [b"\x00\xff", None, b""],
        }
    ),
    "times": pd.DataFrame(
        {
            "plain": pd.to_datetime(["2026-01-01 00:00:00", None, "1999-12-31 23:59:59"]).as_unit("us"),
            "zoned": pd.to_datetime(["2026-07-01", None, "1999-12-31"]).as_unit("ns").tz_localize("Europe/Paris"),
            "span": pd.to_timedelta([1, None, 3], unit="s").as_unit("ms"),
            "day": [datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1)],
            "price": [decimal.Decimal("1.10"), None, decimal.Decimal("-20.05")],
        }
    ),
    "index": pd.DataFrame(
        {"value": [1, 2, 3]},
        index=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["key", "number"]),
    ),
    "columns": pd.DataFrame([[1, 2], [3, 4]], columns=pd.Index([10, 20], name="year"), index=pd.RangeIndex(5, 9, 2)),
}
