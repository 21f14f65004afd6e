"""What writers of the past got wrong about column chunks and pages, so that their files are read as they were meant."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..kernels.tables import BIT_PACKED, BIT_PACKED_LOW

_LONGEST_DICTIONARY_HEADER = 100
_VERSION = re.compile(r"version (\d+)\.(\d+)\.(\d+)")
_NO_VERSION = (0, 0, 0)
_ALL = (1 << 31, 0, 0)


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong in the files of a writer.

    Parameters
    ----------
    missing_bytes : int
        By how much total_compressed_size may be too small.
    has_checksums : bool
        Whether the CRCs of its pages are to be taken for such.
    bit_packed : int
        How its levels in the encoding BIT_PACKED lie: `BIT_PACKED`, or `BIT_PACKED_LOW`.
    """

    missing_bytes: int = 0
    has_checksums: bool = True
    bit_packed: int = BIT_PACKED


# How created_by begins, the first version that is sound, and what is wrong before.
_KNOWN: tuple[tuple[str, tuple[int, ...], Faults], ...] = (
    # The header of the dictionary page was left out of the chunk's size (PARQUET-816).
    ("parquet-mr", (1, 2, 9), Faults(missing_bytes=_LONGEST_DICTIONARY_HEADER)),
    # Every page says 0.
    ("Parquet.jl", _ALL, Faults(has_checksums=False)),
    # The bits of the deprecated encoding were packed in the order of the hybrid one (IMPALA-3006).
    ("impala", _ALL, Faults(bit_packed=BIT_PACKED_LOW)),
)


def faults_of(created_by: str | None) -> Faults:
    """Look up what is wrong in the files of a writer.

    Parameters
    ----------
    created_by : str or None
        What the footer says. A version that is not given is taken for the oldest.

    Returns
    -------
    Faults
    """
    for name, sound, faults in _KNOWN:
        if (created_by or "").startswith(name):
            match = _VERSION.search(created_by or "")
            version = tuple(int(number) for number in match.groups()) if match else _NO_VERSION
            return faults if version < sound else Faults()
    return Faults()
