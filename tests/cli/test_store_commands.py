"""`uqeval reduce`, `inspect`, `convert` and `demo` as their users run them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import as_json, obey_modes, refused, run_uqeval, run_well
from forged import VARIED, repeated
from PIL import Image
from small_stores import CLASS_NAMES, NAMES, C, H, N, T, W, labels, probs, save, save_complete
from small_videos import save_folder, save_images, save_store, video

from uqeval.records.report import Report


def evaluated(*arguments: str | Path, **options: Any) -> dict[str, Any]:
    """The results and items that `uqeval pavpu` finds."""
    report = as_json("pavpu", *arguments, **options)
    return {key: report[key] for key in ("results", "items")}


def broken(folder: Path, complete: Path) -> Path:
    """A copy with one chunk cut short."""
    store = folder / "broken.zarr"
    shutil.copytree(complete, store)
    chunk = store / "probs/c/2/0/0/0/0"
    chunk.write_bytes(chunk.read_bytes()[:70])
    return store


# ---- reduce


def test_maps_give_the_same_bits(tmp_path: Path, complete: Path) -> None:
    outcome = run_well("reduce", complete, "-o", "maps.zarr", cwd=tmp_path)
    assert outcome.stdout == "" and outcome.stderr.endswith("wrote maps.zarr\n")
    assert [path.name for path in tmp_path.iterdir()] == ["maps.zarr"]
    options = ("--uncertainty=entropy", "--uncertainty=std", "--window=4", "--top-k=1", "--top-k=2")
    assert evaluated("maps.zarr", *options, cwd=tmp_path) == evaluated(complete, *options)
    quiet = run_well("reduce", complete, "-o", "maps.zarr", "--overwrite", "-q", cwd=tmp_path)
    assert (quiet.stdout, quiet.stderr) == ("", "")


@pytest.mark.parametrize("command", ["reduce", "convert"])
def test_a_store_whose_files_cannot_be_removed_is_not_replaced(
    tmp_path: Path, complete: Path, command: str
) -> None:
    """Such as that of another user, which would stay under a hidden name."""
    run_well("reduce", complete, "-o", "old.zarr", "-q", cwd=tmp_path)
    (tmp_path / "old.zarr").chmod(0o555)
    output = ("-o", "old.zarr") if command == "reduce" else ("old.zarr",)
    outcome = run_uqeval(
        command, complete, *output, "--overwrite", cwd=tmp_path, preexec_fn=obey_modes
    )
    (tmp_path / "old.zarr").chmod(0o755)
    refused(outcome, "old.zarr cannot be replaced, because you may not remove its files")
    assert [path.name for path in tmp_path.iterdir()] == ["old.zarr"]


def test_maps_with_labels_of_a_folder(tmp_path: Path, stores: Path) -> None:
    run_well("reduce", stores / "preds.zarr", stores / "labels", "-o", tmp_path / "m.zarr", "-q",
             "--maps", "entropy", "--no-mean-probs", "--workers", "1")  # fmt: skip
    again = evaluated(tmp_path / "m.zarr")
    assert again == evaluated(stores / "preds.zarr", stores / "labels")
    message = refused(run_uqeval("pavpu", tmp_path / "m.zarr", "--uncertainty", "std"))
    assert "m.zarr has no map 'std'" in message


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "maps.zarr"], "maps.zarr exists already; give --overwrite or another path"),
        (["-o", "none/m.zarr"], "none does not exist"),
        (["-o", "folder", "--overwrite"], "folder is not a Zarr store, so it is not overwritten"),
        (["-o", "new.zarr", "--maps", "foo"], "--maps foo; expected some of entropy"),
        (
            ["-o", "new.zarr", "--workers", "0"],
            "--workers 0; expected a whole number of at least 1",
        ),
        (["-o", "new.zarr", "--memory", "1kB"], "--memory 1kB is too small for"),
        ([], "Missing option '-o'"),
    ],
)
def test_maps_that_cannot_be_written(
    tmp_path: Path, complete: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/mine.txt").write_text("mine")
    (tmp_path / "file").write_text("here")
    save_complete(tmp_path / "maps.zarr")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    refused(run_uqeval("reduce", complete, *arguments, cwd=tmp_path), says)
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_maps_never_replace_the_samples_that_they_are_made_of(tmp_path: Path) -> None:
    store = save_complete(tmp_path / "s.zarr")
    before = sorted(store.rglob("*"))
    outcome = run_uqeval("reduce", "s.zarr", "-o", "./s.zarr", "--overwrite", cwd=tmp_path)
    refused(outcome, "s.zarr is an input; give another path for the maps")
    assert sorted(store.rglob("*")) == before


def test_maps_of_damaged_samples(tmp_path: Path, complete: Path) -> None:
    store = broken(tmp_path, complete)
    (tmp_path / "out").mkdir()
    shutil.copytree(complete, tmp_path / "out/maps.zarr")
    before = sorted((tmp_path / "out").rglob("*"))
    outcome = run_uqeval("reduce", store, "-o", "out/maps.zarr", "--overwrite", cwd=tmp_path)
    refused(outcome, "broken.zarr/probs: chunk c/2/0/0/0/0 is damaged")
    assert sorted((tmp_path / "out").rglob("*")) == before


# ---- inspect


def test_inspect_a_sound_store(complete: Path) -> None:
    table = run_well("inspect", complete)
    assert "sound" in table.stdout and "not sound" not in table.stdout and table.stderr == ""
    for word in ("probs", "item, sample, class, y, x", "3×4×5×24×32", "float32", *CLASS_NAMES):
        assert word in table.stdout
    found = as_json("inspect", complete, "--full")
    assert {array["name"]: array["shape"] for array in found["arrays"]} == {
        "probs": [N, T, C, H, W], "labels": [N, H, W],
    }  # fmt: skip
    assert (found["items"], found["names"], found["problems"]) == (N, NAMES, [])
    assert found["values"]["items_checked"] == N
    assert found["values"]["void"] == (labels() == 255).sum()
    for key, label in (("pixels", "pixels checked"), ("void", "void pixels")):
        assert f"  {label:<22} {found['values'][key]:,}\n" in table.stdout


def test_inspect_a_store_of_mean_probabilities(tmp_path: Path) -> None:
    mean = probs().mean(axis=1)
    mean[0, :, 3, 4] = np.eye(C)[1]
    ids = mean.argmax(axis=1).astype(np.uint8)
    store = save(tmp_path / "maps.zarr", {"mean_probs": mean, "predictions": ids})
    table = run_well("inspect", store)
    assert "  pixels of confidence 1 1\n" in table.stdout and "samples" not in table.stdout
    mean[0, :, 5, 6] = 0.1
    bad = save(tmp_path / "bad.zarr", {"mean_probs": mean, "predictions": ids})
    said = run_uqeval("inspect", bad)
    refused(said, "do not sum to 1", "row 5, column 6", printed=True)
    single = {"mean_probs": mean[:, :1], "predictions": ids, "labels": labels()}
    refused(run_uqeval("pavpu", save(tmp_path / "one.zarr", single)), "one class", "call", "probs")
    alone = save(tmp_path / "alone.zarr", {"mean_probs": mean})
    refused(run_uqeval("pavpu", alone), "name them probs")
    ids_alone = save(tmp_path / "ids.zarr", {"predictions": ids})
    assert "confidence" not in run_well("inspect", ids_alone, "--classes", str(C)).stdout


def test_inspect_without_labels_and_labels_alone(stores: Path) -> None:
    assert "sound" in run_well("inspect", stores / "preds.zarr").stdout
    assert "sound" in run_well("inspect", stores / "preds.zarr", stores / "labels").stdout


def test_inspect_shows_given_names(complete: Path, tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text("\n".join(f"frame_{i}" for i in range(N)))
    shown = run_well("inspect", complete, "--names", file).stdout
    assert "frame_0, frame_1, frame_2" in shown


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_inspect_a_video(tmp_path: Path, kind: str) -> None:
    frames = np.random.default_rng(0).integers(0, 255, (4, 12, 16, 3), np.uint8)
    ids = frames[..., 0] % 5
    path = tmp_path / "v"
    if kind == "store":
        save(path, {"frames": frames, "predictions": ids}, {})
    else:
        for name, images in (("frames", frames), ("predictions", ids)):
            (path / name).mkdir(parents=True)
            for i, image in enumerate(images):
                Image.fromarray(image).save(path / name / f"s_{i}.png")
    found = as_json("inspect", path)
    assert found["facts"]["kind"] == "video" and found["facts"]["pairs"] == 3
    assert found["items"] == 4 and not found["problems"] and found["values"]["pixels"] > 0
    axes = {array["name"]: array["axes"] for array in found["arrays"]}
    if kind == "store":
        assert axes["frames"] == ["item", "y", "x", "channel"]
    done = run_uqeval("inspect", path, "--classes", "2", "--full")
    assert done.status == 2 and done.stderr.count("outside the 2 classes") == 3


def test_inspect_frames_and_predictions_apart(tmp_path: Path) -> None:
    own = video()
    frames = save_images(tmp_path / "v" / "frames", own.frames).parent
    flows = {name: np.zeros((36, 48, 2)) for name in own.names[1:]}
    (frames / "flow").mkdir()
    for name, flow in flows.items():
        np.save(frames / "flow" / f"{name}.npy", flow)
    stored = save_store(
        tmp_path / "v.zarr", own.names, frames=own.stack("frames"), labels=own.stack("labels")
    )
    ids = save_images(tmp_path / "ids", own.predictions)
    labels = save_images(tmp_path / "labels", own.labels)
    for path, what in ((frames, "a folder `frames/`"), (stored, "an array `frames`")):
        words = (
            what,
            "looks like a video",
            f"uqeval inspect {path} PREDS",
            f"uqeval tc {path} PREDS",
        )
        refused(run_uqeval("inspect", path), *words)
        refused(run_uqeval("calibration", path, labels), *words)
        found = as_json("inspect", path, ids)
        assert found["path"] == f"{path} {ids}"
        assert found["facts"]["kind"] == "video" and found["facts"]["pairs"] == 4
        assert found["facts"]["ground truth"] == ("yes" if path == stored else "none given")
        assert "ground truth           yes" in run_well("inspect", path, ids, labels).stdout
    (stored / "frames/c/2/0/0/0").unlink()
    outcome = run_uqeval("inspect", stored, ids)
    assert outcome.status == 2 and "v.zarr/frames: 1 of 5 chunks are missing" in outcome.stderr
    whole = save_folder(tmp_path / "whole", own)
    refused(
        run_uqeval("calibration", whole, labels),
        f"`uqeval inspect {whole}`", f"`uqeval tc {whole}`",
    )  # fmt: skip


def test_inspect_a_video_with_predictions_of_its_own_and_others(tmp_path: Path) -> None:
    """Given predictions count, as in `uqeval tc`; labels belong to those inside the video."""
    own = video()
    ids = np.stack(list(own.predictions.values())) % 4
    stored = save_store(tmp_path / "v.zarr", own.names, frames=own.stack("frames"), predictions=ids)
    others = tmp_path / "others.npz"
    np.savez(others, predictions=(ids + 1) % 4, names=own.names)
    labels = save_images(tmp_path / "labels", own.labels)
    for path in (stored, save_folder(tmp_path / "whole", own)):
        for given, shown in (
            ([others], f"{path} {others}"), ([others, labels], f"{path} {others}"), ([labels], path)
        ):  # fmt: skip
            found = as_json("inspect", path, *given)
            assert found["path"] == str(shown) and not found["problems"]
            assert found["facts"]["kind"] == "video" and found["facts"]["pairs"] == 4
            assert found["facts"]["ground truth"] == ("yes" if labels in given else "none given")


def test_inspect_a_video_with_probabilities_of_its_own_and_other_predictions(
    tmp_path: Path,
) -> None:
    """Members of one ensemble all have frames, or none; labels belong to the probabilities."""
    own = video()
    ids = np.stack(list(own.predictions.values())) % 4
    probs = np.full((len(ids), 4, *ids.shape[1:]), 0.25, "f4")
    arrays = {"frames": own.stack("frames"), "probs": probs}
    stored, twin = (save_store(tmp_path / f"{n}.zarr", own.names, **arrays) for n in "vw")
    np.savez(tmp_path / "ids.npz", predictions=ids, names=own.names)
    np.savez(tmp_path / "probs.npz", probs=probs, names=own.names)
    labels = save_images(tmp_path / "labels", own.labels)
    for given, kind in (
        ([tmp_path / "ids.npz"], "video"), ([tmp_path / "ids.npz", labels], "video"),
        ([tmp_path / "probs.npz"], "video"), ([twin], "classes"), ([labels], "classes"),
        ([], "classes"),
    ):  # fmt: skip
        found = as_json("inspect", stored, *given)
        assert found["facts"]["kind"] == kind and not found["problems"], given


def test_inspect_predictions_beside_images(tmp_path: Path) -> None:
    """Frames beside arrays of predictions, and a folder of ids called `frames`, are no video."""
    own = video()
    save_images(tmp_path / "frames", own.frames)
    (tmp_path / "probs").mkdir()
    for name in own.names:
        np.save(tmp_path / "probs" / f"{name}.npy", np.full((4, 36, 48), 0.25))
    found = as_json("inspect", tmp_path)
    assert found["facts"]["kind"] == "classes" and found["items"] == 5
    ids = save_images(tmp_path / "ids" / "frames", own.predictions).parent
    assert "holds predicted ids" in run_uqeval("inspect", ids).stderr


def test_inspect_says_what_is_wrong(tmp_path: Path, complete: Path) -> None:
    outcome = run_uqeval("inspect", broken(tmp_path, complete))
    assert outcome.status == 2 and "not sound" in outcome.stdout
    assert outcome.stderr.startswith("problem: ") and "c/2/0/0/0/0 is damaged" in outcome.stderr
    missing = tmp_path / "missing.zarr"
    shutil.copytree(complete, missing)
    (missing / "probs/c/0/0/0/0/0").unlink()
    outcome = run_uqeval("inspect", missing, "--format", "json")
    assert outcome.status == 2
    assert (
        "missing.zarr/probs: 1 of 3 chunks are missing" in json.loads(outcome.stdout)["problems"][0]
    )
    refused(run_uqeval("inspect", tmp_path / "none"), "none: there is nothing here")
    refused(
        run_uqeval("inspect", complete, "--workers", "0"),
        "--workers 0; expected a whole number of at least 1",
    )


def test_inspect_shows_names_of_any_length(tmp_path: Path, complete: Path) -> None:
    store = tmp_path / "p.zarr"
    shutil.copytree(complete, store)
    metadata = json.loads((store / "zarr.json").read_text())
    long = [f"{i}{VARIED}" for i in range(3)]
    metadata["attributes"] |= {"names": long[:N], "class_names": long[:C]}
    (store / "zarr.json").write_text(json.dumps(metadata))
    outcome = run_uqeval("inspect", store)
    assert "more)…" in outcome.stdout
    assert not repeated(outcome.stdout + outcome.stderr)


def test_inspect_the_stores_of_the_file(tmp_path: Path, complete: Path, stores: Path) -> None:
    shutil.copytree(complete, tmp_path / "good.zarr")
    shutil.copytree(stores, tmp_path / "apart")
    (tmp_path / "uqeval.yaml").write_text(
        "stores:\n  good: {predictions: good.zarr}\n"
        "  apart: {predictions: apart/preds.zarr, labels: apart/labels}\n"
        "  film: {video: film/}\nmemory: 64MB\n"
    )
    outcome = run_well("inspect", cwd=tmp_path)
    for text in ("good: good.zarr", "apart: apart/preds.zarr"):
        assert text in outcome.stdout
    assert outcome.stdout.count("\nsound") == 2
    assert outcome.stderr == "warning: film: skipped, because inspect does not check video data.\n"
    one = as_json("inspect", "--store", "apart", cwd=tmp_path)
    assert list(one) == ["apart"] and one["apart"]["facts"]["ground truth"] == "yes"
    refused(run_uqeval("inspect", "--store", "film", cwd=tmp_path), "holds video data: film")
    refused(
        run_uqeval("inspect", "--store", "gone", cwd=tmp_path), "its stores are good, apart, film"
    )
    refused(run_uqeval("inspect", complete, "--store", "good", cwd=tmp_path), "leave out the paths")
    refused(run_uqeval("inspect", cwd=stores), "no uqeval.yaml in this folder; give PREDS [LABELS]")


def test_inspect_shows_the_classes_of_a_store_of_the_file(tmp_path: Path) -> None:
    """Of an OOD store too, whose maps have the sets in place of classes."""
    probs = np.full((2, 1, 3, 16, 20), 1 / 3, "f4")
    np.savez(tmp_path / "fog.npz", probs=probs, names=np.array(["x", "y"]))
    np.savez(tmp_path / "known.npz", probs=probs, names=np.array(["a", "b"]))
    (tmp_path / "uqeval.yaml").write_text(
        "stores:\n  plain: {predictions: known.npz, class_names: [road, car, sky]}\n"
        "  sets: {predictions: known.npz, out: fog.npz, class_names: [road, car, sky]}\n"
    )
    found = as_json("inspect", cwd=tmp_path)
    for name in ("plain", "sets"):
        facts = found[name]["facts"]
        assert (facts["classes"], facts["class_names"]) == (3, ["road", "car", "sky"])
    assert found["sets"]["facts"]["sets"] == ["in (2 items)", "fog (2 items)"]
    text = run_well("inspect", "--store", "sets", cwd=tmp_path).stdout
    assert " road, car, sky\n" in text and " in (2 items), fog (2 items)\n" in text


def test_inspect_a_file_with_a_store_that_is_gone(tmp_path: Path, complete: Path) -> None:
    shutil.copytree(complete, tmp_path / "good.zarr")
    (tmp_path / "uqeval.yaml").write_text(
        "stores:\n  gone: {predictions: none.zarr}\n  good: {predictions: good.zarr}\n"
    )
    outcome = run_uqeval("inspect", cwd=tmp_path)
    assert outcome.status == 2
    assert (
        "problem: gone: uqeval.yaml:2: stores.gone.predictions: none.zarr: there is nothing here"
        in outcome.stderr
    )
    assert "not sound" in outcome.stdout and "good: good.zarr" in outcome.stdout


# ---- convert


def test_convert_arrays(tmp_path: Path, complete: Path) -> None:
    np.save(tmp_path / "softmax.npy", probs())
    np.save(tmp_path / "truth.npy", labels())
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    outcome = run_well(
        "convert", "softmax.npy", "s.zarr", "--labels", "truth.npy", "--names", "names.txt",
        "--class-names", ",".join(CLASS_NAMES), cwd=tmp_path,
    )  # fmt: skip
    assert (outcome.stdout, outcome.stderr) == ("", "wrote s.zarr\n")
    assert evaluated("s.zarr", cwd=tmp_path) == evaluated(complete)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["names.txt", "s.zarr", "softmax.npy", "truth.npy"]


def test_convert_label_pngs(tmp_path: Path, stores: Path, complete: Path) -> None:
    run_well("convert", stores / "labels", tmp_path / "l.zarr", "--compression", "zstd", "-q")
    both = (stores / "preds.zarr", tmp_path / "l.zarr")
    assert evaluated(*both) == evaluated(stores / "preds.zarr", stores / "labels")


def test_convert_to_the_recommended_form(tmp_path: Path, complete: Path) -> None:
    outcome = run_well("convert", complete, "r.zarr", "--recommended", cwd=tmp_path)
    assert "wrote r.zarr: probabilities" in outcome.stderr
    assert "the largest change of a value is" in outcome.stderr
    run_well("pavpu", "r.zarr", "-q", cwd=tmp_path)
    both = ("--recommended", "--compression", "lz4")
    refused(
        run_uqeval("convert", complete, "two.zarr", *both, cwd=tmp_path),
        "--compression lz4 has no effect with --recommended, which uses zstd",
    )
    assert not (tmp_path / "two.zarr").exists()


def test_convert_what_cannot_be(tmp_path: Path, complete: Path) -> None:
    damaged = broken(tmp_path, complete)
    out = tmp_path / "out"
    save_complete(out / "there.zarr")
    np.save(out / "flat.npy", probs()[0, 0, 0])
    before = sorted(out.rglob("*"))
    cases = [
        (["none.npy", "new.zarr"], "none.npy: there is nothing here"),
        (["flat.npy", "new.zarr"], "flat.npy"),
        ([damaged, "new.zarr"], "c/2/0/0/0/0 is damaged"),
    ]
    for arguments, says in cases:
        refused(run_uqeval("convert", *arguments, cwd=out), says)
        assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize("content", ["", " \n\n", "[]"])
@pytest.mark.parametrize("source", ["complete.zarr", "softmax.npy", "softmax.npz", "items", "pngs"])
def test_an_empty_file_of_names_is_refused(tmp_path: Path, content: str, source: str) -> None:
    """`convert` ignored it, and folders of items ended with a traceback."""
    save_complete(tmp_path / "complete.zarr")
    np.save(tmp_path / "softmax.npy", probs())
    np.savez(tmp_path / "softmax.npz", probs=probs())
    for folder in ("items", "pngs"):
        (tmp_path / folder).mkdir()
    np.savez(tmp_path / "items" / "a.npz", probs=probs()[0])
    Image.fromarray(labels()[0].astype(np.uint8)).save(tmp_path / "pngs" / "a.png")
    (tmp_path / "names.txt").write_text(content)
    named, says = ("--names", "names.txt"), ("0 names", "--names")
    refused(run_uqeval("convert", source, "new.zarr", *named, cwd=tmp_path), *says)
    refused(run_uqeval("pavpu", source, "pngs", *named, cwd=tmp_path), *says)
    assert not (tmp_path / "new.zarr").exists()


def test_convert_options_that_are_empty_texts(tmp_path: Path, stores: Path) -> None:
    cases = [
        ([stores / "labels", "--class-names", ""], "--class-names ['']; expected a name for each"),
        ([stores / "labels", "--class-names", "a,,b"], "expected a name for each"),
        ([stores / "preds.zarr", "--labels", ""], "--labels ''; expected a path"),
        ([stores / "preds.zarr", "--names", ""], "cannot be read"),
        ([""], "SRC ''; expected a path"),
    ]
    for (source, *options), says in cases:
        refused(run_uqeval("convert", source, "new.zarr", *options, cwd=tmp_path), says)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["pavpu", "inspect"])
def test_an_empty_path_is_not_the_current_folder(command: str, stores: Path) -> None:
    inside = stores / "preds.zarr"
    refused(run_uqeval(command, "", cwd=inside), "the path of a store is empty")
    refused(run_uqeval(command, inside, "", cwd=stores), "the path of a store is empty")


# ---- demo


def test_demo(tmp_path: Path) -> None:
    outcome = run_well("demo", "shown", cwd=tmp_path)
    assert "PAvPU" in outcome.stdout and "Now try" in outcome.stdout
    assert "gate passed: 3 passed, 0 failed" in outcome.stdout
    left = sorted(path.name for path in (tmp_path / "shown").iterdir())
    assert left == ["depth.npz", "film", "labels", "out", "preds.zarr", "uqeval.yaml"]
    results = Report.load(tmp_path / "shown/out/streets.json").results
    assert 0.5 < results["pavpu"]["pavpu"] < 1 and "pavpu[mutual_information]" in results
    assert "nmerci" in Report.load(tmp_path / "shown/out/depth.json").results
    assert "temporal" in Report.load(tmp_path / "shown/out/film.json").results
    assert (tmp_path / "shown/out/index.html").is_file()
    refused(run_uqeval("demo", "shown", cwd=tmp_path), "shown exists and is not empty")


# ---- what messages name is there


def test_chunks_left_out_may_be_filled(tmp_path: Path, complete: Path) -> None:
    store = tmp_path / "thin.zarr"
    shutil.copytree(complete, store)
    next(path for path in (store / "labels/c").rglob("*") if path.is_file()).unlink()
    for arguments in (("inspect", store), ("convert", store, tmp_path / "new.zarr")):
        outcome = run_uqeval(*arguments)
        assert outcome.status == 2 and "--missing-chunks fill" in outcome.stderr
        filled = run_well(*arguments, "--missing-chunks", "fill")
        assert arguments[0] == "convert" or "are read as the fill value" in filled.stderr
    run_well("inspect", tmp_path / "new.zarr")


def test_reduce_takes_the_number_of_classes(tmp_path: Path, complete: Path) -> None:
    message = refused(run_uqeval("reduce", complete, "-o", tmp_path / "m", "--classes", str(C + 1)))
    assert f"--classes {C + 1}, but" in message and f"has {C} classes" in message
