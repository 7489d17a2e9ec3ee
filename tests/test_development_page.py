"""The files and names of docs/development.md exist. Its diffs apply, and what they add works."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "development.md").read_text()
DIFF = re.compile(r"^```diff\n\+\+\+ (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)

#: Runs in the copy: the metric equals its oracle, also in a region and from states; the view counts
#: its rows, the option is on the command line and in the schema, the format is read.
ADDED = """
import numpy as np, typer.main, uqeval
from naive_metrics import ORACLES, Classes
from uqeval.cli.entry import app
from uqeval.config import json_schema

rng = np.random.default_rng(0)
probs = np.moveaxis(rng.dirichlet(np.ones(3), (8, 2, 6, 5)), -1, 2).astype("f4")
labels = rng.integers(0, 3, (8, 6, 5)).astype("u1")
report = uqeval.evaluate(
    probs, labels, {"segmentation": {}}, region=["top:2"], ci=0.95, draws=100
)
whole, top = (report.results[key] for key in ("segmentation", "segmentation@top:2"))
assert np.isclose(whole["error_rate"], ORACLES["segmentation.error_rate"](Classes(probs, labels)))
right = (probs.mean(axis=1).argmax(axis=1) == labels)[:, :2]
assert np.isclose(top["error_rate"], 1 - right.mean()) and top["pixels"] == right.size
assert report.intervals["segmentation.error_rate"]["low"] is not None
command = typer.main.get_command(app).get_command(None, "pavpu")
assert any("--crop" in parameter.opts for parameter in command.params)
assert "crop" in json_schema()["$defs"]["Store"]["properties"]
np.savetxt("probs.csv", probs[0, 0].reshape(3, -1).T, delimiter=",")
np.save("labels.npy", labels[0].reshape(-1))
rows = uqeval.evaluate("probs.csv", "labels.npy", {"segmentation": {}}).results["segmentation"]
assert np.isclose(rows["pixel_accuracy"], (probs[0, 0].argmax(axis=0) == labels[0]).mean())
"""

#: A file, also as the end of its path, and a name that is in it.
FILE = re.compile(r"[\w/*]+\.py\b")
NAME_IN_FILE = re.compile(r"`-*([\w.]+)[^`]*`\s+(?:in|of)\s+`([\w/]+\.py)`")


@functools.cache
def all_files() -> list[str]:
    """Return the paths of the Python files of the project."""
    folders = ("uqeval", "tests", "benchmarks", "docs", "packaging")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return [f"/{file.relative_to(ROOT).as_posix()}" for file in files]


@functools.cache
def files_of(path: str) -> list[Path]:
    """Return the files of the project whose path ends so. The words a, b and x are any name."""
    pattern = re.sub(r"(?<![a-z])[abx](?![a-z])", "*", path)
    return [ROOT / file[1:] for file in all_files() if fnmatch(file, f"*/{pattern}")]


def test_files_and_names_of_the_page_exist() -> None:
    text = DIFF.sub("", PAGE)
    paths = set(FILE.findall(text))
    assert len(paths) > 80
    assert not {path for path in paths if not files_of(path)}
    names = NAME_IN_FILE.findall(text)
    assert len(names) > 10
    lost = {
        (name, path) for name, path in names
        if not any(re.search(rf"\b{name}\b", file.read_text("utf-8")) for file in files_of(path))
    }  # fmt: skip
    assert not lost


def apply(folder: Path, file: str, diff: str) -> None:
    """Change a file in `folder`. Lines without `+` must stand there, once and in this order."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if line[0] in " -")
    after = "\n".join(line[1:] for line in lines if line[0] in " +")
    path = folder / file
    if not before:
        assert not path.exists(), f"{file} exists already"
        path.write_text(after + "\n")
        return
    text = path.read_text()
    assert text.count(before) == 1, f"{file} has this {text.count(before)} times:\n{before}"
    path.write_text(text.replace(before, after))


def test_the_diffs_of_the_page_work(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("*.nb?")  # bytecode of files that do not change stays valid
    shutil.copytree(ROOT / "uqeval", tmp_path / "uqeval", ignore=ignored)
    shutil.copytree(ROOT / "tests" / "helpers", tmp_path / "tests" / "helpers", ignore=ignored)
    diffs = DIFF.findall(PAGE)
    assert len(diffs) == 9
    for file, diff in diffs:
        apply(tmp_path, file, diff)
    paths = os.pathsep.join([str(tmp_path), str(tmp_path / "tests" / "helpers")])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ADDED], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
