"""Table of commands, their arguments and help texts."""

from __future__ import annotations

_FILE = ("file", {"help": "the Parquet file"})
_FILTER_HELP = (
    "such as: fare > 10 and zone in ('A', 'B'); with and, or, not and parentheses, = != < <= > >=, in, between, "
    "is null, like, startswith, contains; strings, dates and times in single quotes, odd names in double quotes"
)
# Command -> (module, function, line of help, arguments).
COMMANDS: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]] = {
    "schema": ("show", "schema", "print the tree of columns", (_FILE,)),
    "meta": ("show", "meta", "print what the footer says: row groups, columns, sizes, encodings", (_FILE,)),
    "head": (
        "show",
        "head",
        "print the first rows",
        (
            _FILE,
            ("-n", {"type": int, "default": 10, "metavar": "ROWS", "help": "how many (10)"}),
            ("--columns", {"nargs": "+", "metavar": "NAME", "help": "only these columns"}),
        ),
    ),
    "plan": (
        "plan",
        "plan",
        "print what a filter leaves to be read of a file or directory, and what cuts the rest",
        (
            _FILE,
            ("--filter", {"metavar": "TEXT", "help": _FILTER_HELP}),
            ("--columns", {"metavar": "NAME,NAME", "help": "only these columns"}),
            (
                "--pages",
                {
                    "action": "store_true",
                    "help": "draw which pages are read (#) and which are not (.), or, of several, some (+)",
                },
            ),
        ),
    ),
    "verify": (
        "verify",
        "verify",
        "hold files against the specification: 0 sound, 1 errors, 2 no Parquet file",
        (
            ("file", {"nargs": "+", "help": "the Parquet files"}),
            ("--strict", {"action": "store_true", "help": "warnings count as errors"}),
            ("--external-files", {"action": "store_true", "help": "check column chunks in other files, too"}),
        ),
    ),
    "salvage": (
        "salvage",
        "salvage",
        "save what is left of a damaged file: 0 all of it, 1 a part, 2 nothing",
        (
            _FILE,
            ("out", {"help": "the file to write"}),
            ("--schema", {"metavar": "FILE", "help": "a Parquet file that has the same columns"}),
            ("--codec", {"help": "what the pages are compressed with, where they do not tell"}),
            (
                "--row-group-size",
                {"type": int, "metavar": "ROWS", "help": "of each row group, where pages do not tell"},
            ),
            ("--force", {"action": "store_true", "help": "replace a file that is there"}),
        ),
    ),
    "warmup": ("warmup", "warmup", "compile all kernels now, so that no later process has to", ()),
    "demo": (
        "demo",
        "demo",
        "make a file, read it, show what was skipped and how long it took",
        (
            ("--rows", {"type": int, "default": 2_000_000, "help": "rows of the file (2000000)"}),
            ("--keep", {"metavar": "FILE", "help": "keep the file under this name"}),
        ),
    ),
}


# Arguments of every Spark command.
_SESSION_ARGUMENTS: tuple[tuple[str, dict], ...] = (
    ("--master", {"metavar": "URL", "help": "Spark's master, such as spark://host:7077 or yarn (local[*])"}),
    ("--conf", {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "a setting of Spark; any number"}),
)
_DATASET = ("path", {"help": "the dataset: a directory or a URL"})
_NAME_LIST = {"metavar": "NAME,NAME"}
# As `COMMANDS`.
SPARK_COMMANDS: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]] = {
    "optimize": (
        "spark",
        "optimize",
        "rewrite small or badly laid out files, so that queries read little",
        (
            _DATASET,
            ("--sort-by", {**_NAME_LIST, "help": "sort by these columns, over all files of a partition"}),
            ("--cluster-by", {**_NAME_LIST, "help": "bring rows together that are alike in all of these columns"}),
            ("--target-file-bytes", {"default": "128MB", "metavar": "SIZE", "help": "of each file, about (128MB)"}),
            ("--out", {"metavar": "DIR", "help": "write there, and leave the dataset as it is"}),
            ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
            ("--bloom", {**_NAME_LIST, "help": "Bloom filters of these columns; by default, of those that profit"}),
            ("--dry-run", {"action": "store_true", "help": "only say what would be done"}),
            ("--force", {"action": "store_true", "help": "also where files are laid out like that already"}),
            *_SESSION_ARGUMENTS,
        ),
    ),
    "profile": (
        "spark",
        "profile",
        "print what is in a dataset, and how well files could be skipped",
        (
            _DATASET,
            ("--columns", {**_NAME_LIST, "help": "only these columns, and what is in them"}),
            (
                "--data",
                {
                    "default": "auto",
                    "choices": ("auto", "always", "never"),
                    "help": "whether data is read: where footers leave something open (auto), of all, or not at all",
                },
            ),
            ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
            ("--json", {"action": "store_true", "help": "print it as JSON"}),
            ("--strict", {"action": "store_true", "help": "a damaged file is an error"}),
            *_SESSION_ARGUMENTS,
        ),
    ),
    "demo": (
        "spark_demo",
        "demo",
        "make many small files, optimize them, show what a look-up reads before and after",
        (
            ("--files", {"type": int, "default": 400, "metavar": "N", "help": "how many files (400)"}),
            ("--rows", {"type": int, "default": 4_000_000, "help": "rows of all of them (4000000)"}),
            ("--keep", {"metavar": "DIR", "help": "keep the dataset there"}),
            *_SESSION_ARGUMENTS,
        ),
    ),
}

# Command group -> (table of its commands, line of help).
COMMAND_GROUPS = {"spark": (SPARK_COMMANDS, "jobs on Spark: optimize, profile, demo")}
