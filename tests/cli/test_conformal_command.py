"""`uqeval conformal` through the executable: tables, gate and page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from scenes import labels, softmax

NAMES = [f"v_{i:02}" for i in range(12)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conformal")
    y = labels(3, 12, 40, 50, classes=3)
    p = softmax(4, 12, 2, 3, 40, 50)
    p = (0.5 * p + 0.5 * np.eye(3)[np.minimum(y, 2)].transpose(0, 3, 1, 2)[:, None]).astype("f2")
    np.savez(folder / "p.npz", probs=p, labels=y, names=NAMES)
    (folder / "fit.txt").write_text("\n".join(NAMES[:9]))
    (folder / "few.txt").write_text("\n".join(NAMES[:3]))
    return folder


def test_tables_gate_and_page(folder: Path) -> None:
    options = ("--fit-on", "fit.txt", "--alpha", "0.2", "--method", "lac", "--method", "aps")
    outcome = run_well("conformal", "p.npz", *options, "-o", "r.json", cwd=folder)
    for text in ("Coverage of single images", "Sets by class", "Coverage by size of the set"):
        assert text in outcome.stdout
    (folder / "rules.yaml").write_text(
        "conformal.items_above: {max: 0.99}\nconformal.per_class.0.coverage: {min: 0.5}\n"
        "conformal[aps].items.p05: {min: 0.2}\n"
    )
    run_well("gate", "r.json", "rules.yaml", cwd=folder)
    assert "where 1 is best" not in outcome.stdout + outcome.stderr
    gallery = ("--gallery", "1", "--predictions", "p.npz")
    run_well("report", "r.json", *gallery, "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert "Conformal prediction" in page and "images above alpha" in page


def test_what_cannot_be_calibrated(folder: Path) -> None:
    refused(
        run_uqeval("conformal", "p.npz", "--fit-on", "few.txt", "-o", "x.json", cwd=folder),
        "few.txt: 3 items, and --alpha 0.1 needs at least 9", "--alpha 0.25 or more",
    )  # fmt: skip
    refused(run_uqeval("conformal", "p.npz", cwd=folder), "give --fit-on FILE with the names")
    assert not (folder / "x.json").exists()
