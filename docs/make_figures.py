"""Write the pictures of concepts and guides from the demo's data, in about a minute.

`tests/test_docs.py` checks the list of files, not their bytes.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image

from uqeval import evaluate
from uqeval.inputs.options import InputOptions
from uqeval.records.report import Report
from uqeval.report.figures import figures_of
from uqeval.report.figures.style import render
from uqeval.usecases.demo.making import demo
from uqeval.usecases.gallery.opening import open_gallery

FOLDER = Path(__file__).with_name("figures")
#: Each file, with the report and the name of the figure that it shows.
FIGURES = {
    "pavpu-threshold.svg": ("streets", "pavpu-threshold"),
    "pavpu-classes.svg": ("streets", "pavpu-classes"),
    "reliability.svg": ("streets", "reliability"),
    "risk-coverage.svg": ("streets", "risk-coverage"),
    "sparsification.svg": ("depth", "sparsification"),
    "regression-calibration.svg": ("depth", "regression-calibration"),
    "nmerci-alpha.svg": ("depth", "nmerci-alpha"),
    "temporal.svg": ("film", "temporal"),
    "intervals.svg": ("items", "headlines"),
    "conformal.svg": ("conformal", "conformal-images"),
}
#: Files that show the pictures of an item side by side: title of the picture in a gallery.
PICTURES = {"pavpu-patches.png": ("errors", "entropy", "patches")}
_WIDTH, _GAP = 320, 8


def main() -> None:
    """Make the demo's data, evaluate them and write all files."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "demo"
        demo(home, items=24, size=(192, 384))
        stores = home / "preds.zarr", home / "labels"
        metrics = {"pavpu": {}, "calibration": {}, "failure": {}}
        streets = evaluate(*stores, metrics)
        reports = {
            "streets": {"streets": streets},
            "items": {
                "6 images": evaluate(*stores, "failure", ci=0.95, limit=6),
                "24 images": evaluate(*stores, "failure", ci=0.95),
            },
        }
        names = home / "calibration.txt"
        names.write_text("".join(f"street_{i:03d}\n" for i in range(0, 24, 2)))
        sets = evaluate(*stores, {"conformal": {"fit_on": str(names)}})
        reports["conformal"] = {"conformal": sets}
        for name in ("depth", "film"):
            reports[name] = {name: Report.load(home / "out" / f"{name}.json")}
        for file, (report, figure) in FIGURES.items():
            (FOLDER / file).write_bytes(_figure(reports[report], figure))
        for file, titles in PICTURES.items():
            (FOLDER / file).write_bytes(_pictures(streets, stores, titles))


def _figure(reports: dict[str, Report], name: str) -> bytes:
    drawn = [figure for figures in figures_of(reports).values() for figure in figures]
    return render(next(figure for figure in drawn if figure.name == name), "svg")


def _pictures(report: Report, stores: tuple[Path, Path], titles: tuple[str, ...]) -> bytes:
    """Return pictures of the item with most patches that are certain and wrong, side by side."""
    worst = max(range(len(report.items)), key=lambda i: report.items[i]["pavpu"]["n_ic"])
    gallery = open_gallery(report, *stores, None, InputOptions())
    by_title = {picture.title.split(",")[0]: picture for picture in gallery.pictures(worst)}
    images = [Image.open(io.BytesIO(by_title[title].png)).convert("RGB") for title in titles]
    height = _WIDTH * images[0].height // images[0].width
    joined = Image.new("RGB", (len(images) * (_WIDTH + _GAP) - _GAP, height), "white")
    for i, image in enumerate(images):
        scaled = image.resize((_WIDTH, height), Image.Resampling.NEAREST)
        joined.paste(scaled, (i * (_WIDTH + _GAP), 0))
    buffer = io.BytesIO()
    joined.quantize(64).save(buffer, "png", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    main()
