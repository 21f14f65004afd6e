"""Short runs of the fuzz targets; ``python -m support.fuzz`` runs them for any time."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("pyarrow")
if not sys.platform.startswith("linux"):
    pytest.skip("the memory of a case is read from /proc", allow_module_level=True)

import numpy as np

from support.fuzz import corpus, faulty_target, mutations, runner
from support.fuzz.footer import split
from support.fuzz.worker import TARGETS, target_of
from support.oracles import thrift

pytestmark = pytest.mark.filterwarnings("ignore:lz4_hadoop")


def run_target(target, folder, seed, count):
    report = runner.run(target, seed, 600, count, folder)
    problems = "\n\n".join(path.read_text() for path in sorted(folder.glob("*.txt")))
    assert not report.problems, problems
    assert report.done == count
    assert len(report.outcomes) > 5


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_some_fuzz_cases(target, tmp_path):
    run_target(target, tmp_path, 1, 40)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_fuzz_cases(target, tmp_path):
    run_target(target, tmp_path, 2, 4000)


# --- detection of faults ----------------------------------------------------------------------------------------------

MESSAGES = {
    "crash": "the process ended with -11",
    "hang": "it hangs",
    "leak": "KeyError: 'a leak'",
    "memory": "it took too much memory",
}


@pytest.mark.slow
def test_faults_are_detected(tmp_path, monkeypatch):
    """A faulty reader: its process continues after each case, and the case is saved."""
    monkeypatch.setattr(runner, "CPU_SECONDS", 2.0)
    count, seed = 12, 4
    expected: dict[str, list[int]] = {}
    for number in range(count):
        kind = faulty_target.case(np.random.default_rng([seed, number])).what
        if kind != "nothing":
            expected.setdefault(MESSAGES[kind], []).append(number)
    assert expected.keys() == set(MESSAGES.values())
    report = runner.run("support.fuzz.faulty_target", seed, 600, count, tmp_path)
    assert report.problems == expected
    assert report.done == count
    numbers = {number for found in expected.values() for number in found}
    assert {path.name for path in tmp_path.glob("*.parquet")} == {
        f"support.fuzz.faulty_target-{seed}-{number}.parquet" for number in numbers
    }


def test_thrift_trees_round_trip():
    rng = np.random.default_rng(1)
    for name in ("nested", "pages", "geometries"):
        _, footer, tree = split(name)
        assert thrift.encode_struct(tree) == footer
        changed = {mutations.mutate(rng, tree) for _ in range(50)}
        assert len(changed - {footer}) > 40
        assert thrift.encode_struct(tree) == footer


@pytest.mark.slow
def test_cases_are_reproducible():
    for target in TARGETS:
        make = target_of(target).case
        for number in range(20):
            one, other = (make(np.random.default_rng([5, number])) for _ in range(2))
            assert one == other
            assert one.sample in (*corpus.NAMES, "encrypted")


def test_corpus_covers_encodings_and_page_versions():
    encodings, versions = set(), set()
    for name in corpus.NAMES:
        for whole in corpus.columns(name) if name != "parts" else ():
            for pages in whole.chunks.values():
                for page in pages:
                    about = page.header.data_page_header or page.header.data_page_header_v2
                    if about is not None:
                        encodings.add(about.encoding)
                        versions.add(page.header.type)
                    if page.header.data_page_header is not None:
                        encodings.add(("levels", about.definition_level_encoding))
    assert {0, 2, 3, 5, 6, 7, 8, 9, 10, ("levels", 3), ("levels", 4)} <= encodings
    assert versions == {0, 3}
