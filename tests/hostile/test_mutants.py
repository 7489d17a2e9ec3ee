"""A fixed sample of the campaign of `benchmarks/hostile.py`: no mutant ends a command badly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import run_script
from mutants import TARGETS

pytestmark = pytest.mark.on_disk

COUNT, SEED = 25, 11


def test_mutants_end_well(tmp_path: Path) -> None:
    """In one test: several processes of tests would each run the whole sample."""
    given = ["", str(tmp_path / "all"), str(COUNT), str(SEED)]
    done = run_script(f"import campaign, sys; sys.argv = {given}; campaign.main()", cwd=tmp_path)
    assert done.status == 0, done.stderr[-3000:]
    found = {own["kind"]: own for own in map(json.loads, done.stdout.splitlines())}
    assert [kind for kind, own in found.items() if own["mutants"]] == [own.kind for own in TARGETS]
    problems = {kind: own["problems"] for kind, own in found.items() if own["problems"]}
    assert not problems, json.dumps(problems, indent=1)
