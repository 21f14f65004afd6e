"""Negative statuses that kernels return, their messages, and the check that raises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numparq.errors import CorruptPageError, LimitError, UnsupportedError

if TYPE_CHECKING:
    from numparq.errors import ParquetError

# Negative results of kernels; 0 and above is a position or a count.
TRUNCATED = -1
BAD_RUN = -2
INDEX_OUT_OF_RANGE = -3
BAD_LENGTH = -4
BAD_VARINT = -5
TOO_DEEP = -6
BAD_THRIFT_TYPE = -7
MISSING_FIELD = -8
NEED_ROOM = -9
BAD_COMPRESSED_DATA = -10
BAD_LEVELS = -11
UNSUPPORTED_ENCODING = -12
BAD_CRC = -13
BAD_UTF8 = -14
BAD_COUNT = -15
BAD_PAGE = -16
NO_DICTIONARY = -17
NULL_FOUND = -18
INEXACT = -19
NO_MEMORY = -20
BAD_VALUE = -21
BAD_RATIO = -22
BAD_DICTIONARY = -23
BAD_DELTA = -25
BAD_ALP = -26
UNCERTAIN_END = -27
RAISED = -9999

_STATUS_MESSAGES: dict[int, str] = {
    TRUNCATED: "the data ends too early",
    BAD_RUN: "a run of the RLE / bit-packed hybrid is damaged",
    INDEX_OUT_OF_RANGE: "a dictionary index lies outside of the dictionary",
    BAD_LENGTH: "a length is negative or exceeds the data",
    BAD_VARINT: "a variable-length integer does not end",
    TOO_DEEP: "Thrift structs are nested too deeply",
    BAD_THRIFT_TYPE: "a Thrift field has the wrong type",
    MISSING_FIELD: "a required Thrift field is missing",
    NEED_ROOM: "a Thrift struct exceeds the memory allocated for it",
    BAD_COMPRESSED_DATA: "the compressed data is damaged",
    BAD_LEVELS: "the definition or repetition levels are damaged",
    UNSUPPORTED_ENCODING: "the page is in an encoding that numparq does not read yet",
    BAD_CRC: "the checksum (CRC-32) does not match: the page is damaged",
    BAD_UTF8: "a string is not valid UTF-8: the page is damaged, or its writer stored bytes that are not text",
    BAD_COUNT: "the number of values does not match the page header",
    BAD_PAGE: "the page header is not valid",
    NO_DICTIONARY: "the page needs a dictionary, but the column chunk has none before it",
    NULL_FOUND: "a null occurs where the schema or the statistics exclude nulls",
    INEXACT: "a value cannot be stored in the output type without loss",
    NO_MEMORY: "not enough memory",
    BAD_VALUE: "a value is out of range for its type",
    BAD_RATIO: "the page header claims more bytes than its compressed data can hold",
    BAD_DICTIONARY: "the dictionary page is too short for the values that its header claims",
    BAD_DELTA: "the header or a block of a delta encoding is damaged",
    BAD_ALP: "the header, an offset or a vector of the ALP encoding is damaged",
    UNCERTAIN_END: "bytes follow the last page, which a header that seems shorter than it is would explain",
    RAISED: "a kernel failed; please report this as a bug of numparq",
}

_STATUS_ERRORS: dict[int, type[ParquetError]] = {UNSUPPORTED_ENCODING: UnsupportedError, NO_MEMORY: LimitError}


def check_status(status: int, kind: type[ParquetError] = CorruptPageError, **where: object) -> int:
    """Return a kernel's result, or raise if it is negative.

    `kind` is the class for statuses without one of their own; `where` is passed to it as in `error_context`.
    """
    if status >= 0:
        return status
    message = _STATUS_MESSAGES.get(status, f"kernel status {status}")
    raise _STATUS_ERRORS.get(status, kind)(message, **where)
