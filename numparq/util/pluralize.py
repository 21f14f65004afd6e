"""Counts in texts for people."""

from __future__ import annotations

_VERBS_OF_ONE = {"are": "is", "do": "does", "have": "has", "match": "matches", "were": "was"}


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 row`` and ``2,000 rows``."""
    return f"{number:,} {agree_noun(number, noun)}"


def agree_noun(number: int, noun: str) -> str:
    """Return a noun as it follows a number: ``row`` after 1, ``rows`` after others."""
    if number == 1:
        return noun
    if noun.endswith("y") and not noun.endswith("ey"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("x") else f"{noun}s"


def agree_verb(number: int, verb: str) -> str:
    """Return a verb as it follows a number and its noun: ``follows`` after 1, ``follow`` after others."""
    if number != 1:
        return verb
    return _VERBS_OF_ONE.get(verb, f"{verb}s")
