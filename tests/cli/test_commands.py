"""Arguments of the commands: help, mistakes, standard input, pipes that close, Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pandas as pd
import pytest

import numparq
from numparq.cli import main


@pytest.fixture
def path(tmp_path):
    numparq.to_parquet(pd.DataFrame({"a": [1, 2, 3], "b,c": ["x", "y", "z"]}), tmp_path / "few.parquet")
    return str(tmp_path / "few.parquet")


@pytest.mark.parametrize(("words", "shown"), [([], "  salvage "), (["spark"], "  optimize ")])
def test_help_if_no_command_is_named(words, shown, capsys):
    assert main(words) == 2
    assert shown in capsys.readouterr().err


@pytest.mark.parametrize("words", [["help", "head"], ["head", "--help"]])
def test_help_of_a_command(words, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(words)
    out = " ".join(capsys.readouterr().out.split())
    assert "read only these columns; repeatable, a name with a comma in double quotes" in out


def test_column_names_are_separated_by_commas(path, capsys):
    for words in (["--columns", '"b,c",a', path], [path, "--columns", '"b,c"', "--columns", "a"]):
        assert main(["head", "-n", "1", *words]) == 0
        assert capsys.readouterr().out == "  b,c  a\n0   x  1\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["head", "--columns", "a", "b", "{}"], "separate names by commas, as in --columns a,b"),
        (["head", "--columns", ",", "{}"], "argument --columns: it names no column"),
        (["head", "--columns", '"a', "{}"], "is not a list of names"),
        (["head", "-n", "-3", "{}"], "argument -n: must be a number of rows, 0 or more, not '-3'"),
        (["haed", "{}"], "invalid choice: 'haed'"),
    ],
)
def test_usage_errors(path, words, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([word.format(path) for word in words])
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["meta", "missing.parquet"], "numparq: missing.parquet: No such file or directory\n"),
        (["plan", "memory://nowhere/x"], "numparq: memory://nowhere/x: No such file or directory\n"),
        (["head", "memory://nowhere/*.parquet"], "memory://nowhere/*.parquet: no file matches the pattern\n"),
        (["salvage", ".", "out.parquet"], "numparq: .: path is a directory; salvage its files one by one\n"),
    ],
)
def test_failures_name_the_path_as_given_and_the_reason(words, message, tmp_path, monkeypatch, capsys):
    pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    assert main(words) == (2 if words[0] == "salvage" else 1)
    assert capsys.readouterr().err.endswith(message)


def test_interrupt_exits_quietly(path, monkeypatch, capsys):
    def interrupt(file, table_format, decryption):
        raise KeyboardInterrupt

    monkeypatch.setattr("numparq.cli.show.schema", interrupt)
    assert main(["schema", path]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("command", ["schema", "meta", "head", "plan", "verify"])
def test_pipes_are_read_like_files(path, command, tmp_path, capsys):
    assert main([command, path]) == 0
    expected = capsys.readouterr().out
    pipe, data = str(tmp_path / "pipe"), open(path, "rb").read()  # noqa: SIM115
    os.mkfifo(pipe)

    def feed():
        with open(pipe, "wb") as file:
            file.write(data)

    writer = threading.Thread(target=feed)
    writer.start()
    assert main([command, pipe]) == 0
    writer.join()
    assert capsys.readouterr().out == expected.replace(path, pipe)


@pytest.mark.slow
def test_standard_input_and_a_pipe_that_closes(tmp_path):
    numparq.to_parquet(pd.DataFrame({"a": range(100_000)}), tmp_path / "many.parquet")
    command = f"'{sys.executable}' -m numparq head -n 100000 - < many.parquet"
    script = f"cat many.parquet | {command.split(' <')[0]} | head -1; echo ${{PIPESTATUS[1]}}; {command} | tail -1"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.split() == ["a", "141", "99999", "99999"]
