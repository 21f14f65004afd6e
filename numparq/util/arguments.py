"""Check arguments: flags, counts, lists of names and unknown keywords, with messages that say what to pass instead."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from operator import index
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return a hint with up to three similar names out of `known`, or an empty text; case does not count."""
    import difflib

    names: dict[str, str] = {}
    for item in known:
        names.setdefault(str(item).casefold(), repr(item))
    asked = ".".join(map(str, name)) if isinstance(name, tuple) else str(name)
    close = difflib.get_close_matches(asked.casefold(), names, n=3)
    return f"; did you mean {' or '.join(names[item] for item in close)}?" if close else ""


def is_flag(value: object) -> bool:
    """Whether a value is True or False, of Python or NumPy."""
    return isinstance(value, bool) or (type(value).__name__ == "bool" and type(value).__module__ == "numpy")


def check_flag(value: object, name: str) -> bool:
    """Check an argument that is True or False."""
    if not is_flag(value):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_list(value: object, name: str, items: str = "names") -> list[Any]:
    """Return an argument that lists `items`; TypeError for a single string or anything that is no list."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be a list of {items}, not {value!r}; use [{value!r}] for one column")
    if not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of {items}, not {value!r}")
    return list(value)


def explain_unknown_arguments(
    advice: Mapping[str, str],
) -> Callable[[Callable[_P, _Result]], Callable[_P, _Result]]:
    """Return a decorator: the TypeError for an unknown keyword then has similar names, or other libraries' in `advice`.

    `advice` maps arguments of other libraries to what to do instead.
    """

    def decorate(function: Callable[_P, _Result]) -> Callable[_P, _Result]:
        code = function.__code__
        known = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]) - {"self"}
        is_method = code.co_varnames[:1] == ("self",)  # maybe inherited
        suffix = "" if function.__name__ == "__init__" else f".{function.__name__}"

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _Result:
            if kwargs.keys() <= known:
                return function(*args, **kwargs)
            shown = f"{type(args[0]).__name__}{suffix}" if is_method else function.__qualname__
            raise unknown_argument_error(shown, next(key for key in kwargs if key not in known), known, advice)

        return call

    return decorate


def unknown_argument_error(function: str, name: str, known: Iterable[str], advice: Mapping[str, str]) -> TypeError:
    """Return the error for an unknown keyword, worded as Python's own, with what to do instead."""
    hint = f"; {advice[name]}" if name in advice else did_you_mean(name, known)
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


def check_seconds(value: object, name: str) -> float:
    """Check a time in seconds, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e10:
        raise ValueError(f"{name} must be a number of seconds, 0 or more, not {value!r}")
    return float(value)


def check_positive_int(value: Any, name: str) -> int:
    """Check an int that must be at least 1, such as a number of bytes or rows; `name` is used in messages."""
    return _check_int(value, name, 1)


def check_optional_positive_int(value: Any, name: str) -> int | None:
    """Check an int that must be at least 1, or None."""
    return None if value is None else check_positive_int(value, name)


def check_row_count(value: Any, name: str) -> int:
    """Check a number of rows, 0 or more; `name` is used in messages."""
    return _check_int(value, name, 0)


def _check_int(value: Any, name: str, least: int, kind: str = "an int") -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be {kind}, not {value!r}")
    number = index(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


# More threads wait for each other's Python code: on 16 cores, reads with 16 threads take 1.0 to 1.5 times as long.
MAX_DEFAULT_THREADS = 8


def thread_count(threads: int | None) -> int:
    """Return the number of threads; None means ``NUMPARQ_THREADS``, or one for each core that this process may use.

    The default is at most `MAX_DEFAULT_THREADS`.
    """
    if threads is None:
        chosen = os.environ.get("NUMPARQ_THREADS")
        if chosen:
            return _env_thread_count(chosen)
        if hasattr(os, "sched_getaffinity"):
            return min(len(os.sched_getaffinity(0)) or 1, MAX_DEFAULT_THREADS)
        return min(os.cpu_count() or 1, MAX_DEFAULT_THREADS)
    if type(threads) is int and threads > 0:  # in place: each read asks
        return threads
    return _check_int(threads, "threads", 1, "an int or None")


def _env_thread_count(text: str) -> int:
    """Parse the value of ``NUMPARQ_THREADS``."""
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"NUMPARQ_THREADS must be an int of at least 1, not {text!r}")
    return int(text)
