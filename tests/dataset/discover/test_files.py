"""Files of a path: directories, glob patterns, lists and URLs, their order and their partition values."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pytest

from numparq.dataset.discover.files import is_dataset_path, list_files
from numparq.dataset.listing.patterns import GlobPattern
from numparq.errors import InvalidFileError

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need privileges on Windows")
SCHEMA = pa.schema([("x", pa.int64())])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")


def paths(listing, root: Path | str = "") -> list[str]:
    start = f"{root}/" if root else ""
    return [file.path.removeprefix(start) for file in listing.files]


# --- directories ------------------------------------------------------------------------------------------------------


def test_directory_lists_files_in_pyarrow_order(root):
    names = ["a/b", "a-b", "a.b", "b", "a/c", "B", "é", "z.txt", "a/_d/x", ".x", "_x", ".d/x", "deep/er/x", "a.parquet"]
    put(root, *names)
    listing = list_files(root)
    assert paths(listing) == pyarrow.dataset.dataset(root, format="parquet", schema=SCHEMA).files
    assert len(listing.files) == 10
    assert listing.base == str(root)
    assert not listing.is_single_file


def test_directory_path_spellings(root):
    put(root, "d/a", "d/b/c")
    for path in ("d", "d/", str(root / "d"), root / "d", (root / "d").as_uri(), "./d", os.path.join("d", "..", "d")):
        assert [Path(file).read_bytes() for file in paths(list_files(path))] == [b"PAR1"] * 2
        assert is_dataset_path(path)
    assert paths(list_files("d")) == ["d/a", "d/b/c"]
    assert paths(list_files(".")) == ["./d/a", "./d/b/c"]


def test_home_directory_is_expanded(root, monkeypatch):
    monkeypatch.setenv("HOME", str(root))
    monkeypatch.setenv("USERPROFILE", str(root))
    put(root, "d/a")
    assert paths(list_files("~/d"), root) == ["d/a"]


def test_metadata_files_are_not_data_files(root):
    put(root, "d/_metadata", "d/_common_metadata", "d/_SUCCESS", "d/k=1/_metadata", "d/k=1/a")
    listing = list_files("d")
    assert paths(listing) == ["d/k=1/a"]
    assert listing.metadata_file.path == "d/_metadata"
    assert listing.common_metadata_file.path == "d/_common_metadata"
    os.remove("d/_metadata")
    assert list_files("d").metadata_file is None


def test_directory_with_only_common_metadata_is_empty(root):
    put(root, "d/_common_metadata")
    listing = list_files("d")
    assert not listing.files
    assert listing.keys == ()
    assert listing.common_metadata_file is not None


def test_directory_without_files_raises(root):
    put(root, "d/_SUCCESS", "d/.part.crc", "d/_temporary/0/part")
    with pytest.raises(InvalidFileError, match=r"the directory has no Parquet files \(file 'd'\)"):
        list_files("d")


def test_missing_paths_raise(root):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list_files("nowhere")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list_files(["nowhere"])
    with pytest.raises(FileNotFoundError, match=r"matches the pattern: '\*.parquet'"):
        list_files("*.parquet")
    with pytest.raises(FileNotFoundError):
        list_files("nowhere/*.parquet")
    put(root, "file")
    with pytest.raises(FileNotFoundError, match="matches the pattern"):
        list_files("file/*")
    assert not is_dataset_path("nowhere")
    assert is_dataset_path("*.parquet")


def test_empty_directories_and_folder_markers_are_ignored(root):
    put(root, "d/k=1/a", "d/k=2_$folder$")
    (root / "d" / "other").mkdir()
    assert paths(list_files("d")) == ["d/k=1/a"]


@needs_links
def test_symlinks_are_followed_without_cycles(root):
    put(root, "d/a", "elsewhere/b", "elsewhere/file")
    os.symlink(root / "elsewhere", root / "d" / "link")
    os.symlink(root / "elsewhere" / "file", root / "d" / "z")
    expected = ["d/a", "d/link/b", "d/link/file", "d/z"]
    assert paths(list_files("d")) == expected
    os.symlink(root / "d", root / "d" / "itself")
    os.symlink(root, root / "d" / "above")
    os.symlink(root / "d", root / "elsewhere" / "back")
    assert paths(list_files("d")) == expected
    os.chdir("d")
    assert paths(list_files("."), ".") == [path.removeprefix("d/") for path in expected]
    assert "./link/b" in paths(list_files("./**/b"))


@needs_links
def test_dangling_symlink_is_listed_and_pipe_is_not(root):
    put(root, "d/a")
    os.symlink(root / "gone", root / "d" / "b")
    os.mkfifo(root / "d" / "pipe")
    assert paths(list_files("d")) == ["d/a", "d/b"]


# --- patterns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("d/*.parquet", ["d/a.parquet", "d/b.parquet"]),
        ("d/?.parquet", ["d/a.parquet", "d/b.parquet"]),
        ("d/[!a]*.parquet", ["d/b.parquet"]),
        ("d/*", ["d/a.parquet", "d/b.parquet", "d/k=1/a.parquet", "d/k=1/deep/c.parquet", "d/k=2/a.parquet"]),
        ("d/**", ["d/a.parquet", "d/b.parquet", "d/k=1/a.parquet", "d/k=1/deep/c.parquet", "d/k=2/a.parquet"]),
        ("d/**/a.parquet", ["d/a.parquet", "d/k=1/a.parquet", "d/k=2/a.parquet"]),
        ("d/k=*/*.parquet", ["d/k=1/a.parquet", "d/k=2/a.parquet"]),
        ("d/k=1*", ["d/k=1/a.parquet", "d/k=1/deep/c.parquet"]),
        ("d/k=1*/", ["d/k=1/a.parquet", "d/k=1/deep/c.parquet"]),
        ("*/k=1/**/*.parquet", ["d/k=1/a.parquet", "d/k=1/deep/c.parquet"]),
        ("d/a*/**", []),
        ("d/k=1*/**", ["d/k=1/a.parquet", "d/k=1/deep/c.parquet"]),
        ("d/_*", ["d/_x.parquet"]),
        ("d/.h*/*", ["d/.h/x.parquet"]),
        ("[a-d]/k=[12]/a*", ["d/k=1/a.parquet", "d/k=2/a.parquet"]),
        ("d/{b,a,nowhere}.parquet", ["d/a.parquet", "d/b.parquet"]),
        ("{d,e}/k={1/deep,2}/*.parquet", ["d/k=1/deep/c.parquet", "d/k=2/a.parquet"]),
        ("d/{a,k={1,2}/a,[a]}.parquet", ["d/a.parquet", "d/k=1/a.parquet", "d/k=2/a.parquet"]),
        ("d/k={1,2}", ["d/k=1/a.parquet", "d/k=1/deep/c.parquet", "d/k=2/a.parquet"]),
        ("d/{x,y}", []),
    ],
)
def test_glob_patterns(root, pattern, expected):
    names = [
        "a.parquet",
        "b.parquet",
        "k=1/a.parquet",
        "k=1/deep/c.parquet",
        "k=2/a.parquet",
        "_x.parquet",
        ".h/x.parquet",
    ]
    put(root, *(f"d/{name}" for name in names), "d/k=1/_SUCCESS")
    assert is_dataset_path(pattern)
    if not expected:
        with pytest.raises(FileNotFoundError):
            list_files(pattern)
        return
    for path in (pattern, str(root / pattern)):
        listing = list_files(path, partitioning=None)
        assert [os.path.relpath(file, root) for file in paths(listing)] == expected
    subtree = pyarrow.fs.SubTreeFileSystem(str(root), pyarrow.fs.LocalFileSystem())
    assert paths(list_files(pattern, partitioning=None, filesystem=subtree)) == expected


def test_braces_keep_partitions_and_the_directory_above(root):
    put(root, "d/a/x", "d/b/k=1/x", "d/c/x")
    assert [file.values for file in list_files("d/{a,c}/*", partitioning=["letter"]).files] == [("a",), ("c",)]
    assert list_files("d/b/k={1,2}/*").keys == ("k",)
    put(root, "{a}", "{b,c}")
    assert paths(list_files("{b,c}")) == ["{b,c}"]
    assert paths(list_files("{*}")) == ["{a}", "{b,c}"]


def test_existing_file_wins_over_glob_pattern(root):
    put(root, "a[1].parquet", "a1.parquet", "b*/x")
    assert paths(list_files("a[1].parquet")) == ["a[1].parquet"]
    assert list_files("a[1].parquet").is_single_file
    assert not is_dataset_path("a[1].parquet")
    assert paths(list_files("b*")) == ["b*/x"]
    assert is_dataset_path("b*")
    os.remove("a[1].parquet")
    assert paths(list_files("a[1].parquet")) == ["a1.parquet"]


def test_glob_pattern_steps():
    pattern = GlobPattern(["**", "k=*", "**", "x"])
    assert pattern.matches("a/b/k=1/c/x")
    assert pattern.matches("k=1/x")
    assert pattern.matches("k=1/x/in/it")
    assert not pattern.matches("a/b/x")
    assert not pattern.matches("k=1/y")
    assert not pattern.matches("k=1/_c/x")
    single = GlobPattern(["k=1"])
    assert single.step(single.start, "k=1", True)
    assert not single.step(single.start, "k=2", True)


# --- lists ------------------------------------------------------------------------------------------------------------


def test_list_of_paths_keeps_its_order(root):
    put(root, "d/b", "d/a", "c", "e/1.x", "e/2.x")
    listing = list_files(["e/*.x", "d", Path("c")])
    assert paths(listing) == ["e/1.x", "e/2.x", "d/a", "d/b", "c"]
    assert not listing.is_single_file
    assert [file.size for file in list_files(["c", "d/a"]).files] == [4, 4]
    assert paths(list_files(("c", "c"))) == ["c", "c"]
    assert is_dataset_path(["c"])
    with pytest.raises(ValueError, match="the list of files is empty"):
        list_files([])


def test_single_file_is_no_dataset(root):
    put(root, "k=1/a")
    listing = list_files("k=1/a")
    assert listing.is_single_file
    assert listing.keys == ()
    assert listing.files[0].name == "k=1/a"
    assert listing.files[0].size == 4
    assert not is_dataset_path("k=1/a")
    assert not is_dataset_path(b"PAR1")
    assert not is_dataset_path(object())


def test_incompatible_arguments_raise(root):
    put(root, "a")
    with pytest.raises(TypeError, match="not bytes"):
        list_files([b"PAR1"])
    with pytest.raises(TypeError, match="not int"):
        list_files(1)
    with pytest.raises(ValueError, match="is a local path"):
        list_files("a", storage_options={"x": 1})
    with pytest.raises(ValueError, match="on one file system"):
        list_files(["a", "memory://a"])
    with pytest.raises(ValueError, match="filesystem, which has its own"):
        list_files("a", storage_options={"x": 1}, filesystem=pyarrow.fs.LocalFileSystem())
    with pytest.raises(TypeError, match="must be of fsspec or pyarrow"):
        list_files("a", filesystem="memory")


# --- partitions -------------------------------------------------------------------------------------------------------


def values(*args, **options) -> tuple:
    listing = list_files(*args, **options)
    return listing.keys, [file.values for file in listing.files]


def test_hive_partitions(root):
    put(root, "d/year=2024/month=01/a", "d/year=2024/month=02/a", "d/year=2025/month=01/sub/a")
    expected = ("year", "month"), [("2024", "01"), ("2024", "02"), ("2025", "01")]
    assert values("d") == values("d/") == values(root / "d") == expected
    assert values("d/year=2024") == (("month",), [("01",), ("02",)]), "directories above the root are no partition keys"
    assert values("d", partitioning=None) == ((), [()] * 3)
    assert values(sorted(map(str, Path("d").glob("**/a")))) == expected
    assert values("d/year=*/**/a") == values("d/year=2*") == expected
    assert values(["d/year=2024", "d/year=2025"]) == values(["d"]) == expected
    assert values(["d/year=2025"]) == (("year", "month"), [("2025", "01")])
    os.chdir("d/year=2024")
    assert values(".") == (("month",), [("01",), ("02",)])
    assert values(["month=01", "month=02"]) == (("month",), [("01",), ("02",)])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("k=a%20b", {"k": "a b"}),
        ("k=a+b", {"k": "a+b"}),
        ("k=a=b", {"k": "a=b"}),
        ("k=a%2Fb", {"k": "a/b"}),
        ("k=%c3%a9", {"k": "é"}),
        ("k=é", {"k": "é"}),
        ("k=a%ZZ", {"k": "a%ZZ"}),
        ("k=a%2", {"k": "a%2"}),
        ("k=%", {"k": "%"}),
        ("k=", {"k": ""}),
        ("k=%00", {"k": "\0"}),
        ("a%20b=1", {"a b": "1"}),
        ("=1", {"": "1"}),
        ("k%3D1=5", {"k=1": "5"}),
        ("k= 1", {"k": " 1"}),
        ("k=__HIVE_DEFAULT_PARTITION__", {"k": None}),
        ("_k=1", {"_k": "1"}),
        ("k", {}),
    ],
)
def test_hive_partition_names_are_decoded(root, name, expected):
    put(root, f"d/{name}/a")
    keys, (found,) = values("d")
    assert dict(zip(keys, found, strict=True)) == expected
    if name[:1] != "_" and None not in found:  # pyarrow hides `_` names and cannot infer nulls
        (fragment,) = pyarrow.dataset.dataset(
            "d",
            schema=SCHEMA,
            partitioning=pyarrow.dataset.partitioning(pa.schema([(key, pa.string()) for key in keys]), flavor="hive"),
        ).get_fragments()
        assert pyarrow.dataset.get_partition_keys(fragment.partition_expression) == expected


def test_partition_names_must_be_utf8(root):
    put(root, "d/k=%E9/a")
    with pytest.raises(InvalidFileError, match=r"'%E9' is not valid UTF-8 \(file 'd/k=%E9/a'\)"):
        list_files("d")
    assert len(list_files("d", partitioning=None).files) == 1


def test_partition_keys_must_agree(root):
    put(root, "d/k=1/j=2/a", "d/j=1/k=2/a")
    assert values("d") == (("j", "k"), [("1", "2"), ("2", "1")])
    put(root, "d/k=1/b")
    with pytest.raises(
        InvalidFileError, match=r"the file is partitioned by 'k', but 'd/j=1/k=2/a' by 'j' and 'k';.*d/k=1/b"
    ):
        list_files("d")
    put(root, "e/a", "e/k=1/a")
    with pytest.raises(InvalidFileError, match=r"by 'k', but 'e/a' by no keys"):
        list_files("e")
    put(root, "f/k=1/k=2/a")
    with pytest.raises(InvalidFileError, match="names the partition key 'k' twice"):
        list_files("f")


def test_directory_partitions_by_position(root):
    put(root, "d/2024/a%20b/x", "d/2025/__HIVE_DEFAULT_PARTITION__/deeper/x")
    expected = ("year", "town"), [("2024", "a b"), ("2025", None)]
    assert values("d", partitioning=["year", "town"]) == expected
    assert values("d", partitioning=[("year", "int32"), "town"]) == expected
    assert values(["d/2024", "d/2025"], partitioning=["town"]) == (("town",), [("2024",), ("2025",)])
    assert values("d/*/*/**", partitioning=["year", "town"]) == expected
    with pytest.raises(InvalidFileError, match="too few directories for the partition columns 'year', 'town', 'more'"):
        list_files("d", partitioning=["year", "town", "more"])


def test_pyarrow_partitionings(root):
    schema = pa.schema([("year", pa.int16()), ("town", pa.string())])
    put(root, "d/2024/north/x", "e/year=2024/town=north/x")
    expected = ("year", "town"), [("2024", "north")]
    assert values("d", partitioning=pyarrow.dataset.partitioning(schema)) == expected
    assert values("e", partitioning=pyarrow.dataset.partitioning(schema, flavor="hive")) == expected
    assert values("e", partitioning={"year": "int16"}) == expected


def test_invalid_partitionings_raise(root):
    put(root, "d/x")
    for wrong in (7, [("a", "b", "c")], [1], {1: "int"}):
        with pytest.raises(TypeError):
            list_files("d", partitioning=wrong)
    for wrong in ("hives", [], ["a", "a"]):
        with pytest.raises(ValueError, match="partitioning"):
            list_files("d", partitioning=wrong)
