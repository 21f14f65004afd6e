"""UTF-8 validation against Python's decoder, which is as strict as Unicode."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numparq.kernels.status import BAD_UTF8
from support.kernels.engines import ENGINES, engines
from support.kernels.guarded_buffers import with_slack


def check(engine, strings, before=b""):
    offsets = np.cumsum([len(before), *map(len, strings)])
    data = before + b"".join(strings)
    return engine.check_utf8(offsets, len(strings), with_slack(np.random.default_rng(len(data)), data))


def is_utf8(data):
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def compare(engine, strings, before=b""):
    assert check(engine, strings, before) == (0 if all(map(is_utf8, strings)) else BAD_UTF8)


@engines
@given(
    strings=st.lists(st.one_of(st.text().map(str.encode), st.binary(max_size=12)), max_size=6),
    before=st.binary(max_size=9),
)
def test_any_strings(engine, strings, before):
    compare(engine, strings, before)


EDGES = [
    0x00,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC1,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xEC,
    0xED,
    0xEE,
    0xEF,
    0xF0,
    0xF1,
    0xF3,
    0xF4,
    0xF5,
    0xF8,
    0xFF,
]


@engines
def test_every_lead_byte_with_edge_continuations(engine):
    seconds = [b"", *(bytes([byte]) for byte in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0))]
    tails = [b"", b"\x80", b"\x41", b"\xbf\x80", b"\xc0\x80", b"\x80\x7f", b"\x80\xc0"]
    for lead in range(0x80, 0x100) if engine.name == "compiled" else EDGES:
        for second, tail in itertools.product(seconds, tails):
            compare(engine, [b"a", bytes([lead]) + second + tail, b"b"])


@engines
def test_pairs_of_edge_bytes(engine):
    for pair in itertools.product(EDGES, EDGES):
        compare(engine, [bytes(pair), b"x"])
        compare(engine, [b"x" * 13 + bytes(pair[:1]), bytes(pair[1:])])  # no sequence continues in the next string


@engines
def test_every_character(engine):
    step = 1 if engine.name == "compiled" else 97
    characters = [chr(code).encode() for code in range(0, 0x110000, step) if not 0xD800 <= code < 0xE000]
    assert check(engine, characters) == 0
    assert check(engine, [b"".join(characters)]) == 0


@engines
def test_surrogates_are_refused(engine):
    for code in range(0xD800, 0xE000, 61):
        assert check(engine, [chr(code).encode("utf8", "surrogatepass")]) == BAD_UTF8


@engines
def test_characters_do_not_continue_after_the_last_string(engine):
    for character in ("é", "€", "😀"):
        whole = character.encode()
        for size in range(1, len(whole)):
            data = np.frombuffer(b"ab" + whole + b"\x80" * 64, np.uint8)
            assert engine.check_utf8(np.array([0, 2, 2 + size]), 2, data) == BAD_UTF8
            assert engine.check_utf8(np.array([0, 2, 2 + len(whole)]), 2, data) == 0


@engines
def test_bytes_around_the_strings_are_ignored(engine):
    for size in range(20):
        assert check(engine, [b"a" * size], before=b"\xff" * size) == 0
        assert engine.check_utf8(np.array([3]), 0, with_slack(np.random.default_rng(0), b"\xff\xff\xff")) == 0


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_truncated_text(engine):
    text = "aé中\U0001f600 \x7f\u07ff\u0800\ud7ff\ue000\U0010ffffend".encode() * 2
    for size in range(len(text)):
        compare(engine, [text[:size]])
        compare(engine, [text[:size], text[size:]])
