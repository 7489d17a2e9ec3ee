"""Maps of regions in groups of items: what the attributes of each item declare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from scenes import labels, softmax, zarr_group

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.usecases.reduce import reduce
from uqeval.usecases.verify.verifying import verify

N, C, H, W = 3, 4, 8, 9
PROBS, LABELS = softmax(0, N, 2, C, H, W, dtype="f4"), labels(0, N, H, W, classes=C)


def by_item(path: Path, name: str, maps: Any, attributes: list[dict[str, Any]]) -> Path:
    """A group of items with a map, which has attributes of its own in each item."""
    zarr_group(path, {})
    zarr_group(path / "items", {})
    for k, own in enumerate(attributes):
        arrays = {"probs": PROBS[k], "labels": LABELS[k], name: (maps[k], {"attributes": own})}
        zarr_group(path / f"items/i{k}", arrays, name=f"i{k}")
    return path


def pixels(path: Any, region: str, **options: Any) -> dict[str, int]:
    report = uqeval.evaluate(path, None, "segmentation", region=region, workers=1, **options)
    return {
        key.partition("@")[2]: record["pixels"]
        for key, record in report.results.items() if "@" in key
    }  # fmt: skip


@pytest.mark.parametrize(
    ("voids", "says"),
    [
        ((0, 0, 1), r"is 0 in \S+i0/zones \(attribute ignore_index\), and 1 in \S+i2/zones "),
        ((None, 9, None), r"is 255 in \S+i0/zones \(without .* and 9 in \S+i1/zones "),
    ],
)
def test_void_ids_that_differ_by_item(tmp_path: Path, voids: Any, says: str) -> None:
    """That of the first item was taken for all."""
    zones = np.random.default_rng(0).integers(0, 3, (N, H, W)).astype("u1")
    attributes = [{} if void is None else {"ignore_index": void} for void in voids]
    path = by_item(tmp_path / "p.zarr", "zones", zones, attributes)
    with pytest.raises(StoreError, match=f"the void id of a map {says}"):
        pixels(path, "map:zones")
    with pytest.raises(StoreError, match=f"the void id of a map {says}"):
        reduce(open_inputs(path, None, InputOptions()), tmp_path / "maps.zarr")
    given = pixels(path, "map:zones", ignore_index=255)
    is_valid = LABELS != 255
    assert given == {f"map:zones:{i}": np.count_nonzero((zones == i) & is_valid) for i in range(3)}


@pytest.mark.parametrize("voids", [(2, 2, 2), (255, None, None)])
def test_one_void_id_of_all_items(tmp_path: Path, voids: Any) -> None:
    zones = np.random.default_rng(0).integers(0, 3, (N, H, W)).astype("u1")
    attributes = [{} if void is None else {"ignore_index": void} for void in voids]
    path = by_item(tmp_path / "p.zarr", "zones", zones, attributes)
    found = pixels(path, "map:zones")
    assert list(found) == [f"map:zones:{i}" for i in range(3) if i != voids[0]]
    maps = reduce(open_inputs(path, None, InputOptions()), tmp_path / "maps.zarr")
    assert pixels(maps, "map:zones") == found


@pytest.mark.parametrize(("void", "dtype"), [(-1, "i2"), (70000, "u4"), (65535, "u2")])
def test_void_ids_that_no_region_can_have(tmp_path: Path, void: int, dtype: str) -> None:
    zones = np.random.default_rng(0).integers(0, 3, (N, H, W)).astype(dtype)
    zones[:, :2] = void
    path = by_item(tmp_path / "p.zarr", "zones", zones, [{"ignore_index": void}] * N)
    expected = {f"map:zones:{i}": ((zones == i) & (LABELS != 255)).sum() for i in range(3)}
    assert pixels(path, "map:zones") == expected
    maps = reduce(open_inputs(path, None, InputOptions()), tmp_path / "maps.zarr")
    assert pixels(maps, "map:zones") == expected
    if void != 65535:
        other = by_item(tmp_path / "q.zarr", "zones", zones, [{}] * N)
        with pytest.raises(DataError, match="If another id is void, set the attribute"):
            pixels(other, "map:zones")


@pytest.mark.parametrize("fill", [0, 1])
def test_fill_values_of_a_map(tmp_path: Path, fill: int) -> None:
    """They were a region, unless the user names it. Tools write 0 to all arrays."""
    zones = np.random.default_rng(0).integers(0, 3, (N, H, W)).astype("u1")
    stored = zones, {"attributes": {"_FillValue": fill}}
    arrays = {"probs": PROBS, "labels": LABELS}
    ids = zarr_group(tmp_path / "ids.zarr", {"labels": stored})
    path = zarr_group(tmp_path / "p.zarr", arrays | {"zones": stored})
    expected = {f"map:zones:{i}": ((zones == i) & (LABELS != 255)).sum() for i in range(3)}
    regions = [(path, "map:zones"), (arrays, f"map:{ids}")]
    if fill:
        for given, region in regions:
            with pytest.raises(UsageError, match="the id 1, which the attribute _FillValue"):
                pixels(given, region)
        assert pixels(path, "map:zones:1") == {"map:zones:1": expected["map:zones:1"]}
        assert pixels(path, "map:zones", ignore_index=255) == expected
        zarr.open_group(str(path))["zones"].attrs["ignore_index"] = 255
    assert pixels(path, "map:zones") == expected


@pytest.mark.parametrize("dtype", ["f4", "i2"])
@pytest.mark.parametrize("name", ["invalid", "_FillValue"])
def test_unknown_depth_is_in_no_region(tmp_path: Path, name: str, dtype: str) -> None:
    """Attributes of the first item, and of any, were ignored."""
    depth = np.random.default_rng(0).uniform(1, 9, (N, H, W)).astype(dtype)
    fills = [0, 2, 0]
    for k, fill in enumerate(fills):
        depth[k][depth[k] == fill] = 3
        depth[k, :3] = fill
    known = np.ones((N, H, W), bool)
    known[:, :3] = False
    inside = known & (depth < 5) & (LABELS != 255)
    path = by_item(tmp_path / "p.zarr", "depth", depth, [{name: fill} for fill in fills])
    report = uqeval.evaluate(
        path, None, "segmentation", region="depth:0-5", workers=1, states=tmp_path / "s.zip"
    )
    assert report.results["segmentation@depth:0-5"]["pixels"] == inside.sum()
    report.save(tmp_path / "r.json")
    found = verify(tmp_path / "r.json", [path], everything=True)
    assert found.passed, found.problems()
    maps = reduce(open_inputs(path, None, InputOptions()), tmp_path / "maps.zarr")
    assert pixels(maps, "depth:0-5") == {"depth:0-5": inside.sum()}
    dense = (depth[:1], {"attributes": {name: [0, -1]}})
    store = zarr_group(tmp_path / "depth.zarr", {"target": dense})
    found = pixels({"probs": PROBS[:1], "labels": LABELS[:1]}, "depth:0-5", depth_map=store)
    assert found == {"depth:0-5": inside[0].sum()}


def test_messages_about_unknown_depth(tmp_path: Path) -> None:
    depth = np.ones((N, H, W), "f4")
    path = by_item(tmp_path / "p.zarr", "depth", depth, [{"missing_value": "n/a"}] * N)
    report = uqeval.evaluate(path, None, "segmentation", region="depth:0-5", workers=1)
    assert any("missing_value is 'n/a'; it is ignored" in text for text in report.warnings)
    with pytest.raises(UsageError, match="for unknown depth set the attribute invalid"):
        pixels(path, "depth:0-5", invalid=0)
