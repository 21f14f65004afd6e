"""Modes of the kernels of the text group."""

from __future__ import annotations

import pytest

from numparq.kernels.compile import fallback
from numparq.kernels.groups import import_group
from numparq.kernels.kernel_groups import text_kernels


@pytest.fixture(params=["object", "python"])
def text_mode(request):
    """Run a test with the compiled kernels, then with their Python functions."""
    assert text_kernels.distinct_types  # loads the whole group
    before = dict(text_kernels.__dict__)
    if request.param == "python":
        text_kernels.__dict__.update(fallback.python_functions(import_group("text")))
    yield request.param
    text_kernels.__dict__.clear()
    text_kernels.__dict__.update(before)
