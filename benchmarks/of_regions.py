"""Regions of pixels, counted in the same read as the whole image."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import Case, Setup, command
from benchmarks.of_stores import large_stores

REGIONS = ("boundary:8", "interior:8", "class:0", "box:0.5:1,0:1")
_FAMILIES = ("pavpu", "calibration", "failure", "sparsification")


def _evaluate(
    store: str, labels: str | None, families: tuple[str, ...], regions: tuple[str, ...]
) -> None:
    """Evaluate with one worker, so that CPU time is that of the work alone."""
    import uqeval

    uqeval.evaluate(store, labels, list(families), region=regions, workers=1)


def _run(store: str, labels: str | None, regions: tuple[str, ...]) -> None:
    """`uqeval run` into an empty folder: it would use the results of an earlier run."""
    inputs = (store, *((labels,) if labels else ()))
    with tempfile.TemporaryDirectory() as folder:
        options = (option for region in regions for option in ("--region", region))
        command("run", *inputs, "-o", folder, *options)


def _pairs(store: Path, labels: str | None) -> Iterator[Case]:
    for families in (_FAMILIES, *((family,) for family in _FAMILIES)):
        title = f"{store.stem}, {families[0] if len(families) == 1 else 'all four'}"
        none, four = ((str(store), labels, families, regions) for regions in ((), REGIONS))
        yield Case(f"{title}: whole image", _evaluate, none, yardstick=True)
        yield Case(f"{title}: and {len(REGIONS)} regions", _evaluate, four)
    title = f"{store.stem}, uqeval run"
    yield Case(f"{title}: whole image", _run, (str(store), labels, ()), yardstick=True)
    yield Case(f"{title}: and {len(REGIONS)} regions", _run, (str(store), labels, REGIONS))


def regions(setup: Setup) -> Iterator[Case]:
    """Four regions beside none: 6 items 10×19×512×1024 float16, and given predictions."""
    yield from _pairs(large_stores(setup)[0] / "zstd.zarr", None)
    for store in setup.predictions:
        labels = Path(store).parent / "labels"
        yield from _pairs(Path(store), str(labels) if labels.is_dir() else None)
