"""Bounds of ranked scores: right ones pass, blown-up ones do not excuse a wrong score."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import Place, add, assert_found, differences, parent_of, read

import uqeval
from uqeval.usecases.verify.rank_bounds import FAILURE, limits
from uqeval.usecases.verify.ranks import bins_of, failure
from uqeval.usecases.verify.verifying import verify

AREAS = ("auroc", "aupr_error", "aupr_success", "aurc", "e_aurc", "augrc")
#: More bins with several pixels than a run splits.
RUNS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "failure": ({"failure": {}}, {}),
    "ood": ({"ood": {}}, {"out": ["out.npz", "other.npz"]}),
}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores of near uncertainties, and their reports."""
    folder = tmp_path_factory.mktemp("bounds")
    rng = np.random.default_rng(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, items in (("in", 4), ("out", 2), ("other", 2)):
            logits = rng.normal(size=(items, 1, 4, 90, 90)) * 0.6
            probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
            labels = rng.integers(0, 4, (items, 90, 90)).astype(np.uint8)
            arrays = {"probs": probs.astype(np.float32)}
            np.savez(f"{name}.npz", **arrays, **({"labels": labels} if name == "in" else {}))
        for name, (metrics, options) in RUNS.items():
            uqeval.evaluate("in.npz", metrics=metrics, workers=1, **options).save(f"{name}.json")
    return folder


#: By run, the places of the scores in the results.
PLACES: dict[str, list[Place]] = {
    "failure": [*(("failure", name) for name in AREAS), ("failure", "per_class", 2, "aurc")],
    "ood": [
        *(("ood", name) for name in ("auroc", "aupr_out", "aupr_in")),
        ("ood", "per_set", "other", "aupr_out"),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_report_with_wide_bounds_follows_from_its_predictions(name: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    assert record["results"][name]["auroc_bound"] > 1e-7
    found = verify(f"{name}.json", everything=True)
    assert found.passed, found.problems()
    assert "auroc_bound" in found.fields[name]


def _differences(place: Place) -> tuple[str, str]:
    """Return where a change of a score is found, and its field."""
    if "per_class" in place:
        return f"the set, class {place[2]}", f"{place[0]}.{place[-1]}"
    return "the set", ".".join(map(str, place))


@pytest.mark.parametrize("name", RUNS)
def test_blown_up_bounds_are_found_and_excuse_no_score(name: str, folder: Path) -> None:
    """The bound of a score belongs to this one alone."""
    record, places = read(f"{name}.json"), PLACES[name]
    for place in places:
        own, field = parent_of(record["results"], place)
        own[f"{field}_bound"] = 0.5
    found = differences(record)
    of_scores = [_differences(place) for place in places]
    of_bounds = [(where, f"{field}_bound") for where, field in of_scores]
    assert_found(found, of_bounds)
    assert all(own.recomputed < 0.02 for own in found)
    add(record["results"], places, 0.02)
    assert_found(differences(record), of_scores + of_bounds)


def test_a_negative_bound_or_a_text_is_found(folder: Path) -> None:
    record = read("failure.json")
    record["results"]["failure"] |= {"aurc_bound": -1.0, "augrc_bound": "small"}
    fields = ("failure.aurc_bound", "failure.augrc_bound")
    assert_found(
        differences(record), [("the set", field) for field in fields], [("the set", "failure.")]
    )


@pytest.mark.parametrize("seed", range(4))
def test_the_limit_holds_for_every_order_within_bins(seed: int) -> None:
    """Of five pixels in up to three bins, of all orders with ties."""
    rng = np.random.default_rng(seed)
    bins, wrong = np.sort(rng.integers(0, 3, 5)), rng.random(5) < 0.5
    score = 1 + bins.astype(np.float32)
    bounds, tied = limits(score, wrong), failure(score, wrong)
    assert len(np.unique(bins_of(score, 10))) == len(np.unique(bins))
    assert set(bounds) <= set(FAILURE)
    for places in itertools.product(range(5), repeat=5):
        if len(set(places)) <= max(places):  # the same order as with smaller numbers
            continue
        own = failure(bins * 10 + np.array(places), wrong)
        for name, bound in bounds.items():
            if own[name] is not None:
                assert abs(own[name] - tied[name]) <= bound + 1e-12, (name, places)
