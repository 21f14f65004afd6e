"""Commands with and without keys: `--key-file`, `--key-provider`, and what an encrypted file shows to anybody."""

from __future__ import annotations

import base64
import contextlib
import json
import sys

import pandas as pd
import pytest

import numparq
from numparq.cli import main

FOOTER_KEY, COLUMN_KEY = b"f" * 16, b"c" * 16
KEYS = numparq.Encryption(FOOTER_KEY, {"salary": COLUMN_KEY}, key_metadata={None: b"kf", "salary": b"kc"})
VISIBLE = numparq.Encryption(
    FOOTER_KEY, {"salary": COLUMN_KEY}, key_metadata={None: b"kf", "salary": b"kc"}, plaintext_footer=True
)
COMMANDS = [["schema"], ["meta"], ["head"], ["plan", "--filter", "salary > 3"], ["verify"]]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"name": ["Ada", "Bob"], "salary": [9100, 8700]})
    numparq.to_parquet(frame, "locked.parquet", encryption=KEYS)
    numparq.to_parquet(frame, "visible.parquet", encryption=VISIBLE)
    numparq.to_parquet(frame, "plain.parquet")
    keys = {
        "footer_key": base64.b64encode(FOOTER_KEY).decode(),
        "column_keys": {"salary": base64.b64encode(COLUMN_KEY).decode()},
    }
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(keys))
    path.chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("file", ["locked.parquet", "visible.parquet"])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_commands_with_a_key_file(files, capsys, command, file):
    name, *options = command
    assert main([name, file, *options, "--key-file", "keys.json"]) == 0
    found = capsys.readouterr()
    assert found.err == ""
    expected = {"schema": "salary", "meta": "name", "head": "9100", "plan": "row group 0", "verify": "sound\n"}[name]
    assert expected in found.out


def test_commands_with_a_key_provider(files, capsys, monkeypatch):
    (files / "lake_keys.py").write_text(
        "import numparq\n\ndef read():\n    return numparq.Decryption(b'f' * 16, {'salary': b'c' * 16})\n"
    )
    monkeypatch.syspath_prepend(files)
    for name, *options in COMMANDS:
        assert main([name, "locked.parquet", *options, "--key-provider", "lake_keys:read"]) == 0
    assert "9100" in capsys.readouterr().out
    assert main(["head", "locked.parquet", "--key-provider", "lake_keys:other"]) == 1
    assert "the key provider 'lake_keys:other' was not found" in capsys.readouterr().err
    sys.modules.pop("lake_keys", None)


def test_datasets_whose_parts_are_tied_to_their_paths(files, capsys, monkeypatch):
    prefix = numparq.PartPrefix(b"lake", root=files / "staff")
    encryption = numparq.Encryption(FOOTER_KEY, aad_prefix=prefix)
    frame = pd.DataFrame({"city": ["Bern", "Graz"], "salary": [9100, 8700]})
    numparq.to_parquet(frame, "staff", partition_cols=["city"], encryption=encryption)
    (files / "staff_keys.py").write_text(
        f"import numparq\nprefix = numparq.PartPrefix(b'lake', root={str(files / 'staff')!r})\n"
        "keys = numparq.Decryption(b'f' * 16, aad_prefix=prefix)\n"
    )
    monkeypatch.syspath_prepend(files)
    (part, *_) = map(str, (files / "staff").rglob("*.parquet"))
    for path in ("staff", part):
        for command in (["schema"], ["meta"], ["head"], ["plan", "--filter", "salary > 3"], ["verify"]):
            assert main([command[0], path, *command[1:], "--key-provider", "staff_keys:keys"]) == 0, command
    assert "9100" in capsys.readouterr().out
    sys.modules.pop("staff_keys", None)


def test_schema_and_meta_without_keys(files, capsys):
    assert main(["schema", "locked.parquet"]) == 0
    assert capsys.readouterr().out == (
        f"locked.parquet: {(files / 'locked.parquet').stat().st_size:,} bytes\n"
        "locked.parquet: encrypted footer, AES_GCM_V1, footer key: key metadata b'kf'\n"
    )
    assert main(["meta", "locked.parquet"]) == 0
    assert "encrypted footer, AES_GCM_V1, footer key: key metadata b'kf'" in capsys.readouterr().out
    assert main(["schema", "visible.parquet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == [
        "plaintext footer, AES_GCM_V1, footer key: key metadata b'kf'",
        "encrypted column, key metadata b'kc': 'salary'",
    ]
    assert any("salary" in line for line in lines[:-2])
    assert main(["meta", "visible.parquet"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    (salary,) = (row for row in rows if row[:1] == ["salary"])
    assert salary[1] == "INT64"
    assert "?" in salary, "its null count is encrypted"


def test_rows_without_keys(files, capsys):
    for command in (["head", "locked.parquet"], ["plan", "locked.parquet"]):
        assert main(command) == 1
        message = capsys.readouterr().err
        assert "the footer is encrypted; pass --key-file or --key-provider (key metadata b'kf')" in message
    assert main(["head", "visible.parquet", "--columns", "name"]) == 0
    assert "Ada" in capsys.readouterr().out
    assert main(["verify", "locked.parquet", "visible.parquet"]) == 0
    text = capsys.readouterr().out
    assert text.count("not checked: no key") == 2
    assert text.count(": no errors in what could be checked, with ") == 2
    assert "sound" not in text


def test_directories_of_locked_files(files, capsys):
    folder = files / "folder"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.parquet").write_bytes((files / "locked.parquet").read_bytes())
    numparq.to_parquet(pd.DataFrame({"salary": [1]}), folder / "plain.parquet")
    for command in ("schema", "meta"):
        assert main([command, "folder"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("folder: 3 files, encrypted footer, AES_GCM_V1, footer key")
        assert lines[-1] == "folder: 1 file, not encrypted"
    assert main(["head", "folder"]) == 1


def test_a_column_without_its_key_in_meta(files, capsys):
    path = files / "footer.json"
    path.write_text(json.dumps({"footer_key": base64.b64encode(FOOTER_KEY).decode()}))
    path.chmod(0o600)
    assert main(["meta", "locked.parquet", "--key-file", "footer.json"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["salary", "(encrypted)", "?", "?", "?", "?"] in rows


def test_key_files_that_are_refused(files, capsys):
    (files / "keys.json").chmod(0o644)
    assert main(["head", "locked.parquet", "--key-file", "keys.json"]) == 1
    assert "others may use the file of keys 'keys.json'; run: chmod 600 keys.json" in capsys.readouterr().err
    (files / "keys.json").chmod(0o600)
    assert main(["head", "plain.parquet", "--key-file", "keys.json"]) == 1
    assert "the file is not encrypted" in capsys.readouterr().err
    assert main(["head", "locked.parquet", "--key-file", "keys.json", "--key-provider", "a:b"]) == 1
    assert "--key-file and --key-provider exclude each other" in capsys.readouterr().err
    assert main(["head", "locked.parquet", "--key-file", "missing.json"]) == 1
    assert "missing.json: No such file" in capsys.readouterr().err


def test_spark_commands_hand_on_the_names_of_providers(monkeypatch):
    """Keys do not travel to the workers of Spark, so there is no --key-file."""
    calls = []
    monkeypatch.setattr("numparq.cli.spark.open_session", lambda *words: contextlib.nullcontext())
    monkeypatch.setattr("numparq.cli.spark.print_report", lambda report: None)
    monkeypatch.setattr("numparq.cli.spark.print_profile", lambda found, as_json: None)

    class Found:
        damaged_files = 0

    def record(*arguments, **options):
        calls.append(options)
        return Found()

    monkeypatch.setattr("numparq.spark.optimization.optimize.optimize", record)
    monkeypatch.setattr("numparq.spark.profiler.profile", record)
    assert main(["spark", "optimize", "d", "--key-provider", "a:r", "--output-key-provider", "a:w"]) == 0
    assert main(["spark", "optimize", "d", "--key-provider", "a:r", "--plaintext-output"]) == 0
    assert main(["spark", "profile", "d", "--key-provider", "a:r"]) == 0
    names = [(call["decryption"], call.get("encryption"), call.get("plaintext_output")) for call in calls]
    assert names == [("a:r", "a:w", False), ("a:r", None, True), ("a:r", None, None)]
    with pytest.raises(SystemExit):
        main(["spark", "optimize", "d", "--key-file", "keys.json"])
