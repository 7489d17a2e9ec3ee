"""An input option that changes nothing for the given data is an error, and all are told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused, run_forked
from PIL import Image

import uqeval
from uqeval.errors import UsageError
from uqeval.inputs import InputOptions, open_inputs

IDS = np.zeros((2, 8, 8), np.uint8)
PROBS = np.full((2, 3, 8, 8), 1 / 3, np.float32)
DATA: dict[str, dict[str, Any]] = {
    "probs": {"probs": PROBS},
    "labelled": {"probs": PROBS, "labels": IDS},
    "logits": {"logits": PROBS - 1, "labels": IDS},
    "maps": {"predictions": IDS, "entropy": PROBS[:, 0]},
    "mean_probs": {"predictions": IDS, "entropy": PROBS[:, 0], "mean_probs": PROBS},
}
OPTIONS: dict[str, Any] = {
    "nan_samples": "skip", "sum_tolerance": 0.5, "ignore_index": 7, "missing_chunks": "fill",
}  # fmt: skip
EFFECTIVE = {
    "probs": {"sum_tolerance"},
    "labelled": {"sum_tolerance", "ignore_index"},
    "logits": {"ignore_index"},
    "maps": set(),
    "mean_probs": {"sum_tolerance"},
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("data", DATA)
def test_each_option_has_an_effect_or_is_refused(tmp_path: Path, data: str, name: str) -> None:
    path = str(tmp_path / "p.npz")
    np.savez(path, **DATA[data])
    options = InputOptions(classes=PROBS.shape[1], **{name: OPTIONS[name]})
    if name in EFFECTIVE[data]:
        open_inputs(path, None, options)
        return
    with pytest.raises(UsageError, match=f"--{name.replace('_', '-')} {OPTIONS[name]} needs"):
        open_inputs(path, None, options)


def test_all_are_told_at_once(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", **DATA["maps"])
    with pytest.raises(UsageError, match=r"--nan-samples.*--sum-tolerance.*--ignore-index.*leave"):
        open_inputs(str(tmp_path / "p.npz"), None, InputOptions(classes=PROBS.shape[1], **OPTIONS))


def test_a_label_map_needs_label_files_of_a_video(tmp_path: Path) -> None:
    for folder in ("frames", "predictions"):
        (tmp_path / folder).mkdir()
        for i in range(2):
            Image.fromarray(IDS[0]).save(tmp_path / folder / f"{i}.png")
    with pytest.raises(UsageError, match="--label-map cityscapes needs a folder of label PNGs"):
        open_inputs(None, None, InputOptions(video=str(tmp_path), label_map="cityscapes"))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("video")
    flow = np.zeros((1, 32, 32, 2), np.float32)
    np.savez(root / "v.npz", frames=np.zeros((2, 32, 32, 3), "u1"), predictions=flow[..., 0].repeat(
        2, 0).astype("u1"), flow=flow)  # fmt: skip
    np.save(root / "flow.npy", flow)
    return str(root)


FLOWS = {
    "flow_path": ({"flow": "file"}, {"flow": "dis"}),
    "flow_forward_path": ({"flow": "file", "occlusion": "fb"}, {"flow": "file"}),
    "flow_cache": ({"flow": ["file", "farneback"]}, {"flow": "file"}),
}


@pytest.mark.parametrize("name", FLOWS)
def test_saved_flow_is_read_or_refused(video: str, name: str) -> None:
    used, unused = FLOWS[name]
    given = {"video": f"{video}/v.npz", name: f"{video}/flow.npy"}
    if name == "flow_cache":
        given[name] = f"{video}/cache"
    uqeval.evaluate(metrics={"tc": used}, **given)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=f"{name} needs"):
        uqeval.evaluate(metrics={"tc": unused}, **given)  # type: ignore[arg-type]


def test_flow_that_the_grid_of_the_previous_frame_does_not_read(video: str) -> None:
    given = {"video": f"{video}/v.npz", "flow_path": f"{video}/flow.npy"}
    given["flow_forward_path"] = given["flow_path"]
    for settings in ({"grid": "previous"}, {"definition": "vspw"}):
        with pytest.raises(UsageError, match="flow_path needs grid current, because"):
            uqeval.evaluate(metrics={"tc": {"flow": "file", **settings}}, **given)  # type: ignore[arg-type]


def test_a_file_refuses_unused_flow_too(video: str, tmp_path: Path) -> None:
    (tmp_path / "uqeval.yaml").write_text(
        f"stores: {{d: {{video: {video}/v.npz, flow_path: {video}/flow.npy}}}}\n"
        "evaluate: {d: {tc: {flow: farneback}}}\n"
    )
    ended = uqeval.run_config(tmp_path / "uqeval.yaml", output=str(tmp_path / "out"))
    assert "`flow_path:` needs `flow:` file" in ended.failed["d"]


@pytest.mark.parametrize("option", ["--flow-path", "--flow-forward-path"])
def test_the_command_names_the_option_that_was_typed(video: str, option: str) -> None:
    done = run_forked("tc", f"{video}/v.npz", option, f"{video}/flow.npy", cwd=Path(video))
    assert f"{option} needs --flow file" in refused(done)


def test_the_reference_may_have_what_the_predictions_lack(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", **DATA["logits"])
    np.savez(tmp_path / "q.npz", **DATA["probs"])
    logits, probs = str(tmp_path / "p.npz"), str(tmp_path / "q.npz")
    uqeval.evaluate(logits, None, "divergence", reference=probs, sum_tolerance=0.5)
    with pytest.raises(UsageError, match="sum_tolerance"):
        uqeval.evaluate(logits, None, "calibration", sum_tolerance=0.5)


def test_intervals_need_a_level(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", **DATA["labelled"])
    for options in ({"draws": 300}, {"seed": 1}):
        with pytest.raises(UsageError, match="ci=LEVEL"):
            uqeval.evaluate(str(tmp_path / "p.npz"), None, "calibration", **options)  # type: ignore[arg-type]
