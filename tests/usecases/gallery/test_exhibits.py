"""Figures of chosen items: the order of models, and film strips."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_videos import save_folder, video

import uqeval
from uqeval.inputs import InputOptions
from uqeval.report.figures.maps import Strip, _rows
from uqeval.report.figures.style import render
from uqeval.report.page.gallery import Picture
from uqeval.usecases.gallery.exhibits import file_name, film, item_figure
from uqeval.usecases.gallery.opening import open_gallery
from uqeval.usecases.gallery.paint import painted


def test_models_are_in_the_order_of_their_score() -> None:
    """Moukari et al. 2019, Figure 3: standard deviations, ranked by n-MeRCI of the image."""
    rng = np.random.default_rng(0)
    target = rng.uniform(1, 9, (1, 12, 16))
    error = rng.gamma(2, 1, target.shape)
    sigmas = {"constant": np.ones_like(error), "oracle": error, "noisy": error + 0.5}
    galleries = {}
    for name, sigma in sigmas.items():
        data = {"mean": target + error, "std": sigma, "target": target}
        report = uqeval.evaluate(data, None, "nmerci")
        maps = ["target", "sigma"]
        galleries[name] = report, open_gallery(report, data, None, None, InputOptions(), maps=maps)
    item = report.items[0]["name"]
    drawn = item_figure(galleries, item, ["nmerci.nmerci", "nmerci.mae"], [(0, 0.5, 0.2, 0.4)])
    order = [name for name in drawn.alt.split("; ") for name in [name.split(":")[0]]]
    assert order[0].endswith("shared")
    assert order[1:] == ["oracle", "noisy", "constant"]
    assert "oracle: n-MeRCI 0" in drawn.alt and "constant: n-MeRCI 1" in drawn.alt
    assert render(drawn, "png").startswith(b"\x89PNG")
    with pytest.raises(uqeval.UqevalError, match="no item of this name"):
        item_figure(galleries, "other")
    with pytest.raises(uqeval.UqevalError, match="no item has this score"):
        item_figure(galleries, item, ["nmerci.none"])
    with pytest.raises(uqeval.UqevalError, match="for the report of a video"):
        item_figure(galleries, item, frames=3)


def test_single_pictures_are_beside_each_other() -> None:
    picture = painted("m", np.zeros((2, 3, 3), "u1"), "m")
    assert picture.size == (3, 2)

    def rows(*counts: int) -> list[list[str]]:
        strips = [Strip(f"s{n}", [picture] * count) for n, count in enumerate(counts)]
        return [[head for head, _ in row] for row in _rows(strips)]

    assert rows(1, 1, 1, 1, 1) == [["s0", "s1", "s2", "s3"], ["s4"]]
    assert rows(2, 1, 1, 3) == [["s0", ""], ["s1", "s2"], ["s3", "", ""]]
    assert rows(5) == [["s0", "", ""], ["", ""]]


def test_film_strips(tmp_path: Path) -> None:
    """Varghese et al. 2020, Figure 4: frames, and below them the predictions with TC_t."""
    own = video(seed=3)
    folder = save_folder(tmp_path / "v", own)
    report = uqeval.evaluate(None, None, {"tc": {}}, video=str(folder), ignore_index=255)
    gallery = open_gallery(report, None, None, None, InputOptions(video=folder, ignore_index=255))
    strips = film(gallery.painter, report, 2, 3)  # type: ignore[arg-type]
    names = [str(item["name"]) for item in report.items]
    assert [picture.title for picture in strips[0].pictures] == [own.names[1], names[1], names[2]]
    titles = [picture.title for picture in strips[1].pictures]
    assert titles[0] == "prediction"
    for title, item in zip(titles[1:], report.items[1:3], strict=True):
        assert float(title.removeprefix("TC ")) == pytest.approx(item["temporal"]["tc"], abs=5e-4)
    with pytest.raises(uqeval.UqevalError, match="only 2 frames of the sequence end at"):
        film(gallery.painter, report, 0, 3)  # type: ignore[arg-type]
    drawn = item_figure({"v": (report, gallery)}, names[1])
    assert drawn.name == f"item-{names[1]}" and "mTC" in drawn.alt
    with pytest.raises(uqeval.UqevalError, match="takes one report of a video"):
        item_figure({"v": (report, gallery), "w": (report, gallery)}, names[1])
    with pytest.raises(uqeval.UqevalError, match="--by is for single images"):
        item_figure({"v": (report, gallery)}, names[1], ["temporal.tc"])


def test_names_of_files() -> None:
    assert file_name("city/a b_01.x") == "item-city-a-b_01.x"
    assert file_name("../日本/é\x1b") == "item-..-日本-é-"
    long = [file_name("𝒳" * 300 + end) for end in ("a", "b")]
    assert long[0] != long[1] and all(len(f"{name}.svg".encode()) < 256 for name in long)
    assert Picture("t", painted("t", np.zeros((5, 7, 3), "u1"), "").png, "").size == (7, 5)
