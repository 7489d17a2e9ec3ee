"""Frames and predictions that are read one by one, from folders and stores that grow."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from small_videos import save_images, save_store

from uqeval.errors import StoreError
from uqeval.inputs.live import Live, Patience
from uqeval.inputs.options import InputOptions

IMAGE = np.zeros((4, 4, 3), np.uint8)


def write(folder: Path, **ids: int) -> None:
    """Predictions of one class by the name of their frames, whose sequence ends in `_`."""
    for name, own in ids.items():
        save_images(folder, {name.replace("_", "/"): np.full((4, 4), own, np.uint8)})


def write_frame(folder: Path, name: str) -> None:
    save_images(folder / "frames", {name: IMAGE})


def live(folder: Path, warnings: list[str] | None = None, **patience: Any) -> Live:
    told = [] if warnings is None else warnings
    options = InputOptions(video=str(folder / "frames"))
    return Live(str(folder / "preds"), options, Patience(**patience), warn=told.append)


@pytest.mark.parametrize("follow", [False, True])
def test_a_prediction_that_came_before_its_frame(tmp_path: Path, follow: bool) -> None:
    """It counts, and not one that was listed earlier."""
    write(tmp_path / "preds", **{"0": 1, "1": 1, "2": 1})
    write_frame(tmp_path, "s/0")
    frames = iter(live(tmp_path, follow=follow, timeout=0))
    assert next(frames).ids.max() == 1
    write(tmp_path / "preds", s_0=2, s_1=2)
    for name in ("s/1", "s/2"):
        write_frame(tmp_path, name)
    assert next(frames).ids.max() == 2
    refused(lambda: next(frames), "no prediction for the frame s/2", error=StoreError)


def test_predictions_that_may_be_of_another_sequence_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "preds", s1_0=1)
    write_frame(tmp_path, "s2/0")
    refused(
        lambda: next(iter(live(tmp_path, follow=True, timeout=0))),
        "no prediction for the frame s2/0, but s1/0.png", "may be of another sequence",
        error=StoreError,
    )  # fmt: skip
    later = threading.Timer(0.1, write, (tmp_path / "preds",), {"s2_0": 2})
    later.start()
    warnings: list[str] = []
    frame = next(iter(live(tmp_path, warnings, follow=True, poll=0.02, timeout=30)))
    later.join()
    assert frame.ids.max() == 2 and not warnings


@pytest.mark.parametrize("named", ["frames", "preds"])
def test_a_warning_of_frames_that_are_matched_by_position(tmp_path: Path, named: str) -> None:
    names = ("s_0", "s_1")
    for kind, ndim in (("frames", 4), ("preds", 3)):
        values = np.zeros((2, 4, 4, 3)[:ndim], np.uint8)
        if kind == named:
            save_images(tmp_path / kind, dict(zip(names, values, strict=True)))
        else:
            arrays = {"predictions" if kind == "preds" else kind: values}
            save_store(tmp_path / kind, None, **arrays)
    warnings: list[str] = []
    assert len(list(live(tmp_path, warnings))) == 2
    (text,) = [text for text in warnings if "by position" in text]
    (other,) = {"frames", "preds"} - {named}
    assert text.startswith(f"{tmp_path / other} has no names") and "an array `names` in it" in text
