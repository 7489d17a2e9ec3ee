"""A temperature that scales the logits of each sample, against scipy and plain float64."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
import scenes
from scipy.optimize import minimize_scalar

import uqeval
from uqeval.errors import UsageError
from uqeval.maps.names import Betas
from uqeval.maps.tempering import tempered

CLASSES = 4


def drawn(
    seed: int, scale: float = 2.0, items: int = 2, samples: int = 5, size: int = 20
) -> tuple[Any, Any, Any]:
    """Logits [n, t, c, y, x] around those that labels are drawn from, their softmax, and labels."""
    rng = np.random.default_rng(seed)
    true = 1.5 * rng.normal(size=(items, 1, CLASSES, size, size))
    z = scale * (true + 0.8 * rng.normal(size=(items, samples, CLASSES, size, size)))
    p = np.exp(true[:, 0]) / np.exp(true[:, 0]).sum(axis=1, keepdims=True)
    u = rng.random((items, 1, size, size))
    label = np.minimum((p.cumsum(axis=1) < u).sum(axis=1), CLASSES - 1).astype("u1")
    label[:, :2] = 255
    z = z.astype("f4")
    e = np.exp(z - z.max(axis=2, keepdims=True))
    return z, (e / e.sum(axis=2, keepdims=True)).astype("f4"), label


def mean_at(probs: Any, temperature: float) -> Any:
    """mean_t p_t^(1/T) / Σ_c p_t^(1/T) in float64 [n, c, y, x]."""
    wide = (probs.astype(float) / probs.max(axis=2, keepdims=True)) ** (1 / temperature)
    return (wide / wide.sum(axis=2, keepdims=True)).mean(axis=1)


def nll_at(probs: Any, label: Any, temperature: float) -> float:
    """The mean NLL of the pixels whose label has a probability above 0 in some sample."""
    p, y = naive.flatten(mean_at(probs, temperature), label)
    mine = p[y, np.arange(y.size)]
    return float(-np.log(mine[mine > 0]).mean())


def least(probs: Any, label: Any) -> float:
    found = minimize_scalar(
        lambda x: nll_at(probs, label, np.exp(x)), (-1, 1), tol=1e-11, method="brent"
    )
    return float(np.exp(found.x))


def temperature(probs: Any, label: Any, **options: Any) -> dict[str, Any]:
    options = {"temperature_of": "samples"} | options
    report = uqeval.evaluate(probs, label, {"calibration": options})
    assert report.settings["calibration"]["temperature_of"] == "samples"
    return report.results["calibration"]["temperature"]  # type: ignore[no-any-return]


def scores_agree(found: dict[str, Any], probs: Any, label: Any, t: float) -> None:
    p, y = naive.flatten(mean_at(probs, t), label)
    # As a map: float32, in which a confidence may lie on the other side of an edge.
    conf, hit = p.max(axis=0).astype("f4"), p.argmax(axis=0) == y
    ece, mce = naive.equal_width(conf, hit, 15)
    assert found["ece"] == pytest.approx(ece, rel=1e-6)
    assert found["mce"] == pytest.approx(mce, rel=1e-6)
    assert found["nll"] == pytest.approx(naive.nll(p[y, np.arange(y.size)]), rel=1e-7)


@pytest.mark.parametrize("scale", [0.1, 1.0, 2.0, 12.0])
def test_scipy(scale: float) -> None:
    _, probs, label = drawn(1, scale)
    found = temperature(probs, label)
    assert found["value"] == pytest.approx(least(probs, label), rel=1e-6)
    assert found["pixels"] == (label != 255).sum()
    scores_agree(found, probs, label, found["value"])


@pytest.mark.parametrize("dtype", ["f2", "f8", "u2"])
def test_dtypes(dtype: str, tmp_path: Path) -> None:
    _, probs, label = drawn(2)
    values = scenes.quantized(probs, dtype) if dtype == "u2" else probs.astype(dtype)
    used = values.astype("f8") / 65535 if dtype == "u2" else values
    path = tmp_path / "p.zarr"
    scenes.zarr_group(path, {"probs": values, "labels": label})
    if dtype == "u2":
        import zarr

        zarr.open_group(str(path))["probs"].attrs["scale"] = 1 / 65535
    report = uqeval.evaluate(path, None, {"calibration": {"temperature_of": "samples"}})
    found = report.results["calibration"]["temperature"]
    assert found["value"] == pytest.approx(least(used.astype("f4"), label), rel=1e-6)


def test_logits_are_scaled(tmp_path: Path) -> None:
    z, probs, label = drawn(3)
    path = tmp_path / "z.zarr"
    scenes.zarr_group(path, {"logits": z, "labels": label})
    report = uqeval.evaluate(path, None, {"calibration": {"temperature_of": "samples"}})
    found = report.results["calibration"]["temperature"]
    t = found["value"]
    assert t == pytest.approx(temperature(probs, label)["value"], rel=1e-6)
    e = np.exp(z.astype(float) / t)
    p, y = naive.flatten((e / e.sum(axis=2, keepdims=True)).mean(axis=1), label)
    assert found["nll"] == pytest.approx(naive.nll(p[y, np.arange(y.size)]), rel=1e-6)


def test_one_sample_is_its_own_mean() -> None:
    _, probs, label = drawn(4, samples=1)
    report = uqeval.evaluate(probs, label, ["calibration"])
    expected = report.results["calibration"]["temperature"]
    assert report.settings["calibration"]["temperature_of"] == "mean"
    found = temperature(probs, label)
    for name in ("value", "nll", "ece"):
        assert found[name] == pytest.approx(expected[name], rel=1e-6)


def test_the_prediction_is_that_of_the_tempered_mean() -> None:
    # A sure sample outvotes two less sure ones until all are surer.
    p = np.array([[0.99, 0.01], [0.3, 0.7], [0.3, 0.7]], "f4")
    probs = np.tile(p[None, :, :, None, None], (1, 1, 1, 1, 40))
    label = (np.arange(40) % 10 >= 4).astype("u1").reshape(1, 1, 40)
    found = temperature(probs, label)
    t = found["value"]
    assert t < 0.5 and mean_at(probs, t)[0, :, 0, 0].argmax() == 1
    assert mean_at(probs, 1.0)[0, :, 0, 0].argmax() == 0
    scores_agree(found, probs, label, t)


def test_zero_probabilities() -> None:
    _, probs, label = drawn(5, items=1)
    probs[0, :, :, 4] = np.array([0.5, 0.5, 0, 0], "f4")[:, None]
    probs[0, 0, :, 5] = np.array([0, 0, 0.5, 0.5], "f4")[:, None]
    label[0, 4] = np.arange(20) % 3
    found = temperature(probs, label)
    assert found["label_probability_zero"] == 6
    assert found["pixels"] == (label != 255).sum() - 6
    assert found["value"] == pytest.approx(least(probs, label), rel=1e-6)


@pytest.mark.parametrize(
    ("first", "labels", "words"),
    [
        ((0.9, 0.7), (0, 0), "falls at T = 0.03125"),
        ((0.9, 0.7), (1, 1), "falls at T = 32"),
        ((1.0, 1.0), (0, 0), "the same at every temperature"),
        ((0.5, 0.5), (0, 1), "the same at every temperature"),
        ((1.0, 0.0), (1, 0), "above 0"),
    ],
)
def test_without_a_temperature(first: Any, labels: Any, words: str) -> None:
    p = np.array(first, "f4")
    pair = np.stack([p, np.float32(1) - p])[None, None, :, None]
    label = np.array(labels, "u1")[None, None]
    found = temperature(np.concatenate([pair, pair], axis=1), label)
    assert found["value"] is None and words in found["value_reason"]
    assert found["ece"] is None and "no fitted temperature" in found["ece_reason"]


def test_any_chunks_workers_and_memory_give_the_same_bits(tmp_path: Path) -> None:
    import zarr

    z, probs, label = drawn(6, items=3)
    names = tmp_path / "fit.json"
    names.write_text(json.dumps(["0", "2"]))
    for kind, values in (("probs", probs), ("logits", z)):
        found = []
        for i, chunks in enumerate(
            [(3, 5, 4, 20, 20), (1, 1, 4, 7, 20), (2, 2, 1, 20, 6), (1, 3, 3, 11, 9)]
        ):
            path = tmp_path / f"{kind}{i}.zarr"
            group = zarr.create_group(str(path))
            for name, data, own in (
                (kind, values, chunks), ("labels", label, (1, *chunks[3:])),
            ):  # fmt: skip
                array = group.create_array(name, shape=data.shape, dtype=data.dtype, chunks=own)
                array[...] = data
            for workers, memory in ((1, 10**9), (3, 2_000_000)):
                report = uqeval.evaluate(
                    path, None,
                    {"calibration": {"temperature_of": "samples", "fit_on": str(names)}},
                    workers=workers, memory=memory, missing_chunks="fill",
                )  # fmt: skip
                found.append(json.dumps([report.results, report.items]))
        assert all(one == found[0] for one in found)


def test_fit_on_some_items(tmp_path: Path) -> None:
    _, probs, label = drawn(7, items=3)
    names = tmp_path / "fit.json"
    names.write_text(json.dumps(["2", "0"]))
    found = temperature(probs, label, fit_on=str(names))
    part = [0, 2]
    assert found["value"] == pytest.approx(least(probs[part], label[part]), rel=1e-6)
    held = found["held_out"]
    assert held["items"] == 1
    scores_agree(held["before"], probs[1:2], label[1:2], 1.0)
    scores_agree(held["after"], probs[1:2], label[1:2], found["value"])


def test_memory_does_not_grow_with_the_samples() -> None:
    label = np.zeros((1, 40, 50), "u1")
    needs = []
    for samples in (2, 64):
        values = np.full((1, samples, CLASSES, 40, 50), 0.25, "f4")
        array = scenes.Chunked(values, (1, 1, CLASSES, 40, 50))
        source = tempered(scenes.chunked_source(array, truth=label), Betas(0.5, 0.1, 9))
        source.want(["label", "tempered_nll"])
        needs.append(source.batch_bytes(range(1)))
    assert needs[0] == needs[1]


def test_a_maps_store_has_no_samples(tmp_path: Path) -> None:
    _, probs, label = drawn(8)
    mean = probs.mean(axis=1)
    arrays = {"mean_probs": mean, "predictions": mean.argmax(1).astype("u1"), "labels": label}
    path = scenes.zarr_group(tmp_path / "maps.zarr", arrays)
    with pytest.raises(UsageError, match=r"maps\.zarr is a maps store, which has no samples"):
        uqeval.evaluate(path, None, {"calibration": {"temperature_of": "samples"}})
    with pytest.raises(UsageError, match="leave out temperature=False"):
        uqeval.evaluate(
            probs, label, {"calibration": {"temperature_of": "samples", "temperature": False}}
        )


def test_too_little_memory_is_refused_before_anything_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tempered samples take more than reading them does."""
    from uqeval.maps.sources import Source

    _, probs, label = drawn(1)
    read: list[range] = []
    monkeypatch.setattr(Source, "read", lambda self, batch, *_: read.append(batch))
    asked: dict[str, Any] = {"calibration": {"temperature_of": "samples"}, "segmentation": {}}
    with pytest.raises(UsageError) as small:
        uqeval.evaluate(probs, label, "calibration", memory="1kB")
    with pytest.raises(UsageError) as large:
        uqeval.evaluate(probs, label, asked, memory="1kB")
    needed = [str(found.value).split("Give memory=")[1] for found in (small, large)]
    assert needed[0] != needed[1]
    enough = needed[0].split(",")[0]
    with pytest.raises(UsageError, match=needed[1].split(",")[0]):
        uqeval.evaluate(probs, label, asked, memory=enough)
    assert not read


@pytest.mark.parametrize("one", [255, 10, 1])
def test_integers_of_the_foreground_alone_are_those_of_both_classes(one: int) -> None:
    scale = float(np.float32(1 / one))  # 255 of them are a little more than 1
    rng = np.random.default_rng(5)
    p = rng.integers(0, one + 1, (4, 3, 1, 8, 8)).astype(np.uint8)
    labels = (rng.random((4, 8, 8)) < p[:, :, 0].mean(axis=1) / one).astype(np.uint8)
    metrics = {"calibration": {"temperature_of": "samples", "isotonic": True}, "failure": {}}
    results = [
        uqeval.evaluate({"probs": own, "labels": labels, "scale": scale}, metrics=metrics).results
        for own in (p, np.concatenate([one - p, p], axis=2))
    ]
    assert results[0] == results[1]
