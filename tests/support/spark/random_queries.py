"""Random tables, filter text and queries in Spark's SQL, from a seed."""

from __future__ import annotations

import random

ZONES = ["UTC", "America/Los_Angeles", "Asia/Kolkata", "Europe/Paris"]
SCHEMA = (
    "row int, k int, big bigint, x double, f float, d decimal(9,2), e decimal(25,5), s string, b boolean, "
    "day int, t bigint, n bigint, inner int, word string"
)
# What Spark makes of the plain columns of SCHEMA: names that need quotes, structs, days and moments.
COLUMNS = [
    "row", "k", "big", "x", "f", "d", "e", "s", "b", "date_from_unix_date(day) day", "timestamp_micros(t) t",
    "cast(timestamp_micros(n) as timestamp_ntz) n", "named_struct('a.b', inner, 'Word', word) st", "k `odd.name`",
    "s `tick``s`",
]  # fmt: skip
TEXTS = ["", "a", "ab", "a%", "a_b", "it's", 'q"q', "a\\b", "a\tb", "Ä", "😀", "é", "b", "%", "zz", "NULL"]
NUMBERS = [0, 1, -1, 2, 3, 16777217, 9007199254740993]
FLOATS = [0.0, -0.0, 1.0, 0.1, 1.5, -2.5, float("nan"), float("inf"), float("-inf"), 16777216.0, 9007199254740992.0]
DAYS = [-719162, -171499, -141428, -141427, -25567, 0, 19723, 19813, 20000]
DAY_US = 86_400_000_000
# Moments around changes of clocks and of calendars.
MOMENTS = [
    *(day * DAY_US + 43_200_000_000 for day in DAYS),
    1_711_848_600_000_000, 1_711_845_000_123_000, 1_729_989_000_000_000, 1_704_067_200_000_000, -2_208_988_800_000_000,
]  # fmt: skip
STAMPS = [
    "2024-01-01", "2024-01-01 00:00:00", "2024-03-31 02:30:00", "2024-10-27 02:30", "2024-03-31 01:30:00Z",
    "1970-01-01 12:00:00+00:00", "1900-01-01T00:00:00", "1582-10-15 12:00:00", "2024-3-31 2:30",
    "2024-10-27T00:30:00.5", "2024-10-27 02:30:00 Europe/Paris", "2024-03-31 00:30:00.123", "0001-01-01 12:00:00",
]  # fmt: skip
DATES = ["2024-01-01", "1970-01-01", "1500-06-11", "1582-10-15", "2024-3-31", "0001-01-01", "1900-01-01"]
OPERATORS = ["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"]


def make_rows(rng: random.Random, count: int) -> list[tuple]:
    """Return rows of `SCHEMA`, a tenth of the values null."""

    def some(values):
        return None if rng.random() < 0.1 else rng.choice(values)

    from decimal import Decimal

    decimals = [Decimal(number).scaleb(-2) for number in (0, 110, -250, 199, 10_000)]
    return [
        (
            row, some([0, 1, 2, 3, 4]), some(NUMBERS), some(FLOATS), some([*FLOATS[:-1], 3.4e38]), some(decimals),
            some([each * 100_000_001 for each in decimals]), some(TEXTS), some([True, False]), some(DAYS),
            some(MOMENTS), some(MOMENTS), some([0, 1, 2]), some(TEXTS),
        )
        for row in range(count)
    ]  # fmt: skip


def quote(text: str, mark: str = "'") -> str:
    """Return a string literal of Spark's SQL."""
    return mark + text.replace("\\", "\\\\").replace(mark, mark * 2).replace("\t", "\\t") + mark


def random_filter(rng: random.Random, depth: int = 3) -> str:
    """Return filter text that both Spark and numparq may take."""
    kind = rng.random()
    if depth and kind < 0.45:
        join = rng.choice([" and ", " or ", " AND ", "\nOR "])
        return "(" + join.join(random_filter(rng, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    if depth and kind < 0.55:
        return f"not {random_filter(rng, depth - 1)}"
    name, make = rng.choice(_KINDS)
    column = rng.choice(name)
    if rng.random() < 0.08:
        return f"{column} is {rng.choice(['', 'not '])}null"
    if make is _text and rng.random() < 0.4:
        return f"{column} {rng.choice(['', 'not '])}like {_pattern(rng)}"
    shape = rng.random()
    if shape < 0.2:
        values = ", ".join(make(rng) for _ in range(rng.randint(1, 4)))
        return f"{column} {rng.choice(['', 'not '])}in ({values})"
    if shape < 0.35:
        return f"{column} {rng.choice(['', 'not '])}between {make(rng)} and {make(rng)}"
    if shape < 0.5:
        return f"{column} {rng.choice(OPERATORS)} {rng.choice(rng.choice([name, name, _OTHERS]))}"
    return f"{column} {rng.choice(OPERATORS)} {make(rng)}"


def _number(rng):
    return rng.choice(
        ["0", "1", "-1", "2", "1.5", "0.1", "-2.50", "1e0", "1E-1", "16777217", "9007199254740993",
         "9007199254740992e0", "99999999999999999999", ".5", "3.", "1.10", "1.99000", "1e400", "110000.00110"]
    )  # fmt: skip


def _text(rng):
    return quote(rng.choice(TEXTS), rng.choice("'\"'"))


def _pattern(rng):
    pattern = rng.choice(["%", "a%", "%b", "a_b", "_", "%'%", "a\\%", "a\\_b", "a\\\\b", "%\\%%", "", "😀", "_%_"])
    if rng.random() < 0.3:
        return quote(pattern.replace("\\", "!")) + " escape '!'"
    return quote(pattern)


def _boolean(rng):
    return rng.choice(["true", "FALSE"])


def _date(rng):
    return quote(rng.choice(DATES))


def _stamp(rng):
    return quote(rng.choice(STAMPS))


_KINDS = [
    (["k", "K", "`k`", "row", "big", "`odd.name`", "st.`a.b`", "`ST`.`A.B`"], _number),
    (["x", "f", "X", "`F`"], _number),
    (["x", "f"], _number),
    (["d", "e"], _number),
    (["s", "`tick``s`", "st.word", "`S`", "st.`Word`"], _text),
    (["b"], _boolean),
    (["day", "DAY"], _date),
    (["t", "`t`"], _stamp),
    (["n"], _stamp),
]
_OTHERS = [name for names, _ in _KINDS for name in names]

_MEASURES = [
    "count(*)", "count(s)", "sum(row)", "min(big)", "max(x)", "min(f)", "sum(d)", "max(e)", "min(s)", "max(day)",
    "max(unix_micros(t))", "count(distinct s)", "count(distinct x)", "min(n)", "max(st.word)",
]  # fmt: skip


def random_query(rng: random.Random) -> tuple[str, list[str]]:
    """Return a query of tables ``{0}`` and ``{1}``, and the filter text of each table."""
    filters = [random_filter(rng, rng.randint(0, 2)) for _ in range(2)]
    measures = ", ".join(rng.sample(_MEASURES, 3))
    where = random_filter(rng, 1)
    key = rng.choice(["k", "s", "d", "b", "day", "`odd.name`", "st.`a.b`", "x", "f", "t", "n"])
    shape = rng.randrange(6)
    if shape == 0:
        return f"select {key}, {measures} from {{0}} where {where} group by {key}", filters
    if shape == 1:
        union = f"select * from {{0}} union all select * from {{1}} where {where}"
        return f"select {measures} from ({union})", filters
    if shape == 2:
        kind = rng.choice(["inner", "left outer", "full outer", "left semi", "left anti"])
        other = "" if kind in ("left semi", "left anti") else ", count(r.row)"
        equal = rng.choice(["=", "<=>"])
        return (
            f"select count(*), sum(l.row){other} from {{0}} l {kind} join {{1}} r on l.{key} {equal} r.{key}",
            filters,
        )
    if shape == 3:
        return (
            f"select row, {key} from {{0}} where k in (select k from {{1}} where {where}) order by row limit 20",
            filters,
        )
    if shape == 4:
        return f"select distinct {key} from {{0}} where {where} intersect select {key} from {{1}}", filters
    return f"select row, s, x, d, b, n, unix_micros(t), day from {{0}} where {where}", filters
