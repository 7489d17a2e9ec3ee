"""The modules that a command imports before it computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command import environment


def loaded_by(*arguments: str | Path) -> set[str]:
    """The modules that `uqeval ARGUMENTS` has loaded when it ends."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "uqeval", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=60, env=environment(),
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if "|" in line}


@pytest.mark.parametrize(
    "arguments", ["--window 25", "--uncertainty foo", "--threshold 100", "--classes 4"]
)
def test_what_is_refused_waits_for_no_compiler(complete: Path, arguments: str) -> None:
    loaded = loaded_by("pavpu", complete, *arguments.split())
    assert "uqeval.inputs.classes" in loaded
    others = {"numba", "llvmlite", "scipy", "cv2", "matplotlib", "jinja2", "yaml", "asyncio"}
    assert not loaded & others


def test_a_run_loads_numba_and_its_own_family_alone(complete: Path) -> None:
    loaded = loaded_by("pavpu", complete, "-q")
    assert "numba" in loaded
    others = {"scipy.linalg", "scipy.special", "scipy.stats", "cv2", "matplotlib", "jinja2"}
    assert not loaded & {*others, "coverage.control", "zarr", "asyncio", "pydantic"}
    assert not {name for name in loaded if name.partition(".")[0] == "rich"}
    assert not {name for name in loaded if name.startswith("uqeval.report")}
    families = {"calibration", "failure", "regression", "nmerci", "sparsification", "temporal"}
    assert not {name for name in loaded if name.rpartition("metrics.")[2].split("_")[0] in families}
