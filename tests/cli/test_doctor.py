"""`numparq doctor`: what it reports of this process, and of broken installations."""

from __future__ import annotations

import json

import pytest

from numparq.cli import doctor as module
from numparq.cli import main
from numparq.kernels.compile import prebuilt


def report(capsys, status=0):
    assert main(["doctor", "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_report_of_this_process(capsys):
    found = report(capsys)
    assert found["packages"].keys() == {*module.REQUIRED, *module.OPTIONAL}
    assert found["kernels"]["runs"] in ("library", "object")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert found["python"] in text
    assert all(name in text for name in module.OPTIONAL)


@pytest.fixture
def no_library(monkeypatch):
    def refuse(level=""):
        raise prebuilt.NoLibraryError("there is none")

    monkeypatch.setattr(prebuilt, "load_library", refuse)
    monkeypatch.delenv("NUMPARQ_KERNELS", raising=False)


def test_missing_library_is_explained(capsys, no_library, monkeypatch):
    monkeypatch.setattr(module, "is_compiled", lambda group: group == "reading")
    monkeypatch.setattr(module, "_version", lambda name: "1.0")
    found = report(capsys)
    assert (found["kernels"]["runs"], found["kernels"]["no_library"]) == ("object", "there is none")
    assert found["kernels"]["compiled"] == ["reading"]
    assert "numparq warmup" in found["advice"][0]


def test_nothing_that_runs_kernels_is_a_failure(capsys, no_library, monkeypatch):
    monkeypatch.setattr(module, "_version", lambda name: None)
    found = report(capsys, status=1)
    assert found["kernels"]["runs"] is None
    assert "pip install 'numparq[jit]'" in found["advice"][0]
    assert main(["doctor"]) == 1
    assert "not available: there is none" in capsys.readouterr().out


@pytest.mark.parametrize(("mode", "word"), [("python", "Python"), ("dispatcher", "dispatchers")])
def test_slow_ways_are_named(capsys, monkeypatch, mode, word):
    monkeypatch.setenv("NUMPARQ_KERNELS", mode)
    monkeypatch.setattr(module, "_version", lambda name: "1.0")
    found = report(capsys)
    assert found["kernels"]["runs"] == mode
    assert word in found["advice"][0]


def test_damaged_library_is_found(monkeypatch, tmp_path):
    class File:
        name = prebuilt.LIBRARY.name
        hash = type("Hash", (), {"mode": "sha256", "value": "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"})

        def locate(self):
            return tmp_path / self.name

    monkeypatch.setattr(module, "distribution", lambda name: type("Distribution", (), {"files": [File()]}))
    (tmp_path / File.name).write_bytes(b"")
    assert module._is_intact()
    (tmp_path / File.name).write_bytes(b"x")
    assert not module._is_intact()
