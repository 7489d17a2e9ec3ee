"""The examples compile, and those whose libraries are here run and write what they say."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from command import run_script

from uqeval.stores.store import open_store

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))

#: What each example needs beside uqeval's own dependencies, its arguments, and what it writes.
ABOUT = {
    "dump_numpy.py": ((), (), {"stack.zarr", "maps.zarr"}),
    "dump_mc_dropout.py": (("torch",), (), {"predictions.zarr"}),
    "papers/ma_independent.py": ((), (), {"independent.json", "pavpu-threshold.svg"}),
    "papers/moukari_toy.py": (
        ("torch", "matplotlib"),
        ("--quick",),
        {"figure_1.png", "figure_2.png", "bagging.npz"},
    ),
    "papers/gustafsson_toys.py": (
        ("torch", "matplotlib"),
        ("--quick",),
        {"figure_2_3.png", "figure_4_14_21.png", "figure_5.png", "sinusoid_hmc.npz"},
    ),
}
RUNNABLE = [name for name, (needs, _, _) in ABOUT.items() if all(map(find_spec, needs))]


def test_every_example_is_known() -> None:
    assert {path.relative_to(ROOT / "examples").as_posix() for path in EXAMPLES} == set(ABOUT)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_compiles(path: Path, tmp_path: Path) -> None:
    assert py_compile.compile(str(path), cfile=str(tmp_path / "compiled.pyc"), doraise=True)


def test_the_command_of_an_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "dump_numpy.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    store = open_store(done.stdout.strip(), role="predictions")
    assert store.names is not None and set(store.arrays) == {"probs", "labels"}


@pytest.mark.parametrize("library", [None, "torch"])
def test_run_as_they_stand(library: str | None, tmp_path: Path) -> None:
    """In a fork, which has loaded what all examples import but torch: it takes most of the time."""
    names = [name for name in RUNNABLE if ("torch" in ABOUT[name][0]) == (library == "torch")]
    if not names:
        pytest.skip("no torch")
    script = "import runpy, sys\n"
    for name in names:
        given = [str(ROOT / "examples" / name), str(tmp_path / name), *ABOUT[name][1]]
        script += f"sys.argv = {given}\nrunpy.run_path(sys.argv[0], None, '__main__')\n"
        script += "print(end='\\0')\n"
    done = run_script(script, tmp_path)
    assert done.status == 0, done.stderr
    *printed, end = done.stdout.split("\0")
    assert not end
    for name, text in zip(names, printed, strict=True):
        written = ABOUT[name][2]
        assert text.strip()
        assert written <= {path.name for path in (tmp_path / name).iterdir()}
        assert all((tmp_path / name / file).stat().st_size for file in written)
        if name.startswith("dump_"):  # it prints the store
            store = open_store(text.strip(), role="predictions")
            assert store.names is not None and set(store.arrays) == {"probs", "labels"}
