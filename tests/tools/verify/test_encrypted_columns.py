"""`numparq verify` of encrypted files: with all keys, with some, without."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import numparq
from numparq.tools.verify.checks import CHECKS
from numparq.tools.verify.file import check_file
from support.encryption.keys import COLUMN_KEYS, FOOTER_KEY
from support.encryption.kms import MemoryKms
from support.encryption.pyarrow_files import MaterialKeys, encrypt
from support.encryption.violations import KEYS, VIOLATIONS, changed_body, keys, sound_file


def checks(data, decryption):
    return {deviation.check for deviation in numparq.verify(data, decryption=decryption)}


@pytest.mark.parametrize("check", VIOLATIONS)
def test_violation_fails_only_its_check(check):
    make, also = VIOLATIONS[check]
    found = numparq.verify(make(), decryption=KEYS.get(check, keys)())
    assert {deviation.check for deviation in found} == {check, *also}
    assert all(deviation.severity == CHECKS[deviation.check].severity for deviation in found)


@pytest.mark.parametrize("plaintext_footer", [False, True])
@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_sound_files(algorithm, plaintext_footer, version):
    report = check_file(sound_file(plaintext_footer, algorithm=algorithm, data_page_version=version), decryption=keys())
    assert report.deviations == []
    counts = report.checked_counts
    assert (counts["pages"], counts["Bloom filters"], counts["column indexes"]) == (14, 2, 6)
    assert counts["encrypted modules"] > 8 * 2 + 2 * 2 + 4 * 2
    assert report.num_rows == 80


def test_without_keys_a_report_says_how_a_file_is_encrypted():
    report = check_file(sound_file(False))
    assert [(one.check, one.severity) for one in report.deviations] == [("not-checked", "warning")]
    assert report.deviations[0].message == "the footer is encrypted; not checked: no key"
    assert report.notes == ["encrypted footer, AES_GCM_V1, footer key: no key metadata"]
    report = check_file(sound_file(True))
    assert [(one.check, one.column) for one in report.deviations] == [
        ("not-checked", name) for name in ["a", "l.list.element"] * 2
    ]
    assert report.notes == [
        "plaintext footer, AES_GCM_V1, footer key: no key metadata",
        "encrypted column, no key metadata: 'a'",
        "encrypted column, with the footer key: 'l.list.element'",
    ]
    assert report.checked_counts["column chunks"] == 2
    assert not report.errors


def test_some_keys(parquet_testing):
    some = numparq.Decryption(FOOTER_KEY, {"double_field": COLUMN_KEYS["double_field"]})
    for name in ("encrypt_columns_plaintext_footer", "encrypt_columns_and_footer"):
        report = check_file(parquet_testing / "data" / f"{name}.parquet.encrypted", decryption=some)
        (deviation,) = report.deviations
        assert (deviation.check, deviation.column) == ("not-checked", "float_field")
        assert "key metadata b'kc2'" in deviation.message
        assert report.checked_counts["column chunks"] == 7


def test_wrong_keys():
    footer = numparq.Decryption(b"x" * 16, {"a": b"c" * 32})
    assert checks(sound_file(False), footer) == {"module-tag"}
    assert checks(sound_file(True), footer) == {"footer-signature", "module-tag"}
    column = numparq.Decryption(b"f" * 16, {"a": b"x" * 32})
    for plaintext_footer in (False, True):
        found = numparq.verify(sound_file(plaintext_footer), decryption=column)
        assert [(one.check, one.row_group, one.column) for one in found] == [
            ("module-tag", 0, "a"),
            ("module-tag", 1, "a"),
        ]
        assert "did not authenticate" in found[0].message
    assert checks(sound_file(False), numparq.Decryption(column_keys={"a": b"c" * 32})) == {"not-checked"}


def test_a_retriever_that_fails_is_not_quoted():
    def retrieve(metadata):
        raise KeyError("secret")

    content = encrypt(pa.table({"a": [1, 2]}), None)
    (found,) = numparq.verify(content, decryption=numparq.Decryption(key_retriever=retrieve))
    assert found.check == "not-checked"
    assert "secret" not in str(found)


def test_pages_of_ctr_are_found_by_their_checksums_alone():
    assert checks(changed_body("AES_GCM_CTR_V1"), keys()) >= {"page-crc"}
    assert "module-tag" not in checks(changed_body("AES_GCM_CTR_V1"), keys())


def test_truncated_and_misnamed_files():
    content = sound_file(False)
    assert checks(b"PAR1" + content[4:], keys()) == {"magic-head"}
    assert checks(content[:-20], keys()) == {"magic-tail"}
    assert checks(content[:-4] + b"PAR1", keys()) & {"thrift-struct", "thrift-required", "thrift-type", "magic-head"}


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_files_of_pyarrow(plaintext_footer):
    table = pa.table({"a": range(500), "s": [f"s{number % 9}" for number in range(500)]})
    options = {"row_group_size": 300, "write_page_index": True, "write_page_checksum": True, "data_page_size": 400}
    content = encrypt(table, ["a", "s"], plaintext_footer=plaintext_footer, **options)
    found = {deviation.check for deviation in numparq.verify(content, decryption=MaterialKeys())}
    assert found == ({"writer-size-statistics"} if plaintext_footer else set())


def test_key_material_next_to_the_file(parquet_testing):
    path = parquet_testing / "data" / "external_key_material_java.parquet.encrypted"
    report = check_file(path, decryption=numparq.KmsDecryption(MemoryKms()))
    assert report.errors == 0
    assert report.checked_counts["encrypted modules"] == 11
    (found,) = numparq.verify(path.read_bytes(), decryption=numparq.KmsDecryption(MemoryKms()))
    assert (found.check, "pass the path of the file" in found.message) == ("not-checked", True)


def test_prefixes_that_are_not_stored():
    content = numparq.to_parquet(
        pd.DataFrame({"a": [1]}),
        encryption=numparq.Encryption(b"f" * 16, aad_prefix=b"lake", store_aad_prefix=False),
    )
    (found,) = numparq.verify(content, decryption=numparq.Decryption(b"f" * 16))
    assert (found.check, found.message) == ("not-checked", "the AAD prefix is not stored in the file; pass aad_prefix=")
    assert numparq.verify(content, decryption=numparq.Decryption(b"f" * 16, aad_prefix=b"lake")) == []


def test_keys_of_another_kind_are_refused():
    with pytest.raises(TypeError, match=r"decryption must be a numparq\.Decryption"):
        numparq.verify(sound_file(False), decryption=b"f" * 16)
