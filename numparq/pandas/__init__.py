"""pandas integration: the engine "numparq" and the accessor ``df.numparq``, enabled by `register`.

>>> import numparq.pandas, pandas as pd
>>> numparq.pandas.register()
>>> data = pd.DataFrame({"a": [1, 2, 3]}).to_parquet(engine="numparq")
>>> pd.read_parquet(data, engine="numparq", filters=[("a", ">", 1)])
   a
0  2
1  3
>>> numparq.pandas.unregister()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.util.lazy import lazy_names

if TYPE_CHECKING:
    from .hook import register, unregister

__all__ = ["register", "unregister"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "hook"))
