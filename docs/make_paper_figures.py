"""Write the pictures of `docs/papers/`: run the commands of the pages on synthetic data, and keep
the figures that they show. Takes about seven minutes, most of them for the toys of Gustafsson.

`python docs/make_paper_figures.py [PAGE…]`; `tests/test_paper_pages.py` checks the list of files
and runs the commands on smaller data.
"""

from __future__ import annotations

import io
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "docs" / "papers"
#: The pictures of each page, and the files that its commands write.
FIGURES = {
    "moukari": {
        "moukari-1.png": "moukari_toy/figure_1.png",
        "moukari-2.png": "moukari_toy/figure_2.png",
        "moukari-3.png": "moukari/item-street_001.png",
        "moukari-4-5.png": "moukari/nmerci-depth.png",
    },
    "mukhoti-gal": {
        "mukhoti-3-4.svg": "figure5/pavpu-threshold.svg",
        "mukhoti-5.png": "figure5/item-street_001.png",
        "mukhoti-6.png": "figure6/item-street_001.png",
    },
    "ma": {
        "ma-1.png": "ma/item-street_001.png",
        "ma-2.svg": "ma_independent/pavpu-threshold.svg",
        "ma-3.svg": "ma_models/headlines.svg",
        "ma-4-5.png": "ma/accuracy-by-uncertainty.png",
    },
    "gustafsson": {
        "gustafsson-1.png": "maps_depth/item-street_001.png",
        "gustafsson-2-3.png": "gustafsson_toys/figure_2_3.png",
        "gustafsson-4-14-21.png": "gustafsson_toys/figure_4_14_21.png",
        "gustafsson-5.png": "gustafsson_toys/figure_5.png",
        "gustafsson-6.png": "depth/sweep.png",
        "gustafsson-26.png": "depth/sweep-calibration.png",
        "gustafsson-24.png": "depth/sweep-sparsification-error.png",
        "gustafsson-34.png": "streets/sweep-reliability.png",
    },
    "varghese": {
        "varghese-3.svg": "film_figures/temporal.svg",
        "varghese-4.png": "film_figures/item-stuttgart00_003.png",
    },
}  # fmt: skip
#: The pages share data, so their order matters.
PAGES = tuple(FIGURES)
#: Pixels, fewer for maps, and colours.
_WIDTH, _OF_MAPS, _COLOURS = 1000, 860, 256
_BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """Return the commands of the shell blocks of a page, each as one line."""
    blocks = _BLOCK.findall((PAPERS / f"{page}.md").read_text("utf-8"))
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


def main(pages: tuple[str, ...] = PAGES) -> None:
    """Run the commands and write the pictures."""
    (PAPERS / "figures").mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        runpy.run_path(str(PAPERS / "make_data.py"))["main"](data)
        for page in pages:
            for line in commands(page):
                print(f"$ {line}", flush=True)
                subprocess.run(line, shell=True, cwd=data, env=environment, check=True)
            for name, source in FIGURES[page].items():
                (PAPERS / "figures" / name).write_bytes(_small(data / source))


def _small(path: Path) -> bytes:
    """Return an SVG as it is, and a PNG with fewer pixels and colours."""
    if path.suffix == ".svg":
        return path.read_bytes()
    image = Image.open(path).convert("RGB")
    width = _OF_MAPS if path.name.startswith("item-") else _WIDTH
    if image.width > width:
        size = (width, round(image.height * width / image.width))
        image = image.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(buffer, "png", optimize=True)
    return buffer.getvalue()


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or PAGES)
