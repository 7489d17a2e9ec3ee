"""Chunks that hold nothing but the fill value, such as labels of a void image, are written.

Readers refuse missing chunks, so a store without them cannot be evaluated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from written import NAMES, STACK

import uqeval
from uqeval.inputs import InputOptions, open_inputs
from uqeval.usecases.convert import convert
from uqeval.usecases.reduce import reduce

LABELS = np.random.default_rng(1).integers(0, 3, (3, 6, 10)).astype("u1")
LABELS[0] = 255
ARRAYS = {"probs": STACK, "labels": LABELS}


def reduced(path: Path) -> Any:
    return reduce(open_inputs(ARRAYS, None, InputOptions(names=list(NAMES))), path / "m.zarr")


def converted(path: Path) -> Any:
    np.save(path / "p.npy", STACK)
    np.save(path / "l.npy", LABELS)
    convert(path / "p.npy", path / "c.zarr", labels=path / "l.npy", names=NAMES)
    return path / "c.zarr"


@pytest.mark.parametrize("store", [reduced, converted])
def test_a_store_with_a_void_image_is_evaluated(
    tmp_path: Path, store: Callable[[Path], Any]
) -> None:
    expected = uqeval.evaluate(ARRAYS, metrics="calibration", names=list(NAMES), workers=1)
    found = uqeval.evaluate(str(store(tmp_path)), metrics="calibration", workers=1)
    assert found.results == expected.results and found.items == expected.items


def test_an_evaluator_whose_first_image_is_void() -> None:
    expected = uqeval.evaluate(ARRAYS, metrics="calibration", names=list(NAMES), workers=1)
    with uqeval.Evaluator("calibration") as evaluator:
        evaluator.update(STACK, LABELS, NAMES)
        found = evaluator.report(workers=1)
    assert found.results == expected.results and found.items == expected.items


def test_targets_of_an_image_without_measurements(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    mean, std = rng.normal(size=(2, 4, 5)), rng.uniform(0.5, 1, (2, 4, 5))
    target = np.stack([np.full((4, 5), np.nan), mean[1] + 0.1])
    arrays = {"mean": mean, "std": std, "target": target}
    np.savez(tmp_path / "r.npz", **arrays)
    convert(tmp_path / "r.npz", tmp_path / "r.zarr")
    found = uqeval.evaluate(str(tmp_path / "r.zarr"), metrics="regression", workers=1)
    assert found.results == uqeval.evaluate(arrays, metrics="regression", workers=1).results
