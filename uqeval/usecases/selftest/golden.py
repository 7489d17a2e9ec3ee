"""Golden reports: one per family, with expected numbers in `golden.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.disk.files import json_text
from uqeval.errors import is_number
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.selftest.record import Checks

FILE = Path(__file__).with_name("golden.json")
#: Relative to the larger of 1 and the value: maps are float32, logarithms differ in the last bit.
_TOLERANCE = 1e-6
_CLASSES = ("segmentation", "pavpu", "calibration", "failure", "sparsification")
_NUMBERS = ("regression", "nmerci", "sparsification")


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group."""
    expected_reports: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    for name, results in reports(folder):
        expected = expected_reports.get(name, {})
        missing = sorted(expected.keys() - results.keys())  # new metrics are not errors
        checks.same(f"{name}: numbers that are missing", missing, [])
        shared_keys = [key for key in expected if key in results]
        computed, stored = ([record[key] for key in shared_keys] for record in (results, expected))
        checks.same(f"golden report of {name}", computed, stored, _TOLERANCE)


def reports(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the numbers of the report of each family, evaluated now."""
    options_by_kind = {
        "classes": synthetic_data.classes("golden"), "numbers": synthetic_data.numbers("golden"),
        "reference": synthetic_data.classes("golden reference"),
        "video": synthetic_data.video("golden"),
    }  # fmt: skip
    paths = {name: folder / f"golden-{name}.npz" for name in options_by_kind}
    for name, arrays in options_by_kind.items():
        np.savez(paths[name], **arrays)
    results = uqeval.evaluate(str(paths["classes"]), metrics=_CLASSES, workers=1).results
    for key in _CLASSES:
        yield key, dict(numbers_in(results[key]))
    results = uqeval.evaluate(str(paths["numbers"]), metrics=_NUMBERS, workers=1).results
    for key in _NUMBERS:
        name = f"{key} of numbers" if key in _CLASSES else key
        yield name, dict(numbers_in(results[key]))
    settings = {"tc": {"flow": "file"}}
    results = uqeval.evaluate(None, metrics=settings, video=str(paths["video"]), workers=1).results
    yield "temporal", dict(numbers_in(results["temporal"]))
    reference = str(paths["reference"])
    results = uqeval.evaluate(
        str(paths["classes"]), metrics=["divergence"], reference=reference, workers=1
    ).results
    yield "divergence", dict(numbers_in(results["divergence"]))


def numbers_in(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the address and value of each number that is no part of a list."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from numbers_in(value, f"{before}{key}.")
        elif is_number(value):
            yield f"{before}{key}", value


def write(folder: Path, file: Path = FILE) -> None:
    """Write the numbers of today's reports; for developers, after a definition was changed."""
    results = dict(reports(folder))
    file.write_text(json_text(results, indent=1), "utf-8")
