"""`uqeval observe`, the real executable: existing frames, later frames, missing frames."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import zarr
from command import EXECUTABLE, TIMEOUT, environment, refused, run_forked, run_uqeval, run_well
from PIL import Image
from small_videos import VOID, numbered, video

import uqeval
from uqeval.cli import observe
from uqeval.usecases.selftest import synthetic_data

FRAMES = 5
KEYS = [
    "frame", "sequence", "tc", "tc_no_warp", "pixel_agreement", "coverage", "mse_warp",
    "mse_identity", "cut", "alarm", "latency_ms",
]  # fmt: skip


NAMES = numbered(FRAMES)
VIDEO = video(NAMES, 3, (48, 64))
IMAGES, IDS = VIDEO.stack("frames"), VIDEO.stack("predictions")
IDS[IDS == VOID] = 2  # probabilities have no void


def png(path: Path, image: Any) -> None:
    """Written whole at once, as a careful producer does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    Image.fromarray(image).save(part, format="PNG")
    part.rename(path)


def folder(path: Path, names: list[str] = NAMES) -> Path:
    for t, name in enumerate(names):
        png(path / "frames" / f"{name}.png", IMAGES[t])
        png(path / "predictions" / f"{name}.png", IDS[t])
    return path


def store(path: Path, **arrays: Any) -> Path:
    group = zarr.open_group(path, mode="w")
    for name, values in arrays.items():
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=(1, *values.shape[1:])
        )
        array[...] = values
    return path


def placed(path: Path, frames: list[str], predictions: list[str], kind: str) -> tuple[Path, Path]:
    """Frames of these names, and their predictions as files or as a store."""
    for t, name in enumerate(frames):
        png(path / "frames" / f"{name}.png", IMAGES[t])
    if kind == "store":
        made = store(path / "preds.zarr", predictions=IDS[: len(predictions)])
        zarr.open_group(made).attrs["names"] = predictions
        return path / "frames", made
    for t, name in enumerate(predictions):
        png(path / "preds" / f"{name}.png", IDS[t])
    return path / "frames", path / "preds"


def strict(constant: str) -> None:
    raise ValueError(constant)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line, parse_constant=strict) for line in text.splitlines()]


def test_ids_given_as_frames_are_told(tmp_path: Path) -> None:
    made = folder(tmp_path / "v")
    ids = made / "predictions"
    told = run_well("observe", ids, ids).stderr
    assert told.count("looks like") == 1 and told.count("the video is too short") == 1
    assert "v_001.png looks like an image of class ids" in told
    assert "looks like" not in run_well("observe", ids, ids, "-q").stderr
    assert "looks like" not in run_well("observe", made).stderr
    png(ids / "v_000.png", IMAGES[0][..., 0])  # both have to look like it
    assert "looks like" not in run_well("observe", ids, made / "predictions").stderr


def scores(text: str) -> list[Any]:
    return [line["tc"] for line in lines(text)]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video that is complete."""
    return folder(tmp_path_factory.mktemp("observed") / "video")


@pytest.fixture(scope="module")
def expected(there: Path, tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """TC_t as `uqeval tc` finds them."""
    report = tmp_path_factory.mktemp("report") / "report.json"
    run_well("tc", there, "--flow", "dis:fast", "-q", "-o", report)
    return [item["temporal"]["tc"] for item in json.loads(report.read_text())["items"]]


def follow(*arguments: str | Path, while_running: Callable[[], None]) -> tuple[int, str, str]:
    """Run `uqeval observe --follow` while something is written."""
    command = [str(EXECUTABLE), "observe", *map(str, arguments), "--follow", "--poll", "0.05"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        writer = threading.Thread(target=while_running)
        writer.start()
        out, err = process.communicate(timeout=TIMEOUT)
        writer.join()
    return process.returncode, out, err


# ---- what is there


def test_one_line_a_frame(there: Path, expected: list[float], tmp_path: Path) -> None:
    out = tmp_path / "lines.jsonl"
    done = run_well("observe", there, "-o", out)
    assert done.stdout == out.read_text()
    found = lines(done.stdout)
    assert [line["frame"] for line in found] == NAMES
    assert [line["sequence"] for line in found] == ["v"] * FRAMES
    assert [line["tc"] for line in found] == [None, *expected]
    assert found[0]["tc_reason"] == "it is the first frame of its sequence"
    for line in found[1:]:
        assert list(line) == KEYS and line["alarm"] is None and line["cut"] is False
    assert f"{FRAMES} frames, mean TC {np.mean(expected):.4f}" in done.stderr
    assert "lag-1 autocorrelation" in done.stderr and "independent pair" in done.stderr
    assert "\nwarning: " in done.stderr  # four pairs


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_a_full_disk_is_told_with_the_file(there: Path) -> None:
    outcome = run_uqeval("observe", there, "-o", "/dev/full", "--limit", "1")
    assert outcome.status == 2
    assert "uqeval: /dev/full cannot be written: No space left on device." in outcome.stderr


def test_a_file_that_is_cut_goes_on_at_its_start(tmp_path: Path) -> None:
    """As `logrotate` does with `copytruncate`."""
    path = tmp_path / "lines.jsonl"
    with observe._lines(str(path)) as (_, file):
        print("before", file=file, flush=True)
        assert path.read_text() == "before\n"
        os.truncate(path, 0)
        print("after", file=file, flush=True)
    assert path.read_text() == "after\n"


def test_quiet_and_limit(there: Path) -> None:
    done = run_well("observe", there, "--limit", "2", "-q")
    assert len(lines(done.stdout)) == 2 and done.stderr == ""


def test_occlusion(there: Path) -> None:
    found = lines(run_well("observe", there, "--occlusion", "fb").stdout)
    assert all("tc_visible" in line for line in found) and found[1]["tc_visible"] is not None


def test_gaps_and_sequences_are_not_compared(tmp_path: Path) -> None:
    done = run_well("observe", folder(tmp_path / "v", ["a_1", "a_3", "a_7", "b_1", "b_2"]))
    found = lines(done.stdout)
    assert [line["tc"] is None for line in found] == [True, False, True, True, False]
    assert (
        "3 and 7" in found[2]["tc_reason"] and "step of the sequence is 2" in found[2]["tc_reason"]
    )
    assert found[3]["tc_reason"] == "it is the first frame of its sequence"
    assert [line["sequence"] for line in found] == ["a", "a", "a", "b", "b"]
    assert "2 sequences of the video are too short: a (1 pair), b (1 pair)" in done.stderr


def test_images_with_predictions_elsewhere(there: Path, expected: list[float]) -> None:
    done = run_well("observe", there / "frames", there / "predictions")
    assert scores(done.stdout) == [None, *expected]


@pytest.mark.parametrize("kind", ["predictions", "probs"])
def test_stores(tmp_path: Path, expected: list[float], kind: str) -> None:
    values = IDS
    if kind == "probs":
        values = np.moveaxis(np.eye(4, dtype=np.float32)[IDS], -1, 1)
    path = store(tmp_path / "v.zarr", frames=IMAGES, **{kind: values})
    found = lines(run_well("observe", path).stdout)
    assert [line["tc"] for line in found] == [None, *expected]
    assert [line["frame"] for line in found] == [str(t) for t in range(FRAMES)]


@pytest.mark.parametrize("predictions", ["folder", "store"])
def test_a_video_file_with_predictions_in_order(tmp_path: Path, predictions: str) -> None:
    path = tmp_path / "v.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for image in IMAGES:
        writer.write(cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    writer.release()
    ids = store(tmp_path / "ids.zarr", predictions=IDS)
    if predictions == "folder":
        ids = folder(tmp_path / "p", [f"whatever{t}" for t in range(FRAMES)]) / "predictions"
    expected_here = tmp_path / "report.json"
    run_well("tc", path, tmp_path / "ids.zarr", "--flow", "dis:fast", "-q", "-o", expected_here)
    tcs = [item["temporal"]["tc"] for item in json.loads(expected_here.read_text())["items"]]
    assert scores(run_well("observe", path, ids).stdout) == [None, *tcs]
    # What has ended does not go on, followed or not.
    assert scores(run_well("observe", path, ids, "--follow").stdout) == [None, *tcs]
    refused(run_uqeval("observe", path), "give the predictions after the video")
    # Matched by order, a prediction too many makes all pairs doubtful.
    if predictions == "folder":
        Image.fromarray(IDS[0]).save(ids / "whatever9.png")
    else:
        store(tmp_path / "ids.zarr", predictions=np.concatenate([IDS, IDS[:1]]))
    outcome = run_uqeval("observe", path, ids)
    assert outcome.status == 2 and scores(outcome.stdout) == [None, *tcs]
    assert f"{FRAMES + 1} predictions for the {FRAMES} frames of" in outcome.stderr
    assert len(scores(run_well("observe", path, ids, "--limit", FRAMES).stdout)) == FRAMES


def test_sizes_that_differ(tmp_path: Path) -> None:
    path = folder(tmp_path / "v")
    file = path / "predictions" / f"{NAMES[1]}.png"
    Image.fromarray(np.zeros((5, 5), np.uint8)).save(file)
    outcome = run_uqeval("observe", path)
    assert outcome.status == 2 and "Give frames of the size of the predictions." in outcome.stderr
    assert "--resize" not in outcome.stderr


def test_alarms(there: Path, expected: list[float], tmp_path: Path) -> None:
    limit = sorted(expected)[1]
    done = run_well("observe", there, "--alarm", str(limit))
    assert [line["alarm"] for line in lines(done.stdout)] == [None, *(t < limit for t in expected)]
    assert "1 alarms below" in done.stderr
    report = tmp_path / "report.json"
    run_well("tc", there, "--flow", "dis:fast", "-q", "-o", report)
    done = run_well("observe", there, "--alarm-from", report, "--alarm-quantile", "0.5")
    median = float(np.quantile(expected, 0.5))
    assert [line["alarm"] for line in lines(done.stdout)] == [None, *(t < median for t in expected)]
    refused(
        run_uqeval("observe", there, "--alarm-from", report, "--flow", "farneback"),
        "another flow", "dis:fast", "farneback",
    )  # fmt: skip
    refused(run_uqeval("observe", there, "--alarm-from", report, "--alarm", "0.5"), "give one")


def test_alarms_of_another_void_id(there: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    run_well("tc", there, "--flow", "dis:fast", "--ignore-index", "1", "-q", "-o", report)
    refused(
        run_uqeval("observe", there, "--alarm-from", report),
        "the void id of the report is 1, and this command uses 255", "--ignore-index 1",
    )  # fmt: skip
    run_well("observe", there, "--alarm-from", report, "--ignore-index", "1")


def test_alarms_of_frames_at_another_distance(there: Path, tmp_path: Path) -> None:
    """TC falls with the distance, so the limit would be too low or too high."""
    apart = [f"f_{5 * t:03d}" for t in range(len(NAMES))]
    seldom = folder(tmp_path / "seldom", apart)
    of_seldom, of_each = tmp_path / "seldom.json", tmp_path / "each.json"
    for frames, report in ((there, of_each), (seldom, of_seldom)):
        run_well("tc", frames, "--flow", "dis:fast", "-q", "-o", report)
        run_well("observe", frames, "--alarm-from", report)
    refused(
        run_uqeval("observe", there, "--alarm-from", of_seldom),
        "the frames of the report are 5 numbers apart, and the first two of this command 1",
        printed=True,  # the line of the first frame
    )
    refused(
        run_uqeval("observe", seldom, "--alarm-from", of_each),
        "are 1 numbers apart",
        "5",
        printed=True,
    )
    nameless = store(tmp_path / "v", frames=IMAGES, predictions=IDS)
    assert "--alarm-from" not in run_well("observe", nameless, "--alarm-from", of_each).stderr
    done = run_well("observe", nameless, "--alarm-from", of_seldom)
    assert "are 5 numbers apart, and these frames have no numbers" in done.stderr


# ---- what still comes


def test_the_interval_is_that_of_tc(tmp_path: Path) -> None:
    arrays = synthetic_data.video("observed", frames=60)
    np.savez(tmp_path / "v.npz", frames=arrays["frames"], predictions=arrays["predictions"])
    report = uqeval.evaluate(video=tmp_path / "v.npz", metrics={"tc": {"flow": "dis"}}, ci=0.95)
    own, value = report.intervals["temporal.mtc"], report.results["temporal"]["mtc"]
    done = run_uqeval("observe", tmp_path / "v.npz", "--flow", "dis")
    assert done.status == 0
    ends = (
        f"[{own['low']:.4f}, {own['high']:.4f}] (level 0.95, from {own['units']['drawn']} batches"
    )
    assert f"60 frames, mean TC {value:.4f} {ends}" in " ".join(done.stderr.split())
    assert f"lag-1 autocorrelation {own['lag1']:.2f}" in " ".join(done.stderr.split())


def test_a_growing_folder(tmp_path: Path, expected: list[float]) -> None:
    path = tmp_path / "video"
    (path / "frames").mkdir(parents=True)
    whole = tmp_path / "whole.png"
    Image.fromarray(IMAGES[3]).save(whole)

    def write() -> None:
        for t in range(FRAMES):
            time.sleep(0.15)
            if t == 3:  # a producer that writes in place, slowly
                data, target = whole.read_bytes(), path / "frames" / f"{NAMES[t]}.png"
                target.write_bytes(data[: len(data) // 2])
                time.sleep(0.3)
                target.write_bytes(data)
            else:
                png(path / "frames" / f"{NAMES[t]}.png", IMAGES[t])
            time.sleep(0.15)  # a network takes its time
            png(path / "predictions" / f"{NAMES[t]}.png", IDS[t])

    status, out, err = follow(path, "--timeout", "2", while_running=write)
    assert status == 0, err
    assert scores(out) == [None, *expected]


def test_a_growing_store(tmp_path: Path, expected: list[float]) -> None:
    path = store(tmp_path / "v.zarr", frames=IMAGES[:1], predictions=IDS[:1])

    def write() -> None:
        group = zarr.open_group(path, mode="r+")
        for t in range(1, FRAMES):
            time.sleep(0.2)
            for name, values in (("frames", IMAGES), ("predictions", IDS)):
                array: Any = group[name]
                array.resize((t + 1, *array.shape[1:]))
                time.sleep(0.1)
                array[t] = values[t]

    status, out, err = follow(path, "--timeout", "2", while_running=write)
    assert status == 0, err
    assert scores(out) == [None, *expected]


def test_chunks_of_several_frames_cannot_be_followed(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "v.zarr", mode="w")
    group.create_array("frames", shape=IMAGES.shape, dtype="u1", chunks=(2, 48, 64, 3))[...] = (
        IMAGES
    )
    group.create_array("predictions", shape=IDS.shape, dtype="u1", chunks=(1, 48, 64))[...] = IDS
    run_well("observe", tmp_path / "v.zarr")
    outcome = run_uqeval("observe", tmp_path / "v.zarr", "--follow", "--timeout", "0")
    refused(outcome, "chunks of 2 frames")


def test_waiting_ends_with_what_is_missing(tmp_path: Path) -> None:
    path = folder(tmp_path / "v")
    (path / "predictions" / f"{NAMES[2]}.png").unlink()
    outcome = run_uqeval("observe", path, "--follow", "--poll", "0.05", "--timeout", "0.2")
    assert outcome.status == 2 and len(lines(outcome.stdout)) == 2
    assert f"no prediction for the frame {NAMES[2]}" in outcome.stderr


def test_an_interrupt_leaves_what_was_printed(there: Path, expected: list[float]) -> None:
    with subprocess.Popen(
        [str(EXECUTABLE), "observe", str(there), "--follow"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            out = "".join(process.stdout.readline() for _ in range(FRAMES))
            process.send_signal(signal.SIGINT)
            rest, err = process.communicate(timeout=TIMEOUT)
        finally:
            process.kill()  # `with` waits for it
    assert process.returncode == 130
    assert scores(out + rest) == [None, *expected]
    assert f"{FRAMES} frames" in err and "Traceback" not in err


def test_a_reader_that_goes_away(there: Path) -> None:
    # Before the first line: later, all lines may be in the pipe.
    reader, writer = os.pipe()
    with subprocess.Popen(
        [str(EXECUTABLE), "observe", str(there)],
        stdout=writer, stderr=subprocess.PIPE, text=True, env=environment(),
    ) as process:  # fmt: skip
        os.close(writer)
        os.close(reader)
        _, err = process.communicate(timeout=TIMEOUT)
    # What a shell shows as 141.
    assert process.returncode in (141, -signal.SIGPIPE) and err == ""


# ---- what never comes


@pytest.mark.parametrize("kind", ["files", "store"])
@pytest.mark.parametrize(
    ("frames", "predictions", "message", "count"),
    [
        # Later frames show that `s2` is a sequence; only the order of frames differs.
        (["s1/0", "s1/1", "s2/0"], ["s2/0", "s2/1"], "no prediction for the frame s1/0", 0),
        (["a/0", "a/1", "s2/0"], ["s2/0", "s2/1"], "no prediction for the frame a/0", 0),
        (["s1/0", "s2/0"], ["0"], "the items 's1/0' and 's2/0' both match 0", 1),
    ],
)
def test_predictions_of_another_sequence(
    tmp_path: Path, kind: str, frames: list[str], predictions: list[str], message: str, count: int
) -> None:
    outcome = run_uqeval("observe", *placed(tmp_path, frames, predictions, kind))
    assert outcome.status == 2 and len(lines(outcome.stdout)) == count
    assert message in outcome.stderr


@pytest.mark.parametrize("kind", ["files", "store"])
def test_folders_of_other_names_are_named_once(tmp_path: Path, kind: str) -> None:
    frames, predictions = ([f"{name}/{k}" for k in range(3)] for name in ("s2", "s1"))
    told = run_well("observe", *placed(tmp_path, frames, predictions, kind)).stderr
    assert told.count("in folders of different names") == 1 and "'s2/0' and s1/0" in told
    roles = [f"labels/{k}" for k in range(3)]
    told = run_well("observe", *placed(tmp_path / "roles", frames, roles, kind)).stderr
    assert "different names" not in told


def test_a_missing_prediction(tmp_path: Path) -> None:
    path = folder(tmp_path / "v")
    (path / "predictions" / f"{NAMES[1]}.png").unlink()
    outcome = run_uqeval("observe", path)
    assert outcome.status == 2 and len(lines(outcome.stdout)) == 1
    assert f"no prediction for the frame {NAMES[1]}" in outcome.stderr


@pytest.mark.parametrize("kind", ["frames", "predictions"])
def test_a_damaged_file(tmp_path: Path, kind: str) -> None:
    path = folder(tmp_path / "v")
    file = path / kind / f"{NAMES[1]}.png"
    file.write_bytes(file.read_bytes()[:60])
    outcome = run_uqeval("observe", path)
    assert outcome.status == 2 and len(lines(outcome.stdout)) == 1
    assert file.name in outcome.stderr and "Traceback" not in outcome.stderr


def test_bad_values(tmp_path: Path) -> None:
    path = folder(tmp_path / "v")
    outcome = run_uqeval("observe", path, "--classes", "2")
    refused(outcome, "outside the 2 classes", f"frame {NAMES[0]}")
    png(path / "predictions" / f"{NAMES[1]}.png", IDS[1][:-1])
    outcome = run_uqeval("observe", path)
    assert outcome.status == 2 and NAMES[1] in outcome.stderr and "47×64" in outcome.stderr
    wide = store(tmp_path / "wide.zarr", frames=IMAGES, predictions=IDS.astype(np.uint16))
    message = refused(run_forked("observe", wide, cwd=tmp_path), "the number of classes is unknown")
    assert message.endswith("give --classes.")  # the command has no --class-names


def test_frames_without_numbers(tmp_path: Path) -> None:
    outcome = run_uqeval("observe", folder(tmp_path / "v", ["a", "b", "c", "d", "e"]))
    refused(outcome, "'a' has no number")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is nothing here"),
        (["nowhere", "--follow"], "no video here to follow"),
        (["{video}/frames"], "no folder `frames`"),
        (
            ["{video}", "--timeout", "1"],
            "--timeout has an effect only with --follow; give that too",
        ),
        (["{video}", "--follow", "--poll", "0"], "--poll"),
        (["{video}", "--flow", "nonsense"], "nonsense"),
        (["{video}", "--flow", "file"], "--flow file"),
        (["{video}", "--alarm", "2"], "expected 0 to 1"),
        (["{video}", "--limit", "0"], "--limit"),
        (["{video}", "--alarm-from", "nowhere.json"], "nowhere.json"),
        (["{video}", "-o", "{video}"], "is a folder"),
    ],
)
def test_refused(there: Path, arguments: list[str], says: str, tmp_path: Path) -> None:
    given = [argument.replace("{video}", str(there)) for argument in arguments]
    refused(run_uqeval("observe", *given, cwd=tmp_path), says)


@pytest.mark.parametrize(
    "option", [("--flow", "0.5"), ("--alarm", "5"), ("--classes", "1"), ("--flow-scale", "-1")]
)
def test_an_error_before_the_first_line_keeps_the_file(
    option: tuple[str, str], tmp_path: Path
) -> None:
    made, out = folder(tmp_path / "v"), tmp_path / "lines.jsonl"
    run_well("observe", made, "-o", out)
    before = out.read_bytes()
    refused(run_uqeval("observe", made, "-o", out, *option))
    assert out.read_bytes() == before
    refused(run_uqeval("observe", made, "-o", tmp_path / "new.jsonl", *option))
    assert not (tmp_path / "new.jsonl").exists()
