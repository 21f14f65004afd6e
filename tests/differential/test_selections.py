"""Any selection equals the full read followed by take, over a covering array of files, sources and reads."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext

import numpy as np
import pandas as pd
import pytest

import numparq
from numparq.io import local_source
from numparq.prune import index_reader, page_headers, planner
from support.differential.axes import ALL_CODECS, AXES, is_valid
from support.differential.covering import covering_array
from support.differential.files import MatrixFiles, frame_of, stored, write_files
from support.differential.selections import Selection, selections
from support.filters.reads import assert_frames_equal
from support.row_selection import small_read_sizes

QUICK_PARTS, SLOW_PARTS = 5, 8
BACKENDS = {"nullable": "numpy_nullable", "pyarrow": "pyarrow"}
TINY = {"WINDOW_BYTES": 300, "BATCH_BYTES": 200, "MIN_RUN_BYTES": 100, "MAX_COALESCED_BYTES": 225}


def read_options(case):
    options = {"threads": int(case["threads"])}
    if case["output"] in BACKENDS:
        options["dtype_backend"] = BACKENDS[case["output"]]
    if case["output"] == "category":
        options["categories"] = ["x"]
    return options


def without_categories(frame):
    """Return the frame with the values of a Categorical: which categories there are depends on the rows read."""
    names = [name for name in frame if isinstance(frame[name].dtype, pd.CategoricalDtype)]
    return frame.astype(dict.fromkeys(names, object)) if names else frame


class CaseReader:
    """Reads of one case, compared with the full read."""

    def __init__(self, case, files: MatrixFiles, where) -> None:
        self.case = case
        self.files = files
        self.where = where
        self.options = read_options(case)

    def read(self, **options):
        return numparq.read_parquet(**self.where, **self.options, **options)

    def check(self, shapes) -> None:
        whole = self.expected_frame()
        for number, selection in enumerate(shapes):
            columns = None if number % 2 == 0 else ["x"]
            try:
                self.check_selection(selection, columns, whole)
            except Exception as error:
                error.add_note(f"{selection.name}, columns={columns}")
                raise
        if self.files.damage is not None and self.case["files"] == "one":
            self.check_skip(whole)

    def expected_frame(self):
        """Return the frame that pyarrow makes of the rows written; without damage the full read must equal it."""
        wanted = frame_of(self.files.table, self.case["output"])
        if self.files.damage is None:
            whole = self.read()
            if self.case["output"] == "category":
                assert isinstance(whole["x"].dtype, pd.CategoricalDtype)
            assert_frames_equal(without_categories(whole), without_categories(wanted), loose=True)
            return whole
        return wanted

    def check_selection(self, selection: Selection, columns, whole) -> None:
        options = {**selection.options, **({} if columns is None else {"columns": columns})}
        damage = self.files.damage
        try:
            got = self.read(**options)
        except numparq.ParquetError as error:
            if damage is None or not (selection.reads_x or np.isin(damage.group_rows, selection.rows).any()):
                raise
            self.check_place(error)
            return
        if damage is not None:
            assert damage.page_rows is None or not np.isin(damage.page_rows, selection.rows).any(), "damage not seen"
            assert len(selection.rows) < len(whole), "damage not seen"
        expected = whole.take(selection.rows).reset_index(drop=True)
        if columns is not None:
            expected = expected[columns]
        assert_frames_equal(without_categories(got), without_categories(expected), loose=True)
        # Without null counts NumPy dtypes depend on the nulls among the rows.
        has_counts = self.case["index"] != "neither" or self.case["output"] in BACKENDS
        if damage is None and "filters" in options and has_counts and self.case["output"] != "category":
            assert got.dtypes.tolist() == expected.dtypes.tolist()

    def check_place(self, error) -> None:
        damage = self.files.damage
        assert error.where["row_group"] == damage.row_group
        assert error.where["column"].split(".")[0] == "x"
        assert damage.file == 0 or error.where["file"].endswith(f"{damage.file:02}.parquet")

    def check_skip(self, whole) -> None:
        """Reading on over damage: other row groups are whole, and the rows that are left are right."""
        got, damage = self.read(on_error="skip"), self.files.damage
        assert got.attrs.pop("numparq.lost")
        rows = got.index.to_numpy()
        if "x" not in got:  # all of its rows are lost
            assert damage.group_rows == range(len(whole))
            return
        others = np.setdiff1d(np.arange(len(whole)), damage.group_rows)
        assert np.isin(others, rows).all()
        assert damage.page_rows is None or not np.isin(damage.page_rows, rows).any()
        assert_frames_equal(
            without_categories(got).reset_index(drop=True),
            without_categories(whole.take(rows)).reset_index(drop=True),
            loose=True,
        )


@contextmanager
def small_page_tables(case):
    """Walk over the headers of the smallest chunks and pages, and keep tables of files as if these were older.

    No dictionary page is too small to be skipped.
    """
    with pytest.MonkeyPatch.context() as patch:
        if case["sizes"] == "tiny":
            patch.setattr(index_reader, "MIN_CHUNK_BYTES", 0)
            patch.setattr(page_headers, "_MIN_PAGE_BYTES", 0)
            patch.setattr(planner, "_LARGE_DICTIONARY", 0)
        if case["cache"] != "replaced":
            patch.setattr(local_source, "SETTLED_NS", 0)
        yield


def check_case(case, folder, step=1, first=0) -> None:
    with small_page_tables(case):
        check_selections(case, folder, step, first)


def check_selections(case, folder, step, first) -> None:
    files = write_files(case)
    shapes = selections(files.table, case["nesting"] == "flat")[first % step :: step]
    with stored(case, folder) as put, small_read_sizes(**TINY) if case["sizes"] == "tiny" else nullcontext():
        if case["cache"] == "replaced":
            before = write_files({**case, "damage": "whole"}, shift=1)
            CaseReader(case, before, put(before.contents)).check(shapes[:2])
        reader = CaseReader(case, files, put(files.contents))
        reader.check(shapes)
        if case["cache"] == "warm":
            reader.check(shapes[::3])


def check_cases(cases, folder, step=1) -> None:
    for number, case in enumerate(cases):
        place = folder / str(number)
        place.mkdir()
        try:
            check_case(case, place, step, number)
        except Exception as error:
            error.add_note(f"case {case}")
            raise


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize("part", range(QUICK_PARTS))
def test_pairs(part, tmp_path):
    """All pairs of values of any two axes; each file serves two selections, another file the next ones."""
    check_cases(covering_array(AXES, 2, is_valid)[part::QUICK_PARTS], tmp_path, step=7)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(QUICK_PARTS))
def test_pairs_and_all_selections(part, tmp_path):
    check_cases(covering_array(AXES, 2, is_valid)[part::QUICK_PARTS], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLOW_PARTS))
def test_triples(part, tmp_path):
    """All values of any three axes."""
    check_cases(covering_array(ALL_CODECS, 3, is_valid)[part::SLOW_PARTS], tmp_path, step=5)
