"""Predictions of one class with and without an axis of classes."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from tensors import Labelled
from written import RNG, stored

from uqeval.errors import DataError
from uqeval.writer import PredictionWriter

#: Of the class, [item, sample, y, x].
STACK = RNG.random((2, 3, 4, 5)).astype(np.float16)


def writer(path: Path, samples: int, **options: Any) -> PredictionWriter:
    about = {"names": ["a", "b"], "samples": samples, "classes": 1, "size": (4, 5), **options}
    return PredictionWriter(path / "p.zarr", **about)


@pytest.mark.parametrize(("axes", "part"), [
    ("y x", STACK[:, 0]), ("x y", STACK[:, 0].swapaxes(1, 2)), ("time y x", STACK[:, :1]),
    ("sample y x", STACK[:, :1]), ("class y x", STACK[:, :1]),
    ("y item x", STACK[:, 0, :, None]), ("item band y x", STACK[:, :1, None]),
])  # fmt: skip
def test_one_sample_of_an_item(tmp_path: Path, axes: str, part: np.ndarray) -> None:
    with writer(tmp_path, 1) as own:
        for name, values in zip("ab", part, strict=True):
            assert own.add(name, Labelled(values, axes.split()))
    np.testing.assert_array_equal(np.stack(stored(tmp_path / "p.zarr")), STACK[:, :1, None])


def test_all_samples_and_batches(tmp_path: Path) -> None:
    with writer(tmp_path, 3, names=[*"abcd"]) as own:
        for t in range(3):
            batch = Labelled(STACK[:, t], ("time", "y", "x"), coords={"time": [0, 1]})
            refused(partial(own.add, "c", batch, sample=t), "has 2 items", error=DataError)
            assert own.add_batch(["c", "d"], batch, sample=t) == 2
        assert own.add("a", Labelled(STACK[0], ("sample", "y", "x")))
        assert own.add("b", Labelled(STACK[1:], ("item", "sample", "y", "x")))
    written = np.stack(stored(tmp_path / "p.zarr"))
    np.testing.assert_array_equal(written, np.concatenate([STACK, STACK])[:, :, None])


def test_what_stays_refused(tmp_path: Path) -> None:
    own = writer(tmp_path, 1)
    refused(lambda: own.add("a", STACK[0, 0]), "has the shape [4, 5], expected [1, 4, 5]")
    table = Labelled(STACK[0, 0], ("lines", "pixels"))
    refused(lambda: own.add("a", table), "has the shape [4, 5]", error=DataError)
    of_two = PredictionWriter(tmp_path / "q.zarr", names=["a"], samples=1, classes=2, size=(4, 5))
    refused(lambda: of_two.add("a", Labelled(STACK[0, :2], ("time", "y", "x"))), "has the axes")
