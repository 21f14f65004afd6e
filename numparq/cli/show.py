"""`numparq schema`, `meta` and `head`: print the schema, the footer and the first rows."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from numparq.file.reader import ParquetFile


def schema(file: str) -> None:
    """Print the schema as a tree."""
    with ParquetFile(file) as parquet:
        print(parquet.schema)


def meta(file: str) -> None:
    """Print the footer: row groups, key-values, and a table of the columns."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    with ParquetFile(file) as parquet:
        metadata = parquet.metadata
        console.print(
            f"{file}: {parquet.source.size:,} bytes, {metadata.num_rows:,} rows, row groups: {parquet.num_row_groups}, "
            f"version {metadata.version}, written by {metadata.created_by or 'an unknown writer'}",
            soft_wrap=True,
            markup=False,
        )
        for pair in metadata.key_value_metadata or ():
            console.print(f"  key {pair.key}: {len(pair.value or ''):,} characters", markup=False)
        console.print(_column_table(parquet))


def _column_table(parquet: ParquetFile) -> Table:
    """Build the table of columns over all row groups: sizes are sums, types and encodings are sets."""
    table = Table(box=None, pad_edge=False)
    for title in ("column", "type", "codec", "encodings", "values", "nulls", "compressed", "uncompressed"):
        numbers = title in ("values", "nulls", "compressed", "uncompressed")
        table.add_column(title, justify="right" if numbers else "left", no_wrap=title != "encodings")
    groups = parquet.metadata.row_groups
    for number in range(len(groups[0].columns) if len(groups) else 0):
        chunks = [group.columns[number].meta_data for group in groups]
        known = [chunk for chunk in chunks if chunk is not None]
        nulls = [chunk.statistics.null_count if chunk.statistics else None for chunk in known]
        table.add_row(
            ".".join(known[0].path_in_schema) if known else "(encrypted)",
            *(_distinct_names(getattr(chunk, name) for chunk in known) for name in ("type", "codec")),
            _distinct_names(encoding for chunk in known for encoding in chunk.encodings),
            f"{sum(chunk.num_values for chunk in known):,}",
            "?" if None in nulls else f"{sum(filter(None, nulls)):,}",
            f"{sum(chunk.total_compressed_size for chunk in known):,}",
            f"{sum(chunk.total_uncompressed_size for chunk in known):,}",
        )
    return table


def _distinct_names(values: object) -> str:
    return ", ".join(dict.fromkeys(getattr(value, "name", str(value)) for value in values))  # type: ignore[attr-defined]


def head(file: str, n: int, columns: list[str] | None) -> None:
    """Print the first `n` rows of a file."""
    import pandas as pd

    with ParquetFile(file) as parquet:
        frame = parquet.read(columns, nrows=n)
    with pd.option_context("display.max_rows", None, "display.max_columns", None, "display.width", None):
        print(frame)
