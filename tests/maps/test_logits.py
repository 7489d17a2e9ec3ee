"""Probabilities of logits: the same bits for any layout of the store, and several items at once."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from uqeval.errors import DataError
from uqeval.inputs import InputOptions, open_inputs

AXES = ("item", "sample", "class", "y", "x")
NAMES = ("prediction", "confidence", "mean_probs", "entropy")


def maps_of(given: Any) -> dict[str, Any]:
    """The maps [item, …] of a store."""
    source = open_inputs(given, None, InputOptions()).source
    source.want(NAMES)
    items = [maps for batch in source.batches() for maps in source.read(batch)]
    return {name: np.stack([maps[name] for maps in items]) for name in NAMES}


def stored(path: Path, logits: Any, order: tuple[int, ...], chunks: tuple[int, ...]) -> str:
    """A Zarr group with the axes of `logits` in this order."""
    values = logits.transpose(order)
    array = zarr.create_group(str(path)).create_array(
        "logits", shape=values.shape, dtype=values.dtype, chunks=chunks,
        dimension_names=[AXES[k] for k in order], config={"write_empty_chunks": True},
    )  # fmt: skip
    array[...] = values
    return str(path)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_layout_of_a_store_does_not_change_the_bits(dtype: str, tmp_path: Path) -> None:
    shape = (2, 2, 19, 6, 5)
    logits = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    expected = maps_of({"logits": logits})
    class_last, class_first = (0, 1, 3, 4, 2), (0, 1, 2, 3, 4)
    for k, (order, chunks) in enumerate(
        (
            (class_last, (1, 2, 6, 5, 19)),
            (class_last, (1, 1, 2, 3, 19)),
            (class_first, (1, 2, 19, 1, 1)),
            (class_first, (1, 2, 3, 1, 2)),
        )
    ):
        found = maps_of(stored(tmp_path / str(k), logits, order, chunks))
        for name in NAMES:
            assert np.array_equal(found[name], expected[name]), (order, chunks, name)


def test_items_of_one_pixel_have_the_bits_of_the_same_pixels_in_an_image() -> None:
    logits = (np.random.default_rng(1).normal(size=(1, 3, 40, 4, 5)) * 3).astype("f4")
    expected = maps_of({"logits": logits})
    pixels = logits[0].reshape(3, 40, 20).transpose(2, 0, 1)[..., None, None]
    found = maps_of({"logits": np.ascontiguousarray(pixels)})
    for name in NAMES:
        image = np.moveaxis(found[name][..., 0, 0], 0, -1)
        assert np.array_equal(image.ravel(), expected[name].ravel()), name


def test_probabilities_of_one_pixel_that_are_called_logits() -> None:
    """One item has too few pixels to tell, so the message names the items that were joined."""
    pixels = np.random.default_rng(1).dirichlet(np.ones(3), (40, 1)).astype("f4")
    with pytest.raises(DataError, match=r"items 0 to 39: the logits look like probabilities"):
        maps_of({"logits": pixels})


@pytest.mark.parametrize(("dtype", "most"), [("f4", 3e38), ("f8", 1.7e308)])
def test_logits_whose_difference_overflows(dtype: str, most: float) -> None:
    logits = np.zeros((1, 2, 3, 4, 5), dtype)
    logits[:, :, 0], logits[:, :, 1] = most, -most
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        maps = maps_of({"logits": logits})
    assert (maps["mean_probs"] == np.array([1, 0, 0])[:, None, None]).all()
    assert (maps["entropy"] == 0).all()
