"""Reports in experiment trackers, read back through the tracker's own library.

Those of MLflow and W&B are no requirement of the tests; their local backends are used.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run_uqeval, run_well
from PIL import Image
from small_report import report as small_report

import uqeval
from uqeval.errors import OutputError, UsageError
from uqeval.inputs.options import InputOptions
from uqeval.records.report import Report
from uqeval.usecases.gallery.opening import Pictures, open_gallery
from uqeval.usecases.trackers import open_trackers
from uqeval.usecases.trackers.entry import Entry, Picture, Tracker
from uqeval.usecases.trackers.fiftyone import FiftyOneDataset, images_by_item
from uqeval.usecases.trackers.mlflow import _named
from uqeval.usecases.trackers.tensorboard import run_name

_FILE = io.BytesIO()
Image.new("L", (3, 2)).save(_FILE, "PNG")
PNG = _FILE.getvalue()
LIBRARIES = ("tensorboard", "mlflow", "wandb")


def report() -> Report:
    """A report whose metrics are described, so that their numbers are scores."""
    described = {"unit": "", "reference": "", "range": [0, 1], "direction": "higher"}
    names = ("pavpu.pavpu", "pavpu.surplus", "pavpu.surplus_peak.t", "segmentation.miou")
    return small_report(metrics=dict.fromkeys(names, described))


def entry(step: int = 4) -> Entry:
    return Entry("model", report(), (Picture("curve", "A curve", PNG),), "<p>page</p>", step)


def tracker(flag: str, value: str) -> Tracker:
    (opened,) = open_trackers(**{flag: value})
    return opened


def test_an_entry_tells_scores_settings_and_findings() -> None:
    scores, settings = entry().scores(), entry().settings()
    assert scores == {
        "segmentation.miou": 0.5, "pavpu.pavpu": 0.7512345, "pavpu.surplus": -0.125,
        "pavpu.surplus_peak.t": 0.5,
    }  # fmt: skip
    assert settings["uqeval"] == report().uqeval_version
    assert all(isinstance(text, str) for text in settings.values())
    assert entry().pictures[0].size == (3, 2)


@pytest.mark.parametrize("flag", LIBRARIES)
def test_a_library_that_is_missing(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == flag]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, flag, None)
    with pytest.raises(UsageError, match=rf"--{flag} needs {flag}.*pip install {flag}"):
        open_trackers(**{flag: str(tmp_path / "x")})


def test_fiftyone_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fiftyone", None)
    with pytest.raises(UsageError, match=r"--fiftyone needs fiftyone.*pip install fiftyone"):
        FiftyOneDataset("x")


def test_names_that_mlflow_takes() -> None:
    values = {"pavpu[window=7].surplus": 1, "pavpu@class:car.pavpu": 2, "a]": 3, "a[": 4}
    named = _named(values | {"b" * 300: 5, "b" * 299: 6})
    assert list(named.values()) == [1, 2, 3, 4, 5, 6]
    assert list(named)[:4] == ["pavpu_window_7_.surplus", "pavpu_class_car.pavpu", "a_", "a__2"]
    assert all(len(name) <= 250 for name in named)


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    opened = tracker("tensorboard", str(tmp_path / "runs"))
    assert "tensorboard --logdir" in opened.add(entry(3))
    opened.add(entry(4))
    run = EventAccumulator(str(tmp_path / "runs" / "model")).Reload()
    assert set(run.Tags()["scalars"]) == set(entry().scores())
    for address, value in entry().scores().items():
        points = [(e.step, e.value) for e in run.Scalars(address)]
        assert points == [(3, pytest.approx(value)), (4, pytest.approx(value))]
    (image, _) = run.Images("figures/curve")
    assert image.encoded_image_string == PNG and (image.width, image.height) == (3, 2)
    (text, _) = run.Tensors("settings")
    assert b"| uqeval |" in text.tensor_proto.string_val[0]
    assert (tmp_path / "runs/model/page.html").read_text() == "<p>page</p>"


def test_runs_of_tensorboard_lie_apart_in_its_folder() -> None:
    names = ("a/report", "b/report", "report", "/tmp/report", "../report", "..", ".", "/")
    found = [run_name(name) for name in names]
    assert found == [
        "a/report", "b/report", "report", "tmp/report", "_/report", "_", "report", "report",
    ]  # fmt: skip


def test_a_folder_that_tensorboard_cannot_have(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        open_trackers(tensorboard=str(tmp_path / "file"))
    with pytest.raises(OutputError, match="cannot be written"):
        tracker("tensorboard", "/proc/runs").add(entry())


def test_a_full_disk_under_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own writer is a thread: it printed a traceback, and the events were lost."""
    pytest.importorskip("tensorboard")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    opened = tracker("tensorboard", str(tmp_path / "runs"))
    monkeypatch.setattr("uqeval.disk.outputs.new_file", full)
    threads = threading.active_count()
    with pytest.raises(OutputError, match=r"events\.out.* cannot be written: No space left"):
        opened.add(entry())
    assert threading.active_count() == threads
    assert list((tmp_path / "runs" / "model").iterdir()) == []


@pytest.mark.filterwarnings("default")
def test_mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    opened = tracker("mlflow", "releases")
    said = opened.add(entry())
    opened.add(entry())
    client = MlflowClient()
    number = client.get_experiment_by_name("releases").experiment_id
    runs = client.search_runs([number])
    assert len(runs) == 2 and said.split()[-1] in [run.info.run_id for run in runs]
    run = runs[0]
    assert run.info.status == "FINISHED" and run.info.run_name == "model"
    assert run.data.metrics == pytest.approx(_named(entry().scores()))
    assert run.data.params.items() >= {"uqeval": report().uqeval_version}.items()
    files = {file.path for file in client.list_artifacts(run.info.run_id)}
    assert files == {"page.html", "report.json", "figures"}
    with pytest.raises(UsageError, match="the name of an experiment"):
        open_trackers(mlflow=" ")


@pytest.mark.filterwarnings("default")
def test_mlflow_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nothing://there")
    with pytest.raises(OutputError, match=r"MLflow refuses it.*Check MLFLOW_TRACKING_URI"):
        tracker("mlflow", "releases").add(entry())


@pytest.mark.filterwarnings("default")
def test_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    assert "offline-run" in tracker("wandb", "models").add(entry())
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    logged = _of_wandb(next(folder.glob("*.wandb")))
    assert {k: v for k, v in logged.items() if k in report().scalars()} == report().scalars()
    assert logged["_step"] == 4
    assert list(folder.glob("files/media/images/figures/curve*.png"))
    (page,) = folder.glob("files/media/html/page*.html")
    assert page.read_text() == "<p>page</p>"
    with pytest.raises(UsageError, match="'a/b'"):
        open_trackers(wandb="a/b")


def _of_wandb(path: Path) -> dict[str, Any]:
    """Return all values in the log of a run."""
    messages = importlib.import_module("wandb.proto.wandb_internal_pb2")
    values: dict[str, Any] = {}
    for data in _records(path.read_bytes()):
        record = messages.Record()
        record.ParseFromString(data)
        for item in record.history.item:
            values["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
    return values


def _records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log of LevelDB after W&B's 7 bytes: blocks of 32 KiB; pieces of a
    record have a checksum, a length and a kind (whole, first, middle, last).
    """
    at, record = 7, b""
    while at < len(data):
        if at % 32768 > 32768 - 7:
            at += -at % 32768
        size, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield record
            record = b""


ITEMS = ("a", "b")


@pytest.fixture
def evaluated(tmp_path: Path) -> tuple[Report, Pictures, Path]:
    """A report of two images, its opened predictions, and a folder of the images."""
    rng = np.random.default_rng(0)
    probs = np.moveaxis(rng.dirichlet(np.ones(3), (2, 1, 8, 12)), -1, 2).astype("f4")
    labels = rng.integers(0, 3, (2, 8, 12)).astype("u1")
    labels[0, 0] = 255
    np.savez(tmp_path / "p.npz", probs=probs, labels=labels, names=ITEMS)
    (tmp_path / "images").mkdir()
    for name in ITEMS:
        Image.fromarray(np.zeros((8, 12, 3), "u1")).save(tmp_path / "images" / f"{name}.png")
    found = uqeval.evaluate(str(tmp_path / "p.npz"), metrics=("failure",))
    pictures = open_gallery(found, str(tmp_path / "p.npz"), None, None, InputOptions())
    return found, pictures, tmp_path / "images"


def test_every_item_needs_an_image(evaluated: tuple[Report, Pictures, Path]) -> None:
    found, _, images = evaluated
    assert list(images_by_item(found, str(images))) == list(ITEMS)
    (images / "b.png").unlink()
    with pytest.raises(UsageError, match="1 of 2 items have no image: b"):
        images_by_item(found, str(images))
    with pytest.raises(UsageError, match="give --images DIR"):
        images_by_item(found, None)


@pytest.mark.filterwarnings("default")
def test_fiftyone(evaluated: tuple[Report, Pictures, Path]) -> None:
    """With a database: FiftyOne needs MongoDB, which `FIFTYONE_DATABASE_URI` may name."""
    fiftyone = pytest.importorskip("fiftyone")
    config, service = map(
        importlib.import_module, ("fiftyone.core.config", "fiftyone.core.service")
    )
    try:
        fiftyone.list_datasets()
    except (ConnectionError, config.FiftyOneConfigError, service.ServiceException) as error:
        pytest.skip(f"FiftyOne has no database: {error}")
    found, pictures, images = evaluated
    name = f"uqeval-test-{os.getpid()}"
    said = FiftyOneDataset(name).add(found, pictures, images_by_item(found, str(images)))
    try:
        assert said == f"wrote 2 items to FiftyOne: fiftyone app launch {name}"
        dataset = fiftyone.load_dataset(name)
        assert dataset.values("item") == list(ITEMS)
        for sample, item in zip(dataset, found.items, strict=True):
            assert sample.failure_auroc == item["failure"]["auroc"]
            assert sample.errors.mask.sum() == item["failure"]["errors"]
            assert sample.entropy.map.shape == (8, 12) and sample.entropy.range[0] == 0
        assert (dataset.first().ground_truth.mask[0] == 0).all()
        assert dataset.first().prediction.mask.min() >= 1
        assert dataset.default_mask_targets == {1: "0", 2: "1", 3: "2"}
        with pytest.raises(UsageError, match=f"this dataset exists.*delete {name}"):
            FiftyOneDataset(name)
    finally:
        fiftyone.delete_dataset(name)
    with pytest.raises(KeyError):  # nothing is left where an item cannot be written
        FiftyOneDataset(name).add(found, pictures, {})
    assert not fiftyone.dataset_exists(name)


def test_the_command(tmp_path: Path) -> None:
    """The page and the run; nothing where the folder cannot be had."""
    pytest.importorskip("tensorboard")
    (tmp_path / "a.json").write_text(report().to_json())
    out, runs = tmp_path / "page.html", tmp_path / "runs"
    arguments = ("report", str(tmp_path / "a.json"), "-o", str(out), "--tensorboard")
    assert "logged a to TensorBoard" in run_well(*arguments, str(runs), "--step", "7").stderr
    assert {path.name.split(".")[0] for path in (runs / "a").iterdir()} == {"events", "page"}
    out.unlink()
    done = run_uqeval(*arguments, str(tmp_path / "a.json"))
    assert done.status == 2 and "a.json" in done.stderr and not out.exists()
