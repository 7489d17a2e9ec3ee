"""Unfinished stores that `PredictionWriter(overwrite=True)` writes next to an older one."""

from __future__ import annotations

import os
from pathlib import Path

from uqeval.disk.files import resolved
from uqeval.errors import cut
from uqeval.stores.zarr.writer import HIDDEN

_CONTINUE = (
    "Wait for its job, or run it again with resume=True and overwrite=True, which continues it"
)


def path_of_new(path: Path) -> Path:
    """Return where `PredictionWriter(overwrite=True)` writes the new store of `path`."""
    return path.with_name(f".{path.name}.new")


def is_unfinished(root: Path) -> bool:
    """Return whether a store at `root` is unfinished, with or without living writers; False if it
    cannot be read."""
    return os.path.isdir(root / HIDDEN)  # noqa: PTH112 - `Path.is_dir` raises without permission


def unfinished_new(path: str) -> Path | None:
    """Return the unfinished new store of a local path; None if there is none."""
    target = resolved(path)
    new = path_of_new(target) if target.name else None
    return new if new is not None and is_unfinished(new) else None


def note_of_older(path: str) -> list[str]:
    """Return a warning if the store at a local path is older than an unfinished new one."""
    new = unfinished_new(path)
    if new is None:
        return []
    return [
        f"{cut(path)}: these are the old predictions: their replacement {cut(new.name)} beside "
        f"them is unfinished. {_CONTINUE}. To keep the old predictions, remove {cut(new.name)}."
    ]


def hint_of_missing(path: str) -> str:
    """Return what to do about a local path without a store: continue its unfinished new store."""
    new = unfinished_new(path)
    if new is None:
        return "Check the path."
    return f"Its store {cut(new.name)}, in the same folder, is unfinished. {_CONTINUE}."
