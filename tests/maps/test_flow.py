"""Optical flow: direction, determinism, names, and refused inputs."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from uqeval.errors import DataError, OutputError, UsageError
from uqeval.maps.flow import Estimator, FlowCache, grey, single_threaded
from uqeval.maps.flow_method import CHOICES, flow_method

FAST = ("farneback", "dis:medium", "dis:fast", "dis:ultrafast")
METHODS = (*FAST, "tvl1")
DX, DY = 7, 3


def texture(height: int = 120, width: int = 180, seed: int = 0) -> Any:
    noise = np.random.default_rng(seed).random((height, width))
    smooth = cv2.GaussianBlur(noise, (0, 0), 3)
    return cv2.normalize(smooth, None, 0, 255, cv2.NORM_MINMAX).astype("u1")


def moved(height: int = 120, width: int = 180, seed: int = 0) -> tuple[Any, Any]:
    """Frames t and t-1 of a texture that moves by (7, 3) pixels."""
    whole = texture(height + DY, width + DX, seed)
    before = np.ascontiguousarray(whole[DY:, DX:])
    now = np.ascontiguousarray(whole[:-DY, :-DX])
    return now, before


def estimator_of(text: str, scale: float = 1.0) -> Estimator:
    if text == "tvl1":
        pytest.importorskip("skimage", reason="TV-L1 flow needs uqeval[tvl1]")
    return Estimator(flow_method(text, scale))


@pytest.mark.parametrize("scale", [1.0, 0.5])
@pytest.mark.parametrize("text", METHODS)
def test_flow_points_from_frame_t_to_frame_before(text: str, scale: float) -> None:
    now, before = moved()
    flow = estimator_of(text, scale)(now, before)
    assert flow.shape == (120, 180, 2)
    assert flow.dtype == np.float32
    assert flow.flags.c_contiguous
    middle = flow[30:-30, 30:-30]
    np.testing.assert_allclose(np.median(middle, (0, 1)), (-DX, -DY), atol=0.25)
    near = np.hypot(*np.moveaxis(middle - np.float32([-DX, -DY]), 2, 0)) < 1
    assert near.mean() > 0.9


@pytest.mark.parametrize("text", FAST)
def test_t9_a_segmentation_that_moves_with_its_texture_is_consistent(text: str) -> None:
    from uqeval.tallies.temporal import PairCounts

    now, before = moved(200, 300)
    edge = slice(30, -30), slice(30, -30)
    flow = estimator_of(text)(now, before)
    stripes = (np.add.outer(np.arange(203) // 40, np.arange(307) // 50) % 3).astype("u1")
    ids, ids_before = (np.full((200, 300), 255, "u1") for _ in range(2))
    ids[edge] = stripes[:-DY, :-DX][edge]
    ids_before[...] = stripes[DY:, DX:]
    state = PairCounts("f", 0, 3, 255).state_of({
        "prediction:0": ids, "prediction_before:0": ids_before,
        "grey": now, "grey_before": before, "flow:f": flow,
    })  # fmt: skip
    here, there, both = state["counts"].sum(axis=0)
    assert (both / (here + there - both)).mean() > 0.99
    assert state["squares"][0] < state["squares"][1] / 10


def test_the_ratio_of_the_sides_is_the_true_one() -> None:
    now, before = moved(101, 151)
    flow = estimator_of("dis", 0.5)(now, before)
    assert flow.shape == (101, 151, 2)
    own = [cv2.resize(image, (76, 51), interpolation=cv2.INTER_AREA) for image in (now, before)]
    small = estimator_of("dis")(*own)
    expected = cv2.resize(small, (151, 101)) * np.float32([151 / 76, 101 / 51])
    np.testing.assert_array_equal(flow, expected)


@pytest.mark.parametrize("text", FAST)
def test_the_number_of_threads_changes_no_bit(text: str) -> None:
    now, before = moved(240, 320)
    estimator = estimator_of(text)
    threads = cv2.getNumThreads()
    found = []
    try:
        for n in (1, 2, 3, 4, 8):
            cv2.setNumThreads(n)
            found.append(estimator(now, before))
    finally:
        cv2.setNumThreads(threads)
    for flow in found[1:]:
        np.testing.assert_array_equal(flow, found[0])


@pytest.mark.parametrize("text", FAST)
def test_one_estimator_serves_several_threads(text: str) -> None:
    estimator = estimator_of(text)
    pairs = [moved(160, 200, seed) for seed in range(4)] * 3
    alone = [estimator(*pair) for pair in pairs[:4]] * 3
    with single_threaded(), ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda pair: estimator(*pair), pairs))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_small_image_before_changes_nothing() -> None:
    now, before = moved()
    estimator = estimator_of("dis:fast")
    first = estimator(now, before)
    assert estimator(now[:20, :24].copy(), before[:20, :24].copy()).shape == (20, 24, 2)
    np.testing.assert_array_equal(estimator(now, before), first)


def test_plain_flow_is_that_of_opencv() -> None:
    now, before = moved()
    expected = cv2.calcOpticalFlowFarneback(now, before, None, 0.5, 3, 15, 3, 5, 1.2, 0)
    np.testing.assert_array_equal(estimator_of("farneback")(now, before), expected)
    for preset, text in enumerate(("dis:ultrafast", "dis:fast", "dis:medium")):
        expected = cv2.DISOpticalFlow_create(preset).calc(now, before, None)
        np.testing.assert_array_equal(estimator_of(text)(now, before), expected)


def test_the_process_keeps_its_threads() -> None:
    threads = cv2.getNumThreads()
    with single_threaded():
        assert cv2.getNumThreads() == 1
    assert cv2.getNumThreads() == threads
    with pytest.raises(ZeroDivisionError), single_threaded():
        raise ZeroDivisionError
    assert cv2.getNumThreads() == threads


def test_the_record_says_all_that_the_flow_depends_on() -> None:
    record = estimator_of("dis:fast,finest_scale=1", 0.5).record()
    json.dumps(record, allow_nan=False)
    assert record["name"] == "dis"
    assert record["id"] == "dis:fast,finest_scale=1@0.5"
    assert record["scale"] == 0.5
    assert record["library"] == "opencv"
    assert record["version"] == cv2.__version__
    assert record["parameters"]["finest_scale"] == 1
    assert record["parameters"]["variational_refinement_iterations"] == 5


@pytest.mark.parametrize(
    ("text", "preset"), [("dis:ultrafast", 0), ("dis:fast", 1), ("dis:medium", 2)]
)
def test_defaults_are_those_of_opencv(text: str, preset: int) -> None:
    own = cv2.DISOpticalFlow_create(preset)
    for name, value in flow_method(text).parameters:
        getter = getattr(own, "get" + "".join(w.capitalize() for w in name.split("_")))
        assert getter() == pytest.approx(value, rel=1e-6), name


def test_working_memory_grows_with_pixels_and_shrinks_with_the_scale() -> None:
    for text in FAST:
        whole = estimator_of(text).working_bytes(1 << 21)
        assert 8 << 21 < whole < 250 << 21
        assert estimator_of(text, 0.25).working_bytes(1 << 21) < max(whole, 20 << 21)
        assert estimator_of(text).working_bytes(1 << 22) == pytest.approx(2 * whole, abs=2)


def test_grey_is_that_of_the_decoded_colours() -> None:
    rgb = np.zeros((2, 3, 3), "u1")
    rgb[0, :, :] = np.diag([255] * 3)
    assert grey(rgb).tolist() == [[76, 150, 29], [0, 0, 0]]


# What a user writes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scale", "name"),
    [
        ("farneback", 1, "farneback"),
        ("farneback:winsize=15", 1, "farneback"),
        ("farneback:levels=5,winsize=21", 1, "farneback:levels=5,winsize=21"),
        ("farneback:winsize=21,levels=5", 1, "farneback:levels=5,winsize=21"),
        ("farneback:poly_sigma=1", 1, "farneback:poly_sigma=1.0"),
        ("dis", 1, "dis:medium"),
        ("dis:medium", 1, "dis:medium"),
        ("dis:finest_scale=2", 1, "dis:medium,finest_scale=2"),
        ("dis:fast,finest_scale=1", 0.5, "dis:fast,finest_scale=1@0.5"),
        ("dis:ultrafast@0.25", 1, "dis:ultrafast@0.25"),
        ("dis:ultrafast@0.25", 0.25, "dis:ultrafast@0.25"),
        ("tvl1:attachment=5", 1, "tvl1:attachment=5.0"),
        ("file", 1, "file"),
    ],
)
def test_a_method_has_one_id(text: str, scale: float, name: str) -> None:
    method = flow_method(text, scale)
    assert method.id == name
    assert flow_method(method.id) == method
    assert flow_method(method.id, method.scale) == method


@pytest.mark.parametrize("text", CHOICES)
def test_every_choice_is_a_method(text: str) -> None:
    assert flow_method(text).name == text.partition(":")[0]


@pytest.mark.parametrize(
    ("text", "scale", "message"),
    [
        ("farnebck", 1, "expected one of farneback, dis.*Did you mean farneback"),
        ("dis:fst", 1, "Did you mean dis:fast"),
        ("", 1, "expected one of"),
        ("dis:", 1, "expected one of"),
        ("farneback:fast", 1, "expected one of"),
        ("farneback:winsize=15,", 1, "expected one of"),
        ("farneback:winsiz=15", 1, "expected one of pyr_scale.*Did you mean winsize"),
        ("farneback:winsize=0", 1, "whole number from 1"),
        ("farneback:winsize=1.5", 1, "whole number"),
        ("farneback:winsize=", 1, "whole number"),
        ("farneback:pyr_scale=1", 1, "number from 0.01 to 0.99"),
        ("farneback:pyr_scale=nan", 1, "number from 0.01"),
        ("farneback:flags=4", 1, "flags"),
        ("dis:patch_stride=9", 1, "at most patch_size"),
        ("dis:patch_size=1", 1, "from 4"),
        ("dis:variational_refinement_epsilon=0", 1, "from 1e-06"),
        ("file:winsize=3", 1, "expected none"),
        ("file", 0.5, "used as saved"),
        ("dis", 0, "0.01 to 1"),
        ("dis", 2, "0.01 to 1"),
        ("dis", float("nan"), "0.01 to 1"),
        ("dis@half", 1, "number after @"),
        ("dis@0.5", 0.25, "differ"),
    ],
)
def test_nonsense_is_refused(text: str, scale: float, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        flow_method(text, scale)


def test_saved_flow_is_estimated_by_nobody() -> None:
    with pytest.raises(UsageError, match="read, not estimated"):
        Estimator(flow_method("file"))


def test_tvl1_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(UsageError, match=r"pip install scikit-image"):
        Estimator(flow_method("tvl1"))


@pytest.mark.parametrize("text", METHODS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 40), (8, 8), (15, 64), (64, 15), (16, 16), (17, 300), (300, 33)]
)
def test_small_images_give_flow_or_an_error(text: str, shape: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    least = {"farneback": 1, "tvl1": 2}.get(text, 16)
    if min(shape) < least:
        size = f"{shape[0]}×{shape[1]}"
        with pytest.raises(DataError, match=size):
            estimator_of(text)(image, image)
    else:
        assert np.isfinite(estimator_of(text)(image, image)).all()


@pytest.mark.parametrize("text", ["dis:patch_size=16", "dis:patch_size=4", "dis:finest_scale=9"])
def test_other_patches_and_scales(text: str) -> None:
    now, before = moved()
    assert np.isfinite(estimator_of(text)(now, before)).all()


def test_two_sizes_are_refused() -> None:
    with pytest.raises(DataError, match="120×180 and 100×180"):
        estimator_of("farneback")(texture(), texture(100))


def test_a_scale_may_be_too_small() -> None:
    now, before = moved()
    with pytest.raises(DataError, match="larger --flow-scale"):
        estimator_of("dis", 0.1)(now, before)


# The cache ------------------------------------------------------------------------------------


class Counting(Estimator):
    """An estimator that counts its calls."""

    calls = 0

    def __call__(self, previous: Any, next_: Any) -> Any:
        self.calls += 1
        return super().__call__(previous, next_)


def counting(text: str = "dis:ultrafast", scale: float = 1.0) -> Counting:
    return Counting(flow_method(text, scale))


def test_flow_is_estimated_once(tmp_path: Path) -> None:
    now, before = moved()
    estimator, other = counting(), counting()
    first = FlowCache(tmp_path / "deep" / "cache").get(estimator, now, before)
    again = FlowCache(tmp_path / "deep" / "cache").get(other, now, before)
    np.testing.assert_array_equal(again, first)
    assert (estimator.calls, other.calls) == (1, 0)
    assert again.flags.writeable
    (path,) = tmp_path.rglob("*.npy")
    np.testing.assert_array_equal(np.load(path, allow_pickle=False), first)


def test_a_read_only_cache_of_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, before = moved()
    flow = FlowCache(tmp_path).get(counting(), now, before)

    def fail(path: Path, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", fail)
    np.testing.assert_array_equal(FlowCache(tmp_path).get(counting(), now, before), flow)
    with pytest.raises(OutputError, match="flow cannot be written there: Permission denied"):
        FlowCache(tmp_path).get(counting(), before, now)


def test_what_flow_depends_on_is_its_key(tmp_path: Path) -> None:
    now, before = moved()
    changed = now.copy()
    changed[-1, -1] ^= 1
    cache = FlowCache(tmp_path)
    wide = np.zeros((16, 32), "u1"), np.zeros((16, 32), "u1")
    calls = [
        (counting(), now, before), (counting(), before, now), (counting(), changed, before),
        (counting("dis:fast"), now, before), (counting("dis:ultrafast", 0.5), now, before),
        (counting(), *wide), (counting(), *(image.reshape(32, 16) for image in wide)),
    ]  # fmt: skip
    for estimator, *images in calls:
        cache.get(estimator, *images)
        assert estimator.calls == 1
    assert len({cache.path(*call) for call in calls}) == len(calls)


@pytest.mark.parametrize("damage", ["short", "long", "empty", "bit", "header", "shape", "folder"])
def test_damaged_files_are_replaced(tmp_path: Path, damage: str) -> None:
    now, before = moved()
    cache, estimator = FlowCache(tmp_path), counting()
    expected = cache.get(estimator, now, before)
    path = cache.path(estimator, now, before)
    whole = path.read_bytes()
    data = bytearray(whole)
    if damage == "bit":
        data[5000] ^= 1
    elif damage == "header":
        data[3] ^= 1
    changed = {"short": whole[:-9], "long": whole + b"x", "empty": b""}.get(damage, bytes(data))
    path.write_bytes(changed)
    if damage == "shape":
        np.save(path, expected[1:])
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    np.testing.assert_array_equal(cache.get(estimator, now, before), expected)
    assert estimator.calls == 2
    if damage != "folder":
        assert path.read_bytes() == whole
    assert list(tmp_path.rglob(".*")) == []


def test_a_full_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("uqeval.stores.map_cache._write", full)
    assert FlowCache(tmp_path).get(counting(), *moved()).shape == (120, 180, 2)
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_folder_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file.*Name another folder"):
        FlowCache(tmp_path / "file" / "cache")
    with pytest.raises(OutputError, match=r"file.*Name another folder"):
        FlowCache(tmp_path / "file")
