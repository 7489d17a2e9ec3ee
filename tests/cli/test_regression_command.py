"""`uqeval regression` through the real executable, with every kind of target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from command import refused, run_uqeval, run_well
from number_stores import NAMES, close, numbers
from PIL import Image
from small_stores import save

import uqeval
from uqeval.errors import StoreError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`all.zarr`; `preds.zarr` without target; the same target as files of every kind."""
    at = tmp_path_factory.mktemp("numbers")
    arrays = numbers(2)
    # In steps of 1/256 and nowhere 0, as a KITTI PNG can hold them.
    target = np.round(arrays["target"] * 256) / 256
    arrays["target"] = target.astype("f4")
    save(at / "all.zarr", arrays, {"names": NAMES})
    own = {k: arrays[k] for k in ("mean", "std", "valid")}
    save(at / "preds.zarr", own, {"names": NAMES})
    save(at / "anonymous.zarr", own)
    np.save(at / "target.npy", arrays["target"])
    save(at / "target.zarr", {"target": arrays["target"]}, {"names": NAMES})
    for kind in ("kitti", "npy", "pfm"):
        (at / kind).mkdir()
    for name, values in zip(NAMES, arrays["target"], strict=True):
        depth = np.nan_to_num(values * 256).astype(np.uint16)
        Image.fromarray(depth).save(at / f"kitti/{name}.png")
        np.save(at / f"npy/{name}.npy", values)
        header = f"Pf\n{values.shape[1]} {values.shape[0]}\n-1\n".encode()
        (at / f"pfm/{name}.pfm").write_bytes(header + values[::-1].astype("<f4").tobytes())
    return at


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return report(folder / "all.zarr")["results"]


def report(*arguments: Any) -> dict[str, Any]:
    done = run_well("regression", *arguments, "--format", "json")
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_oracle(folder: Path, expected: dict[str, Any]) -> None:
    arrays = numbers(2)
    found = naive.pixels(
        arrays["mean"], arrays["std"], np.load(folder / "target.npy"), arrays["valid"]
    )
    for name, value in naive.regression(found).items():
        if not isinstance(value, dict):
            assert close(expected["regression"][name], value), name


@pytest.mark.parametrize("target", ["target.npy", "target.zarr", "kitti", "npy", "pfm"])
def test_targets(folder: Path, expected: dict[str, Any], target: str) -> None:
    found = report(folder / "preds.zarr", folder / target)
    assert found["results"] == expected
    assert found["inputs"]["target"]["path"] == str(folder / target)


def test_tables(folder: Path) -> None:
    done = run_well(
        "regression", folder / "all.zarr", "--distribution", "gaussian", "--distribution",
        "laplace", "--format", "markdown",
    )  # fmt: skip
    assert "### Regression" in done.stdout and "### Calibration of intervals" in done.stdout
    assert "laplace" in done.stdout


def test_samples_with_nan(tmp_path: Path) -> None:
    samples = numbers(3, members=4)["mean"]
    samples[0, 1, 2, 3] = np.nan
    np.savez(tmp_path / "r.npz", samples=samples, target=np.ones((3, 12, 16)))
    refused(
        run_uqeval("regression", tmp_path / "r.npz"),
        "r.npz[samples], item 0: 1 of 768 evaluated values are NaN or infinite, the first is nan "
        "at row 2, column 3 of member 1", "--nan-samples skip",
    )  # fmt: skip
    found = report(tmp_path / "r.npz", "--nan-samples", "skip")
    assert found["results"]["regression"]["pixels"] == 576


def test_members_in_several_stores(tmp_path: Path) -> None:
    arrays = numbers(4, members=2)
    whole = save(tmp_path / "whole.zarr", arrays)
    paths = [
        save(tmp_path / f"{m}.zarr", {k: arrays[k][:, m] for k in ("mean", "std")})
        for m in range(2)
    ]
    np.savez(tmp_path / "t.npz", target=arrays["target"], valid=arrays["valid"])
    found = report(*paths, tmp_path / "t.npz")
    assert found["results"] == report(whole)["results"]
    assert found["inputs"]["samples"] == 2


def test_a_folder_of_arrays(tmp_path: Path) -> None:
    """Numbers of three items look like class probabilities [class, y, x] or labels of one item."""
    for name in ("mean", "std"):
        np.save(tmp_path / f"{name}.npy", np.ones((3, 12, 16), "f4"))
    np.save(tmp_path / "truth.npy", np.ones((3, 12, 16), np.uint8))
    for command in ("regression", "inspect"):
        done = run_uqeval(command, tmp_path)
        refused(done, "mean.npy, std.npy are called as arrays", "mean=mean, std=std")


def test_what_cannot_be(folder: Path, tmp_path: Path) -> None:
    preds = folder / "preds.zarr"
    bad: list[tuple[list[Any], str]] = [
        ([preds], "has no target"),
        ([folder / "target.npy"], "holds targets; give the predictions before them"),
        ([folder / "target.npy", preds], "one store of targets, after all predictions"),
        ([folder / "anonymous.zarr", folder / "kitti"], "gives its 3 items no names"),
        ([preds, folder / "kitti", "--levels", "1"], "--levels 1"),
        ([preds, tmp_path / "nothing"], "there is nothing here"),
    ]
    for arguments, words in bad:
        refused(run_uqeval("regression", *arguments), words)
    np.save(tmp_path / "void.npy", np.full((3, 12, 16), np.nan))
    for command in ("regression", "sparsification", "nmerci"):
        done = run_uqeval(command, preds, tmp_path / "void.npy")
        refused(done, "nothing is left to evaluate")
    np.save(tmp_path / "two.npy", np.ones((2, 12, 16)))
    refused(run_uqeval("regression", preds, tmp_path / "two.npy"), "holds 2 targets")
    np.save(tmp_path / "turned.npy", np.ones((3, 16, 12)))
    refused(
        run_uqeval("regression", preds, tmp_path / "turned.npy"),
        "the target is 16×12", "predictions are 12×16", "look swapped", "transpose it",
    )  # fmt: skip
    refused(run_uqeval("pavpu", folder / "all.zarr"), "holds predicted numbers")


def test_targets_with_a_last_axis_of_size_1(folder: Path, tmp_path: Path) -> None:
    preds, target = folder / "preds.zarr", np.load(folder / "target.npy")[..., None]
    (tmp_path / "files").mkdir()
    for name, plane in zip(NAMES, target, strict=True):
        np.save(tmp_path / f"files/{name}.npy", plane)
    np.save(tmp_path / "all.npy", target)
    np.savez(tmp_path / "named.npz", target=target)
    for path, shape in (("files", "(12, 16, 1)"), ("all.npy", "(3, 12, 16, 1)")):
        with pytest.raises(StoreError, match=r"save array\[\.\.\., 0\]"):
            uqeval.evaluate(preds, tmp_path / path, ["regression"])
        done = run_uqeval("regression", preds, tmp_path / path)
        refused(done, f"If {tmp_path / path} is the target", f"is {shape}", "the last axis")
    done = run_uqeval("regression", preds, tmp_path / "named.npz")
    refused(done, "expected [item, y, x]", "save array[..., 0]")


def test_definitions_and_their_choices(folder: Path) -> None:
    found = report(
        folder / "all.zarr", "--definition", "uncertainty-toolbox", "--proportion", "quantile",
        "--levels", "11", "--grid", "open", "--area", "mean",
    )  # fmt: skip
    said = found["settings"]["regression"]
    names = ("definition", "proportion", "levels", "grid", "area")
    assert [said[k] for k in names] == ["uncertainty-toolbox", "quantile", 11, "open", "mean"]
    assert len(found["results"]["regression"]["calibration"]["p"]) == 11
    message = refused(run_uqeval("regression", folder / "all.zarr", "--definition", "mine"))
    assert "uncertainty-toolbox" in message and "torch-uncertainty-0.13" in message


def test_invalid_targets_on_the_command_line_and_in_the_file(folder: Path, tmp_path: Path) -> None:
    target = np.nan_to_num(np.load(folder / "target.npy"), nan=-1)
    target[:, ::2] = 0
    np.save(tmp_path / "target.npy", target)
    known = ((target > 0) & numbers(2)["valid"]).sum()
    given = (folder / "preds.zarr", tmp_path / "target.npy")
    found = report(*given, "--invalid", "0", "--invalid=-1", "--invalid", "nan")
    assert found["results"]["regression"]["pixels"] == known
    assert found["inputs"]["options"]["invalid"] == [-1.0, 0.0, "nan"]
    refused(run_uqeval("regression", *given, "--invalid", "x"), "--invalid 'x'; expected a number")
    stores = {"d": dict(zip(("predictions", "target"), map(str, given), strict=True))}
    stores["d"] |= {"invalid": [0, -1.0, ".nan"]}  # type: ignore[dict-item]
    text = json.dumps({"stores": stores}).replace('".nan"', ".nan")
    (tmp_path / "uqeval.yaml").write_text(text)
    done = run_well("regression", "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["results"]["regression"]["pixels"] == known


def test_arrays_of_unknown_names_are_named(tmp_path: Path) -> None:
    numbers = np.ones((2, 4, 4))
    np.savez(tmp_path / "depth.npz", depth=numbers, std=numbers, target=numbers)
    np.savez(tmp_path / "preds.npz", mean=numbers, std=numbers)
    np.savez(tmp_path / "probs.npz", probs=np.full((2, 2, 4, 4), 0.5))
    np.savez(tmp_path / "gt.npz", gt=numbers.astype("u1"))
    for command, given, says in (
        ("regression", ["depth.npz"], ["depth.npz holds depth, std, target", "called `mean`"]),
        ("regression", ["preds.npz", "gt.npz"], ["gt.npz is ground truth", "it holds gt"]),
        ("failure", ["probs.npz", "gt.npz"], ["gt.npz is ground truth", "`labels`", "holds gt"]),
    ):
        refused(run_uqeval(command, *given, cwd=tmp_path), *says)
