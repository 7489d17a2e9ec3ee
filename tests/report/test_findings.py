"""The sentences about a report claim no more than its intervals support."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from family_reports import of_classes, of_video
from rich.console import Console
from small_report import interval, report

import uqeval
from uqeval.metrics import FAMILIES
from uqeval.records.report import Report
from uqeval.report.findings import findings_of
from uqeval.report.terminal import show_findings

CLASSES = [{"class": i, "name": n, "iou": v} for i, (n, v) in enumerate(
    [("road", 0.9), ("pole", 0.1), ("sky", 0.8)])]  # fmt: skip


def sentences(**changes: Any) -> dict[str, str]:
    """The findings of a report of 40 items, by title."""
    items = [{"name": str(i)} for i in range(40)]
    own = report(**{"items": items, "settings": {"intervals": {"units": 40}}} | changes)
    return {found.title: found.text for found in findings_of(own)}


def failure(value: float, **ends: tuple[float, float]) -> dict[str, Any]:
    intervals = {f"failure.{name}": interval(*own) for name, own in ends.items()}
    return {"results": {"failure": {"auroc": value}}, "intervals": intervals}


def test_better_than_chance_needs_an_interval_that_excludes_chance() -> None:
    text = sentences(**failure(0.9, auroc=(0.88, 0.92)))["Main finding"]
    assert text == (
        "The uncertainty finds wrong pixels better than chance: AUROC is 0.900 (95 % interval "
        "0.880 to 0.920), and chance is 0.5."
    )
    wide = sentences(**failure(0.7, auroc=(0.45, 0.9)))
    assert "too wide to tell it from chance" in wide["Main finding"]
    assert wide["Next"] == FAMILIES["failure"].metrics[0].advice
    alone = sentences(**failure(0.9))
    assert "may not hold for other items" in alone["Main finding"]
    assert "better than" not in alone["Main finding"] and "--ci" in alone["Next"]


def test_worse_than_chance() -> None:
    found = sentences(**failure(0.3, auroc=(0.25, 0.35)))
    assert found["Main finding"].startswith("The uncertainty finds wrong pixels worse than")
    assert found["Next"] == FAMILIES["failure"].metrics[0].advice


def nmerci(value: float, low: float, high: float) -> dict[str, Any]:
    intervals = {"nmerci.nmerci": interval(low, high)}
    return {"results": {"nmerci": {"nmerci": value, "mae": 2.0}}, "intervals": intervals}


def test_nmerci_is_compared_with_a_constant_uncertainty() -> None:
    better = sentences(**nmerci(0.4, 0.35, 0.45))["Main finding"]
    assert better == (
        "The uncertainty follows the error better than a constant uncertainty: n-MeRCI is 0.400 "
        "(95 % interval 0.350 to 0.450), and a constant uncertainty would give 1."
    )
    worse = sentences(**nmerci(4.0, 3.0, 5.0))["Main finding"]
    assert worse.startswith("The uncertainty follows the error worse than a constant uncertainty")
    without_interval = nmerci(1.5, 1.0, 2.0) | {"intervals": {}}
    assert sentences(**without_interval)["Main finding"] == (
        "On these items, n-MeRCI is worse than that of a constant uncertainty: n-MeRCI is 1.500, "
        "and a constant uncertainty would give 1. Without an interval, this may not hold for other "
        "items."
    )
    close = sentences(**nmerci(1.02, 0.9, 1.1))["Main finding"]
    assert close.startswith("n-MeRCI is close to that of a constant uncertainty: it is 1.020")


def test_an_error_of_the_prediction_is_no_finding_beside_a_score_of_its_uncertainty() -> None:
    results = {"regression": {"rmse": 3.9, "mae": 2.0, "auce": 0.284, "nll": 2.0, "crps": 1.0}}
    found = sentences(results=results)
    assert "Main finding" not in found  # AUCE has no chance level
    text = found["Main score"]
    assert text.startswith("AUCE is 0.284, where 0 is best") and text.endswith("This gap is large.")
    # A large error goes before missing intervals.
    assert found["Next"].startswith("AUCE is 0.284.") and "Without --ci" in found["Next"]
    results["regression"]["auce"] = 0.019
    small = sentences(results=results)
    assert "--ci" in small["Next"] and "large" not in small["Main score"]


def test_a_coverage_has_the_size_of_the_sets_beside_it() -> None:
    """Sets of nearly all classes contain the label; this is no strength."""
    found = sentences(results={"conformal": {"coverage": 1.0, "size": 4.72}})
    assert found["Main score"].startswith("coverage is 1.000; set size is 4.720. coverage: share")
    assert "Main finding" not in found


def test_the_best_distance_of_annotators_is_0() -> None:
    found = sentences(results={"annotators": {"ged": 1.308}})
    assert found["Main score"].startswith("GED is 1.308, where 0 is best.")


def test_a_small_difference_from_chance_is_close_to_chance() -> None:
    """Beyond the interval, but of no use; a score whose interval covers chance goes first."""
    text = sentences(**failure(0.53, auroc=(0.52, 0.54)))["Main finding"]
    assert "close to chance" in text and "too small to rely on" in text
    both = failure(0.53, auroc=(0.52, 0.54), fpr95=(0.93, 0.96))
    both["results"]["failure"]["fpr95"] = 0.945
    assert sentences(**both)["Main finding"].startswith("FPR95 is close to chance")


def test_a_score_close_to_chance_is_no_finding_beside_one_that_is_not() -> None:
    """Some errors are not uncertain at all: FPR95 is high, although AUROC is good."""
    both = failure(0.81)
    both["results"]["failure"]["fpr95"] = 0.998
    text = sentences(**both)["Main finding"]
    assert text.startswith("On these items, the uncertainty finds wrong pixels: AUROC is 0.810")


def test_the_number_of_candidates_widens_intervals() -> None:
    """Of one score, the interval excludes chance; of the best of two, it does not."""
    one = failure(0.6, auroc=(0.505, 0.695))
    assert "better than chance" in sentences(**one)["Main finding"]
    two = failure(0.6, auroc=(0.505, 0.695), fpr95=(0.5, 1.0))
    two["results"]["failure"]["fpr95"] = 0.8
    assert "better than chance" not in sentences(**two)["Main finding"]


def test_out_of_distribution_detection_is_compared_with_chance() -> None:
    own = {"results": {"ood": {"auroc": 0.8}}, "intervals": {"ood.auroc": interval(0.75, 0.84)}}
    text = sentences(**own)["Main finding"]
    assert text.startswith("The uncertainty finds OUT pixels better than chance: AUROC is 0.800")


def segmentation(pole: tuple[float, float] | None) -> dict[str, Any]:
    intervals = {"segmentation.miou": interval(0.55, 0.65)}
    if pole is not None:
        own = {"pole": pole, "road": (0.88, 0.92), "sky": (0.78, 0.82)}
        intervals |= {f"segmentation.per_class.{n}.iou": interval(*e) for n, e in own.items()}
    return {"results": {"segmentation": {"miou": 0.6, "per_class": CLASSES}},
            "intervals": intervals}  # fmt: skip


def test_the_weakest_class_lies_beyond_the_intervals_of_the_others() -> None:
    found = sentences(**segmentation((0.05, 0.2)))
    assert found["Weakest part"] == (
        "The weakest class is pole: IoU is 0.100 (95 % interval 0.050 to 0.200), the lowest of 3 "
        "classes; the next is sky with 0.800 (95 % interval 0.780 to 0.820)."
    )
    assert "pole" in found["Next"]
    for pole in ((0.0, 0.8), None):
        found = sentences(**segmentation(pole))
        assert "The weakest" not in found["Weakest part"] and "pole" not in found["Next"]
    assert "does not show" in found["Weakest part"]


def test_the_terminal_has_the_command_on_one_line(tmp_path: Path) -> None:
    """A command that is wrapped, or has a placeholder, cannot be pasted."""
    weak = segmentation((0.05, 0.2)) | {"items": [{"name": str(i)} for i in range(40)]}
    own = report(**weak | {"settings": {"intervals": {"units": 40}}})
    path = tmp_path / "a folder; $HOME" / f"{'long' * 20}.json"
    file = io.StringIO()
    show_findings(findings_of(own, path=str(path)), Console(file=file, width=40))
    (command,) = (line for line in file.getvalue().splitlines() if line.startswith("  uqeval"))
    assert shlex.split(command) == ["uqeval", "report", str(path)]
    assert not any(finding.command for finding in findings_of(own))


def test_slices_go_before_classes_and_small_ones_do_not_count() -> None:
    own = segmentation((0.05, 0.2))
    night = {"items": 20, "results": {"segmentation": {"miou": 0.4}},
             "intervals": {"segmentation.miou": interval(0.38, 0.42)}}  # fmt: skip
    text = sentences(**own, slices={"light=night": night})["Weakest part"]
    assert text.startswith("The slice light=night is weaker than the whole set: mIoU is 0.400")
    small = {"light=night": night | {"small": True}}
    assert "class is pole" in sentences(**own, slices=small)["Weakest part"]


def test_a_class_without_a_name_is_called_by_its_number() -> None:
    own = segmentation((0.05, 0.2))
    rows = [row | {"name": str(row["class"])} for row in CLASSES]
    own["results"]["segmentation"]["per_class"] = rows
    for row in CLASSES:
        ends = own["intervals"].pop(f"segmentation.per_class.{row['name']}.iou")
        own["intervals"][f"segmentation.per_class.{row['class']}.iou"] = ends
    number = next(row["class"] for row in CLASSES if row["name"] == "pole")
    assert sentences(**own)["Weakest part"].startswith(
        f"The weakest class is class {number}: IoU is"
    )


def test_the_family_that_accompanies_all_others_goes_last() -> None:
    """Who asks for conformal sets wants the class with the lowest coverage, not with the lowest
    IoU."""
    coverage = [{"class": i, "name": n, "coverage": v} for i, (n, v) in enumerate(
        [("road", 0.8), ("pole", 0.95), ("sky", 0.95)])]  # fmt: skip
    own = segmentation((0.05, 0.2))
    own["results"]["conformal"] = {"coverage": 0.9, "per_class": coverage}
    ends = {"road": (0.79, 0.81), "pole": (0.94, 0.96), "sky": (0.94, 0.96)}
    own["intervals"] |= {"conformal.coverage": interval(0.88, 0.92)} | {
        f"conformal.per_class.{name}.coverage": interval(*e) for name, e in ends.items()
    }
    assert sentences(**own)["Weakest part"].startswith("The weakest class is road: coverage is 0.8")
    text = sentences(results=own["results"])["Weakest part"]
    assert text.startswith("Of 3 classes, the lowest coverage is 0.800 (road)")
    del own["intervals"]["conformal.per_class.road.coverage"]
    assert sentences(**own)["Weakest part"].startswith("The weakest class is pole: IoU is 0.100")


def test_a_page_that_exists_is_opened_and_not_written_again() -> None:
    own = report(**segmentation((0.05, 0.2)))
    assert findings_of(own, path="r.json")[-1].command == "uqeval report r.json"
    found = findings_of(own, path="r.json", page="out/r.html")[-1]
    assert found.command == ""
    assert found.text.endswith("Open out/r.html: it filters its items by class.")


def test_a_region_is_compared_with_the_whole_image() -> None:
    own = segmentation(None)
    own["results"]["segmentation@boundary:3"] = {"miou": 0.3}
    own["intervals"]["segmentation@boundary:3.miou"] = interval(0.28, 0.32)
    text = sentences(**own)["Weakest part"]
    assert text.startswith("The region boundary:3 is weaker than the whole set")
    found = findings_of(report(**own), path="r.json")
    assert found[-1].text.endswith("uqeval select ranks the items by this score.")
    assert found[-1].command == "uqeval select r.json --by segmentation@boundary:3.miou"


@pytest.mark.parametrize("intervals", [False, True])
def test_a_single_region_that_is_not_weaker_is_no_extreme(intervals: bool) -> None:
    own: dict[str, Any] = {
        "results": {"segmentation": {"miou": 0.6}, "segmentation@boundary:3": {"miou": 0.5}}
    }
    if intervals:
        ends = interval(0.4, 0.7)
        own["intervals"] = {"segmentation.miou": ends, "segmentation@boundary:3.miou": ends}
    text = sentences(**own)["Weakest part"]
    begin = (
        "The region boundary:3 is not clearly weaker than the whole set: mIoU is 0.500 ("
        if intervals else
        "In the region boundary:3, mIoU is 0.500; mIoU of the whole set is 0.600. Without"
    )  # fmt: skip
    assert text.startswith(begin)


def test_names_of_data_stay_printable() -> None:
    rows = [CLASSES[0], CLASSES[1] | {"name": "po\u202ele"}]
    own = {"segmentation": {"miou": 0.6, "per_class": rows}}
    assert "\u202e" not in sentences(results=own)["Weakest part"]


def test_a_gap_of_calibration_has_its_advice() -> None:
    own = {"results": {"calibration": {"ece": 0.08}},
           "intervals": {"calibration.ece": interval(0.07, 0.09)}}  # fmt: skip
    found = sentences(**own)
    assert found["Main score"].startswith("ECE is 0.080") and "temperature" in found["Next"]
    own["intervals"]["calibration.ece"] = interval(0.01, 0.15)
    assert "baseline" in sentences(**own)["Next"]
    few = sentences(**own, settings={"intervals": {"units": 3, "unit": "batch"}})["Next"]
    assert few == "Evaluate a longer video: intervals from 3 batches of pairs may be too narrow."


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_random_noise_is_close_to_chance_and_not_alarming(kind: str) -> None:
    rng = np.random.default_rng(0)
    if kind == "classes":
        probs = rng.dirichlet(np.ones(4), size=(8, 3, 32, 32)).transpose(0, 1, 4, 2, 3)
        labels = rng.integers(0, 4, (8, 32, 32)).astype(np.uint8)
        own = uqeval.evaluate(probs.astype(np.float32), labels, ["failure"], ci=0.95, draws=100)
    else:
        target = rng.normal(size=(8, 32, 32)).astype(np.float32)
        std = np.exp(rng.normal(size=target.shape)).astype(np.float32)
        arrays = {"mean": np.zeros_like(target), "std": std, "target": target}
        own = uqeval.evaluate(arrays, None, ["sparsification"], ci=0.95, draws=100)
    first, *others = findings_of(own)
    assert "is close to chance" in first.text and "does not show" in first.text
    assert not any("worse" in text for text in own.warnings)
    for found in (first, *others):
        for alarming in ("worse", "weaker than the whole set:", "fails", "The weakest"):
            assert alarming not in found.text.replace("clearly weaker than the whole set:", "")


@pytest.mark.parametrize("own", [of_classes(), of_video()], ids=["classes", "video"])
def test_the_terminal_shows_the_findings_of_every_kind(own: Report) -> None:
    file = io.StringIO()
    show_findings(findings_of(own), Console(file=file, width=2000))
    assert len(findings_of(own)) > 1
    for found in findings_of(own):
        assert f"{found.title}: {found.text}" in file.getvalue()
        assert found.text.endswith(".") and len(found.text) < 400


def test_every_chance_is_a_claim_in_the_range_of_its_metric() -> None:
    metrics = [m for family in FAMILIES.values() for m in family.metrics if m.chance]
    assert len(metrics) > 5
    for metric in metrics:
        assert metric.chance is not None and metric.direction and metric.advice
        low, high = metric.range
        assert (low is None or low <= metric.chance.value) and (
            high is None or metric.chance.value <= high
        )
        assert metric.chance.claim[0].islower() and not metric.chance.claim.endswith(".")


def test_rows_of_a_table_can_be_items() -> None:
    for shape, is_table in (([1, 442], True), ([375, 450], False), ([1, 1, 1], False)):
        stored = {"predictions": [{"path": "a.npz", "arrays": {"mean": {"shape": shape}}}]}
        found = sentences(items=[{"name": "a"}], inputs=stored, results={"nmerci": {"nmerci": 0.5}})
        assert found["Next"].startswith("Evaluate more items: from a single item")
        assert ("make each row an item: mean[:, None, None]" in found["Next"]) == is_table


def test_a_part_is_merged_before_anything_else() -> None:
    part = {"number": 1, "of": 2, "first": 0}
    assert "uqeval merge" in sentences(**failure(0.9), inputs={"part": part})["Next"]
    assert "uqeval merge" not in sentences(**failure(0.9))["Next"]


def test_the_first_headline_of_a_claim_is_named() -> None:
    """FPR95 is farther from chance here, and AUROC says the same."""
    scores = {"auroc": 0.9, "fpr95": 0.01, "aupr_out": 0.8}
    report = Report(
        uqeval_version="0", inputs={}, settings={}, results={"ood": scores}, items=[{"name": "a"}]
    )
    found = findings_of(report)[0]
    assert found.title == "Main finding" and "AUROC is 0.900" in found.text
    assert "FPR95" not in found.text
    scores |= {"auroc": 0.1, "fpr95": 0.99}
    assert "AUROC is worse than chance" in findings_of(report)[0].text
