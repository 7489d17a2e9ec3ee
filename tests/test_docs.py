"""README and docs run as they stand: every shell and Python block, in order, on small data."""

from __future__ import annotations

import json
import lzma
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import run_well
from PIL import Image

from uqeval import PredictionWriter

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "docs/start.md",
    "docs/stores.md",
    "docs/metrics.md",
    "docs/reports.md",
    "docs/gate.md",
    "docs/run.md",
    "docs/compare.md",
    "docs/temporal.md",
    "docs/states.md",
    "docs/development.md",
)
#: Short pages, whose commands run together in one folder; those of `dump.md` run in
#: tests/cli/test_recipes.py, on the files of its frameworks.
SHORT_PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for folder in ("concepts", "guides")
    for page in (ROOT / "docs" / folder).glob("*.md")
    if page.name != "dump.md"
)
BLOCK = re.compile(r"^```(sh|python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: `.ci/run` does it, in environments of its own: an installation, and what follows it in the line.
INSTALLS = "pip install"
#: A line that is one command, without variables or redirections.
COMMAND = re.compile(r"uqeval [^$;|&<>]*")


class Tensor:
    """As much of a tensor as the README's loop asks for."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values

    def __getitem__(self, index: Any) -> Tensor:
        return self if index == "out" else Tensor(self.values[index])

    def float(self) -> Tensor:
        return Tensor(self.values.astype(np.float32))

    def softmax(self, axis: int) -> Tensor:
        p = np.exp(self.values - self.values.max(axis=axis, keepdims=True))
        return Tensor(p / p.sum(axis=axis, keepdims=True))


class Dropout:
    """A layer that the tutorial leaves on."""

    training = False

    def train(self) -> None:
        self.training = True


class Model:
    """As much of a network as the pages' loops ask for."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.layers = rng, [self, Dropout()]

    def __call__(self, batch: Any) -> Tensor:
        return Tensor(self.rng.normal(size=(1, 19, 12, 16)))

    def eval(self) -> None:
        pass

    def modules(self) -> list[Any]:
        return self.layers


#: PyTorch is no requirement of the tests.
TORCH = SimpleNamespace(set_grad_enabled=bool, nn=SimpleNamespace(Dropout=Dropout))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with `preds.zarr`, other networks', and `labels/`, as the pages suppose."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with PredictionWriter(
        "preds.zarr", names=["a", "b"], samples=3, classes=4, size=(24, 32)
    ) as writer:
        for name in ("a", "b"):
            p = rng.dirichlet(np.ones(4), (3, 24, 32)).astype(np.float32)
            writer.add(name, np.moveaxis(p, -1, 1))
    for other in ("ensemble", "seed1", "seed2", "seed3"):
        shutil.copytree("preds.zarr", f"{other}.zarr")
    Path("labels").mkdir()
    for name in ("a", "b"):
        Image.fromarray(rng.integers(0, 4, (24, 32)).astype(np.uint8)).save(f"labels/{name}.png")
    video_folder(Path("video"))
    for copy in ("other_model", "video_labels"):
        shutil.copytree("video/predictions", copy)
    return tmp_path


def useful_predictions() -> None:
    """Six items of `preds.zarr` and `labels/` that keep the limits of the tutorial."""
    rng = np.random.default_rng(3)
    names = [f"image_{i}" for i in range(6)]
    with PredictionWriter(
        "preds.zarr", names=names, samples=3, classes=4, size=(24, 32), overwrite=True
    ) as writer:
        for name in names:
            ids = np.repeat(np.repeat(rng.integers(0, 4, (6, 8)), 4, 0), 4, 1)
            certainty = np.repeat(np.repeat(rng.uniform(0.5, 5, (6, 8)), 4, 0), 4, 1)
            logits = np.eye(4)[ids] * certainty[..., None] + rng.gumbel(size=(3, 24, 32, 4))
            p = np.exp(3 * logits) / np.exp(3 * logits).sum(-1, keepdims=True)
            writer.add(name, np.moveaxis(p, -1, 1))
            Image.fromarray(ids.astype(np.uint8)).save(f"labels/{name}.png")
    rows = [f"{name},{'sun' if i % 2 else 'rain'},{i // 2}" for i, name in enumerate(names)]
    Path("meta.csv").write_text("\n".join(["name,weather,drive", *rows]))


def small_stores() -> None:
    """`preds.zarr` of twelve items, so that some can calibrate, and stores of other images."""
    rng = np.random.default_rng(4)
    stores = {"preds": "abcdefghijkl", "known": "mn", "unknown": "op", "foreign": "qr"}
    Path("masks").mkdir()
    for store, names in stores.items():
        with PredictionWriter(
            f"{store}.zarr", names=list(names), samples=2, classes=4, size=(12, 16), overwrite=True
        ) as writer:
            for name in names:
                p = rng.dirichlet(np.ones(4), (2, 12, 16)).astype(np.float32)
                writer.add(name, np.moveaxis(p, -1, 1))
                ids = rng.integers(0, 4, (12, 16)).astype(np.uint8)
                if store == "preds":
                    Image.fromarray(ids).save(f"labels/{name}.png")
                    Image.fromarray(ids // 2).save(f"masks/{name}.png")


def video_folder(path: Path) -> None:
    """Three frames of a texture that moves, and ids that move with it."""
    rng = np.random.default_rng(2)
    texture = rng.integers(0, 256, (40, 56, 3)).astype(np.uint8)
    ids = np.repeat(np.repeat(rng.integers(0, 4, (5, 7)), 8, 0), 8, 1).astype(np.uint8)
    for kind, image in (("frames", texture), ("predictions", ids)):
        (path / kind).mkdir(parents=True)
        for t in range(3):
            Image.fromarray(image[t : t + 32, t : t + 48]).save(path / kind / f"v_{t:03}.png")


def shell(text: str) -> None:
    """Run a block line by line; see `run_uqeval` for what has the executable run it."""
    for line in text.splitlines():
        if line.startswith(INSTALLS):
            continue
        if COMMAND.fullmatch(line):
            run_well(*shlex.split(line)[1:])
            continue
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            line, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def settings(text: str) -> None:
    """A block that begins with the name of its file is that file."""
    if text.startswith("# uqeval.yaml\n"):
        Path("uqeval.yaml").write_text(text)


def python(text: str) -> None:
    images = {f"image_{i}": np.zeros((3, 1024, 2048), np.float32) for i in range(1)}
    if "PredictionWriter" in text:
        text = text.replace("size=(1024, 2048)", "size=(12, 16)").replace('"preds', '"dumped')
    rng = np.random.default_rng(1)
    names: dict[str, Any] = {
        "names": list(images),
        "mean": rng.normal(10, 1, (2, 24, 32)),
        "std": rng.uniform(0.5, 2, (2, 24, 32)),
        "target": rng.normal(10, 1, (2, 24, 32)),
        "dataset": images.items(),
        "validation": [
            (name, image, rng.integers(0, 19, (12, 16))) for name, image in images.items()
        ],
        "camera": [(rng.integers(0, 256, (24, 32, 3), np.uint8), np.zeros((24, 32), np.uint8))] * 2,
        "model": Model(rng),
    }
    with pytest.MonkeyPatch.context() as patch:
        if "import torch\n" in text:
            # This key alone: to restore all modules would import those again that the block loads.
            patch.setitem(sys.modules, "torch", TORCH)
        exec(compile(text, "<docs>", "exec"), names)
    assert all(isinstance(layer, Model) or layer.training for layer in names["model"].layers) or (
        "Dropout" not in text
    )


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page: str, folder: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    blocks = BLOCK.findall(text)
    if page == "docs/start.md":
        useful_predictions()
    run = {"sh": shell, "python": python, "yaml": settings}
    for kind, block in blocks:
        run[kind](block)
    assert folder.exists() and len(blocks) == sum(text.count(f"```{kind}\n") for kind in run)


def test_the_commands_of_short_pages_run(folder: Path) -> None:
    """Each once; those that the other pages have too, there."""
    ran = set(chain(*(commands(page) for page in PAGES if page != "docs/start.md")))
    small_stores()
    rng = np.random.default_rng(0)
    mean = rng.normal(30, 9, (2, 12, 16))
    np.savez(
        "depth.npz", mean=mean, std=np.ones_like(mean), target=mean + rng.normal(size=mean.shape)
    )
    names, mean = list("abcdefghijkl"), rng.normal(30, 9, (12, 4, 5))
    np.savez("distances.npz", mean=mean, std=np.ones_like(mean), target=mean + 1, names=names)
    for page in SHORT_PAGES:
        for kind, block in BLOCK.findall((ROOT / page).read_text("utf-8")):
            if kind == "python":
                python(block)
            for line in block.splitlines() if kind == "sh" else ():
                if line not in ran:
                    shell(line)
                    ran.add(line)


def commands(page: str) -> list[str]:
    """Return the lines of the shell blocks of a page."""
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    return [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]


def test_pictures_are_those_of_the_script() -> None:
    script = runpy.run_path(str(ROOT / "docs/make_figures.py"))
    made = script["FIGURES"].keys() | script["PICTURES"].keys()
    files = {path.name: path.stat().st_size for path in (ROOT / "docs/figures").iterdir()}
    assert files.keys() == made
    assert max(files.values()) < 60_000 and sum(files.values()) < 400_000
    shown = {
        page: re.findall(r"!\[.+\]\(\.\./figures/(.+)\)", (ROOT / page).read_text("utf-8"))
        for page in SHORT_PAGES
    }
    assert set(chain(*shown.values())) == made
    assert all(names for page, names in shown.items() if "/concepts/" in page)


def test_every_command_is_in_the_readme() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uqeval", "--help"], capture_output=True, text=True, check=True
    )
    commands = re.findall(r"^│ ([a-z]+) ", done.stdout.split("Commands")[1], re.MULTILINE)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(commands) > 5
    assert [c for c in commands if f"`uqeval {c}" not in readme] == []


@pytest.mark.parametrize("name", ["options", "scores"])
def test_a_page_is_that_of_the_lists(name: str) -> None:
    folder = Path(__file__).parents[1] / "docs"
    made = runpy.run_path(str(folder / f"make_{name}.py"))["page"]()
    assert made == (folder / f"{name}.md").read_text(), f"python docs/make_{name}.py"


#: Parameters of flow and tracks, which their own libraries document, and names that users choose.
OTHERS = {"flow", "rules", "iou"}


def keys_of(record: Any) -> Iterator[str]:
    """Yield the keys of a record and of all that it contains."""
    if isinstance(record, dict):
        for key, value in record.items():
            yield re.sub(r"_(reason|debiased|bound)$", "", key)
            if key not in OTHERS:
                yield from keys_of(value)
    elif isinstance(record, list):
        yield from chain.from_iterable(map(keys_of, record))


def test_every_key_of_a_report_is_in_the_docs() -> None:
    pages = ("metrics", "reports", "temporal", "scores", "intervals", "states")
    words = set(re.findall(r"\w+", " ".join((ROOT / f"docs/{p}.md").read_text() for p in pages)))
    pinned = json.loads(lzma.decompress((ROOT / "tests/golden/pins.json.xz").read_bytes()))
    found = {
        key
        for report in pinned["reports"].values()
        for part in ("results", "items", "numerics")
        for record in [report.get(part) or {}]
        for key in keys_of(list(record.values()) if isinstance(record, dict) else record)
        if re.fullmatch("[a-z][a-z_]+", key)
    }
    assert len(found) > 150
    assert not found - words
