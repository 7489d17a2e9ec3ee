"""What a package says of itself: its license, and from where it tells users to install."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_license_file_is_the_declared_license() -> None:
    assert PYPROJECT["project"]["license"] == "Apache-2.0"
    assert PYPROJECT["project"]["license-files"] == ["LICENSE"]
    assert "LICENSE" in PYPROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    text = (ROOT / "LICENSE").read_text()
    assert "Version 2.0, January 2004" in text and "END OF TERMS AND CONDITIONS" in text
    assert re.search(r"Copyright \d{4} the uqeval developers", text)


def test_nothing_installs_the_unpublished_name() -> None:
    named = re.compile(r"""\binstall\s[^\n&;|]*['"\s]uqeval\b(?!\s*@)""")
    folders = ("uqeval", "docs", "examples", ".ci")
    files = [ROOT / "README.md", *(f for name in folders for f in (ROOT / name).rglob("*"))]
    texts = [f for f in files if f.suffix in {".md", ".py", ".yml", ".yaml", ".html", ""}]
    found = [f.name for f in texts if f.is_file() and named.search(f.read_text("utf-8"))]
    assert not found


def test_the_workflow_installs_from_the_repository() -> None:
    workflow = yaml.safe_load((ROOT / "examples/github-workflow.yml").read_text())
    (install,) = [s for s in workflow["jobs"]["gate"]["steps"] if s.get("name") == "Install"]
    assert '"uqeval @ git+${UQEVAL_URL' in install["run"]
    assert install["env"] == {"UQEVAL_URL": "${{ vars.UQEVAL_URL }}"}


def test_no_test_edits_the_path_of_modules() -> None:
    """`pythonpath` in pyproject.toml is where helpers come from."""
    edit = re.compile(r"sys\.path(\.(append|insert|extend)|\[.*\] *=| *\+?=)")
    files = (ROOT / "tests").rglob("*.py")
    assert not [str(path) for path in files if edit.search(path.read_text("utf-8"))]


def test_the_image_runs_without_rights_and_has_its_loops_inside() -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    last = [step for step, _ in steps][::-1].index("FROM")
    final = [" ".join(text.split()) for step, text in steps[-last:]]
    place = {text.split("=")[0]: k for k, text in enumerate(final)}
    environment = next(text for text in final if "NUMBA_CACHE_DIR=/opt/uqeval/loops" in text)
    assert final.index(environment) < place["uqeval warmup"] < place["65532:65532"]
    extras = next(text for step, text in steps if step == "ARG" and text.startswith("EXTRAS="))
    known = PYPROJECT["project"]["optional-dependencies"]
    assert set(extras.partition("=")[2].split(",")) <= set(known)
    copied = [text.split()[:-1] for step, text in steps if step == "COPY" and "--from" not in text]
    sources = {name for names in copied for name in names}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert all((ROOT / name).exists() for name in sources)
    assert {line[1:] for line in ignored if line.startswith("!")} == sources
    assert {PYPROJECT["project"]["readme"], *PYPROJECT["project"]["license-files"]} < sources


def test_conda_has_the_same_lowest_versions() -> None:
    """`.ci/run` tests with those of `packaging/lowest.py`."""
    printed = subprocess.run(
        [sys.executable, ROOT / "packaging/lowest.py"], capture_output=True, text=True, check=True
    )
    lowest = dict(line.split("==") for line in printed.stdout.split())
    recipe = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text())
    of_conda = dict(
        re.findall(r"^(\S+) >=([\d.]+)", "\n".join(recipe["requirements"]["run"]), re.M)
    )
    del of_conda["python"]
    other_names = {"matplotlib-base": "matplotlib", "py-opencv": "opencv-python-headless"}
    for name, version in of_conda.items():
        own = lowest[other_names.get(name, name)]
        assert own == version or own.startswith(f"{version}."), name
    assert len(of_conda) == len(PYPROJECT["project"]["dependencies"])
