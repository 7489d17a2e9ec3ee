"""Whole runs of temporal consistency against a plain oracle, and what may not change a bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import naive_video
import numpy as np
import pytest
from small_stores import save
from small_videos import Video, numbered, save_flows, save_folder, save_images, save_store, video

import uqeval
from uqeval import UsageError
from uqeval.gate.other_settings import first_other_setting
from uqeval.inputs.options import InputOptions
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.usecases.alarm_limit import refuse_other_void
from uqeval.usecases.merge import merge

GAPPED = ["a_001", "a_003", "a_005", "a_011", "a_013", "b_7", "b_8", "b_9", "b_10", "c_1"]
SCORES = (
    "mtc", "mtc_no_warp", "mtc_pooled", "mtc_frequency_weighted", "pixel_agreement", "coverage",
    "out_of_frame", "mse_warp", "mse_identity",
)  # fmt: skip
ITEM = (
    "tc", "tc_no_warp", "frequency_weighted", "pixel_agreement", "coverage", "out_of_frame",
    "mse_warp", "mse_identity",
)  # fmt: skip


def run(given: Any, predictions: Any = None, labels: Any = None, **options: Any) -> Any:
    """The report of a run; what settings do not name goes to the inputs."""
    inputs = set(InputOptions.__dataclass_fields__) | {"workers", "memory", "states", "resume"}
    own = {key: options.pop(key) for key in inputs & set(options)}
    return uqeval.evaluate(predictions, labels, {"tc": options}, video=str(given), **own)


def comparable(report: Any) -> Any:
    """All numbers of a report."""
    return json.loads(json.dumps([report.results, report.items, report.numerics]))


def close(found: Any, expected: Any) -> None:
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def same(report: Any, oracle: dict[str, Any], key: str = "temporal") -> None:
    """Everything of the report that the oracle has."""
    results = report.results[key]
    close({name: results[name] for name in SCORES}, {name: oracle[name] for name in SCORES})
    assert results["pairs"] == oracle["pairs"]
    close({row["class"]: row["iou"] for row in results["per_class"]}, oracle["per_class"])
    assert [item["name"] for item in report.items] == list(oracle["items"])
    for item in report.items:
        own, expected = item[key], oracle["items"][item["name"]]
        close({name: own[name] for name in ITEM}, {name: expected[name] for name in ITEM})
        close({int(c): iou for c, iou in own["iou"].items()}, expected["iou"])
        if "occluded" in expected:
            close(own["tc_visible"], expected["occluded"]["tc"])
            close(own["coverage_visible"], expected["occluded"]["coverage"])
        if "miou" in oracle:
            close(own["miou"], oracle["miou"].get(item["name"]))
    for row in results["sequences"]:
        expected = oracle["sequences"][row["sequence"]]
        close({name: row[name] for name in SCORES}, {name: expected[name] for name in SCORES})
        assert row["pairs"] == expected["pairs"]
    if "occluded" in oracle:
        close({k: results["occluded"][k] for k in ("mtc", "coverage")}, oracle["occluded"])
    if "miou" in oracle:
        close(results["miou_mean"], oracle["miou_mean"])
        close(results["correlation"]["r"], oracle["r"])
        assert results["correlation"]["pairs"] == oracle["r_pairs"]


def ordered(own: Video) -> Video:
    """In the order of sequence and number, as reports have it."""
    return own.only(sorted(own.names, key=naive_video.parsed))


@pytest.mark.parametrize("flow", ["farneback", "dis", "dis:fast", "dis:ultrafast"])
@pytest.mark.parametrize("seed", range(3))
def test_a_folder_of_images_is_the_oracle(tmp_path: Path, flow: str, seed: int) -> None:
    own = video(seed=seed, size=(49 + seed, 97))
    save_folder(tmp_path, own, labels=True)
    found = run(tmp_path, flow=flow, occlusion="fb")
    same(found, naive_video.run(own.frames, own.predictions, flow, True, own.labels))
    assert found.results["temporal"]["correlation"]["against"] == "labels"


def test_sequences_steps_and_gaps(tmp_path: Path) -> None:
    own = video(GAPPED, seed=4)
    save_folder(tmp_path, own, labels=True)
    report = run(tmp_path)
    oracle = naive_video.run(own.frames, own.predictions, labels=own.labels)
    frames = {name for pair in naive_video.neighbours(own.names) for name in pair}
    assert "c_1" not in frames and oracle["pairs"] == 6
    # mIoU is over frames of pairs: a frame without a neighbour has no part in the run.
    oracle["miou_mean"] = np.mean([oracle["miou"][name] for name in frames])
    same(report, oracle)
    results = report.results["temporal"]
    assert [row["sequence"] for row in results["sequences"]] == ["a", "b"]
    for row in results["sequences"]:
        own_frames = [name for name in frames if naive_video.parsed(name)[0] == row["sequence"]]
        close(row["miou_mean"], np.mean([oracle["miou"][name] for name in own_frames]))
    assert [row["step"] for row in results["sequences"]] == [2, 1]
    assert results["step"] is None and "differs" in results["step_reason"]
    assert results["gaps"] == 1 and any("1 gap " in text for text in report.warnings)


def test_one_store_holds_all(tmp_path: Path) -> None:
    own = video(seed=5)
    store = save_store(
        tmp_path / "v.zarr", own.names, frames=own.stack("frames"),
        predictions=own.stack("predictions"), labels=own.stack("labels"),
    )  # fmt: skip
    same(run(store), naive_video.run(own.frames, own.predictions, labels=own.labels))


def test_samples_are_averaged_before_their_ids_are_taken(tmp_path: Path) -> None:
    own = video(seed=6)
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), (5, 3, 36, 48)).astype(np.float32)
    probs = np.moveaxis(probs, -1, 2)
    save_images(tmp_path / "frames", own.frames)
    preds = save_store(tmp_path / "probs.zarr", own.names, probs=probs)
    ids = probs.astype(np.float64).mean(1).argmax(1).astype(np.uint8)
    oracle = naive_video.run(own.frames, dict(zip(own.names, ids, strict=True)))
    same(run(tmp_path, str(preds)), oracle)


@pytest.fixture
def film(tmp_path: Path) -> tuple[Path, Video]:
    """An .avi, and the frames that OpenCV decodes."""
    own = video(numbered(12, "", 1), seed=7, size=(48, 64))
    path = tmp_path / "film.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for image in own.frames.values():
        writer.write(np.ascontiguousarray(image[..., ::-1]))
    writer.release()
    capture, frames = cv2.VideoCapture(str(path)), {}
    for name in own.names:
        there, image = capture.read()
        assert there
        frames[name] = np.ascontiguousarray(image[..., ::-1])
    capture.release()
    return path, Video(frames, own.predictions, own.labels)


def same_by_number(report: Any, own: Video) -> None:
    oracle = naive_video.run(own.frames, own.predictions)
    values = [item["temporal"]["tc"] for item in report.items]
    close(values, [item["tc"] for item in oracle["items"].values()])
    close(report.results["temporal"]["mse_warp"], oracle["mse_warp"])


def test_a_video_file_with_a_store(tmp_path: Path, film: tuple[Path, Video]) -> None:
    path, own = film
    preds = save_store(tmp_path / "p.zarr", predictions=own.stack("predictions"))
    for workers in (1, 3):
        same_by_number(run(path, str(preds), workers=workers), own)


def test_a_video_file_with_a_folder_takes_it_in_natural_order(
    tmp_path: Path, film: tuple[Path, Video]
) -> None:
    path, own = film
    planes = own.predictions.values()
    images = {f"f_{k}": ids for k, ids in enumerate(planes)}  # f_10 comes after f_9
    same_by_number(run(path, str(save_images(tmp_path / "p", images))), own)
    labelled = run(path, str(tmp_path / "p"), str(save_images(tmp_path / "l", images)))
    assert labelled.results["temporal"]["miou_mean"] == 1
    (tmp_path / "p" / "f_3.png").unlink()
    with pytest.raises(uqeval.UqevalError, match="11 predictions for 12 frames"):
        run(path, str(tmp_path / "p"))


def test_models_times_flows_are_the_single_runs(tmp_path: Path) -> None:
    own, other = video(seed=8), video(seed=9)
    save_folder(tmp_path, own, labels=True)
    models = [
        save_images(tmp_path / "m" / "one", own.predictions),
        save_images(tmp_path / "m" / "two", dict(zip(own.names, other.stack("predictions"),
                                                     strict=True))),
    ]  # fmt: skip
    flows = ["dis:fast", "farneback"]
    settings: dict[str, Any] = {"occlusion": "fb", "tracks": True}
    together = run(tmp_path, [str(m) for m in models], flow=flows, **settings)
    assert len(together.results) == 4
    for key, record in together.results.items():
        model = next(m for m in models if m.name == record["model"])
        alone = run(tmp_path, [str(model)], flow=record["flow"]["id"], **settings)
        assert alone.results["temporal"] == record
        for one, item in zip(alone.items, together.items, strict=True):
            assert one["temporal"] == item[key]


def test_models_in_folders_of_one_name(tmp_path: Path) -> None:
    own = video(seed=8)
    save_folder(tmp_path / "v", own)
    models = [save_images(tmp_path / m / "predictions", own.predictions) for m in ("a", "b")]
    found = run(tmp_path / "v", [str(m) for m in models]).results
    assert {record["model"] for record in found.values()} == {"a:predictions", "b:predictions"}


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("kind", ["folder", "store", "chunks"])
def test_neither_threads_nor_chunks_change_a_bit(tmp_path: Path, kind: str, workers: int) -> None:
    own = video(numbered(9), seed=10)
    save_folder(tmp_path / "v", own)
    settings: dict[str, Any] = {"occlusion": "fb", "tracks": True, "track_everywhere": True}
    expected = comparable(run(tmp_path / "v", workers=1, **settings))
    given = tmp_path / "v"
    if kind != "folder":
        import zarr

        given = tmp_path / "v.zarr"
        group = zarr.open_group(given, mode="w")
        for key in ("frames", "predictions"):
            values = own.stack(key)
            chunks = (1, *values.shape[1:]) if kind == "store" else (4, 20, 48, 3)[: values.ndim]
            array = group.create_array(key, shape=values.shape, dtype="u1", chunks=chunks)
            array[...] = values
        group.attrs["names"] = own.names
    found = comparable(run(given, workers=workers, memory="8MB", **settings))
    for results in (found[0], expected[0]):
        results["temporal"].pop("model")
    assert found == expected


def test_kept_flow_is_taken_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = video(seed=11)
    save_folder(tmp_path / "v", own)
    settings: dict[str, Any] = {"flow": ["farneback", "dis:fast"], "occlusion": "fb"}
    expected = comparable(run(tmp_path / "v", **settings))
    cache = tmp_path / "cache"
    assert comparable(run(tmp_path / "v", flow_cache=cache, **settings)) == expected
    files = {path: path.stat().st_mtime_ns for path in cache.rglob("*.npy")}
    assert len(files) == 2 * 2 * 4

    def unwanted(*_: Any) -> Any:
        raise AssertionError("estimated again")

    monkeypatch.setattr("uqeval.maps.flow.Estimator.__call__", unwanted)
    assert comparable(run(tmp_path / "v", flow_cache=cache, **settings)) == expected
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*.npy")} == files


def test_a_part_of_the_pairs(tmp_path: Path) -> None:
    own = video(GAPPED, seed=12)
    save_folder(tmp_path, own)
    whole, part = run(tmp_path), run(tmp_path, limit=3)
    assert part.partial and part.items == whole.items[:3]
    assert part.results["temporal"]["pairs"] == 3


def test_tracks_end_where_a_limit_ends_them(tmp_path: Path) -> None:
    own = video(numbered(8), seed=3)
    save_folder(tmp_path / "whole", own)
    save_folder(tmp_path / "part", own.only(own.names[:4]))
    found, expected = (
        run(tmp_path / kind, tracks=True, track_everywhere=True, **limit).results["temporal"]
        for kind, limit in (("whole", {"limit": 3}), ("part", {}))
    )
    assert found["tracks"] == expected["tracks"] and found["tracks"]["tracks"] > 10


@pytest.mark.on_disk
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("tracks", [False, True])
def test_an_interrupted_run_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracks: bool, workers: int
) -> None:
    from uqeval.maps.video import VideoSource

    save_folder(tmp_path / "v", video(numbered(8), seed=3))
    options: dict[str, Any] = {
        "tracks": tracks, "states": str(tmp_path / "r.states.zip"), "workers": workers,
    }  # fmt: skip
    expected = comparable(run(tmp_path / "v", **options))
    (tmp_path / "r.states.zip").unlink()  # or all would be known
    read, asked = VideoSource.read, []

    def interrupted(self: Any, batch: range, *args: Any) -> Any:
        asked.append(batch.start)
        if batch.start == 4:
            raise KeyboardInterrupt
        return read(self, batch, *args)

    monkeypatch.setattr(VideoSource, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "v", **options)
    asked.clear()

    def counting(self: Any, batch: range, *args: Any) -> Any:
        asked.append(batch.start)
        return read(self, batch, *args)

    monkeypatch.setattr(VideoSource, "read", counting)
    assert comparable(run(tmp_path / "v", resume=True, **options)) == expected
    assert sorted(asked) == list(range(7)) if tracks else 0 not in asked


@pytest.mark.parametrize("how", ["flo", "npy", "zarr", "own"])
def test_flow_that_was_saved(tmp_path: Path, how: str) -> None:
    own = video(seed=13)
    rng = np.random.default_rng(0)
    size = own.frames[own.names[0]].shape[:2]
    flows = {name: rng.normal(0, 2, (*size, 2)).astype(np.float32) for name in own.names[1:]}
    flows[own.names[2]][3:6, 4:9] = np.nan
    flows[own.names[3]][0, 0] = 1e10, 0
    oracle = naive_video.run(own.frames, own.predictions, flows)
    given = tmp_path / "v"
    save_folder(given, own)
    stacked = np.stack(list(flows.values()))
    path: Path | None = None
    if how == "flo":
        path = save_flows(tmp_path / "flow", flows)
    elif how == "npy":
        path = tmp_path / "flow.npy"
        np.save(path, stacked)
    elif how == "zarr":
        path = save_store(tmp_path / "flow.zarr", flow=stacked)
    else:
        arrays = {kind: own.stack(kind) for kind in ("frames", "predictions")}
        given = save_store(tmp_path / "v.zarr", own.names, flow=stacked, **arrays)
    same(run(given, flow="file", flow_path=path), oracle)


def test_presets_and_choices_are_named(tmp_path: Path) -> None:
    save_folder(tmp_path, video(seed=14))
    report = run(tmp_path, definition="vspw")
    said = report.settings["temporal"]
    assert (said["definition"], said["grid"], said["average"], said["absent"]) == (
        "vspw", "previous", "pooled", "current",
    )  # fmt: skip
    results = report.results["temporal"]
    assert results["mtc"] == results["mtc_pooled"]


def test_float64_flow_is_not_rounded_before_its_pixel_is_found(tmp_path: Path) -> None:
    """p + w just below a half belongs to the pixel before; float32 would round it up."""
    ids = np.tile(np.arange(8) % 2, (2, 8, 1)).astype(np.uint8)
    frames = np.random.default_rng(0).integers(0, 255, (2, 8, 8, 3)).astype(np.uint8)
    flow = np.zeros((1, 8, 8, 2))
    flow[..., 0] = 0.5 - 1e-9
    store = save_store(tmp_path / "v.zarr", frames=frames, predictions=ids, flow=flow)
    report = uqeval.evaluate(video=store, metrics={"tc": {"flow": "file"}}, workers=1)
    assert report.results["temporal"]["mtc"] == 1.0


def test_each_model_has_its_own_void_id(tmp_path: Path) -> None:
    own = video(seed=8)
    frames = save_images(tmp_path / "frames", own.frames)
    paths = []
    for name, void in (("a", 1), ("b", 2)):
        arrays = {"predictions": own.stack("predictions") % 4}
        attributes = {"names": own.names, "ignore_index": void}
        paths.append(str(save(tmp_path / f"{name}.zarr", arrays, attributes)))
    both = run(frames, paths, states=tmp_path / "both.states.zip")
    assert [own["ignore_index"] for own in both.settings.values()] == [1, 2]
    for key, path in zip(both.settings, paths, strict=True):
        alone = run(frames, path)
        assert alone.settings["temporal"] == both.settings[key]
    for void in (1, 2):
        called = {"model": "a"} if void == 1 else {"model": "b"}
        refuse_other_void(both, void, TemporalSettings(), **called)
        with pytest.raises(UsageError, match=f"void id of the report is {void}, and this command"):
            refuse_other_void(both, 255, TemporalSettings(), **called)
    files = [tmp_path / f"{k}.states.zip" for k in range(2)]
    first, second = (
        run(frames, path, states=file) for path, file in zip(paths, files, strict=True)
    )
    with pytest.raises(UsageError, match=r"the void id .* of predictions.*: 1 and 2"):
        merge(files)
    difference = first_other_setting(first, second, "temporal")
    assert difference is not None
    assert difference[:3] == ("ignore_index of predictions", 1, 2)
    for void in (200, 201):  # the same pixels are void
        ids = np.where(own.stack("predictions") == 255, void, own.stack("predictions"))
        attributes = {"names": own.names, "ignore_index": void}
        save(tmp_path / f"{void}.zarr", {"predictions": ids.astype(np.uint8)}, attributes)
    first, second = (run(frames, str(tmp_path / f"{void}.zarr"), classes=4) for void in (200, 201))
    assert first.items[0]["temporal"]["coverage"] < 1
    assert first_other_setting(first, second, "temporal") is None


def test_runs_of_one_model_under_other_names_are_joined(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        own = video(numbered(3, name), seed=8)
        save_images(tmp_path / name / "frames", own.frames)
        models = [save_images(tmp_path / name / f"{m}_{name}", own.predictions) for m in "ab"]
        for count in (1, 2):
            files.append(tmp_path / f"{name}{count}.states.zip")
            run(tmp_path / name, [str(m) for m in models[:count]], states=files[-1])
    assert len(merge(files[::2]).items) == 4
    with pytest.raises(UsageError, match="differ in models"):
        merge(files[1::2])
