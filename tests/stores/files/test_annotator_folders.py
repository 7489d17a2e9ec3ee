"""A folder of label PNGs for each annotator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import uqeval
from uqeval.errors import StoreError
from uqeval.stores.planes import Planes
from uqeval.stores.store import open_store

NAMES = ("a", "b")


def save(path: Path, value: int, shape: tuple[int, int] = (2, 3)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(shape, value, np.uint8)).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for k, rater in enumerate(("anna", "ben", "cleo")):
        for i, name in enumerate(NAMES):
            save(tmp_path / rater / f"{name}.png", 10 * k + i)
    return tmp_path


def test_labels_of_all_annotators(folder: Path) -> None:
    store = open_store(folder, role="labels", names=NAMES, annotator_folders=True)
    planes = Planes(store.arrays["labels"], True, "annotator")
    assert [planes.read(i)[:, 0, 0].tolist() for i in range(2)] == [[0, 10, 20], [1, 11, 21]]
    part = store.arrays["labels"][0]
    assert part.array.read((slice(1, 3), slice(0, 1), slice(0, 3))).tolist() == [
        [[10] * 3], [[20] * 3]
    ]  # fmt: skip
    assert len(part.states()) == 3 and part.array.stored_bytes() > 0
    before = part.array.fingerprint(), part.stamp()
    save(folder / "cleo" / "a.png", 99)
    again = open_store(folder, role="labels", names=NAMES, annotator_folders=True)
    after = again.arrays["labels"][0]
    assert before != (after.array.fingerprint(), after.stamp())


def test_sequences_in_folders_of_annotators(tmp_path: Path) -> None:
    """Folders below those of annotators are compared as those of other labels."""
    names = ("seq1/images/1", "seq2/images/1")
    for i, annotator in enumerate(("ann", "ben")):
        for sequence in (1, 2):
            path = tmp_path / annotator / f"seq{sequence}" / "labels" / "1.png"
            path.parent.mkdir(parents=True)
            save(path, 10 * i + sequence)

    def labels(*names: str) -> list[list[int]]:
        store = open_store(tmp_path, role="labels", names=names, annotator_folders=True)
        planes = Planes(store.arrays["labels"], True, "annotator")
        assert not [text for text in store.warnings if "different names" in text]
        return [planes.read(i)[:, 0, 0].tolist() for i in range(len(names))]

    assert labels(*names) == [[1, 11], [2, 12]] and labels(names[1]) == [[2, 12]]
    (tmp_path / "ben" / "seq2" / "labels" / "1.png").unlink()
    with pytest.raises(StoreError, match=r"ben: 1 of 2 items have no label: seq2/images/1"):
        labels(*names)


def test_folders_that_are_not_of_annotators(folder: Path) -> None:
    with pytest.raises(StoreError, match=r"could have the label .* with --annotator-folders"):
        open_store(folder, role="labels", names=NAMES)
    (folder / "ben" / "b.png").unlink()
    with pytest.raises(StoreError, match=r"ben: 1 of 2 items have no label: b.*void id \(255\)"):
        open_store(folder, role="labels", names=NAMES, annotator_folders=True)
    save(folder / "ben" / "b.png", 0, (3, 3))
    with pytest.raises(StoreError, match=r"ben/b\.png is 3×3 .* expected one size"):
        open_store(folder, role="labels", names=NAMES, annotator_folders=True)
    save(folder / "b.png", 0)
    with pytest.raises(StoreError, match=r"holds 'b\.png' next to the folders"):
        open_store(folder, role="labels", names=NAMES, annotator_folders=True)


@pytest.mark.parametrize(
    ("family", "options", "noun"),
    [
        ("ood", {"ood_mask": "{}"}, "mask"),
        ("segmentation", {"region": "map:{}"}, "region map"),
        ("segmentation", {"region": "depth:0-1", "depth_map": "{}"}, "depth map"),
    ],
)
def test_other_maps_are_not_of_annotators(
    folder: Path, family: str, options: dict[str, str], noun: str
) -> None:
    labels = np.zeros((2, 2, 3), np.uint8)
    store = {"probs": np.full((2, 3, 2, 3), 1 / 3), "labels": labels, "names": [*NAMES]}
    given = {name: value.format(folder) for name, value in options.items()}
    with pytest.raises(StoreError, match=rf"could have the {noun} .*path in the folder\.$"):
        uqeval.evaluate(store, None, family, **given)
