"""Writes `stored_files.py`: small files by pandas with pyarrow, as base64.

Run from tests/ with pyarrow installed: ``python -m support.without_pyarrow.make_files``.
"""

from __future__ import annotations

import base64
import io
import textwrap
from pathlib import Path

from . import stored_frames


def main() -> None:
    """Write the files."""
    lines = ['"""Files that pandas wrote with pyarrow, as base64; made by `make_files.py`."""', "", "FILES = {"]
    for name, frame in stored_frames.FRAMES.items():
        buffer = io.BytesIO()
        frame.to_parquet(buffer, engine="pyarrow", compression="zstd" if name == "strings" else "snappy")
        lines.append(f'    "{name}": (')
        lines += [f'        "{line}"' for line in textwrap.wrap(base64.b64encode(buffer.getvalue()).decode(), 100)]
        lines.append("    ),")
    lines += ["}", ""]
    Path(__file__).with_name("stored_files.py").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
