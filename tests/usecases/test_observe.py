"""`TemporalObserver`: the bits of the offline command, frame by frame, and what it refuses."""

from __future__ import annotations

import dataclasses
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_videos
from command import refused
from PIL import Image
from tensors import Labelled, Tensor

import uqeval
from uqeval import TemporalObserver, UqevalError, UsageError
from uqeval.errors import DataError
from uqeval.tallies.temporal import PairCounts

FIELDS = ("tc", "tc_no_warp", "pixel_agreement", "coverage", "mse_warp", "mse_identity")


def video(frames: int = 6, size: tuple[int, int] = (48, 64)) -> tuple[Any, Any]:
    """Images, uint8 [t, y, x, 3], and ids [t, y, x]."""
    own = small_videos.video(small_videos.numbered(frames), 5, size)
    return own.stack("frames"), own.stack("predictions")


def save(folder: Path, images: Any, ids: Any, names: list[str] | None = None) -> None:
    for kind, stack in (("frames", images), ("predictions", ids)):
        (folder / kind).mkdir(parents=True)
        for t, image in enumerate(stack):
            name = names[t] if names else f"v_{t:03}"
            Image.fromarray(image).save(folder / kind / f"{name}.png")


def items(folder: Path, **settings: Any) -> list[dict[str, Any]]:
    report = uqeval.evaluate(None, None, {"tc": settings}, video=str(folder))
    return [item["temporal"] for item in report.items]


@pytest.mark.parametrize("flow", ["dis:fast", "dis:ultrafast", "farneback"])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_every_frame_has_the_bits_of_the_offline_command(
    tmp_path: Path, flow: str, scale: float
) -> None:
    images, ids = video()
    save(tmp_path, images, ids)
    observer = TemporalObserver(flow, flow_scale=scale)
    found = [observer.update(image, own) for image, own in zip(images, ids, strict=True)]
    assert found[0].tc is None and found[0].reason and not found[0].cut
    expected = items(tmp_path, flow=flow, flow_scale=scale)
    assert len(expected) == len(found) - 1
    for item, own in zip(expected, found[1:], strict=True):
        assert own.reason is None
        assert {name: getattr(own, name) for name in FIELDS} == {
            name: item[name] for name in FIELDS
        }


def test_occlusion_too(tmp_path: Path) -> None:
    images, ids = video(3)
    save(tmp_path, images, ids)
    observer = TemporalObserver("dis:fast", occlusion="fb")
    found = [observer.update(*pair).tc_visible for pair in zip(images, ids, strict=True)]
    expected = items(tmp_path, flow="dis:fast", occlusion="fb")
    assert found == [None, *(item["tc_visible"] for item in expected)]


@pytest.mark.parametrize("bands", [1, 2, 3, 7, 64])
def test_bands_of_rows_change_no_bit(bands: int) -> None:
    rng = np.random.default_rng(1)
    size = (23, 31)
    maps: dict[str, Any] = {
        "prediction:0": rng.integers(0, 4, size, dtype=np.uint8),
        "prediction_before:0": rng.integers(0, 4, size, dtype=np.uint8),
        "grey": rng.integers(0, 256, size, dtype=np.uint8),
        "grey_before": rng.integers(0, 256, size, dtype=np.uint8),
        "flow:f": rng.normal(0, 3, (*size, 2)).astype(np.float32),
    }
    tally = PairCounts("f", 0, 4, 255)
    whole, cut = tally.state_of(maps), tally.empty()
    tally.update_by_rows(cut, maps, bands, map)
    assert tally.pack(whole) == tally.pack(cut)


def test_lengths_of_flow_are_left_out_if_they_are_not_wanted() -> None:
    size = (4, 5)
    zeros = np.zeros(size, np.uint8)
    maps = {"prediction:0": zeros, "prediction_before:0": zeros, "grey": zeros,
            "grey_before": zeros, "flow:f": np.ones((*size, 2), np.float32)}  # fmt: skip
    with_, without = (
        PairCounts("f", 0, 2, 255, lengths=lengths).state_of(maps) for lengths in (True, False)
    )
    assert with_["flow_median"][0] > 0 and without["flow_median"][0] == -np.inf
    for name in set(with_) - {"flow_median", "flow_p99"}:
        assert np.array_equal(with_[name], without[name])


def test_what_is_given_may_be_used_anew() -> None:
    images, ids = video()
    plain, reusing = TemporalObserver(), TemporalObserver()
    image, own = np.empty_like(images[0]), np.empty_like(ids[0])
    for given in zip(images, ids, strict=True):
        image[...], own[...] = given
        assert plain.update(*given).tc == reusing.update(image, own).tc


class OfGpu(Tensor):
    """A tensor that NumPy reads only after `cpu`."""

    def cpu(self) -> Tensor:
        return Tensor(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


@pytest.mark.parametrize(
    "form",
    [
        lambda v, names: OfGpu(v),
        lambda v, names: Labelled(v.swapaxes(0, 1), (names[1], names[0], *names[2:])),
        lambda v, names: Image.fromarray(v),
    ],
)
def test_frames_of_any_library(form: Any) -> None:
    """Named axes count, also in another order than the usual one."""
    images, ids = video(3, (32, 32))
    plain, other = TemporalObserver(), TemporalObserver()
    for image, own in zip(images, ids, strict=True):
        expected = plain.update(image, own)
        found = other.update(form(image, ("y", "x", "rgb")), form(own, ("row", "col")))
        assert found.tc == expected.tc
    says = "frame 3, prediction has the axes ['n', 'x'], expected [y, x]"
    with pytest.raises(UqevalError, match=f"^{re.escape(says)}"):
        other.update(image, Labelled(own, ("n", "x")))


def test_ids_of_any_integers_and_a_void_of_ones_own() -> None:
    images, ids = video()
    expected = TemporalObserver()
    own = TemporalObserver(ignore_index=-1, classes=5)
    for image, frame in zip(images, ids, strict=True):
        wide = np.where(frame == 255, -1, frame.astype(np.int64))
        assert own.update(image, wide).tc == expected.update(image, frame).tc


def test_a_reset_compares_with_nothing_and_says_why() -> None:
    images, ids = video()
    observer = TemporalObserver()
    for t in range(2):
        observer.update(images[t], ids[t])
    observer.reset("the camera was moved")
    found = observer.update(images[2], ids[2], name="c")
    assert (found.name, found.tc, found.reason) == ("c", None, "the camera was moved")
    assert observer.update(images[3], ids[3]).tc is not None


def test_alarms_below_a_limit() -> None:
    images, ids = video()
    tcs = [o.tc for o in map(TemporalObserver(alarm=0.5).update, images, ids)]
    limit = sorted(tc for tc in tcs if tc is not None)[2]
    observer = TemporalObserver(alarm=limit)
    found = [observer.update(*pair) for pair in zip(images, ids, strict=True)]
    assert found[0].alarm is None
    assert [own.alarm for own in found[1:]] == [tc < limit for tc in tcs[1:] if tc is not None]
    assert sum(own.alarm is True for own in found) == 2
    assert TemporalObserver().update(images[0], ids[0]).alarm is None


def test_a_cut_is_told_by_the_pairs_before() -> None:
    images, ids = video()
    other = np.random.default_rng(0).integers(0, 256, images[0].shape, np.uint8)
    observer = TemporalObserver()
    cuts = [observer.update(*pair).cut for pair in zip(images, ids, strict=True)]
    assert not any(cuts)
    assert observer.update(other, ids[0]).cut


def test_memory_is_constant() -> None:
    images, ids = video(2, (16, 16))
    observer = TemporalObserver("dis:ultrafast")
    for t in range(120):
        observer.update(images[t % 2], ids[t % 2])
    assert len(observer._errors) == 50


BAD = {
    "float frame": (lambda f, p: (f / 255, p), "expected uint8"),
    "grey frame": (lambda f, p: (f[:, :, 0], p), "expected uint8"),
    "nan": (lambda f, p: (f, np.full(p.shape, np.nan)), "integer class ids"),
    "other size": (lambda f, p: (f, p[:-1]), "one id per pixel"),
    "one-hot": (lambda f, p: (f, np.zeros((5, *p.shape))), "one id per pixel"),
    "strange id": (lambda f, p: (f, np.full_like(p, 9)), "9"),
    "negative id": (lambda f, p: (f, p.astype(int) - 300), "outside the 5 classes"),
    "size changes": (lambda f, p: (f[2:], p[2:]), "reset()"),
    "nothing": (lambda f, p: (f[:0], p[:0]), "expected uint8"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_frames_are_refused_by_name_and_the_observer_goes_on(kind: str) -> None:
    spoil, says = BAD[kind]
    images, ids = video()
    observer = TemporalObserver(classes=5)
    observer.update(images[0], ids[0])
    with pytest.raises(UqevalError) as caught:
        observer.update(*spoil(images[1], ids[1]), name="v_001")
    assert str(caught.value).count("frame v_001") == 1 and says in str(caught.value)
    after = observer.update(images[2], ids[2])
    assert after.tc is None and after.reason is not None and "v_001" in after.reason
    assert observer.update(images[3], ids[3]).tc is not None


def test_frames_too_small_for_the_flow_are_named() -> None:
    observer = TemporalObserver("dis:fast")
    frame, ids = np.zeros((8, 8, 3), np.uint8), np.zeros((8, 8), np.uint8)
    observer.update(frame, ids)
    with pytest.raises(UqevalError, match=r"^frame 1: (?!frame 1).*farneback"):
        observer.update(frame, ids)


@pytest.mark.parametrize(
    "settings",
    [{"flow": "nonsense"}, {"flow": "file"}, {"flow_scale": 0}, {"classes": 0}, {"alarm": 1.5},
     {"alarm": float("nan")}, {"occlusion": "maybe"}],
)  # fmt: skip
def test_settings_that_cannot_be(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        TemporalObserver(**settings)


def test_observations_are_frozen() -> None:
    images, ids = video(1)
    found = TemporalObserver().update(images[0], ids[0])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.tc = 1.0  # type: ignore[misc]


@pytest.mark.parametrize("dims", [("y", "x"), ("lat", "lon"), ("line", "pixel")])
def test_rows_and_columns_in_another_order_than_those_of_the_frame(dims: tuple[str, str]) -> None:
    observer = TemporalObserver()
    (image, *_), (ids, *_) = video(2)
    along = {dims[0]: np.arange(48) / 8, dims[1]: np.arange(64)}
    frame, prediction = (
        Labelled(own, own_dims, coords=along)
        for own, own_dims in ((image, (*dims, "class")), (ids, dims))
    )
    observer.update(frame, prediction)
    for name, says in zip(dims, ("rows", "columns"), strict=True):
        bad = Labelled(ids, dims, coords=along | {name: along[name][::-1]})
        message = f"frame 7, prediction: the {says} are in another order than those of frame 7"
        refused(lambda: observer.update(frame, bad, name="7"), message, error=DataError)  # noqa: B023
    observer.update(frame, ids)
    assert observer.update(frame, prediction).tc == 1


@pytest.mark.parametrize(("attributes", "says"), [
    ({"scale_factor": 2.0}, "packed"), ({"ignore_index": "x"}, "expected an integer"),
    ({"ignore_index": 2}, "the void id of the observer is 255. If 2 is void, use "
     "TemporalObserver(ignore_index=2); else"),
    ({"_FillValue": 2}, "If 2 is void, use TemporalObserver(ignore_index=2); if it is a class, use "
     "TemporalObserver(ignore_index=255)."),
])  # fmt: skip
def test_attributes_that_change_predicted_ids(attributes: dict[str, Any], says: str) -> None:
    """They were ignored, so void pixels counted as a class."""
    (image, *_), (ids, *_) = video(2)
    ids[:3] = 2
    bad = Labelled(ids, ("y", "x"), attributes)
    refused(lambda: TemporalObserver().update(image, bad), says, error=UqevalError)
    harmless = {"ignore_index": 255, "_FillValue": 0, "scale_factor": 1, "note": "a"}
    TemporalObserver().update(image, Labelled(ids, ("y", "x"), harmless))
    own = Labelled(np.where(ids == 255, 2, ids), ("y", "x"), attributes)
    if 2 in attributes.values() and attributes != {"scale_factor": 2.0}:
        TemporalObserver(ignore_index=2).update(image, own)
    if attributes == {"_FillValue": 2}:
        TemporalObserver(ignore_index=255).update(image, own)


def test_a_call_during_another_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    images, ids = video(3)
    observer, alone = TemporalObserver(), TemporalObserver()
    expected = [alone.update(*pair).tc for pair in zip(images, ids, strict=True)]
    observer.update(images[0], ids[0])
    inside, goes_on = threading.Event(), threading.Event()
    compared = observer._compared

    def waits(maps: Any) -> Any:
        inside.set()
        assert goes_on.wait(30)
        return compared(maps)

    monkeypatch.setattr(observer, "_compared", waits)
    with ThreadPoolExecutor(1) as pool:
        second = pool.submit(observer.update, images[1], ids[1])
        assert inside.wait(30)
        for call in (lambda: observer.update(images[2], ids[2]), observer.reset):
            with pytest.raises(UsageError, match="another thread uses this TemporalObserver"):
                call()
        goes_on.set()
        assert second.result().tc == expected[1]
    assert observer.update(images[2], ids[2]).tc == expected[2]
