"""Seeded column data for the benchmark files, with realistic redundancy.

Compressibility decides which part of a reader is measured, so each generator states it: *hard* (no gain), *partly*
(some bytes of each value repeat) or *easy* (long repeats).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

DAY_US = 86_400_000_000
FIRST_DAY = 8_035  # 1992-01-01 in days since the epoch
FIRST_US = 1_577_836_800_000_000  # 2020-01-01 in microseconds since the epoch

WORDS = [
    "the",
    "slyly",
    "final",
    "quick",
    "regular",
    "carefully",
    "ironic",
    "deposits",
    "requests",
    "accounts",
    "packages",
    "sleep",
    "haggle",
    "above",
    "across",
    "against",
    "along",
    "bold",
    "brave",
    "busy",
    "dogged",
    "even",
    "express",
    "fluffily",
    "furious",
    "ideas",
    "instructions",
    "pending",
    "pinto",
    "beans",
    "platelets",
    "special",
    "theodolites",
    "unusual",
    "wake",
    "foxes",
    "blithely",
    "after",
    "nag",
    "about",
    "silent",
    "daring",
    "asymptotes",
]

_PLACES = [
    "bridge",
    "field",
    "ford",
    "ham",
    "haven",
    "mouth",
    "stead",
    "ton",
    "wick",
    "wood",
    "borough",
    "castle",
    "chester",
    "dale",
    "minster",
]
_REGIONS = ("North", "South", "New ", "Old ", "Upper ", "Lower ", "Port ", "Lake ")
CITIES = [region + place for region in _REGIONS for place in _PLACES]


def normal(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return float64, standard normal: hard, like measurements with full mantissas."""
    return rng.standard_normal(rows)


def cents(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return int64 below 10 million: partly, three random bytes and five zeros."""
    return rng.integers(0, 10_000_000, rows)


def prices(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return float64 with two decimals: partly, random low bytes and repeated exponents."""
    return np.round(rng.lognormal(4.0, 1.0, rows), 2)


def counts(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return int32, small and skewed: easy, about one byte of information in four."""
    return rng.geometric(0.2, rows).astype(np.int32)


def sensor(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return float32, a drifting reading in steps of 1/16: partly."""
    walk = np.cumsum(rng.standard_normal(rows)) * 0.05 + rng.standard_normal(rows)
    return (np.round((walk + 20.0) * 16.0) / 16.0).astype(np.float32)


def growing_keys(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return int64 keys growing in small steps, like log sequence numbers: partly, high bytes repeat."""
    return np.cumsum(rng.integers(1, 50, rows)) + 1_000_000_000


def skewed(rng: np.random.Generator, rows: int, distinct: int) -> np.ndarray:
    """Return int64 in [0, distinct), small values far more often, like categories."""
    return (distinct * rng.random(rows) ** 3).astype(np.int64)


def runs(rng: np.random.Generator, rows: int, length: int) -> np.ndarray:
    """Return int64 0, 0, 0, 1, 1, ...: a sorted column in runs of `length` on average: easy."""
    return np.cumsum(rng.random(rows) < 1.0 / length)


def scattered_nulls(rng: np.random.Generator, rows: int, share: float) -> np.ndarray:
    """Return bool, True = null: independent rows, the worst case for definition levels."""
    return rng.random(rows) < share


def bursts_of_nulls(rng: np.random.Generator, rows: int, share: float) -> np.ndarray:
    """Return bool, True = null: in ranges of 64 rows, like an absent sensor."""
    return np.repeat(rng.random(rows // 64 + 1) < share, 64)[:rows]


def moments(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return int64 microseconds since the epoch, growing by about 20 ms: partly."""
    return FIRST_US + np.cumsum(rng.integers(1, 40_000, rows))


def days(rng: np.random.Generator, rows: int, span: int = 2_526) -> np.ndarray:
    """Return int32 days since the epoch, uniform over seven years."""
    return (FIRST_DAY + rng.integers(0, span, rows)).astype(np.int32)


def choice(rng: np.random.Generator, rows: int, values: list[str]) -> pa.Array:
    """Return strings drawn from a short list."""
    return pa.array(values).take(pa.array(rng.integers(0, len(values), rows)))


def account_names(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return distinct strings of 17 to 30 bytes in random order, like e-mail addresses: partly."""
    serial = pc.cast(pa.array(rng.permutation(rows)), pa.string())
    domains = [f"{word}.example" for word in WORDS if len(word) > 4]
    return pc.binary_join_element_wise(choice(rng, rows, WORDS), serial, choice(rng, rows, domains), "@")


def comments(rng: np.random.Generator, rows: int) -> pa.Array:
    """Return two to seven common words, 10 to 60 bytes, nearly all distinct; compresses to about a third."""
    last = rng.integers(2, 8, rows)
    words = [choice(rng, rows, WORDS)]
    for position in range(1, 7):
        word = choice(rng, rows, WORDS)
        words.append(pc.if_else(pa.array(position < last), word, pa.scalar(None, pa.string())))
    return pc.binary_join_element_wise(*words, " ", null_handling="skip")
