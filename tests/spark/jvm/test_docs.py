"""Spark examples in the documentation (blocks marked ``py``) run, page by page."""

from __future__ import annotations

import base64
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.cli.demo import make_rides

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).resolve().parents[3]
SECTION = re.compile(r"\n## On Spark\n(.*?)(?=\n## )", re.DOTALL)  # in the README
BLOCK = re.compile(r"```py\n(.*?)```", re.DOTALL)
FOLDERS = re.compile(
    r'"(lake/events|rides|fares|events|large|checkpoint)"'
)  # folders: the JVM resolves paths from where it was started


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of each page with such blocks."""
    for page in sorted((PROJECT / "docs").glob("*.md")):
        if "```py\n" in page.read_text():
            yield page.name, page.read_text()
    readme = PROJECT / "README.md"
    yield from (("README.md", text) for text in SECTION.findall(readme.read_text() if readme.exists() else ""))


PAGES = dict(pages())


@pytest.fixture
def names(spark, tmp_path, monkeypatch):
    """Return the names that examples use: a session, folders of rides and events, and Spark DataFrames."""
    monkeypatch.chdir(tmp_path)
    taxi = make_rides(4000)
    (tmp_path / "rides").mkdir()
    for number in range(2):
        numparq.to_parquet(taxi[number::2], tmp_path / "rides" / f"{number}.parquet", index=False, row_group_size=500)
    rng = np.random.default_rng(7)
    events = pd.DataFrame(
        {
            "day": np.repeat(["2025-12-31", "2026-01-01", "2026-01-02"], 200),
            "user": rng.integers(0, 50, 600),
            "time": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(600), "s"),
            "amount": rng.random(600) * 1000,
            "item": rng.integers(0, 9, 600).astype(str),
            "country": rng.choice(["AT", "BR", "CL"], 600),
        }
    )
    numparq.to_parquet(events, tmp_path / "events", partition_cols=["day"], max_rows_per_file=20)
    return {
        "__name__": "docs",
        "numparq": numparq,
        "spark": spark,
        "zones": spark.createDataFrame([("zone 1",), ("zone 2",)], "id string"),
        "df": spark.range(100).selectExpr("id", "id / 4 as fare", "2020 + id % 3 as year"),
    }


@pytest.mark.skipif(not (PROJECT / "docs").exists(), reason="there is no documentation beside the tests")
def test_pages_with_spark_examples_exist() -> None:
    assert {"README.md", "spark.md", "spark-jobs.md", "spark-reading.md", "spark-writing.md", "optimizing.md"} <= set(
        PAGES
    )


@pytest.fixture
def ran(names, tmp_path):
    """Run the examples of a page and return the names that they define."""

    def run(page: str) -> dict:
        blocks = BLOCK.findall(PAGES[page])
        assert blocks
        for block in blocks:
            text = FOLDERS.sub(lambda found: repr(str(tmp_path / found[1])), block)
            exec(compile(text, page, "exec"), names)
        return names

    return run


def others() -> list[str]:
    """Return the pages whose examples only have to run."""
    own = {
        "encryption.md",
        "README.md",
        "spark-jobs.md",
        "spark-reading.md",
        "spark-streaming.md",
        "spark-writing.md",
        "optimizing.md",
    }
    return sorted(set(PAGES) - own)


@pytest.mark.parametrize("page", others())
def test_examples_run(ran, page):
    ran(page)


@pytest.mark.skipif("spark-reading.md" not in PAGES, reason="no such page")
def test_reading_page(ran, tmp_path):
    defined = ran("spark-reading.md")
    taxi = numparq.read_parquet(tmp_path / "rides")
    assert defined["fares"].count() == (taxi["fare"] > 100).sum()
    assert defined["rides"].count() == taxi["zone"].isin(["zone 1", "zone 2"]).sum() > 0


@pytest.mark.skipif("spark-writing.md" not in PAGES, reason="no such page")
def test_writing_page(ran, tmp_path):
    ran("spark-writing.md")
    assert numparq.read_parquet(tmp_path / "fares", ["id"])["id"].sort_values().tolist() == list(range(100))


@pytest.mark.skipif("spark-streaming.md" not in PAGES, reason="no such page")
def test_streaming_page(ran, tmp_path):
    ran("spark-streaming.md")
    events, large = (numparq.read_parquet(tmp_path / name) for name in ("events", "large"))
    assert len(large) == (events["amount"] > 500).sum() > 0
    assert sorted(large["user"]) == sorted(events.loc[events["amount"] > 500, "user"])


@pytest.mark.skipif("spark-jobs.md" not in PAGES, reason="no such page")
def test_jobs_page(ran, tmp_path):
    defined = ran("spark-jobs.md")
    taxi = numparq.read_parquet(tmp_path / "rides")
    mean = taxi.groupby("zone")["fare"].mean()
    assert np.allclose(defined["mean_fare"].reindex(mean.index), mean)
    by_zone = {row["zone"]: row["mean"] for row in defined["by_zone"].collect()}
    assert np.allclose(pd.Series(by_zone).reindex(mean.index), mean)
    assert defined["scores"].count() == (taxi["fare"] > 40).sum()
    total = defined["found"].groupBy().sum("fare").first()[0]
    assert total == pytest.approx(taxi["fare"].sum())
    assert defined["counts"]["rows"].tolist() == [2000, 2000]
    assert defined["means"]["fare"].mean() == pytest.approx(taxi["fare"].mean())


@pytest.fixture
def add_module(spark, tmp_path, monkeypatch):
    """Return a function that puts a module on the paths of the driver and of the workers."""

    def add(name: str, text: str) -> None:
        package, _, module = name.rpartition(".")
        path = tmp_path / (f"{package}.zip" if package else f"{module}.py")
        if package:
            with zipfile.ZipFile(path, "w") as file:
                file.writestr(f"{package}/__init__.py", "")
                file.writestr(f"{package}/{module}.py", text)
        else:  # processes that plan for the data source see files alone
            path.write_text(text)
        spark.sparkContext.addPyFile(str(path))
        monkeypatch.syspath_prepend(path if package else tmp_path)

    return add


@pytest.mark.skipif("encryption.md" not in PAGES, reason="no such page")
def test_encryption_page(ran, add_module, tmp_path):
    """The page's module of providers runs with a KMS of a file in place of Vault."""
    keys = tmp_path / "keys.json"
    keys.touch(0o600)
    keys.write_text(json.dumps({"lake": base64.b64encode(bytes(range(16))).decode()}))
    (module,) = re.findall(r"```python\n(# lake_keys.py.*?)```", PAGES["encryption.md"], re.DOTALL)
    assert 'VaultKms("https://vault.example:8200")' in module
    module = module.replace('VaultKms("https://vault.example:8200")', f"FileKms({str(keys)!r})")
    add_module("lake_keys", module.replace("import VaultKms", "import FileKms"))
    events = pd.DataFrame({"user": range(100)})
    numparq.to_parquet(events, tmp_path / "lake/events", partition_cols=[], encryption="lake_keys:writing")
    defined = ran("encryption.md")
    assert sorted(defined["dataset"].read()["user"]) == sorted([*range(100)] * 2)  # the page appends what it has read
    with pytest.raises(numparq.DecryptionError):
        numparq.read_parquet(tmp_path / "lake/events")


@pytest.mark.skipif("optimizing.md" not in PAGES, reason="no such page")
def test_optimizing_page(ran, add_module, tmp_path):
    keys = f"import numparq\nkey = {bytes(range(16))!r}\n"
    read, write = "read = numparq.Decryption(key, allow_plaintext_files=True)\n", "write = numparq.Encryption(key)\n"
    add_module("lake.keys", keys + read + write)
    report = ran("optimizing.md")["report"]
    assert (report.status, report.folders, report.before.files, report.after.files) == ("done", 2, 20, 2)
    with numparq.Dataset(tmp_path / "events", decryption="lake.keys:read") as dataset:
        assert len(dataset.files) == 3, "the last example has encrypted all partitions"
        assert dataset.num_rows == 600
    with pytest.raises(numparq.DecryptionError):
        numparq.read_parquet(tmp_path / "events")


@pytest.mark.skipif("README.md" not in PAGES, reason="the README has no such section")
def test_readme_section(ran, tmp_path):
    ran("README.md")
    events = numparq.read_parquet(tmp_path / "events")
    assert len(events) == 600
    assert len(numparq.Dataset(tmp_path / "events").files) == 3
    assert len(numparq.read_parquet(tmp_path / "large")) == (events["amount"] > 990).sum() > 0


@pytest.mark.skipif("README.md" not in PAGES, reason="the README has no such section")
def test_readme_demo_command(monkeypatch, tmp_path, capsys, spark):
    """Uses fewer rows than the README, in the current session."""
    from numparq.cli import main

    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"numparq (spark demo)\n", PAGES["README.md"])
    assert main([*command.split(), "--files", "20", "--rows", "20000"]) == 0
    assert "look-up " in capsys.readouterr().out
    assert len(numparq.read_parquet("events")) == 20000


def test_demo_command_keeps_existing_data(tmp_path, capsys):
    from numparq.cli import main

    assert main(["spark", "demo", str(tmp_path)]) == 1
    assert f"{tmp_path} already exists; remove it" in capsys.readouterr().err
