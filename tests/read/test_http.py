"""Files on HTTP servers: few requests, servers with faults, and errors that say their cause."""

from __future__ import annotations

import errno

import numpy as np
import pandas as pd
import pytest

from numparq import Coalescing, Dataset, InvalidFileError, ParquetFile, UnsupportedError, col, read_parquet, to_parquet
from support.io.http_server import http_server

pytest.importorskip("aiohttp")
pytest.importorskip("fsspec")

FRAME = pd.DataFrame({"number": np.random.default_rng(1).random(30_000), "group": np.arange(30_000) % 7})
DATA = to_parquet(FRAME, row_group_size=5_000)
BIG = to_parquet(pd.DataFrame({"number": np.random.default_rng(2).random(150_000)}))
SMALL_FRAME = FRAME[:100]
SMALL = to_parquet(SMALL_FRAME)


@pytest.fixture
def server():
    with http_server() as store:
        store.files |= {"/small.parquet": SMALL, "/large.parquet": DATA, "/other.parquet": SMALL, "/empty.parquet": b""}
        yield store


# --- requests ---------------------------------------------------------------------------------------------------------


def test_one_small_file_costs_two_requests_however_it_is_named(server):
    url = f"{server.url}/small.parquet"
    for path in (url, [url], (url,), f"{url}?token=a*b", [f"{url}?token=[ab]"]):
        pd.testing.assert_frame_equal(read_parquet(path), SMALL_FRAME)
        assert server.methods() == ["HEAD", "GET"], path
    with ParquetFile(url) as file:
        assert file.num_rows == 100
    assert server.methods() == ["HEAD", "GET"]


def test_list_of_files_costs_two_requests_each(server):
    urls = [f"{server.url}/{name}.parquet" for name in ("small", "other")]
    assert len(read_parquet(urls)) == 200
    assert sorted(server.methods()) == ["GET", "GET", "HEAD", "HEAD"]


def test_large_file_is_looked_up_once_more_at_the_end(server):
    url = f"{server.url}/large.parquet"
    for path in (url, [url]):
        pd.testing.assert_frame_equal(read_parquet(path), FRAME)
        methods = server.methods()
        assert methods.count("HEAD") == 2
        assert methods[0] == methods[-1] == "HEAD"


def test_replaced_file(server):
    url = f"{server.url}/large.parquet"
    other = to_parquet(FRAME.assign(group=FRAME["group"] + 10), row_group_size=5_000)
    for before, after in (
        ({"ETag": '"a"'}, {"ETag": '"b"'}),
        ({"Last-Modified": "Mon, 04 May 2026 03:02:01 GMT"}, {"Last-Modified": "Mon, 04 May 2026 03:02:02 GMT"}),
    ):
        server.headers, server.files["/large.parquet"] = before, DATA
        with ParquetFile(url) as file, Dataset([url, url]) as dataset:
            assert file.read().equals(FRAME)
            assert len(dataset.read()) == 60_000
            server.headers, server.files["/large.parquet"] = after, other
            with pytest.raises(InvalidFileError, match=r"replaced during the read.*large\.parquet"):
                file.read()
            assert len(dataset.read(filters=col("group") < 10)) == 60_000, "files of 1 MiB are kept whole"
        with ParquetFile(url) as file:
            server.files["/large.parquet"] = b"short"
            with pytest.raises(InvalidFileError, match=r"replaced during the read.*large\.parquet"):
                file.read()


# --- servers with faults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("faults", "num_requests"),
    [
        ({"has_head_length": False}, 3),  # HEAD, GET of a byte, GET
        ({"has_head_length": None}, 3),
        ({"refuses_head": True}, 3),
    ],
)
def test_servers_that_do_not_tell_a_length(server, faults, num_requests):
    for name, value in faults.items():
        setattr(server, name, value)
    for name, frame in (("small", SMALL_FRAME), ("large", FRAME)):
        for path in (f"{server.url}/{name}.parquet", [f"{server.url}/{name}.parquet"]):
            pd.testing.assert_frame_equal(read_parquet(path), frame)
            if name == "small":
                assert len(server.methods()) == num_requests
    assert len(read_parquet([f"{server.url}/small.parquet", f"{server.url}/large.parquet"])) == 30_100
    with pytest.raises(InvalidFileError, match="the file has 0 bytes"):
        read_parquet(f"{server.url}/empty.parquet")


def test_server_without_ranges(server):
    server.has_ranges = False
    pd.testing.assert_frame_equal(read_parquet(f"{server.url}/small.parquet"), SMALL_FRAME)
    with pytest.raises(UnsupportedError, match=r"does not support byte ranges; download the file.*large\.parquet"):
        read_parquet(f"{server.url}/large.parquet")
    server.has_head_length = False
    pd.testing.assert_frame_equal(read_parquet(f"{server.url}/small.parquet"), SMALL_FRAME)


# --- errors -----------------------------------------------------------------------------------------------------------

STATUSES = [
    (401, PermissionError, "HTTP 401 Unauthorized"),
    (403, PermissionError, "HTTP 403 Forbidden"),
    (404, FileNotFoundError, "HTTP 404 Not Found|No such file"),
    (410, FileNotFoundError, "HTTP 410 Gone"),
    (429, OSError, "HTTP 429 Too Many Requests"),
    (500, OSError, "HTTP 500 Internal Server Error"),
    (503, OSError, "HTTP 503 Service Unavailable"),
    (504, TimeoutError, "HTTP 504 Gateway Timeout"),
    (599, OSError, "HTTP 599"),
]


@pytest.mark.parametrize(("status", "kind", "message"), STATUSES)
def test_status_is_said(server, status, kind, message):
    server.statuses["/small.parquet"] = status
    url = f"{server.url}/small.parquet"
    patterns = [] if status in (404, 410) else [f"{url}?token=[a]*"]  # else no file matches them
    for path in (url, [url], [f"{server.url}/other.parquet", url], f"{url}?token=1", *patterns):
        with pytest.raises(kind, match=f"({message}).*{server.url}/small") as raised:
            read_parquet(path)
        assert isinstance(raised.value, FileNotFoundError) == (status in (404, 410))
        assert raised.value.filename.startswith(url)
    for call in (ParquetFile, Dataset):
        with pytest.raises(kind, match=message):
            call(url)


@pytest.mark.parametrize(("status", "kind", "message"), [row for row in STATUSES if row[0] != 404])
def test_status_of_a_later_request(server, status, kind, message):
    url = f"{server.url}/big.parquet"
    server.files["/big.parquet"] = BIG
    with ParquetFile(url, coalescing=Coalescing(0, 100_000)) as file, Dataset([url, url]) as dataset:
        assert dataset.num_rows == 2 * file.num_rows
        server.statuses["/big.parquet"] = status
        for read in (file.read, dataset.read, lambda: list(file.iter_batches(["number"]))):
            with pytest.raises(kind, match=f"{message}.*{url}"):
                read()


def test_globs_and_folders_say_why_they_fail(server):
    server.statuses["/folder/"] = server.statuses["/folder"] = 403
    with pytest.raises(PermissionError, match="HTTP 403 Forbidden"):
        read_parquet(f"{server.url}/folder/")
    with pytest.raises(PermissionError, match="HTTP 403 Forbidden"):
        read_parquet(f"{server.url}/folder/*.parquet")


def test_nothing_listens():
    for path in ("http://127.0.0.1:1/x.parquet", ["http://127.0.0.1:1/x.parquet"], "http://127.0.0.1:1/x*.parquet"):
        with pytest.raises(ConnectionRefusedError, match=r"refused.*http://127\.0\.0\.1:1/x"):
            read_parquet(path)


def test_unknown_host():
    with pytest.raises(ConnectionError, match=r"unknown|Cannot connect|Name or service|resolution") as raised:
        read_parquet("http://no-such-host.invalid/x.parquet")
    assert raised.value.filename == "http://no-such-host.invalid/x.parquet"
    assert raised.value.errno == errno.EHOSTUNREACH
