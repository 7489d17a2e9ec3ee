"""Pictures of items, pixel by pixel."""

from __future__ import annotations

import io
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_videos import save_folder, video

import uqeval
from uqeval.cli.report_options import ReportOptions
from uqeval.cli.report_pictures import dataset_of
from uqeval.inputs import InputOptions
from uqeval.usecases.gallery.classes import _PATCHES
from uqeval.usecases.gallery.opening import open_gallery
from uqeval.usecases.gallery.paint import RIGHT, VOID, WRONG, colours, images_of, photo
from uqeval.usecases.gallery.video import warped
from uqeval.usecases.trackers import fiftyone


def pixels(png: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


def one_hot(ids: Any, classes: int, sure: Any) -> Any:
    """Probabilities [1, 1, c, y, x] with `sure` at each pixel's class."""
    rest = (1 - sure) / (classes - 1)
    return np.where(np.arange(classes)[:, None, None] == ids, sure, rest)[None, None]


def test_prediction_errors_and_patches() -> None:
    ids = np.zeros((4, 9), int)  # the last column belongs to no patch
    ids[:, 2:] = 1
    sure = np.full(ids.shape, 0.99)
    sure[:, 2:4] = 0.6  # the second column of patches is uncertain
    label = ids.copy()
    label[:, 2:6] = 2  # and wrong, as the third, which is certain
    label[0, 8] = 255
    probs = one_hot(ids, 3, sure)
    report = uqeval.evaluate(probs, label[None].astype("u1"), {"pavpu": {"window": 2}})
    gallery = open_gallery(report, probs, label[None].astype("u1"), None, InputOptions())
    found = {p.title.split(",")[0]: pixels(p.png) for p in gallery.pictures(0)}
    assert set(found) == {"prediction", "label", "errors", "entropy", "patches"}
    palette = np.array([*colours(3), VOID])
    assert (found["prediction"] == palette[ids]).all()
    assert (found["label"] == palette[np.where(label == 255, 3, label)]).all()
    wrong = np.where((ids != label)[..., None], WRONG, RIGHT)
    wrong[0, 8] = VOID
    assert (found["errors"] == wrong).all()
    ac, _, ic, iu = _PATCHES
    assert [tuple(row) for row in found["patches"][0].tolist()] == [
        ac, ac, iu, iu, ic, ic, ac, ac, VOID,
    ]  # fmt: skip
    assert found["entropy"][0, 2].sum() > found["entropy"][0, 0].sum()


def test_patches_of_regions_are_not_drawn_again() -> None:
    ids = np.zeros((4, 8), int)
    ids[:, 4:] = 1
    probs, label = one_hot(ids, 2, np.full(ids.shape, 0.9)), ids[None].astype("u1")
    settings = {"pavpu": {"window": [2, 4]}}
    report = uqeval.evaluate(probs, label, settings, region=["boundary:1"])
    assert "pavpu[window=4]@boundary:1" in report.settings
    gallery = open_gallery(report, probs, label, None, InputOptions())
    titles = [own.title for own in gallery.pictures(0) if own.title.startswith("patches")]
    assert titles == ["patches", "patches, window=4"]


def test_numbers(tmp_path: Path) -> None:
    target = np.linspace(1, 9, 24, dtype="f4").reshape(1, 4, 6)
    arrays = {"mean": target + 1, "std": np.full_like(target, 0.5), "target": target}
    np.savez(tmp_path / "n.npz", **arrays, other=arrays["std"])
    for uncertainty, sigmas in (("sigma", ["sigma"]), (["std", "other"], ["sigma", "other"])):
        families = {"regression": {"uncertainty": uncertainty}}
        report = uqeval.evaluate(tmp_path / "n.npz", None, families)
        gallery = open_gallery(report, tmp_path / "n.npz", None, None, InputOptions())
        titles = [p.title.split(",")[0] for p in gallery.pictures(0)]
        assert titles == ["target", "mean", "error", *sigmas]


def test_other_stores_are_refused() -> None:
    probs = one_hot(np.zeros((4, 4), int), 2, 0.9)
    truth = np.zeros((1, 4, 4), "u1")
    report = uqeval.evaluate(probs, truth)
    two = np.concatenate([probs, probs])
    with pytest.raises(uqeval.UqevalError, match=r"holds 2 items.*the report is of 1"):
        open_gallery(report, two, np.zeros((2, 4, 4), "u1"), None, InputOptions())


def test_classes_have_colours_of_their_own() -> None:
    for classes in (2, 12, 19, 150):
        assert len(set(colours(classes))) == classes


@pytest.mark.parametrize("clamp", [False, True])
def test_warped_takes_the_nearest_pixel(clamp: bool) -> None:
    """Pixels from outside are void, or those of the border; pixels of unknown flow are void."""
    rng = np.random.default_rng(1)
    ids = rng.integers(0, 5, (7, 9)).astype("u1")
    flow = rng.uniform(-4, 4, (7, 9, 2)).astype("f4")
    flow[0, 0], flow[1, 1], flow[2, 2] = np.nan, np.inf, 1e30
    flow[3, 3], flow[4, 4] = 2e9, 9e8
    found = warped(ids, flow, 255, clamp)
    for y, x in np.ndindex(7, 9):
        u, v = (float(w) for w in flow[y, x])
        expected = 255
        if math.hypot(u, v) <= 1e9:
            i, j = math.floor(x + u + 0.5), math.floor(y + v + 0.5)
            if clamp or (0 <= i < 9 and 0 <= j < 7):
                expected = ids[min(max(j, 0), 6), min(max(i, 0), 8)]
        assert found[y, x] == expected


@pytest.mark.parametrize("grid", ["current", "previous"])
@pytest.mark.parametrize("out_of_frame", ["exclude", "clamp"])
def test_pairs_of_frames(tmp_path: Path, grid: str, out_of_frame: str) -> None:
    own = video(seed=3)
    folder = save_folder(tmp_path / "v", own)
    options = {
        "flow": ["farneback", "dis"], "grid": grid, "definition": "paper",
        "out_of_frame": out_of_frame,
    }  # fmt: skip
    report = uqeval.evaluate(None, None, {"tc": options}, video=str(folder), ignore_index=255)
    gallery = open_gallery(report, None, None, None, InputOptions(video=folder, ignore_index=255))
    found = gallery.pictures(2)
    names = own.names
    assert [p.group for p in found[:2]] == ["", ""]
    assert (pixels(found[0].png) == own.frames[names[2]]).all()
    assert (pixels(found[1].png) == own.frames[names[3]]).all()
    assert len(found) == 8 and len({p.group for p in found[2:]}) == 2
    kept = 3 if grid == "current" else 2
    palette = np.array([*colours(4), VOID])
    ids = own.predictions[names[kept]]
    for _, now, changed in (found[2:5], found[5:8]):
        assert (pixels(now.png) == palette[np.where(ids == 255, 4, ids)]).all()
        drawn = pixels(changed.png)
        wrong, right = ((drawn == colour).all(axis=-1) for colour in (WRONG, RIGHT))
        assert (drawn[~wrong & ~right] == VOID).all() and (drawn[ids == 255] == VOID).all()
        said = float(changed.title.removeprefix("changed: ").removesuffix("%"))
        assert said == pytest.approx(100 * wrong.sum() / (wrong | right).sum(), abs=0.06)
    agreement = report.items[2]["temporal"]["pixel_agreement"]
    assert 1 - agreement == pytest.approx(float(found[4].title[9:-1]) / 100, abs=6e-4)


def test_pairs_of_another_model_are_refused(tmp_path: Path) -> None:
    folder = save_folder(tmp_path / "v", video())
    report = uqeval.evaluate(None, None, {"tc": {}}, video=str(folder), ignore_index=255)
    report.settings["temporal"]["model"] = "other"
    with pytest.raises(uqeval.UqevalError, match="has the model 'other'"):
        open_gallery(report, None, None, None, InputOptions(video=folder, ignore_index=255))


def test_named_maps_are_those_of_the_definitions() -> None:
    """Mukhoti & Gal 2018, Figure 6; Ma et al. 2024, Figure 1."""
    ids = np.zeros((4, 8), int)
    ids[:, 4:] = 1
    sure = np.linspace(0.55, 0.99, 32).reshape(4, 8)
    label = ids.copy()
    label[:2, :2] = 1  # one patch of 2×2 is wrong
    label[3, 7] = 255
    probs, truth = one_hot(ids, 2, sure), label[None].astype("u1")
    report = uqeval.evaluate(probs, truth, {"pavpu": {"window": 2}})
    names = ("accurate", "uncertain", "entropy:p90", "entropy:class-p75", "entropy:log")
    gallery = open_gallery(report, probs, truth, None, InputOptions(), maps=names)
    found = [pixels(picture.png) for picture in gallery.pictures(0)]
    accurate, uncertain = ((one == 255).all(-1) for one in found[:2])
    p = one_hot(ids, 2, sure)[0, 0]
    entropy = -(p * np.log(p)).sum(axis=0)
    threshold = report.results["pavpu"]["uncertainty_threshold"]
    for y, x in np.ndindex(2, 4):
        block = np.s_[2 * y : 2 * y + 2, 2 * x : 2 * x + 2]
        valid = label[block] != 255
        hits = (ids[block] == label[block])[valid]
        assert (accurate[block] == (hits.mean() > 0.5)).all()
        assert (uncertain[block] == (entropy[block][valid].mean() > threshold)).all()
    assert (~accurate).sum() == 4 and 0 < uncertain.sum() < 32
    above, of_class = ((one != found[2].reshape(-1, 3).min(0)).any(-1) for one in found[2:4])
    assert (above == (entropy >= np.percentile(entropy, 90))).all()
    for c in (0, 1):
        own = entropy[ids == c]
        assert (of_class[ids == c] == (own >= np.percentile(own, 75))).all()
    titles = [picture.title for picture in gallery.pictures(0)]
    assert titles[4].startswith("log10 entropy, ") and titles[3].startswith("entropy ≥ p75 of its")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("entropie", "expected one of image, label"),
        ("label:log", "expected one of image, label"),
        ("entropy:p101", "expected one of image, label"),
        ("entropy:p1.2.3", "expected one of image, label"),
        ("entropy:p.", "expected one of image, label"),
        ("patches", "the report has none"),
        ("image", "--images DIR"),
        ("mutual_information", "one sample per item"),
    ],
)
def test_unknown_maps(name: str, message: str) -> None:
    probs, truth = one_hot(np.zeros((4, 4), int), 2, 0.9), np.zeros((1, 4, 4), "u1")
    report = uqeval.evaluate(probs, truth, "calibration")
    with pytest.raises(uqeval.UqevalError, match=message):
        open_gallery(report, probs, truth, None, InputOptions(), maps=[name]).pictures(0)


def test_images_belong_to_one_item(tmp_path: Path) -> None:
    for name in ("a/x.png", "b/x.png", "b/y.jpg", "c.1.png", "z.png", "d/z.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (3, 2)).save(tmp_path / name)
    names = ["a/x", "b/x", "y", "c.1", "z", "y.old", "city/z", "a/y"]
    found = images_of(tmp_path, names)
    files = {name: str(path.relative_to(tmp_path)) for name, path in found.items()}
    assert files == {
        "a/x": "a/x.png", "b/x": "b/x.png", "y": "b/y.jpg", "c.1": "c.1.png", "z": "z.png",
    }  # fmt: skip
    with pytest.raises(uqeval.UqevalError, match=r"'x' could have the image a/x.png or b/x.png"):
        images_of(tmp_path, ["x"])
    with pytest.raises(uqeval.UqevalError, match="none of the 2 items has its image"):
        images_of(tmp_path, ["m/y", "n/y"])
    with pytest.raises(uqeval.UqevalError, match="none of the 1 items has its image"):
        images_of(tmp_path, ["../a/q"])


def of_a_sequence(folder: Path, sequence: str) -> tuple[uqeval.Report, Path]:
    """A report of `s2/x`, whose store and labels are in the folder, with an image."""
    (folder / sequence).mkdir()
    Image.new("RGB", (4, 4)).save(folder / sequence / "x.png")
    probs = one_hot(np.zeros((4, 4), int), 2, 0.9)
    np.savez(folder / "p.npz", probs=probs, labels=np.zeros((1, 4, 4), "u1"), names=["s2/x"])
    return uqeval.evaluate(folder / "p.npz", None, "calibration"), folder / "p.npz"


@pytest.mark.parametrize(("folder", "is_told"), [("s1", True), ("s2", False), ("images", False)])
def test_images_of_another_sequence_are_told(tmp_path: Path, folder: str, is_told: bool) -> None:
    report, store = of_a_sequence(tmp_path, folder)
    note = open_gallery(report, store, None, tmp_path, InputOptions()).note
    assert ("1 item and their image files are in folders of different names" in note) is is_told
    assert ("'s2/x' and s1/x.png" in note) is is_told


def test_images_of_another_sequence_in_a_dataset_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report, store = of_a_sequence(tmp_path, "s1")
    monkeypatch.setattr(fiftyone, "FiftyOneDataset", lambda name: name)
    options = ReportOptions(fiftyone="new", predictions=(str(store),), images=str(tmp_path))
    dataset_of({"r": report}, options)
    assert "warning: --fiftyone: " in (told := capsys.readouterr().err)
    assert "'s2/x' and s1/x.png" in told


@pytest.mark.parametrize("dtype", ["uint16", "int32", "float32"])
def test_images_of_more_than_8_bits_show_their_range(tmp_path: Path, dtype: str) -> None:
    values = np.array([[1000, 2000], [3000, 4000]], dtype)
    Image.fromarray(values).save(tmp_path / "x.tif")
    (picture,) = photo({"x": tmp_path / "x.tif"}, "x")
    shown = np.asarray(Image.open(io.BytesIO(picture.png)).convert("RGB"))
    assert shown[..., 0].tolist() == [[0, 85], [170, 255]]


def png_of(width: int, height: int) -> bytes:
    """A PNG whose header alone is right."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(99))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (png_of(20_000, 20_000), "is too large to be shown"),
        (png_of(30, 30), "image file is truncated"),
        (b"not an image", "not an image of the formats PNG, JPEG"),
        (b"BM" + b"\xff" * 100, "cannot be read as an image"),
    ],
)
def test_images_that_cannot_be_read(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "x.png").write_bytes(data)
    with pytest.raises(uqeval.UqevalError, match=message):
        photo({"x": tmp_path / "x.png"}, "x")


def test_a_map_of_the_store_can_be_named() -> None:
    ids, energy = np.zeros((1, 4, 4), "u1"), np.ones((1, 4, 4), "f4")
    maps = {"predictions": ids, "free-energy": energy, "labels": ids}
    report = uqeval.evaluate(maps, metrics={"failure": {"uncertainty": "free-energy"}}, classes=2)
    options = InputOptions(classes=2)
    own = ["free-energy", "free-energy:p50"]
    found = open_gallery(report, maps, None, None, options, maps=own).pictures(0)
    assert [p.title.split(",")[0] for p in found] == ["free-energy", "free-energy ≥ p50"]
    with pytest.raises(uqeval.UqevalError, match=r"expected one of image, .*free-energy"):
        open_gallery(report, maps, None, None, options, maps=["other"])
