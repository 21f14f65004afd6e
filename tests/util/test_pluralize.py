"""Numbers with nouns and verbs that agree with them."""

from __future__ import annotations

import numpy as np
import pytest

from numparq.util.pluralize import agree_noun, agree_verb, pluralize


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "row", "0 rows"),
        (1, "row", "1 row"),
        (np.int64(1), "row group", "1 row group"),
        (2_000, "byte", "2,000 bytes"),
        (-1, "byte", "-1 bytes"),
        (1, "entry", "1 entry"),
        (2, "entry", "2 entries"),
        (2, "column index", "2 column indexes"),
    ],
)
def test_nouns_agree(number: int, noun: str, text: str) -> None:
    assert pluralize(number, noun) == text
    assert f"{number:,} {agree_noun(number, noun)}" == text


@pytest.mark.parametrize(
    ("plural", "singular"),
    [("follow", "follows"), ("are", "is"), ("were", "was"), ("have", "has"), ("do", "does"), ("match", "matches")],
)
def test_verbs_agree(plural: str, singular: str) -> None:
    assert agree_verb(1, plural) == singular
    assert agree_verb(0, plural) == agree_verb(2, plural) == plural
