"""``numparq spark COMMAND``: the jobs of `numparq.spark`, on a Spark of this machine or on a cluster."""

from __future__ import annotations

# Of every command: where it runs.
_SESSION: tuple[tuple[str, dict], ...] = (
    ("--master", {"metavar": "URL", "help": "Spark's master, such as spark://host:7077 or yarn (local[*])"}),
    ("--conf", {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "a setting of Spark; any number"}),
)
_PATH = ("path", {"help": "the dataset: a directory or a URL"})
_NAMES = {"metavar": "NAME,NAME"}
# Command -> (module, function) that does it, the line of help, its arguments.
COMMANDS: dict[str, tuple[str, str, str, tuple[tuple[str, dict], ...]]] = {
    "optimize": ("spark_optimize", "optimize", "rewrite small or badly laid out files, so that queries read little", (
        _PATH,
        ("--sort-by", {**_NAMES, "help": "sort by these columns, over all files of a partition"}),
        ("--cluster-by", {**_NAMES, "help": "bring rows together that are alike in all of these columns"}),
        ("--target-file-bytes", {"default": "128MB", "metavar": "SIZE", "help": "of each file, about (128MB)"}),
        ("--out", {"metavar": "DIR", "help": "write there, and leave the dataset as it is"}),
        ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
        ("--bloom", {**_NAMES, "help": "Bloom filters of these columns; by default, of those that profit"}),
        ("--dry-run", {"action": "store_true", "help": "only say what would be done"}),
        ("--force", {"action": "store_true", "help": "also where files are laid out like that already"}),
        *_SESSION,
    )),
    "profile": ("spark_profile", "profile", "print what is in a dataset, and how well files could be skipped", (
        _PATH,
        ("--columns", {**_NAMES, "help": "only these columns, and what is in them"}),
        ("--data", {"default": "auto", "choices": ("auto", "always", "never"),
                    "help": "whether data is read: where footers leave something open (auto), of all, or not at all"}),
        ("--where", {"metavar": "TEXT", "help": "only partitions of which this is true, such as: year = 2024"}),
        ("--json", {"action": "store_true", "help": "print it as JSON"}),
        ("--strict", {"action": "store_true", "help": "a damaged file is an error"}),
        *_SESSION,
    )),
    "demo": ("spark_demo", "demo", "make many small files, optimize them, show what a look-up reads before and after", (
        ("--files", {"type": int, "default": 400, "metavar": "N", "help": "how many files (400)"}),
        ("--rows", {"type": int, "default": 4_000_000, "help": "rows of all of them (4000000)"}),
        ("--keep", {"metavar": "DIR", "help": "keep the dataset there"}),
        *_SESSION,
    )),
}  # fmt: skip


def names(text: str | None) -> list[str] | None:
    """Divide names at commas; None where nothing is given."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
