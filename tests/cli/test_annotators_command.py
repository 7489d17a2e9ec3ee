"""`uqeval annotators` through the executable: stores and folders, gate, page, verify."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from PIL import Image
from scenes import labels, softmax

NAMES = [f"v_{i:02}" for i in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("annotators")
    y = labels(3, 6, 16, 20, classes=3)
    raters = np.stack([np.roll(y, k, axis=2) for k in range(3)], axis=1)
    np.savez(folder / "p.npz", probs=softmax(4, 6, 2, 3, 16, 20), names=NAMES)
    np.savez(folder / "y.npz", labels=raters, names=NAMES)
    for r in range(3):
        (folder / "raters" / f"r{r}").mkdir(parents=True)
        for name, own in zip(NAMES, raters[:, r], strict=True):
            Image.fromarray(own).save(folder / "raters" / f"r{r}" / f"{name}.png")
    return folder


def test_tables_gate_page_and_verify(folder: Path) -> None:
    outcome = run_well("annotators", "p.npz", "y.npz", "-o", "r.json", cwd=folder)
    for text in ("GED of one", "Several annotators by class", "NCC", "are from 3 annotators"):
        assert text in outcome.stdout + outcome.stderr
    (folder / "rules.yaml").write_text(
        "annotators.ged: {max: 1.99}\nannotators.per_class.0.ged: {max: 1.99}\n"
        "annotators.ncc: {min: -0.99}\n"
    )
    run_well("gate", "r.json", "rules.yaml", cwd=folder)
    run_well("report", "r.json", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert "Diversity of samples and annotators" in page and "Several annotators" in page
    verified = run_well("verify", "r.json", "--all", cwd=folder)
    assert "annotators: accuracy, agreement" in verified.stdout


def test_a_folder_for_each_annotator(folder: Path) -> None:
    own = run_well(
        "annotators", "p.npz", "raters", "--annotator-folders", "--format", "csv", cwd=folder
    )
    store = run_well("annotators", "p.npz", "y.npz", "--format", "csv", cwd=folder)
    assert own.stdout == store.stdout
    (folder / "uqeval.yaml").write_text(
        "stores:\n  s: {predictions: p.npz, labels: raters, annotator_folders: true}\n"
        "evaluate:\n  s: {annotators: {uncertainty: confidence}}\noutput: out\n"
    )
    run_well("run", "-q", cwd=folder)
    assert (folder / "out" / "s.json").exists()
    refused(
        run_uqeval("annotators", "p.npz", "y.npz", "--annotator-folders", cwd=folder),
        "--annotator-folders is for a folder of label PNGs",
    )
