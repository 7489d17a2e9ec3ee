"""Label images to test with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

IDS = np.array([[0, 1, 2], [3, 1, 0]], np.uint8)
ALL = (slice(None), slice(None))


def save(path: Path, ids: np.ndarray = IDS, mode: str | None = None, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = Image.fromarray(ids)
    if mode == "P":
        image = image.copy()
        image.putpalette([v for i in range(256) for v in (255 - i, i, 99)])
    elif mode:
        image = image.convert(mode)
    image.save(path, **options)
    return path
