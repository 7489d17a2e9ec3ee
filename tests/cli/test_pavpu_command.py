"""`uqeval pavpu` on good input: every way to give it, every option, the same numbers."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import as_json, options_by_key, run_well
from small_stores import (
    CLASS_NAMES,
    NAMES,
    C,
    H,
    N,
    T,
    W,
    labels,
    logits,
    probs,
    save,
    save_label_folder,
    save_predictions,
)

from uqeval.records.report import Report
from uqeval.stores.states.saved import SavedStates

pavpu = partial(as_json, "pavpu")


@pytest.fixture(scope="module")
def expected(complete: Path) -> dict[str, Any]:
    """The report of the complete store, default options."""
    return pavpu(complete)


def test_numbers(expected: dict[str, Any]) -> None:
    mean = probs().astype("f8").mean(axis=1)
    known = labels() != 255
    right = mean.argmax(axis=1) == labels()
    results = expected["results"]
    assert results["segmentation"]["pixels"] == known.sum()
    assert results["segmentation"]["pixel_accuracy"] == pytest.approx(
        right[known].mean(), abs=1e-12
    )
    entropy = -(mean * np.log(mean)).sum(axis=1)
    threshold = results["pavpu"]["uncertainty_threshold"]
    assert threshold == pytest.approx(entropy[known].mean(), abs=1e-6)

    def patches(values: np.ndarray) -> np.ndarray:
        return values.reshape(N, H // 4, 4, W // 4, 4).sum(axis=(2, 4))

    count = patches(known)
    accurate = patches(right & known)[count > 0] / count[count > 0] > 0.5
    certain = patches(np.where(known, entropy, 0))[count > 0] / count[count > 0] <= threshold
    four = [int((a & c).sum()) for a in (accurate, ~accurate) for c in (certain, ~certain)]
    record = results["pavpu"]
    assert [record[k] for k in ("n_ac", "n_au", "n_ic", "n_iu")] == four
    assert min(four) > 0
    assert record["pavpu"] == (four[0] + four[3]) / sum(four)
    rows = record["per_class"]
    assert [row["name"] for row in rows] == [*CLASS_NAMES, "mixed"]
    assert [row["class"] for row in rows] == [*range(C), "mixed"]
    assert all(sum(row[k] for row in rows) == record[k] for k in ("n_ac", "n_au", "n_ic", "n_iu"))


def test_what_a_report_says(expected: dict[str, Any], complete: Path) -> None:
    assert expected["schema"] == "uqeval.report/1"
    inputs = expected["inputs"]
    store = inputs["predictions"][0]
    assert store["path"] == str(complete)
    assert store["arrays"]["probs"]["shape"] == [N, T, C, H, W]
    assert store["arrays"]["probs"]["dtype"] == "float32"
    assert len(store["fingerprint"]) == 64
    assert (inputs["items"], inputs["evaluated"], inputs["samples"]) == (N, N, T)
    settings = expected["settings"]["pavpu"]
    assert (settings["definition"], settings["window"], settings["threshold"]) == (
        "paper",
        4,
        "mean",
    )
    assert [item["name"] for item in expected["items"]] == NAMES
    assert (
        sum(item["pavpu"]["n_ac"] for item in expected["items"])
        == (expected["results"]["pavpu"]["n_ac"])
    )
    assert expected["metrics"]["pavpu.pavpu"]["direction"] == "higher"
    assert not expected["partial"] and expected["warnings"] == []
    assert expected["states"] is None
    assert expected["numerics"]["segmentation"]["void"] == (labels() == 255).sum()


def test_every_way_to_give_labels(stores: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", labels())
    np.save(tmp_path / "probs.npy", probs())
    np.savez(tmp_path / "both.npz", probs=probs(), labels=labels())
    shuffled = save(tmp_path / "turned.zarr", {"labels": labels()[::-1]}, {"names": NAMES[::-1]})
    predictions = stores / "preds.zarr"
    for given in (
        (predictions, stores / "labels"),
        (predictions, shuffled),
        (tmp_path / "probs.npy", tmp_path / "labels.npy"),
        (tmp_path / "both.npz",),
    ):
        found = pavpu(*given)["results"]
        assert found["pavpu"]["n_iu"] == expected["results"]["pavpu"]["n_iu"]
        assert found["pavpu"]["curve"] == expected["results"]["pavpu"]["curve"]
        assert found["segmentation"]["miou"] == expected["results"]["segmentation"]["miou"]
    assert (
        pavpu(predictions, "labels.npy", cwd=tmp_path)["inputs"]["labels"]["path"] == "labels.npy"
    )


def test_an_ensemble_is_one_stack(tmp_path: Path, stores: Path, expected: dict[str, Any]) -> None:
    one = save_predictions(tmp_path / "one.zarr", probs()[:, :1])
    rest = save_predictions(tmp_path / "rest.zarr", probs()[:, 1:])
    report = pavpu(one, rest, stores / "labels", "--workers", "2")
    assert report["inputs"]["samples"] == T
    assert [store["path"] for store in report["inputs"]["predictions"]] == [str(one), str(rest)]
    assert report["results"]["pavpu"]["curve"] == expected["results"]["pavpu"]["curve"]


def test_logits(tmp_path: Path, stores: Path, expected: dict[str, Any]) -> None:
    store = save(tmp_path / "logits.zarr", {"logits": logits()}, {"names": NAMES})
    found = pavpu(store, stores / "labels")["results"]["pavpu"]
    assert found["n_ac"] == expected["results"]["pavpu"]["n_ac"]


def test_names_of_a_store_without(stores: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    (tmp_path / "lines.txt").write_text("\n".join(NAMES) + "\n")
    (tmp_path / "list.json").write_text(json.dumps(NAMES))
    for file in ("lines.txt", "list.json"):
        report = pavpu(stores / "anonymous.zarr", stores / "labels", "--names", tmp_path / file)
        assert [item["name"] for item in report["items"]] == NAMES
        assert report["results"]["pavpu"]["n_ac"] == expected["results"]["pavpu"]["n_ac"]
    plain = pavpu(stores / "anonymous.zarr", stores / "labels.zarr")
    assert [item["name"] for item in plain["items"]] == ["0", "1", "2"]


def test_label_files_that_nobody_asked_for_are_a_warning(stores: Path, tmp_path: Path) -> None:
    folder = save_label_folder(
        tmp_path / "labels", np.repeat(labels(), 2, 0), [*NAMES, "x", "y", "z"]
    )
    outcome = run_well("pavpu", stores / "preds.zarr", folder, "-q", "-o", "r.json", cwd=tmp_path)
    assert outcome.stderr == ""
    warnings = Report.load(tmp_path / "r.json").warnings
    assert "3 label files belong to no item: x.png" in warnings[0]


def test_variants_and_their_keys(complete: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    report = pavpu(
        complete, "--uncertainty", "entropy", "--uncertainty", "mutual_information",
        "--window", "4", "--window", "7",
    )  # fmt: skip
    keys = [
        "pavpu",
        "pavpu[window=7]",
        "pavpu[mutual_information]",
        "pavpu[mutual_information,window=7]",
    ]
    assert sorted(report["results"]) == sorted([*keys, "segmentation"])
    assert report["results"]["pavpu"] == expected["results"]["pavpu"]
    both = report["results"]["pavpu[mutual_information,window=7]"]
    assert (both["uncertainty"], both["window"], both["stride"]) == ("mutual_information", 7, 7)
    assert set(report["settings"]) == set(report["items"][0]) - {"name"} == {*keys, "segmentation"}
    assert report["timing"]["bytes_read"] >= probs().nbytes
    alone = pavpu(complete, "--uncertainty", "mutual_information", "--window", "7")
    assert alone["results"]["pavpu"] == both


def test_several_values_of_a_choice_make_variants(complete: Path) -> None:
    report = pavpu(
        complete, "--void", "exclude", "--void", "inaccurate", "--definition", "paper",
        "--definition", "ma",
    )  # fmt: skip
    said = options_by_key(report, "void", "definition")
    assert len(said) == 4 and sorted(said.values()) == [
        (void, definition) for void in ("exclude", "inaccurate") for definition in ("ma", "paper")
    ]
    alone = pavpu(complete, "--void", "inaccurate", "--definition", "ma")
    (key,) = (key for key, own in said.items() if own == ("inaccurate", "ma"))
    assert report["results"][key] == alone["results"]["pavpu"]


def test_options_reach_the_numbers(complete: Path) -> None:
    report = pavpu(
        complete, "--threshold", "mean", "--threshold", "median", "--threshold", "p90",
        "--threshold", "range:0.25", "--threshold", "max-surplus", "--threshold", "0.5",
    )  # fmt: skip
    results = report["results"]
    assert results["pavpu[threshold=0.5]"]["uncertainty_threshold"] == 0.5
    assert results["pavpu[threshold=median]"]["p_certain"] == pytest.approx(0.5, abs=0.01)
    assert results["pavpu[threshold=p90]"]["p_certain"] == pytest.approx(0.9, abs=0.01)
    peak = results["pavpu[threshold=max-surplus]"]
    assert peak["surplus"] == peak["surplus_peak"]["value"]
    curve = results["pavpu"]["curve"]
    assert results["pavpu[threshold=range:0.25]"]["uncertainty_threshold"] == curve["threshold"][25]

    ma = pavpu(complete, "--definition", "ma", "--stride", "1", "--border", "partial",
               "--top-k", "2", "--void", "inaccurate", "--log-base", "2",
               "--accuracy-threshold", "0.9", "--uncertainty-op", ">=",
               "--threshold-scope", "class")  # fmt: skip
    settings = ma["settings"]["pavpu"]
    assert settings == settings | {
        "definition": "ma", "window": 3, "stride": 1, "border": "partial", "top_k": 2,
        "void": "inaccurate", "log_base": 2.0, "accuracy_threshold": 0.9, "accuracy_op": ">=",
        "uncertainty_op": ">=", "threshold": "median", "threshold_scope": "class",
    }  # fmt: skip
    record = ma["results"]["pavpu"]
    assert record["uncertainty_threshold"] is None
    assert record["uncertainty_threshold_reason"] == "fitted for each class separately"
    assert all(row["uncertainty_threshold"] > 0 for row in record["per_class"])


def test_threshold_of_another_report(complete: Path, stores: Path, tmp_path: Path) -> None:
    fitted = run_well("pavpu", complete, "--limit", "1", "-o", "fitted.json", "-q", cwd=tmp_path)
    assert fitted.stdout == fitted.stderr == ""
    value = Report.load(tmp_path / "fitted.json").results["pavpu"]["uncertainty_threshold"]
    report = pavpu(complete, "--threshold-from", "fitted.json", cwd=tmp_path)
    assert report["results"]["pavpu"]["uncertainty_threshold"] == value
    assert report["settings"]["pavpu"]["threshold_from"] == "fitted.json"
    again = pavpu(complete, "--threshold", repr(value))
    assert again["results"] == report["results"]


def test_limit_marks_the_report_partial(complete: Path, tmp_path: Path) -> None:
    outcome = run_well("pavpu", complete, "--limit", "2", "-o", "r.json", cwd=tmp_path)
    assert "2 of 3 items (--limit)" in outcome.stderr
    assert "partial" in outcome.stdout
    report = Report.load(tmp_path / "r.json")
    assert report.partial and (report.inputs["items"], report.inputs["evaluated"]) == (3, 2)
    assert [item["name"] for item in report.items] == NAMES[:2]
    assert not pavpu(complete, "--limit", "99")["partial"]


def test_limit_within_a_chunk_of_several_items(tmp_path: Path, complete: Path) -> None:
    arrays = {"probs": probs(), "labels": labels()}
    store = save(tmp_path / "s.zarr", arrays, {"names": NAMES}, together=3)
    assert pavpu(store, "--limit", "2")["items"] == pavpu(complete, "--limit", "2")["items"]


def test_one_void_item_is_a_warning(tmp_path: Path) -> None:
    planes = labels()
    planes[1] = 255
    store = save(tmp_path / "s.zarr", {"probs": probs(), "labels": planes}, {"names": NAMES})
    report = pavpu(store)
    assert report["warnings"] == ["1 of 3 items have void labels only: bonn."]
    item = report["items"][1]["pavpu"]
    assert item["pavpu"] is None and item["pavpu_reason"]


def test_missing_chunks_of_fill_values(tmp_path: Path) -> None:
    void = labels()
    void[1] = 0  # zarr leaves this chunk out
    left_out = save(tmp_path / "s.zarr", {"probs": probs(), "labels": void}, {"names": NAMES},
                    config={"write_empty_chunks": False})  # fmt: skip
    kept = save(tmp_path / "t.zarr", {"probs": probs(), "labels": void}, {"names": NAMES})
    assert not (left_out / "labels/c/1/0/0").exists()
    filled = pavpu(left_out, "--missing-chunks", "fill")
    assert filled["results"] == pavpu(kept)["results"]


def test_a_maps_store_of_anybodys_making(tmp_path: Path) -> None:
    energy = np.abs(logits()[:, 0, 0]).astype("f4")
    predictions = probs().mean(axis=1).argmax(axis=1).astype("u1")
    arrays = {"predictions": predictions, "energy": energy, "labels": labels()}
    store = save(tmp_path / "maps.zarr", arrays)
    results = pavpu(store, "--uncertainty", "energy", "--classes", str(C))["results"]
    assert results["pavpu"]["uncertainty"] == "energy"
    assert results["pavpu"]["uncertainty_threshold"] == pytest.approx(
        energy[labels() != 255].mean(dtype="f8"), rel=1e-6
    )


def test_states_beside_the_report(complete: Path, tmp_path: Path) -> None:
    run_well("pavpu", complete, "-o", "out.json", "-q", cwd=tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.json", "out.states.zip"]
    report = Report.load(tmp_path / "out.json")
    assert report.states == "out.states.zip"
    saved = SavedStates(tmp_path / "out.states.zip")
    assert saved.index["items"] == NAMES
    assert {"class_counts", "patch_counts"} <= {own["id"] for own in saved.parameters()}
    assert all(len(list(saved.states(own, 10**6))) == N for own in saved.parameters())
    run_well("pavpu", complete, "-o", "alone.json", "--no-states", "-q", cwd=tmp_path)
    assert not (tmp_path / "alone.states.zip").exists()
    assert Report.load(tmp_path / "alone.json").results == report.results


def test_same_report_for_any_number_of_workers_and_any_memory(
    complete: Path, expected: dict[str, Any]
) -> None:
    for options in (("--workers", "4"), ("--workers", "1", "--memory", "400kB")):
        found = pavpu(complete, *options)
        assert found["results"] == expected["results"]
        assert found["items"] == expected["items"]
        assert math.isfinite(found["timing"]["seconds"])
