"""Filter text of Spark as expressions: names, strings, numbers, NaN, escape characters. Needs no Java."""

from __future__ import annotations

import datetime
import pickle

import pytest

from numparq.spark.filters.dialect import SparkDialect
from numparq.spark.filters.parse import parse_spark_filter

RAW = SparkDialect(escapes=False)
NAN_ABOVE = "((col('a') > 1) | col('a').is_nan())"
EITHER_NULL = "(col('b').is_nan() | ~col('b').is_nan())"
FILTERS = {
    "a = 1": "(col('a') == 1)",
    "a > 1": NAN_ABOVE,
    "not a > 1": f"~{NAN_ABOVE}",
    "a < 1": "(col('a') < 1)",
    "a <> 1": "~(col('a') == 1)",
    "a <=> 1": "(col('a').is_not_null() & (col('a') == 1))",
    "a between 1 and 2": "((col('a') >= 1) | col('a').is_nan()) & (col('a') <= 2)",
    "a = b": "((col('a') == col('b')) | (col('a').is_nan() & col('b').is_nan()))",
    "a > b": "((col('a') > col('b')) | (col('a').is_nan() & ~col('b').is_nan()))",
    "b < a": "((col('a') > col('b')) | (col('a').is_nan() & ~col('b').is_nan()))",
    "a >= b": f"((col('a') >= col('b')) | (col('a').is_nan() & {EITHER_NULL}))",
    "b <= a": f"((col('a') >= col('b')) | (col('a').is_nan() & {EITHER_NULL}))",
    "`a.b` = 1": "(col(('a.b',)) == 1)",
    "a.b = 1": "(col(('a', 'b')) == 1)",
    "`a`.`b``.c` = `d`": "((col(('a', 'b`.c')) == col('d')) | (col(('a', 'b`.c')).is_nan() & col('d').is_nan()))",
    '"a" = 1': None,
    's = "it\'s"': "(col('s') == \"it's\")",
    "s = 'it''s'": "(col('s') == \"it's\")",
    "s = 'a\"\"b'": "(col('s') == 'a\"\"b')",
    r"s = 'a\tb\q\\\101\1\u0041\u1'": r"(col('s') == 'a\tbq\\A1Au1')",
    r"s = 'it\'s'": "(col('s') == \"it's\")",
    r"s like 'a\%\_\\'": r"col('s').like('a\\%\\_\\', escape='\\')",
    "s like 'a/%' escape '/'": "col('s').like('a/%', escape='/')",
    "a = 0.5": "(col('a') == 0.5)",
    "a = 1e2": "(col('a') == 100.0)",
    "a in (1e2, 9007199254740993)": None,
    "a = 1e999": None,
    f"a = {'9' * 39}": None,
    r"s = '\U00110000'": None,
    "a !> 1": None,
    "a > DATE '2024-01-31'": None,
    "flag and a = 1": "(col('flag') == True) & (col('a') == 1)",
}


@pytest.mark.parametrize("text", FILTERS)
def test_text(text):
    expected = FILTERS[text]
    if expected is None:
        with pytest.raises(ValueError, match=r"cannot be parsed|not in range"):
            parse_spark_filter(text, SparkDialect())
        return
    found = repr(parse_spark_filter(text, SparkDialect()))
    assert expected in (found, found.removeprefix("(").removesuffix(")"))


def test_session_without_escape_characters():
    assert repr(parse_spark_filter(r"s = 'a\tb''c'", RAW)) == r"""(col('s') == "a\\tb''c")"""


def test_names_in_double_quotes_are_refused():
    with pytest.raises(ValueError, match="double quotes are those of names"):
        parse_spark_filter('s = "a"', SparkDialect(quoted_names=True))


def test_literals_keep_their_time_zone_when_pickled():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    literal = pickle.loads(pickle.dumps(parse_spark_filter("t = '2024-01-01'", SparkDialect(zone)))).operand
    assert (literal, literal.time_zone) == ("2024-01-01", zone)
