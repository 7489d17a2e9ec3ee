"""Every kind of region against the whole image of data that are void outside the region."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import cv2
import naive
import naive_ood
import naive_temporal
import numpy as np
import pytest
import small_stores
import small_videos
from command import refused
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image
from scipy.ndimage import distance_transform_edt

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.maps.region_maps import squared_distances
from uqeval.maps.region_text import Labelled, region_of
from uqeval.maps.regions import Boundary

N, T, C, H, W = 3, 2, 3, 12, 16
CLASSES = {
    "segmentation": {}, "pavpu": {"window": 1, "threshold": "0.5", "curve_range": "0:1.1",
    "deciles": False}, "calibration": {"temperature": False}, "failure": {"threshold": "0.5"},
    "sparsification": {"error": ["brier", "zero-one"]},
}  # fmt: skip
NUMBERS = {"regression": {}, "nmerci": {"alpha": 90}, "sparsification": {}}
REGIONS = (
    "class:1", "depth:0-2", "depth:2-inf", "box:0.25:0.6,0:0.5", "map:areas", "boundary:1.5",
)  # fmt: skip


def areas(rng: Any) -> Any:
    """Ids with void, and some that only one item has."""
    ids = rng.choice(np.array([0, 3, 65534, 65535], "u2"), (N, H, W))
    ids[1][ids[1] == 3] = 0
    return ids


def depths(rng: Any) -> Any:
    """Depths with ties at the limits, unknown ones and infinite ones."""
    return rng.choice(np.array([0, 1.9999999, 2, 7, np.nan, np.inf], "f8"), (N, H, W))


def masks(label: Any, depth: Any, ids: Any) -> dict[str, Any]:
    """The pixels of every region, in plain NumPy."""
    y, x = np.mgrid[:H, :W]
    found = {"class:1": label == 1, "depth:0-2": (depth >= 0) & (depth < 2),
             "depth:2-inf": (depth >= 2) & (depth < np.inf)}  # fmt: skip
    inside = (y + 0.5 >= 0.25 * H) & (y + 0.5 < 0.6 * H) & (x + 0.5 < 0.5 * W)
    found["box:0.25:0.6,0:0.5"] = np.broadcast_to(inside, label.shape)
    found |= {f"map:areas:{i}": ids == i for i in (0, 3, 65534)}
    near = np.zeros(label.shape, bool)
    for own, item in zip(near, label, strict=True):
        for c in range(C):
            others = (item != c) & (item < 255)
            if others.any():
                own |= (item == c) & (np.rint(distance_transform_edt(~others) ** 2) <= 1.5**2)
    return found | {"boundary:1.5": near}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    """Probabilities with many ties, labels with void, depths and ids."""
    rng = np.random.default_rng(5)
    counts = rng.multinomial(8, np.ones(C) / C, (N, T, H, W))
    label = rng.integers(0, C, (N, H, W)).astype("u1")
    label[rng.random(label.shape) < 0.1] = 255
    return {"probs": np.moveaxis(counts, -1, 2).astype("f4") / 8, "labels": label,
            "depth": depths(rng), "areas": areas(rng)}  # fmt: skip


def test_masks(data: dict[str, Any]) -> None:
    """The pixels of every region: `pixels` of each item, and the mask itself."""
    report = uqeval.evaluate(data, None, "segmentation", region=REGIONS)
    found = masks(data["labels"], data["depth"], data["areas"])
    assert {f"segmentation@{region}" for region in found} | {"segmentation"} == set(report.results)
    of = Labelled("classes", ("0", "1", "2"), "data")
    for region, mask in found.items():
        pixels = [item[f"segmentation@{region}"]["pixels"] for item in report.items]
        assert pixels == [(m & (d < 255)).sum() for m, d in zip(mask, data["labels"], strict=True)]
        view = region_of(region, of)
        for i, label in enumerate(data["labels"]):
            maps = {"label": label, "region:boundary": squared_distances(label),
                    "region:depth": data["depth"][i],
                    "region:map:areas": data["areas"][i]}  # fmt: skip
            assert (view.maps(maps)["label"] == np.where(mask[i], label, 255)).all()


def test_classes(data: dict[str, Any]) -> None:
    region = "map:areas:3"
    report = uqeval.evaluate(data, None, CLASSES, region=region)
    label = np.where(data["areas"] == 3, data["labels"], 255).astype("u1")
    expected = uqeval.evaluate(data | {"labels": label}, None, CLASSES)
    for key, record in expected.results.items():
        assert report.results[f"{key}@{region}"] == record, key
        assert [i[f"{key}@{region}"] for i in report.items] == [i[key] for i in expected.items], key


def test_sets(tmp_path: Path) -> None:
    """Scores of pixels and items in a region of two sets, from pixels that the mask picks."""
    rng = np.random.default_rng(8)
    maps = {name: rng.random((N, H, W)).astype("f4") for name in ("in", "near", "far")}
    for name, values in maps.items():
        predictions = np.zeros((N, H, W), "u1")
        np.savez(tmp_path / f"{name}.npz", novelty=values, predictions=predictions,
                 names=[f"{name}{i}" for i in range(N)])  # fmt: skip
    ids = np.concatenate([areas(rng) for _ in maps])
    names = [f"{name}{i}" for name in maps for i in range(N)]
    order = rng.permutation(len(names))  # matched by name
    np.savez(tmp_path / "areas.npz", labels=ids[order], names=np.array(names)[order])
    depth = np.concatenate([depths(rng) for _ in maps])
    np.save(tmp_path / "depth.npy", depth)
    region, box, near = f"map:{tmp_path}/areas.npz", "box:0.25:0.6,0:0.5", "depth:0-2"
    report = uqeval.evaluate(
        tmp_path / "in.npz", None, {"ood": {"uncertainty": "novelty"}},
        out=[tmp_path / "near.npz", tmp_path / "far.npz"], region=[region, box, near],
        depth_map=tmp_path / "depth.npy", classes=C,
    )  # fmt: skip
    inside = {
        "map:areas.npz:3": ids == 3, "map:areas.npz:65534": ids == 65534,
        box: masks(np.zeros((3 * N, H, W)), depth, ids)[box], near: (depth >= 0) & (depth < 2),
    }  # fmt: skip
    values = np.concatenate(list(maps.values()))
    out = np.repeat([0, 1, 2], N)
    for name, mask in inside.items():
        record = report.results[f"ood@{name}"]
        for found, sets in ((record, (1, 2)), (record["per_set"]["near"], (1,))):
            kinds = (out == 0), np.isin(out, sets)
            pixels = [values[kind][mask[kind]] for kind in kinds]
            assert (found["pixels_in"], found["pixels_out"]) == tuple(map(len, pixels))
            for field, value in naive_ood.ood(*pixels).items():
                bound = found.get(f"{field}_bound", 0.0) + 1e-9
                assert abs(found[field] - value) <= bound, (name, field)
            means = [
                [values[i][mask[i]].mean(dtype="f8") for i in np.flatnonzero(kind) if mask[i].any()]
                for kind in kinds
            ]
            for field, value in naive_ood.ood(*means).items():
                assert found["images"][field] == pytest.approx(value, abs=1e-9), (name, field)


def test_bravo_of_a_region(data: dict[str, Any]) -> None:
    mask = np.random.default_rng(9).integers(0, 2, (N, H, W)).astype("u1")
    settings = {"ood": {"definition": "bravo"}}
    report = uqeval.evaluate(data, None, settings, ood_mask=mask, region="depth:0-2")
    outside = ~masks(data["labels"], data["depth"], data["areas"])["depth:0-2"]
    expected = uqeval.evaluate(data, None, settings, ood_mask=np.where(outside, 255, mask))
    assert report.results["ood@depth:0-2"] == expected.results["ood"]
    assert expected.results["ood"]["bravo"]["bravo_index"] is not None


def test_numbers() -> None:
    rng = np.random.default_rng(7)
    values = {name: rng.choice([0.0, 0.5, 1.0, 2.5], (N, H, W)) for name in ("mean", "std")}
    values |= {"target": depths(rng), "valid": rng.random((N, H, W)) < 0.9}
    region = "depth:1.5-3"
    report = uqeval.evaluate(values, None, NUMBERS, region=region, ci=0.9, draws=100)
    inside = (values["target"] >= 1.5) & (values["target"] < 3)
    own = values | {"valid": values["valid"] & inside}
    expected = uqeval.evaluate(own, None, NUMBERS, ci=0.9, draws=100)
    for key, record in expected.results.items():
        assert report.results[f"{key}@{region}"] == record, key
    for key, interval in expected.intervals.items():
        family, _, field = key.partition(".")
        assert report.intervals[f'{family}@"{region}".{field}'] == interval, key


def test_video(tmp_path: Path) -> None:
    own = small_videos.video(classes=3, size=(20, 24))
    rng = np.random.default_rng(2)
    ids = {name: rng.integers(0, 2, (20, 24)).astype("u1") for name in own.names}
    place = small_videos.save_folder(tmp_path / "v", own, labels=True)
    small_videos.save_images(tmp_path / "ids", ids)
    flows = {name: rng.normal(0, 2, (20, 24, 2)).astype("f4") for name in own.names[1:]}
    for flow in flows.values():
        flow[rng.random((20, 24)) < 0.05] = np.nan
    small_videos.save_flows(tmp_path / "flow", flows)
    report = uqeval.evaluate(
        None, None, {"tc": {"flow": "file"}}, video=place, flow_path=tmp_path / "flow", classes=3,
        region=("class:1", f"map:{tmp_path / 'ids'}", "boundary:1", "box:0:0.5,0:1"),
    )  # fmt: skip
    grey = {n: cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY) for n, rgb in own.frames.items()}

    def mask(region: str, name: str) -> Any:
        label = own.labels[name]
        if region == "boundary:1":
            near = np.zeros(label.shape, bool)
            for y, x in np.argwhere(label < 255):
                for v, u in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                    if 0 <= v < 20 and 0 <= u < 24 and label[v, u] not in (255, label[y, x]):
                        near[y, x] = True
            return near
        if region.startswith("box"):
            return np.arange(20)[:, None].repeat(24, 1) < 10
        return label == 1 if region == "class:1" else ids[name] == int(region[-1])

    for region in ("class:1", "map:ids:0", "map:ids:1", "boundary:1", "box:0:0.5,0:1"):
        for item, (before, now) in zip(
            report.items, zip(own.names, own.names[1:], strict=False), strict=True
        ):
            inside = mask(region, now)
            flow = np.where(inside[..., None], flows[now], np.nan)
            found = naive_temporal.pair(
                np.where(inside, own.predictions[now], 255), own.predictions[before], grey[now],
                grey[before], flow, None, 3, 255,
            )  # fmt: skip
            record = item[f"temporal@{region}"]
            here, there, both = found["counts"].sum(0)
            union = here + there - both
            assert record["tc"] == pytest.approx((both[union > 0] / union[union > 0]).mean())
            assert record["coverage"] == pytest.approx(found["pixels"][1] / inside.sum())
            squares = found["squares"][0] / found["pixels"][1]
            assert record["mse_warp"] == pytest.approx(squares, rel=1e-12)
            assert record["flow_median"] == pytest.approx(found["flow_median"][0])
            label = np.where(inside, own.labels[now], 255)
            p, t, b = naive_temporal.frame(own.predictions[now], label, 3, 255)
            union = p + t - b
            assert record["miou"] == pytest.approx((b[union > 0] / union[union > 0]).mean())
        first = np.where(mask(region, own.names[0]), own.labels[own.names[0]], 255)
        p, t, b = naive_temporal.frame(own.predictions[own.names[0]], first, 3, 255)
        union = p + t - b
        mious = [item[f"temporal@{region}"]["miou"] for item in report.items]
        mious.append((b[union > 0] / union[union > 0]).mean())
        assert report.results[f"temporal@{region}"]["miou_mean"] == pytest.approx(np.mean(mious))


def test_folders_of_maps_and_depths(data: dict[str, Any], tmp_path: Path) -> None:
    """Folders, an array file and arrays in memory give the same scores."""
    ids, depth = np.minimum(data["areas"], 255).astype("u1"), data["depth"].astype("f4")
    for kind in ("areas", "depth"):
        (tmp_path / kind).mkdir()
    for i in range(N):
        Image.fromarray(ids[i]).save(tmp_path / "areas" / f"n{i}.png")
        np.save(tmp_path / "depth" / f"n{i}.npy", depth[i])
    np.save(tmp_path / "areas.npy", ids)
    names = {"names": [f"n{i}" for i in range(N)]}
    plain = {name: data[name] for name in ("probs", "labels")}
    expected = uqeval.evaluate(
        plain | {"areas": ids, "depth": depth}, None, "calibration",
        region=("map:areas", "depth:0-2"),
    )  # fmt: skip
    assert "calibration@map:areas:3" in expected.results
    folders = uqeval.evaluate(
        plain | names, None, "calibration", region=(f"map:{tmp_path / 'areas'}", "depth:0-2"),
        depth_map=tmp_path / "depth",
    )  # fmt: skip
    assert folders.results == expected.results
    assert [record["path"] for record in folders.inputs["regions"]] == [
        str(tmp_path / "areas"), str(tmp_path / "depth"),
    ]  # fmt: skip
    array = uqeval.evaluate(
        plain, None, "calibration", region=f"map:{tmp_path / 'areas.npy'}:3"
    )  # fmt: skip
    assert (
        array.results["calibration@map:areas.npy:3"] == expected.results["calibration@map:areas:3"]
    )


def test_a_temperature_of_samples(data: dict[str, Any]) -> None:
    options = {"calibration": {"temperature_of": "samples", "bins": 4}}
    rng = np.random.default_rng(1)
    mixed = data | {"probs": np.moveaxis(rng.dirichlet(np.ones(C), (N, T, H, W)), -1, 2)}
    likely = rng.random((N, H, W)) < 0.5
    mixed["labels"] = np.where(likely, mixed["probs"].mean(1).argmax(1), 1).astype("u1")
    report = uqeval.evaluate(mixed, None, options, region="class:1")
    assert report.results["calibration"]["temperature"]["value"] != 1.0
    found = report.results["calibration@class:1"]["temperature"]
    mask = mixed["labels"] == 1
    p = mixed["probs"].astype("f8") ** (1 / found["value"])
    p = (p / p.sum(2, keepdims=True)).mean(1)
    confidence, right = p.max(1)[mask], (p.argmax(1) == 1)[mask]
    bins = np.ceil(confidence * 4)
    gaps = [abs((right - confidence)[bins == b].sum()) for b in range(1, 5)]
    assert found["nll"] == pytest.approx(-np.log(p[:, 1][mask]).mean(), rel=1e-5)
    assert found["ece"] == pytest.approx(sum(gaps) / mask.sum(), rel=1e-4)


@pytest.mark.parametrize(("share", "rule"), [(0.25, "0.3"), (1.0, "mean")])
def test_patches(data: dict[str, Any], share: float, rule: str) -> None:
    """The share of a patch, and a threshold that each region fits."""
    settings = {"window": 2, "region_share": share, "threshold": rule, "threshold_scope": "region"}
    report = uqeval.evaluate(data, None, {"pavpu": settings}, region="class:1")
    p = data["probs"].astype("f8").mean(1)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(1)
    inside, label, right = data["labels"] == 1, data["labels"], p.argmax(1) == data["labels"]
    threshold = entropy[inside].mean() if rule == "mean" else 0.3
    counts = np.zeros((2, 2), int)
    for i, y, x in np.ndindex(N, H // 2, W // 2):
        place = i, slice(2 * y, 2 * y + 2), slice(2 * x, 2 * x + 2)
        own, valid = inside[place], (label[place] < 255).sum()
        if own.any() and own.sum() >= share * valid:
            accurate = right[place][own].mean() > 0.5
            counts[int(accurate), int(np.float32(entropy[place][own].mean()) > threshold)] += 1
    found = report.results["pavpu@class:1"]
    assert [found[n] for n in ("n_ic", "n_iu", "n_ac", "n_au")] == list(counts.reshape(-1))
    assert found["uncertainty_threshold"] == pytest.approx(threshold)


@pytest.mark.parametrize("rule", ["mean", "median", "range:0.4", "max-surplus", "0.3"])
def test_a_region_counts_patches_at_the_thresholds_of_whole_items(
    data: dict[str, Any], rule: str
) -> None:
    labels = data["labels"].copy()
    labels[1, : H // 2] = 255  # no patch of the region in this item
    settings = {"window": 1, "threshold": rule, "threshold_scope": "item"}
    both = ["box:0:0.5,0:1", "box:0.5:1,0:1"]
    report = uqeval.evaluate(data | {"labels": labels}, None, {"pavpu": settings}, region=both)
    keys = [f"pavpu@{region}" for region in both]
    counts = ("n_ac", "n_au", "n_ic", "n_iu")
    for i, item in enumerate(report.items):
        found = [item[key]["uncertainty_threshold"] for key in keys]
        assert found[1] == item["pavpu"]["uncertainty_threshold"]
        assert found[0] == (None if i == 1 else found[1])
        # Each pixel is a patch, so the two halves have the patches of the whole.
        for name in counts:
            assert sum(item[key][name] for key in keys) == item["pavpu"][name]


@pytest.mark.parametrize("border", ["drop", "partial", "pad"])
@pytest.mark.parametrize("void", ["exclude", "inaccurate"])
def test_patches_in_which_void_or_padding_counts(
    data: dict[str, Any], border: Any, void: str
) -> None:
    """Padding is in no region, and only void pixels of the region can be wrong."""
    settings = {"window": 3, "border": border, "void": void, "threshold": "0.3"}
    labels = data["labels"].copy()
    labels[:, :4, :5] = 255
    report = uqeval.evaluate(
        data | {"labels": labels}, None, {"pavpu": settings}, region="box:0.2:1,0.3:1"
    )
    p = data["probs"].astype("f8").mean(1)
    entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(1)
    right = p.argmax(1) == labels
    inside = np.zeros(labels.shape, bool)
    inside[:, np.arange(H) + 0.5 >= 0.2 * H, :] = True
    inside[:, :, np.arange(W) + 0.5 < 0.3 * W] = False
    counted = (labels < 255) | (void == "inaccurate")
    counts = np.zeros((2, 2), int)
    rows, columns = naive.starts(H, 3, 3, border), naive.starts(W, 3, 3, border)
    for i, y, x in itertools.product(range(N), rows, columns):
        place = i, slice(max(y, 0), y + 3), slice(max(x, 0), x + 3)
        own, valid = (inside & counted)[place], counted[place]
        if own.any() and own.sum() >= 0.5 * valid.sum():
            n = own.sum() + (9 - valid.size if border == "pad" else 0)
            accurate = int(right[place][own].sum() / n > 0.5)
            mean = np.float32(math.fsum(entropy[place][own].astype("f4")) / n)
            counts[accurate, int(mean > 0.3)] += 1
    found = report.results["pavpu@box:0.2:1,0.3:1"]
    assert [found[n] for n in ("n_ic", "n_iu", "n_ac", "n_au")] == list(counts.reshape(-1))


def test_regions_without_pixels(data: dict[str, Any]) -> None:
    numbers = dict.fromkeys(("mean", "std", "target"), np.ones((2, 4, 4)))
    report = uqeval.evaluate(numbers, None, {**NUMBERS, "nmerci": {"depth_step": 1}},
                             region="depth:8-9")  # fmt: skip
    for field in ("regression.rmse", "regression.auce", "nmerci.nmerci", "sparsification.ause"):
        key, _, name = field.partition(".")
        record = report.results[f"{key}@depth:8-9"]
        assert record[name] is None
        assert record[f"{name}_reason"]
    scoped = {"pavpu": {"threshold_scope": "region"}}
    empty = data | {"labels": np.minimum(data["labels"], 1)}
    assert (
        uqeval.evaluate(empty, None, scoped, region="class:2").results["pavpu@class:2"]["phi"]
        is None
    )


def test_the_void_id_of_a_map_is_no_region(data: dict[str, Any], tmp_path: Path) -> None:
    """The message says how to change it, and then it is a region."""
    void, other = {"ignore_index": 255}, {"ignore_index": 65535}
    data = data | {"areas": np.where(data["areas"] == 65535, 255, data["areas"])}
    own = small_stores.save(tmp_path / "own", {"labels": data["areas"]})
    for name, options, change in (
        ("areas", {}, "attribute ignore_index of the array"),
        ("areas", void, "another ignore_index"),
        (own, {}, "attribute ignore_index of a store"),
    ):
        says = f"255 is the void id of the map {Path(name).name}.*{change}"
        with pytest.raises(UsageError, match=says):
            uqeval.evaluate(data, None, "segmentation", region=f"map:{name}:255", **options)
    declaring = small_stores.save(tmp_path / "other", {"labels": data["areas"]}, other)
    labels = data["labels"].astype("u2")
    labels[labels == 255] = 65535
    given = data | {"labels": labels}
    for name in ("areas", declaring):
        report = uqeval.evaluate(given, None, "segmentation", region=f"map:{name}:255", **other)
        assert f"segmentation@map:{Path(name).name}:255" in report.results


def test_the_default_void_id_in_a_map_with_larger_ids_may_be_a_region(
    data: dict[str, Any], tmp_path: Path
) -> None:
    ids = np.where(data["areas"] == 65535, 255, data["areas"])
    data = data | {"areas": ids}

    def regions(region: str, **options: Any) -> set[int]:
        report = uqeval.evaluate(data, None, "segmentation", region=region, **options)
        return {int(key.rpartition(":")[2]) for key in report.results if "@" in key}

    own = small_stores.save(tmp_path / "own", {"labels": ids})
    for name in ("areas", str(own)):
        refused(lambda: regions(f"map:{name}"), "has the id 255", "ids up to 65534",  # noqa: B023
                "attribute ignore_index", "in the same way", "map:")  # fmt: skip
        assert regions(f"map:{name}:3") == {3}
    assert regions("map:areas", ignore_index=255) == {0, 3, 65534}
    for void in (255, 65535):
        declaring = small_stores.save(tmp_path / f"{void}", {"labels": ids}, {"ignore_index": void})
        assert regions(f"map:{declaring}") == {0, 3, 255, 65534} - {void}


@pytest.mark.parametrize(
    ("changes", "region", "error", "text"),
    [
        ({"areas": np.zeros((N, H, W + 1), "u1")}, "map:areas", StoreError, "12×17"),
        ({"areas": np.zeros((N, H, W), "f4")}, "map:areas", StoreError, "integers"),
        ({"areas": np.full((N, H, W), -1)}, "map:areas", DataError, "run from -1 to -1"),
        ({"areas": np.full((N, H, W), 70000)}, "map:areas", DataError, "ids from 0 to 65534"),
        ({"areas": np.full((N, H, W), 255)}, "map:areas", UsageError, "the map has 0 ids"),
        ({"areas": np.arange(N * H * W).reshape(N, H, W)}, "map:areas", UsageError, "575 ids"),
        ({}, "map:areas:4", UsageError, "no map has the id 4; areas has 0, 3, 65534"),
        ({}, "map:roads", UsageError, "no array and no path roads; .*has areas"),
        ({}, "map:", UsageError, "names no map; .*has areas"),
        ({"depth": np.zeros((N, H + 1, W))}, "depth:0-1", StoreError, "13×16"),
        ({"areas": np.zeros((N, C, H, W), "u1")}, "map:areas", StoreError, "has the shape"),
    ],
)  # fmt: skip
def test_refused(
    data: dict[str, Any], changes: dict[str, Any], region: str, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        uqeval.evaluate(data | changes, None, "calibration", region=region)


def test_refused_beside_other_options(data: dict[str, Any], tmp_path: Path) -> None:
    plain = {name: data[name] for name in ("probs", "labels")}
    with pytest.raises(UsageError, match=r"no array `depth` of all items\. Give depth_map"):
        uqeval.evaluate(plain, None, "calibration", region="depth:0-1")
    with pytest.raises(UsageError, match="has no effect without region depth"):
        uqeval.evaluate(plain, None, "calibration", depth_map=tmp_path)
    np.save(tmp_path / "few.npy", data["areas"][:2])
    with pytest.raises(StoreError, match=r"holds 2 maps, .* holds 3 items"):
        uqeval.evaluate(plain, None, "calibration", region=f"map:{tmp_path / 'few.npy'}")
    place = small_videos.save_folder(tmp_path / "v", small_videos.video(size=(8, 8)))
    with pytest.raises(UsageError, match="has no class labels"):
        uqeval.evaluate(None, None, "tc", video=place, region="class:1")
    for option in ({"tracks": True}, {"grid": "previous"}):
        with pytest.raises(UsageError, match="a region is of frame t"):
            uqeval.evaluate(None, None, {"tc": option}, video=place, region="box:0:1,0:0.5")


_POSITIVE = st.floats(0, exclude_min=True, allow_infinity=False)
_PAIRS = st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted).filter(lambda p: p[0] < p[1])
_WRITTEN = st.one_of(
    st.builds("{}:{!r}".format, st.sampled_from(["boundary", "interior"]), _POSITIVE),
    st.builds("depth:{0[0]!r}-{0[1]!r}".format, _PAIRS),
    st.builds("depth:{!r}-inf".format, _POSITIVE),
    st.builds("box:{0[0]!r}:{0[1]!r},{1[0]!r}:{1[1]!r}".format, _PAIRS, _PAIRS),
    st.sampled_from(["class:1", "class:road", "map:areas:65534"]),
)


@given(_WRITTEN)
@example("boundary:1.4142136")
@example("boundary:1000000")
def test_the_name_of_a_region_is_the_region(written: str) -> None:
    """Regions are made from their names again, and results have them as keys."""
    data = Labelled("classes", ("road", "sky", "car"), "a store")
    region = region_of(written, data)
    assert region_of(region.text, data) == region
    kind, _, value = written.partition(":")
    if kind in ("boundary", "interior"):
        assert region == Boundary(float(value), near=kind == "boundary")


def test_what_lies_below_void_pixels_does_not_change_a_digit() -> None:
    """Sums by interval of depth: of a region, of targets that are NaN outside, and of a mask."""
    rng = np.random.default_rng(5)
    target = np.sort(rng.uniform(0, 9, (3, 24, 40)), axis=2)  # long runs of one interval
    mean, std = target + rng.normal(size=target.shape), rng.uniform(0.1, 2, target.shape)
    depth = rng.uniform(0, 2, target.shape).astype("f4")
    metrics = {"nmerci": {"depth_step": 2.0}}
    arrays = {"mean": mean, "std": std}
    report = uqeval.evaluate(
        arrays | {"target": target, "depth": depth}, None, metrics, region="depth:0-1", workers=1
    )
    expected = report.results["nmerci@depth:0-1"]
    outside = np.where(depth < 1, target, np.nan)
    for other in ({"target": outside}, {"target": target, "valid": depth < 1}):
        found = uqeval.evaluate(arrays | other, None, metrics, workers=1)
        assert found.results["nmerci"] == expected


def test_the_void_id_of_a_map_beside_the_predictions_is_its_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (2, 1, 8, 8)).transpose(0, 1, 4, 2, 3).astype("f4")
    labels = rng.integers(0, 3, (2, 8, 8)).astype("u1")
    labels[:, 0] = 9
    ids = np.zeros((2, 8, 8), "u1")
    ids[:, 2:5], ids[:, 6:] = 9, 255
    for own_void, regions in ((None, {0, 9}), (0, {9, 255}), (9, {0, 255})):
        path = tmp_path / f"{own_void}.zarr"
        attributes = {} if own_void is None else {"ignore_index": own_void}
        small_stores.save(path, {"labels": ids}, attributes)
        report = uqeval.evaluate(
            probs, labels, "segmentation", region=f"map:{path}", ignore_index=9
        )
        counted = {
            int(key.rpartition(":")[2]): record["pixels"]
            for key, record in report.results.items() if "@" in key
        }  # fmt: skip
        assert counted == {i: np.count_nonzero((ids == i) & (labels != 9)) for i in regions}
    path = small_stores.save(tmp_path / "half.zarr", {"labels": ids}, {"ignore_index": 1.5})
    with pytest.raises(StoreError, match=r"ignore_index is 1.5, expected an integer"):
        uqeval.evaluate(probs, labels, "segmentation", region=f"map:{path}")
