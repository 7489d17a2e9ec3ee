"""NIfTI files of class ids: what SimpleITK and nnU-Net write, and damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_nifti import nifti
from PIL import Image

from uqeval import evaluate
from uqeval.errors import StoreError
from uqeval.stores.files.nifti import open_nifti
from uqeval.stores.store import open_store

IDS = np.arange(24, dtype="u1").reshape(2, 3, 4)


def saved(path: Path, data: bytes) -> str:
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.mark.parametrize("end", [".nii", ".nii.gz"])
@pytest.mark.parametrize(("code", "dtype"), [(2, "u1"), (4, "i2"), (8, "i4"), (512, "u2")])
@pytest.mark.parametrize("order", "<>")
def test_reads_every_region(tmp_path: Path, end: str, code: int, dtype: str, order: str) -> None:
    ids = IDS.astype(dtype)
    array = open_nifti(saved(tmp_path / f"a{end}", nifti(ids, code, order)))
    assert array.shape == (2, 3, 4) and array.dtype == np.dtype(dtype)
    for region in (np.s_[:, :, :], np.s_[1:2, 0:2, 1:3]):
        assert np.array_equal(array.read(region), ids[region])


def test_reads_what_simpleitk_writes(tmp_path: Path) -> None:
    itk = pytest.importorskip("SimpleITK")
    for end in (".nii", ".nii.gz"):
        itk.WriteImage(itk.GetImageFromArray(IDS), str(tmp_path / f"a{end}"))
        assert np.array_equal(open_nifti(str(tmp_path / f"a{end}")).read(np.s_[:, :, :]), IDS)


@pytest.mark.parametrize("scale", [(0, 0), (1, 0), (float("nan"), float("nan"))])
def test_no_scale_however_it_is_said(tmp_path: Path, scale: tuple[float, float]) -> None:
    path = saved(tmp_path / "a.nii", nifti(IDS, scale=scale, sizes=(4, 3, 2, 1)))
    assert open_nifti(path).shape == IDS.shape


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"magic": b"ni1\0"}, "is not a NIfTI-1 file"),
        ({"code": 16, "bits": 32}, r"holds float32; labels are integers.*s\.sitkUInt8"),
        ({"code": 4242}, "holds NIfTI type 4242"),
        ({"bits": 16}, "gives 16 bits to values of"),
        ({"scale": (2.0, 0.0)}, "scaled values .slope 2, intercept 0."),
        ({"scale": (1.0, 5.0)}, "scaled values .slope 1, intercept 5."),
        ({"sizes": (4, 3, 2, 2)}, "has the sizes .* of 4 axes"),
        ({"sizes": (4, -3, 2)}, "has the sizes"),
        ({"axes": 9}, "has the sizes"),
        ({"axes": -1}, "has the sizes"),
        ({"offset": 0}, "values at byte 0"),
        ({"offset": float("nan")}, "values at byte nan"),
        ({"offset": 352.5}, "values at byte 352.5"),
        ({"sizes": (32767, 32767, 32767)}, "too few or too many"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [".nii", ".nii.gz"])
def test_headers_that_are_refused(
    tmp_path: Path, change: dict[str, Any], says: str, end: str
) -> None:
    with pytest.raises(StoreError, match=says):
        open_nifti(saved(tmp_path / f"a{end}", nifti(IDS, **change)))


@pytest.mark.parametrize("cut", [0, 1, 100, 347, 360, 375])
def test_files_that_are_cut_short(tmp_path: Path, cut: int) -> None:
    for end in (".nii", ".nii.gz"):
        with pytest.raises(StoreError, match=r"(?i)copy or save it again|is not a NIfTI-1"):
            open_nifti(saved(tmp_path / f"a{end}", nifti(IDS)[:cut])).read(np.s_[:, :, :])


def test_packed_files_that_are_damaged_or_too_long(tmp_path: Path) -> None:
    data = gzip.compress(nifti(IDS))
    path = tmp_path / "a.nii.gz"
    for bad in (
        data[:-6],
        data[:40],
        data[:-5] + b"\0" + data[-4:],
        gzip.compress(nifti(IDS) + b"1"),
    ):
        path.write_bytes(bad)
        with pytest.raises(StoreError, match="Copy or save it again"):
            open_nifti(str(path)).read(np.s_[:, :, :])


def softmax(seed: int, *shape: int) -> np.ndarray:
    """float32 [class, *shape]."""
    return np.moveaxis(np.random.default_rng(seed).dirichlet(np.ones(4), shape), -1, 0).astype("f4")


def test_cases_of_nnunet_with_their_labels(tmp_path: Path) -> None:
    """The predicted ids beside the probabilities are left out; the slices are items."""
    pred, truth = tmp_path / "pred", tmp_path / "labelsTs"
    pred.mkdir(), truth.mkdir()
    for case in ("a", "b"):
        np.savez(pred / f"{case}.npz", probabilities=softmax(ord(case), 2, 6, 8))
        ids = np.random.default_rng(ord(case)).integers(0, 4, (2, 6, 8)).astype("u1")
        saved(pred / f"{case}.nii.gz", nifti(ids))
        saved(truth / f"{case}.nii.gz", nifti(ids))
        np.save(tmp_path / f"{case}.npy", ids)
    report = evaluate(str(pred), str(truth), metrics=("segmentation",))
    assert [item["name"] for item in report.items] == ["a/0000", "a/0001", "b/0000", "b/0001"]
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    for case in ("a", "b"):
        (tmp_path / f"{case}.npy").rename(arrays / f"{case}.npy")
    assert report.results == evaluate(str(pred), str(arrays), metrics=("segmentation",)).results


def test_images_of_nnunet_are_called_as_their_pngs(tmp_path: Path) -> None:
    """nnU-Net writes a PNG data set as cases of one slice; the labels are PNGs."""
    pred, truth = tmp_path / "pred", tmp_path / "labels"
    pred.mkdir(), truth.mkdir()
    for name in ("img_1", "img_2"):
        np.savez(pred / f"{name}.npz", probabilities=softmax(1, 1, 6, 8))
        Image.fromarray(np.zeros((6, 8), np.uint8)).save(truth / f"{name}.png")
    report = evaluate(str(pred), str(truth), metrics=("segmentation",))
    assert [item["name"] for item in report.items] == ["img_1", "img_2"]


def test_one_file_is_a_store(tmp_path: Path) -> None:
    store = open_store(saved(tmp_path / "a.nii.gz", nifti(IDS)), role="labels")
    assert [part.array.shape for part in store.arrays["labels"]] == [IDS.shape] * 2
