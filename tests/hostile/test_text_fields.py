"""Texts of files that reach pandas, pyarrow, dateutil or pyproj: none opens, imports or connects to anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
import zoneinfo
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq.format.key_values.pandas_dtypes import dtype_from_name
from numparq.format.key_values.time_zones import is_zone_name, time_zone_from_text

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EVIL = "/tmp/evil"
NO_ZONES = [
    EVIL,
    f"dateutil/{EVIL}",
    f"dateutil/:{EVIL}",
    "dateutil/Europe/Berlin",
    "pytz/UTC",
    "../UTC",
    "a//b",
    "a/../b",
]
NO_ZONES += ["C:\\evil", "", "a" * 101, "Europe/Berlin\n", "file:///evil", "tzlocal()", "~/evil", "a b", "é"]


@pytest.mark.slow
def test_reading_hostile_texts_touches_nothing_else(tmp_path):
    evil = tmp_path / "evil_module.py"
    evil.write_text("raise SystemExit('imported')")
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.hostile.text_fields", str(evil)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    (control,) = json.loads(done.stdout)
    assert f"open {evil}" in control


def test_zones_of_the_database_are_names():
    assert [name for name in zoneinfo.available_timezones() if not is_zone_name(name)] == []
    assert all(map(is_zone_name, ["+05:30", "-0800", "UTC+01:00", "UTC", "Etc/GMT+10"]))


@pytest.mark.parametrize("text", NO_ZONES)
def test_other_texts_are_no_zones(text):
    assert not is_zone_name(text)
    for hidden in {text, f"dateutil/{text}"} - {"dateutil/Europe/Berlin", "dateutil/tzlocal()"}:
        with pytest.raises((ValueError, KeyError, ImportError)):
            time_zone_from_text(hidden)


@pytest.mark.parametrize("dtype", ["datetime64[ns, {}]", "M8[ns,{}]", "interval[M8[ns, {}], left]", "Sparse[{}]"])
def test_dtypes_name_no_files(dtype):
    for path in (EVIL, f"dateutil/{EVIL}", "dateutil/:C:\\evil"):
        with pytest.raises(ValueError, match="not a time zone"):
            dtype_from_name(dtype.format(path))


@pytest.mark.parametrize("backend", ["numpy", "numpy_nullable", "pyarrow"])
def test_column_with_a_path_for_a_zone_is_in_utc(tmp_path, backend):
    path = tmp_path / "evil"
    path.write_bytes(b"")
    table = pa.table({"a": pa.array([0, None], pa.timestamp("us", f"dateutil/{path}"))})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    with pytest.warns(UserWarning, match="is unknown on this system; the column is in UTC"):
        got = numparq.read_parquet(sink.getvalue().to_pybytes(), dtype_backend=backend)["a"]
    assert got[0] == pd.Timestamp(0, tz="UTC")
    assert "UTC" in str(got.dtype)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "+05:30"])
def test_zones_are_still_restored(zone):
    frame = pd.DataFrame({"a": pd.to_datetime([1, 2], unit="s", utc=True).tz_convert(zone)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert numparq.read_parquet(numparq.to_parquet(frame)).equals(frame)
