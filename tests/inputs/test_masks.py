"""Arrays with the name of a mask that excludes no pixels: a warning, not silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenes import zarr_group
from small_videos import save_store, video

import uqeval
from uqeval.errors import UqevalError
from uqeval.usecases.verify.verifying import verify

RNG = np.random.default_rng(0)
MASK = np.ones((2, 6, 8), bool)


def numbers(**arrays: Any) -> dict[str, Any]:
    mean = RNG.random((2, 6, 8))
    return {"mean": mean, "std": mean + 0.1, "target": mean + 0.1, **arrays}


def warned(report: uqeval.Report) -> list[str]:
    return [text for text in report.warnings if "excludes no pixels" in text]


@pytest.mark.parametrize("name", ["mask", "eval_mask", "masks", "valid_mask", "ignore"])
def test_a_mask_of_numbers_that_is_not_read(name: str) -> None:
    stored = numbers(**{name: MASK})
    (text,) = warned(uqeval.evaluate(stored, None, "regression"))
    assert f"the array {name} is not read" in text and "`valid`" in text


def test_masks_that_are_read() -> None:
    assert not warned(uqeval.evaluate(numbers(valid=MASK), None, "regression"))
    regions = uqeval.evaluate(numbers(mask=MASK), None, "regression", region=["map:mask:1"])
    assert not warned(regions)
    assert not warned(uqeval.evaluate(numbers(validation_error=MASK), None, "regression"))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("i8", (0, 1)),
        ("u1", (0, 255)),
        ("i2", (0, 255)),
        ("f2", (0, 1)),
        ("f4", (np.nan, 1)),
        ("f2", (0, 255)),
        ("f4", (np.nan, 255)),
    ],
)
def test_values_of_a_mask(dtype: str, values: Any) -> None:
    stored = numbers()
    mask = RNG.random(MASK.shape) < 0.7
    expected = uqeval.evaluate(stored | {"valid": mask}, None, "regression").results
    given = np.where(mask, values[1], values[0]).astype(dtype)
    assert uqeval.evaluate(stored | {"valid": given}, None, "regression").results == expected


@pytest.mark.parametrize("name", ["_FillValue", "missing_value", "invalid"])
def test_fill_values_of_a_mask_are_false(tmp_path: Path, name: str) -> None:
    """An item of 255 was valid everywhere."""
    stored = numbers()
    stored["target"][1] += 9
    mask = np.stack([RNG.random(MASK.shape[1:]) < 0.7, np.zeros(MASK.shape[1:], bool)])
    expected = uqeval.evaluate(stored | {"valid": mask}, None, "regression").results
    valid = np.where(mask, 1, 255).astype("u1"), {"attributes": {name: 255}}
    path = zarr_group(tmp_path / "r.zarr", stored | {"valid": valid})
    report = uqeval.evaluate(path, None, "regression", states=tmp_path / "s.zip")
    assert report.results == expected
    report.save(tmp_path / "r.json")
    found = verify(tmp_path / "r.json", [path], everything=True)
    assert found.passed, found.problems()
    other = zarr_group(tmp_path / "other.zarr", stored | {"valid": mask})
    assert (
        uqeval.evaluate([path, other], None, "regression").results["regression"]["pixels"]
        == (expected["regression"]["pixels"])
    )


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((0.1, 0.9), "first is 0.9 at row 0, column 0"),
        ((-1, 1), "first is -1 at row 2, column 3"),
        ((255, 1), "first is 255 at row 2, column 3"),
        ((0, 2), "first is 2 at row 0, column 0"),
        (("False", "True"), "expected bool"),
    ],
)
def test_values_that_are_no_mask(tmp_path: Path, values: Any, says: str) -> None:
    """Each was true before, so that all pixels were evaluated."""
    mask = MASK.copy()
    mask[1, 2, 3] = mask[0, 2, 3] = False
    stored = numbers(valid=np.where(mask, values[1], values[0]))
    np.savez(tmp_path / "r.npz", **stored)
    for given in (stored, tmp_path / "r.npz"):
        with pytest.raises(UqevalError, match=says):
            uqeval.evaluate(given, None, "regression")


def test_a_mask_of_classes() -> None:
    probs = RNG.dirichlet(np.ones(3), (2, 6, 8)).transpose(0, 3, 1, 2).astype("f4")
    stored = {"probs": probs, "labels": np.zeros((2, 6, 8), np.uint8), "valid": MASK}
    (text,) = warned(uqeval.evaluate(stored, None, "segmentation"))
    assert "the array valid is not read" in text and "(ignore_index)" in text


def test_a_mask_of_a_video(tmp_path: Path) -> None:
    """In the store of predictions, or of labels."""
    own = video()
    ids, mask = own.stack("predictions"), np.ones_like(own.stack("predictions"))
    frames = save_store(tmp_path / "frames.zarr", own.names, frames=own.stack("frames"))
    plain = save_store(tmp_path / "plain.zarr", own.names, predictions=ids)
    masked = save_store(tmp_path / "masked.zarr", own.names, predictions=ids, mask=mask)
    truth = save_store(tmp_path / "truth.zarr", own.names, labels=ids, eval_mask=mask)
    (text,) = warned(uqeval.evaluate(masked, None, "tc", video=frames))
    assert "masked.zarr: the array mask is not read" in text and "void id" in text
    (text,) = warned(uqeval.evaluate(plain, truth, "tc", video=frames))
    assert "truth.zarr: the array eval_mask is not read" in text
    assert not warned(uqeval.evaluate(plain, None, "tc", video=frames))


@pytest.mark.parametrize("name", ["mask", "valid"])
def test_a_mask_beside_the_frames_of_a_video(name: str, tmp_path: Path) -> None:
    """In a store of frames alone, and once in a store of everything."""
    own = video()
    ids, mask = own.stack("predictions"), np.ones_like(own.stack("predictions"))
    arrays = {"frames": own.stack("frames"), name: mask}
    frames = save_store(tmp_path / "frames.zarr", own.names, **arrays)
    plain = save_store(tmp_path / "plain.zarr", own.names, predictions=ids)
    (text,) = warned(uqeval.evaluate(plain, None, "tc", video=frames))
    assert f"frames.zarr: the array {name} is not read" in text and "void id" in text
    np.savez(tmp_path / "frames.npz", names=own.names, **arrays)
    (text,) = warned(uqeval.evaluate(plain, None, "tc", video=tmp_path / "frames.npz"))
    assert f"frames.npz: the array {name} is not read" in text
    whole = save_store(tmp_path / "all.zarr", own.names, predictions=ids, **arrays)
    (text,) = warned(uqeval.evaluate(None, None, "tc", video=whole))
    assert f"all.zarr: the array {name} is not read" in text
