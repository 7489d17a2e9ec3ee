"""`uqeval verify --all` of slices, ties and temperatures that are fitted on some items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import stack

import uqeval
from uqeval.usecases.merge import merge
from uqeval.usecases.verify.verifying import verify

FITTED = {"calibration": {"fit_on": "fit.txt", "temperature": True}}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores, lists of items, and reports with intervals, groups and slices."""
    folder = tmp_path_factory.mktemp("slices")
    probs, labels = stack(14)
    names = [f"n{13 - i}" for i in range(14)]  # not in their order
    np.savez(folder / "classes.npz", probs=probs, labels=labels, names=names)
    rng = np.random.default_rng(0)
    std, target = rng.gamma(2, 1, (2, 14, 8, 9)) + 0.1
    mean = target + rng.normal(size=std.shape) * std
    np.savez(folder / "numbers.npz", mean=mean, std=std, target=target, names=names)
    rows = "".join(f"{n},d{i // 2},{'wet' if i % 7 else 'dry'}\n" for i, n in enumerate(names))
    (folder / "items.csv").write_text("name,drive,weather\n" + rows)
    (folder / "fit.txt").write_text("\n".join(names[:5]))
    errors = {"error": ["brier", "zero-one"], "steps": 10}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        asked: dict[str, tuple[Any, dict[str, Any]]] = {
            "classes": ({"failure": {}, "sparsification": errors, "pavpu": {}}, {}),
            "grouped": (["failure"], {"group_by": "drive", "region": ["box:0:0.6,0:1"]}),
            "numbers": (
                {"sparsification": {"error": ["rmse", "mae"]}, "regression": {}, "nmerci": {}},
                {},
            ),
        }
        for name, (metrics, options) in asked.items():
            store = "numbers.npz" if name == "numbers" else "classes.npz"
            report = uqeval.evaluate(
                store, metrics=metrics, workers=1, ci=0.9, draws=200, slices="items.csv",
                slice_by=["weather"], **options,
            )  # fmt: skip
            report.save(f"{name}.json")
        later = {"failure": {}, "sparsification": errors}
        uqeval.evaluate("classes.npz", metrics=later, states="run.states.zip", workers=1)
        merge("run.states.zip", slices="items.csv", slice_by=["weather"]).save("later.json")
        uqeval.evaluate("classes.npz", metrics=FITTED, workers=1).save("fitted.json")
    return folder


def _left_out(path: str) -> str:
    found = verify(path, everything=True)
    assert found.passed, found.problems()
    return " ".join(found.not_verified)


@pytest.mark.parametrize("name", ["classes", "grouped", "numbers", "later"])
def test_slices_follow_from_the_predictions_of_their_items(name: str, folder: Path) -> None:
    left = _left_out(f"{name}.json")
    slices = json.loads(Path(f"{name}.json").read_text())["slices"].values()
    assert all(bool(own["approximate"]) == (name == "later") for own in slices)
    assert "Of 2 slices, " in left and "the scores of failure" not in left


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("classes", ("results", "failure", "auroc")),
        ("classes", ("results", "failure", "aurc_bound")),
        ("classes", ("results", "failure", "risk_at_coverage", "90")),
        ("classes", ("results", "failure", "undetected_error_rate")),
        ("classes", ("results", "failure", "uncertainty_threshold")),
        ("classes", ("results", "failure", "per_class", 1, "errors")),
        ("classes", ("results", "failure", "per_class", 1, "aurc")),
        ("classes", ("results", "failure", "per_class", 1, "undetected_error_rate")),
        ("classes", ("results", "pavpu", "per_class", 1, "n_ac")),
        ("classes", ("results", "segmentation", "per_class", 2, "iou")),
        ("classes", ("results", "sparsification", "ause")),
        ("classes", ("results", "sparsification", "curve", 3)),
        ("classes", ("results", "sparsification", "oracle", 3)),
        ("classes", ("results", "sparsification[zero-one]", "aurg")),
        ("classes", ("intervals", "failure.auroc", "low")),
        ("classes", ("intervals", "sparsification.ause", "high")),
        ("classes", ("intervals", "segmentation.miou", "high")),
        ("grouped", ("results", "failure@box:0:0.6,0:1", "augrc")),
        ("grouped", ("intervals", "failure.aurc", "high")),
        ("numbers", ("results", "sparsification", "ause")),
        ("numbers", ("results", "sparsification[mae]", "oracle", 4)),
        ("numbers", ("results", "nmerci", "nmerci")),
        ("later", ("results", "failure", "auroc")),
        ("later", ("results", "failure", "aurc_bound")),
        ("later", ("results", "sparsification", "ause")),
        ("numbers", ("intervals", "regression.rmse", "low")),
    ],
)
def test_a_changed_value_of_a_slice_is_found(
    name: str, place: tuple[Any, ...], folder: Path
) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    own = record["slices"]["weather=wet"]
    for part in place[:-1]:
        own = own[part]
    own[place[-1]] += 3 if isinstance(own[place[-1]], int) else 1e-3
    Path("changed.json").write_text(json.dumps(record))
    differences = verify("changed.json", everything=True).differences
    assert all("slice weather=wet" in own.where for own in differences)
    # Scores of patches follow from the report's own counts.
    assert len(differences) == (4 if place[-1] == "n_ac" else 1)
    assert differences[0].field.endswith(str(place[-1]))


def test_a_score_that_was_removed_from_a_slice_is_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    record["slices"]["weather=wet"]["results"]["failure"].pop("augrc")
    Path("changed.json").write_text(json.dumps(record))
    (found,) = verify("changed.json", everything=True).differences
    assert str(found).startswith("slice weather=wet: failure.augrc is missing, recomputed 0.")


def test_intervals_that_were_removed_are_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    del record["intervals"]["failure.auroc"]
    del record["slices"]["weather=wet"]["intervals"]["failure.aurc"]
    Path("changed.json").write_text(json.dumps(record))
    found = verify("changed.json", everything=True).differences
    assert [str(own) for own in found] == [
        "the set: interval of failure.auroc is missing",
        "slice weather=wet: interval of failure.aurc is missing",
    ]


@pytest.mark.parametrize(
    ("name", "address"),
    [("numbers", "nmerci.nmerci"), ("classes", "failure.coverage_at_risk.5")],
)
def test_removed_intervals_that_are_not_recomputed_are_found(
    name: str, address: str, folder: Path
) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    del record["intervals"][address]
    del record["slices"]["weather=wet"]["intervals"][address]
    Path("changed.json").write_text(json.dumps(record))
    found = [str(own) for own in verify("changed.json", everything=True).differences]
    assert found == [
        f"the set: interval of {address} is missing",
        f"slice weather=wet: interval of {address} is missing",
    ]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (("results", "failure"), "the set: failure is missing"),
        (("results", "pavpu", "per_class"), "the set: pavpu.per_class is missing"),
        (("slices", "weather=wet", "results", "pavpu"), "slice weather=wet: pavpu is missing"),
        (("slices", "weather=wet", "results", "pavpu", "per_class"),
         "slice weather=wet: pavpu.per_class is missing"),
    ],
)  # fmt: skip
def test_a_family_or_a_table_that_was_removed_is_found(
    place: tuple[str, ...], problem: str, folder: Path
) -> None:
    record = json.loads(Path("classes.json").read_text())
    own = record
    for part in place[:-1]:
        own = own[part]
    del own[place[-1]]
    Path("changed.json").write_text(json.dumps(record))
    found = [str(own) for own in verify("changed.json", everything=True).differences]
    assert problem in found
    assert all(" is missing" in text for text in found)


def test_all_intervals_of_a_slice_that_were_removed_are_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    del record["slices"]["weather=wet"]["intervals"]
    Path("changed.json").write_text(json.dumps(record))
    found = [str(own) for own in verify("changed.json", everything=True).differences]
    assert "slice weather=wet: interval of failure.aurc is missing" in found


@pytest.mark.parametrize("threshold", ["accuracy", "uncertainty"])
def test_changed_ties_are_found(threshold: str, folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    record["results"]["pavpu"]["ties"][threshold] += 1000
    Path("changed.json").write_text(json.dumps(record))
    (difference,) = verify("changed.json", everything=True).differences
    assert difference.field == f"pavpu.ties.{threshold}"


def test_patches_on_both_thresholds_are_counted(folder: Path) -> None:
    metrics = {"pavpu": {"uncertainty": "variation_ratio", "threshold": 0.25, "window": 2}}
    report = uqeval.evaluate("classes.npz", metrics=metrics, workers=1)
    assert min(report.results["pavpu"]["ties"].values()) > 0
    report.save("ties.json")
    assert "ties" not in _left_out("ties.json")


def test_a_temperature_that_is_fitted_on_some_items(folder: Path) -> None:
    assert "temperature" not in _left_out("fitted.json")
    for field, change in (("value", 0.01), ("ece", 1e-3), ("pixels", 1)):
        record = json.loads(Path("fitted.json").read_text())
        record["results"]["calibration"]["temperature"][field] += change
        Path("changed.json").write_text(json.dumps(record))
        fields = [own.field for own in verify("changed.json", everything=True).differences]
        assert f"calibration.temperature.{field}" in fields
    record["results"]["calibration"]["temperature"]["held_out"]["after"]["nll"] += 1e-3
    Path("changed.json").write_text(json.dumps(record))
    fields = [own.field for own in verify("changed.json", everything=True).differences]
    assert "calibration.temperature.held_out.after.nll" in fields


def test_a_temperature_of_unknown_items_is_named(folder: Path) -> None:
    Path("fit.txt").unlink()
    assert "calibration.temperature: the items of --fit-on are unknown" in _left_out("fitted.json")
    record = json.loads(Path("fitted.json").read_text())
    for path in ("../fit.txt", "/etc/passwd"):
        record["settings"]["calibration"]["fit_on"] = path
        record["results"]["calibration"]["temperature"]["fitted_on"] = path
        Path("changed.json").write_text(json.dumps(record))
        assert f"--fit-on {path} is outside the working folder" in _left_out("changed.json")


def test_a_report_at_another_threshold_lacks_what_needs_the_pixels(folder: Path) -> None:
    states = "run.states.zip"
    report = uqeval.evaluate("classes.npz", metrics={"pavpu": {}}, states=states, workers=1)
    report.save("run.json")
    merged = uqeval.merge(["run.json"], threshold="range:0.5")
    assert merged.results["pavpu"]["accuracy_curve"] is None
    merged.save("merged.json")
    _left_out("merged.json")


@pytest.mark.parametrize("digest", [True, False])
def test_a_changed_file_of_fit_on_is_no_difference(digest: bool, folder: Path) -> None:
    """The temperature is then not recomputed, and so for reports that do not tell the items."""
    record = json.loads(Path("fitted.json").read_text())
    before = Path("fit.txt").read_text()
    try:
        if digest:
            Path("fit.txt").write_text("\n".join(str(i["name"]) for i in record["items"][3:9]))
        else:
            del record["results"]["calibration"]["temperature"]["fitted_on_digest"]
        Path("other.json").write_text(json.dumps(record))
        left = _left_out("other.json")
    finally:
        Path("fit.txt").write_text(before)
    expected = "names other items than in the run" if digest else "does not tell the items"
    assert "calibration.temperature" in left and expected in left


def test_values_that_are_said_to_need_the_pixels_are_named(folder: Path) -> None:
    """A forged report could hide them."""
    record = json.loads(Path("classes.json").read_text())
    results = record["results"]["pavpu"]
    for place, name in ((results, "accuracy_curve"), (results["ties"], "uncertainty")):
        place[name] = None
        place[f"{name}_reason"] = "at another threshold this needs the pixels"
    Path("forged.json").write_text(json.dumps(record))
    left = _left_out("forged.json")
    assert "accuracy_curve" in left and "ties.uncertainty" in left


def test_a_slice_that_was_removed_is_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    del record["slices"]["weather=dry"]
    Path("changed.json").write_text(json.dumps(record))
    (found,) = verify("changed.json", everything=True).differences
    assert str(found) == "the slices of weather: the slice of 2 items (n13, n6) is missing"


def test_an_invented_slice_of_chosen_items_is_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    record["slices"]["weather=snow"] = record["slices"]["weather=dry"]
    Path("changed.json").write_text(json.dumps(record))
    (found,) = verify("changed.json", everything=True).differences
    assert str(found).startswith("the slices of weather: the number of slices that have n")
    assert str(found).endswith(" is 2, recomputed 1")


@pytest.mark.parametrize("name", ["classes", "grouped"])
def test_slices_that_were_all_removed_are_found(name: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    record["slices"] = {}
    Path("changed.json").write_text(json.dumps(record))
    found = [str(own) for own in verify("changed.json", everything=True).differences]
    assert found == ["the report: every slice of weather is missing"]


@pytest.mark.parametrize(
    ("name", "key", "field"),
    [
        ("classes", "failure", "auroc"),
        ("classes", "pavpu", "surplus"),
        ("classes", "segmentation", "miou"),
        ("numbers", "regression", "rmse"),
        ("numbers", "sparsification", "ause"),
    ],
)
def test_a_score_that_was_removed_from_all_items_and_slices_is_found(
    name: str, key: str, field: str, folder: Path
) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    own = [*record["items"], *(of_slice["results"] for of_slice in record["slices"].values())]
    for place in own:
        del place[key][field]
    Path("changed.json").write_text(json.dumps(record))
    found = [str(one) for one in verify("changed.json", everything=True).differences]
    assert len(found) == len(own)
    assert all(f": {key}.{field} is missing" in text for text in found)


def test_a_score_that_was_removed_from_all_classes_is_found(folder: Path) -> None:
    record = json.loads(Path("classes.json").read_text())
    for row in record["results"]["pavpu"]["per_class"]:
        del row["surplus"]
    Path("changed.json").write_text(json.dumps(record))
    found = [str(one) for one in verify("changed.json", everything=True).differences]
    assert len(found) == len(record["results"]["pavpu"]["per_class"])
    assert all("pavpu.surplus is missing" in text for text in found)


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("classes", "segmentation.pixel_accuracy"),
        ("classes", "failure.auroc"),
        ("classes", "sparsification.ause"),
        ("numbers", "regression.rmse"),
        ("numbers", "regression.auce"),
    ],
)
def test_an_interval_that_was_set_to_null_is_found(name: str, address: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    nothing = {"low": None, "high": None, "method": None, "reason": "too few items"}
    for own in (record, record["slices"]["weather=wet"]):
        own["intervals"][address] |= nothing
    Path("changed.json").write_text(json.dumps(record))
    found = [str(own) for own in verify("changed.json", everything=True).differences]
    family = address.partition(".")[0]
    for where in (f"interval of {address}", f"interval of {address} of slice weather=wet"):
        for end in ("low", "high"):
            assert any(text.startswith(f"{where}: {family}.{end} is None, rec") for text in found)
    assert len(found) == 4
