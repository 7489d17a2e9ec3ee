"""Every command opens each of its stores once, and runs code of few modules."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import number_stores
import numpy as np
import pytest
import small_stores
from typer.testing import CliRunner

import uqeval
from uqeval.cli.entry import app
from uqeval.stores.contents import Contents
from uqeval.stores.zarr import source

PACKAGE = str(Path(uqeval.__file__).parent)

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores of classes, numbers and a video, and a file that evaluates two of them."""
    at = tmp_path_factory.mktemp("stores")
    probs = small_stores.probs(2)
    small_stores.save(at / "preds.zarr", {"probs": probs})
    small_stores.save(at / "labels.zarr", {"labels": small_stores.labels(2)})
    np.savez(at / "other.npz", probs=probs)
    numbers = number_stores.numbers(members=3)
    small_stores.save(at / "depth.zarr", numbers)
    rng = np.random.default_rng(0)
    small_stores.save(at / "video.zarr", {
        "frames": rng.integers(0, 255, (3, 32, 32, 3)).astype(np.uint8),
        "predictions": rng.integers(0, 3, (3, 32, 32)).astype(np.uint8),
        "labels": rng.integers(0, 3, (3, 32, 32)).astype(np.uint8),
        "flow": np.zeros((2, 32, 32, 2), np.float32),
    })  # fmt: skip
    (at / "uqeval.yaml").write_text(
        "stores: {city: {predictions: preds.zarr, labels: labels.zarr, reference: other.npz}}\n"
        "evaluate: {city: {pavpu: , divergence: , sweep: {samples: [1, 2]}}}\n"
    )
    return at


@pytest.mark.parametrize("line", [
    "pavpu preds.zarr labels.zarr",
    "run preds.zarr labels.zarr --reference other.npz -o out",
    "run uqeval.yaml -o out",
    "pavpu",
    "calibration",
    "sweep preds.zarr labels.zarr --samples 1,2",
    "regression depth.zarr",
    "divergence other.npz preds.zarr",
    "tc video.zarr --flow file --classes 3",
    "reduce preds.zarr labels.zarr -o maps.zarr",
    "inspect preds.zarr labels.zarr",
    "convert preds.zarr copy.zarr",
])  # fmt: skip
def test_stores_are_opened_once(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    get, init = source.FolderSource.get, Contents.__init__

    def counted(self: source.FolderSource, key: str, *rest: object, **options: object) -> object:
        opened[f"{self.path}/{key}"] += key.endswith("zarr.json")
        return get(self, key, *rest, **options)  # type: ignore[arg-type]

    def begun(self: Contents, path: str) -> None:
        opened[path] += 1
        init(self, path)

    monkeypatch.setattr(source.FolderSource, "get", counted)
    monkeypatch.setattr(Contents, "__init__", begun)
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [*line.split(), "--quiet"])
    assert done.exit_code == 0, done.output
    assert {path: count for path, count in opened.items() if count > 1} == {}
    assert any(path.endswith("/zarr.json") and count for path, count in opened.items())


def test_a_request_runs_code_of_few_modules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`docs/development.md` tells how many; imports do not count."""
    files: set[str] = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        file = frame.f_code.co_filename
        is_new = event == "call" and file not in files and file.startswith(PACKAGE)
        if is_new and not _imports(frame):
            files.add(file)

    monkeypatch.chdir(folder)
    line = ["pavpu", "preds.zarr", "labels.zarr", "-o", "r.json"]
    # The first request of a process also loads kernels.
    assert CliRunner().invoke(app, [*line[:-1], "first.json"]).exit_code == 0
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        done = CliRunner().invoke(app, line)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert done.exit_code == 0, done.output
    assert 50 < len(files) <= 97, sorted(file.removeprefix(PACKAGE) for file in files)


def _imports(frame: FrameType | None) -> bool:
    """Return whether a frame belongs to the import of a module of uqeval."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back
    return False
