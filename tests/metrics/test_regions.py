"""Regions of pixels beside the whole image, against SciPy's distances and plain arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.ndimage import distance_transform_edt

import uqeval
from uqeval.errors import UsageError
from uqeval.maps.contract import WHOLE
from uqeval.maps.region_maps import squared_distances
from uqeval.maps.region_text import Labelled, region_of

N, T, C, H, W = 4, 2, 3, 40, 48
OF_THREE = Labelled("classes", ("road", "car", "a/b"), "data")
FAMILIES = ("pavpu", "calibration", "failure", "sparsification")


def boundary(label: Any, radius: float) -> Any:
    """Valid pixels at most `radius` from a valid pixel of another class."""
    near = np.zeros(label.shape, bool)
    for c in np.unique(label[label < 255]):
        others = (label != c) & (label < 255)
        if others.any():
            squares = np.rint(distance_transform_edt(~others) ** 2)
            near |= (label == c) & (squares <= radius**2)
    return near


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    """Samples [N, T, C, H, W] and labels of blobs with void between some."""
    rng = np.random.default_rng(3)
    label = np.kron(rng.integers(0, C, (N, 5, 6)), np.ones((8, 8), int)).astype("u1")
    label[rng.random(label.shape) < 0.05] = 255
    label[:, 10:14] = 255
    hit = label[:, None] == np.arange(C)[:, None, None]
    z = rng.normal(size=(N, T, C, H, W)) + 1.5 * hit[:, None]
    probs = np.exp(z)
    return (probs / probs.sum(2, keepdims=True)).astype("f4"), label


@pytest.mark.parametrize("radius", [1, 1.5, 3, 8, 100])
def test_distances(data: tuple[Any, Any], radius: float) -> None:
    for label in data[1]:
        near = (squared_distances(label) <= radius**2) & (label < 255)
        assert (near == boundary(label, radius)).all()


def test_one_class_has_no_boundary() -> None:
    label = np.full((6, 6), 2, "u1")
    label[2] = 255
    far = np.iinfo(np.int32).max
    assert (squared_distances(label) == far).all()
    assert (squared_distances(np.full((6, 6), 255, "u1")) == far).all()


def evaluated(data: tuple[Any, Any], *regions: str, **more: Any) -> Any:
    return uqeval.evaluate(*data, more.pop("metrics", FAMILIES), region=list(regions), **more)


def test_scores_of_a_region(data: tuple[Any, Any]) -> None:
    report, (probs, label) = evaluated(data, "boundary:2", "interior:2"), data
    near = np.stack([boundary(one, 2) for one in label])
    mean = probs.astype("f8").mean(1)
    confidence, right = mean.max(1), mean.argmax(1) == label
    for region, chosen in (("boundary:2", near), ("interior:2", (label < 255) & ~near)):
        assert report.results[f"segmentation@{region}"]["pixels"] == chosen.sum()
        accuracy = report.results[f"segmentation@{region}"]["pixel_accuracy"]
        assert accuracy == pytest.approx(right[chosen].mean(), rel=1e-12)
        bins = np.ceil(confidence[chosen] * 15) - 1
        gaps = [
            abs((right[chosen][bins == b] - confidence[chosen][bins == b]).sum()) for b in range(15)
        ]
        ece = report.results[f"calibration@{region}"]["ece"]
        assert ece == pytest.approx(sum(gaps) / chosen.sum(), rel=1e-6)
        failure = report.results[f"failure@{region}"]
        assert (failure["pixels"], failure["errors"]) == (chosen.sum(), (~right[chosen]).sum())
        for item, one in zip(report.items, chosen, strict=True):
            assert item[f"failure@{region}"]["pixels"] == one.sum()
    whole = report.results["pavpu"]["uncertainty_threshold"]
    assert report.results["pavpu@boundary:2"]["uncertainty_threshold"] == whole


def test_items_of_calibration_have_their_pixels(data: tuple[Any, Any]) -> None:
    """Comparisons tell by them that reports are of other pixels."""
    report = uqeval.evaluate(*data, "calibration", region="box:0:0.5,0:1")
    for item, label in zip(report.items, data[1], strict=True):
        assert item["calibration"]["pixels"] == (label < 255).sum()
        assert item["calibration@box:0:0.5,0:1"]["pixels"] == (label[:20] < 255).sum()


def test_a_patch_belongs_where_half_of_its_valid_pixels_do(data: tuple[Any, Any]) -> None:
    probs, label = data
    found = evaluated(data, "boundary:2", metrics={"pavpu": {"window": 4, "stride": 2}})
    near, right = np.stack([boundary(one, 2) for one in label]), probs.mean(1).argmax(1) == label
    patches = accurate = 0
    for i in range(N):
        for y in range(0, H - 3, 2):
            for x in range(0, W - 3, 2):
                place = i, slice(y, y + 4), slice(x, x + 4)
                valid, own = (label[place] < 255).sum(), near[place]
                if valid and own.sum() >= 0.5 * valid:
                    patches += 1
                    accurate += right[place][own].mean() > 0.5
    counts = found.results["pavpu@boundary:2"]
    assert counts["n_ac"] + counts["n_au"] + counts["n_ic"] + counts["n_iu"] == patches
    assert counts["n_ac"] + counts["n_au"] == accurate


def test_one_read_and_the_whole_image_as_before(data: tuple[Any, Any]) -> None:
    plain, report = evaluated(data), evaluated(data, "boundary:2")
    assert report.timing["bytes_read"] == plain.timing["bytes_read"]
    assert {key: report.results[key] for key in plain.results} == plain.results


def test_states_slices_and_parts(data: tuple[Any, Any], tmp_path: Path) -> None:
    options = {"pavpu": {"threshold": "0.8", "curve_range": "0:1.1", "deciles": False}}
    names = [f"{k}.states.zip" for k in (1, 2)]
    for k, name in enumerate(names):
        evaluated(data, "boundary:2", metrics=options, part=f"{k + 1}/2", states=tmp_path / name)
    whole = evaluated(data, "boundary:2", metrics=options, ci=0.9)
    merged = uqeval.merge([tmp_path / name for name in names], ci=0.9)
    assert merged.results == whole.results
    assert merged.intervals == whole.intervals
    assert "pavpu@boundary:2.pavpu" in whole.intervals
    other = uqeval.merge([tmp_path / name for name in names], threshold="0.55")
    thresholds = {key: other.results[key].get("uncertainty_threshold") for key in options}
    assert other.results["pavpu@boundary:2"]["uncertainty_threshold"] == thresholds["pavpu"]


def test_a_region_without_pixels_is_undefined() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (2, 2, 8, 8)).transpose(0, 1, 4, 2, 3).astype("f4")
    report = uqeval.evaluate(probs, np.ones((2, 8, 8), "u1"), FAMILIES, region="boundary:2")
    for key, name in (("segmentation", "miou"), ("calibration", "ece"), ("pavpu", "pavpu"),
                      ("failure", "auroc"), ("sparsification", "ause")):  # fmt: skip
        record = report.results[f"{key}@boundary:2"]
        assert record[name] is None
        assert record[f"{name}_reason"]
        assert "void" not in record[f"{name}_reason"]  # all pixels have labels
        assert report.results[key][name] is not None or key == "pavpu"


def test_the_same_region_twice_is_one(data: tuple[Any, Any]) -> None:
    report = evaluated(data, "boundary:2", "boundary:2.0", metrics="calibration")
    assert [key for key in report.results if "@" in key] == [
        "segmentation@boundary:2", "calibration@boundary:2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["boundary", "boundary:", "boundary:0", "boundary:-1", "boundary:nan", "edge:3", "",
             "interior:inf", "x" * 10**5, "depth:3", "depth:4-2", "depth:nan-3", "depth:-1-3",
             "box:0:1", "box:0:1,0.5:0.2", "box:0:2,0:1", "map:", "map:areas", "map:areas:65535"]
)  # fmt: skip
def test_bad_regions(text: str) -> None:
    with pytest.raises(UsageError, match="expected boundary:R, interior:R, class:NAME") as refused:
        region_of(text, OF_THREE)
    assert len(str(refused.value)) < 400


def test_numbers_have_no_boundaries() -> None:
    arrays = {name: np.ones((2, 4, 4)) for name in ("mean", "std", "target")}
    for region in ("boundary:2", "class:0"):
        with pytest.raises(UsageError, match="predicted numbers have no regions of classes"):
            uqeval.evaluate(arrays, None, "regression", region=region)


def test_names() -> None:
    for text, name in (
        (" interior:8.0 ", "interior:8"), ("class:car", "class:car"), ("class:2", "class:2"),
        ("class:1", "class:car"), ("depth:0.50-1e2", "depth:0.5-100"),
        ("depth:80-inf", "depth:80-inf"),
        ("box:0.50:1.0,0:0.25", "box:0.5:1,0:0.25"), ("map:areas:007", "map:areas:7"),
    ):  # fmt: skip
        assert region_of(text, OF_THREE).text == name
    with pytest.raises(UsageError, match="it is no class of data; expected one of road, car, a/b"):
        region_of("class:truck", OF_THREE)
    assert WHOLE.name == ""


def test_a_sweep_has_no_regions(data: tuple[Any, Any]) -> None:
    with pytest.raises(UsageError, match="a sweep evaluates only whole images"):
        uqeval.sweep(*data, region="boundary:2")
