"""Files that a commit has replaced and keeps for a time, so that readers which listed them before still find them."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import time

REPLACED_FOLDER_PATTERN = re.compile(r"\.numparq-replaced-([0-9]{1,12})-[0-9a-fT-]+")


def replaced_folder_name(job: str, seconds: float) -> str:
    """Return the name of the folder in a dataset that keeps what a job replaces, until the time in its name."""
    return f".numparq-replaced-{math.ceil(time.time() + seconds)}-{job}"


def keep_file(base: str, place: str, folder: str) -> None:
    """Move a dataset's file into the folder of kept files; a file on another file system is removed."""
    source, target = os.path.join(base, place), os.path.join(base, folder, place)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.replace(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        os.unlink(source)


def find_replaced_file(path: str) -> str | None:
    """Return where a file that was replaced is kept, for a path in a dataset's folder or its partitions."""
    folder, place = os.path.split(path)
    while True:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder or "."):
                kept = os.path.join(folder, name, place)
                if REPLACED_FOLDER_PATTERN.fullmatch(name) and os.path.exists(kept):
                    return kept
        folder, partition = os.path.split(folder)
        if "=" not in partition:
            return None
        place = os.path.join(partition, place)


def remove_expired_files(base: str) -> None:
    """Remove the kept files of a dataset whose time has passed."""
    for name in os.listdir(base):
        found = REPLACED_FOLDER_PATTERN.fullmatch(name)
        if found and int(found[1]) <= time.time():
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
