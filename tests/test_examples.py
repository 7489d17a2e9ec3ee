"""The examples compile, and those whose libraries are here run and write what they say."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

#: What each example needs beside uqeval's own dependencies, its arguments, and what it writes.
ABOUT = {
    "dump_numpy.py": ((), (), {"stack.zarr", "maps.zarr"}),
    "dump_mc_dropout.py": (("torch",), (), {"predictions.zarr"}),
    "toy_nmerci.py": (("torch", "matplotlib"), ("--quick",), {"toy_nmerci.png", "bagging.npz"}),
    "toy_gustafsson.py": (
        ("torch", "matplotlib"),
        ("--quick",),
        {"toy_gustafsson.png", "sinusoid_hmc.npz", "circle_hmc.npz"},
    ),
}
RUNNABLE = [name for name, (needs, _, _) in ABOUT.items() if all(map(find_spec, needs))]


def test_every_example_is_known() -> None:
    assert {path.name for path in EXAMPLES} == set(ABOUT)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_compiles(path: Path, tmp_path: Path) -> None:
    py_compile.compile(str(path), cfile=str(tmp_path / "compiled.pyc"), doraise=True)


@pytest.mark.parametrize("name", RUNNABLE)
def test_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    _, arguments, written = ABOUT[name]
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name), str(tmp_path), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert written <= {path.name for path in tmp_path.iterdir()}
    assert all((tmp_path / name).stat().st_size for name in written)
