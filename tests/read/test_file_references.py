"""FILE references: columns of references, and the bytes that they refer to."""

from __future__ import annotations

import os

import pandas as pd
import pytest
from thriftpy2.utils import deserialize, serialize

import numparq
from numparq import InvalidFileError, ParquetFile, UnsupportedError, file_bytes, read_parquet
from support.files.edited_footers import PROTOCOL, THRIFT
from support.files.file_references import REFERENCES, TYPES, write_references

pa = pytest.importorskip("pyarrow")
BYTES = [b"in line", None, b"PAR1", b"side", b"low", b"si", b"", b""]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "side").write_bytes(b"side")
    (tmp_path / "below" / "side").write_bytes(b"below")
    (tmp_path / "file").write_bytes(write_references(REFERENCES))
    return tmp_path


def full_reference(reference):
    return reference and {name: reference.get(name) for name in TYPES}


def test_references_are_dicts(folder):
    got = read_parquet(folder / "file")["f"].tolist()
    assert got == [full_reference(reference) for reference in REFERENCES]
    assert read_parquet(folder / "file", files="references")["f"].tolist() == got


def test_bytes_of_references(folder):
    got = read_parquet(folder / "file", files="bytes", external_files=True)["f"]
    assert got.tolist() == BYTES
    assert got.dtype == object
    got = read_parquet(folder / "file", files="bytes", external_files=True, dtype_backend="pyarrow")["f"]
    assert got.dtype == pd.ArrowDtype(pa.binary())
    assert got.array.__arrow_array__().to_pylist() == BYTES
    got = read_parquet(folder / "file", files="bytes", row_range=(0, 3))["f"]
    assert got.tolist() == BYTES[:3]
    assert read_parquet(folder / "file", files="bytes", nrows=0)["f"].tolist() == []


def test_bytes_of_one_reference(folder):
    with ParquetFile(folder / "file", external_files=True) as opened:
        references = opened.read()["f"]
        for reference, expected in zip(references, BYTES, strict=True):
            if reference is not None:
                assert opened.file_bytes(reference) == expected
                assert file_bytes(folder / "file", reference, external_files=True) == expected
    with pytest.raises(UnsupportedError, match=r"to another file, 'side'; pass external_files=True.*file '.*file'"):
        file_bytes(folder / "file", {"uri": "side"})
    data = (folder / "file").read_bytes()
    assert file_bytes(data, {"offset": 0, "size": 4}) == b"PAR1"
    assert file_bytes(data, {"offset": len(data) - 4, "size": 4}) == b"PAR1"


def test_external_references_are_off_by_default(folder):
    with pytest.raises(UnsupportedError, match=r"to another file, 'side'; pass external_files=True.*reference 3 .*'f'"):
        read_parquet(folder / "file", files="bytes")


@pytest.mark.parametrize("uri", ["s3://bucket/key", "http://localhost:1/x", "file:///etc/passwd", "FILE:x", "data:,x"])
@pytest.mark.parametrize("external_files", [False, True])
def test_urls_are_never_opened(folder, uri, external_files):
    with pytest.raises(UnsupportedError, match="is a URL"):
        file_bytes(folder / "file", {"uri": uri}, external_files=external_files)


@pytest.mark.parametrize(
    "uri", ["/etc/passwd", "../secret", "//host/x", "link", "pipe", "below", "nothing", "a\\b", "\0"]
)
def test_hostile_uris_are_refused(folder, uri):
    if not hasattr(os, "mkfifo"):
        pytest.skip("needs POSIX")
    (folder.parent / "secret").write_bytes(b"secret")
    (folder / "link").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    (folder / "hostile").write_bytes(write_references([{"uri": uri}]))
    for call in (
        lambda: file_bytes(folder / "file", {"uri": uri}, external_files=True),
        lambda: read_parquet(folder / "hostile", files="bytes", external_files=True),
    ):
        with pytest.raises(InvalidFileError, match="refers to sibling file"):
            call()


@pytest.mark.parametrize(
    ("offset", "size"), [(5, 0), (0, 5), (4, 1), (2**63 - 1, 2**63 - 1), (0, 2**63 - 1), (2**62, 0)]
)
def test_ranges_beyond_the_end_of_the_file(folder, offset, size):
    with pytest.raises(InvalidFileError, match=r"of 'side', which has only 4"):
        file_bytes(folder / "file", {"uri": "side", "offset": offset, "size": size}, external_files=True)
    length = (folder / "file").stat().st_size
    with pytest.raises(InvalidFileError, match=f"of this file, which has only {length}"):
        file_bytes(folder / "file", {"offset": offset + length, "size": max(size, 1)})


def test_error_locates_the_invalid_reference(folder):
    (folder / "wrong").write_bytes(write_references([{"inline": b"x"}, None, {"offset": 3}]))
    with pytest.raises(InvalidFileError, match=r"an offset but no size, in reference 2 of the column.*column 'f'"):
        read_parquet(folder / "wrong", files="bytes")
    assert read_parquet(folder / "wrong")["f"][2]["offset"] == 3
    (folder / "wrong").write_bytes(write_references([{"inline": b"x", "checksum": "CRC32:00000000"}]))
    with pytest.raises(InvalidFileError, match=r"have the CRC32 .* in reference 0"):
        read_parquet(folder / "wrong", files="bytes")
    assert read_parquet(folder / "wrong", files="bytes", verify_crc=False)["f"].tolist() == [b"x"]


@pytest.mark.parametrize(
    ("fields", "reference", "expected"),
    [
        (("inline",), {"inline": b"x"}, b"x"),
        (("uri", "content_type"), {"uri": "side"}, b"side"),
        (("size", "offset"), {"offset": 1, "size": 2}, b"AR"),
        (("inline", "future"), {"inline": b"x", "future": 1}, b"x"),
    ],
)
def test_groups_with_some_of_the_fields(folder, fields, reference, expected):
    (folder / "some").write_bytes(write_references([reference, None], fields))
    got = read_parquet(folder / "some", files="bytes", external_files=True)["f"]
    assert got.tolist() == [expected, None]


def test_references_within_lists_and_structs(folder):
    def lists(array):
        return pa.ListArray.from_arrays([0, 1, 1, 3], array)

    def structs(array):
        return pa.StructArray.from_arrays([array, pa.array([1, 2, 3])], ["f", "n"])

    references, expected = [REFERENCES[0], REFERENCES[1], REFERENCES[2]], BYTES[:3]
    (folder / "lists").write_bytes(write_references(references, wrap=lists))
    got = read_parquet(folder / "lists", files="bytes")["f"]
    assert [item.tolist() for item in got] == [[BYTES[0]], [], BYTES[1:3]]
    assert read_parquet(folder / "lists")["f"][0].tolist() == [full_reference(REFERENCES[0])]
    got = read_parquet(folder / "lists", files="bytes", dtype_backend="pyarrow")["f"]
    assert got.dtype == pd.ArrowDtype(pa.list_(pa.binary()))
    (folder / "structs").write_bytes(write_references(references, wrap=structs))
    for backend in ("numpy_nullable", "pyarrow"):
        got = read_parquet(folder / "structs", files="bytes", dtype_backend=backend)["f"]
        assert got.tolist() == [{"f": data, "n": n} for n, data in enumerate(expected, start=1)]


def test_projected_field_is_no_reference(folder):
    """A field of a reference alone is returned as it is, and no bytes are read."""
    got = read_parquet(folder / "file", columns=["f.uri"], files="bytes")
    assert got["uri"].tolist()[3:5] == ["side", "below/side"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "uri", "logicalType": None, "converted_type": None}, "uri .* not have the type"),
        ({"name": "offset", "logicalType": THRIFT.LogicalType(DATE=THRIFT.DateType())}, "offset .* not have the type"),
        ({"name": "inline", "converted_type": 0}, "inline .* not have the type"),
        ({"name": "size", "converted_type": 10}, "size .* not have the type"),
    ],
)
def test_fields_with_wrong_types(folder, change, message):
    """Such groups cannot be resolved to bytes."""

    def edit(schema):
        for element in schema:
            if element.name == change["name"]:
                for name, value in change.items():
                    setattr(element, name, value)

    data = write_references([{"inline": b"x", "offset": 1, "size": 0, "uri": "u"}], edit=edit)
    with pytest.raises(InvalidFileError, match=message):
        read_parquet(data, files="bytes")


def test_schema_shows_the_file_type():
    text = str(ParquetFile(write_references([None])).schema)
    assert "optional group f (FILE) {" in text
    assert "optional binary uri (STRING);" in text


def test_invalid_arguments(folder):
    with pytest.raises(ValueError, match="files must be one of 'references', 'bytes'"):
        read_parquet(folder / "file", files="content")
    with pytest.raises(TypeError, match="FILE reference must be a dict"):
        numparq.file_bytes(folder / "file", "side")


def test_bytes_of_an_encrypted_file_are_refused(folder):
    """No module has them, so nothing authenticates them: here of a plain column, in a file with a signed footer."""
    pytest.importorskip("cryptography")
    data = (folder / "file").read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = deserialize(THRIFT.FileMetaData(), data[start:-8], PROTOCOL)
    footer.encryption_algorithm = THRIFT.EncryptionAlgorithm(AES_GCM_V1=THRIFT.AesGcmV1(aad_file_unique=b"12345678"))
    stored = serialize(footer, PROTOCOL) + bytes(28)
    (folder / "file").write_bytes(data[:start] + stored + len(stored).to_bytes(4, "little") + b"PAR1")
    keys = numparq.Decryption(check_footer_integrity=False)
    with ParquetFile(folder / "file", decryption=keys, external_files=True) as opened:
        assert opened.read()["f"][3] == {**dict.fromkeys(TYPES), "uri": "side"}
        assert opened.file_bytes({"uri": "side"}) == (folder / "side").read_bytes()
        with pytest.raises(UnsupportedError, match="this file, which is encrypted"):
            opened.file_bytes({"offset": 0, "size": 4})
    with pytest.raises(UnsupportedError, match="this file, which is encrypted"):
        read_parquet(folder / "file", files="bytes", decryption=keys, external_files=True)
