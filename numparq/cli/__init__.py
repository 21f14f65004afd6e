"""Command line: `numparq COMMAND`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numparq.errors import ParquetError
from numparq.util.version import __version__

if TYPE_CHECKING:
    from .commands import Command

__all__ = ["main"]

# Exit statuses that shells give to commands ended by SIGPIPE and SIGINT.
_PIPE_CLOSED, _INTERRUPTED = 141, 130
_USAGE_ERROR = 2
# Advice in messages -> the same advice for the command line.
_FLAGS = {
    "pass decryption=": "pass --key-file or --key-provider",
    "pass encryption= with keys for the new file, or plaintext_output=True": (
        "pass --output-key-file, --output-key-provider or --plaintext-output"
    ),
}


def build_parser() -> argparse.ArgumentParser:
    """Build the argument parser from the tables of commands."""
    from .commands import COMMAND_GROUPS, COMMANDS

    main_parser = argparse.ArgumentParser(
        prog="numparq",
        description="Inspect, read, check and salvage Parquet files.",
        epilog="numparq COMMAND --help describes a command.",
    )
    main_parser.add_argument("--version", action="version", version=f"numparq {__version__}")
    commands = _add_commands(main_parser, COMMANDS)
    for name, (table, line) in COMMAND_GROUPS.items():
        group = commands.add_parser(name, help=line, description=line)
        _add_commands(group, table)
    return main_parser


def _add_commands(above: argparse.ArgumentParser, table: dict[str, Command]) -> Any:
    above.set_defaults(_do=None, _parser=above)
    commands = above.add_subparsers(metavar="COMMAND")
    for name, (module, function, line, arguments) in table.items():
        command = commands.add_parser(name, help=line, description=line)
        command.set_defaults(_do=(module, function), _parser=command)
        for argument, options in arguments:
            command.add_argument(argument, **options)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments` (default: those of this process) and return its exit status.

    The status is 1 if the command failed; standard error has the reason.
    """
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else list(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # as in `numparq head FILE | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes again when it ends
        return _PIPE_CLOSED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (ParquetError, OSError, ImportError, ValueError) as error:
        print(f"numparq: {describe_error(error)}", file=sys.stderr)
        return 1


def _run(words: list[str]) -> int:
    """Parse the words of the command line and run the command."""
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    known, unknown = build_parser().parse_known_args(words)
    options = vars(known)
    do, parser = options.pop("_do"), options.pop("_parser")
    if unknown:
        hint = "; separate names by commas, as in --columns a,b" if "--columns" in words else ""
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if do is None:
        parser.print_help(sys.stderr)
        return _USAGE_ERROR
    from .keys import resolve_keys

    module, function = do
    run: Callable[..., int | None] = getattr(import_module(f".{module}", __name__), function)
    return run(**resolve_keys(options)) or 0


def describe_error(error: BaseException) -> str:
    """Return the text of an error, a system's as ``file: reason``."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    text = str(error)
    for advice, flags in _FLAGS.items():
        text = text.replace(advice, flags)
    return text or type(error).__name__
