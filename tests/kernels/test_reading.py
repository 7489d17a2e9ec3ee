"""Many runs of a file in one call: the same bytes as one by one, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uqeval.errors import StoreError
from uqeval.kernels.reading import read_runs
from uqeval.stores.file_values import _MANY, FileValues

CONTENT = np.random.default_rng(0).integers(0, 256, 5000, np.uint8)


@pytest.fixture(scope="module")
def descriptor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path = tmp_path_factory.mktemp("reading") / "file"
    path.write_bytes(CONTENT.tobytes())
    opened = os.open(path, os.O_RDONLY)
    yield opened
    os.close(opened)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 5100), max_size=20), st.integers(1, 300))
def test_runs(descriptor: int, begins: list[int], count: int) -> None:
    values = np.full((len(begins), count), 7, np.uint8)
    whole = read_runs(descriptor, np.array(begins, np.int64), values)
    expected = next((i for i, b in enumerate(begins) if b + count > CONTENT.size), len(begins))
    assert whole == expected
    for begin, run in zip(begins[:whole], values, strict=False):
        assert (run == CONTENT[begin : begin + count]).all()
    assert (values[whole + 1 :] == 7).all()


def test_what_cannot_be_read(descriptor: int) -> None:
    values = np.zeros((2, 4), np.uint8)
    assert read_runs(descriptor, np.array([0, 2**62]), values) == 1
    assert read_runs(2**20, np.array([0, 0]), values) == 0  # no such descriptor


@pytest.mark.parametrize("rows", [_MANY - 1, _MANY, 3 * _MANY])
def test_a_box_of_a_file(tmp_path: Path, rows: int) -> None:
    stored = np.random.default_rng(1).random((rows, 20, 100))
    stored.tofile(tmp_path / "a")
    values = FileValues(str(tmp_path / "a"), "a", stored.shape, stored.dtype)
    box = np.s_[0:rows, 3:5, 0:100]
    np.testing.assert_array_equal(values.read(box), stored[box])
    os.truncate(tmp_path / "a", stored.nbytes - 15 * 800 - 1)  # in the last run
    with pytest.raises(StoreError, match="a changed while it was read"):
        values.read(box)
