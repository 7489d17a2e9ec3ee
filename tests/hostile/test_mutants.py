"""A fixed sample of the campaign of `benchmarks/hostile.py`: no mutant ends a command badly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import TARGETS

COUNT, SEED = 60, 11


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("mutants") / "all"
    script = Path(__file__).with_name("campaign.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), str(COUNT), str(SEED)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {own["kind"]: own for own in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("kind", [target.kind for target in TARGETS])
def test_mutants_end_well(kind: str, found: dict[str, dict[str, object]]) -> None:
    assert found[kind]["mutants"]
    assert not found[kind]["problems"], json.dumps(found[kind]["problems"], indent=1)
