"""Commands without paths: `uqeval.yaml` says what to evaluate, and messages name its lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import refused, run_forked

HEAD = "stores:\n  a:\n    predictions: complete.zarr\n"


@pytest.fixture
def folder(stores: Path, tmp_path: Path) -> Path:
    """Return a folder with the stores and a table of items."""
    for store in ("complete.zarr", "preds.zarr"):
        (tmp_path / store).symlink_to(stores / store)
    (tmp_path / "items.csv").write_text("name,city\nfirst,here\n")
    return tmp_path


MISTAKES = {
    "class": ("    region: class:zebra\n", "calibration", "4: stores.a.region: `region:"),
    "map": ("    region: map:nothere\n", "calibration", "4: stores.a.region: `region:"),
    "path": (
        "    depth_map: nothere.npy\n    region: depth:0-5\n", "calibration",
        "4: stores.a.depth_map: nothere.npy: there is nothing here",
    ),
    "names": ("    names: nope.txt\n", "sweep", "4: stores.a.names: nope.txt cannot be read"),
    "kind": ("    kind: logits\n", "pavpu", "4: stores.a.kind: `kind:` logits"),
    "class names": ("    class_names: [a]\n", "reduce -o m.zarr", "4: stores.a.class_names: "),
    "window": (
        "evaluate:\n  a:\n    pavpu: {window: 99}\n", "pavpu",
        "6: evaluate.a.pavpu.window: `window: 99` is larger than",
    ),
    "table": ("slices: {table: no.csv}\n", "pavpu", "4: slices.table: no.csv cannot be read"),
    "row": (
        "slices: {table: items.csv}\n", "pavpu",
        "4: slices.table: items.csv: 3 of 3 items have no row",
    ),
    "group": (
        "group_by: city\n", "pavpu",
        "4: group_by: `group_by:` names columns of the items' table; give it as `slices:",
    ),
    "draws": ("draws: 500\n", "pavpu", "4: draws: `draws:` and `seed:` need intervals; give `ci:"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_has_its_line_and_its_key(folder: Path, mistake: str) -> None:
    """A single command names the place in the file, as `uqeval run` does."""
    text, command, place = MISTAKES[mistake]
    (folder / "uqeval.yaml").write_text(HEAD + text)
    refused(run_forked(*command.split(), "-q", cwd=folder), f"uqeval.yaml:{place}")


def test_run_names_the_key_of_a_store_that_is_wrong(folder: Path) -> None:
    (folder / "uqeval.yaml").write_text(HEAD + "    class_names: [a]\n")
    done = run_forked("run", "-q", "-o", "out", cwd=folder)
    assert done.status == 2
    assert "uqeval.yaml:4: stores.a.class_names: `class_names:`: 1 name" in done.stderr


def test_an_option_on_the_command_line_has_no_line(folder: Path) -> None:
    """It overrides the file, and the message spells it as it was given."""
    (folder / "uqeval.yaml").write_text(HEAD + "evaluate:\n  a:\n    pavpu: {window: 2}\n")
    refused(run_forked("pavpu", "--window", "99", "-q", cwd=folder), "uqeval: --window 99 is")


@pytest.mark.parametrize("text", ["    region: boundary:2\n", "    ood_mask: '1'\n"])
def test_inspect_checks_classes_with_regions_and_sets(folder: Path, text: str) -> None:
    (folder / "uqeval.yaml").write_text(HEAD + text)
    done = run_forked("inspect", cwd=folder)
    assert done.status == 0, done.stderr
    assert "pixels checked" in done.stdout and "sound" in done.stdout.split()
