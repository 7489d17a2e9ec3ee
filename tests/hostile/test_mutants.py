"""A fixed sample of the campaign of `benchmarks/hostile.py`: no mutant ends a command badly."""

from __future__ import annotations

import json

import pytest
from command import run_script
from mutants import TARGETS

COUNT, SEED = 25, 11


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    folder = tmp_path_factory.mktemp("mutants")
    given = ["", str(folder / "all"), str(COUNT), str(SEED)]
    done = run_script(f"import campaign, sys; sys.argv = {given}; campaign.main()", cwd=folder)
    assert done.status == 0, done.stderr[-3000:]
    return {own["kind"]: own for own in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("kind", [target.kind for target in TARGETS])
def test_mutants_end_well(kind: str, found: dict[str, dict[str, object]]) -> None:
    assert found[kind]["mutants"]
    assert not found[kind]["problems"], json.dumps(found[kind]["problems"], indent=1)
