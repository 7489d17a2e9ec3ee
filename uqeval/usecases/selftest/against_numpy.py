"""Kernels against plain NumPy in float64: whole evaluations, and the functions beneath them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import uqeval
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.selftest.record import Checks

#: Every metric of classes with the settings that the plain path has.
_OF_CLASSES: dict[str, dict[str, Any]] = {
    "segmentation": {}, "failure": {}, "sparsification": {},
    "pavpu": {"uncertainty": ["entropy", "mutual_information", "std"], "stride": [4, 1]},
    "calibration": {"temperature": False},
}  # fmt: skip
_OF_NUMBERS: dict[str, dict[str, Any]] = {
    "regression": {"distribution": ["gaussian", "laplace"]}, "nmerci": {"alpha": [85, 95]},
    "sparsification": {"error": ["rmse", "mae"]},
}  # fmt: skip


def run(checks: Checks, folder: Path) -> None:
    """Add the checks of this group; `folder` takes files."""
    half = synthetic_data.classes("kernels")
    for dtype in ("float16", "float32", "float64"):
        wide = half["probs"].astype(np.float64)
        values = wide if dtype == "float16" else wide / wide.sum(axis=2, keepdims=True)
        path = folder / f"{dtype}.npz"
        np.savez(path, **(half | {"probs": values.astype(dtype)}))
        name = f"class metrics of {dtype} samples"
        checks.run(name, partial(_evaluated, checks, name, path, _OF_CLASSES))
    numbers = folder / "numbers.npz"
    np.savez(numbers, **synthetic_data.numbers("kernels"))
    name = "metrics of predicted numbers"
    checks.run(name, partial(_evaluated, checks, name, numbers, _OF_NUMBERS))
    video_file = folder / "video.npz"
    np.savez(video_file, **synthetic_data.video("kernels"))
    checks.run("temporal", lambda: _video(checks, video_file))
    checks.run("divergence", lambda: _divergence(checks, folder))
    checks.run("functions", lambda: _functions(checks))


def _evaluated(checks: Checks, name: str, path: Path, metrics: Any, **options: Any) -> None:
    from uqeval.inputs import InputOptions, open_inputs

    report = uqeval.evaluate(str(path), metrics=metrics, workers=1, **options)
    _compared(checks, name, report, open_inputs(str(path), None, InputOptions()))


def _video(checks: Checks, video_file: Path) -> None:
    from uqeval.inputs import InputOptions, open_inputs

    families = {"tc": {"flow": ["file", "farneback"]}}
    report = uqeval.evaluate(None, metrics=families, video=str(video_file), workers=1)
    inputs = open_inputs(None, None, InputOptions(video=str(video_file)))
    _compared(checks, "temporal consistency", report, inputs)


def _divergence(checks: Checks, folder: Path) -> None:
    from uqeval.inputs import InputOptions, beside_reference, open_inputs

    predictions_path, reference_path = folder / "float16.npz", folder / "reference.npz"
    np.savez(reference_path, **synthetic_data.classes("reference"))
    report = uqeval.evaluate(
        str(predictions_path), metrics=["divergence"], reference=str(reference_path), workers=1
    )
    options = InputOptions()
    inputs = beside_reference(
        open_inputs(str(predictions_path), None, options), str(reference_path), options
    )
    _compared(checks, "divergence", report, inputs)


def _compared(checks: Checks, name: str, report: Any, inputs: Any) -> None:
    """Compare all items, and the set, of a report with the plain NumPy code."""
    from uqeval.usecases.verify.recompute import recomputation_of

    recomputation = recomputation_of(report, inputs)
    recomputation.run(range(len(report.items)), pooled=True)
    parts = {"intervals": report.intervals, "units": report.intervals, "slices": report.slices}
    for address, tally in recomputation.tallies.items():
        if not parts.get(address, True):
            continue  # the report has none to compare
        bad = [str(difference) for difference in tally.differences]
        detail = "; ".join(bad[:3]) + (f"; {len(bad)} values differ" if len(bad) > 3 else "")
        is_compared = tally.compared > 0 and not recomputation.why_not
        checks.add(
            f"{name}, {address}",
            not bad and is_compared,
            detail or str(recomputation.why_not),
            tally.compared,
        )


def _functions(checks: Checks) -> None:
    from uqeval.kernels import logarithm

    p = np.r_[synthetic_data.uniform("logarithm", (2000,)), 2.0**-40, 1.0, 2.0**-24]
    logarithms = np.array([logarithm.log_64(v) for v in p])
    checks.same("natural logarithm, float64", logarithms, np.log(p), 4e-16 * 40)
