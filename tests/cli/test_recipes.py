"""The recipes of the docs: what follows a dump runs on files of exactly its layout.

Parts that need a large package are run by hand; here their files are written as they write them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command import run_well
from PIL import Image

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

C, H, W, N = 5, 64, 96, 3


def softmax(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """float32 [*shape, class, y, x]."""
    return np.moveaxis(rng.dirichlet(np.ones(C), (*shape, H, W)), -1, -3).astype("f4")


def images(
    folder: str, value: Callable[[np.random.Generator], np.ndarray], inner: str = ""
) -> None:
    rng = np.random.default_rng(0)
    (Path(folder) / inner).mkdir(parents=True)
    for i in range(N):
        np.save(Path(folder) / inner / f"img_{i}.npy", value(rng))


def cases() -> None:
    rng = np.random.default_rng(0)
    for folder in ("nnunet", "truth"):
        Path(folder).mkdir()
    for name in ("case_001", "case_002"):
        volume = np.moveaxis(rng.dirichlet(np.ones(C), (2, 24, 32)), -1, 0).astype("f4")
        np.savez_compressed(f"nnunet/{name}.npz", probabilities=volume)
        for end in (".pkl", ".nii.gz"):
            Path(f"nnunet/{name}{end}").write_bytes(b"\x80\x04.")
        np.save(f"truth/{name}.npy", rng.integers(0, C, (2, 24, 32)).astype("u1"))
    for file in ("dataset.json", "plans.json", "predict_from_raw_data_args.json"):
        Path("nnunet", file).write_text("{}")


def logits(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(C, H, W)).astype("f4")


#: What the parts that need a large package leave.
LAYOUTS: dict[str, Callable[[], None]] = {
    "torchvision": lambda: images("torchvision", softmax),
    "Hugging Face": lambda: images("huggingface", logits),
    "mmsegmentation": lambda: images("mmseg", logits, "city"),
    "nnU-Net": cases,
    "Lightning and DDP": lambda: images("ddp", softmax),
    "JAX": lambda: images("jax_mc", lambda rng: softmax(rng, 4)),
}


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_runs(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for folder in ("labels", "groundtruth"):
        Path(folder).mkdir()
    for i in range(N):
        ids = rng.integers(0, C, (H, W)).astype(np.uint8)
        Image.fromarray(ids).save(f"labels/img_{i}.png")
        depth = rng.integers(0, 60 * 256, (H, W)).astype(np.uint16)
        Image.fromarray(depth).save(f"groundtruth/{i:010d}.png")
    ran = 0
    for kind, block in BLOCK.findall(RECIPES[recipe]):
        if kind == "sh":
            for line in block.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "uqeval"
                assert run_well(*arguments, "-o", "r.json").stdout
                ran += 1
        elif block.startswith("# needs "):
            compile(block, "<recipe>", "exec")
            LAYOUTS[recipe]()
        else:
            if "h5py" in block:
                pytest.importorskip("h5py", reason="the recipe of HDF5 needs uqeval[hdf5]")
            exec(compile(block, "<recipe>", "exec"), {})
    assert ran


def test_all_recipes_that_are_asked_for_are_there() -> None:
    assert set(LAYOUTS) < set(RECIPES)
    assert {"Plain NumPy, without files", "HDF5", "KITTI"} < set(RECIPES)
