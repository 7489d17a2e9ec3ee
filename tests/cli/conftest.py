"""Stores that many commands are run on; no test changes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_stores import (
    NAMES,
    labels,
    probs,
    save,
    save_complete,
    save_label_folder,
    save_predictions,
)


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `complete.zarr`, `preds.zarr` (no labels), `anonymous.zarr`, `labels/`."""
    folder = tmp_path_factory.mktemp("stores")
    save_complete(folder / "complete.zarr")
    save_predictions(folder / "preds.zarr")
    save(folder / "anonymous.zarr", {"probs": probs()})
    save(folder / "labels.zarr", {"labels": labels()}, {"names": NAMES})
    save_label_folder(folder / "labels")
    return folder


@pytest.fixture(scope="session")
def complete(stores: Path) -> Path:
    """Predictions with labels, names and class names in one store."""
    return stores / "complete.zarr"
