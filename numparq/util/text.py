"""Text that a file can hold: Unicode as UTF-8."""

from __future__ import annotations


def is_utf8(text: str | bytes) -> bool:
    """Whether bytes are UTF-8, or a str can be encoded so: it has no lone surrogate."""
    try:
        if isinstance(text, str):
            text.encode()
        else:
            text.decode()
    except UnicodeError:
        return False
    return True


def escape_surrogates(text: str) -> str:
    """Escape lone surrogates in a text from a file, so that it can be encoded."""
    return text.encode("utf-8", "backslashreplace").decode()
