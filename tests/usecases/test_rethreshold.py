"""Scores at another threshold, read off saved states: those of a run with it, to the bit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from small_stores import labels, probs, save

import uqeval
from uqeval import Report, UsageError
from uqeval.report.markdown import to_markdown

ITEMS = 6
NAMES = [f"i{k}" for k in range(ITEMS)]
TABLE = "name,weather\n" + "".join(
    f"{n},{'rain' if i % 2 else 'sun'}\n" for i, n in enumerate(NAMES)
)
#: What takes both thresholds for each patch.
LOST = ("ties", "accuracy_curve", "accuracy_curve_reason")
CUT: dict[str, Any] = {"ci": 0.9, "draws": 100}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store, its items' table, and the states of a run with the mean as threshold."""
    folder = tmp_path_factory.mktemp("recut")
    save(folder / "s.zarr", {"probs": probs(ITEMS), "labels": labels(ITEMS)}, {"names": NAMES})
    (folder / "meta.csv").write_text(TABLE)
    evaluated(folder, "mean.states.zip", {})
    return folder


def evaluated(folder: Path, states: str, settings: dict[str, Any], **options: Any) -> Report:
    report: Report = uqeval.evaluate(
        folder / "s.zarr", None, {"pavpu": settings}, states=folder / states, workers=1, **options
    )
    return report


def told(report: Report) -> dict[str, Any]:
    """Return the results at a threshold, without those that states do not contain for others."""
    record: dict[str, Any] = json.loads(report.to_json())
    results = [record["results"], *(own["results"] for own in record["slices"].values())]
    for own in results:
        own["pavpu"] = {k: v for k, v in own["pavpu"].items() if k not in LOST}
    return {k: record[k] for k in ("results", "items", "intervals", "slices", "metrics")}


def curve(report: Report) -> list[float]:
    found: list[float] = report.results["pavpu"]["curve"]["threshold"]
    return found


@pytest.mark.parametrize("op", [">", ">="])
def test_a_threshold_of_the_curve_is_that_of_a_run(op: str, folder: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"uncertainty_op": op}
    first = evaluated(folder, "first.states.zip", settings)
    sliced = CUT | {"slices": folder / "meta.csv"}
    for rule in ("range:0", "range:0.07", "range:0.5", "range:1", "max-surplus"):
        cut = uqeval.merge(
            folder / "first.states.zip", threshold=rule, states=tmp_path / "c.zip", **sliced
        )
        alone = evaluated(folder, "alone.states.zip", settings | {"threshold": rule}, **sliced)
        assert told(cut) == told(alone), rule
        own = cut.results["pavpu"]
        assert own["uncertainty_threshold"] in curve(first)
        assert own["accuracy_by_uncertainty"] == first.results["pavpu"]["accuracy_by_uncertainty"]
        assert own["accuracy_curve"] is None and "pixels" in own["accuracy_curve_reason"]
        assert own["ties"]["uncertainty"] is None
        assert own["ties"]["accuracy"] == first.results["pavpu"]["ties"]["accuracy"]
        assert cut.numerics["pavpu"] == {"ties_accuracy": own["ties"]["accuracy"]}
        assert cut.settings["pavpu"]["threshold"] == rule
        assert cut.settings["pavpu"]["recut_from"] == "mean"
        assert any("recomputed at the threshold" in text for text in cut.warnings)
        to_markdown(cut)
        assert json.loads(cut.to_json()) == cut.record()


def test_every_threshold_of_the_curve(folder: Path) -> None:
    first = uqeval.merge(folder / "mean.states.zip")
    own = first.results["pavpu"]
    for i, value in enumerate(curve(first)):
        results = uqeval.merge(folder / "mean.states.zip", threshold=value).results["pavpu"]
        for name in ("pavpu", "p_accurate_given_certain", "surplus"):
            assert results[name] == own["curve"][name][i], (i, name)
        assert sum(row["n_ac"] for row in results["per_class"]) == results["n_ac"]


def test_a_number_is_that_of_a_run_with_it(folder: Path) -> None:
    first = uqeval.merge(folder / "mean.states.zip")
    value = curve(first)[40]
    ends = f"{curve(first)[0]!r}:{curve(first)[-1]!r}"
    cut = uqeval.merge(folder / "mean.states.zip", threshold=repr(value))
    alone = evaluated(folder, "n.states.zip", {"threshold": repr(value), "curve_range": ends})
    assert told(cut) == told(alone)


def test_the_threshold_of_the_run_is_there_too(folder: Path, tmp_path: Path) -> None:
    plain, back = tmp_path / "plain.states.zip", tmp_path / "back.states.zip"
    uqeval.merge(folder / "mean.states.zip", states=plain)
    uqeval.merge(folder / "mean.states.zip", states=back, threshold="mean")
    assert plain.read_bytes() == back.read_bytes()
    cut, other = tmp_path / "cut.states.zip", tmp_path / "other.states.zip"
    uqeval.merge(plain, states=cut, threshold="range:0.25")
    uqeval.merge(cut, states=back, threshold="mean")
    assert plain.read_bytes() == back.read_bytes()
    uqeval.merge(cut, states=other, threshold="range:0.5")
    uqeval.merge(plain, states=back, threshold="range:0.5")
    assert other.read_bytes() == back.read_bytes()


def test_parts_are_joined_and_cut_at_once(folder: Path, tmp_path: Path) -> None:
    settings = {"threshold": "0.5", "curve_range": "0:1.6", "deciles": False}
    parts = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    for k, part in enumerate(parts, 1):
        evaluated(folder, str(part), settings, part=f"{k}/2")
    whole = tmp_path / "w.states.zip"
    evaluated(folder, str(whole), settings)
    cut = uqeval.merge(parts, threshold=0.8)
    assert told(cut) == told(uqeval.merge(whole, threshold=0.8))
    assert told(cut) == told(evaluated(folder, "p.states.zip", settings | {"threshold": "0.8"}))
    # The two cut alike are joined as they are.
    halves = [tmp_path / f"h{k}.states.zip" for k in (1, 2)]
    for part, half in zip(parts, halves, strict=True):
        uqeval.merge(part, threshold=0.8, states=half, allow_missing=True)
    assert told(uqeval.merge(halves))["results"] == told(cut)["results"]
    assert told(uqeval.merge(halves))["items"] == told(cut)["items"]


def test_all_variants_but_those_called_by_a_threshold(folder: Path) -> None:
    settings = {"uncertainty": ["entropy", "mutual_information"], "threshold": ["mean", "0.2"]}
    first = evaluated(folder, "v.states.zip", settings)
    cut = uqeval.merge(folder / "v.states.zip", threshold="range:0.4")
    changed = {k for k, own in cut.results.items() if own != first.results[k]}
    assert changed == {"pavpu", "pavpu[mutual_information]"}
    for key in changed:
        own = cut.results[key]
        assert own["uncertainty_threshold"] == own["curve"]["threshold"][40]


def test_variants_by_accuracy_are_cut_too(folder: Path) -> None:
    settings = {"accuracy_threshold": [0.5, 0.8], "threshold": "range:0.3"}
    asked = evaluated(folder, "a.states.zip", settings)
    evaluated(folder, "b.states.zip", settings | {"threshold": "mean"})
    cut = uqeval.merge(folder / "b.states.zip", threshold="range:0.3")
    for key in ("pavpu", "pavpu[accuracy_threshold=0.8]"):
        for field in ("uncertainty_threshold", "pavpu", "surplus"):
            assert cut.results[key][field] == asked.results[key][field]


def test_ends_of_a_curve_of_its_own(folder: Path) -> None:
    """range:T is of the range of the set, which the curve then has not; max-surplus is the best of
    the curve, whatever its ends are."""
    evaluated(folder, "e.states.zip", {"threshold": "0.5", "curve_range": "0:1.6"})
    cut = uqeval.merge(folder / "e.states.zip", threshold="0.8")
    assert cut.results["pavpu"]["uncertainty_threshold"] == 0.8
    with pytest.raises(UsageError, match="none of the thresholds that the states hold"):
        uqeval.merge(folder / "e.states.zip", threshold="range:0.5")
    best = {"threshold": "max-surplus", "curve_range": "0:1.6"}
    asked = evaluated(folder, "f.states.zip", best).results["pavpu"]
    cut = uqeval.merge(folder / "e.states.zip", threshold="max-surplus")
    for own in (asked, cut.results["pavpu"]):
        peak = own["surplus_peak"]
        assert (own["uncertainty_threshold"], own["surplus"]) == (peak["threshold"], peak["value"])
    assert asked["surplus_peak"] == cut.results["pavpu"]["surplus_peak"]


def test_thresholds_that_are_not_held(folder: Path) -> None:
    states = folder / "mean.states.zip"
    first = uqeval.merge(states)
    low, high = curve(first)[30:32]
    with pytest.raises(UsageError) as caught:
        uqeval.merge(states, threshold=(low + high) / 2)
    text = str(caught.value)
    for said in (
        repr(low), "t = 0.3)", repr(high), "t = 0.31)", "the 101 of the curve",
        repr(first.results["pavpu"]["uncertainty_threshold"]),
    ):  # fmt: skip
        assert said in text
    for value in ("-1", "99"):
        with pytest.raises(UsageError, match=r"The nearest of these are"):
            uqeval.merge(states, threshold=value)
    with pytest.raises(UsageError, match="fitted on the patches"):
        uqeval.merge(states, threshold="median")
    with pytest.raises(UsageError, match="is not valid; expected mean, median"):
        uqeval.merge(states, threshold="often")


def test_a_threshold_that_is_not_held_of_several_variants(folder: Path) -> None:
    """The advice holds for each of them: their curves have different ends."""
    evaluated(folder, "v.states.zip", {"uncertainty": ["entropy", "mutual_information"]})
    with pytest.raises(UsageError, match="in its place, which is near") as caught:
        uqeval.merge(folder / "v.states.zip", threshold=0.1777)
    assert "nearest of these" not in str(caught.value)
    advised = re.search(r"range:[0-9.]*[0-9]", str(caught.value))
    assert advised is not None
    uqeval.merge(folder / "v.states.zip", threshold=advised[0])


@pytest.mark.parametrize("scope", ["class", "item"])
def test_thresholds_of_each(scope: str, folder: Path) -> None:
    evaluated(folder, "s.states.zip", {"threshold_scope": scope})
    with pytest.raises(UsageError, match=f"a threshold for each {scope}"):
        uqeval.merge(folder / "s.states.zip", threshold="range:0.5")


def test_states_without_a_pavpu(folder: Path) -> None:
    uqeval.evaluate(folder / "s.zarr", None, "segmentation", states=folder / "g.states.zip")
    with pytest.raises(UsageError, match="has no scores whose threshold"):
        uqeval.merge(folder / "g.states.zip", threshold=0.5)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    run_well("pavpu", folder / "s.zarr", "-o", "r.json", "-q", cwd=tmp_path)
    done = run_well("merge", "r.json", "--threshold", "range:0.5", "-o", "c.json", cwd=tmp_path)
    assert "recomputed at the threshold" in " ".join(done.stderr.split())
    cut = Report.load(tmp_path / "c.json")
    run_well("report", "c.json", "-o", "page.html", cwd=tmp_path)
    (tmp_path / "rules.yaml").write_text("pavpu.pavpu: {min: 0.01, confidence: 0.9}\n")
    run_well("gate", "c.json", "rules.yaml", cwd=tmp_path)
    run_well("merge", "c.json", "-o", "ci.json", "--ci", "0.9", "-q", cwd=tmp_path)
    assert Report.load(tmp_path / "ci.json").results == cut.results
    refused(run_uqeval("merge", "r.json", "--threshold", "0.123", cwd=tmp_path), "nearest")


def other_warnings(report: Report) -> list[str]:
    """Return the warnings of a report without those about the recomputed threshold."""
    return [text for text in report.warnings if "recomputed at the threshold" not in text]


def test_warnings_are_those_of_a_run_at_the_threshold(tmp_path: Path) -> None:
    """Wrong pixels are the certain ones, so the Surplus is below 0 at thresholds in the middle."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([0.5] * 3, (6, 32, 32)).transpose(0, 3, 1, 2).astype(np.float32)
    prediction, confidence = chances.argmax(1), chances.max(1)
    wrong = rng.random(prediction.shape) < 0.5 * (confidence - 0.3)
    truth = np.where(wrong, (prediction + 1) % 3, prediction).astype(np.uint8)
    variants = {"uncertainty": ["entropy", "confidence"]}

    def run(rule: str, **options: Any) -> Report:
        family = {"pavpu": variants | {"threshold": rule}}
        report: Report = uqeval.evaluate(
            {"probs": chances, "labels": truth}, None, family, region="boundary:2", **options
        )
        return report

    first = run("range:0.99", states=tmp_path / "first.states.zip")
    back = tmp_path / "back.states.zip"
    for rule in ("range:0.99", "range:0.5", "range:0.1"):
        recomputed = uqeval.merge(tmp_path / "first.states.zip", threshold=rule, states=back)
        assert other_warnings(recomputed) == other_warnings(run(rule))
        assert ("below 0" in " ".join(recomputed.warnings)) == (rule == "range:0.5")
        assert uqeval.merge(back, threshold="range:0.99").warnings == first.warnings
        recomputed = uqeval.merge(tmp_path / "first.states.zip", threshold=rule, **CUT)
        assert sorted(other_warnings(recomputed)) == sorted(run(rule, **CUT).warnings)


def test_rounding_of_float16_maps_is_that_of_the_run(tmp_path: Path) -> None:
    """Patches within a float16 step are counted at the threshold of the run, and no other."""
    maps = {
        "predictions": np.zeros((2, 16, 16), np.uint8),
        "labels": np.tile(np.uint8([0, 0, 1, 0]), (2, 16, 4)),
        "energy": np.tile(np.float16([0.25, 0.5, 0.5, 1]), (2, 16, 4)),
    }
    settings = {"uncertainty": "energy", "window": 1, "threshold": "0.5", "curve_range": "0:1"}
    states = tmp_path / "s.states.zip"
    first = uqeval.evaluate(maps, None, {"pavpu": settings}, states=states, classes=2)
    assert any("float16" in text for text in first.warnings)
    for rule, stored in (("0.25", False), ("0.5", True)):
        again = uqeval.merge(states, threshold=rule)
        assert any("float16" in text for text in again.warnings) == stored
