"""Curves over thresholds of patches: patches too close to call move them, others do not."""

from __future__ import annotations

import numpy as np
import pytest

from uqeval.usecases.verify.class_scores import NEAR, Patches
from uqeval.usecases.verify.patch_curves import accuracy_curve

SETTINGS = {"accuracy_op": ">=", "uncertainty_op": ">"}


@pytest.mark.parametrize(("distance", "is_near"), [(0.0, True), (NEAR / 2, True), (0.1, False)])
def test_only_patches_near_the_threshold_may_be_on_either_side(
    distance: float, is_near: bool
) -> None:
    means = np.array([0.2, 0.5 + distance, 0.9], np.float32)
    patches = Patches(np.array([4, 1, 2]), np.full(3, 4), means, np.zeros(3, np.int64))
    found = accuracy_curve(patches, SETTINGS, 0.5)
    assert any(slack > 0 for slack in found.slack.values()) == is_near
    curve = found.values["accuracy_curve"]
    assert {f"accuracy_curve.{name}.0" for name in curve if name != "accuracy_threshold"} == {
        name for name in found.slack if name.endswith(".0")
    }
