"""Valid and refused predictions, labels, memory and workers of `evaluate`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scenes
from command import refused
from PIL import Image
from small_videos import save_images, save_store, video
from tensors import Capsule, Tensor

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError

PROBS, LABEL = scenes.softmax(0, 2, 3, 4, 8, 12), scenes.labels(0, 2, 8, 12, classes=4)


def miou(*given: Any, **options: Any) -> Any:
    return uqeval.evaluate(*given, metrics=("segmentation",), **options).results["segmentation"]


@pytest.mark.parametrize("kind", [Tensor, Capsule])
def test_tensors_stand_for_stores(kind: Any) -> None:
    expected = miou(PROBS, LABEL)
    assert miou(kind(PROBS), kind(LABEL)) == expected
    assert miou([kind(PROBS[:, :1]), kind(PROBS[:, 1:])], kind(LABEL)) == expected


def test_torch() -> None:
    torch = pytest.importorskip(
        "torch", reason="tensors of torch stand for stores; the extra `bench` installs it"
    )
    tensors = torch.from_numpy(PROBS).requires_grad_(), torch.from_numpy(LABEL)
    assert miou(*tensors) == miou(PROBS, LABEL)


def test_tensors_stand_for_targets(tmp_path: Path) -> None:
    mean, target = np.ones((2, 3, 5), "f4"), np.zeros((2, 3, 5), "f4")
    np.savez(tmp_path / "r.npz", mean=mean, std=mean)
    report = uqeval.evaluate(tmp_path / "r.npz", Tensor(target), ("regression",))
    assert report.results["regression"]["mae"] == 1
    with pytest.raises(UsageError, match="predictions is a set; expected an array"):
        miou({"mean"}, Tensor(target))


def test_no_array() -> None:
    with pytest.raises(UsageError, match=r"target is a int.*Or give the path of a store"):
        miou(PROBS, 3)


@pytest.mark.parametrize(("memory", "same"), [("64MB", 64 * 10**6), ("1GiB", 2**30), ("9e", None)])
def test_memory_as_people_write_it(memory: str, same: int | None) -> None:
    if same is None:
        with pytest.raises(UsageError, match="memory='9e'; expected a size such as 512MB"):
            miou(PROBS, LABEL, memory=memory)
    else:
        assert miou(PROBS, LABEL, memory=memory) == miou(PROBS, LABEL, memory=same)


@pytest.mark.parametrize("workers", ["x", 0, 1.5, True])
def test_workers_are_a_number(workers: Any) -> None:
    with pytest.raises(UsageError, match=f"workers={workers!r}; expected a whole number"):
        miou(PROBS, LABEL, workers=workers)


def test_a_store_given_twice_is_no_ensemble(tmp_path: Path, monkeypatch: Any) -> None:
    np.save(tmp_path / "p.npy", PROBS)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"p\.npy is given twice; the members"):
        miou(["p.npy", "p.npy"], LABEL)
    with pytest.raises(UsageError, match=r"given twice, the first time as p\.npy"):
        miou(["p.npy", tmp_path / "p.npy"], LABEL)
    with pytest.raises(UsageError, match="the same array is given twice"):
        miou([PROBS, PROBS], LABEL)
    assert miou(["p.npy", PROBS], LABEL)["pixels"] > 0


def test_options_that_are_misspelt() -> None:
    for name, meant in (
        ("wokers", "workers"),
        ("memry", "memory"),
        ("ignore_indx", "ignore_index"),
    ):
        with pytest.raises(UsageError, match=f"unknown options .*{name}.*; did you mean '{meant}'"):
            uqeval.evaluate(PROBS, LABEL, **{name: 1})
    with pytest.raises(
        UsageError, match=r"expected some of annotator_folders, axes, .*ci, .*workers"
    ) as caught:
        uqeval.evaluate(PROBS, LABEL, zzz=1)
    assert "read_maps" not in str(caught.value)  # a field that no option sets


def test_class_names_that_repeat(tmp_path: Path) -> None:
    path = scenes.zarr_group(
        tmp_path / "s.zarr", {"probs": PROBS, "labels": LABEL},
        class_names=["road", "car", "road", "tree"],
    )  # fmt: skip
    report = uqeval.evaluate(path, metrics=("segmentation",))
    assert [w for w in report.warnings if "repeats 'road' of the classes 0, 2" in w]
    assert [row["name"] for row in report.results["segmentation"]["per_class"]].count("road") == 2


def test_repr() -> None:
    report = uqeval.evaluate(PROBS, LABEL, ("segmentation", "calibration"))
    text = repr(report)
    assert text == str(report)
    assert "2 items; segmentation, calibration; 1 warning: " in text and len(text) < 400
    assert "--" not in text and report.warnings[0][:40] in text


@pytest.mark.parametrize("kind", [np.asarray, Tensor, Capsule])
def test_mappings_of_arrays_stand_for_stores(kind: Any) -> None:
    expected = miou(PROBS, LABEL)
    names = {"names": ["a", "b"], "class_names": ("road", "car", "tree", "sky")}
    given = {"probs": kind(PROBS), "labels": kind(LABEL), **names}
    report = uqeval.evaluate(given, metrics=("segmentation",))
    assert [item["name"] for item in report.items] == ["a", "b"]
    assert report.results["segmentation"]["per_class"][1]["name"] == "car"
    assert report.results["segmentation"]["miou"] == expected["miou"]
    members = [{"probs": kind(PROBS[:, :1])}, {"probs": kind(PROBS[:, 1:])}]
    assert miou(members, kind(LABEL)) == expected
    logs = {"logits": kind(np.log(np.maximum(PROBS, 1e-30))), "labels": kind(LABEL)}
    assert miou(logs)["miou"] == pytest.approx(expected["miou"])
    scaled = np.floor(PROBS * 255).astype(np.uint8)
    scaled[:, :, 0] += 255 - scaled.sum(2, dtype=np.uint8)
    assert miou({"probs": scaled, "scale": 1 / 255, "labels": LABEL})["miou"] is not None


def test_mappings_of_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mean, target = rng.normal(5, 1, (2, 2, 6, 7))
    std = np.ones_like(mean)

    def rmse(*given: Any) -> float:
        report = uqeval.evaluate(*given, metrics=("regression",))
        value: float = report.results["regression"]["rmse"]
        return value

    expected = np.sqrt(((mean - target) ** 2).mean())
    assert rmse({"mean": mean, "std": std, "target": target}) == pytest.approx(expected)
    assert rmse({"mean": mean, "variance": std}, target) == pytest.approx(expected)
    assert rmse({"mean": mean, "std": std}, {"target": target}) == pytest.approx(expected)
    samples = np.stack([mean - 1, mean + 1], 1)
    assert rmse({"samples": samples, "target": target}) == pytest.approx(expected)
    valid = np.zeros(mean.shape, bool)
    valid[0] = True
    masked = rmse({"mean": mean, "std": std, "target": target, "valid": valid})
    assert masked == pytest.approx(np.sqrt(((mean - target)[0] ** 2).mean()))
    one = {"mean": mean[0], "std": std[0], "target": target[0]}
    assert uqeval.evaluate(one, metrics=("regression",)).inputs["items"] == 1


def test_mappings_that_are_no_stores() -> None:
    for given, says in [
        ({}, "no arrays; expected probs or logits"),
        ({"probs": "preds.zarr"}, "'probs' is a str; expected an array"),
        ({"probs": PROBS, "class_names": [1, 2]}, "class_names must be a list of texts"),
        ({"probs": PROBS, "names": ["a"]}, "1 names for 2 items"),
        ({"entropy": PROBS[:, 0, 0]}, "holds entropy; expected probs or logits"),
        (
            {"entropy": PROBS[:, 0, 0], "prediction": LABEL},
            "'prediction': did you mean predictions",
        ),
        ({"predictions": LABEL}, "no uncertainty, and does not say how many classes"),
        ({"predictions": LABEL, "novelty": PROBS[:, 0, 0]}, "there are. Give classes=N, or store"),
    ]:
        with pytest.raises(UqevalError, match=says):
            uqeval.evaluate(given, LABEL)


def test_a_warning_of_items_that_are_matched_by_position(tmp_path: Path) -> None:
    names = np.array(["b", "a"])
    named, unnamed = str(tmp_path / "named.npz"), str(tmp_path / "unnamed.npz")
    np.savez(named, probs=PROBS, names=names)
    np.savez(unnamed, probs=PROBS)
    labels, labels_named = str(tmp_path / "labels.npz"), str(tmp_path / "labels_named.npz")
    np.savez(labels, labels=LABEL)
    np.savez(labels_named, labels=LABEL, names=names)

    def warned(*given: Any, **options: Any) -> list[str]:
        report = uqeval.evaluate(*given, metrics=("segmentation",), **options)
        return [text for text in report.warnings if "by position" in text]

    (text,) = warned(unnamed, labels_named)
    assert text == (
        f"{unnamed} has no names of items, so its items are matched with those of {labels_named} "
        "by position. If the orders may differ, give names=FILE, one name per line."
    )
    (text,) = warned(named, labels)
    assert text.startswith(f"{labels} has no names") and "store an array `names` in it" in text
    (text,) = warned([named, unnamed], labels_named)
    assert text.startswith(f"{unnamed} has no names") and f"those of {named} " in text
    (text,) = warned(named, labels_named, region=f"map:{labels}:1")
    assert text.startswith(f"{labels} has no names")
    for given in (
        (named, labels_named), (unnamed, labels), (PROBS, labels_named), (named, LABEL),
        ([PROBS, named], labels_named),
    ):  # fmt: skip
        assert not warned(*given)
    assert not warned(unnamed, labels_named, names=["a", "b"])


def test_a_warning_of_frames_that_are_matched_by_position(tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    frames.mkdir()
    for name in ("a1", "a2", "a3"):
        Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(frames / f"{name}.png")
    ids, names = np.zeros((3, 8, 8), np.uint8), np.array(["a1", "a2", "a3"])
    unnamed, named, flow = (str(tmp_path / f"{stem}.npz") for stem in ("unnamed", "named", "flow"))
    np.savez(unnamed, predictions=ids, labels=ids)
    np.savez(named, predictions=ids, labels=ids, names=names)
    np.savez(flow, flow=np.zeros((2, 8, 8, 2), np.float32))

    def warned(predictions: Any, labels: Any, **options: Any) -> list[str]:
        options = {"classes": 2, "video": str(frames), "flow_path": flow} | options
        report = uqeval.evaluate(predictions, labels, {"tc": {"flow": "file"}}, **options)
        return [text for text in report.warnings if "by position" in text]

    assert warned(named, unnamed) == warned(unnamed, named) == warned(unnamed, unnamed)
    assert warned(named, unnamed) == [
        f"{unnamed} has no names of items, so its items are matched with those of {frames} by "
        "position. If the orders may differ, store an array `names` in it."
    ]
    assert not warned(named, named)
    assert not warned(ids, ids)
    assert not warned(unnamed, unnamed, names=["a1", "a2", "a3"])
    nameless = str(tmp_path / "nameless.npz")
    np.savez(nameless, frames=np.zeros((3, 8, 8, 3), np.uint8))
    files = save_images(tmp_path / "files", dict(zip(names, ids, strict=True)))
    assert warned(files, files, video=nameless) == [
        f"{nameless} has no names of items, so its items are matched with those of {files} by "
        "position. If the orders may differ, give names=FILE, one name per line."
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_members_are_matched_by_name(tmp_path: Path, first: int) -> None:
    """As predictions and labels are; names of the first member that has some are the order."""
    orders = [[0, 1, 2, 3], [2, 0, 3, 1]]
    probs, label = scenes.softmax(2, 4, 2, 3, 8, 12), scenes.labels(2, 4, 8, 12, classes=3)
    stores = [
        scenes.zarr_group(
            tmp_path / f"{m}.zarr", {"probs": probs[order, m : m + 1], "labels": label[order]},
            names=[f"i{i}" for i in order],
        )
        for m, order in enumerate(orders)
    ]  # fmt: skip
    report = uqeval.evaluate([stores[first], stores[1 - first]], metrics="segmentation")
    expected = uqeval.evaluate(probs, label, metrics="segmentation")
    assert report.results == expected.results
    assert list(report.item_names) == [f"i{i}" for i in orders[first]]
    own = {item["name"]: item["segmentation"] for item in report.items}
    assert own == {f"i{item['name']}": item["segmentation"] for item in expected.items}


def test_members_in_one_chunk_and_in_files(tmp_path: Path) -> None:
    """Items that share a chunk of one member are separate files of the other."""
    probs, label = scenes.softmax(2, 4, 2, 3, 8, 12), scenes.labels(2, 4, 8, 12, classes=3)
    names = [f"i{i}" for i in range(4)]
    store = scenes.zarr_group(tmp_path / "a.zarr", {"probs": probs[:, :1], "labels": label},
                              names=names)  # fmt: skip
    (tmp_path / "files").mkdir()
    for name, item in zip(names, probs, strict=True):
        np.save(tmp_path / "files" / f"{name}.npy", item[1])
    assert miou([store, tmp_path / "files"]) == miou(probs, label)


def test_given_names_do_not_mix_members_of_another_order() -> None:
    order = [1, 0]
    members = [
        {"probs": PROBS[:, :1], "names": ["a", "b"]},
        {"probs": PROBS[order, 1:], "names": ["b", "a"]},
    ]
    expected = miou(members, {"labels": LABEL, "names": ["a", "b"]})
    renamed = {"labels": LABEL, "names": ["y", "z"]}
    assert miou(members, renamed, names=["y", "z"]) == expected
    assert expected == miou([PROBS[:, :1], PROBS[:, 1:]], LABEL)
    # Of which member would labels without names have the order?
    for names in (None, ["y", "z"]):
        refused(
            lambda names=names: miou(members, LABEL, names=names),
            "labels (array in memory) has no names", "in different orders",
            error=StoreError,
        )  # fmt: skip
    refused(
        lambda: miou([*members, PROBS[:, :1]], {"labels": LABEL, "names": ["a", "b"]}),
        "member 3 (array in memory) has no names", error=StoreError,
    )  # fmt: skip


FEWER, TALLER = PROBS[:1], np.pad(LABEL, ((0, 0), (0, 1), (0, 0)))


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ((PROBS, LABEL[:1]), {}, ["labels (array in memory) holds", "predictions (array in"]),
        ((PROBS, TALLER), {}, ["labels (array in memory), item 0"]),
        (({"probs": PROBS}, {"labels": TALLER}), {}, ["labels of labels (arrays in memory)"]),
        (([PROBS, FEWER], LABEL), {}, ["member 2 (array", "member 1 (array"]),
        ((PROBS,), {"reference": FEWER}, ["reference (array in memory)", "of predictions (array"]),
        ((PROBS,), {"out": [PROBS + 0, FEWER * 2]}, ["OUT 2 (array in memory), item"]),
        ((PROBS,), {"out": [[PROBS + 0, FEWER]]}, ["member 2 of OUT 1 (array in memory)"]),
        ((PROBS,), {"ood_mask": TALLER}, ["ood_mask (array in memory)"]),
        (([PROBS, None], LABEL), {}, ["member 2 is a NoneType"]),
    ],
)
def test_messages_name_the_argument_of_an_array(given: Any, options: Any, words: Any) -> None:
    metrics = {"reference": "divergence", "out": "ood", "ood_mask": "ood"}
    metric = next((metrics[name] for name in options), "segmentation")
    refused(lambda: uqeval.evaluate(*given, metrics=metric, **options), *words)


def test_videos_of_several_arrays(tmp_path: Path) -> None:
    own = video()
    ids = own.stack("predictions")
    frames = save_store(tmp_path / "v.zarr", frames=own.stack("frames"))
    act = partial(uqeval.evaluate, video=frames, metrics="tc")
    assert [found["model"] for found in act(ids).results.values()] == ["array in memory"]
    two = act([ids, ids[::-1]]).results.values()
    assert [found["model"] for found in two] == [f"model {k} (array in memory)" for k in (1, 2)]
    refused(lambda: act(ids, ids[:2]), "labels (array in memory)")
    refused(lambda: act([ids, ids[:2]]), "model 2 (array in memory)")
