"""What lets others adopt the project: wheel, citation, workflows, hooks, the recipe, the site."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_uqeval

from uqeval.config import check_file
from uqeval.errors import UsageError
from uqeval.version import VERSION

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def loaded(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_site_has_all_pages() -> None:
    """`.ci/run` builds it, with broken links as errors."""
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^[a-z-]+(?:/[a-z-]+)*$", index, re.MULTILINE))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")}
    assert listed == pages - {"index"}
    python = (docs / "python.md").read_text(encoding="utf-8")
    import uqeval

    assert not [n for n in uqeval.__all__ if n != "__version__" and f"uqeval.{n}\n" not in python]
    assert "sphinx-build -q -W" in (ROOT / ".ci/run").read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("dist")
    code = (
        "import os, sys; from hatchling.build import build_sdist, build_wheel; "
        "build_sdist(sys.argv[1]); build_wheel(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, folder], cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_the_package_alone(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"uqeval", f"uqeval-{VERSION}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".zarr", ".npy"))]
    for needed in ("uqeval/py.typed", "uqeval/usecases/selftest/golden.json"):
        assert needed in names
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "uqeval").rglob("*.py")}
    assert package <= set(names)


def test_the_sdist_has_what_its_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as file:
        tops = {name.split("/")[1] for name in file.getnames()}
    assert {"uqeval", "tests", "docs", "examples", "LICENSE", "README.md"} <= tops
    assert not tops & {".venv", "build", "dist"}


def test_a_catalogue_accepts_the_description(built: Path) -> None:
    pytest.importorskip("twine")
    ended = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout


def test_one_version() -> None:
    assert loaded("CITATION.cff")["version"] == VERSION
    assert loaded("packaging/conda/recipe.yaml")["context"]["version"] == VERSION
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation_names_the_papers() -> None:
    citation = loaded("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license"} <= citation.keys()
    assert len(citation["references"]) == 5
    assert all({"type", "title", "authors"} <= paper.keys() for paper in citation["references"])


def test_conda_has_the_requirements_of_pip() -> None:
    named = {"matplotlib-base": "matplotlib", "py-opencv": "opencv-python-headless"}
    recipe = loaded("packaging/conda/recipe.yaml")["requirements"]["run"]
    conda = dict(([*line.split(), ""])[:2] for line in recipe)
    pip = {re.split(r"[<>=!]", line)[0]: line for line in PYPROJECT["project"]["dependencies"]}
    assert {named.get(name, name) for name in conda} - {"python"} == set(pip)
    for name, version in conda.items():
        if name not in ("python", *named):
            assert pip[name] == name + version
    assert conda["python"] == PYPROJECT["project"]["requires-python"]


def test_the_action_runs_judges_and_keeps_the_page() -> None:
    action = loaded("action.yml")
    inputs = {f"inputs.{name}" for name in action["inputs"]}
    text = (ROOT / "action.yml").read_text()
    used = set(re.findall(r"\$\{\{[^}]*?(inputs\.[\w-]+)", text))
    assert used == inputs
    script = next(step for step in action["runs"]["steps"] if step.get("id") == "run")["run"]
    assert "inputs." not in script  # texts of users come as variables, never as code
    commands = re.findall(r"^\s*uqeval (\w+)", script, re.MULTILINE)
    assert commands == ["run", "gate"]
    assert "uqeval" not in [step.get("run", "").split()[-1] for step in action["runs"]["steps"][:2]
                            if step.get("run")]  # fmt: skip


def test_the_script_of_the_action(tmp_path: Path) -> None:
    """Its shell code, with a stand-in for uqeval that tells how it is called."""
    action = loaded("action.yml")
    script = next(step for step in action["runs"]["steps"] if step.get("id") == "run")["run"]
    (tmp_path / "uqeval").write_text('#!/bin/sh\necho "$@" >> calls\n[ "$1" = gate ] || exit 1\n')
    (tmp_path / "uqeval").chmod(0o755)
    (tmp_path / "u.yaml").write_text("stores: {}\ngate: {}\n")
    environment = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), "FILE": "u.yaml",
        "OUTPUT": "out", "BASELINE": "main", "ARGUMENTS": "--ci 0.95", "GITHUB_OUTPUT": "values",
    }  # fmt: skip
    ended = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=False
    )
    assert ended.returncode == 1
    assert (tmp_path / "values").read_text() == "status=1\n"
    assert (tmp_path / "calls").read_text().splitlines() == [
        "run u.yaml -o out --baseline main --ci 0.95",
        "gate out u.yaml --baseline main --github --quiet",
    ]


def test_the_hook_checks_settings_files(tmp_path: Path) -> None:
    (hook,) = loaded(".pre-commit-hooks.yaml")
    assert re.search(hook["files"], "models/uqeval.yaml") and not re.search(hook["files"], "a.yaml")
    command = hook["entry"].split()[1:]
    good, bad, rules = (tmp_path / name for name in ("good.yaml", "bad.yaml", "rules.yaml"))
    good.write_text("stores: {a: {predictions: p.zarr}}\ngate: {a/pavpu.pavpu: {min: 0.5}}\n")
    bad.write_text("stores: {a: {predictions: p.zarr}}\nevaluate: {a: {pavpu: {windw: 4}}}\n")
    rules.write_text("pavpu.pavpu: {mni: 0.5}\n")
    check_file(good)
    endless = tmp_path / "endless.yaml"  # no value can break this limit
    endless.write_text("calibration.temperature.ece: {max: 20}\n")
    with pytest.raises(UsageError, match="For 20 %, write max"):
        check_file(endless)
    ended = run_uqeval(*command, str(good), str(bad), str(rules), str(tmp_path / "none.yaml"))
    assert ended.status == 2 and ended.stdout == f"{good} is valid\n"
    lines = ended.stderr.splitlines()
    assert len(lines) == 3
    assert "bad.yaml:2: evaluate.a.pavpu.windw: unknown key" in lines[0]
    assert "did you mean 'min'?" in lines[1] and "none.yaml cannot be read" in lines[2]


def test_the_schema_for_schemastore() -> None:
    """It is made from the code, is of draft 7, and judges the example and a wrong file."""
    jsonschema = pytest.importorskip("jsonschema")
    folder = ROOT / "packaging/schemastore"
    text = (folder / "uqeval.json").read_text(encoding="utf-8")
    made = runpy.run_path(str(folder / "make.py"))["text"]()
    assert text == made, "python packaging/schemastore/make.py"
    schema, entry = json.loads(text), loaded("packaging/schemastore/catalog-entry.json")
    assert entry["url"] == schema["$id"] and entry["fileMatch"] == ["uqeval.yaml", "uqeval.yml"]
    jsonschema.Draft7Validator.check_schema(schema)
    check = jsonschema.Draft7Validator(schema)
    assert check.is_valid(loaded("examples/uqeval.yaml"))
    stores = {"a": {"predictions": "p.zarr"}}
    assert check.is_valid({"stores": stores, "evaluate": {"a": {"pavpu": {"window": 4}}}})
    assert not check.is_valid({"stores": stores, "evaluate": {"a": {"pavpu": {"windw": 4}}}})
    assert not check.is_valid({"stores": stores, "gate": {"pavpu.pavpu": {"mni": 0.5}}})


def test_the_shell_completes_commands_and_options() -> None:
    for words, found in (("uqeval pav", "pavpu"), ("uqeval report --tens", "--tensorboard")):
        environment = {
            **os.environ, "_UQEVAL_COMPLETE": "complete_bash", "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
        }  # fmt: skip
        ended = subprocess.run(
            [sys.executable, "-m", "uqeval"], env=environment, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert ended.stdout.split() == [found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_line_of_a_completion_is_an_option(shell: str) -> None:
    """The long help of an option does not go on in a second line."""
    words = "uqeval pavpu --"
    ended = run_uqeval(env={
        "_UQEVAL_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": "2",
        "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_WORD_TO_COMPLETE": "--",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    })  # fmt: skip
    lines = ended.stdout.removeprefix("_arguments '*: :((").splitlines()
    assert len(lines) > 40 and all(line.lstrip('"').startswith("--") for line in lines)


def test_releases_need_no_password() -> None:
    release = loaded(".github/workflows/release.yml")
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert "password" not in str(release) and "secrets" not in str(release)
    tests = loaded(".github/workflows/ci.yml")["jobs"]["all"]["strategy"]["matrix"]["python"]
    named = {f"Programming Language :: Python :: {version}" for version in tests}
    assert named <= set(PYPROJECT["project"]["classifiers"])
