"""Outputs that are, contain or lie in an input are refused before anything is read or written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import refused, run_forked
from small_stores import save_complete, save_label_folder, save_predictions

from uqeval import UsageError, evaluate, merge
from uqeval.disk.outputs import refuse_overlap
from uqeval.usecases.convert import convert


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("overlap")
    save_predictions(folder / "s.zarr")
    save_complete(folder / "c.zarr")
    save_label_folder(folder / "l")
    (folder / "names.txt").write_text("a\nb\nc\n")
    (folder / "gate.yaml").write_text("segmentation.miou: {min: 0.001}\n")
    report = evaluate(folder / "c.zarr", metrics="segmentation", states=folder / "r.states.zip")
    report.save(folder / "r.json")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["pavpu", "s.zarr", "l", "-o", "l/aachen.png"],
        ["pavpu", "s.zarr", "l", "-o", "l/new.json"],
        ["calibration", "s.zarr", "l", "--csv", "s.zarr/items.csv"],
        ["pavpu", "s.zarr", "l", "--names", "names.txt", "-o", "names.txt"],
        ["pavpu", "s.zarr", "l", "--map-cache", "s.zarr/cache"],
        ["pavpu", "s.zarr", "l", "--map-cache", "."],
        ["pavpu", "s.zarr", "l", "--map-cache", "cache", "-o", "cache"],
        ["reduce", "s.zarr", "l", "-o", "s.zarr/maps.zarr", "--overwrite"],
        ["reduce", "s.zarr", "l", "-o", "l", "--overwrite"],
        ["convert", "s.zarr", "s.zarr/probs", "--overwrite"],
        ["convert", "s.zarr", "new.zarr", "--labels", "l", "--names", "new.zarr"],
        ["run", "s.zarr", "l", "-o", "s.zarr/out"],
        ["gate", "r.json", "gate.yaml", "-o", "r.json"],
        ["gate", "r.json", "gate.yaml", "--junit", "gate.yaml"],
        ["gate", "r.json", "gate.yaml", "--markdown", "r.states.zip"],
        ["report", "r.json", "-o", "r.states.zip"],
        ["report", "r.json", "--figures", "l", "--gallery", "1", "--predictions", "c.zarr",
         "--labels", "l"],
        ["select", "r.json", "-o", "r.states.zip"],
        ["merge", "r.json", "-o", "r.json"],
        ["merge", "r.states.zip", "-o", "r.json"],
        ["compare", "r.json", "r.json", "--name", "a", "--name", "b", "-o", "r.states.zip"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_refuses(arguments: list[str], place: Path) -> None:
    before = contents(place)
    message = refused(run_forked(*arguments, cwd=place))
    assert "input" in message or "given twice" in message
    assert contents(place) == before


def linked(make: Callable[[Path, Path], None]) -> Callable[[Path], tuple[Path, Path]]:
    """An input folder and an output file that are one through a link."""

    def made(folder: Path) -> tuple[Path, Path]:
        (folder / "in").mkdir()
        (folder / "out").mkdir()
        (folder / "in" / "a.png").write_bytes(b"label")
        make(folder / "in", folder / "out")
        return folder / "in", folder / "out" / "r.json"

    return made


def _file_in_input(read: Path, out: Path) -> None:
    (out / "r.json").symlink_to(read / "a.png")


def _hard_link(read: Path, out: Path) -> None:
    os.link(read / "a.png", out / "r.json")


def _folder_in_input(read: Path, out: Path) -> None:
    (read / "more").symlink_to(out)


def _input_is_elsewhere(read: Path, out: Path) -> None:
    (out / "r.json").write_bytes(b"label")
    (read / "b.png").symlink_to(out / "r.json")


def _output_folder_is_input(read: Path, out: Path) -> None:
    out.rmdir()
    out.symlink_to(read)


@pytest.mark.parametrize(
    "make",
    [_file_in_input, _hard_link, _folder_in_input, _input_is_elsewhere, _output_folder_is_input],
)
def test_links_are_resolved(make: Callable[[Path, Path], None], tmp_path: Path) -> None:
    source, output = linked(make)(tmp_path)
    with pytest.raises(UsageError, match="input"):
        refuse_overlap([output], [source])


def test_what_does_not_touch_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "gone").symlink_to(tmp_path / "nowhere")
    outputs = [None, "-", "/dev/null", "s3://bucket/x", tmp_path / "in.json", tmp_path / "input"]
    refuse_overlap(outputs, [tmp_path / "in", np.zeros(3), None, "s3://bucket/x"])
    refuse_overlap([tmp_path], [tmp_path / "in"], may_contain=True)
    with pytest.raises(UsageError, match="contains the input"):
        refuse_overlap([tmp_path], [tmp_path / "in"])


def test_python_refuses_too(place: Path) -> None:
    before = contents(place)
    with pytest.raises(UsageError, match="is inside the input"):
        evaluate(place / "c.zarr", states=place / "c.zarr" / "r.states.zip")
    with pytest.raises(UsageError, match="contains the input"):
        evaluate(place / "c.zarr", map_cache=place)
    with pytest.raises(UsageError, match="is an input"):
        merge(place / "r.json", states=place / "r.json")
    with pytest.raises(UsageError, match="is inside the input"):
        convert(place / "c.zarr", place / "c.zarr" / "x")
    assert contents(place) == before
