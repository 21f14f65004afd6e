"""Local files for tests of sinks."""

from __future__ import annotations

from pathlib import Path

from numparq.io.open import open_sink


def file_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_file(path, *parts, **options) -> None:
    with open_sink(path, **options) as target:
        for part in parts:
            target.write(part)
