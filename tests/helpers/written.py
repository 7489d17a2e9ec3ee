"""Data of the tests of the writer, and a function that reads them back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from uqeval.stores.store import open_store
from uqeval.writer import PredictionWriter

NAMES, SAMPLES, CLASSES, SIZE = ("a", "b", "c"), 4, 3, (6, 10)
ABOUT: dict[str, Any] = {"names": NAMES, "samples": SAMPLES, "classes": CLASSES, "size": SIZE}
RNG = np.random.default_rng(0)


def probs(*shape: int) -> np.ndarray:
    e = np.exp(RNG.normal(size=shape or (SAMPLES, CLASSES, *SIZE)))
    return (e / e.sum(axis=-3, keepdims=True)).astype(np.float32)


STACK = probs(3, SAMPLES, CLASSES, *SIZE)


def stored(path: Path, kind: str = "probs", role: Any = "predictions") -> list[np.ndarray]:
    """Return the arrays of all items, as readers see them."""
    found = []
    for part in open_store(path, role=role).arrays[kind]:
        shape = part.array.shape
        if part.index is None:
            found.append(part.array.read(tuple(slice(0, n) for n in shape)))
        else:
            rest = tuple(slice(0, n) for n in shape[1:])
            found.append(part.array.read((slice(part.index, part.index + 1), *rest))[0])
    return found


def fill(writer: PredictionWriter, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        writer.add(name, STACK[NAMES.index(name)])
