"""`numparq spark optimize` and `numparq spark profile`."""

from __future__ import annotations

import json as json_module
import sys

from numparq.spark.session import open_session
from numparq.tools.profile.profile import Profile

from .terminal import open_console

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30}

_DATA_MODES: dict[str, bool | str] = {"auto": "auto", "always": True, "never": False}


def optimize(
    path: str,
    sort_by: list[str] | None,
    cluster_by: list[str] | None,
    target_file_bytes: str,
    out: str | None,
    where: str | None,
    bloom: list[str] | None,
    dry_run: bool,
    force: bool,
    table_format: str,
    decryption: str | None,
    encryption: str | None,
    plaintext_output: bool,
    master: str | None,
    conf: list[str],
) -> None:
    """Optimize a dataset on Spark and print the report."""
    from numparq.spark.optimization.optimize import optimize as optimized

    file_bytes = parse_size(target_file_bytes)
    with open_session(master, conf, f"numparq spark optimize {path}") as spark:
        report = optimized(
            spark,
            path,
            sort_by=sort_by,
            cluster_by=cluster_by,
            target_file_bytes=file_bytes,
            out=out,
            where=where,
            bloom_filters=bloom,
            dry_run=dry_run,
            force=force,
            table_format=table_format,
            decryption=decryption,
            encryption=encryption,
            plaintext_output=plaintext_output,
        )
    print_report(report)


def print_report(report: object) -> None:
    """Print a report: as a table on a terminal, else as lines."""
    if sys.stdout.isatty():
        open_console().print(report)
    else:
        print(report)


def parse_size(text: str) -> int:
    """Return the number of bytes in a text such as `134217728`, `128MB` or `1.5 g`; units are powers of 1024.

    Raise ValueError if the text is not a positive number of bytes.
    """
    word = text.strip().lower()
    number = word.rstrip("bkmg ")
    unit = _UNITS.get(word[len(number) :].strip())
    try:
        found = int(float(number) * (unit or 0))
    except (ValueError, OverflowError):
        found = 0
    if unit is None or found < 1:
        raise ValueError(f"a size must be a number of bytes, such as 128MB, not {text!r}")
    return found


def profile(
    path: str,
    columns: list[str] | None,
    data: str,
    where: str | None,
    json: bool,
    strict: bool,
    table_format: str,
    decryption: str | None,
    master: str | None,
    conf: list[str],
) -> int:
    """Print the profile of a dataset; return 1 if a file could not be read in full, else 0."""
    from numparq.spark.profiler import profile as profile_of

    with open_session(master, conf, f"numparq spark profile {path}") as spark:
        found = profile_of(
            spark,
            path,
            columns,
            data=_DATA_MODES[data],
            where=where,
            strict=strict,
            table_format=table_format,
            decryption=decryption,
        )
    print_profile(found, as_json=json)
    return int(found.damaged_files > 0)


def print_profile(found: Profile, *, as_json: bool) -> None:
    """Print a profile: as JSON, as a table on a terminal, or as lines."""
    if as_json:
        print(json_module.dumps(found.to_dict(), indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        open_console().print(found)
    else:
        print(found)
