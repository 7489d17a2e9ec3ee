"""Options that only add scores: all other scores are the same bits with and without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.metrics import FAMILIES, FAMILIES_IN_REPORTS
from uqeval.metrics.calibration_estimators import PUBLISHED
from uqeval.settings import fields_added
from uqeval.usecases.selftest import synthetic_data

FIT_ON = "items.txt"
#: The settings beside the option, and the option with another value, by family.
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "calibration": [
        ({}, {"adaptive": False}), ({}, {"temperature": False}),
        ({"temperature": False}, {"isotonic": True}), ({}, {"vector": True}),
        ({}, {"temperature_of": "samples"}),
        ({"isotonic": True, "vector": True}, {"fit_on": FIT_ON}),
        *(({}, {"estimator": name}) for name in PUBLISHED),
    ],
    "pavpu": [({}, {"deciles": False})],
    "regression": [
        ({}, {"depth": True}), ({}, {"ence": True}), ({"ence": True}, {"ence_bins": 4}),
        ({}, {"sigma_scale": True}), ({"sigma_scale": True}, {"fit_on": FIT_ON}),
    ],
    "nmerci": [({}, {"depth_step": 9.0}), ({"over": "kept"}, {"depth_step": 9.0})],
    "ood": [({"uncertainty": "confidence"}, {"definition": "bravo"})],
    "temporal": [
        ({}, {"occlusion": "fb"}), ({"average": "pooled"}, {"occlusion": "fb"}),
        ({}, {"tracks": True}), ({"tracks": True}, {"track_step": 4}),
        ({"tracks": True}, {"track_length": 3}), ({"tracks": True}, {"track_everywhere": True}),
    ],
}  # fmt: skip


def test_all_such_options_are_tested() -> None:
    marked = {
        (family.in_reports, name)
        for family in FAMILIES.values()
        for name in family.settings_type.__dataclass_fields__
        if fields_added(family.settings_type, name)
    }
    tested = {(family, name) for family, cases in CASES.items() for _, own in cases for name in own}
    assert tested == marked


def leaves(value: Any, *place: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each number and text of a record, as its exact text, by its place."""
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, *place, str(name))
    else:
        yield place, repr(value)


def scores_of(folder: Path, family: str, settings: dict[str, Any]) -> dict[tuple[str, ...], str]:
    """The results and the items' records of a run."""
    given: dict[str, Any] = {"predictions": str(folder / "data.npz"), "workers": 1}
    if family == "temporal":
        given["video"] = given.pop("predictions")
    if family == "ood":
        arrays = np.load(given["predictions"])
        given |= {"predictions": arrays["probs"], "labels": arrays["labels"] % 5}
        given["ood_mask"] = np.tri(24, 24, dtype=np.uint8)[None].repeat(4, axis=0)
    given["metrics"] = {FAMILIES_IN_REPORTS[family].name: settings}
    report = uqeval.evaluate(**given)
    items = {own["name"]: own.get(family) for own in report.items}
    return dict(leaves({"results": report.results[family], "items": items}))


@pytest.mark.parametrize(
    ("family", "settings", "own"), [(f, *case) for f, cases in CASES.items() for case in cases]
)
def test_other_scores_are_the_same_bits(
    family: str, settings: dict[str, Any], own: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    kind = {"regression": "numbers", "nmerci": "numbers", "temporal": "video"}.get(family)
    arrays = getattr(synthetic_data, kind or "classes")("add")
    arrays.pop("names", None)
    if kind == "video":  # the flow is estimated
        arrays = {name: arrays[name] for name in ("frames", "predictions")}
    np.savez("data.npz", **arrays)
    Path(FIT_ON).write_text("0\n2\n", "utf-8")
    (name,) = own
    settings_type = FAMILIES_IN_REPORTS[family].settings_type
    added = tuple(f"{field}_" for field in fields_added(settings_type, name))
    with_it, without = (scores_of(tmp_path, family, settings | other) for other in (own, {}))

    def others(scores: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], str]:
        return {
            place: value for place, value in scores.items()
            if not any(f"{part}_".startswith(added) for part in place)
        }  # fmt: skip

    assert len(others(without)) > 20
    assert others(with_it) == others(without)
    assert with_it != without
