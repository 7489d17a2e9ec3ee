"""An input option that changes nothing for the given data is an error, and all are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from uqeval.errors import UsageError
from uqeval.inputs import InputOptions, open_inputs

IDS = np.zeros((2, 8, 8), np.uint8)
PROBS = np.full((2, 3, 8, 8), 1 / 3, np.float32)
DATA: dict[str, dict[str, Any]] = {
    "probs": {"probs": PROBS},
    "labelled": {"probs": PROBS, "labels": IDS},
    "logits": {"logits": PROBS, "labels": IDS},
    "maps": {"predictions": IDS, "entropy": PROBS[:, 0], "mean_probs": PROBS},
}
OPTIONS: dict[str, Any] = {"nan_samples": "skip", "sum_tolerance": 0.5, "ignore_index": 7}
EFFECTIVE = {
    "probs": {"sum_tolerance"},
    "labelled": {"sum_tolerance", "ignore_index"},
    "logits": {"ignore_index"},
    "maps": set(),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("data", DATA)
def test_each_option_has_an_effect_or_is_refused(tmp_path: Path, data: str, name: str) -> None:
    path = str(tmp_path / "p.npz")
    np.savez(path, **DATA[data])
    options = InputOptions(**{name: OPTIONS[name]})
    if name in EFFECTIVE[data]:
        open_inputs(path, None, options)
        return
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} {OPTIONS[name]} needs"):
        open_inputs(path, None, options)


def test_all_are_told_at_once(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", **DATA["maps"])
    with pytest.raises(UsageError, match=r"--nan-samples.*--sum-tolerance.*--ignore-index.*leave"):
        open_inputs(str(tmp_path / "p.npz"), None, InputOptions(**OPTIONS))


def test_a_label_map_needs_label_files_of_a_video(tmp_path: Path) -> None:
    for folder in ("frames", "predictions"):
        (tmp_path / folder).mkdir()
        for i in range(2):
            Image.fromarray(IDS[0]).save(tmp_path / folder / f"{i}.png")
    with pytest.raises(UsageError, match="--label-map cityscapes needs a folder of label PNGs"):
        open_inputs(None, None, InputOptions(video=str(tmp_path), label_map="cityscapes"))
