"""The use case `demo`: small stores with the structure of real ones, and a run over all of them.

Nothing of it is a measurement.
"""

from __future__ import annotations

from pathlib import Path

from uqeval.errors import OutputError
from uqeval.publishing import sync_tree, write_file
from uqeval.run import Progress, Silent
from uqeval.running import Listener, Outcome, run_config

#: What the demo asks for: a file as users write it.
_ASKED = """\
# `uqeval run` reads this file; examples/uqeval.yaml shows more of it.
stores:
  streets: {predictions: preds.zarr, labels: labels/}
  depth:   {predictions: depth.npz}
  film:    {video: film/}
evaluate:                       # depth is not said: all that applies
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


def demo(
    folder: str | Path,
    *,
    items: int = 8,
    samples: int = 10,
    size: tuple[int, int] = (256, 512),
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
    listener: Listener | None = None,
) -> Outcome:
    """Make stores and a `uqeval.yaml` in `folder`, and run it.

    Raises `OutputError` where the folder holds anything already.
    """
    from uqeval.demo.depth import save_depth
    from uqeval.demo.film import save_film
    from uqeval.stores.zarr_writer import writing

    home = Path(folder)
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise OutputError(f"{folder}: is there already and not empty; name another folder.")
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror}.") from error
    progress = progress or Silent()
    _save_streets(home, items, samples, size, seed, progress)
    half = size[0] // 2, size[1] // 2
    save_depth(home / "depth.npz", items, half, seed)
    save_film(home / "film", items, half, seed)
    with writing(home):
        sync_tree(home)
        write_file(home / "uqeval.yaml", _ASKED.encode())
    return run_config(
        home / "uqeval.yaml", workers=workers, progress=progress, listener=listener or Listener()
    )


def _save_streets(
    home: Path, items: int, samples: int, size: tuple[int, int], seed: int, progress: Progress
) -> None:
    """`preds.zarr` and `labels/`."""
    import numpy as np
    from PIL import Image

    from uqeval.demo.streets import CLASSES, annotate, predict, street
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
