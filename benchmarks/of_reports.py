"""Intervals, gate and comparison, which read saved states, beside the evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Case, Setup, command
from benchmarks.of_stores import CLASSES, NUMBERS

_RULES = """\
segmentation.miou: {min: 0.1, confidence: 0.95}
pavpu.pavpu: {min: 0.1, confidence: 0.95}
calibration.ece: {max: 0.9, confidence: 0.95}
"""


def _make(folder: Path, count: int) -> None:
    """Two models of the same small images of 19 classes, and a mean with σ: reports with states."""
    rng = np.random.default_rng(0)
    truth = np.kron(rng.integers(0, 19, (count, 6, 8)), np.ones((8, 8), np.int64)).astype("u1")
    hit = truth[:, None] == np.arange(19)[:, None, None]
    for name, skill in (("a", 2.0), ("b", 1.8)):
        scale = rng.uniform(0.5, 1.5, (count, 1, 1, 1, 1))
        z = scale * rng.normal(size=(count, 2, *hit.shape[1:])) + skill * hit[:, None]
        p = np.exp(z)
        np.save(folder / f"{name}.npy", (p / p.sum(2, keepdims=True)).astype("f2"))
    np.save(folder / "truth.npy", truth)
    size = truth.shape
    std, target = rng.gamma(2.0, 0.5, size) + 0.01, rng.uniform(2, 80, size)
    mean = target + rng.normal(size=size) * std * rng.uniform(0.5, 1.5, (count, 1, 1))
    np.savez(folder / "numbers.npz", mean=mean, std=std, target=target)
    (folder / "rules.yaml").write_text(_RULES)
    for name in ("a", "b", "numbers"):
        report = _evaluate(str(folder), name, str(folder))
        (folder / f"{name}.json").write_text(report.to_json(), "utf-8")


def _evaluate(folder: str, name: str, into: str) -> Any:
    """Evaluate all families, with states in the folder `into`."""
    import uqeval

    Path(into).mkdir(exist_ok=True)
    states = f"{into}/{name}.states.zip"
    Path(states).unlink(missing_ok=True)
    if name == "numbers":
        return uqeval.evaluate(f"{folder}/numbers.npz", None, list(NUMBERS), states=states)
    paths = (f"{folder}/{name}.npy", f"{folder}/truth.npy")
    return uqeval.evaluate(*paths, list(CLASSES), axes="NTCHW", states=states)


def _intervals(path: str) -> None:
    """All intervals of a report, from its states, as `uqeval run --ci 0.95` has them."""
    from uqeval.records.report import Report
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.statistics.options import CutOptions
    from uqeval.statistics.slices_and_intervals import with_slices_and_intervals
    from uqeval.statistics.states_of_report import states_of

    report = Report.load(Path(path))
    states = MergedStates([states_of(Path(path), report)])
    with_slices_and_intervals(report, states, CutOptions(ci=0.95))


def reports(setup: Setup) -> Iterator[Case]:
    """500 items of 48×64: --ci, gate with `confidence` and compare, beside all families."""
    folder = setup.make("reports", _make, setup.size(500, 24), fresh=True)
    # Other states than those that the reports name.
    anew = str(folder / "anew")
    a, b, rules = (str(folder / name) for name in ("a.json", "b.json", "rules.yaml"))
    yield Case("classes: evaluate", _evaluate, (str(folder), "a", anew), yardstick=True)
    yield Case("classes: all intervals", _intervals, (a,))
    yield Case("gate with confidence, the command", command, ("gate", a, rules))
    yield Case("compare two models, the command", command, ("compare", a, b))
    yield Case("numbers: evaluate", _evaluate, (str(folder), "numbers", anew), yardstick=True)
    yield Case("numbers: all intervals", _intervals, (str(folder / "numbers.json"),))
