"""The hook that registers numparq as a pandas engine."""

from __future__ import annotations

import subprocess
import sys
import threading
import types
import warnings

import pandas as pd
import pandas.testing as tm
import pytest
from pandas.io import parquet

import numparq
from numparq.errors import UnsupportedError
from numparq.pandas import hook
from support.pandas_engine import FRAME, ORIGINAL


def child(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_is_light_and_lazy():
    heavy = ("numpy", "pandas", "numba", "pyarrow")
    code = "import sys, numparq; numparq.pandas.register; "
    assert child(code + f"print([n for n in {heavy} if n in sys.modules])").strip() == "[]"


def test_engine_is_unknown_before_register():
    with pytest.raises(ValueError, match="engine must be one of"):
        FRAME.to_parquet(engine="numparq")
    assert not hasattr(FRAME, "numparq")


def test_register_twice_and_unregister_twice():
    numparq.pandas.register()
    first = parquet.get_engine
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        numparq.pandas.register()
    assert parquet.get_engine is first is not ORIGINAL
    numparq.pandas.unregister()
    numparq.pandas.unregister()
    assert parquet.get_engine is ORIGINAL
    assert not hasattr(FRAME, "numparq")


def test_registering_from_many_threads_wraps_once(registered_engine):
    numparq.pandas.unregister()
    start = threading.Barrier(8)

    def register():
        start.wait()
        numparq.pandas.register()

    threads = [threading.Thread(target=register) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert parquet.get_engine.__wrapped__ is ORIGINAL


def test_unregister_keeps_a_later_wrapper(registered_engine, monkeypatch):
    ours = parquet.get_engine
    theirs = lambda engine: ours(engine)  # noqa: E731
    parquet.get_engine = theirs
    numparq.pandas.unregister()
    assert parquet.get_engine is theirs
    with pytest.raises(ValueError, match="engine must be one of"):
        FRAME.to_parquet(engine="numparq")
    parquet.get_engine = ORIGINAL


def test_other_engines_are_unchanged(registered_engine):
    pytest.importorskip("pyarrow")
    assert type(parquet.get_engine("pyarrow")) is parquet.PyArrowImpl
    assert type(parquet.get_engine("auto")) is parquet.PyArrowImpl
    with pytest.raises(ValueError, match="engine must be one of"):
        parquet.get_engine("fast")
    with pytest.raises(ValueError, match="engine must be one of"):
        pd.read_parquet("there is no such file", engine="other")


def test_warnings_of_pandas_name_the_caller(registered_engine, monkeypatch):
    monkeypatch.setattr(parquet, "FastParquetImpl", object)  # deprecated since pandas 3.1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parquet.get_engine("fastparquet")
    assert [warning.filename for warning in caught] == [__file__] * (pd.__version__ >= "3.1")


def test_register_as_default_engine():
    data = numparq.to_parquet(FRAME)
    numparq.pandas.register(default=True)
    try:
        assert type(parquet.get_engine("auto")).__name__ == "NumparqImpl"
        tm.assert_frame_equal(pd.read_parquet(data), FRAME)  # pyarrow refuses bytes
        with pd.option_context("io.parquet.engine", "pyarrow"):
            assert type(parquet.get_engine("auto")).__name__ != "NumparqImpl"
        numparq.pandas.register()
        assert type(parquet.get_engine("auto")).__name__ != "NumparqImpl"
    finally:
        numparq.pandas.unregister()


def module(**changed):
    """Return a copy of `pandas.io.parquet` with changed attributes."""
    copy = types.ModuleType("pandas.io.parquet")
    copy.__dict__.update({name: value for name, value in vars(parquet).items() if not name.startswith("__")})
    copy.__dict__.update(changed)
    return copy


class OtherImpl(parquet.BaseImpl):
    def read(self, source, columns=None, **kwargs):
        """Read with other parameters than pandas' engines."""


@pytest.mark.parametrize("version", ["3.0.0", "3.0.6", "3.1.1", "3.9.0"])
def test_supported_pandas_versions(version):
    hook.check_pandas(module(), version)


@pytest.mark.parametrize(
    ("changed", "version", "trouble"),
    [
        ({}, "4.0.0", "this version is not supported"),
        ({}, "2.3.3", "this version is not supported"),
        ({"get_engine": lambda engine, path: None}, "3.1.1", r"get_engine are \(engine, path\)"),
        ({"get_engine": None}, "3.1.1", "pandas.io.parquet.get_engine does not exist"),
        ({"BaseImpl": OtherImpl}, "3.1.1", r"BaseImpl.read are \(source, columns, kwargs\)"),
        ({"read_parquet": lambda path: None}, "3.1.1", "read_parquet does not call get_engine"),
        ({"to_parquet": None}, "3.1.1", "to_parquet does not call get_engine"),
    ],
)
def test_incompatible_pandas_is_refused(changed, version, trouble):
    with pytest.raises(UnsupportedError, match=trouble) as caught:
        hook.check_pandas(module(**changed), version)
    assert "supports pandas 3.0, 3.1" in str(caught.value)
    assert "numparq.read_parquet" in str(caught.value)


def test_missing_pandas_function_fails_at_register():
    code = """
import pandas.io.common, numparq.pandas
del pandas.io.common.check_parent_directory
try:
    numparq.pandas.register()
except numparq.UnsupportedError as error:
    print(error)
"""
    assert "check_parent_directory" in child(code)


def test_refused_register_changes_nothing(monkeypatch):
    monkeypatch.setattr(pd, "__version__", "17.0")
    with pytest.raises(UnsupportedError, match=r"pandas 17\.0"):
        numparq.pandas.register()
    assert parquet.get_engine is ORIGINAL
    assert not hasattr(FRAME, "numparq")
