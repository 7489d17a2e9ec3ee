"""`uqeval reduce` copies the other maps of a store: its uncertainties, and those of regions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from command import refused
from scenes import labels, softmax, zarr_group
from small_videos import save_images

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.maps.sources import Source
from uqeval.stores.writing.converted_numbers import Recoding
from uqeval.usecases.convert import convert
from uqeval.usecases.reduce import reduce

N, T, C, H, W = 5, 3, 3, 6, 7
NAMES = [f"i{item}" for item in range(N)]
METRICS: dict[str, Any] = {
    "pavpu": {"uncertainty": ["energy", "entropy", "rank"], "window": 2},
    "failure": {"uncertainty": "energy"},
}
REGIONS = ["map:areas", "depth:0-2", "depth:2-9", "boundary:1"]


def made(folder: Path, dtype: str = "f2", **more: Any) -> Path:
    """Samples with uncertainties of several dtypes, ids of areas, and a depth with NaN."""
    generator = np.random.default_rng(3)
    truth = labels(0, N, H, W, classes=C)
    depth = generator.uniform(0, 4, (N, H, W))
    depth[:, 0, 0] = np.nan
    arrays = {
        "probs": softmax(0, N, T, C, H, W, dtype="f8").astype("f4"),
        "labels": np.where(truth == 255, 7, truth),
        "energy": (generator.normal(0, 1e3, (N, H, W)).astype(dtype), {"chunks": (2, 4, 3)}),
        "rank": generator.integers(0, 9, (N, H, W)).astype(">i4"),
        "areas": (generator.choice([1, 2, 7], (N, H, W)).astype("u2"), {"chunks": (3, H, W)}),
        "depth": depth,
        "entropy": np.zeros((N, H, W), "f4"),  # the samples give it
    }
    return zarr_group(folder, arrays | more, names=NAMES, ignore_index=7)


def reduced(path: Path, target: Path, maps: Any = None, **options: Any) -> Path:
    return reduce(open_inputs(path, None, InputOptions(**options)), target, maps)


def conclusions(report: uqeval.Report) -> Any:
    return report.results, report.items, report.intervals


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_maps_of_the_store_give_the_same_results(tmp_path: Path, dtype: str) -> None:
    path = made(tmp_path / "p", dtype)
    maps = reduced(path, tmp_path / "maps")
    # Intervals follow from the same states, whatever the dtype was.
    options = {"region": REGIONS} | ({"ci": 0.9, "draws": 100} if dtype == "f2" else {})
    expected = uqeval.evaluate(path, None, METRICS, **options)
    # 7 is void in the labels, and no area.
    areas = {name for name in expected.results if name.startswith("failure@map:areas")}
    assert areas == {"failure@map:areas:1", "failure@map:areas:2"}
    found = uqeval.evaluate(maps, None, METRICS, **options)
    assert conclusions(found) == conclusions(expected)
    old, new = zarr.open_group(str(path)), zarr.open_group(str(maps))
    for name in ("energy", "rank", "areas", "depth"):
        before, after = np.asarray(old[name]), np.asarray(new[name])
        assert before.dtype.newbyteorder("=") == after.dtype
        np.testing.assert_array_equal(before, after)
    assert np.asarray(new["entropy"]).any()


def integers(folder: Path, classes: int, scale: float, dtype: str = "u1") -> Path:
    """One sample of each item, rounded to multiples of `scale`, so that sums are not 1."""
    p = np.random.default_rng(4).dirichlet(np.ones(classes), (2, H, W)).transpose(0, 3, 1, 2)
    p[0, :, 0, 0] = np.eye(classes)[1]
    rounded = np.rint(p / scale).astype(dtype)
    rounded[0, 1, 0, 0] = round(1 / scale * (1 + 0.5 * classes * scale))
    truth = labels(0, 2, H, W, classes=classes)
    arrays = {"probs": (rounded, {"attributes": {"scale": scale}}), "labels": truth}
    return zarr_group(folder, arrays, names=["a", "b"])


@pytest.mark.parametrize(
    ("classes", "scale", "dtype"), [(19, 1 / 255, "u2"), (19, 0.01, "u1"), (2, 1 / 200, "u1")]
)
def test_rounded_integers_give_the_same_results(
    tmp_path: Path, classes: int, scale: float, dtype: str
) -> None:
    """The tolerance of sums is that of the integers, also in copies of the maps."""
    path = integers(tmp_path / "p", classes, scale, dtype)
    maps = reduced(path, tmp_path / "maps")
    convert(maps, tmp_path / "copy")
    expected = uqeval.evaluate(path, None, ["calibration", "segmentation"])
    for copy in (maps, tmp_path / "copy"):
        found = uqeval.evaluate(copy, None, ["calibration", "segmentation"])
        assert conclusions(found) == conclusions(expected)
    convert(maps, tmp_path / "recommended", recoding=Recoding())
    uqeval.evaluate(tmp_path / "recommended", None, ["calibration", "segmentation"])
    mean = zarr.open_group(str(maps))["mean_probs"]
    assert isinstance(mean, zarr.Array)
    mean[0, :, :2] = np.asarray(mean[0, :, :2]) * 0.5
    refused(lambda: uqeval.evaluate(maps, None, ["calibration"]), "do not sum to 1")


def test_a_recorded_tolerance_is_a_number(tmp_path: Path) -> None:
    maps = reduced(integers(tmp_path / "p", 19, 1 / 255, "u2"), tmp_path / "maps")
    for value in ("wide", None, [1], {}, True, -1):
        zarr.open_group(str(maps))["mean_probs"].attrs["sum_tolerance"] = value
        refused(lambda: uqeval.evaluate(maps, None, ["calibration"]), "sum_tolerance is ")


@pytest.mark.parametrize("keep", ["maps", "samples"])
def test_maps_of_float16_are_converted(tmp_path: Path, keep: Any) -> None:
    """Their mean is float32, but sums to 1 only as exactly as float16."""
    p = np.random.default_rng(5).dirichlet(np.ones(11), (2, 2, H, W)).transpose(0, 1, 4, 2, 3)
    about: dict[str, Any] = {"samples": 2, "classes": 11, "size": (H, W), "dtype": "float16"}
    about |= {"keep": keep} | ({"mean_probs": True} if keep == "maps" else {})
    with uqeval.PredictionWriter(tmp_path / "w", names=["a", "b"], **about) as writer:
        writer.add_batch(["a", "b"], p.astype("f2"))
        for name, truth in zip("ab", labels(0, 2, H, W, classes=11), strict=True):
            writer.add_labels(name, truth)
    maps = tmp_path / "w" if keep == "maps" else reduced(tmp_path / "w", tmp_path / "maps")
    convert(maps, tmp_path / "copy")
    results = [uqeval.evaluate(path, None, "failure").results for path in (maps, tmp_path / "copy")]
    assert results[0] == results[1]


def test_labels_that_come_later_have_the_void_id_of_the_store(tmp_path: Path) -> None:
    path = made(tmp_path / "p")
    ids = np.asarray(zarr.open_group(str(path))["labels"])
    truth = zarr_group(tmp_path / "truth", {"labels": ids}, names=NAMES)
    del zarr.open_group(str(path))["labels"]
    maps = reduced(path, tmp_path / "maps")
    expected = uqeval.evaluate(path, truth, METRICS, region=REGIONS)
    assert conclusions(uqeval.evaluate(maps, truth, METRICS, region=REGIONS)) == conclusions(
        expected
    )


@pytest.mark.parametrize("has_labels", [True, False])
def test_a_map_of_regions_keeps_a_void_id_of_its_own(tmp_path: Path, has_labels: bool) -> None:
    path = made(tmp_path / "p")
    group = zarr.open_group(str(path))
    group["areas"].attrs["ignore_index"] = 2  # not that of the labels, 7
    truth = None
    if not has_labels:
        truth = zarr_group(tmp_path / "truth", {"labels": np.asarray(group["labels"])}, names=NAMES)
        del group["labels"]
    region = ["map:areas"]
    expected = uqeval.evaluate(path, truth, METRICS, region=region)
    assert "failure@map:areas:2" not in expected.results
    group["depth"].attrs["invalid"] = [0]
    maps = reduced(path, tmp_path / "maps")
    convert(path, tmp_path / "converted")
    for copy in (maps, tmp_path / "converted"):
        again = uqeval.evaluate(copy, truth, METRICS, region=region)
        assert conclusions(again) == conclusions(expected)
        assert zarr.open_group(str(copy))["depth"].attrs["invalid"] == [0]
    group["areas"].attrs["ignore_index"] = "two"
    with pytest.raises(StoreError, match="areas: attribute ignore_index is 'two'"):
        reduced(path, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_map_that_may_have_255_as_a_region_stays_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "p")
    group = zarr.open_group(str(path))
    group.attrs.put(dict(group.attrs) | {"ignore_index": 255})
    group["labels"][:] = labels(0, N, H, W, classes=C)
    group["areas"][:] = np.where(np.asarray(group["areas"]) == 7, 255, 300)
    maps = reduced(path, tmp_path / "maps")
    for store in (path, maps):
        with pytest.raises(UsageError, match="has the id 255, which is void unless"):
            uqeval.evaluate(store, None, METRICS, region="map:areas")
    group["areas"].attrs["ignore_index"] = 255
    for store in (path, reduced(path, tmp_path / "declared")):
        report = uqeval.evaluate(store, None, METRICS, region="map:areas")
        assert [key for key in report.results if key.startswith("failure@")] == [
            "failure@map:areas:300"
        ]


def test_maps_that_were_computed_with_labels_are_not_used_for_others(tmp_path: Path) -> None:
    """Without `mean_probs` they cannot be computed again. The same labels may have another form."""
    path = made(tmp_path / "p")
    own = np.asarray(zarr.open_group(path)["labels"])
    same = np.where(own == 7, 255, own).astype("i4")
    others = same.copy()
    others[1, :3] = (others[1, :3] + 1) % C
    metrics = {"calibration": {}, "sparsification": {"error": "brier"}}
    options = {"ignore_index": 255}
    expected = uqeval.evaluate(path, others, metrics, **options).results
    with_means = reduced(path, tmp_path / "maps")
    found = uqeval.evaluate(with_means, others, metrics, **options).results
    for family, name in (("calibration", "nll"), ("sparsification", "ause")):
        assert found[family][name] == pytest.approx(expected[family][name], rel=1e-6)
    alone = open_inputs(path, None, InputOptions())
    without_means = reduce(alone, tmp_path / "alone", mean_probs=False)
    for maps in (with_means, without_means):
        of_own = conclusions(uqeval.evaluate(maps, None, {"sparsification": {"error": "brier"}}))
        of_same = uqeval.evaluate(maps, same, {"sparsification": {"error": "brier"}}, **options)
        assert conclusions(of_same) == of_own
        assert uqeval.evaluate(maps, others, "failure", **options).results["failure"]
    with pytest.raises(DataError, match=r"brier were computed with its own labels.* in item i1\."):
        uqeval.evaluate(without_means, others, {"sparsification": {"error": "brier"}}, **options)


def test_named_maps_alone_are_written(tmp_path: Path) -> None:
    maps = reduced(made(tmp_path / "p"), tmp_path / "maps", ["std", "areas"])
    found = set(zarr.open_group(str(maps)))
    assert {"std", "areas", "predictions"} <= found
    assert not found & {"energy", "rank", "depth", "entropy"}
    with pytest.raises(
        UsageError, match=r"--maps enrgy; expected some of .*, std, areas, depth, energy"
    ):
        reduced(tmp_path / "p", tmp_path / "other", ["enrgy"])


def test_maps_of_another_size_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = made(tmp_path / "p", small=np.zeros((N, 2, 3), "f4"))
    inputs = open_inputs(path, None, InputOptions())
    maps = reduce(inputs, tmp_path / "maps")
    assert "small" not in zarr.open_group(str(maps))
    (text,) = [text for text in inputs.warnings if "small" in text]
    assert text == (f"left out the map 'small' of {path}: it is 2 × 3 pixels for item i0, whose "
                    "samples are 6 × 7.")  # fmt: skip
    with pytest.raises(UsageError, match=r"--maps small: .* has this map, but it is 2 × 3 pixels"):
        reduced(path, tmp_path / "other", ["small"])


def test_missing_chunks_of_a_map_are_not_read_as_numbers(tmp_path: Path) -> None:
    path = made(tmp_path / "p")
    (path / "areas/c/1/0/0").unlink()
    with pytest.raises(StoreError, match=r"areas: 1 of 2 chunks are missing"):
        reduced(path, tmp_path / "maps")
    assert not (tmp_path / "maps").exists()
    assert "areas" not in zarr.open_group(str(reduced(path, tmp_path / "a", ["energy"])))
    filled = zarr.open_group(str(reduced(path, tmp_path / "b", missing_chunks="fill")))
    assert not np.asarray(filled["areas"])[3:].any()


def test_items_of_different_sizes(tmp_path: Path) -> None:
    path = tmp_path / "p"
    sizes = [(4, 5), (6, 3)]
    group = zarr.create_group(str(path), attributes={"class_names": ["a", "b", "c"]})
    items = group.create_group("items")
    generator = np.random.default_rng(1)
    for i, size in enumerate(sizes):
        item = items.create_group(f"i{i}")
        item["probs"] = softmax(i, 1, T, C, *size, dtype="f8").astype("f4")[0]
        item["labels"] = labels(i, 1, *size, classes=C)[0]
        item["energy"] = generator.normal(size=size)
        item["areas"] = generator.integers(1, 3, size).astype("u1")
    options = {"metrics": {"failure": {"uncertainty": "energy"}}, "region": ["map:areas"]}
    maps = reduced(path, tmp_path / "maps")
    expected = uqeval.evaluate(path, **options)
    assert conclusions(uqeval.evaluate(maps, **options)) == conclusions(expected)
    items["i1"]["energy"][...] = np.zeros((6, 3))
    with pytest.raises(UsageError, match="several dtypes"):
        del items["i1"]["energy"]
        items["i1"]["energy"] = np.zeros((6, 3), "f4")
        reduced(path, tmp_path / "other", ["energy"])


def test_many_small_items_share_chunks(tmp_path: Path) -> None:
    """A file for each map of 10,000 items of one pixel took minutes to write."""
    probs = np.random.default_rng(0).dirichlet(np.ones(C), 130).astype("f4")
    arrays = {"probs": probs, "labels": probs.argmax(axis=1).astype("u1")}
    path = zarr_group(tmp_path / "p", arrays | {"energy": probs[:, :1, None]})
    maps = reduced(path, tmp_path / "maps")
    group = zarr.open_group(str(maps))
    for name, array in group.arrays():
        assert array.chunks[0] == 3, name
        assert len(list((maps / name / "c").iterdir())) == 44, name
    np.testing.assert_array_equal(np.asarray(group["energy"]), probs[:, :1, None])
    metrics = {"calibration": {}, "failure": {"uncertainty": ["entropy", "energy"]}}
    expected, found = (
        uqeval.evaluate(store, None, metrics, ci=0.9, draws=100) for store in (path, maps)
    )
    assert conclusions(found) == conclusions(expected)


def test_small_items_of_a_maps_store_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the files of all maps are looked at for changes after each item."""
    probs = np.random.default_rng(0).dirichlet(np.ones(C), 130).astype("f4")
    arrays = {"probs": probs, "labels": probs.argmax(axis=1).astype("u1")}
    maps = reduced(zarr_group(tmp_path / "p", arrays), tmp_path / "maps")
    read, batches = Source.read, []

    def counted(self: Any, batch: range, *more: Any) -> Any:
        batches.append(batch)
        return read(self, batch, *more)

    monkeypatch.setattr(Source, "read", counted)
    uqeval.evaluate(maps, None, {"segmentation": {}}, workers=1)
    assert batches == [range(130)]


def test_a_store_without_names_stays_one(tmp_path: Path) -> None:
    """Names that are numbers would match no file of labels."""
    ids = labels(0, N, H, W, classes=C)
    path = zarr_group(tmp_path / "p", {"probs": softmax(0, N, T, C, H, W, dtype="f4")})
    names = list("abcde")
    truth = zarr_group(tmp_path / "truth", {"labels": ids}, names=names)
    folder = save_images(tmp_path / "labels", dict(zip(names, ids, strict=True)))
    maps = reduced(path, tmp_path / "maps")
    assert "names" not in zarr.open_group(str(maps)).attrs
    for given, options in ((truth, {}), (folder, {"names": names})):
        expected = uqeval.evaluate(path, given, "segmentation", **options)
        found = uqeval.evaluate(maps, given, "segmentation", **options)
        assert conclusions(found) == conclusions(expected)
    with pytest.raises(StoreError, match="gives its 5 items no names"):
        uqeval.evaluate(maps, folder, "segmentation")
    shard = reduced(path, tmp_path / "shard", part="2/2")
    assert zarr.open_group(str(shard)).attrs["names"] == ["2", "3", "4"]
