"""Small videos to run `uqeval tc` on: a texture that moves, ids that nearly move with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from PIL import Image
from small_stores import save

VOID = 255
Images = Mapping[str, Any]


@dataclass(frozen=True)
class Video:
    """By frame: RGB images [y, x, 3], predicted ids and labels [y, x], uint8 all."""

    frames: dict[str, Any]
    predictions: dict[str, Any]
    labels: dict[str, Any]

    @property
    def names(self) -> list[str]:
        return list(self.frames)

    def renamed(self, names: list[str]) -> Video:
        kinds = self.frames, self.predictions, self.labels
        return Video(*(dict(zip(names, kind.values(), strict=True)) for kind in kinds))

    def stack(self, kind: str) -> Any:
        return np.stack(list(getattr(self, kind).values()))

    def only(self, names: Iterable[str]) -> Video:
        kinds = (self.frames, self.predictions, self.labels)
        return Video(*({name: kind[name] for name in names} for kind in kinds))


def numbered(count: int, sequence: str = "v", step: int = 1) -> list[str]:
    return [f"{sequence}_{k * step:03}" for k in range(count)]


def video(
    names: list[str] | None = None,
    seed: int = 0,
    size: tuple[int, int] = (36, 48),
    classes: int = 4,
) -> Video:
    """Motion of up to 2 pixels a frame; a tenth of the ids are wrong, some void."""
    rng = np.random.default_rng(seed)
    names = numbered(5) if names is None else names
    height, width = size[0] + 2 * len(names), size[1] + 2 * len(names)
    coarse = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), np.uint8)
    texture = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    regions = np.kron(
        rng.integers(0, classes, (height // 6 + 1, width // 6 + 1)), np.ones((6, 6), int)
    ).astype(np.uint8)
    found = Video({}, {}, {})
    y = x = 0
    for name in names:
        box = slice(y, y + size[0]), slice(x, x + size[1])
        found.frames[name] = np.ascontiguousarray(texture[box])
        truth = regions[box].copy()
        ids = truth.copy()
        ids[rng.random(size) < 0.1 * rng.random()] = rng.integers(classes)
        ids[rng.random(size) < 0.02] = VOID
        truth[rng.random(size) < 0.05] = VOID
        found.predictions[name], found.labels[name] = ids, truth
        y, x = y + int(rng.integers(0, 3)), x + int(rng.integers(1, 3))
    return found


def save_images(folder: Path, images: Images) -> Path:
    for name, image in images.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / f"{name}.png")
    return folder


def save_folder(folder: Path, own: Video, labels: bool = False) -> Path:
    """A video as a folder: `frames/`, `predictions/`, perhaps `labels/`."""
    save_images(folder / "frames", own.frames)
    save_images(folder / "predictions", own.predictions)
    if labels:
        save_images(folder / "labels", own.labels)
    return folder


def save_store(path: Path, names: list[str] | None = None, **arrays: Any) -> Path:
    """A Zarr group, a chunk a frame, every chunk written."""
    return save(path, arrays, None if names is None else {"names": names})


def save_flows(folder: Path, flows: Mapping[str, Any]) -> Path:
    """One .flo a pair, called as its later frame."""
    folder.mkdir(parents=True)
    for name, flow in flows.items():
        assert cv2.writeOpticalFlow(str(folder / f"{name}.flo"), flow.astype(np.float32))
    return folder
