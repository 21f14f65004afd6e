"""Counts in texts for people agree with their nouns: "1 row", not "1 rows"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.syntax_trees import PACKAGE, syntax_tree

NOUNS = (
    "batches bits bytes characters chunks columns digits elements entries errors events fields files groups items keys"
    " levels lists losses nodes nulls pages partitions paths ranges requests rows runs seconds splits tasks threads"
    " values warnings"
)
# A noun may have a word before it: "row groups", "selected rows".
COUNTED = re.compile(rf" (?:(?!among|has|in|of|the)[a-z]+ )?(?:{NOUNS.replace(' ', '|')}|field names)\b")
# Constants show their number where they are defined, so a plural beside them is right.
CONSTANT = re.compile(r"(?:\w+\.)*_?[A-Z][A-Z0-9_]*")
# These agree by themselves, or are the verb after a count.
HELPERS = ("pluralize(", "agree_noun(", "agree_verb(")
# Values before a plural noun that are never 1, with the reason.
NEVER_ONE = {
    "crypto/chunk_cipher.py: MAX_ORDINAL + 1": "32,768",
    "column/encodings.py: PHYSICAL_NAMES[physical]": "the name of a type",
    "tools/verify/pages.py: name": "the name of a type",
    "format/bloom_filter.py: len(self.bitset)": "blocks have 32 bytes",
    "format/file_reference.py: length": "the digits of a hash, 8 or more",
    "spark/scan/arrow_cast.py: ends[-1]": "above the limit of 2**31 - 1",
    "tools/salvage/row_groups.py: sizes": "a list of numbers",
    "tools/profile/job.py: len(path)": "one path is named itself",
    "tools/verify/schema_elements.py: _LENGTHS[logical.kind]": "lengths of types, 2 or more",
}


def counts_before_plurals(path: Path) -> Iterator[str]:
    """Yield what an f-string formats directly before a plural noun."""
    for node in ast.walk(syntax_tree(path)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in zip(node.values, node.values[1:], strict=False):
            if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant) and COUNTED.match(text.value):
                count = ast.unparse(value.value)
                if not CONSTANT.fullmatch(count) and not count.startswith(HELPERS):
                    yield f"{path.relative_to(PACKAGE).as_posix()}: {count}"


def test_counts_agree_with_their_nouns() -> None:
    found = {count for path in PACKAGE.rglob("*.py") for count in counts_before_plurals(path)}
    assert found - NEVER_ONE.keys() == set(), "use numparq.util.pluralize, so that a count of 1 reads right"
    assert NEVER_ONE.keys() - found == set(), "these exceptions are not needed"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"{count:,} rows"', ["count"]),
        ('f"in {len(groups)} row groups"', ["len(groups)"]),
        ('f"{count} " f"bytes follow"', ["count"]),
        ("f\"{pluralize(count, 'row')}\"", []),
        ('f"{name} has rows"', []),
        ('f"{_MOST} rows"', []),
    ],
)
def test_counts_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, found: list[str]) -> None:
    monkeypatch.setattr(f"{__name__}.PACKAGE", tmp_path)
    path = tmp_path / "module.py"
    path.write_text(source)
    assert list(counts_before_plurals(path)) == [f"module.py: {count}" for count in found]
