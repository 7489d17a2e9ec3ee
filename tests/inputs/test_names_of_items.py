"""Names that Unicode spells in two ways are equal wherever items are joined by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest
import scenes
import zarr
from command import refused, run_well

import uqeval
from uqeval.errors import StoreError
from uqeval.records.report import Report
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.verify.verifying import verify

NAMES = [f"zürich_{k}" for k in range(4)]
PROBS, LABELS = scenes.softmax(0, 4, 1, 3, 8, 12), scenes.labels(0, 4, 8, 12, classes=3)


def spelled(form: Any, names: list[str] = NAMES) -> list[str]:
    return [normalize(form, name) for name in names]


def store(path: Path, form: Any, order: list[int], **arrays: Any) -> Path:
    names = np.array(spelled(form))[order]
    np.savez(path, names=names, **{key: values[order] for key, values in arrays.items()})
    return path


def test_names_of_two_spellings(tmp_path: Path) -> None:
    """In labels, members, tables, masks and files, in any order."""
    own, turned = [0, 1, 2, 3], [2, 0, 3, 1]
    probs = store(tmp_path / "p.npz", "NFC", own, probs=PROBS)
    member = store(tmp_path / "m.npz", "NFD", turned, probs=PROBS)
    labels = store(tmp_path / "l.npz", "NFD", turned, labels=LABELS)
    table = tmp_path / "t.csv"
    rows = [f"{name},{k // 2}" for k, name in enumerate(spelled("NFD"))]
    table.write_text("\n".join(["name,city", *rows]), "utf-8")
    given: dict[str, Any] = {"metrics": ("segmentation",), "slices": table}
    report = uqeval.evaluate(probs, labels, **given)
    expected = uqeval.evaluate(PROBS, LABELS, metrics=("segmentation",)).results
    assert report.results == expected and list(report.item_names) == spelled("NFC")
    assert len(report.slices) == 2
    regions = (
        uqeval.evaluate(*own, metrics=("segmentation",), region=region).results
        for own, region in (((probs, labels), f"map:{labels}:1"), ((PROBS, LABELS), "class:1"))
    )
    of_map, of_class = (list(own.values())[-1]["pixel_accuracy"] for own in regions)
    assert of_map == of_class != expected["segmentation"]["pixel_accuracy"]
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, values in zip(spelled("NFD"), PROBS, strict=True):
        np.save(folder / name, values)
    assert uqeval.evaluate(folder, labels, **given).results == expected
    assert uqeval.evaluate([probs, member], labels, **given).results == expected


def test_reports_and_states_of_earlier_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the spelling of their store, and are compared with later ones."""
    own = [0, 1, 2, 3]
    labels = tmp_path / "l.npz"
    np.savez(labels, labels=LABELS)
    given: dict[str, Any] = {"metrics": ("segmentation",), "ci": 0.9, "draws": 100}
    for name, form in (("old", "NFD"), ("new", "NFC")):
        probs = store(tmp_path / f"{name}.npz", form, own, probs=PROBS)
        with monkeypatch.context() as patch:
            if name == "old":
                patch.setattr("uqeval.stores.array.in_one_spelling", tuple)
            report = uqeval.evaluate(probs, labels, states=tmp_path / f"{name}.states.zip", **given)
        assert list(report.item_names) == spelled(form)
        report.save(tmp_path / f"{name}.json")
    assert list(Report.load(tmp_path / "old.json").item_names) == spelled("NFC")
    index = SavedStates.of_run(tmp_path / "old.states.zip").index
    assert index["items"] == index["facts"]["names"] == spelled("NFC")
    told = run_well("compare", tmp_path / "old.json", tmp_path / "new.json", "--ci", "0.9")
    assert "No difference from old is seen" in told.stdout


@pytest.mark.parametrize("named", [0, 1, 2])
def test_items_whose_names_differ_only_in_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    """A file or a table that names an item as it is spelled means this item, else the only other
    item with its letters."""
    monkeypatch.chdir(tmp_path)
    names = ["\u00e9", "e\u0301", "u\u0308", "b"]
    fit, table = Path("fit.txt"), Path("t.csv")
    labels = PROBS[:, 0].argmax(1).astype(np.uint8)
    for k in range(4):  # of which some are wrong, so that each item has another temperature
        labels[k, : k + 2] = LABELS[k, : k + 2]
    given: dict[str, Any] = {
        "metrics": {"calibration": {"fit_on": str(fit), "temperature": True}},
        "slices": table, "slice_by": ["city"],
    }  # fmt: skip

    def report_of(names: list[str], in_files: list[str]) -> uqeval.Report:
        fit.write_text(in_files[named], "utf-8")
        rows = [f"{name},{int(name == in_files[named])}" for name in in_files]
        table.write_text("\n".join(["name,city", *rows]), "utf-8")
        np.savez("p.npz", probs=PROBS, labels=labels, names=np.array(names))
        return uqeval.evaluate("p.npz", **given)

    expected = report_of([*"abcd"], [*"abcd"])
    report = report_of(names, [*names[:2], "\u00fc", "b"])
    report.save("r.json")
    assert "calibration.temperature" not in " ".join(verify("r.json").not_verified)
    with uqeval.Evaluator(given["metrics"]) as evaluator:
        for k, name in enumerate(names):
            evaluator.update(PROBS[k : k + 1], labels[k : k + 1], [name])
        of_loop = evaluator.report()
    for own in (report, of_loop):
        temperature = own.results["calibration"]["temperature"]
        assert temperature["held_out"]["items"] == 3
        expected_temperature = expected.results["calibration"]["temperature"]
        assert temperature["value"] == expected_temperature["value"]
    for key, part in expected.slices.items():
        assert report.slices[key]["results"]["segmentation"] == part["results"]["segmentation"]


@pytest.mark.parametrize("form", ["folder", "groups"])
def test_labels_without_names_need_one_order_of_the_files(form: str, tmp_path: Path) -> None:
    """By letter, i10 comes before i2; labels in one array may have the other order."""
    count, predictions = 11, tmp_path / "p.zarr"
    probs, labels = scenes.softmax(0, count, 1, 3, 4, 4), scenes.labels(0, count, 4, 4, classes=3)

    def write(name: str, values: Any) -> None:
        if form == "folder":
            predictions.mkdir(exist_ok=True)
            np.save(predictions / name, values)
        else:
            group = zarr.open_group(predictions, mode="a").require_group(f"items/{name}")
            group.create_array("probs", data=values)

    def miou(labels: Any, **options: Any) -> Any:
        report = uqeval.evaluate(predictions, labels, metrics=("segmentation",), **options)
        return report.results["segmentation"]["miou"]

    for i in range(10):
        write(f"i{i}", probs[i])
    assert miou(labels[:10]) == miou({"labels": labels[:10], "names": [f"i{i}" for i in range(10)]})
    write("i10", probs[10])
    names = [f"i{i}" for i in range(count)]
    expected = miou({"labels": labels, "names": names})
    assert miou(labels, names=names) == expected
    words = (
        "i0, i1, i10 and 8 more (by letter) or i0, i1, i2 and 8 more (by number)",
        "Save names with",
    )
    refused(lambda: miou(labels), *words, error=StoreError)
    member = probs[np.argsort(names)]  # as the files are listed
    labels_by_name = {"labels": labels, "names": names}
    refused(
        lambda: uqeval.evaluate([predictions, member], labels_by_name, metrics=("segmentation",)),
        *words, error=StoreError,
    )  # fmt: skip


def test_the_order_of_hashes_is_clear(tmp_path: Path) -> None:
    """Nobody sorts 10a after 9b, as names of BDD100K are."""
    names = ["10ac-7f", "1e0c-9d", "9bd1-0a"]
    probs, labels = scenes.softmax(0, 3, 1, 3, 4, 4), scenes.labels(0, 3, 4, 4, classes=3)
    for name, values in zip(names, probs, strict=True):
        np.save(tmp_path / name, values)
    found = uqeval.evaluate(tmp_path, labels, metrics=("segmentation",))
    expected = uqeval.evaluate(probs, labels, metrics=("segmentation",))
    assert found.results == expected.results
    for name, values in (("a10", probs[0]), ("a9", probs[1])):  # other files change nothing
        np.save(tmp_path / name, values)
    more = np.concatenate([labels, labels[:2]])
    refused(lambda: uqeval.evaluate(tmp_path, more), "a10, a9 (by letter)", error=StoreError)


def test_a_member_with_names_tells_the_order_of_files(tmp_path: Path) -> None:
    names = ["i10", "i9"]
    probs, labels = scenes.softmax(0, 2, 2, 3, 4, 4), scenes.labels(0, 2, 4, 4, classes=3)
    files = tmp_path / "files"
    files.mkdir()
    for name, values in zip(names, probs[:, :1], strict=True):
        np.save(files / name, values)
    named = {"probs": probs[:, 1:], "names": names}
    expected = uqeval.evaluate(probs, labels, metrics=("segmentation",)).results
    for members in ([files, named], [named, files]):
        assert uqeval.evaluate(members, labels, metrics=("segmentation",)).results == expected
    refused(lambda: uqeval.evaluate(files, labels), "i10, i9 (by letter)", error=StoreError)


def test_predictions_of_frames_without_names_need_one_order(tmp_path: Path) -> None:
    predictions = zarr.open_group(tmp_path / "p.zarr", mode="w")
    ids = scenes.labels(0, 11, 8, 8, classes=3)
    for i, own in enumerate(ids):
        predictions.require_group(f"items/v_{i}").create_array("predictions", data=own)
    frames = np.random.default_rng(0).integers(0, 255, (11, 8, 8, 3)).astype(np.uint8)
    video = tmp_path / "v.npz"
    np.savez(video, frames=frames)
    given: dict[str, Any] = {"video": video, "metrics": {"tc": {}}, "classes": 3}
    refused(
        lambda: uqeval.evaluate(tmp_path / "p.zarr", **given),
        "v.npz has no names of items", "v_0, v_1, v_10 and 8 more (by letter)", error=StoreError,
    )  # fmt: skip
    np.savez(video, frames=frames, names=[f"v_{i}" for i in range(11)])
    expected = uqeval.evaluate(ids, video=frames, metrics={"tc": {}}, classes=3)
    found = uqeval.evaluate(tmp_path / "p.zarr", **given)
    assert found.results["temporal"]["mtc"] == expected.results["temporal"]["mtc"]
