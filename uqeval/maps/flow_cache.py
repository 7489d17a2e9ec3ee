"""Cache of flow on disk, shared by models, settings and processes."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array
from uqeval.maps.flow import Estimator
from uqeval.stores.map_cache import folder_for, read_checked, write_checked


class FlowCache:
    """Flow, keyed by the estimator's record and the bytes of both images.

    A file is an array float32 [y, x, 2] with a checksum, and is never changed. The folder takes 8
    bytes per pixel and pair; `uqeval` never removes files. Raises `OutputError` if it cannot be
    written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder_for("flow", folder)

    def get(self, estimator: Estimator, previous: Array, next_: Array) -> NDArray[np.float32]:
        """Return `estimator(previous, next_)` from the cache, or estimate and cache it.

        A damaged file is replaced. On a full disk nothing is cached, which is no error.
        """
        path = self.path(estimator, previous, next_)
        flow = read_checked(path, (*previous.shape, 2), np.float32)
        if flow is None:
            flow = np.ascontiguousarray(estimator(previous, next_), np.float32)
            write_checked(path, flow)
        return flow

    def path(self, estimator: Estimator, previous: Array, next_: Array) -> Path:
        """Return the path of the cached flow between two images."""
        digest = hashlib.sha256()
        record = [estimator.record(), previous.shape, next_.shape]
        digest.update(json.dumps(record, sort_keys=True, allow_nan=False).encode())
        digest.update(np.ascontiguousarray(previous).data)
        digest.update(np.ascontiguousarray(next_).data)
        name = digest.hexdigest()
        return self.folder / name[:2] / f"{name}.npy"
