"""`uqeval verify --all` of slices, ties and temperatures that are fitted on some items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import Place, add, assert_found, differences, read, remove
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
    assert "Not recomputed of 2 slices: " in left and "all scores of failure" not in left


WET = "slice weather=wet"
#: By report: changed values of the slice of wet items, as steps to them, and where they are found.
CHANGED: dict[str, list[tuple[str, Place]]] = {
    "classes": [
        *((WET, ("results", "failure", *steps)) for steps in (
            # A larger bound of AURC excuses another AURC of the slice, which is left as it is.
            ("auroc",), ("aurc_bound",), ("risk_at_coverage", "90"), ("undetected_error_rate",),
            ("uncertainty_threshold",))),
        *((f"{WET}, class 1", ("results", "failure", "per_class", 1, name)) for name in (
            "errors", "aurc", "undetected_error_rate")),
        (f"{WET}, class 1", ("results", "pavpu", "per_class", 1, "n_ac")),
        (f"{WET}, class 2", ("results", "segmentation", "per_class", 2, "iou")),
        *((WET, ("results", "sparsification", *steps)) for steps in (
            ("ause",), ("curve", 3), ("oracle", 3))),
        (WET, ("results", "sparsification[zero-one]", "aurg")),
        *((f"interval of {name} of {WET}", ("intervals", name, end)) for name, end in (
            ("failure.auroc", "low"), ("sparsification.ause", "high"),
            ("segmentation.miou", "high"))),
    ],
    "grouped": [
        (WET, ("results", "failure@box:0:0.6,0:1", "augrc")),
        (f"interval of failure.aurc of {WET}", ("intervals", "failure.aurc", "high")),
    ],
    "numbers": [
        (WET, ("results", "sparsification", "ause")),
        (WET, ("results", "sparsification[mae]", "oracle", 4)),
        (WET, ("results", "nmerci", "nmerci")),
        (f"interval of regression.rmse of {WET}", ("intervals", "regression.rmse", "low")),
    ],
    "later": [
        (WET, ("results", "failure", "auroc")), (WET, ("results", "failure", "aurc_bound")),
        (WET, ("results", "sparsification", "ause")),
    ],
}  # fmt: skip


def _field(place: Place) -> str:
    """Return the field of a difference at a place in the record of a slice."""
    key, *rest = place[1:]
    if place[0] == "intervals":
        return f"{str(key).partition('.')[0]}.{rest[0]}"
    return ".".join(map(str, [key, *(rest[2:] if rest[0] == "per_class" else rest)]))


@pytest.mark.parametrize("name", CHANGED)
def test_changed_values_of_a_slice_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    add(record["slices"]["weather=wet"], [place for _, place in CHANGED[name]])
    expected = [(where, _field(place)) for where, place in CHANGED[name]]
    if name == "classes":
        # Scores of patches follow from the report's own counts.
        expected += [
            (f"{WET}, class 1", f"pavpu.{own}") for own in ("pavpu", "p_certain", "pavpu_chance")
        ]
        ties = record["results"]["pavpu"]["ties"]
        for threshold in ("accuracy", "uncertainty"):
            ties[threshold] += 1000
            expected.append(("the set", f"pavpu.ties.{threshold}"))
    assert_found(differences(record), expected)


#: By report, scores that are removed from all items and slices.
REMOVED = {
    "classes": [("failure", "auroc"), ("pavpu", "surplus"), ("segmentation", "miou")],
    "numbers": [("regression", "rmse"), ("sparsification", "ause")],
}
#: By report, the addresses of removed intervals; those of the last one are not recomputed.
WITHOUT_INTERVAL = {
    "classes": ("failure.aurc", "failure.coverage_at_risk.5"), "numbers": ("nmerci.nmerci",),
}  # fmt: skip


@pytest.mark.parametrize("name", REMOVED)
def test_removed_scores_and_intervals_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    parts = {f"item {item['name']}": item for item in record["items"]}
    parts |= {f"slice {key}": own["results"] for key, own in record["slices"].items()}
    expected = []
    for where, own in parts.items():
        remove(own, REMOVED[name])
        expected += [(where, f"{key}.{field}") for key, field in REMOVED[name]]
    for address in WITHOUT_INTERVAL[name]:
        for where, own in (("the set", record), (WET, record["slices"]["weather=wet"])):
            del own["intervals"][address]
            expected.append((where, f"interval of {address}"))
    if name == "classes":
        del record["slices"]["weather=wet"]["results"]["failure"]["augrc"]
        expected.append((WET, "failure.augrc"))
        for row in record["results"]["pavpu"]["per_class"]:
            del row["surplus"]
            expected.append((f"the set, class {row['name']}", "pavpu.surplus"))
    found = differences(record)
    assert_found(found, expected)
    texts = list(map(str, found))
    assert all(own.is_missing and " is missing" in str(own) for own in found)
    if name == "classes":
        assert any(text.startswith(f"{WET}: failure.augrc is missing, recomputed 0.")
                   for text in texts)  # fmt: skip
        assert f"{WET}: interval of failure.aurc is missing" in texts


def test_families_and_tables_that_were_removed_are_found(folder: Path) -> None:
    record = read("classes.json")
    wet, dry = (record["slices"][f"weather={name}"]["results"] for name in ("wet", "dry"))
    remove(record["results"], [("failure",), ("pavpu", "per_class")])
    remove(wet, [("pavpu",)])
    remove(dry, [("pavpu", "per_class")])
    found = [str(own) for own in differences(record)]
    assert {
        "the set: failure is missing", "the set: pavpu.per_class is missing",
        "slice weather=wet: pavpu is missing", "slice weather=dry: pavpu.per_class is missing",
    } <= set(found)  # fmt: skip
    assert all(" is missing" in text for text in found)


def test_all_intervals_of_a_slice_that_were_removed_are_found(folder: Path) -> None:
    record = read("classes.json")
    del record["slices"]["weather=wet"]["intervals"]
    found = [str(own) for own in differences(record)]
    assert "slice weather=wet: interval of failure.aurc is missing" in found


def test_patches_on_both_thresholds_are_counted(folder: Path) -> None:
    metrics = {"pavpu": {"uncertainty": "variation_ratio", "threshold": 0.25, "window": 2}}
    report = uqeval.evaluate("classes.npz", metrics=metrics, workers=1)
    assert min(report.results["pavpu"]["ties"].values()) > 0
    report.save("ties.json")
    assert "ties" not in _left_out("ties.json")


def test_a_temperature_that_is_fitted_on_some_items(folder: Path) -> None:
    assert "temperature" not in _left_out("fitted.json")
    steps = "results", "calibration", "temperature"
    # The scores at a temperature follow from its value.
    record = read("fitted.json")
    add(record, [(*steps, "value")], 0.01)
    assert "calibration.temperature.value" in [own.field for own in differences(record)]
    record = read("fitted.json")
    fields: list[Place] = [("ece",), ("pixels",), ("held_out", "after", "nll")]
    add(record, [(*steps, *field) for field in fields])
    assert_found(differences(record), [
        ("the set", ".".join(map(str, ["calibration.temperature", *field]))) for field in fields
    ])  # fmt: skip


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
    expected = "names other items than in the run" if digest else "does not give the items"
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
    record = read("numbers.json")
    del record["slices"]["weather=dry"]
    (found,) = differences(record)
    assert str(found) == "the slices of weather: the slice of 2 items (n13, n6) is missing"


def test_an_invented_slice_of_chosen_items_is_found(folder: Path) -> None:
    record = read("numbers.json")
    record["slices"]["weather=snow"] = record["slices"]["weather=dry"]
    (found,) = differences(record)
    assert str(found).startswith("the slices of weather: the number of slices that have n")
    assert str(found).endswith(" is 2, recomputed 1")


@pytest.mark.parametrize("name", ["numbers", "grouped"])
def test_slices_that_were_all_removed_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    record["slices"] = {}
    (found,) = differences(record)
    assert str(found) == "the report: every slice of weather is missing"


#: By report, the addresses of intervals that are set to null.
NULL = {
    "classes": ["segmentation.pixel_accuracy", "failure.auroc", "sparsification.ause"],
    "numbers": ["regression.rmse", "regression.auce"],
}


@pytest.mark.parametrize("name", NULL)
def test_intervals_that_were_set_to_null_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    nothing = {"low": None, "high": None, "method": None, "reason": "too few items"}
    expected = []
    for where, own in (("", record), (f" of {WET}", record["slices"]["weather=wet"])):
        for address in NULL[name]:
            own["intervals"][address] |= nothing
            family = address.partition(".")[0]
            place = f"interval of {address}{where}"
            expected += [(place, f"{family}.{end}") for end in ("low", "high")]
    found = differences(record)
    assert_found(found, expected)
    assert all(" is None, rec" in str(own) for own in found)
