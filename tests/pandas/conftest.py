"""Fixture that registers numparq as a pandas engine."""

from __future__ import annotations

import pytest
from pandas.io import parquet

import numparq
from support.pandas_engine import ORIGINAL


@pytest.fixture
def registered_engine():
    numparq.pandas.register()
    yield
    numparq.pandas.unregister()
    assert parquet.get_engine is ORIGINAL
