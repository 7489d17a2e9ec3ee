"""A configuration of one store, where no file says what is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from uqeval.config import Config, Store
from uqeval.disk.files import resolved


def config_of_store(predictions: Sequence[str], truth: str | None, **options: Any) -> Config:
    """A configuration of one store, given by its paths, with all that applies to it."""
    store = {name: value for name, value in options.items() if value is not None}
    if predictions:
        store["predictions"] = list(predictions) if len(predictions) > 1 else predictions[0]
    if truth is not None:
        store["labels"] = truth
    first = str(predictions[0] if predictions else options["video"])
    return Config.model_validate({"stores": {_name_of(first): Store(**store)}})


def _name_of(path: str) -> str:
    """The name of a store from its path: of `data/preds.zarr`, `preds`."""
    last = Path(path).name if "://" in path else resolved(path).name
    printable = "".join(c for c in last.removesuffix(".zip") if c.isprintable() and c not in "/\\")
    stem = Path(printable).stem if printable else ""
    return f"{stem}-store" if stem.casefold() in ("index", "verdicts") else stem or "predictions"
