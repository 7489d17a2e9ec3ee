"""Suffixes of files, and names of items with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import small_stores
from naive_nifti import nifti

import uqeval
from uqeval.disk.suffixes import OF_FILES, suffix_of, without_suffix
from uqeval.stores.item_folders import split_name
from uqeval.stores.store import open_store


@pytest.mark.parametrize(("name", "suffix"), [
    ("a.png", ".png"), ("b/a.PNG", ".png"), ("case.nii.gz", ".nii.gz"), ("Case.NII.GZ", ".nii.gz"),
    ("case.nii", ".nii"), ("a.old.npy", ".npy"), ("flow.flo", ".flo"),
    ("frame.01", ""), ("case.gz", ""), ("a.tar.gz", ""), ("a", ""), ("", ""), ("a.", ""),
    (".png", ""), ("b/.png", ""), (".nii.gz", ""), ("b/.nii.gz", ""), ("b.png/a", ""),
])  # fmt: skip
def test_suffixes(name: str, suffix: str) -> None:
    assert suffix_of(name) == suffix
    assert without_suffix(name, OF_FILES) == name[: len(name) - len(suffix)]
    assert split_name(name, OF_FILES)[1] == without_suffix(name, OF_FILES).rpartition("/")[2]


def test_a_flow_is_no_item() -> None:
    assert without_suffix("a.flo") == "a.flo"


@pytest.mark.parametrize("ends", [("", ".nii.gz"), (".nii.gz", ".nii.gz"), (".nii", ".nii.gz"),
                                  (".NII.GZ", ".nii")])  # fmt: skip
def test_names_may_have_the_suffixes_of_medical_images(
    ends: tuple[str, str], tmp_path: Path
) -> None:
    """As those of PNG files may."""
    labels = small_stores.labels(2)
    (tmp_path / "labels").mkdir()
    for k, own in enumerate(labels):
        data = nifti(own[None])
        packed = gzip.compress(data) if ends[1].endswith("gz") else data
        (tmp_path / "labels" / f"case_{1 - k}{ends[1]}").write_bytes(packed)
    names = np.array([f"case_{1 - k}{ends[0]}" for k in range(2)])
    np.savez(tmp_path / "p.npz", probs=small_stores.probs(2), names=names)
    np.savez(tmp_path / "l.npz", labels=labels)
    by_name, by_position = (
        uqeval.evaluate(tmp_path / "p.npz", tmp_path / own, "segmentation").results
        for own in ("labels", "l.npz")
    )
    assert by_name == by_position


@pytest.mark.parametrize("suffix", [".npz", ".NPZ"])
def test_suffixes_in_capitals(suffix: str, tmp_path: Path) -> None:
    with (tmp_path / f"p{suffix}").open("wb") as file:
        np.savez(file, probs=small_stores.probs(2))
    assert open_store(tmp_path / f"p{suffix}", role="predictions").arrays.keys() == {"probs"}


def test_frames_and_flow_with_suffixes_in_capitals(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "frames": rng.integers(0, 255, (3, 32, 32, 3)).astype(np.uint8),
        "flow": np.zeros((2, 32, 32, 2), np.float32),
        "predictions": rng.integers(0, 3, (3, 32, 32)).astype(np.uint8),
    }
    for name, own in arrays.items():
        with (tmp_path / f"{name}.NPY").open("wb") as file:
            np.save(file, own)
    report = uqeval.evaluate(
        tmp_path / "predictions.NPY", video=str(tmp_path / "frames.NPY"),
        flow_path=tmp_path / "flow.NPY", classes=3, metrics={"tc": {"flow": "file"}},
    )  # fmt: skip
    assert report.results["temporal"]["mtc"] is not None
