"""Options that name a store take arrays in memory: the results are those of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import refused
from tensors import Capsule, Tensor

import uqeval
from uqeval.errors import UsageError
from uqeval.inputs.opened import Recipe
from uqeval.inputs.options import InputOptions

RNG = np.random.default_rng(0)
FRAMES = RNG.integers(0, 255, (4, 24, 24, 3), dtype=np.uint8)
PREDICTED, LABELS = (RNG.integers(0, 4, (4, 24, 24)).astype(np.uint8) for _ in range(2))
FLOW = RNG.normal(size=(3, 24, 24, 2)).astype(np.float32)
PROBS = RNG.dirichlet(np.ones(3), (4, 2, 6, 5)).transpose(0, 1, 4, 2, 3).astype(np.float32)
CLASSES = RNG.integers(0, 3, (4, 6, 5)).astype(np.uint8)
DEPTH = RNG.uniform(0, 9, (4, 6, 5)).astype(np.float32)
OF_FILE = {"tc": {"flow": "file"}}


def results_of(report: uqeval.Report) -> dict[str, Any]:
    """Return the results without the names of stores, which must be JSON."""
    report.to_json()
    results = dict(report.results)
    if "temporal" in results:
        results["temporal"] = {
            name: value for name, value in results["temporal"].items()
            if name not in ("model", "flow")
        }  # fmt: skip
    return results


def evaluated(*given: Any, **options: Any) -> dict[str, Any]:
    return results_of(uqeval.evaluate(*given, workers=1, **options))


@pytest.mark.parametrize("kind", [np.asarray, Tensor, Capsule])
def test_frames_and_flow_in_memory(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    arrays = {"frames": FRAMES, "predictions": PREDICTED, "labels": LABELS, "flow": FLOW}
    np.savez(tmp_path / "v.npz", **arrays)
    expected = evaluated(None, None, OF_FILE, video=tmp_path / "v.npz")
    mapping = {name: kind(values) for name, values in arrays.items()}
    assert evaluated(None, None, OF_FILE, video=mapping) == expected
    found = evaluated(
        kind(PREDICTED), kind(LABELS), OF_FILE, video=kind(FRAMES), flow_path=kind(FLOW)
    )
    assert found == expected


def test_the_report_of_a_video_in_memory() -> None:
    report = uqeval.evaluate(PREDICTED, None, "tc", video=FRAMES, pseudo_labels=LABELS, workers=1)
    assert report.inputs["frames"]["path"] == "array in memory"
    options = report.inputs["options"]
    assert options["video"] == options["pseudo_labels"] == "an array in memory"
    mapping = {"frames": FRAMES, "predictions": PREDICTED}
    report = uqeval.evaluate(None, None, "tc", video=mapping, workers=1)
    assert report.inputs["options"]["video"] == "arrays in memory"


@pytest.mark.parametrize("kind", [np.asarray, Tensor, Capsule])
def test_depth_in_memory(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", DEPTH)
    given: tuple[Any, ...] = (PROBS, CLASSES, "failure")
    expected = evaluated(*given, region="depth:0-5", depth_map=tmp_path / "d.npy")
    np.savez(tmp_path / "d.npz", depth=DEPTH)
    for depth in (kind(DEPTH), {"depth": kind(DEPTH)}, {"target": DEPTH}, tmp_path / "d.npz"):
        assert evaluated(*given, region="depth:0-5", depth_map=depth) == expected
    refused(
        lambda: evaluated(*given, region="depth:0-5", depth_map={"labels": CLASSES}),
        "holds labels; expected one map, in an array 'depth' or 'target'",
    )


@pytest.mark.parametrize("kind", [np.asarray, Tensor, Capsule, lambda values: {"probs": values}])
def test_one_out_set_without_a_list(kind: Callable[[Any], Any], tmp_path: Path) -> None:
    np.savez(tmp_path / "q.npz", probs=PROBS[::-1])
    expected = evaluated(PROBS, None, "ood", out=[tmp_path / "q.npz"])
    for out in (kind(PROBS[::-1]), tmp_path / "q.npz", str(tmp_path / "q.npz")):
        found = evaluated(PROBS, None, "ood", out=out)
        assert found["ood"]["auroc"] == expected["ood"]["auroc"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"video": 3}, ("video is a int", "Or give the path of a store")),
        ({"video": ""}, ("video=''; expected a path",)),
        ({"video": "a\0"}, ("video=", "expected a path")),
        ({"video": FRAMES / 255}, ("video (array in memory) holds float64; frames are uint8",)),
        ({"video": FRAMES, "flow_path": FLOW[:1]}, ("flow_path (array in memory)", "of 1 pairs")),
        ({"video": FRAMES, "invalid": 0}, ("invalid is for", "array in memory has none")),
        ({"video": FRAMES, "out": [PROBS]}, ("array in memory is a video",)),
        ({"video": FRAMES, "flow_path": FLOW, "flow": "dis"}, ("flow_path needs flow file",)),
        ({"video": FRAMES, "pseudo_labels": PREDICTED}, ("array in memory are the evaluated",)),
        ({"depth_map": DEPTH}, ("depth_map array in memory has no effect",)),
        ({"out": PROBS, "ood_mask": DEPTH}, ("ood_mask finds",)),
        ({"invalid": PROBS}, ("invalid <ndarray of float32, shape [2, 3, 6, 5]>",)),
        ({"region": [DEPTH]}, ("region [<ndarray of float32, shape [4, 6, 5]>]",)),
    ],
)  # fmt: skip
def test_messages_do_not_have_the_numbers_of_arrays(
    options: dict[str, Any], parts: tuple[str, ...]
) -> None:
    metrics: Any = {"tc": {"flow": options.pop("flow", "file")}} if "video" in options else "ood"
    message = refused(
        lambda: uqeval.evaluate(PREDICTED, None, metrics, classes=4, **options), *parts
    )
    assert "[[" not in message and "\n" not in message


def test_workers_of_a_cluster_do_not_get_arrays() -> None:
    for name in ("video", "depth_map", "flow_path", "flow_forward_path", "pseudo_labels",
                 "ood_mask", "out"):  # fmt: skip
        for value in (DEPTH, Capsule(DEPTH), {"depth": DEPTH}):
            given = [value] if name == "out" else value
            recipe = Recipe("p.zarr", None, InputOptions(**{name: given}))
            with pytest.raises(UsageError, match="cannot be read by the workers of a cluster"):
                recipe.with_absolute_paths()


@pytest.mark.parametrize("mask", [254, -1, "254"])
@pytest.mark.parametrize("names", [["a"], np.array(["a"])], ids=["list", "array"])
def test_workers_of_a_cluster_get_ids_of_labels_and_names(mask: Any, names: Any) -> None:
    options = InputOptions(names=names, ood_mask=mask)
    of_worker = Recipe("p.zarr", None, options).with_absolute_paths().options
    assert of_worker.ood_mask == int(mask)
    assert list(of_worker.names) == ["a"]


def test_a_mask_whose_path_looks_like_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("254").mkdir()
    recipe = Recipe("p.zarr", None, InputOptions(ood_mask="254")).with_absolute_paths()
    assert recipe.options.ood_mask == str(tmp_path / "254")
