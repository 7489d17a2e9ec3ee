"""Ids of frames: which item of a store is a frame's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_videos import numbered, save_images, save_store, video

import uqeval
from uqeval.inputs.ids import positions_of_frames
from uqeval.stores.array import Store


@pytest.mark.parametrize(
    ("stored", "names", "places", "warnings"),
    [
        (("s/2", "s/1"), ("s/1", "s/2"), (1, 0), 0),
        (("labels/s/2", "labels/s/1"), ("images/s/1", "images/s/2"), (1, 0), 0),
        # Nothing tells whether these are two sequences.
        (("s1/cam0/1", "s1/cam0/2"), ("s2/cam0/1", "s2/cam0/2"), (0, 1), 1),
        (None, ("a/1", "a/2"), (0, 1), 0),
    ],
)
def test_items_of_frames(
    stored: tuple[str, ...] | None, names: tuple[str, ...], places: tuple[int, ...], warnings: int
) -> None:
    found, texts = positions_of_frames(Store("ids.zarr", {}, stored), 2, names, 2, "label")
    assert found == places and len(texts) == warnings
    assert all(f"'{names[0]}' and {(stored or names)[0]}" in text for text in texts)


@pytest.mark.parametrize("kind", ["labels", "probs", "npy"])
def test_labels_of_some_frames(tmp_path: Path, kind: str) -> None:
    """As in a folder of PNGs."""
    own, some = video(), numbered(5)[2:4]
    save_images(tmp_path / "frames", own.frames)
    predictions = save_images(tmp_path / "predictions", own.predictions)
    labels = {name: own.labels[name] % 4 for name in some}
    expected = save_images(tmp_path / "png", labels)
    ids = np.stack(list(labels.values()))
    path = tmp_path / kind
    if kind == "labels":
        save_store(path, some, labels=ids)
    elif kind == "probs":
        save_store(path, some, probs=np.moveaxis(np.eye(4, dtype="f4")[ids], -1, 1))
    else:
        path.mkdir()
        for name, label in labels.items():
            np.save(path / name, label)

    def scores(truth: Path) -> Any:
        report = uqeval.evaluate(
            predictions, truth, {"tc": {"flow": "dis"}}, video=tmp_path / "frames", classes=4
        )
        return [item["temporal"].get("miou") for item in report.items]

    found = scores(path)
    assert found == scores(expected) and [miou is None for miou in found] == [
        True,
        False,
        False,
        True,
    ]


def test_probabilities_beside_predicted_ids_of_a_video(tmp_path: Path) -> None:
    """One of the two is evaluated: a warning says which."""
    own = video()
    ids = np.stack(list(own.predictions.values())) % 4
    probs = np.moveaxis(np.eye(4, dtype="f4")[ids], -1, 1)
    arrays = {"frames": own.stack("frames"), "probs": probs}
    alone = save_store(tmp_path / "alone.zarr", own.names, **arrays)
    both = save_store(tmp_path / "both.zarr", own.names, predictions=(ids + 1) % 4, **arrays)
    expected, found = (uqeval.evaluate(metrics="tc", video=path) for path in (alone, both))
    assert found.results["temporal"]["mtc"] == expected.results["temporal"]["mtc"]
    warning = "both.zarr holds 'probs' and `predictions`; the likeliest classes of 'probs' are"
    assert [warning in text for text in found.warnings].count(True) == 1
    assert not any("likeliest classes" in text for text in expected.warnings)
