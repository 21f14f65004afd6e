"""Table of commands, their arguments and help texts."""

from __future__ import annotations

import argparse
import csv
import sys
from typing import Any, TypeAlias

# Name or flag, and keywords of `ArgumentParser.add_argument`.
Argument: TypeAlias = tuple[str, dict[str, Any]]
# Module, function, line of help, arguments.
Command: TypeAlias = tuple[str, str, str, tuple[Argument, ...]]


def _names(text: str) -> list[str]:
    """Split column names at commas; double quotes protect the commas of a name, as in CSV."""
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of names: {error}") from None
    names = [name for name in names if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError("it names no column")
    return names


def _row_count(text: str) -> int:
    """Parse a number of rows, 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a number of rows, 0 or more, not {text!r}")
    return int(text)


def _input(name: str) -> str:
    """Return the path of a file to read; ``-`` is standard input."""
    if name != "-":
        return name
    if sys.stdin.isatty():
        raise argparse.ArgumentTypeError("standard input is a terminal; name a file, or pipe one in")
    return "/dev/stdin"


_NAME_LIST = {"type": _names, "action": "extend", "metavar": "NAME,NAME"}
_NAME_LIST_HELP = "; repeatable, a name with a comma in double quotes"
_FILE: Argument = ("file", {"type": _input, "help": "the Parquet file; - is standard input"})
_TABLE: Argument = ("file", {"type": _input, "help": "the Parquet file, directory or glob; - is standard input"})
_TABLE_FORMAT: Argument = (
    "--table-format",
    {
        "default": "auto",
        "choices": ("auto", "parquet"),
        "help": "tables of Delta Lake, Hudi, Iceberg: refuse them (auto), or take all their files (parquet)",
    },
)
_KEYS: tuple[Argument, ...] = (
    ("--key-file", {"metavar": "JSON", "help": "keys of encrypted files, in a JSON file that nobody else may read"}),
    ("--key-provider", {"metavar": "MODULE:NAME", "help": "keys of encrypted files, by an object of a Python module"}),
)
_OUTPUT_KEYS: tuple[Argument, ...] = (
    ("--output-key-file", {"metavar": "JSON", "help": "keys of the file to write, as --key-file"}),
    ("--output-key-provider", {"metavar": "MODULE:NAME", "help": "keys of the file to write, as --key-provider"}),
    ("--plaintext-output", {"action": "store_true", "help": "write a plain file, though the one read is encrypted"}),
)
_COLUMNS: Argument = ("--columns", {**_NAME_LIST, "help": f"read only these columns{_NAME_LIST_HELP}"})
_FILTER_HELP = (
    "such as: fare > 10 and zone in ('A', 'B'); with and, or, not and parentheses, = != < <= > >=, in, between, "
    "is null, is nan, is true, like, startswith, endswith, contains, a column of booleans alone; strings, dates and "
    "times in single quotes, odd names in backticks"
)
COMMANDS: dict[str, Command] = {
    "schema": ("show", "schema", "print the schema as a tree", (_TABLE, _TABLE_FORMAT, *_KEYS)),
    "meta": (
        "show",
        "meta",
        "print the footer: row groups, columns, sizes, encodings",
        (_TABLE, _TABLE_FORMAT, *_KEYS),
    ),
    "head": (
        "show",
        "head",
        "print the first rows",
        (
            _TABLE,
            ("-n", {"type": _row_count, "default": 10, "metavar": "ROWS", "help": "number of rows (10)"}),
            _COLUMNS,
            _TABLE_FORMAT,
            *_KEYS,
        ),
    ),
    "plan": (
        "plan",
        "plan",
        "print the read plan of a filter, and what prunes the rest",
        (
            _TABLE,
            ("--filter", {"metavar": "TEXT", "help": _FILTER_HELP}),
            _COLUMNS,
            _TABLE_FORMAT,
            *_KEYS,
            (
                "--pages",
                {
                    "action": "store_true",
                    "help": "draw the pages: read (#), skipped (.), or several of which some are read (+)",
                },
            ),
        ),
    ),
    "verify": (
        "verify",
        "verify",
        "check files against the specification; exit status 0: sound, 1: errors, 2: not Parquet",
        (
            ("file", {"nargs": "+", "type": _input, "help": "the Parquet files; a directory stands for those in it"}),
            ("--strict", {"action": "store_true", "help": "count warnings as errors"}),
            ("--external-files", {"action": "store_true", "help": "also check external column chunks"}),
            *_KEYS,
        ),
    ),
    "salvage": (
        "salvage",
        "salvage",
        "save the intact rows of a damaged file; exit status 0: all of them, 1: some, 2: none",
        (
            _FILE,
            ("out", {"help": "the file to write"}),
            ("--schema", {"metavar": "FILE", "help": "a Parquet file with the same columns"}),
            ("--codec", {"help": "codec of the pages, if the file does not show it"}),
            (
                "--row-group-size",
                {"type": int, "metavar": "ROWS", "help": "rows of each row group, if the file does not show them"},
            ),
            ("--force", {"action": "store_true", "help": "replace an existing file"}),
            _TABLE_FORMAT,
            *_KEYS,
            *_OUTPUT_KEYS,
        ),
    ),
    "warmup": ("warmup", "warmup", "compile all kernels now, so that later processes need not", ()),
    "doctor": (
        "doctor",
        "doctor",
        "print versions, where kernels come from, and what is slow here and why",
        (("--json", {"action": "store_true", "dest": "as_json", "help": "print the report as JSON"}),),
    ),
    "demo": (
        "demo",
        "demo",
        "write a new file, read it, print what was skipped and how long it took",
        (
            ("file", {"nargs": "?", "default": "rides.parquet", "help": "the file to write (rides.parquet)"}),
            ("--rows", {"type": int, "default": 2_000_000, "help": "rows of the file (2000000)"}),
        ),
    ),
}


# Arguments of every Spark command.
_SESSION_ARGUMENTS: tuple[Argument, ...] = (
    ("--master", {"metavar": "URL", "help": "Spark master, such as spark://host:7077 or yarn (local[*])"}),
    ("--conf", {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "a Spark setting; repeatable"}),
)
_DATASET: Argument = ("path", {"help": "the dataset: a directory or a URL"})
SPARK_COMMANDS: dict[str, Command] = {
    "optimize": (
        "spark",
        "optimize",
        "rewrite small or poorly laid out files, so that queries read less",
        (
            _DATASET,
            ("--sort-by", {**_NAME_LIST, "help": "sort by these columns, over all files of a partition"}),
            ("--cluster-by", {**_NAME_LIST, "help": "keep rows together that are similar in all of these columns"}),
            (
                "--target-file-bytes",
                {"default": "128MB", "metavar": "SIZE", "help": "approximate size of each file (128MB)"},
            ),
            ("--out", {"metavar": "DIR", "help": "write to this directory, and leave the dataset unchanged"}),
            ("--where", {"metavar": "TEXT", "help": "only partitions that match, such as: year = 2024"}),
            ("--bloom", {**_NAME_LIST, "help": "write Bloom filters of these columns (default: where they help)"}),
            ("--dry-run", {"action": "store_true", "help": "only print what would be rewritten"}),
            ("--force", {"action": "store_true", "help": "rewrite even files with this layout"}),
            _TABLE_FORMAT,
            _KEYS[1],
            *_OUTPUT_KEYS[1:],
            *_SESSION_ARGUMENTS,
        ),
    ),
    "profile": (
        "spark",
        "profile",
        "print a profile of a dataset: its values, and how well filters can skip files",
        (
            _DATASET,
            ("--columns", {**_NAME_LIST, "help": "profile only these columns"}),
            (
                "--data",
                {
                    "default": "auto",
                    "choices": ("auto", "always", "never"),
                    "help": "read data: where footers are not enough (auto), always, or never",
                },
            ),
            ("--where", {"metavar": "TEXT", "help": "only partitions that match, such as: year = 2024"}),
            ("--json", {"action": "store_true", "help": "print the profile as JSON"}),
            ("--strict", {"action": "store_true", "help": "fail on a damaged file"}),
            _TABLE_FORMAT,
            _KEYS[1],
            *_SESSION_ARGUMENTS,
        ),
    ),
    "demo": (
        "spark_demo",
        "demo",
        "write many small files, optimize them, print what a look-up reads before and after",
        (
            ("path", {"nargs": "?", "default": "events", "help": "the directory to write (events)"}),
            ("--files", {"type": int, "default": 400, "metavar": "N", "help": "number of files (400)"}),
            ("--rows", {"type": int, "default": 4_000_000, "help": "number of rows in all files (4000000)"}),
            *_SESSION_ARGUMENTS,
        ),
    ),
}

# Command group -> (table of its commands, line of help).
_STORE: Argument = ("store", {"help": "the folder of the store"})
_OF_DATASET: Argument = ("--dataset", {"metavar": "PATH", "help": "the dataset, if it is elsewhere than when indexed"})
SKIPPING_COMMANDS: dict[str, Command] = {
    "build": (
        "skipping",
        "build",
        "index the files of a dataset",
        (
            ("dataset", {"help": "the directory of Parquet files"}),
            _STORE,
            ("--minmax", {**_NAME_LIST, "help": f"columns whose least and greatest values to keep{_NAME_LIST_HELP}"}),
            ("--valuelist", {**_NAME_LIST, "help": "columns whose distinct values to keep"}),
            ("--bloom", {**_NAME_LIST, "help": "columns of integers or strings to keep Bloom filters of"}),
        ),
    ),
    "refresh": ("skipping", "refresh", "index new and changed files", (_STORE, _OF_DATASET)),
    "describe": ("skipping", "describe", "show version, files and indexes", (_STORE,)),
    "explain": (
        "skipping",
        "explain",
        "show which files a filter needs",
        (_STORE, ("filter", {"help": _FILTER_HELP}), _OF_DATASET),
    ),
    "compact": ("skipping", "compact", "write all of a store again, in few files", (_STORE, _OF_DATASET)),
    "drop": ("skipping", "drop", "remove a store", (_STORE,)),
}
COMMAND_GROUPS = {
    "spark": (SPARK_COMMANDS, "jobs on Spark: optimize, profile, demo"),
    "skipping": (SKIPPING_COMMANDS, "data-skipping stores: build, refresh, describe, explain, compact, drop"),
}
