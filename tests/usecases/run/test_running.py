"""Options of a run that have no effect are refused before any store is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_stores import NAMES, save_complete, save_label_folder, save_predictions

import uqeval
from uqeval.usecases.run.outcome import Outcome, RunSettings
from uqeval.usecases.run.running import config_of_store, run_stores

RULES = "gate: {pavpu.pavpu: {min: 0.1}}\n"


@pytest.mark.parametrize(
    ("rules", "options", "says"),
    [
        ("", {}, r"gate: .*uqeval\.yaml has no rules under gate:"),
        ("gate: {}\n", {}, "gate"),
        (RULES, {"part": "1/2"}, "has no effect on a shard"),
    ],
)
def test_a_gate_without_rules_to_judge(
    rules: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "uqeval.yaml"
    path.write_text(f"stores: {{p: {{predictions: none.zarr}}}}\n{rules}")
    with pytest.raises(uqeval.UsageError, match=says):
        uqeval.run_config(path, gate=True, **options)


def test_a_gate_without_a_file() -> None:
    config = config_of_store(["none.zarr"], None)
    with pytest.raises(uqeval.UsageError, match="is for the rules under gate: of a file"):
        run_stores(config, RunSettings(gate=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_complete(tmp_path / "p.zarr")
    save_predictions(tmp_path / "preds.zarr")
    save_label_folder(tmp_path / "labels")
    rows = "".join(f"{name},{'wet' if name == NAMES[0] else 'dry'}\n" for name in NAMES)
    (tmp_path / "items.csv").write_text(f"name,weather\n{rows}")
    return tmp_path


def run(folder: Path, store: str, more: str = "") -> Outcome:
    """Run a file whose second line is `store`."""
    path = folder / "uqeval.yaml"
    path.write_text(f"stores:\n  {store}\nevaluate: {{p: {{segmentation: }}}}\n{more}")
    return uqeval.run_config(path, output=folder / "out", workers=1)


P = "p: {predictions: p.zarr}"


@pytest.mark.parametrize(
    ("store", "more", "says"),
    [
        ("p:\n    predictions: none.zarr", "", ":3: stores.p.predictions: "),
        ("p:\n    predictions: preds.zarr\n    labels: nolabels", "", ":4: stores.p.labels: "),
        (
            "p:\n    predictions: p.zarr\n    region: 'class:rode'", "",
            ":4: stores.p.region: `region: 'class:rode'`: it is no class",
        ),
        (
            "p:\n    predictions: p.zarr\n    region: 'depth:0-9'", "",
            ":4: stores.p.region: `region:` depth:LOW-HIGH: ",
        ),
        (
            P, "slices: {table: items.csv, by: [wether]}\n",
            ":4: slices.by: {0}/items.csv has no column 'wether'; did you mean 'weather'?",
        ),
        (
            P, "slices: items.csv\nci: 0.9\ngroup_by: drive\n",
            ":6: group_by: {0}/items.csv has no column 'drive'; it has weather.",
        ),
    ],
)  # fmt: skip
def test_an_error_of_a_store_names_its_line(store: str, more: str, says: str, folder: Path) -> None:
    message = run(folder, store, more).failed["p"]
    assert message.startswith(f"{folder}/uqeval.yaml{says.format(folder)}")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            "slices: items.csv\ngroup_by: weather\n",
            "5: group_by: `group_by:` needs intervals; give",
        ),
        ("group_by: weather\n", "4: group_by: `group_by:` names columns"),
        ("seed: 3\n", "4: seed: `draws:` and `seed:` need intervals; give `ci: LEVEL`"),
    ],
)
def test_intervals_that_a_file_lacks_name_its_line(more: str, says: str, folder: Path) -> None:
    with pytest.raises(uqeval.UsageError, match=f"yaml:{says}"):
        run(folder, P, more)


def test_a_missing_table_names_its_line(folder: Path) -> None:
    with pytest.raises(uqeval.StoreError, match=r"yaml:4: slices\.table: .*none\.csv cannot be"):
        run(folder, P, "slices: none.csv\n")


def test_image_failure_reads_numbers_of_conformal_with_the_options_of_the_run(
    folder: Path,
) -> None:
    """Also if conformal is named after it; without conformal, the message says where to name it."""
    (folder / "fit.txt").write_text(f"{NAMES[0]}\n{NAMES[1]}\n")
    path = folder / "uqeval.yaml"
    conformal = "conformal: {fit_on: fit.txt, alpha: 0.4}"
    ranked = "image_failure: {risk: conformal.loss}"
    for families in (f"{conformal}, {ranked}", f"{ranked}, {conformal}"):
        path.write_text(f"stores: {{{P}}}\nevaluate: {{p: {{{families}}}}}\n")
        outcome = uqeval.run_config(path, output=folder / "out", workers=1)
        (report,) = outcome.reports.values()
        for item in report.items:
            assert item["image_failure"]["risk"] == item["conformal"]["loss"]
    path.write_text(f"stores: {{{P}}}\nevaluate: {{p: {{{ranked}}}}}\n")
    outcome = uqeval.run_config(path, output=folder / "out", workers=1)
    assert (
        "name conformal with its options beside image_failure in uqeval.yaml" in outcome.failed["p"]
    )
