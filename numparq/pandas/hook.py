"""Register numparq as a Parquet engine of pandas by wrapping `pandas.io.parquet.get_engine`."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from numparq.errors import UnsupportedError

NAME = "numparq"

_SUPPORTED_MAJOR = "3"
_SUPPORTED_VERSIONS = "3.0, 3.1 and later 3.x versions with the same functions"
# Expected parameters, without `self`, of the functions replaced or called; for methods, those passed by position.
_EXPECTED_PARAMETERS = {
    "get_engine": ("engine",),
    "BaseImpl.read": ("path", "columns", "kwargs"),
    "BaseImpl.write": ("df", "path", "compression", "kwargs"),
    "BaseImpl.validate_dataframe": ("df",),
    "get_handle": ("path_or_buf", "mode"),
}
_ENTRY_POINTS = ("read_parquet", "to_parquet")

_LOCK = threading.RLock()
_hook: _EngineHook | None = None


def register(default: bool = False) -> None:
    """Enable ``engine="numparq"`` in pandas, and the accessor ``df.numparq``.

    `pandas.read_parquet` and `DataFrame.to_parquet` keep their other engines. Repeated calls are allowed; the last
    one counts.

    Parameters
    ----------
    default : bool
        Whether numparq is also used if no engine is named and the option ``io.parquet.engine`` is ``"auto"``, its
        default.

    Raises
    ------
    UnsupportedError
        If this version of pandas does not have the engines where supported versions have them. Nothing is changed.
    ImportError
        If pandas is older than 3.0.

    Examples
    --------
    >>> import numparq.pandas, pandas as pd
    >>> numparq.pandas.hook.register(default=True)
    >>> pd.read_parquet(pd.DataFrame({"a": [1.5]}).to_parquet())
         a
    0  1.5
    >>> numparq.pandas.hook.unregister()
    """
    global _hook
    import pandas as pd
    from pandas.io import parquet

    from numparq.util import pandas_version  # noqa: F401  (refuses pandas 2, which no reader of ours can use)

    with _LOCK:
        if _hook is None:
            check_pandas(parquet, pd.__version__)
            hook = _EngineHook(parquet)
            _check_imports(pd.__version__)
            _add_accessor(pd)
            hook.install()
            _hook = hook
        _hook.default = bool(default)


def unregister() -> None:
    """Undo `register`; do nothing if it was not called."""
    global _hook
    with _LOCK:
        if _hook is not None:
            _hook.remove()
            _remove_accessor()
            _hook = None


class _EngineHook:
    """Wrapper of pandas' ``get_engine``; `default`: numparq is used if no engine is named."""

    def __init__(self, module: ModuleType) -> None:
        self.default = False
        self._module = module
        self._active = True
        self._original: Callable[[str], Any] = module.get_engine
        self._wrapper = self._wrap_get_engine()

    def _wrap_get_engine(self) -> Callable[[str], Any]:
        original = self._original

        @functools.wraps(original)
        def get_engine(engine: str) -> Any:
            if self._active and (engine == NAME or (engine == "auto" and self._is_default())):
                from .engine import NumparqImpl

                return NumparqImpl()
            return original(engine)

        _disguise_as_pandas(get_engine, original)
        return get_engine

    def _is_default(self) -> bool:
        import pandas as pd

        return self.default and pd.get_option("io.parquet.engine") == "auto"

    def install(self) -> None:
        """Replace pandas' function by the wrapper."""
        self._module.get_engine = self._wrapper  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Restore pandas' function; a wrapper that others have wrapped only forwards from now on."""
        self._active = False
        if self._module.get_engine is self._wrapper:
            self._module.get_engine = self._original  # type: ignore[attr-defined]


def _disguise_as_pandas(wrapper: Any, original: Any) -> None:
    """Set the wrapper's file and line to pandas' own.

    pandas attributes warnings to the first caller outside its files, and Python filters them by that line.
    """
    code = inspect.unwrap(original).__code__
    wrapper.__code__ = wrapper.__code__.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)


def check_pandas(module: ModuleType, version: str) -> None:
    """Raise UnsupportedError if pandas' module of Parquet engines differs from the supported versions."""
    trouble = _find_incompatibility(module, version)
    if trouble is not None:
        raise _unsupported_pandas(version, trouble)


def _check_imports(version: str) -> None:
    """Check that pandas has the names that the engine imports."""
    try:
        from numparq.pandas.engine import NumparqImpl  # noqa: F401
    except ImportError as error:
        raise _unsupported_pandas(version, str(error)) from error


def _unsupported_pandas(version: str, trouble: str) -> UnsupportedError:
    return UnsupportedError(
        f"numparq cannot become an engine of pandas {version}: {trouble}; it supports pandas {_SUPPORTED_VERSIONS}; "
        "use numparq.read_parquet and numparq.to_parquet instead"
    )


def _find_incompatibility(module: ModuleType, version: str) -> str | None:
    if version.partition(".")[0] != _SUPPORTED_MAJOR:
        return "this version is not supported"
    for name, expected in _EXPECTED_PARAMETERS.items():
        found = _parameters(module, name)
        if found is None:
            return f"{module.__name__}.{name} does not exist"
        if found[: len(expected)] != expected or (name == "get_engine" and found != expected):
            return f"the parameters of {module.__name__}.{name} are ({', '.join(found)})"
    for name in _ENTRY_POINTS:
        entry: Any = getattr(module, name, None)
        if entry is None or "get_engine" not in inspect.unwrap(entry).__code__.co_names:
            return f"{module.__name__}.{name} does not call get_engine"
    return None


def _parameters(module: ModuleType, name: str) -> tuple[str, ...] | None:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    try:
        parameters = tuple(inspect.signature(found).parameters)
    except (TypeError, ValueError):
        return None
    return parameters[1:] if parameters[:1] == ("self",) else parameters


def _add_accessor(pd: Any) -> None:
    from .accessor import NumparqAccessor

    if getattr(pd.DataFrame, NAME, None) is not NumparqAccessor:
        pd.api.extensions.register_dataframe_accessor(NAME)(NumparqAccessor)


def _remove_accessor() -> None:
    import pandas as pd

    from .accessor import NumparqAccessor

    if getattr(pd.DataFrame, NAME, None) is NumparqAccessor:
        delattr(pd.DataFrame, NAME)
        pd.DataFrame._accessors.discard(NAME)
