"""After a shard, uqeval names the commands of the next pass and the options of one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scenes import labels, softmax
from typer.testing import CliRunner

import uqeval
from uqeval.cli.entry import app
from uqeval.metrics import FAMILIES


@pytest.mark.parametrize(
    ("family", "values"),
    [("pavpu", {"NUMBER": "0.5", "LOW:HIGH": "0:2"}), ("calibration", {})],
)
def test_the_options_of_one_pass_need_one_pass(
    family: str, values: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also: a shard without them names them, and the next step after it is `merge --fit`."""
    monkeypatch.chdir(tmp_path)
    probs = softmax(3, 4, 2, 3, 12, 12)
    np.savez("p.npz", probs=probs, labels=labels(3, 4, 12, 12, classes=3))
    options = FAMILIES[family].one_pass
    assert {name for name, own in FAMILIES.items() if own.one_pass} == {"pavpu", "calibration"}

    def count(words: str) -> list[str]:
        parts = [f"{family} p.npz --part {k}/2 -o {k}.json {words}" for k in (1, 2)]
        return [CliRunner().invoke(app, line.split()).output for line in parts]

    assert all(f"{options} ({family}) need one pass" in said for said in count(""))
    assert "uqeval merge --fit SHARDS -o fitted.json" in count("")[0].replace("\n", " ")
    for name, value in values.items():
        options = options.replace(name, value)
    assert "uqeval merge SHARDS -o report.json also" in count(options)[0]
    merged = uqeval.merge(["1.json", "2.json"])
    assert family in merged.results
