"""`uqeval ood` and `uqeval run` of stores with sets or masks in `uqeval.yaml`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import as_json, run_well
from scenes import softmax

SETTINGS = """
stores:
  fog: {predictions: in.npz, out: [fog.npz, rain.npz]}
  masked: {predictions: in.npz, ood_mask: masks.npy}
  void: {predictions: in.npz, ood_mask: "2"}
  number: {predictions: in.npz, ood_mask: 2}
  city: {predictions: in.npz, region: ["boundary:1", "class:1"]}
evaluate:
  masked: {ood: {definition: bravo}}
  void: {ood: {}}
  number: {ood: {}}
  city: {calibration: {}}
output: out/
gate:
  fog/ood.per_set.rain.auroc: {min: 0.001}
  fog/ood.per_set.rain.images.auroc: {min: 0.001}
  masked/ood.bravo.bravo_index: {min: 0.001}
  city/calibration@class:1.ece: {max: 0.99}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    labels = np.random.default_rng(1).integers(0, 3, (4, 8, 9)).astype("u1")
    for k, name in enumerate(("in", "fog", "rain")):
        probs = softmax(k, 4, 2, 3, 8, 9)
        names = [f"{name}{i}" for i in range(4)]
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=labels, names=names)
    np.save(tmp_path / "masks.npy", (labels == 1).astype("u1"))
    (tmp_path / "uqeval.yaml").write_text(SETTINGS)
    return tmp_path


def test_sets_masks_and_regions_of_the_settings_file(folder: Path) -> None:
    run_well("schema", "uqeval.yaml", cwd=folder)
    done = run_well("run", "--gallery", "2", cwd=folder)
    assert "gate passed: 4 passed" in done.stdout
    typed = {
        "fog": ("in.npz", "fog.npz", "rain.npz"),
        "masked": ("in.npz", "--ood-mask", "masks.npy", "--definition", "bravo"),
        "void": ("in.npz", "--ood-mask", "2"),
        "number": ("in.npz", "--ood-mask", "2"),
    }
    for store, arguments in typed.items():
        run_well("ood", *arguments, "-o", "typed.json", cwd=folder)
        run_well("ood", "--store", store, "-o", "own.json", cwd=folder)
        found = [json.loads((folder / name).read_text()) for name in ("typed.json", "own.json")]
        found.append(json.loads((folder / "out" / f"{store}.json").read_text()))
        assert found[0]["results"] == found[1]["results"] == found[2]["results"]
        masks = [own["inputs"]["options"].get("ood_mask") for own in found]
        assert masks[0] == masks[1] == masks[2]


def test_the_most_uncertain_images_come_first(folder: Path) -> None:
    run_well("ood", "in.npz", "fog.npz", "-o", "r.json", cwd=folder)
    selection = as_json("select", "r.json", "--by", "ood.score", cwd=folder)
    values = [row["value"] for row in selection["chosen"]]
    assert len(values) > 2 and values == sorted(values, reverse=True)


def test_each_out_set_has_rows_of_pixels_and_of_images(folder: Path) -> None:
    text = run_well("ood", "in.npz", "fog.npz", "rain.npz", "-o", "r.json", cwd=folder).stdout
    pixels, images = text.split("Out-of-distribution images")
    for table in (pixels, images):
        assert "in / fog" in table and "in / rain" in table
    run_well("report", "r.json", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert 'id="score-ood.per_set.rain.images.auroc"' in page


def test_names_of_sets_have_dots_and_folders(folder: Path) -> None:
    """Each command finds the scores of a set by its quoted name."""
    (folder / "x").mkdir()
    for old, new in (("fog", "fog.v1"), ("rain", "x/fog.v1")):
        (folder / f"{old}.npz").rename(folder / f"{new}.npz")
    names = ("fog.v1", "x/fog.v1")
    scores = [f'ood.per_set."{name}".{kind}auroc' for name in names for kind in ("", "images.")]
    rules = "\n".join(f"  '{score}': {{min: 0.001, confidence: 0.8}}" for score in scores)
    (folder / "uqeval.yaml").write_text(
        "stores:\n  s: {predictions: in.npz, out: [fog.v1.npz, x/fog.v1.npz]}\n"
        f"evaluate: {{s: {{ood: {{}}}}}}\nci: 0.8\noutput: out/\ngate:\n{rules}\n"
    )
    done = run_well("run", cwd=folder)
    assert "gate passed: 4 passed" in done.stdout
    report = json.loads((folder / "out" / "s.json").read_text())
    assert [own["name"] for own in report["inputs"]["sets"]] == ["in", *names]
    run_well("merge", "out/s.json", "--ci", "0.8", "-o", "merged.json", cwd=folder)
    merged = json.loads((folder / "merged.json").read_text())
    assert list(merged["results"]["ood"]["per_set"]) == list(names)
    for name in names:
        own, again = (r["results"]["ood"]["per_set"][name] for r in (report, merged))
        assert list(own) == list(again)
        assert own["images"]["auroc"] == again["images"]["auroc"]
    for score in scores:
        assert report["intervals"][score]["low"] is not None
        assert (".images." not in score) or merged["intervals"][score] == report["intervals"][score]
    run_well("ood", "in.npz", *(f"{name}.npz" for name in names), "-o", "other.json", cwd=folder)
    text = run_well("compare", "out/s.json", "other.json", "--all", "--format", "json", cwd=folder)
    found = json.loads(text.stdout)
    assert set(scores) <= {row["address"] for row in found["scores"]}
    (folder / "g.yaml").write_text(f"'{scores[1]}': {{max_drop: 0.01, confidence: 0.8}}\n")
    run_well("gate", "out/s.json", "g.yaml", "--baseline", "other.json", cwd=folder)
    run_well("verify", "out/s.json", cwd=folder)
    run_well("report", "merged.json", "-o", "page.html", cwd=folder)
    assert "x/fog.v1" in (folder / "page.html").read_text()
