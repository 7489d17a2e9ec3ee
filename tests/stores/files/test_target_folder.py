"""Folders of targets: KITTI's 16-bit PNGs, .npy and .pfm, or refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from uqeval.errors import StoreError
from uqeval.stores.files.pfm_array import PfmArray
from uqeval.stores.files.target_folder import open_target_folder
from uqeval.stores.store import contents_of, open_store

VALUES = np.arange(12, dtype="f4").reshape(3, 4) / 4
ALL = (slice(None), slice(None))


def pfm(path: Path, values: np.ndarray = VALUES, header: str = "Pf\n4 3\n-1.0\n") -> Path:
    order = "<f4" if "-" in header else ">f4"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header.encode() + values[::-1].astype(order).tobytes())
    return path


def kitti(path: Path, values: np.ndarray = VALUES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((values * 256).astype(np.uint16)).save(path)
    return path


def test_kitti(tmp_path: Path) -> None:
    kitti(tmp_path / "a.png")
    (part,) = open_target_folder(tmp_path, ["a"]).arrays["target"]
    found = part.array.read(ALL)
    assert found.dtype == part.array.dtype == np.float32 and part.array.axes == ("y", "x")
    assert np.isnan(found[0, 0])
    np.testing.assert_array_equal(found.ravel()[1:], VALUES.ravel()[1:])
    np.testing.assert_array_equal(part.array.read((slice(1, 3), slice(0, 2))), VALUES[1:, :2])


@pytest.mark.parametrize(
    "header",
    [
        "Pf\n4 3\n-1.0\n",
        "Pf\n4 3\n1\n",
        "Pf 4 3 -0.0039\r\n",
        "Pf\n4 3 \n-1. \n",
        "Pf\n4 3\n-.5e1\n",
    ],
)
def test_pfm(tmp_path: Path, header: str) -> None:
    array = PfmArray(pfm(tmp_path / "a.pfm", header=header))
    assert array.shape == (3, 4)
    np.testing.assert_array_equal(array.read(ALL), VALUES)
    np.testing.assert_array_equal(array.read((slice(0, 1), slice(1, 3))), VALUES[:1, 1:3])
    assert array.stored_bytes() == len(header) + 48
    other = PfmArray(pfm(tmp_path / "b.pfm", VALUES + 1, header))
    assert array.fingerprint() != other.fingerprint()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "not a PFM"), (b"P5\n4 3\n255\n" + bytes(48), "not a PFM"),
        (b"PF\n4 3\n-1\n" + bytes(144), "colour"), (b"Pf\n4 3\n0\n" + bytes(48), "scale 0"),
        (b"Pf\n4 3\n-1\n" + bytes(47), "57 bytes"), (b"Pf\n4 3\n-1\n" + bytes(49), "Copy it"),
        (b"Pf\n0 3\n-1\n", "0 × 3"), (b"Pf\n-4 3\n-1\n" + bytes(48), "not a PFM"),
        (b"Pf\n999999999 999999999\n-1\n" + bytes(48), "Copy it"),
        (b"Pf\n4 3\n__import__('os')\n" + bytes(48), "not a PFM"),
        (b"Pf\n4 3\n-1e999\n" + bytes(48), "scale -inf"), (b"Pf\n" + b"4" * 600, "not a PFM"),
    ],
)  # fmt: skip
def test_pfm_that_is_none(tmp_path: Path, data: bytes, word: str) -> None:
    path = tmp_path / "a.pfm"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=word) as caught:
        PfmArray(path)
    assert str(path) in str(caught.value)


def test_png_with_alpha(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((3, 4, 2), np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(StoreError, match=r"a.png is grey with alpha.*; a target is a 16-bit grey"):
        open_target_folder(tmp_path, ["a"])


def test_files_are_matched_by_stem(tmp_path: Path) -> None:
    kitti(tmp_path / "a.png")
    pfm(tmp_path / "deep/b.pfm", VALUES + 1)
    np.save(tmp_path / "c.npy", VALUES + 2)
    np.save(tmp_path / "d.npy", VALUES[None] + 3)
    np.save(tmp_path / "e.npy", VALUES)
    store = open_target_folder(tmp_path, ["d.png", "img/c.jpg", "b", "a"])
    found = [part.array.read(ALL)[2, 3] for part in store.arrays["target"]]
    assert found == [5.75, 4.75, 3.75, 2.75]
    assert store.warnings == (f"{tmp_path}: 1 target file belongs to no item: e.npy.",)
    with pytest.raises(StoreError, match="1 of 1 items have no target: z"):
        open_target_folder(tmp_path, ["z"])
    kitti(tmp_path / "c.png")
    with pytest.raises(StoreError, match=r"could have the target c\.npy or c\.png"):
        open_target_folder(tmp_path, ["c"])
    with pytest.raises(StoreError, match="Give --names FILE"):
        open_target_folder(tmp_path, None)


def test_what_is_no_target(tmp_path: Path) -> None:
    Image.fromarray(VALUES.astype(np.uint8)).save(tmp_path / "a.png")
    with pytest.raises(StoreError, match=r"a\.png is an 8-bit PNG; a target is a 16-bit"):
        open_target_folder(tmp_path, ["a"])
    np.save(tmp_path / "b.npy", np.zeros((2, 3, 4)))
    with pytest.raises(StoreError, match=r"b\.npy has the shape \(2, 3, 4\)"):
        open_target_folder(tmp_path, ["b"])
    np.save(tmp_path / "c.npy", np.array([["x"]]))
    with pytest.raises(StoreError, match=r"c\.npy"):
        open_target_folder(tmp_path, ["c"])


def test_what_looks_like_a_target(tmp_path: Path) -> None:
    kitti(tmp_path / "png/a.png")
    pfm(tmp_path / "pfm/a.pfm")
    np.save(tmp_path / "row.npy", np.zeros(5))
    np.save(tmp_path / "planes.npy", np.zeros((2, 3, 4)))
    np.save(tmp_path / "probs.npy", np.zeros((2, 3, 4, 4)))
    np.savez(tmp_path / "target.npz", target=VALUES)
    np.savez(tmp_path / "both.npz", target=VALUES, mean=VALUES)
    for name, truth, labels in [
        ("png", True, True), ("pfm", True, False), ("row.npy", True, False),
        ("planes.npy", True, False), ("probs.npy", False, False), ("target.npz", True, False),
        ("both.npz", False, False),
    ]:  # fmt: skip
        assert contents_of(tmp_path / name).is_truth() is truth, name
        assert contents_of(tmp_path / name).is_labels() is labels, name
    for shape in [(5,), (3, 4), (2, 3, 4)]:
        np.save(tmp_path / "t.npy", np.ones(shape))
        parts = open_store(tmp_path / "t.npy", role="target").arrays["target"]
        assert len(parts) == (2 if len(shape) == 3 else 1)
    np.save(tmp_path / "t.npy", np.zeros((2, 3, 4, 5)))
    with pytest.raises(StoreError, match="numbers for a target"):
        open_store(tmp_path / "t.npy", role="target")
