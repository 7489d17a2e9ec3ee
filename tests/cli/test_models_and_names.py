"""Of several models one is chosen; classes are named where no store names them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import as_json, refused, run_uqeval, run_well
from small_stores import CLASS_NAMES, H, N, T, W, probs
from small_videos import save_folder, save_images, video


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `video` with the predictions `one/` and `two/`, and `both.json`, a report of the two."""
    at = tmp_path_factory.mktemp("models")
    own = video()
    save_folder(at / "video", own)
    save_images(at / "one", own.predictions)
    save_images(at / "two", own.labels)
    models = ["one", "two", "--flow", "dis:fast", "-q", "-o", "both.json"]
    run_well("tc", "video", *models, cwd=at)
    return at


def scores(folder: Path) -> dict[str, list[float]]:
    """TC_t by model."""
    report = json.loads((folder / "both.json").read_text())
    keys = {said["model"]: key for key, said in report["settings"].items()}
    return {
        model: [item[key]["tc"] for item in report["items"] if not item[key]["cut"]]
        for model, key in keys.items()
    }


def test_an_alarm_is_learnt_from_one_model(folder: Path) -> None:
    learn = ["observe", "video", "--alarm-from", "both.json"]
    for model, found in scores(folder).items():
        done = run_well(*learn, "--alarm-model", model, "--alarm-quantile", "0.5", cwd=folder)
        assert f"alarms below {np.quantile(found, 0.5):.4f}" in done.stderr
    several = "several models with this flow: one, two; choose one with --alarm-model NAME."
    refused(run_uqeval(*learn, cwd=folder), several)
    strange = run_uqeval(*learn, "--alarm-model", "three", cwd=folder)
    refused(strange, "--alarm-model three", "expected one of one, two.")
    alone = run_uqeval("observe", "video", "--alarm-model", "one", cwd=folder)
    refused(alone, "--alarm-model has an effect only with --alarm-from REPORT")


def test_a_page_shows_one_model(folder: Path) -> None:
    page = ["report", "both.json", "-o", "page.html", "--gallery", "1", "--video", "video"]
    run_well(*page, "--predictions", "two", "--model", "two", cwd=folder)
    pictures = (folder / "page.html").read_text().count("data:image")
    run_well(*page, "--predictions", "one", "--predictions", "two", cwd=folder)
    assert (folder / "page.html").read_text().count("data:image") > pictures > 0
    lacks = run_uqeval(*page, "--predictions", "two", cwd=folder)
    refused(lacks, "the models 'one', 'two'", "not of one.", "choose one with --model: one, two.")
    refused(
        run_uqeval(*page, "--model", "x", cwd=folder),
        "--model x: expected a model of the report: one, two.",
    )
    refused(run_uqeval("report", "both.json", "--model", "one", cwd=folder), "for --gallery N")


def results(*arguments: str | Path, cwd: Path) -> dict[str, Any]:
    report: dict[str, Any] = as_json(*arguments, cwd=cwd)
    return report


def test_classes_of_a_video_are_named(folder: Path) -> None:
    named = ["--class-names", "road,car,sky,tree"]
    report = results("tc", "video", *named, "-o", "named.json", cwd=folder)
    rows = report["results"]["temporal"]["per_class"]
    assert {row["name"] for row in rows} <= {"road", "car", "sky", "tree"}
    assert [row["class"] for row in rows] == [0, 1, 2, 3]
    run_well("report", "named.json", "--gallery", "1", "--video", "video", cwd=folder)
    assert "tree" in (folder / "named.html").read_text()
    (folder / "uqeval.yaml").write_text(
        "stores: {drive: {video: video/, class_names: [road, car, sky, tree]}}"
    )
    assert results("tc", cwd=folder)["results"] == report["results"]
    refused(run_uqeval("tc", "video", "--class-names", "a,b", cwd=folder), "outside the 2 classes")
    both = run_uqeval("tc", "video", *named, "--classes", "3", cwd=folder)
    refused(both, "the number of classes differs: --classes: 3, --class-names: 4.")
    refused(run_uqeval("tc", "video", "--class-names", "a,,b", cwd=folder), "a name for each class")


def test_classes_of_a_bare_array_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", probs())
    np.save(tmp_path / "labels.npy", probs().mean(axis=1).argmax(axis=1).astype(np.uint8))
    names = ",".join(CLASS_NAMES)
    report = results("pavpu", "p.npy", "labels.npy", "--class-names", names, cwd=tmp_path)
    rows = report["results"]["segmentation"]["per_class"]
    assert [row["name"] for row in rows] == CLASS_NAMES
    few = run_uqeval("pavpu", "p.npy", "labels.npy", "--class-names", "a,b", cwd=tmp_path)
    refused(few, "--class-names: 2 names, but p.npy has 5 classes")
    reduced = ["reduce", "p.npy", "labels.npy", "--class-names", names, "-o", "maps.zarr"]
    run_well(*reduced, cwd=tmp_path)
    rows = results("pavpu", "maps.zarr", cwd=tmp_path)["results"]["segmentation"]["per_class"]
    assert [row["name"] for row in rows] == CLASS_NAMES


def test_members_of_another_kind_are_told(tmp_path: Path) -> None:
    np.save(tmp_path / "stack.npy", probs())
    np.save(tmp_path / "alone.npy", probs(seed=1)[:, 0])
    np.save(tmp_path / "too.npy", probs(seed=2)[:, 0])
    np.save(tmp_path / "labels.npy", probs().mean(axis=1).argmax(axis=1).astype(np.uint8))
    done = run_well("pavpu", "stack.npy", "alone.npy", "labels.npy", cwd=tmp_path)
    told = f"stack.npy {T}, alone.npy 1; they are evaluated together, as {T + 1} members of one"
    assert told in done.stderr
    for members in (["alone.npy", "too.npy"], ["stack.npy"]):
        done = run_well("pavpu", *members, "labels.npy", cwd=tmp_path)
        assert "one ensemble" not in done.stderr


def test_loose_arrays_of_numbers(tmp_path: Path) -> None:
    for name in ("mean", "std", "target"):
        np.save(tmp_path / f"{name}.npy", np.ones((2, 4, 4), np.float32))
    for paths in (["mean.npy", "std.npy"], ["mean.npy", "std.npy", "target.npy"], ["mean.npy"]):
        refused(
            run_uqeval("regression", *paths, cwd=tmp_path),
            "mean.npy holds targets", 'numpy.savez("preds.npz", mean=mean, std=std)',
        )  # fmt: skip
    (tmp_path / "loose").mkdir()
    for name in ("mean", "std", "target"):
        shutil.copy(tmp_path / f"{name}.npy", tmp_path / "loose")
    refused(
        run_uqeval("regression", "loose", cwd=tmp_path),
        "loose: mean.npy, std.npy, target.npy are called as arrays",
        'numpy.savez("preds.npz", mean=mean, std=std, target=target)',
    )  # fmt: skip
    arrays = {name: np.load(tmp_path / f"{name}.npy") for name in ("mean", "std")}
    np.savez(tmp_path / "preds.npz", **arrays)
    run_well("regression", "preds.npz", "target.npy", cwd=tmp_path)


def test_an_image_without_an_item_axis(tmp_path: Path) -> None:
    np.save(tmp_path / "img.npy", probs()[0, 0])
    refused(
        run_uqeval("pavpu", "img.npy", cwd=tmp_path), "img.npy holds targets",
        f"has the shape {probs()[0, 0].shape}", "4 or 5 axes, [item, (sample,) class, y, x]",
        "is the item axis missing?",
    )  # fmt: skip


PLANES = np.ones((2, 4, 4), np.float32)


@pytest.mark.parametrize(
    ("command", "arrays", "says"),
    [
        (
            "regression", {"pred": PLANES, "sigma": PLANES, "gt": PLANES},
            ["s.npz holds gt, pred, sigma; expected", "probs or logits", "with labels",
             "or log_b, or samples, with target"],
        ),
        (
            "regression", {"pred": PLANES[0], "sigma": PLANES[0], "gt": PLANES[0]},
            ["s.npz holds only gt, pred, sigma; expected", "probs", "mean with std"],
        ),
        (
            "pavpu", {"softmax": probs(), "gt": np.zeros((N, H, W), np.uint8)},
            ["s.npz has no labels: it holds gt, softmax."],
        ),
        (
            "pavpu", {"x": probs(), "y": np.zeros((N, H, W), np.uint8)},
            ["s.npz holds x, y; expected probs"],
        ),
    ],
)  # fmt: skip
def test_names_that_nobody_knows(
    tmp_path: Path, command: str, arrays: dict[str, np.ndarray], says: list[str]
) -> None:
    np.savez(tmp_path / "s.npz", **arrays)
    refused(run_uqeval(command, "s.npz", cwd=tmp_path), *says)


def test_what_can_be_converted(tmp_path: Path) -> None:
    (tmp_path / "scan.xyz").write_bytes(b"\x89XYZ")
    np.save(tmp_path / "mean.npy", np.ones((2, 4, 4), np.float32))
    kinds = (
        "a .npy or .npz file, a folder of them (one per item), a folder of label PNGs, a Zarr store"
    )
    refused(
        run_uqeval("convert", "scan.xyz", "s.zarr", cwd=tmp_path),
        "scan.xyz cannot be converted",
        kinds,
    )
    bare = run_uqeval("convert", "mean.npy", "s.zarr", cwd=tmp_path)
    refused(bare, "--kind: probs, logits, labels or predictions", "numpy.savez('preds.npz'")
