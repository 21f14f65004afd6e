"""Command line: `numparq COMMAND`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from numparq.errors import ParquetError

from .commands import COMMAND_GROUPS, COMMANDS, Command


def build_parser() -> argparse.ArgumentParser:
    """Build the argument parser from the tables of commands."""
    main_parser = argparse.ArgumentParser(prog="numparq", description="Inspect, read, check and salvage Parquet files.")
    commands = _add_commands(main_parser, COMMANDS)
    for name, (table, line) in COMMAND_GROUPS.items():
        group = commands.add_parser(name, help=line, description=line)
        _add_commands(group, table)
    return main_parser


def _add_commands(above: argparse.ArgumentParser, table: dict[str, Command]) -> Any:
    commands = above.add_subparsers(required=True, metavar="COMMAND")
    for name, (module, function, line, arguments) in table.items():
        command = commands.add_parser(name, help=line, description=line)
        command.set_defaults(_do=(module, function))
        for argument, options in arguments:
            command.add_argument(argument, **options)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: those of this process) and return its exit status.

    The status is 1 if the command failed; standard error has the reason.
    """
    options = vars(build_parser().parse_args(arguments))
    module, function = options.pop("_do")
    run: Callable[..., int | None] = getattr(import_module(f".{module}", __name__), function)
    try:
        return run(**options) or 0
    except (ParquetError, OSError, ImportError, ValueError) as error:
        print(f"numparq: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 1
