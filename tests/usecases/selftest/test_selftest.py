"""The self-test: what it covers, and that it finds what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uqeval.usecases.selftest import golden, synthetic_data
from uqeval.usecases.selftest.record import Checks, selftest


def test_data_are_the_same_everywhere() -> None:
    assert synthetic_data.integers("seed", (2, 3), 1000).tolist() == [
        [837, 44, 872],
        [196, 883, 350],
    ]
    assert synthetic_data.uniform("seed", (1,)).dtype == np.float64


def test_a_changed_golden_number_is_found(tmp_path: Path, monkeypatch: Any) -> None:
    kept = json.loads(golden.FILE.read_text())
    kept["calibration"]["ece"] += 1e-5
    other = tmp_path / "golden.json"
    other.write_text(json.dumps(kept))
    monkeypatch.setattr(golden, "FILE", other)
    found = selftest(("golden",))
    assert not found.passed
    (bad,) = [check for check in found.checks if not check.passed]
    assert bad.name == "golden report of calibration"
    assert "found" in bad.detail and "expected" in bad.detail
    assert json.loads(found.to_json())["result"] == "FAILED"


def test_a_kernel_that_differs_from_numpy_is_found(monkeypatch: Any) -> None:
    from uqeval.usecases.verify import class_scores

    own = class_scores.adaptive_ece
    monkeypatch.setattr(class_scores, "adaptive_ece", lambda *a: (own(*a) or 0) + 1e-3)
    bad = [check for check in selftest(("against_numpy",)).checks if not check.passed]
    assert {check.name.split(",")[0] for check in bad} == {
        f"class metrics of {dtype} samples" for dtype in ("float16", "float32", "float64")
    }


def test_an_exception_is_a_failed_check() -> None:
    checks = Checks("group")
    checks.run("work", lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    (found,) = checks.found
    assert not found.passed and "ZeroDivisionError" in found.detail


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        (1.0, 1.0, True), (1.0, 1.0 + 1e-12, True), (1.0, 1.1, False), (None, None, True),
        (None, 1.0, False), ([1, 2], [1, 2, 3], False), ([1, "a"], [1, "a"], True),
        (float("nan"), 1.0, False), (float("nan"), float("nan"), True),
    ],
)  # fmt: skip
def test_values_are_compared(found: Any, expected: Any, same: bool) -> None:
    checks = Checks("group")
    checks.same("name", found, expected, 1e-9)
    assert checks.found[0].passed is same
