"""Options that change only some scores: all other scores, and the p-values of their differences,
are the same with and without them, and the same predictions are the same model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import made_in
from saved_runs import scoring

import uqeval
from uqeval.gate.other_settings import is_among
from uqeval.metrics import FAMILIES, FAMILIES_IN_REPORTS
from uqeval.metrics.calibration_estimators import PUBLISHED
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.settings import fields_changed
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.same_model import is_same_model
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.swaps import SwapTest, swap_tests
from uqeval.usecases.selftest import synthetic_data

FIT_ON = "items.txt"
#: The report of which a threshold is used.
FITTED = "fitted.json"
#: The settings beside the option, and the option with another value, by family.
CASES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "calibration": [
        ({}, {"adaptive": False}), ({}, {"temperature": False}),
        ({"temperature": False}, {"isotonic": True}), ({}, {"vector": True}),
        ({}, {"temperature_of": "samples"}),
        ({"isotonic": True, "vector": True}, {"fit_on": FIT_ON}),
        *(({}, {"estimator": name}) for name in PUBLISHED),
        ({}, {"bins": 7}),
        ({"isotonic": True, "vector": True, "estimator": "kumar-l1"}, {"bins": 7}),
        ({}, {"edge": "upper"}), ({"edge": "upper"}, {"at_one": "own"}),
        ({"isotonic": True, "vector": True}, {"clip": 1e-3}),
    ],
    "pavpu": [({}, {"deciles": False})],
    "regression": [
        ({}, {"depth": True}), ({}, {"ence": True}), ({"ence": True}, {"ence_bins": 4}),
        ({}, {"sigma_scale": True}), ({"sigma_scale": True}, {"fit_on": FIT_ON}),
        ({}, {"levels": 9}), ({}, {"grid": "closed"}), ({}, {"proportion": "quantile"}),
        ({}, {"area": "crossing"}), ({}, {"distribution": "laplace"}),
        ({"depth": True, "ence": True, "sigma_scale": True}, {"distribution": "laplace"}),
    ],
    "failure": [({}, {"threshold": 0.4}), ({}, {"threshold_from": FITTED}), ({}, {"log_base": 2})],
    "image_failure": [({}, {"risk_limit": "p80"})],
    "nmerci": [
        ({}, {"depth_step": 9.0}), ({"over": "kept"}, {"depth_step": 9.0}), ({}, {"alpha": 80.0}),
        ({"depth_step": 9.0}, {"interpolation": "inverted_cdf"}), ({}, {"over": "kept"}),
        ({"depth_step": 9.0}, {"mae": "trimmed"}),
    ],
    "ood": [
        ({"uncertainty": "confidence"}, {"definition": "bravo"}), ({}, {"aggregation": "max"}),
        ({"aggregation": "patch-max"}, {"patch": 3}), ({}, {"log_base": 2}),
    ],
    "annotators": [
        ({}, {"uncertainty": "confidence"}), ({}, {"disagreement": "entropy"}),
        ({}, {"ncc_ddof": 1}), ({}, {"distance": "dice"}), ({}, {"distance_classes": "foreground"}),
        ({}, {"absent": "agree"}), ({}, {"pairs": "pooled"}), ({}, {"bins": 7}),
        ({}, {"clip": 0.01}),
    ],
    "temporal": [
        ({}, {"average": "pooled"}), ({"occlusion": "fb"}, {"average": "pooled"}),
        ({}, {"occlusion": "fb"}), ({"average": "pooled"}, {"occlusion": "fb"}),
        ({}, {"tracks": True}), ({"tracks": True}, {"track_step": 4}),
        ({"tracks": True}, {"track_length": 3}), ({"tracks": True}, {"track_everywhere": True}),
    ],
}  # fmt: skip


#: Options of the tally that counts the other scores, too: the same predictions are another model.
OF_SHARED_TALLIES = frozenset({
    "bins", "edge", "clip", "levels", "grid", "proportion", "distribution", "log_base", "alpha",
    "interpolation", "over", "uncertainty", "disagreement", "ncc_ddof", "distance",
    "distance_classes", "absent", "pairs", "occlusion",
})  # fmt: skip
#: Of these, options that change the shape of states, which then cannot be swapped.
OF_SHAPES = frozenset({"bins", "levels", "grid", "proportion"})
#: Options of the unit of what is swapped, and of bins: p-values differ a little.
OF_UNITS = frozenset({"log_base"})


def test_all_such_options_are_tested() -> None:
    marked = {
        (family.in_reports, name)
        for family in FAMILIES.values()
        for name in family.settings_type.__dataclass_fields__
        if fields_changed(family.settings_type, name)
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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of two models of each kind, and the names of the items of a fit."""
    with made_in(tmp_path_factory, "fields") as folder:
        _write_data()
    return folder


@pytest.fixture
def folder(data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the data, in which the test runs."""
    monkeypatch.chdir(data)
    return data


def _write_data() -> None:
    for kind in ("classes", "numbers", "video"):
        arrays = getattr(synthetic_data, kind)("add")
        # The flow is estimated.
        arrays = {name: own for name, own in arrays.items() if name not in ("names", "flow")}
        np.savez(f"{kind}.npz", **arrays)
        name = {"classes": "probs", "numbers": "mean", "video": "predictions"}[kind]
        # Other items take more of the values beside their own.
        share = np.linspace(0.1, 0.9, len(arrays[name])).reshape(-1, *[1] * (arrays[name].ndim - 1))
        moved = np.roll(arrays[name], 1, axis=-1)
        if kind == "video":
            mixed = np.where(
                synthetic_data.uniform("mix", moved.shape) < share, moved, arrays[name]
            )
        else:
            mixed = (arrays[name] + share * (moved - arrays[name])).astype(moved.dtype)
        np.savez(f"{kind}-other.npz", **arrays | {name: mixed})
    Path(FIT_ON).write_text("0\n2\n", "utf-8")
    evaluated("failure", {"threshold": "p80"}, "-other").save(Path(FITTED))


def evaluated(family: str, settings: dict[str, Any], model: str = "", **options: Any) -> Report:
    """The report of a model."""
    kind = {"regression": "numbers", "nmerci": "numbers", "temporal": "video"}.get(family)
    store = f"{kind or 'classes'}{model}.npz"
    given: dict[str, Any] = {"predictions": store, "workers": 1, **options}
    if family == "temporal":
        given["video"] = given.pop("predictions")
    if family == "annotators":
        arrays = np.load(given["predictions"])
        others = [np.roll(arrays["labels"] % 4, k, axis=-1) for k in range(3)]  # class 4 is absent
        given |= {"predictions": arrays["probs"], "labels": np.stack(others, axis=1)}
    if family == "ood" and settings.get("uncertainty") != "confidence":
        arrays = np.load(given["predictions"])["probs"]
        given |= {"predictions": arrays[:2], "out": [arrays[2:]]}
    elif family == "ood":
        arrays = np.load(given["predictions"])
        given |= {"predictions": arrays["probs"], "labels": arrays["labels"] % 5}
        given["ood_mask"] = np.tri(24, 24, dtype=np.uint8)[None].repeat(4, axis=0)
    given["metrics"] = {FAMILIES_IN_REPORTS[family].name: settings}
    return uqeval.evaluate(**given)


#: Reports and saved states of runs, by folder and settings: many cases share them.
_runs: dict[tuple[Path, str], tuple[Report, Scoring]] = {}


def run(
    folder: Path, family: str, settings: dict[str, Any], model: str = ""
) -> tuple[Report, Scoring]:
    """The report of a model and its saved states; each run is made once."""
    key = folder, f"{family} {sorted(settings.items())} {model}"
    if key not in _runs:
        path = folder / f"run{len(_runs)}.json"
        report = evaluated(family, settings, model, states=path.with_suffix(".states.zip"))
        report.save(path)
        _runs[key] = report, scoring(path)
    return _runs[key]


def scores_of(report: Report, family: str) -> dict[tuple[str, ...], str]:
    """The results and the items' records of a run."""
    items = {own["name"]: own.get(family) for own in report.items}
    return dict(leaves({"results": report.results[family], "items": items}))


def is_changed(family: str, own: dict[str, Any], fields: Sequence[str]) -> bool:
    """Whether the option may change the number at these fields."""
    (name,) = own
    settings_type = FAMILIES_IN_REPORTS[family].settings_type
    return is_among(fields, fields_changed(settings_type, name))


def fields_of(place: tuple[str, ...]) -> list[str]:
    """The fields of a value of `scores_of`: an item has those of the whole."""
    fields = list(place[1:] if place[0] == "results" else place[2:])
    return [field.removesuffix("_reason") for field in fields]


EACH_CASE = pytest.mark.parametrize(
    ("family", "settings", "own"), [(f, *case) for f, cases in CASES.items() for case in cases]
)


@EACH_CASE
def test_other_scores_are_the_same_bits(
    family: str, settings: dict[str, Any], own: dict[str, Any], folder: Path
) -> None:
    with_it, without = (
        scores_of(run(folder, family, settings | other)[0], family) for other in (own, {})
    )

    def others(scores: dict[tuple[str, ...], str]) -> dict[tuple[str, ...], str]:
        return {
            place: value for place, value in scores.items()
            if not is_changed(family, own, fields_of(place))
        }  # fmt: skip

    assert len(others(without)) >= 10
    assert others(with_it) == others(without)
    assert with_it != without or own == {"edge": "upper"}  # no confidence is on an edge


@EACH_CASE
def test_other_scores_have_the_same_p_values(
    family: str, settings: dict[str, Any], own: dict[str, Any], folder: Path
) -> None:
    base = run(folder, family, settings)[1]
    with_it, without = (run(folder, family, settings | added, "-other")[1] for added in (own, {}))
    addresses = [
        text
        for text in base.addresses.keys() & with_it.addresses.keys() & without.addresses.keys()
        if metric_at(text) and not is_changed(family, own, Address.parse(text).fields)
    ]
    every = range(base.items)
    units = Resampling(base.names, 100, 1)
    tests, others = (
        [swap_tests(*runs, [every, every], units, addresses) for runs in ((base, own), (own, base))]
        for own in (with_it, without)
    )
    (name,) = own
    if name in OF_SHAPES:
        for tested, expected in zip(tests, others, strict=True):
            for text, test in tested.items():
                if isinstance(test, SwapTest):
                    assert test == expected[text]
                else:
                    assert "saved states of the same shape" in test.reason
    elif name in OF_UNITS:
        assert [one.keys() for one in tests] == [one.keys() for one in others]
    else:
        assert tests == others
        p = [own.p for own in tests[0].values() if isinstance(own, SwapTest)]
        assert min(p) < 1
    same_with_it = run(folder, family, settings | own)[1]
    if name not in OF_SHARED_TALLIES:
        assert all(is_same_model([base, same_with_it], text) for text in addresses)
    assert not any(is_same_model([base, with_it], text) for text in addresses)


@pytest.mark.parametrize(
    ("family", "name", "changed", "same"),
    [
        (
            "calibration", "bins",
            "ece ece_debiased temperature.held_out.after.ece isotonic.held_out.before.mce "
            "per_class.road.ece", "nll brier_decomposition.uncertainty",
        ),
        ("calibration", "clip", "nll isotonic.held_out.after.nll temperature.value", "ece"),
        ("regression", "distribution", "auce_debiased auce_over nll", "rmse sharpness"),
        ("temporal", "average", "mtc sequences.0.mtc occluded.mtc sequences.1.occluded.mtc",
         "mtc_pooled mtc_frequency_weighted sequences.0.mtc_pooled miou_mean"),
        ("temporal", "tracks", "tracks.survival sequences.0.tracks.survival", "mtc"),
    ],
)  # fmt: skip
def test_where_fields_may_be(family: str, name: str, changed: str, same: str) -> None:
    """Also inside parts, of a sequence, of a class, and debiased."""
    for texts, expected in ((changed, True), (same, False)):
        for text in texts.split():
            assert is_changed(family, {name: None}, text.split(".")) == expected, text
