"""Two reports may both agree with a third, and still differ: each pair is compared."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trained import NAMES, C, change, labels, save

from uqeval import Report
from uqeval.compare import Choice, Comparison, compare, load_models, same_data
from uqeval.compare.same_data import differences_of_runs, of_other_pixels
from uqeval.gate.same_data import other_fingerprints
from uqeval.metrics import _family
from uqeval.records.folder import Named


def compared(folder: Path, names: tuple[str, ...], level: float | None = None) -> Comparison:
    paths = [str(folder / f"{name}.json") for name in names]
    return compare(load_models(paths), Choice(level=level, draws=100))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Report "a" has its items in another order; "b" and "c" have other labels in the same
    order."""
    made = tmp_path_factory.mktemp("pairs")
    other = np.where(np.arange(len(NAMES))[:, None, None] == 0, (labels() + 1) % C, labels())
    save(made / "a.json", 0, 1.0, slice(None, None, -1), metrics="calibration")
    save(made / "b.json", 1, 1.6, metrics="calibration")
    save(made / "c.json", 2, 1.3, metrics="calibration", truth=other)
    return made


@pytest.mark.parametrize("names", [*permutations("abc")])
def test_models_with_other_labels_have_no_best_in_any_order(
    folder: Path, names: tuple[str, ...]
) -> None:
    found = compared(folder, names, 0.95)
    for row in found.rows:
        cells = dict(zip(names, row.cells, strict=True))
        assert not any(cell.best or cell.rank for cell in row.cells)
        untested = [cells[name] for name in "bc" if name != names[0]]
        if names[0] != "a":
            untested = [cells["c" if names[0] == "b" else "b"]]
        for cell in untested:
            assert cell.difference is not None and cell.difference.p is None
            assert "the fingerprints of labels differ" in str(cell.difference.reason)
    for one, other in combinations("abc", 2):
        of_pair = [w for w in found.warnings if f"{one}.json" in w and f"{other}.json" in w]
        assert of_pair, f"no warning about {one} and {other}"


def test_one_warning_about_all_reports_of_other_orders(tmp_path: Path) -> None:
    names = tuple(f"r{k}" for k in range(7))
    for k, name in enumerate(names):
        save(tmp_path / f"{name}.json", k, 1.0, slice(k, None), metrics="calibration")
    (warning,) = [w for w in compared(tmp_path, names).warnings if "or in the order of them" in w]
    assert all(f"{name}.json" in warning for name in names)


@pytest.mark.parametrize("names", [*permutations("abc")])
def test_thresholds_of_two_reports_are_warned_about_in_any_order(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """The third report has no such metric."""
    save(tmp_path / "a.json", metrics="calibration")
    for name, threshold in (("b", 0.2), ("c", 0.6)):
        report = Report.load(save(tmp_path / f"{name}.json"))
        settings = {**report.settings["pavpu"], "threshold_from": f"of_{name}.json"}
        report.results["pavpu"]["uncertainty_threshold"] = threshold
        change(tmp_path / f"{name}.json", results=report.results,
               settings={**report.settings, "pavpu": settings})  # fmt: skip
    found = compared(tmp_path, names)
    (warning,) = [text for text in found.warnings if text.startswith("pavpu: the threshold is")]
    assert "b.json" in warning and "c.json" in warning and "(--threshold-from)" in warning


def test_a_report_is_named_once_for_what_differs(tmp_path: Path) -> None:
    """Two warnings show the values of three reports, in any order."""
    for name, value in (("a", "error"), ("b", "fill"), ("c", "fill")):
        inputs = Report.load(save(tmp_path / f"{name}.json")).inputs
        options = {**inputs["options"], "missing_chunks": value}
        change(tmp_path / f"{name}.json", inputs={**inputs, "options": options})
    for names in permutations("abc"):
        found = compared(tmp_path, names)
        warnings = [text for text in found.warnings if text.startswith("--missing-chunks")]
        assert len(warnings) == 2
        assert all(any(f"{name}.json" in text for text in warnings) for name in "abc")


def reports(folder: Path, **fingerprints: dict[str, str | None]) -> dict[str, list[Named]]:
    """Return models of one report each, by name, with other fingerprints of their inputs."""
    models = {}
    for name, of_inputs in fingerprints.items():
        path = folder / f"{name}.json"
        report = Report.load(save(path, metrics="calibration"))
        for store, fingerprint in of_inputs.items():
            report.inputs[store] = {"path": "r.npz", "fingerprint": fingerprint}
        models[name] = [Named(name, path, report)]
    return models


def test_a_report_without_fingerprints_hides_no_difference_of_two_others(tmp_path: Path) -> None:
    """The warnings are about the same two reports in any order."""
    models = reports(tmp_path, a={"labels": None}, b={"labels": "one"}, c={"labels": "other"})
    for names in permutations("abc"):
        warnings = differences_of_runs([models[name] for name in names])
        pairs = {
            frozenset(name for name in "abc" if f"{name}.json" in text): text
            for text in warnings if "fingerprint" in text
        }  # fmt: skip
        assert "the fingerprints of labels (r.npz) differ" in pairs.pop(frozenset("bc"))
        assert set(pairs) == {frozenset("ab"), frozenset("ac")}
        assert all("no fingerprint of labels" in text for text in pairs.values())


def test_data_of_known_and_of_unknown_fingerprints_are_told_apart(tmp_path: Path) -> None:
    models = reports(
        tmp_path, a={"labels": None, "reference": "r"}, b={"labels": "one", "reference": "s"}
    )
    pair = list(models.values())
    known, unknown = (text for text in differences_of_runs(pair) if "fingerprint" in text)
    assert "the fingerprints of reference (r.npz) differ" in known and "labels" not in known
    assert "no fingerprint of labels" in unknown and "reference" not in unknown
    both = other_fingerprints(models["a"][0].report, models["b"][0].report)
    assert both.endswith("same files. Whether" + unknown.partition("whether")[2])
    _, reason = of_other_pixels(pair, 0, "calibration", NAMES)
    assert reason is not None and reason.startswith("the fingerprints of reference differ")


def test_one_warning_about_reports_of_other_versions(tmp_path: Path) -> None:
    """Folders have a report for each of two stores; versions of one definition are alike."""
    for model, version in (("a", "0.1.0"), ("b", "0.2.0"), ("c", "0.1.7")):
        for store in ("one", "two"):
            path = tmp_path / model / f"{store}.json"
            change(save(path, 1, 1.0, metrics="calibration"), uqeval_version=version)
    paths = [str(tmp_path / model) for model in "abc"]
    (warning,) = [w for w in compare(load_models(paths), Choice(level=None)).warnings
                  if "come from the versions" in w]  # fmt: skip
    assert warning.startswith("the reports are of uqeval 0.1.0 (") and "0.2.0 (" in warning
    assert warning.endswith("with one version: uqeval calibration PREDS LABELS -o REPORT.json")
    alike = compare(load_models([paths[0], paths[2]]), Choice(level=None)).warnings
    assert not any("come from the versions" in text for text in alike)


def test_settings_and_pixels_of_each_report_are_found_once_for_all_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Models are compared in pairs, but what a pair compares is found once for each report."""
    names = tuple(f"m{k}" for k in range(6))
    for k, name in enumerate(names):
        save(tmp_path / f"{name}.json", k, metrics="calibration")
    made: list[str] = []
    for module, function in ((_family, "settings_of"), (same_data, "pixels_of")):
        original = getattr(module, function)

        def counted(*arguments: Any, name: str = function, original: Any = original) -> Any:
            made.append(name)
            return original(*arguments)

        monkeypatch.setattr(module, function, counted)

    def calls(models: int) -> Counter[str]:
        made.clear()
        for known in (_family._normal, _family._read):
            known.cache_clear()
        compared(tmp_path, names[:models])
        return Counter(made)

    of_three, of_six = calls(3), calls(6)
    assert of_six["settings_of"] == of_three["settings_of"] > 0
    assert of_six["pixels_of"] == 2 * of_three["pixels_of"] > 0
