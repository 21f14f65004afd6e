"""Bounds count only if `column_orders` declares their order; files where it is missing, too short or unknown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq import ParquetFile, col
from numparq.expr.bind import bind
from numparq.format.open_file import OpenFile
from numparq.prune.match import predicate_may_match, predicate_must_match
from numparq.prune.statistics import column_order, row_group_statistics
from numparq.tools.profile.job import profile_files
from support.files.builder import extended_idl
from support.files.forged_metadata import FileParts
from support.oracles.match_one import may_match, must_match
from support.oracles.pruning import facts_of

GROUP, PAGE, ROWS = 40, 10, 160
FRAME = pd.DataFrame(
    {
        "n": np.arange(ROWS),
        "r": np.arange(ROWS) / 2,
        "b": np.arange(ROWS) >= 60,
        "u": np.arange(ROWS, dtype=np.uint32),
        "s": [f"{row:03}" for row in range(ROWS)],
        "e": pd.array([None] * 80 + [1] * 80, "Int64"),
    }
)
SIGNED = ("n", "r", "b", "e")  # deprecated bounds compare as signed
WANTED = {"n": 77, "r": 38.5, "b": True, "u": 77, "s": "077", "e": 1}


def types(parts: FileParts) -> list:
    return [extended_idl().ColumnOrder(TYPE_ORDER=extended_idl().TypeDefinedOrder()) for _ in parts.leaves]


# Ways in which a file does not declare its column orders.
UNDECLARED: dict[str, Callable[[FileParts], list | None]] = {
    "none": lambda parts: None,
    "empty": lambda parts: [],
    "one too few": lambda parts: types(parts)[1:],
    "one too many": lambda parts: [*types(parts), *types(parts)[:1]],
    "unknown": lambda parts: [extended_idl().ColumnOrder() for _ in parts.leaves],
}


def stored(orders: Callable[[FileParts], list | None] = types, lie: bool = False, deprecated: bool = False) -> bytes:
    """Return a file of four row groups with four pages each; false bounds exclude nearly all values."""
    options = {"index": False, "row_group_size": GROUP, "max_rows_per_page": PAGE, "use_dictionary": False}
    parts = FileParts(numparq.to_parquet(FRAME, **options))
    parts.footer.column_orders = orders(parts)
    for group, place, chunk in parts.chunks():
        about, index = chunk.meta_data.statistics, parts.indexes[group, place]["ColumnIndex"]
        if deprecated:
            about.min, about.max = about.min_value, about.max_value
        if lie and about.min_value is not None:
            about.max_value = about.min_value
            index.max_values = list(index.min_values)
    return parts.data()


def rows_left(data: bytes, expression: object) -> int:
    """Return the number of rows left after pruning."""
    with ParquetFile(data) as file:
        return file.plan(filters=expression).num_rows


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", UNDECLARED)
@pytest.mark.parametrize("name", WANTED)
def test_false_bounds_without_order_are_ignored(how, name):
    data = stored(UNDECLARED[how], lie=True)
    expected = FRAME[FRAME[name] == WANTED[name]]["n"].tolist()
    for expression in (col(name) == WANTED[name], col(name).isin([WANTED[name]]), ~(col(name) != WANTED[name])):
        assert numparq.read_parquet(data, filters=expression)["n"].tolist() == expected
    # The same rows from one row group at a time, which takes the look-up path.
    with ParquetFile(data) as file:
        for _ in range(2):
            found = [file.read(filters=[(name, "=", WANTED[name])], row_groups=[group])["n"] for group in range(4)]
            assert np.concatenate(found).tolist() == expected


@pytest.mark.parametrize("how", UNDECLARED)
def test_bounds_without_order_do_not_prune(how):
    truths, lies = stored(UNDECLARED[how]), stored(UNDECLARED[how], lie=True)
    for name, wanted in WANTED.items():
        assert rows_left(stored(), col(name) == wanted) < ROWS
        nulls = 80 if name == "e" else 0  # null counts still prune all-null row groups
        assert rows_left(truths, col(name) == wanted) == rows_left(lies, col(name) == wanted) == ROWS - nulls
    for data in (truths, lies):
        assert rows_left(data, col("e").is_null()) == 80
        assert rows_left(data, col("n").is_null()) == 0


@pytest.mark.parametrize("lie", [False, True])
@pytest.mark.parametrize("how", UNDECLARED)
def test_deprecated_bounds_prune_signed_columns(how, lie):
    """Only signed columns have valid deprecated bounds; column indexes have no deprecated bounds."""
    truths = stored(UNDECLARED[how], deprecated=True)
    data = stored(UNDECLARED[how], lie=lie, deprecated=True)
    for name, wanted in WANTED.items():
        expected = FRAME[FRAME[name] == wanted]["n"].tolist()
        assert numparq.read_parquet(data, filters=[(name, "=", wanted)])["n"].tolist() == expected
        rows = len({row // GROUP for row in expected}) * GROUP if name in SIGNED else ROWS
        assert rows_left(data, col(name) == wanted) == rows_left(truths, col(name) == wanted) == rows


def test_unknown_order_of_one_column_spares_others():
    def orders(parts):
        return [extended_idl().ColumnOrder(), *types(parts)[1:]]

    data = stored(orders)
    assert rows_left(data, col("n") == 77) == ROWS
    assert rows_left(data, col("r") == 38.5) == PAGE
    data = stored(orders, deprecated=True)
    assert rows_left(data, col("n") == 77) == GROUP
    assert rows_left(data, col("s") == "077") == PAGE


def test_null_pages_need_no_order():
    def halves(orders):
        frame = pd.DataFrame({"e": pd.array([None] * 40 + [1] * 40, "Int64")})
        parts = FileParts(numparq.to_parquet(frame, index=False, max_rows_per_page=PAGE))
        parts.footer.column_orders = orders(parts)
        return parts.data()

    for orders in (types, *UNDECLARED.values()):
        assert rows_left(halves(orders), col("e").is_not_null()) == rows_left(halves(orders), col("e").is_null()) == 40


def test_nan_counts_need_no_order():
    pa = pytest.importorskip("pyarrow")
    numbers = pa.array([np.nan, np.nan, 1.0, 2.0], from_pandas=False)
    parts = FileParts(numparq.to_parquet(pd.DataFrame({"r": pd.arrays.ArrowExtensionArray(numbers)}), row_group_size=2))
    for orders in (types, *UNDECLARED.values()):
        parts.footer.column_orders = orders(parts)
        data = parts.data()
        assert rows_left(data, col("r") > 1.5) == 2
        found = numparq.read_parquet(data, filters=~(col("r") <= 1))["r"].to_numpy(float)
        assert np.isnan(found).tolist() == [True, True, False]
    frame = pd.DataFrame({"r": pd.arrays.ArrowExtensionArray(numbers)})
    parts = FileParts(numparq.to_parquet(frame, max_rows_per_page=2, column_order="ieee754"))
    for orders in (types, *UNDECLARED.values()):
        parts.footer.column_orders = orders(parts)
        assert rows_left(parts.data(), col("r") > 1.5) == 2


def test_fastparquet_files_are_pruned(tmp_path):
    """fastparquet writes only the deprecated bounds, and no column orders."""
    fastparquet = pytest.importorskip("fastparquet")
    place = tmp_path / "f.parquet"
    fastparquet.write(str(place), FRAME.drop(columns="e"), row_group_offsets=GROUP, stats=True)
    with ParquetFile(place) as file:
        assert file.metadata.column_orders is None
        assert file.metadata.row_groups[0].columns[0].meta_data.statistics.min_value is None
    data = place.read_bytes()
    assert [rows_left(data, col(name) == WANTED[name]) for name in ("n", "r", "u", "s")] == [GROUP, GROUP, ROWS, ROWS]
    for name in ("n", "r", "b", "u", "s"):
        found = numparq.read_parquet(data, filters=[(name, "=", WANTED[name])])["n"].tolist()
        assert found == FRAME[FRAME[name] == WANTED[name]]["n"].tolist()


@pytest.mark.parametrize("data", [False, "auto", True])
@pytest.mark.parametrize("how", UNDECLARED)
def test_profile_ignores_bounds_without_order(tmp_path, how, data):
    """Such bounds are not reported as wrong; the profile reads the values if it may."""
    (tmp_path / "f.parquet").write_bytes(stored(UNDECLARED[how], lie=True))
    found = profile_files(tmp_path, data=data)
    assert found["e"].nulls == 80
    assert not found.troubles
    bounds = {name: (found[name].min, found[name].max) for name in ("n", "r", "u", "s")}
    highest = {name: FRAME[name].max() for name in bounds}
    assert bounds == {name: (FRAME[name].min(), high) if data else (None, None) for name, high in highest.items()}


@pytest.mark.parametrize("how", UNDECLARED)
def test_append_to_file_without_orders_writes_no_bounds(tmp_path, how):
    """The specification forbids bounds without orders, and bounds in our order would be wrong for an unknown one."""
    place = tmp_path / "f.parquet"
    place.write_bytes(stored(UNDECLARED[how]))
    numparq.to_parquet(FRAME, place, index=False, append=True)
    with ParquetFile(place) as file:
        groups = file.metadata.row_groups
        assert len(groups) == 5
        assert groups[0].columns[0].meta_data.statistics.min_value is not None
        for chunk in groups[4].columns:
            about = chunk.meta_data.statistics
            assert (about.min_value, about.max_value, about.min, about.max) == (None,) * 4
            assert about.null_count is not None
            assert chunk.column_index_offset is None
        assert file.read().equals(pd.concat([FRAME, FRAME], ignore_index=True))
    assert numparq.read_parquet(place, filters=[("n", "=", 77)])["s"].tolist() == ["077"] * 2


# --- vectorized against one chunk at a time ---------------------------------------------------------------------------

KINDS = {"INT64": "<i8", "DOUBLE": "<f8", "BOOLEAN": "?", "UINT32": "<u4"}


def random_file(rng: np.random.Generator, kind: str) -> bytes:
    """Return a file of many one-row row groups with arbitrary statistics; the values are never read."""
    dtype = np.dtype(KINDS[kind])
    parts = FileParts(
        numparq.to_parquet(
            pd.DataFrame({"a": np.zeros(12, dtype)}),
            index=False,
            row_group_size=1,
            column_order=str(rng.choice(["type", "ieee754"])),
        )
    )
    odd = [np.nan, -np.nan, np.inf, -np.inf] if dtype.kind == "f" else []
    least, behind = {"b": (0, 2), "u": (0, 4)}.get(dtype.kind, (-2, 4))
    # One zero per file: bounds with both signs are unordered by total order, but equal by type order.
    numbers = [*odd, *(number or float(rng.choice([-0.0, 0.0])) for number in range(least, behind))]

    def bound() -> bytes | None:
        plain = np.array(numbers[int(rng.integers(len(numbers)))]).astype(dtype).tobytes()
        return (None, None, plain, plain, plain, plain, plain[1:], b"")[int(rng.integers(8))]

    if rng.random() < 0.7:
        parts.footer.column_orders = UNDECLARED[str(rng.choice(list(UNDECLARED)))](parts)
    parts.footer.created_by = str(rng.choice(["somebody", "parquet-cpp version 1.3.1", "Polars", "parquet-mr"]))
    only_old = rng.random() < 0.3
    for _, _, chunk in parts.chunks():
        about = chunk.meta_data.statistics
        about.min, about.max = bound(), bound()
        about.min_value, about.max_value = (None, None) if only_old and rng.random() < 0.8 else (bound(), bound())
        about.null_count, about.nan_count = (None if rng.random() < 0.5 else int(rng.integers(-1, 3)) for _ in "ab")
        about.is_min_value_exact, about.is_max_value_exact = ((None, False, True)[int(rng.integers(3))] for _ in "ab")
    return parts.data()


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_vectorized_statistics_match_one_by_one(kind):
    rng = np.random.default_rng(5)
    a = col("a")
    if kind == "BOOLEAN":
        questions = [a == True, a == False, a != True, a.is_null(), a.is_not_null()]  # noqa: E712
    else:
        questions = [a == 0, a > 1, a < 1, a != 2, ~(a > 2), a.isin([-1, 3]), a.is_null(), a.is_not_null()]
    outcomes: set[tuple[bool, bool]] = set()
    for _ in range(40):
        file = OpenFile(random_file(rng, kind))
        (leaf,) = file.schema
        order, groups = column_order(file.footer, leaf), file.metadata.row_groups
        containers = row_group_statistics(file.footer, leaf, range(len(groups)))
        for question in questions:
            bound = bind(question, file.schema)
            vectorized = list(
                zip(
                    predicate_may_match(bound, containers).tolist(),
                    predicate_must_match(bound, containers).tolist(),
                    strict=True,
                )
            )
            one_by_one = []
            for place, group in enumerate(groups):
                about = group.columns[0].meta_data
                facts = {0: facts_of(about.statistics, about.num_values, leaf, order, file.footer.created_by)}
                one_by_one.append((may_match(bound, facts), must_match(bound, facts)))
                same = {0: containers.container(place)}
                assert (may_match(bound, same), must_match(bound, same)) == one_by_one[-1]
            assert vectorized == one_by_one
            outcomes |= set(vectorized)
    assert outcomes == {(True, False), (False, False), (True, True)}


def test_statistics_of_one_chunk_as_another_type():
    with ParquetFile(numparq.to_parquet(FRAME)) as file:
        leaf = file.schema.leaf(FRAME.columns.get_loc("u"))
        signed = replace(leaf, logical=None)
        kinds = [row_group_statistics(file._file.footer, one, [0]).order.kind for one in (leaf, signed, leaf)]
    assert kinds == ["unsigned", "signed", "unsigned"]
