"""Golden reports: one of each family, whose numbers are kept in `golden.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.usecases.selftest import made
from uqeval.usecases.selftest.record import Checks

FILE = Path(__file__).with_name("golden.json")
#: Relative to the larger of 1 and the value: maps are float32, logarithms differ in the last bit.
_TOLERANCE = 1e-6
_CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
_NUMBERS = ("regression", "nmerci", "sparsification")


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group."""
    kept: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    for name, found in reports(folder):
        expected = kept.get(name, {})
        checks.same(f"{name}: which numbers there are", sorted(found), sorted(expected))
        both = [key for key in expected if key in found]
        ours, theirs = ([own[key] for key in both] for own in (found, expected))
        checks.same(f"golden report of {name}", ours, theirs, _TOLERANCE)


def reports(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the numbers of the report of each family, evaluated now."""
    import uqeval

    own = {
        "classes": made.classes("golden"), "numbers": made.numbers("golden"),
        "reference": made.classes("golden reference"), "video": made.video("golden"),
    }  # fmt: skip
    paths = {name: folder / f"golden-{name}.npz" for name in own}
    for name, arrays in own.items():
        np.savez(paths[name], **arrays)
    found = uqeval.evaluate(str(paths["classes"]), metrics=_CLASSES, workers=1).results
    for key in _CLASSES:
        yield key, dict(numbers_in(found[key]))
    found = uqeval.evaluate(str(paths["numbers"]), metrics=_NUMBERS, workers=1).results
    for key in _NUMBERS:
        name = f"{key} of numbers" if key in _CLASSES else key
        yield name, dict(numbers_in(found[key]))
    settings = {"tc": {"flow": "file"}}
    found = uqeval.evaluate(None, metrics=settings, video=str(paths["video"]), workers=1).results
    yield "temporal", dict(numbers_in(found["temporal"]))
    reference = str(paths["reference"])
    found = uqeval.evaluate(
        str(paths["classes"]), metrics=["divergence"], reference=reference, workers=1
    ).results
    yield "divergence", dict(numbers_in(found["divergence"]))


def numbers_in(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the address and value of each number that is no part of a list."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from numbers_in(value, f"{before}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{before}{key}", value


def write(folder: Path, file: Path = FILE) -> None:
    """Write the numbers of today's reports; for developers, after a definition was changed."""
    kept = dict(reports(folder))
    file.write_text(json.dumps(kept, indent=1, allow_nan=False) + "\n", "utf-8")
