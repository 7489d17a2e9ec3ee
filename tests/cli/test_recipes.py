"""The recipes of the docs: the commands after a dump run on files of its layout.

Parts that need a large package are run by hand; here their files are written as they write them.
"""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command import run_well
from naive_nifti import nifti
from PIL import Image

from uqeval import PredictionWriter
from uqeval.stores.store import open_store

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [(DOCS / page).read_text("utf-8") for page in ("guides/dump.md", "recipes.md")]
RECIPES = {
    title: text
    for page in PAGES
    for title, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if "```sh\n" in text
}
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


def samples_of_images() -> None:
    """Write the store of the script of torchvision."""
    rng = np.random.default_rng(0)
    names = [f"img_{i}" for i in range(N)]
    with PredictionWriter("preds.zarr", names=names, samples=8, classes=C, size=(H, W)) as writer:
        for name in names:
            writer.add(name, softmax(rng, 8))


def cityscapes() -> None:
    """Write the logits of mmsegmentation, and labels with the names of Cityscapes."""
    rng = np.random.default_rng(0)
    for i in range(N):
        for folder in ("logits/city", "labels/city"):
            Path(folder).mkdir(parents=True, exist_ok=True)
        np.save(f"logits/city/img_{i}_leftImg8bit.npy", logits(rng))
        label = Path(f"labels/img_{i}.png")
        label.rename(f"labels/city/img_{i}_gtFine_labelTrainIds.png")


def cases() -> None:
    """Write what nnU-Net predicts for two volumes, and their labels."""
    rng = np.random.default_rng(0)
    for folder in ("nnunet", "labelsTs"):
        Path(folder).mkdir()
    for name in ("case_001", "case_002"):
        volume = np.moveaxis(rng.dirichlet(np.ones(C), (2, 24, 32)), -1, 0).astype("f4")
        np.savez_compressed(f"nnunet/{name}.npz", probabilities=volume)
        for end in (".pkl", ".nii.gz"):
            Path(f"nnunet/{name}{end}").write_bytes(b"\x80\x04.")
        ids = rng.integers(0, C, (2, 24, 32)).astype("u1")
        Path(f"labelsTs/{name}.nii.gz").write_bytes(gzip.compress(nifti(ids)))
    for file in ("dataset.json", "plans.json", "predict_from_raw_data_args.json"):
        Path("nnunet", file).write_text("{}")


def logits(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(C, H, W)).astype("f4")


#: What the parts that need a large package leave.
LAYOUTS: dict[str, Callable[[], None]] = {
    "torchvision": samples_of_images,
    "Hugging Face": lambda: images("logits", logits),
    "mmsegmentation": cityscapes,
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
    if recipe == "nnU-Net":
        LAYOUTS[recipe]()
    for kind, block in BLOCK.findall(RECIPES[recipe]):
        if kind == "sh":
            for line in block.splitlines():
                program, *arguments = shlex.split(line)
                assert program == "uqeval"
                output = () if "-o" in arguments else ("-o", "r.json")
                assert run_well(*arguments, *output).stdout
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


def module(name: str, **contents: Any) -> dict[str, ModuleType]:
    """Return a module, and those that it lies in, that have only `contents`."""
    parts = name.split(".")
    modules = {".".join(parts[: i + 1]): ModuleType(part) for i, part in enumerate(parts)}
    vars(modules[name]).update(contents)
    return modules


def stand_ins(torch: Any) -> dict[str, dict[str, ModuleType]]:
    """Return small networks in place of the libraries, by the heading of their script."""

    class Net(torch.nn.Module):
        config = SimpleNamespace(id2label={i: f"class {i}" for i in range(C)})

        def __init__(self, stride: int, wrap: Callable[[Any], Any]) -> None:
            super().__init__()
            conv = torch.nn.Conv2d(3, C, 3, padding=1, stride=stride)
            self.layers, self.wrap = torch.nn.Sequential(torch.nn.Dropout(0.5), conv), wrap

        def forward(self, pixel_values: Any) -> Any:
            return self.wrap(self.layers(pixel_values))

    def tensor(image: Image.Image) -> Any:
        return torch.from_numpy(np.asarray(image).astype("f4") / 255).permute(2, 0, 1)

    def inference_model(model: Any, path: str) -> Any:
        with torch.no_grad():
            found = model(tensor(Image.open(path).convert("RGB"))[None])[0]
        return SimpleNamespace(seg_logits=SimpleNamespace(data=found))

    def hub(made: Callable[[], Any]) -> Any:
        return SimpleNamespace(from_pretrained=lambda name: made())

    return {
        "torchvision": module(
            "torchvision.models.segmentation",
            lraspp_mobilenet_v3_large=lambda num_classes: Net(1, lambda out: {"out": out}),
        )
        | module("torchvision.transforms.functional", to_tensor=tensor),
        "Hugging Face": module(
            "transformers",
            AutoImageProcessor=hub(
                lambda: lambda image, return_tensors: {"pixel_values": tensor(image)[None]}
            ),
            AutoModelForSemanticSegmentation=hub(
                lambda: Net(4, lambda out: SimpleNamespace(logits=out))
            ),
        ),
        "mmsegmentation": module(
            "mmseg.apis",
            init_model=lambda *files, device: Net(1, lambda out: out),
            inference_model=inference_model,
        ),
    }


@pytest.mark.parametrize("recipe", ["torchvision", "Hugging Face", "mmsegmentation"])
def test_a_script_of_the_guide_runs(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it, with PyTorch; its framework is a small network that answers alike."""
    torch = pytest.importorskip("torch", reason="the scripts need PyTorch")
    monkeypatch.chdir(tmp_path)
    Path("images").mkdir()
    for i in range(2):
        image = np.random.default_rng(i).integers(0, 256, (12, 16, 3)).astype(np.uint8)
        Image.fromarray(image).save(f"images/img_{i}.png")
    for name, found in stand_ins(torch)[recipe].items():
        monkeypatch.setitem(sys.modules, name, found)
    script = next(block for kind, block in BLOCK.findall(RECIPES[recipe]) if kind == "python")
    exec(compile(script, "<guide>", "exec"), {})
    written = "preds.zarr" if recipe == "torchvision" else "logits"
    store = open_store(written, role="predictions", kind=None if "zarr" in written else "logits")
    (values,) = store.arrays.values()
    assert store.names == ("img_0", "img_1")
    first = values[0].array.read(tuple(map(slice, values[0].array.shape)))
    assert first.shape[-2:] == (12, 16)
    if recipe == "torchvision":  # the samples differ: dropout was on
        assert np.ptp(first[0].astype("f4"), axis=0).max() > 0.01


def test_the_loop_of_the_guide_continues_after_each_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is killed before each call of the writer in turn, first with no item complete."""
    monkeypatch.chdir(tmp_path)
    (loop,) = re.findall(r"```python\n([^`]*resume=True[^`]*)```", PAGES[0])
    rng = np.random.default_rng(0)
    names = ["a", "b"]
    scope = {
        "names": names,
        "validation": [(name, np.zeros((3, 4, 6)), np.full((4, 6), i, np.uint8))
                       for i, name in enumerate(names)],
        "model": lambda batch: SoftmaxOf(rng.normal(size=(1, 19, 4, 6)).astype("f4")),
    }  # fmt: skip
    left, interruptions = 0, 0

    def killed(call: Callable[..., bool]) -> Callable[..., bool]:
        def counting(*arguments: Any, **options: Any) -> bool:
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return call(*arguments, **options)

        return counting

    for name in ("add", "add_labels"):
        monkeypatch.setattr(PredictionWriter, name, killed(getattr(PredictionWriter, name)))
    script = compile(loop.replace("(1024, 2048)", "(4, 6)"), "<guide>", "exec")
    for interruptions in range(1, 40):
        left = interruptions
        try:
            exec(script, dict(scope))
            break
        except KeyboardInterrupt:
            continue
    assert interruptions > 8
    store = open_store("preds.zarr", role="predictions")
    assert {name: len(parts) for name, parts in store.arrays.items()} == {"probs": 2, "labels": 2}
    for i, part in enumerate(store.arrays["labels"]):
        assert (part.array.read((slice(i, i + 1), slice(0, 4), slice(0, 6))) == i).all()


class SoftmaxOf:
    """As much of a tensor of logits as the loop asks for."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __getitem__(self, index: int) -> SoftmaxOf:
        return SoftmaxOf(self.values[index])

    def float(self) -> SoftmaxOf:
        return self

    def softmax(self, axis: int) -> np.ndarray:
        p = np.exp(self.values - self.values.max(axis=axis, keepdims=True))
        return p / p.sum(axis=axis, keepdims=True)
