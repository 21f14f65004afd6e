"""What writers of the past got wrong about column chunks and pages, so that their files are read as they were meant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..created_by import Version, writer_of
from ..kernels.tables import ALWAYS_COMPRESSED, BIT_PACKED, BIT_PACKED_LOW, PREFIXES_GO_ON

_LONGEST_DICTIONARY_HEADER = 100


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
    of_pages, of_strings : int
        What is wrong with all pages, and with those of strings, as C_FAULTS has it.
    """

    missing_bytes: int = 0
    has_checksums: bool = True
    bit_packed: int = BIT_PACKED
    of_pages: int = 0
    of_strings: int = 0


# The writer (`Writer.name`), the first release that is sound (None: none is), and what is wrong before. The first one
# that fits is taken.
_KNOWN: tuple[tuple[str, Version | None, Faults], ...] = (
    # The header of the dictionary page was left out of the chunk's size (PARQUET-816); see the next one, too.
    ("parquet-mr", (1, 2, 9), Faults(_LONGEST_DICTIONARY_HEADER, of_strings=PREFIXES_GO_ON)),
    # The first string of a page has a prefix in common with the last one of the page before (PARQUET-246).
    ("parquet-mr", (1, 8, 0), Faults(of_strings=PREFIXES_GO_ON)),
    ("", None, Faults(of_strings=PREFIXES_GO_ON)),  # it may have been the same writer (PARQUET-297)
    # Pages of version 2 say that they are not compressed, and are (ARROW-10353).
    ("parquet-cpp", None, Faults(of_pages=ALWAYS_COMPRESSED)),
    # Every page says 0.
    ("parquet.jl", None, Faults(has_checksums=False)),
    # The bits of the deprecated encoding were packed in the order of the hybrid one (IMPALA-3006).
    ("impala", None, Faults(bit_packed=BIT_PACKED_LOW)),
)


@lru_cache(maxsize=256)
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
    writer = writer_of(created_by)
    found = (faults for name, sound, faults in _KNOWN if name == writer.name and writer.is_before(sound))
    return next(found, Faults())
