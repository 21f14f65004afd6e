"""The command line: ``numparq COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..errors import ParquetError

# Command -> (module, function) that does it, the line of help, and its arguments.
_FILE = ("file", {"help": "the Parquet file"})
_FILTER_HELP = (
    "such as: fare > 10 and zone in ('A', 'B'); with and, or, not and parentheses, = != < <= > >=, in, between, "
    "is null, like, startswith, contains; strings, dates and times in single quotes, odd names in double quotes"
)
_COMMANDS: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]] = {
    "schema": ("show", "schema", "print the tree of columns", (_FILE,)),
    "meta": ("show", "meta", "print what the footer says: row groups, columns, sizes, encodings", (_FILE,)),
    "head": ("show", "head", "print the first rows", (
        _FILE,
        ("-n", {"type": int, "default": 10, "metavar": "ROWS", "help": "how many (10)"}),
        ("--columns", {"nargs": "+", "metavar": "NAME", "help": "only these columns"}),
    )),
    "plan": ("plan", "plan", "print what a filter leaves to be read of a file or directory, and what cuts the rest", (
        _FILE,
        ("--filter", {"metavar": "TEXT", "help": _FILTER_HELP}),
        ("--columns", {"metavar": "NAME,NAME", "help": "only these columns"}),
        ("--pages", {"action": "store_true",
                     "help": "draw which pages are read (#) and which are not (.), or, of several, some (+)"}),
    )),
    "verify": ("verify", "verify", "hold files against the specification: 0 sound, 1 errors, 2 no Parquet file", (
        ("file", {"nargs": "+", "help": "the Parquet files"}),
        ("--strict", {"action": "store_true", "help": "warnings count as errors"}),
        ("--external-files", {"action": "store_true", "help": "check column chunks in other files, too"}),
    )),
    "salvage": ("salvage", "salvage", "save what is left of a damaged file: 0 all of it, 1 a part, 2 nothing", (
        _FILE,
        ("out", {"help": "the file to write"}),
        ("--schema", {"metavar": "FILE", "help": "a Parquet file that has the same columns"}),
        ("--codec", {"help": "what the pages are compressed with, where they do not tell"}),
        ("--row-group-size", {"type": int, "metavar": "ROWS", "help": "of each row group, where pages do not tell"}),
        ("--force", {"action": "store_true", "help": "replace a file that is there"}),
    )),
    "warmup": ("warmup", "warmup", "compile all kernels now, so that no later process has to", ()),
    "demo": ("demo", "demo", "make a file, read it, show what was skipped and how long it took", (
        ("--rows", {"type": int, "default": 2_000_000, "help": "rows of the file (2000000)"}),
        ("--keep", {"metavar": "FILE", "help": "keep the file under this name"}),
    )),
}  # fmt: skip


# Commands that have commands of their own -> the module with the table `COMMANDS` of these, and the line of help.
_GROUPS = {"spark": ("spark", "jobs on Spark: optimize, profile, demo")}


def parser() -> argparse.ArgumentParser:
    """Make the parser of the command line."""
    main_parser = argparse.ArgumentParser(prog="numparq", description="Look at Parquet files, and read them.")
    commands = _add(main_parser, _COMMANDS)
    for name, (module, line) in _GROUPS.items():
        group = commands.add_parser(name, help=line, description=line)
        _add(group, import_module(f".{module}", __name__).COMMANDS)
    return main_parser


def _add(above: argparse.ArgumentParser, table: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]]) -> Any:
    commands = above.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, function, line, arguments) in table.items():
        command = commands.add_parser(name, help=line, description=line)
        command.set_defaults(_do=(module, function))
        for argument, options in arguments:
            command.add_argument(argument, **options)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words behind ``numparq``; by default those of this process.

    Returns
    -------
    int
        The exit status: 0, or 1 when the command could not do what it was asked (standard error says why).
    """
    options = vars(parser().parse_args(arguments))
    module, function = options.pop("_do")
    run: Callable[..., int | None] = getattr(import_module(f".{module}", __name__), function)
    try:
        return run(**options) or 0
    except (ParquetError, OSError, ImportError, ValueError) as error:
        print(f"numparq: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
