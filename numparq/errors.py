"""The errors of numparq: every one is a `ParquetError`, and each also the builtin that a caller would expect.

Kernels do not raise: they return a position, or one of the negative statuses below, which `check` turns into an
exception. Where it happened (file, row group, column, page) is added on the way up by `located`.
"""

from __future__ import annotations


class ParquetError(Exception):
    """Anything that numparq has to say about a file that it cannot do as asked.

    Attributes
    ----------
    where : dict
        What is known of the place: any of ``file``, ``row_group``, ``column``, ``page``.
    """

    def __init__(self, message: str, **where: object) -> None:
        super().__init__(message)
        self.message = message
        self.where: dict[str, object] = dict(where)

    def __str__(self) -> str:
        place = ", ".join(
            f"{key.replace('_', ' ')} {value!r}" if isinstance(value, str) else f"{key.replace('_', ' ')} {value}"
            for key, value in sorted(self.where.items(), key=_rank)
        )
        return f"{self.message} ({place})" if place else self.message

    def __reduce__(self) -> tuple:
        return _rebuild, (type(self), self.message, self.where)


_PLACES = ("file", "row_group", "column", "page")


def _rank(item: tuple[str, object]) -> int:
    return _PLACES.index(item[0]) if item[0] in _PLACES else len(_PLACES)


def _rebuild(kind: type[ParquetError], message: str, where: dict[str, object]) -> ParquetError:
    return kind(message, **where)


class InvalidFileError(ParquetError, ValueError):
    """The file breaks the Parquet specification."""


class CorruptPageError(InvalidFileError):
    """The bytes of a page are damaged, or are not what its header says."""


class UnsupportedError(ParquetError, NotImplementedError):
    """The file, or the call, asks for something that this version of numparq does not do."""


class DecryptionError(ParquetError, ValueError):
    """A module of an encrypted file could not be decrypted, or its key is missing."""


class SchemaError(ParquetError, ValueError):
    """The columns asked for and the columns of the file do not fit together."""


class LimitError(ParquetError, MemoryError):
    """Reading on would take more memory than is allowed, or than there is."""


class located:
    """Add a place to every `ParquetError` that passes; what was said closer to the trouble stays.

    Parameters
    ----------
    **where
        Any of ``file``, ``row_group``, ``column``, ``page``; a value of None is left out.
    """

    __slots__ = ("_where",)

    def __init__(self, **where: object) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, ParquetError):
            for key, value in self._where.items():
                if value is not None:
                    error.where.setdefault(key, value)


# Statuses that kernels return. Zero and above is a position or a count.
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
RAISED = -9999

_STATUS_MESSAGES: dict[int, str] = {
    TRUNCATED: "the data ends too early",
    BAD_RUN: "a run of the RLE / bit-packed hybrid is damaged",
    INDEX_OUT_OF_RANGE: "a dictionary index lies outside of the dictionary",
    BAD_LENGTH: "a length is negative or larger than what is there",
    BAD_VARINT: "a variable-length integer does not end",
    TOO_DEEP: "Thrift structures are nested too deeply",
    BAD_THRIFT_TYPE: "a Thrift field has the wrong type",
    MISSING_FIELD: "a required Thrift field is missing",
    NEED_ROOM: "a structure is larger than the room set aside for it",
    BAD_COMPRESSED_DATA: "the compressed data is damaged",
    BAD_LEVELS: "the definition or repetition levels are damaged",
    UNSUPPORTED_ENCODING: "the page is in an encoding that numparq does not read yet",
    BAD_CRC: "the checksum (CRC-32) does not match: the page is damaged",
    BAD_UTF8: "a string is not valid UTF-8",
    BAD_COUNT: "the number of values is not what the header says",
    BAD_PAGE: "the page header is not valid",
    NO_DICTIONARY: "the page needs a dictionary, but the column chunk has none before it",
    NULL_FOUND: "a null where none may be",
    INEXACT: "a value does not fit the target type without loss",
    NO_MEMORY: "there is not enough memory",
    BAD_VALUE: "a value is outside of its type's range",
    BAD_RATIO: "the page header claims more bytes than its compressed ones can hold",
    BAD_DICTIONARY: "the dictionary page is too short for the values that its header claims",
    BAD_DELTA: "the header or a block of a delta encoding is damaged",
    BAD_ALP: "the header, an offset or a vector of the ALP encoding is damaged",
    RAISED: "a kernel failed; please report this as a bug of numparq",
}

_STATUS_ERRORS: dict[int, type[ParquetError]] = {UNSUPPORTED_ENCODING: UnsupportedError, NO_MEMORY: LimitError}


def check(status: int, kind: type[ParquetError] = CorruptPageError, **where: object) -> int:
    """Turn a kernel's negative status into an exception.

    Parameters
    ----------
    status : int
        What the kernel returned.
    kind : type of ParquetError
        What to raise for statuses that have no class of their own.
    **where
        The place, as in `located`.

    Returns
    -------
    int
        `status` itself, when it is not negative.

    Raises
    ------
    ParquetError
        When `status` is negative.
    """
    if status >= 0:
        return status
    message = _STATUS_MESSAGES.get(status, f"kernel status {status}")
    raise _STATUS_ERRORS.get(status, kind)(message, **where)
