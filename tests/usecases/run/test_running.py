"""Options of a run that have no effect are refused before any store is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import uqeval
from uqeval.usecases.run.outcome import RunSettings
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
