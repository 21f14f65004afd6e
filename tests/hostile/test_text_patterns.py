"""Patterns on text of files: the time to match grows linearly with the text."""

from __future__ import annotations

import ast
import importlib
import re
import time
from pathlib import Path

import pandas as pd
import pytest

import numparq
from numparq import col
from numparq.dataset.partitions.types import infer_partition_type, parse_partition_type
from numparq.format.key_values.pandas import PandasMetadata
from numparq.format.writer_quirks import ApplicationVersion, parse_created_by
from numparq.to_pandas.labels import column_labels

PACKAGE = Path(numparq.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "\nimport re\n" in path.read_text(encoding="utf-8"))
SEARCHES = {"search", "sub", "split", "findall", "finditer"}

STARTS = ["", "(", "('", '("', '"', "[", "v", "datetime64[", "dictionary<values=", "list[", ".numparq-", '"start": ']
REPEATED = [
    " ",
    "\t",
    "0",
    "1.",
    ".",
    "a",
    "A_",
    "a.",
    "-",
    "-0",
    "0:",
    "e",
    "1e",
    "/",
    "=",
    "\\'",
    "''",
    "', '",
    "1, ",
]
REPEATED += ["version ", " v", " version 1", "RecordBatch", "numparq", ", file 'a'"]
ENDS = ["", "\0"]
# A cubic pattern exceeds the bound on the short texts, a quadratic one on the long ones; a linear one takes 1 ms.
SIZES, SECONDS = (500, 10_000), 0.4


def patterns_of(path):
    """Yield the patterns of a module with the methods that it calls: its own, those in tables, and literals."""
    source = path.read_text(encoding="utf-8")
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    try:
        module = importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} needs a package that is not installed")
    for variable, value in vars(module).items():
        for pattern in found_in(value):
            yield pattern, set(re.findall(rf"\b{variable}\.(\w+)\(", source)) & {*SEARCHES, "match", "fullmatch"}
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {f"re.{way}" for way in (*SEARCHES, "fullmatch")}:
            pattern = call.args[0]
            if isinstance(pattern, ast.Constant):
                yield re.compile(pattern.value), {call.func.attr}


def found_in(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (dict, tuple, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from found_in(item)


def match(pattern, ways, text):
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    if ways & SEARCHES:
        for _ in pattern.finditer(text):
            pass
    if "match" in ways:
        pattern.match(text)
    if "fullmatch" in ways or not ways:
        pattern.fullmatch(text)


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_patterns_are_linear(path):
    for pattern, ways in patterns_of(path):
        for size in SIZES:
            for repeated in REPEATED:
                begin = time.process_time()
                for start in STARTS:
                    for end in ENDS:
                        match(pattern, ways, start + repeated * (size // len(repeated)) + end)
                taken = time.process_time() - begin
                assert taken < SECONDS, f"{pattern.pattern!r} takes {taken:.2f} s for {size} times {repeated!r}"


MEGABYTE = 1 << 20


def read_label(text):
    document = {"columns": [{"name": text, "field_name": "a"}], "column_indexes": [{"name": None}] * 2}
    return column_labels(PandasMetadata(document), ["a"])


def read_typed_partition(text):
    for name in ("float", "date", "timestamp"):
        with pytest.raises(ValueError, match=r"x$"):
            parse_partition_type(name)[0].parse(text)


@pytest.mark.parametrize("repeated", [" ", "0", "1.", "\\'", "', '", "(", "%"])
@pytest.mark.parametrize(
    "parse",
    [
        parse_created_by,
        read_label,
        lambda text: read_label(f"('{text}"),
        lambda text: infer_partition_type([text]),
        read_typed_partition,
    ],
    ids=["created_by", "label", "tuple label", "partition", "typed partition"],
)
def test_a_megabyte_takes_less_than_a_second(parse, repeated):
    begin = time.process_time()
    parse(repeated * (MEGABYTE // len(repeated)) + "x")
    assert time.process_time() - begin < 1


def test_created_by_of_spaces():
    begin = time.process_time()
    assert parse_created_by(" " * 5000) == ApplicationVersion("", None)
    assert parse_created_by("a" + " " * 980 + "version 1.2") == ApplicationVersion("a", (1, 2, 0, 1))
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize("pattern", ["%a%a%a%a%b", "%a_a%_a%b", "a%a%a%a%a%a%a%b%", "%_%_%_%_%_%b"])
def test_like_is_not_exponential(pattern):
    data = numparq.to_parquet(pd.DataFrame({"a": ["a" * 100_000] * 3}))
    begin = time.process_time()
    assert numparq.read_parquet(data, filters=col("a").like(pattern)).empty
    assert time.process_time() - begin < 5
