"""Frame and values for the pandas engine tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
from pandas.io import parquet

ORIGINAL = parquet.get_engine
VALUES = {"a": [1, 2, 3], "b": ["x", None, "z"], "c": [1.5, np.nan, 2.5]}
FRAME = pd.DataFrame(VALUES, index=pd.Index([7, 8, 9], name="i"))
