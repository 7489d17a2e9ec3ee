"""The use case `demo`: make small synthetic stores like real ones, and run over them."""

from __future__ import annotations

import shutil
from pathlib import Path

from uqeval.arrays import np
from uqeval.disk.locks import hidden, locked
from uqeval.disk.outputs import refuse_url
from uqeval.disk.publishing import sync_tree, write_file, writing
from uqeval.engine.options import MachineOptions, Progress, Silent
from uqeval.errors import OutputError
from uqeval.usecases.compiling import compiling_ahead
from uqeval.usecases.demo.streets import CLASSES, annotate, predict, save_depth, save_film, street
from uqeval.usecases.run.outcome import Listener, Outcome
from uqeval.usecases.run.running import run_config

#: The configuration of the demo.
_CONFIG = """\
# `uqeval run` reads this file; examples/uqeval.yaml shows more of it.
stores:
  streets: {predictions: preds.zarr, labels: labels/}
  film:    {video: film/}
  depth:   {predictions: depth.npz}
evaluate:                       # depth is not listed: all metrics that fit
  streets:
    pavpu: {uncertainty: [entropy, mutual_information]}
    calibration: {}
    failure: {}
    sparsification: {}
  film:
    tc: {flow: dis}
output: out/
gate:
  pavpu.pavpu: {min: 0.5}
  streets/calibration.ece: {max: 0.1, id: DEMO-1, why: confidence must mean what it says}
  film/temporal.mtc: {min: 0.5}
"""
#: The names of the evaluations in `kernels.ahead`.
EVALUATIONS = (
    *(f"{family} of probs float16" for family in (
        "segmentation", "pavpu", "calibration", "failure", "sparsification")),
    "tc of predictions uint8",
    *(f"{family} of mean float32" for family in ("regression", "nmerci", "sparsification")),
)  # fmt: skip
#: The files of a demo, and the mark of an unfinished one.
_MADE = ("preds.zarr", "labels", "depth.npz", "film", "uqeval.yaml", "out")
_UNFINISHED = ".uqeval-demo"


def demo(
    folder: str | Path,
    *,
    items: int = 8,
    samples: int = 6,
    size: tuple[int, int] = (192, 384),
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    listener: Listener | None = None,
) -> Outcome:
    """Make stores and a `uqeval.yaml` in `folder`, and run it.

    Raises `OutputError` if the folder has content, unless that is of an unfinished demo.
    """
    home, progress = Path(folder), progress or Silent()
    refuse_url(home)
    _make_folder(home)
    half = size[0] // 2, size[1] // 2
    with locked(home / _UNFINISHED):
        _begin(home)
        with writing(home):
            save_depth(home / "depth.npz", items, half, seed)
            save_film(home / "film", items, half, seed)
        with compiling_ahead(EVALUATIONS, MachineOptions(workers=workers).run().threads()):
            with writing(home):
                _save_streets(home, items, samples, size, seed, progress)
                sync_tree(home)
                write_file(home / "uqeval.yaml", _CONFIG.encode())
            outcome = run_config(
                home / "uqeval.yaml", workers=workers, progress=progress,
                listener=listener or Listener(),
            )  # fmt: skip
        if outcome.status != 2:  # all stores were evaluated
            with writing(home):
                (home / _UNFINISHED).unlink()
    return outcome


def _make_folder(home: Path) -> None:
    """Make the folder. Raises `OutputError` if it has content, unless that is of an unfinished
    demo.
    """
    lock_file = hidden(home / _UNFINISHED, "lock")
    with writing(home):
        is_taken = home.exists() and (
            not home.is_dir() or any(path != lock_file for path in home.iterdir())
        )
        if is_taken and not (home / _UNFINISHED).is_file():
            raise OutputError(f"{home} exists and is not empty; give another folder.")
        home.mkdir(parents=True, exist_ok=True)


def _begin(home: Path) -> None:
    """Mark the folder as unfinished; remove the files of an unfinished demo."""
    _make_folder(home)  # again: another process may have made a demo just now
    with writing(home):
        (home / _UNFINISHED).touch()
        for name in _MADE:
            if (home / name).is_dir():
                shutil.rmtree(home / name)
            (home / name).unlink(missing_ok=True)


def _save_streets(
    home: Path, items: int, samples: int, size: tuple[int, int], seed: int, progress: Progress
) -> None:
    """Write `preds.zarr` and `labels/`."""
    from PIL import Image

    from uqeval.writer import PredictionWriter

    (home / "labels").mkdir()
    names = [f"street_{i:03d}" for i in range(items)]
    progress.begin("drawing streets", items)
    try:
        with PredictionWriter(
            home / "preds.zarr", names=names, samples=samples, classes=len(CLASSES), size=size,
            class_names=CLASSES, sample_kind="mc-dropout",
        ) as writer:  # fmt: skip
            for i, name in enumerate(names):
                rng = np.random.default_rng((seed, i))
                scene = street(rng, *size)
                Image.fromarray(annotate(rng, scene)).save(home / "labels" / f"{name}.png")
                writer.add(name, predict(rng, scene, samples))
                progress.advance(0, 1)
    finally:
        progress.end()
