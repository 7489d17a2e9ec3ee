"""Kernels against plain NumPy in float64: whole evaluations, and the functions beneath them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from uqeval.usecases.selftest import made
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
    half = made.classes("kernels")
    for dtype in ("float16", "float32", "float64"):
        wide = half["probs"].astype(np.float64)
        own = wide if dtype == "float16" else wide / wide.sum(axis=2, keepdims=True)
        path = folder / f"{dtype}.npz"
        np.savez(path, **(half | {"probs": own.astype(dtype)}))
        name = f"class metrics of {dtype} samples"
        checks.run(name, partial(_evaluated, checks, name, path, _OF_CLASSES))
    numbers = folder / "numbers.npz"
    np.savez(numbers, **made.numbers("kernels"))
    name = "metrics of predicted numbers"
    checks.run(name, partial(_evaluated, checks, name, numbers, _OF_NUMBERS))
    film = folder / "video.npz"
    np.savez(film, **made.video("kernels"))
    checks.run("temporal", lambda: _video(checks, film))
    checks.run("divergence", lambda: _divergence(checks, folder))
    checks.run("functions", lambda: _functions(checks))


def _evaluated(checks: Checks, name: str, path: Path, metrics: Any, **options: Any) -> None:
    import uqeval
    from uqeval.inputs import InputOptions, open_inputs

    report = uqeval.evaluate(str(path), metrics=metrics, workers=1, **options)
    _compared(checks, name, report, open_inputs(str(path), None, InputOptions()))


def _video(checks: Checks, film: Path) -> None:
    import uqeval
    from uqeval.inputs import InputOptions, open_inputs

    chosen = {"tc": {"flow": ["file", "farneback"]}}
    report = uqeval.evaluate(None, metrics=chosen, video=str(film), workers=1)
    opened = open_inputs(None, None, InputOptions(video=str(film)))
    _compared(checks, "temporal consistency", report, opened)


def _divergence(checks: Checks, folder: Path) -> None:
    import uqeval
    from uqeval.inputs import InputOptions, beside_reference, open_inputs

    own, other = folder / "float16.npz", folder / "reference.npz"
    np.savez(other, **made.classes("reference"))
    report = uqeval.evaluate(str(own), metrics=["divergence"], reference=str(other), workers=1)
    options = InputOptions()
    opened = beside_reference(open_inputs(str(own), None, options), str(other), options)
    _compared(checks, "divergence", report, opened)


def _compared(checks: Checks, name: str, report: Any, opened: Any) -> None:
    """Hold all items, and the set, of a report against the plain path."""
    from uqeval.usecases.verify.recompute import Recomputation

    own = Recomputation(report, opened)
    own.run(range(len(report.items)), pooled=True)
    for where, tally in own.tallies.items():
        if where in ("intervals", "slices") and not getattr(report, where):
            continue  # the report has none to compare
        bad = [str(difference) for difference in tally.differences]
        detail = "; ".join(bad[:3]) + (f"; {len(bad)} values differ" if len(bad) > 3 else "")
        known = tally.compared > 0 and not own.why_not
        checks.add(
            f"{name}, {where}", not bad and known, detail or str(own.why_not), tally.compared
        )


def _functions(checks: Checks) -> None:
    from uqeval.kernels import logarithm

    p = np.r_[made.uniform("logarithm", (2000,)), 2.0**-40, 1.0, 2.0**-24]
    found = np.array([logarithm.log_64(v) for v in p])
    checks.same("natural logarithm, float64", found, np.log(p), 4e-16 * 40)
