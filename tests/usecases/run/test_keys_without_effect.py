"""A key of a file that changes nothing for its store is refused, as its option is."""

from __future__ import annotations

from pathlib import Path

import pytest
from option_inputs import write_all

import uqeval
from uqeval.config.model import Store
from uqeval.errors import UsageError

#: A store of each kind of data, and its metric.
STORES = {
    "classes": ("predictions: p.npz", "failure: {}"),
    "numbers": ("predictions: r.npz", "regression: {}"),
    "video": ("video: v.npz", "tc: {}"),
    "sets": ("predictions: p.npz, out: [out.npz]", "ood: {}"),
    "mask": ("predictions: p.npz, ood_mask: mask.npy", "ood: {}"),
    "sweep": ("predictions: p.npz", "sweep: {}"),
}
_FLOW = {"flow_path": "other_flow.npy", "flow_forward_path": "forward.npy"}
_OF_VIDEO = {"pseudo_labels": "other.npz", "resize": "nearest", "flow_cache": "cache", **_FLOW}
_OF_CLASSES = {
    "classes": "3", "class_names": "[a, b, c]", "ignore_index": "255", "kind": "probs",
    "sum_tolerance": "0.1",
}  # fmt: skip
_OF_NUMBERS = {
    "invalid": "0", "nan_samples": "skip", "baseline_focal": "3", "disparity": "both",
    "median_scaling": "true",
}  # fmt: skip
_OF_FILES = {"label_map": "cityscapes", "annotator_folders": "true", "missing_chunks": "fill"}
_OF_SETS = {"out": "[out.npz]", "ood_mask": "mask.npy"}
_PICTURES = {"images": "folders/r0"}
#: Keys with values that have no effect on a store; for `depth_map`, without a region of depths.
UNUSED: dict[str, dict[str, str]] = {
    "classes": {**_OF_VIDEO, **_OF_NUMBERS, **_OF_FILES, **_OF_SETS, "reference": "q.npz",
                "depth_map": "depth.npy"},
    "numbers": {**_OF_VIDEO, **_OF_CLASSES, **_OF_FILES, **_OF_SETS, "reference": "s.npz",
                "depth_map": "depth.npy", "nan_samples": "skip", "disparity": "both"},
    "video": {**_FLOW, **_OF_NUMBERS, **_OF_FILES, **_OF_SETS, **_PICTURES,
              "map_cache": "cache", "kind": "probs", "sum_tolerance": "0.1",
              "depth_map": "depth_v.npy"},
    "sets": {**_OF_VIDEO, **_OF_NUMBERS, **_OF_FILES, **_PICTURES, "reference": "q.npz",
             "region": "[class:0]", "depth_map": "depth.npy", "ood_mask": "mask.npy"},
    "mask": {**_OF_VIDEO, **_OF_NUMBERS, **_OF_FILES, **_PICTURES, "reference": "q.npz",
             "region": "[class:0]", "depth_map": "depth.npy", "out": "[out.npz]"},
    "sweep": {**_OF_VIDEO, **_OF_NUMBERS, **_OF_FILES, **_PICTURES, "depth_map": "depth.npy"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("keys")
    write_all(root)
    return root


def refused(folder: Path, store: str, metrics: str, more: str = "", **settings: int) -> str:
    """Return why the only store of a file, or the whole file, was refused."""
    (folder / "run.yaml").write_text(
        f"stores: {{s: {{{store}}}}}\nevaluate: {{s: {{{metrics}}}}}\n{more}"
    )
    try:
        ended = uqeval.run_config(folder / "run.yaml", output=str(folder / "o"), **settings)
    except UsageError as error:
        return str(error)
    assert set(ended.failed) == {"s"} and not ended.reports
    return ended.failed["s"]


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [(kind, key, value) for kind, keys in UNUSED.items() for key, value in keys.items()],
)
def test_a_key_of_another_kind_of_data(folder: Path, kind: str, key: str, value: str) -> None:
    store, metrics = STORES[kind]
    message = refused(folder, f"{store}, {key}: {value}", metrics)
    named = {key, f"--{key.replace('_', '-')}"}
    if kind == "classes" and key in _OF_SETS:
        named = {"holds in- and out-of-distribution data"}
    if kind == "numbers" and key in _OF_SETS:
        named = {"expected probs or logits"}
    assert any(name in message for name in named), message


def test_the_table_knows_every_key() -> None:
    known = {key for keys in UNUSED.values() for key in keys}
    # These have an effect on every kind of data.
    assert set(Store.model_fields) - known == {
        "predictions", "labels", "target", "video", "names", "axes", "limit",
    }  # fmt: skip


@pytest.mark.parametrize("key", ["ci: 0.9", "slices: items.csv"])
def test_sweeps_have_no_intervals_and_no_slices(folder: Path, key: str) -> None:
    message = refused(folder, *STORES["sweep"], more=f"{key}\n")
    assert "intervals and slices are for scores of items, and sweeps have none" in message


@pytest.mark.parametrize("kind", ["sets", "mask", "sweep"])
def test_a_gallery_that_no_page_shows(folder: Path, kind: str) -> None:
    message = refused(folder, *STORES[kind], gallery=2)
    assert "gallery=2 has no effect: pictures need labels or a target" in message


def test_a_video_names_its_models(folder: Path) -> None:
    assert "model" in refused(folder, "video: v.npz", "tc: {model: x}")
    with pytest.raises(UsageError, match="unknown temporal options model"):
        uqeval.evaluate(video=str(folder / "v.npz"), metrics={"tc": {"model": "x"}})
