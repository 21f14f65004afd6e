"""Tables of other systems as folders, made without their libraries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd

import numparq

__all__ = ["FOREIGN", "add_rows", "forge_sink", "forge_table", "sink_entry"]

# Files that make a folder a table, by the table's name in messages.
FOREIGN = {
    "Delta Lake": ["_delta_log/00000000000000000000.json"],
    "Hudi": [".hoodie/hoodie.properties"],
    "Iceberg": ["metadata/00000-1.metadata.json", "metadata/snap-1.avro"],
    "streaming sink": ["_spark_metadata/0"],
}


def add_rows(path: Path, *values: int) -> Path:
    """Write a file with the column ``a``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    numparq.to_parquet(pd.DataFrame({"a": values}), path)
    return path


def forge_table(root: Path, kind: str) -> Path:
    """Make a table of one of `FOREIGN` with two files in a partition, 1 to 3."""
    folder = root / ("data/p=1" if kind == "Iceberg" else "p=1")
    paths = [add_rows(folder / "one.parquet", 1, 2), add_rows(folder / "two.parquet", 3)]
    for name in FOREIGN[kind]:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("{}")
    if kind == "streaming sink":
        forge_sink(root, {"0": paths})
    return root


def sink_entry(path: Path | str, action: str = "add", is_directory: bool = False) -> str:
    """Return a line of a streaming sink's log, as Spark writes it."""
    url = path.as_uri() if isinstance(path, Path) else path
    facts = {"size": 1, "isDir": is_directory, "modificationTime": 0, "blockReplication": 1, "blockSize": 1}
    return json.dumps({"path": url, **facts, "action": action})


def forge_sink(root: Path, batches: Mapping[str, Iterable[Path | str]]) -> None:
    """Write the log of a sink: paths of files, or whole lines, by the name of the batch."""
    (root / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    for name, files in batches.items():
        lines = [each if isinstance(each, str) else sink_entry(each) for each in files]
        (root / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))
