"""`uqeval tc`, the real executable: known answers by saved flow, messages, refused inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import zarr
from command import Outcome, obey_modes, refused, run_uqeval, run_well
from gate_units import checked, verdict
from PIL import Image
from small_videos import Video, numbered, save_flows, save_folder, save_images, save_store, video


def strict(constant: str) -> None:
    raise ValueError(constant)


def report_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text, parse_constant=strict)
    return found


def results(*arguments: str | Path, **options: Any) -> dict[str, Any]:
    """The section `temporal` of a run that ends well."""
    found: dict[str, Any] = report_of(run_well("tc", *arguments, "-o", "-", **options).stdout)
    return found["results"]["temporal"]  # type: ignore[no-any-return]


def scene(ids: Any, **flows: Any) -> Callable[[Path], Path]:
    """A store of still grey frames with these ids and flows."""

    def save(path: Path) -> Path:
        stack = np.asarray(ids, np.uint8)
        frames = np.full((*stack.shape, 3), 100, np.uint8)
        arrays = {key: np.asarray(flow, np.float32) for key, flow in flows.items()}
        return save_store(path, frames=frames, predictions=stack, **arrays)

    return save


def constant(size: tuple[int, int], dx: float, dy: float = 0.0) -> Any:
    return np.broadcast_to(np.float32([dx, dy]), (*size, 2)).copy()


def judged(path: Path, save: Callable[[Path], Path], *options: str | Path) -> dict[str, Any]:
    return results(save(path / "s.zarr"), "--flow", "file", *options)


# ---- geometry: T1 … T11 of the notes


def test_t1_a_border_that_moves(tmp_path: Path) -> None:
    column = np.arange(100)
    ids = [np.tile(column >= edge, (10, 1)) for edge in (50, 55)]
    right = judged(tmp_path, scene(ids, flow=[constant((10, 100), -5)]))
    assert (right["mtc"], right["coverage"], right["out_of_frame"]) == (1.0, 0.95, 0.05)
    assert right["mtc_no_warp"] == pytest.approx((50 / 55 + 45 / 50) / 2)
    (tmp_path / "w").mkdir()
    wrong = judged(tmp_path / "w", scene(ids, flow=[constant((10, 100), 5)]))
    assert wrong["mtc"] == pytest.approx((45 / 55 + 40 / 50) / 2)
    (tmp_path / "x").mkdir()
    swapped = judged(tmp_path / "x", scene(ids, flow=[constant((10, 100), 0, -5)]))
    assert swapped["mtc"] == pytest.approx(0.9045455, abs=1e-7)


def square() -> tuple[Any, Any, Any]:
    """Ids of T2, the flow to the frame before and the flow to the frame after."""
    ids, back, forward = np.zeros((2, 100, 100)), constant((100, 100), 0), constant((100, 100), 0)
    ids[0, 40:60, 40:60] = ids[1, 40:60, 45:65] = 1
    back[40:60, 45:65, 0], forward[40:60, 40:60, 0] = -5, 5
    return ids, back, forward


def test_t2_a_square_that_uncovers_what_was_behind_it(tmp_path: Path) -> None:
    ids, back, forward = square()
    found = judged(tmp_path, scene(ids, flow=[back], flow_forward=[forward]), "--occlusion", "fb")
    assert found["mtc"] == pytest.approx((400 / 500 + 9500 / 9600) / 2)
    assert found["occluded"]["mtc"] == 1.0
    assert found["occluded"]["coverage"] == pytest.approx(0.99)
    assert found["mtc_no_warp"] == pytest.approx(0.7896907, abs=1e-7)
    (tmp_path / "w").mkdir()
    wrong = judged(tmp_path / "w", scene(ids, flow=[forward]))
    assert wrong["mtc"] == pytest.approx((200 / 500 + 9500 / 9800) / 2)
    (tmp_path / "n").mkdir()
    negated = judged(tmp_path / "n", scene(ids, flow=[-forward]))
    assert negated["mtc"] == pytest.approx(0.8698454, abs=1e-7)


def zoomed(shape: str) -> tuple[Any, Any, Any]:
    """T3 and T4: a square or a ring that grows by 5/4 around the middle pixel."""
    y, x = np.mgrid[:201, :201] - 100.0
    r = np.maximum(abs(x), abs(y))
    if shape == "square":
        ids = np.stack([r <= 40, r <= 50])
    else:
        ids = np.stack([(r >= 60) & (r <= 64), (r >= 75) & (r <= 80)])
    p = np.stack([x, y], -1)
    return ids, -p * (1 - 1 / 1.25), p * 0.25


@pytest.mark.parametrize(
    ("shape", "wrong", "negated"),
    [("square", 0.5693663, 0.9130638), ("ring", 0.3976891, 0.4585487)],
)
def test_t3_t4_zoom(tmp_path: Path, shape: str, wrong: float, negated: float) -> None:
    ids, back, forward = zoomed(shape)
    expected = {"right": (back, 1.0), "wrong": (forward, wrong), "negated": (-forward, negated)}
    for name, (flow, mtc) in expected.items():
        (tmp_path / name).mkdir()
        found = judged(tmp_path / name, scene(ids, flow=[flow]))
        assert found["mtc"] == pytest.approx(mtc, abs=1e-7), name


@pytest.mark.parametrize(("dx", "after", "coverage"), [
    (0.5, [1, 2, 3, 4, 5, 6, 7, 0], 7 / 8), (-0.5, range(8), 1.0),
])  # fmt: skip
def test_t5_half_a_pixel_goes_up(tmp_path: Path, dx: float, after: Any, coverage: float) -> None:
    ids = [np.arange(8)[None], np.array(after)[None]]
    found = judged(tmp_path, scene(np.repeat(ids, 3, 1), flow=[constant((3, 8), dx)]))
    assert (found["mtc"], found["coverage"]) == (1.0, coverage)


@pytest.mark.parametrize("size", [(16, 20), (15, 21), (7, 30)])
def test_t6_no_motion(tmp_path: Path, size: tuple[int, int]) -> None:
    ids = np.random.default_rng(0).integers(0, 5, size)
    found = judged(tmp_path, scene([ids, ids], flow=[constant(size, 0)]))
    assert (found["mtc"], found["mtc_pooled"], found["coverage"]) == (1.0, 1.0, 1.0)


def test_t7_no_third_label_appears(tmp_path: Path) -> None:
    ids = np.tile(np.where(np.arange(20) < 10, 0, 18), (6, 1))
    found = judged(tmp_path, scene([ids, ids], flow=[constant((6, 20), 0.49)]))
    assert [row["class"] for row in found["per_class"]] == [0, 18]


@pytest.mark.parametrize("kind", ["flo", "kitti"])
def test_t8_unknown_flow_is_not_counted(tmp_path: Path, kind: str) -> None:
    own = video(numbered(2), seed=1, size=(20, 30))
    save_folder(tmp_path / "v", own)
    flow = constant((20, 30), 0)
    if kind == "flo":
        flow[:5], flow[5:10, :, 1] = 1e10, np.nan
        save_flows(tmp_path / "flow", {own.names[1]: flow})
    else:
        encoded = np.full((20, 30, 3), 2**15, np.uint16)
        encoded[..., 0] = 1
        encoded[:10, :, 0] = 0
        (tmp_path / "flow").mkdir()
        cv2.imwrite(str(tmp_path / "flow" / f"{own.names[1]}.png"), encoded)
    found = results(tmp_path / "v", "--flow", "file", "--flow-path", tmp_path / "flow")
    void = (own.stack("predictions")[:, 10:] == 255).any(0).sum()
    assert found["coverage"] == pytest.approx((300 - void) / 600)


@pytest.mark.parametrize("flow", ["farneback", "dis", "dis:fast"])
def test_t9_an_estimator_finds_a_shift(tmp_path: Path, flow: str) -> None:
    rng = np.random.default_rng(0)
    texture = cv2.GaussianBlur(rng.random((140, 180)), (0, 0), 2)
    texture = ((texture - texture.min()) / np.ptp(texture) * 255).astype(np.uint8)
    coarse = np.kron(rng.integers(0, 4, (7, 9)), np.ones((20, 20), int)).astype(np.uint8)
    ends = ((10, 10), (7, 3))  # content moves by (+7, +3)
    frames, ids = (
        [image[y : y + 120, x : x + 160] for y, x in ends] for image in (texture, coarse)
    )
    names = numbered(2)
    own = Video(
        {n: np.repeat(f[..., None], 3, -1) for n, f in zip(names, frames, strict=True)},
        dict(zip(names, ids, strict=True)), {},
    )  # fmt: skip
    found = results(save_folder(tmp_path, own), "--flow", flow)
    assert found["mtc"] > 0.94 and found["mtc_no_warp"] < 0.8
    assert found["mse_warp"] < found["mse_identity"] / 20
    assert found["flow_median"] == pytest.approx(np.hypot(7, 3), abs=0.2)


def test_t10_a_class_that_vanishes_counts_as_0(tmp_path: Path) -> None:
    ids = np.zeros((2, 4, 6))
    ids[0, 0, 0] = 3
    found = judged(tmp_path, scene(ids, flow=[constant((4, 6), 0)]))
    assert found["mtc"] == pytest.approx((23 / 24 + 0) / 2)
    assert [(row["class"], row["iou"]) for row in found["per_class"]] == [(0, 23 / 24), (3, 0.0)]
    assert found["per_class"][1]["pixels"] == 0


def test_t11_constant_maps_have_no_correlation(tmp_path: Path) -> None:
    own = video(seed=2)
    still = {name: np.zeros_like(ids) for name, ids in own.predictions.items()}
    save_folder(tmp_path, Video(own.frames, still, own.labels), labels=True)
    found = results(tmp_path)
    assert found["mtc"] == 1.0
    assert found["correlation"]["r"] is None
    assert "TC_t is constant" in found["correlation"]["r_reason"]


# ---- tracks


def tracked(path: Path, ids: Any, *options: str, **flows: Any) -> dict[str, Any]:
    size = np.shape(ids)[1:]
    still = [constant(size, 0)] * (len(ids) - 1)
    saved = scene(ids, **({"flow": still, "flow_forward": still} | flows))
    found: dict[str, Any] = judged(path, saved, "--tracks", "--track-everywhere", *options)
    return found["tracks"]  # type: ignore[no-any-return]


def test_tracks_of_a_still_scene(tmp_path: Path) -> None:
    ids = np.zeros((5, 64, 64))
    found = tracked(tmp_path, ids)
    assert (found["consistency"], found["tracks"], found["mean_length"]) == (1.0, 49, 5.0)


def test_a_block_that_changes_its_label(tmp_path: Path) -> None:
    ids = np.zeros((5, 64, 64))
    ids[2, 16:32, 16:32] = 1
    found = tracked(tmp_path, ids)
    assert found["tracks"] == 49 and found["consistency"] == pytest.approx(45 / 49)


def test_tracks_stop_where_flow_and_flow_back_disagree(tmp_path: Path) -> None:
    ids, back, forward = square()
    found = tracked(tmp_path, ids, flow=[back], flow_forward=[forward])
    assert found["consistency"] == 1.0 and found["tracks"] > 80


def test_tracks_that_leave_the_frame_are_not_counted(tmp_path: Path) -> None:
    ids = np.zeros((2, 64, 64))
    size = (64, 64)
    far = [constant(size, 100)]
    found = tracked(tmp_path, ids, flow=[-far[0]], flow_forward=far)
    assert found["tracks"] == 0 and found["consistency"] is None
    assert found["consistency_reason"]


# ---- what it tells


def test_flow_the_wrong_way_is_told_loudly(tmp_path: Path) -> None:
    own = video(seed=3)
    save_folder(tmp_path / "v", own)
    grey = {n: cv2.cvtColor(f, cv2.COLOR_RGB2GRAY) for n, f in own.frames.items()}
    flows: dict[str, dict[str, Any]] = {"right": {}, "wrong": {}}
    for a, b in zip(own.names, own.names[1:], strict=False):
        for kind, (start, end) in {"right": (b, a), "wrong": (a, b)}.items():
            flows[kind][b] = cv2.calcOpticalFlowFarneback(
                grey[start], grey[end], None, 0.5, 3, 15, 3, 5, 1.2, 0
            )
    texts = {}
    for kind, found in flows.items():
        path = save_flows(tmp_path / kind, found)
        run = run_well("tc", tmp_path / "v", "--flow", "file", "--flow-path", path)
        texts[kind] = " ".join(run.stderr.split())
    assert texts["right"] == ""
    assert "no better with the flow than without it, over the 4 moving pairs" in texts["wrong"]
    scaled = save_flows(tmp_path / "scaled", {n: 5 * f for n, f in flows["right"].items()})
    run = run_well("tc", tmp_path / "v", "--flow", "file", "--flow-path", scaled)
    assert "frames match no better" in run.stderr
    estimated = results(tmp_path / "v")
    from_files = results(tmp_path / "v", "--flow", "file", "--flow-path", tmp_path / "right")
    for name in ("mtc", "mse_warp", "coverage"):
        assert estimated[name] == from_files[name]


def test_tables_show_models_flows_and_variants(tmp_path: Path) -> None:
    own = video(seed=4)
    save_folder(tmp_path / "v", own)
    other = save_images(tmp_path / "other", own.labels)
    text = run_well(
        "tc", tmp_path / "v", tmp_path / "v" / "predictions", other, "--flow", "dis:fast",
        "--flow", "farneback", "--average", "pairs", "--average", "pooled",
    ).stdout  # fmt: skip
    table = text.split("How well")[0]
    assert table.count("farneback") >= 4 and table.count("other") >= 4
    assert "average=pooled" in table
    assert "s per pair" in text
    assert "\nBy class (temporal: predictions)" in text
    assert "\nMain score: mTC of predictions is" in text
    one = run_well("tc", tmp_path / "v", "--flow", "dis:fast", "--flow", "farneback").stdout
    assert "\nBy class (temporal)" in one and "\nMain score: mTC is" in one


def test_several_values_of_a_choice_make_variants(tmp_path: Path) -> None:
    save_folder(tmp_path / "v", video(seed=4))
    several = ("--grid", "current", "--grid", "previous", "--definition", "paper")
    run = run_well("tc", tmp_path / "v", *several, "--definition", "vspw", "--format", "json")
    report = json.loads(run.stdout)
    found = {
        (own["grid"], own["definition"]): report["results"][key]["mtc"]
        for key, own in report["settings"].items()
    }
    assert len(found) == 4
    one = ("--grid", "previous", "--definition", "vspw", "--format", "json")
    alone = json.loads(run_well("tc", tmp_path / "v", *one).stdout)
    assert found["previous", "vspw"] == alone["results"]["temporal"]["mtc"]


@pytest.mark.parametrize("named", [False, True])
def test_ids_of_16_bits_and_palettes(tmp_path: Path, named: bool) -> None:
    own = video(seed=5)
    save_folder(tmp_path / "v", own)
    expected = results(tmp_path / "v", "--classes", "4")
    other = tmp_path / "other"
    other.mkdir()
    for name, ids in own.predictions.items():
        if named:
            image = Image.fromarray(ids)
            image.putpalette([(7 * i) % 256 for i in range(768)])
        else:
            image = Image.fromarray(ids.astype(np.uint16))
        image.save(other / f"{name}.png")
    found = results(tmp_path / "v", other, "--classes", "4")
    assert {**found, "model": ""} == {**expected, "model": ""}


def test_odd_names(tmp_path: Path) -> None:
    own = video(seed=6)
    odd = [f"città/a b=[1] 'x'&<i>_{k}" for k in range(5)]
    save_folder(tmp_path / "v ö", own.renamed(odd))
    outcome = run_well("tc", "v ö", "-o", "r.json", "--csv", "r.csv", cwd=tmp_path)
    assert outcome.stderr == ""
    report = report_of((tmp_path / "r.json").read_text("utf-8"))
    assert [item["name"] for item in report["items"]] == odd[1:]
    assert (tmp_path / "r.csv").read_text("utf-8").count("\n") == 5
    assert run_well("select", "r.json", cwd=tmp_path).stdout


def test_labels_of_some_frames(tmp_path: Path) -> None:
    own = video(seed=7)
    save_folder(tmp_path / "v", own)
    some = save_images(tmp_path / "l", {n: own.labels[n] for n in own.names[1:4]})
    run = run_well("tc", tmp_path / "v", "--labels", some, "-o", "-")
    assert "2 of 5 frames have no labels" in " ".join(run.stderr.split())
    report = report_of(run.stdout)
    found = report["results"]["temporal"]
    assert found["correlation"]["pairs"] == 3
    assert report["items"][-1]["temporal"]["miou"] is None
    assert "no labels" in report["items"][-1]["temporal"]["miou_reason"]
    mious = [item["temporal"]["miou"] for item in report["items"][:3]]
    assert found["miou_mean"] == pytest.approx(np.mean(mious))
    few = save_images(tmp_path / "few", {n: own.labels[n] for n in own.names[1:3]})
    found = results(tmp_path / "v", "--labels", few)
    assert found["correlation"]["r"] is None and "takes 3" in found["correlation"]["r_reason"]


def test_labels_in_the_store_of_the_frames(tmp_path: Path) -> None:
    """They count as those of a folder do, with predictions inside the store or apart."""
    own = video(seed=7)
    save_folder(tmp_path / "v", own, labels=True)
    expected = results(tmp_path / "v")
    assert expected["correlation"]["against"] == "labels"
    kinds = {"frames": own.stack("frames"), "labels": own.stack("labels")}
    ids = {"predictions": own.stack("predictions")}
    apart = save_store(tmp_path / "apart.zarr", own.names, **kinds)
    predictions = save_store(tmp_path / "p.zarr", own.names, **ids)
    inside = save_store(tmp_path / "inside.zarr", own.names, **kinds, **ids)
    for paths in ((apart, predictions), (apart, tmp_path / "v" / "predictions"), (inside,)):
        assert {**results(*paths), "model": ""} == {**expected, "model": ""}
    new_names = tmp_path / "names.txt"
    new_names.write_text("\n".join(f"n_{i}" for i in range(5)))
    nameless = save_store(tmp_path / "nameless.zarr", **ids)
    found = results(apart, nameless, "--names", new_names)
    assert found["miou_mean"] == expected["miou_mean"]
    run_well("run", predictions, "--video", apart, "-o", "out", cwd=tmp_path)
    report = report_of((tmp_path / "out" / "p.json").read_text())
    assert report["results"]["temporal"]["miou_mean"] == expected["miou_mean"]
    other = tmp_path / "other_size.zarr"
    save_store(other, own.names, frames=kinds["frames"], labels=kinds["labels"][:, 1:])
    refused(run_uqeval("tc", other, predictions), "labels are 35×48", "the frame is 36×48")
    save_store(other, own.names, frames=kinds["frames"], labels=kinds["labels"][1:])
    refused(run_uqeval("tc", other, predictions), "'frames' has 5 items and 'labels' has 4")


def test_labels_in_a_store_of_predictions_are_not_read(tmp_path: Path) -> None:
    own = video(seed=7)
    frames = save_images(tmp_path / "v", own.frames)
    labelled = save_store(
        tmp_path / "p.zarr", own.names, predictions=own.stack("predictions"),
        labels=own.stack("labels"),
    )  # fmt: skip
    run = run_well("tc", frames, labelled, "-o", "-")
    assert "p.zarr: its array `labels` is not read" in " ".join(run.stderr.split())
    assert "miou_mean" not in report_of(run.stdout)["results"]["temporal"]
    run = run_well("tc", frames, labelled, "--labels", labelled, "-o", "-")
    assert run.stderr == "" and report_of(run.stdout)["results"]["temporal"]["miou_mean"] > 0.5


def test_flow_in_the_store_that_is_not_read(tmp_path: Path) -> None:
    own = video(seed=7)
    store = save_store(
        tmp_path / "v.zarr", own.names, frames=own.stack("frames"),
        predictions=own.stack("predictions"), flow=np.zeros((4, 36, 48, 2), np.float32),
    )  # fmt: skip
    said = "v.zarr: its saved flow is not read"
    shown = " ".join(run_well("tc", store).stderr.split())
    assert shown.count(said) == 1 and shown.endswith("To use it, give --flow file.")
    shown = " ".join(run_well("run", "--video", store, "-o", "out", cwd=tmp_path).stderr.split())
    assert shown.count(said) == 1 and shown.endswith("give uqeval tc --flow file.")
    for flow in ("file", "farneback"):
        assert said not in " ".join(run_well("tc", store, "--flow", flow).stderr.split())


def test_pseudo_labels_are_called_so(tmp_path: Path) -> None:
    own = video(seed=8)
    save_folder(tmp_path / "v", own)
    better = save_images(tmp_path / "better", own.labels)
    found = results(tmp_path / "v", "--pseudo-labels", better)
    assert found["correlation"]["against"] == "pseudo-labels"
    copied = save_images(tmp_path / "copied", own.predictions)
    found = results(tmp_path / "v", "--pseudo-labels", copied)
    assert found["correlation"]["r"] is None
    assert "mIoU_t is constant" in found["correlation"]["r_reason"] or found["miou_mean"] < 1


def test_ids_are_resized_only_if_that_is_wished(tmp_path: Path) -> None:
    own = video(seed=9)
    halves = {name: ids[::2, ::2] for name, ids in own.predictions.items()}
    save_folder(tmp_path / "v", Video(own.frames, halves, {}))
    refused(run_uqeval("tc", tmp_path / "v"), "18×24", "36×48", "--resize nearest")
    found = results(tmp_path / "v", "--resize", "nearest")
    doubled = {name: np.kron(ids, np.ones((2, 2), np.uint8)) for name, ids in halves.items()}
    again = save_images(tmp_path / "predictions", doubled)
    assert {**found, "model": ""} == {**results(tmp_path / "v", again), "model": ""}


def test_predictions_of_no_frame_are_told(tmp_path: Path) -> None:
    save_folder(tmp_path / "v", video(seed=9))
    (tmp_path / "v" / "frames" / "v_002.png").unlink()
    run = run_well("tc", tmp_path / "v", "-o", "-")
    told = " ".join(run.stderr.split())
    assert "1 prediction file belongs to no item: v_002.png" in told
    assert "1 gap in the frame numbers" in told
    assert report_of(run.stdout)["results"]["temporal"]["pairs"] == 2


# ---- what it refuses

Damage = Callable[[Path, Video], Any]


def unlink(*files: str) -> Damage:
    return lambda path, _: [(path / "v" / file).unlink() for file in files]


def cut(file: str, keep: int = 100) -> Damage:
    def damage(path: Path, _: Video) -> None:
        whole = (path / "v" / file).read_bytes()
        (path / "v" / file).write_bytes(whole[:keep])

    return damage


def image(file: str, change: Callable[[Any], Any]) -> Damage:
    def damage(path: Path, _: Video) -> None:
        at = path / "v" / file
        Image.fromarray(change(np.array(Image.open(at)))).save(at)

    return damage


def nothing(path: Path, own: Video) -> None:
    pass


def twice(path: Path, own: Video) -> None:
    Image.fromarray(own.frames["v_001"]).save(path / "v" / "frames" / "v_01.png")


def flow_of(size: tuple[int, int], names: slice = slice(1, None)) -> Damage:
    def save(path: Path, own: Video) -> None:
        save_flows(path / "flow", {n: constant(size, 0) for n in own.names[names]})

    return save


def unnumbered(path: Path, own: Video) -> None:
    for kind in ("frames", "predictions"):
        for k, name in enumerate(own.names):
            (path / "v" / kind / f"{name}.png").rename(path / "v" / kind / f"{'abcde'[k]}.png")


FROM_FILE = ("--flow", "file", "--flow-path", "flow")
BAD: dict[str, tuple[Damage, tuple[str, ...], tuple[str, ...]]] = {
    "frame without prediction": (
        unlink("predictions/v_002.png"), (), ("1 of 5 items have no prediction: v_002",)),
    "one frame": (unlink(*(f"frames/v_00{k}.png" for k in range(4))), (), ("1 frame", "two")),
    "no frame": (unlink(*(f"frames/v_00{k}.png" for k in range(5))), (), ("holds no images",)),
    "a number twice": (twice, (), ("'v_001' and 'v_01' are both frame 1",)),
    "no numbers": (unnumbered, (), ("have no number in their names", "--names")),
    "frame cut short": (cut("frames/v_003.png"), (), ("frames/v_003.png", "cut short")),
    "empty frame": (cut("frames/v_003.png", 0), (), ("frames/v_003.png",)),
    "prediction cut short": (cut("predictions/v_003.png"), (), ("predictions/v_003.png",)),
    "RGB prediction": (
        image("predictions/v_001.png", lambda a: np.stack([a] * 3, -1)), (), ("is RGB",)),
    "frames of two sizes": (
        image("frames/v_004.png", lambda a: a[:30]), (), ("v_004", "30×48", "36×48")),
    "prediction of another size": (
        image("predictions/v_001.png", lambda a: a[:30]), (), ("v_001", "--resize nearest")),
    "ids beyond the classes": (nothing, ("--classes", "2"), ("outside the 2 classes", "v_000")),
    "16 bits": (
        image("predictions/v_001.png", lambda a: a.astype(np.uint16)), (), ("give --classes",)),
    "flow of another size": (flow_of((30, 48)), FROM_FILE, ("30×48", "36×48", "v_001.flo")),
    "flow of some pairs": (flow_of((36, 48), slice(2, None)), FROM_FILE, ("optical flow", "v_001")),
    "no flow": (nothing, ("--flow", "file"), ("--flow-path",)),
    "no forward flow": (
        flow_of((36, 48)), (*FROM_FILE, "--occlusion", "fb"), ("--flow-forward-path",)),
    "flow that nobody takes": (flow_of((36, 48)), FROM_FILE[2:], ("--flow file",)),
    "unknown flow": (nothing, ("--flow", "farnback"), ("Did you mean farneback?",)),
    "unknown preset": (nothing, ("--flow", "dis:slow"), ("dis:ultrafast",)),
    "unknown parameter": (nothing, ("--flow", "farneback:win=3"), ("winsize",)),
    "parameter out of range": (nothing, ("--flow", "farneback:winsize=0"), ("from 1 to 999",)),
    "scale": (nothing, ("--flow-scale", "3"), ("--flow-scale 3.0",)),
    "too small for dis": (nothing, ("--flow", "dis", "--flow-scale", "0.1"), ("at least 16×16",)),
    "cache that is a file": (
        lambda p, _: (p / "cache").write_text(""), ("--flow-cache", "cache"),
        ("cannot be written there",)),
    "pseudo-labels that are the predictions": (
        nothing, ("--pseudo-labels", "v/predictions"), ("the evaluated predictions",)),
    "both kinds of labels": (
        nothing, ("--labels", "l", "--pseudo-labels", "p"), ("give one",)),
    "labels that are not there": (nothing, ("--labels", "l"), ("there is nothing here",)),
    "a model twice": (nothing, ("v/predictions", "v/predictions/"), ("given twice",)),
    "all classes, nobody says how many": (nothing, ("--absent", "zero"), ("--classes",)),
    "choices of tracks without tracks": (nothing, ("--track-step", "4"), ("--tracks",)),
    "track of one frame": (nothing, ("--tracks", "--track-length", "1"), ("--track-length 1",)),
    "least pixels": (nothing, ("--least-pixels", "-1"), ("--least-pixels -1",)),
    "limit": (nothing, ("--limit", "0"), ("--limit 0",)),
}  # fmt: skip


def leaves_nothing(path: Path, *arguments: str | Path, **options: Any) -> Outcome:
    """Assert that `uqeval tc ARGUMENTS` writes none of its outputs; returns how it ended."""
    out = path / "out"
    out.mkdir()
    outcome = run_uqeval(
        "tc", *arguments, "-o", out / "r.json", "--csv", out / "r.csv", cwd=path, **options
    )  # fmt: skip
    assert not list(out.iterdir())
    return outcome


@pytest.mark.parametrize("what", BAD)
def test_it_says_what_is_wrong(tmp_path: Path, what: str) -> None:
    damage, options, words = BAD[what]
    own = video()
    save_folder(tmp_path / "v", own)
    damage(tmp_path, own)
    message = refused(leaves_nothing(tmp_path, "v", *options), *words)
    assert message.startswith("uqeval: ") and message.count("uqeval: ") == 1


def test_frames_without_a_neighbour_are_named(tmp_path: Path) -> None:
    """Alone in their sequence, or between two gaps."""
    own = np.zeros((6, 4, 4), np.uint8)
    names = ["a_1", "a_2", "b_1", "c_1", "c_2", "c_5"]
    store = save_store(
        tmp_path / "s.zarr", frames=np.stack([own] * 3, -1), predictions=own, names=names
    )
    assert (
        "2 of 6 frames have no neighbour in their sequence, so they are in no pair: b_1, c_5. A "
        "sequence is a folder and a name without its last number"
    ) in " ".join(run_well("tc", store, "-o", tmp_path / "r.json").stderr.split())


@pytest.mark.parametrize("mode", ["L", "P"])
@pytest.mark.parametrize("known", [(), ("--classes", "4")])
def test_ids_given_as_frames_are_told(tmp_path: Path, mode: str, known: tuple[str, ...]) -> None:
    own = video()
    ids = tmp_path / "ids"
    ids.mkdir()
    for name, image in own.predictions.items():
        saved = Image.fromarray(image)
        if mode == "P":
            saved.putpalette([value for value in range(256) for _ in range(3)])
        saved.save(ids / f"{name}.png")
    told = run_well("tc", ids, ids, *known, "-o", tmp_path / "r.json").stderr
    assert "v_004.png looks like an image of class ids" in told
    assert "looks like" in " ".join(json.loads((tmp_path / "r.json").read_text())["warnings"])


def test_grey_frames_are_no_ids(tmp_path: Path) -> None:
    own = video()
    folder = save_folder(tmp_path / "v", own)
    for name, image in own.frames.items():
        Image.fromarray(image[..., 0]).save(folder / "frames" / f"{name}.png")
    assert "looks like" not in run_well("tc", folder, "-o", tmp_path / "r.json").stderr


def test_video_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.avi").write_text("no film")
    for video_, word in (("x.avi", "OpenCV finds no video"), ("none", "there is nothing here")):
        refused(run_uqeval("tc", video_, cwd=tmp_path), video_, word)
    save_images(tmp_path / "v" / "frames", video().frames)
    refused(run_uqeval("tc", "v", cwd=tmp_path), "has no folder `predictions`")


def test_video_that_ends_early(tmp_path: Path) -> None:
    own = video(numbered(20, "", 1), size=(48, 64))
    path = tmp_path / "film.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for frame in own.frames.values():
        writer.write(frame)
    writer.release()
    preds = save_store(tmp_path / "p.zarr", predictions=own.stack("predictions"))
    run_well("tc", path, preds)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    refused(leaves_nothing(tmp_path, path, preds), "film.avi")


def test_chunks_that_are_not_there(tmp_path: Path) -> None:
    own = video()
    for missing in ("frames", "predictions"):
        arrays = {kind: own.stack(kind) for kind in ("frames", "predictions")}
        path = save_store(tmp_path / f"{missing}.zarr", own.names, **arrays)
        chunk = "2/0/0/0" if missing == "frames" else "2/0/0"
        (path / missing / "c" / chunk).unlink()
        refused(run_uqeval("tc", path), missing, "missing")
        run_well("tc", path, "--missing-chunks", "fill")


def test_stores_of_other_lengths(tmp_path: Path) -> None:
    own = video()
    save_images(tmp_path / "v" / "frames", own.frames)
    short = save_store(tmp_path / "p.zarr", predictions=own.stack("predictions")[:4])
    refused(run_uqeval("tc", tmp_path / "v", short), "4 predictions for 5 frames")
    flow = save_store(tmp_path / "f.zarr", flow=np.zeros((5, 36, 48, 2), np.float32))
    whole = save_store(tmp_path / "w.zarr", own.names, predictions=own.stack("predictions"))
    refused(
        run_uqeval("tc", tmp_path / "v", whole, "--flow", "file", "--flow-path", flow),
        "flow of 5 pairs, but 5 frames make 4",
    )


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    save_folder(tmp_path / "v", video())
    (tmp_path / "cache").mkdir(mode=0o500)
    outcome = leaves_nothing(tmp_path, "v", "--flow-cache", "cache", preexec_fn=obey_modes)
    refused(outcome, "cannot be written there")


def test_names_come_from_the_store(tmp_path: Path) -> None:
    own = video(["b_2", "b_1", "a_1", "a_2"], seed=3)
    arrays = {kind: own.stack(kind) for kind in ("frames", "predictions")}
    store = save_store(tmp_path / "s.zarr", own.names, **arrays)
    report = report_of(run_well("tc", store, "-o", "-").stdout)
    assert [item["name"] for item in report["items"]] == ["a_2", "b_2"]
    group = zarr.open_group(store)
    del group.attrs["names"]
    names = tmp_path / "names.txt"
    names.write_text("\n".join(own.names))
    again = report_of(run_well("tc", store, "-o", "-", "--names", names).stdout)
    assert again["items"] == report["items"]


def test_gate_on_pairs_of_a_video(tmp_path: Path) -> None:
    pairs = 23
    save_folder(tmp_path / "film", video(numbered(pairs + 1), 3, (32, 48)))
    run_well("tc", "film", "--ci", "0.95", "-q", "-o", "v0.json", cwd=tmp_path)
    record = json.loads((tmp_path / "v0.json").read_text())
    names = [item["name"] for item in record["items"]]
    values = np.array([item["temporal"]["tc"] for item in record["items"]])
    own = record["intervals"]["temporal.mtc"]
    assert own["method"] == "batch-means" and own["units"]["name"] == "batch"
    limit = round(own["low"] + 0.2 * (float(values.mean()) - own["low"]), 6)
    rule = f"temporal.mtc: {{min: {limit}, confidence: 0.95}}"
    found = verdict(tmp_path / "v0.json", tmp_path, rule)
    count = found["units"]["drawn"]
    batches = [i * count // pairs for i in range(pairs)]
    checked(found, pairs, lambda items: float(values[list(items)].mean()), names, batches, limit)
    assert found["more_units"]["unit"] == "pair"
    assert found["units"]["effective"] == own["effective"]

    # Groups may not cut the sequence.
    rows = [f"{name},{i % 2}" for i, name in enumerate(names)]
    (tmp_path / "meta.csv").write_text("name,half\n" + "\n".join(rows) + "\n")
    done = run_uqeval("tc", "film", "--ci", "0.95", "--slices", "meta.csv", "--group-by", "half",
                      "-o", "cut.json", cwd=tmp_path)  # fmt: skip
    refused(done, "--group-by puts pairs of the sequence", "Use groups of whole sequences")
    assert not list(tmp_path.glob("cut*"))
