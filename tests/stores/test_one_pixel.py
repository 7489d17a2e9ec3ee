"""Image classification: [N, C] and [N, T, C] with labels [N] are items of one pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused
from split import split

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.stores.store import open_store
from uqeval.usecases.inspect import inspect

N, T, C = 60, 3, 4
RNG = np.random.default_rng(3)
LOGITS = RNG.normal(0, 2, (N, T, C))
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
MEAN = PROBS.mean(1)
LABELS = np.array([RNG.choice(C, p=p / p.sum()) for p in MEAN])


def ece_of(probs: np.ndarray, bins: int = 15) -> float:
    """ECE by its definition, in plain NumPy."""
    confidence, right = probs.max(1), probs.argmax(1) == LABELS
    bin_of = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    return sum(
        abs(confidence[own].sum() - right[own].sum()) / len(probs)
        for own in (bin_of == b for b in range(bins))
    )


def saved(folder: Path, form: str) -> tuple[Any, Any]:
    """Predictions and labels in one of the forms that are read."""
    samples = PROBS if "samples" in form else MEAN
    if form.startswith("npy"):
        np.save(folder / "p.npy", samples)
        np.save(folder / "l.npy", LABELS)
        return folder / "p.npy", folder / "l.npy"
    if form.startswith("npz"):
        np.savez(folder / "p.npz", probs=samples, labels=LABELS)
        return folder / "p.npz", None
    if form.startswith("zarr"):
        group = zarr.create_group(str(folder / "p.zarr"))
        group.create_array("probs", data=samples, chunks=(7, *samples.shape[1:]))
        group.create_array("labels", data=LABELS, chunks=(11,))
        return folder / "p.zarr", None
    return {"probs": samples, "labels": LABELS}, None


@pytest.mark.parametrize("form", ["npy", "npy samples", "npz", "zarr", "zarr samples", "memory"])
def test_ece_and_auroc_are_those_of_the_definition(tmp_path: Path, form: str) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is the peer")
    predictions, labels = saved(tmp_path, form)
    report = uqeval.evaluate(predictions, labels, metrics=("calibration", "failure"))
    wrong = MEAN.argmax(1) != LABELS
    entropy = -(MEAN * np.log(MEAN)).sum(1)
    assert report.results["calibration"]["ece"] == pytest.approx(ece_of(MEAN), rel=1e-6)
    expected = metrics.roc_auc_score(wrong, entropy)
    assert report.results["failure"]["auroc"] == pytest.approx(expected, rel=1e-6)
    assert [item["name"] for item in report.items][:3] == ["0", "1", "2"]


def test_logits_and_axes_are_declared(tmp_path: Path) -> None:
    np.save(tmp_path / "z.npy", LOGITS.transpose(2, 0, 1))
    report = uqeval.evaluate(
        tmp_path / "z.npy", LABELS, metrics=("calibration",), kind="logits", axes="CNT"
    )
    assert report.results["calibration"]["ece"] == pytest.approx(ece_of(MEAN), rel=1e-5)
    with pytest.raises(UsageError, match=r"axes 'NC' are 2, but .*z\.npy has the shape"):
        uqeval.evaluate(tmp_path / "z.npy", LABELS, axes="NC")
    with pytest.raises(UsageError, match="expected letters of NTCHW"):
        uqeval.evaluate(tmp_path / "z.npy", LABELS, axes="NCQ")
    with pytest.raises(UsageError, match="kind='probabilities'; expected one of probs, logits"):
        uqeval.evaluate(tmp_path / "z.npy", LABELS, kind="probabilities")
    with pytest.raises(UsageError, match="names its arrays"):
        uqeval.evaluate({"probs": MEAN, "labels": LABELS}, kind="logits")
    with pytest.raises(UsageError, match="has no predictions with 4 axes"):
        uqeval.evaluate({"probs": MEAN, "labels": LABELS}, axes="NCHW")


@pytest.mark.parametrize("form", ["npy", "zarr"])
def test_a_label_that_is_no_class_is_named_with_its_item(tmp_path: Path, form: str) -> None:
    predictions, _ = saved(tmp_path, form)
    wrong = LABELS.copy()
    wrong[37] = 9
    with pytest.raises(DataError, match=r"item 37: 1 of 1 pixels have labels outside.*: 9 "):
        uqeval.evaluate(predictions, wrong, metrics=("failure",))


def test_what_needs_neighbours_is_refused() -> None:
    with pytest.raises(UsageError, match=r"one pixel \(image classification\).*needs neighbours"):
        uqeval.evaluate(MEAN, LABELS, metrics=("pavpu",))
    for metrics in ("calibration", "all"):
        with pytest.raises(
            UsageError, match=r"region boundary:3: .*one pixel.*Leave this region out"
        ):
            uqeval.evaluate(MEAN, LABELS, metrics, region="boundary:3")
    single = uqeval.evaluate(MEAN, LABELS, metrics={"pavpu": {"window": 1}})
    assert single.results["pavpu"]["pavpu"] is not None
    everything = uqeval.evaluate(MEAN, LABELS, metrics="all")
    assert "ece" in everything.results["calibration"] and "pavpu" not in everything.results
    assert any("needs neighbours" in text for text in everything.warnings)


def test_one_image_without_item_axis_says_what_to_do() -> None:
    image = np.moveaxis(RNG.dirichlet(np.ones(C), (4, 6)), -1, 0)
    labels = np.zeros((C, 4, 6), np.uint8)
    with pytest.raises(StoreError, match=r"read as image classification.*axes=CHW"):
        uqeval.evaluate(image, labels)
    one = uqeval.evaluate(image, labels[:1], metrics=("segmentation",), axes="CHW")
    assert one.inputs["items"] == 1


def test_foregrounds_without_class_axis_say_what_to_do() -> None:
    foreground = RNG.random((3, 4, 6), np.float32)
    labels = (foreground > 0.5).astype(np.uint8)
    with pytest.raises(StoreError, match=r"axis of one class: probs\[:, None\]"):
        uqeval.evaluate(foreground, labels)
    found = uqeval.evaluate(foreground[:, None], labels, metrics=("segmentation",))
    assert found.results["segmentation"]["pixel_accuracy"] == 1


def test_paths_are_told_apart_together(tmp_path: Path) -> None:
    for name, values in {
        "probs": MEAN, "samples": PROBS, "labels": LABELS, "planes": np.zeros((2, 4, 5)),
        "ids": np.zeros((2, 4, 5), np.uint8),
    }.items():  # fmt: skip
        np.save(tmp_path / f"{name}.npy", values)
    at = {name: str(tmp_path / f"{name}.npy") for name in ("probs", "samples", "labels", "planes")}
    ids = str(tmp_path / "ids.npy")
    assert split([at["probs"], at["labels"]]) == ([at["probs"]], at["labels"])
    both = [at["probs"], at["samples"]]
    assert split([*both, at["labels"]]) == (both, at["labels"])
    assert split([ids, ids]) == ([ids], ids)
    for wrong in ([at["labels"], at["probs"]], [at["planes"], at["planes"]], [ids, ids, ids]):
        with pytest.raises(UsageError, match="after all predictions"):
            split(wrong)
    with pytest.raises(UsageError, match=r"\[N, C\] or \[N, T, C\], need their labels"):
        split([at["probs"]])


def test_items_that_change_during_a_run_are_seen(tmp_path: Path) -> None:
    group = zarr.create_group(str(tmp_path / "p.zarr"))
    group.create_array("probs", data=MEAN, chunks=(10, C))
    (part, *_), (last, *_) = (
        open_store(tmp_path / "p.zarr", role="predictions").arrays["probs"][at:] for at in (0, 59)
    )
    assert len(part.states()) == len(last.states()) == 1 and part.states() != last.states()
    stamps = part.stamp(), last.stamp()
    assert None in stamps or stamps[0] != stamps[1]  # none while the files are new


@pytest.mark.parametrize("form", ["npz", "zarr"])
def test_items_of_their_own_have_a_class_as_a_scalar(form: str, tmp_path: Path) -> None:
    for i in range(N):
        if form == "npz":
            (tmp_path / "items").mkdir(exist_ok=True)
            np.savez(tmp_path / f"items/{i:02}.npz", probs=PROBS[i], labels=LABELS[i])
            continue
        item = zarr.open_group(str(tmp_path / "p.zarr"), mode="a").require_group(f"items/{i:02}")
        item.create_array("probs", data=PROBS[i])
        everything = {"write_empty_chunks": True}
        item.create_array("labels", data=np.asarray(LABELS[i]), config=everything)
    store = tmp_path / ("items" if form == "npz" else "p.zarr")
    found = uqeval.evaluate(store, metrics=("calibration", "failure"))
    together = uqeval.evaluate(
        {"probs": PROBS, "labels": LABELS}, metrics=("calibration", "failure")
    )
    assert found.results == together.results


def test_claimed_sizes(tmp_path: Path) -> None:
    """Tables are checked as images are, before anything of the claimed size is allocated."""
    path = str(tmp_path / "p.zarr")
    options: dict[str, Any] = {"name": "probs", "chunks": (1000, 4), "dtype": "f4"}
    zarr.create_array(path, shape=(10**10, 4), **options)[:1000] = 0.25
    refused(lambda: open_store(path, role="predictions"), "claim the shape (10000000000, 4)")
    zarr.create_array(path, shape=(1000, 4), compressors=None, overwrite=True, **options)[:] = 0.25
    (chunk,) = tmp_path.glob("p.zarr/probs/c/*/*")
    chunk.write_bytes(chunk.read_bytes()[:-1])
    assert "c/0/0" in inspect(path).problems[0]
