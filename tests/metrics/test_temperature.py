"""Temperature scaling, against scipy and against data whose temperature is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive_calibration as naive
import numpy as np
import pytest
import scenes
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import uqeval
import uqeval.metrics.temperature_fit as temperature_fit
from uqeval.errors import UsageError
from uqeval.metrics.temperature_fit import Sample


def softmax(z: Any) -> Any:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).astype("f4")


def drawn(seed: int, scale: float, items: int = 2, classes: int = 4, size: int = 24) -> Any:
    """Calibrated probabilities, their logits times `scale`, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    z = 1.5 * rng.normal(size=(items, classes, size, size))
    u = rng.random((items, 1, size, size))
    label = (softmax(z).astype(float).cumsum(axis=1) < u).sum(axis=1)
    return softmax(scale * z)[:, None], np.minimum(label, classes - 1).astype("u1")


def temperature(probs: Any, label: Any, **options: Any) -> dict[str, Any]:
    report = uqeval.evaluate(probs, label, {"calibration": options})
    return report.results["calibration"]["temperature"]  # type: ignore[no-any-return]


def least(probs: Any, label: Any) -> float:
    """The temperature with the least NLL, by scipy."""
    p, y = naive.flatten(probs[:, 0], label)
    found = minimize_scalar(
        lambda x: naive.tempered_nll(p, y, np.exp(x)), (-1, 1), tol=1e-10, method="brent"
    )
    return float(np.exp(found.x))


def slope(probs: Any, label: Any, t: float) -> float:
    """The derivative of the NLL by ln T, by central differences."""
    p, y = naive.flatten(probs[:, 0], label)
    h = 1e-4
    high, low = (naive.tempered_nll(p, y, t * np.exp(d)) for d in (h, -h))
    return (high - low) / (2 * h)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1, 3, 20])
def test_scipy(scale: float) -> None:
    probs, label = drawn(1, scale)
    label[:, :2] = 255
    found = temperature(probs, label)
    # Near its least value a function is flat: scipy's bracketing is good to about 1e-7.
    assert found["value"] == pytest.approx(least(probs, label), rel=1e-6)
    p, y = naive.flatten(probs[:, 0], label)
    after = naive.tempered(p, found["value"])
    conf, hit = after.max(axis=0).astype("f4"), p.argmax(axis=0) == y
    ece, mce = naive.equal_width(conf, hit, 15)
    assert found["ece"] == pytest.approx(ece, rel=1e-6)
    assert found["mce"] == pytest.approx(mce, rel=1e-6)
    assert found["nll"] == pytest.approx(naive.nll(after[y, np.arange(y.size)]), rel=1e-9)
    assert found["pixels"] == y.size


@pytest.mark.parametrize("scale", [1.0, 3.0, 0.5])
def test_known_temperatures(scale: float) -> None:
    probs, label = drawn(2, scale, items=4, size=128)
    assert temperature(probs, label)["value"] == pytest.approx(scale, rel=0.02)


def test_scaled_logits_scale_the_temperature() -> None:
    one, label = drawn(3, 1.0)
    three, _ = drawn(3, 3.0)
    a, b = (temperature(p, label) for p in (one, three))
    assert b["value"] == pytest.approx(3 * a["value"], rel=1e-6)
    assert b["nll"] == pytest.approx(a["nll"], rel=1e-6)


@given(st.integers(0, 10**6), st.floats(-3, 3), st.integers(2, 5))
def test_any_data(seed: int, log_scale: float, classes: int) -> None:
    probs, label = drawn(seed, float(np.exp(log_scale)), items=1, classes=classes, size=6)
    found = temperature(probs, label)
    if found["value"] is None:
        assert "limit of the search" in found["value_reason"]
    else:
        assert slope(probs, label, found["value"]) == pytest.approx(0, abs=2e-6)


def test_zero_probabilities() -> None:
    probs, label = drawn(4, 1.0, items=1)
    probs[0, 0, :, 0] = np.array([0.5, 0.5, 0, 0], "f4")[:, None]
    label[0, 0] = np.arange(24) % 3
    found = temperature(probs, label)
    assert found["label_probability_zero"] == 8
    assert found["pixels"] == label.size - 8
    assert found["value"] == pytest.approx(least(probs, label), rel=1e-6)


# ---- where some pixels say where to look


@pytest.mark.parametrize("kind", ["another T", "runs to the bound", "constant", "void"])
def test_pixels_that_mislead(kind: str) -> None:
    probs, label = drawn(8, 2.0, items=1, size=200)
    flat, y = probs.reshape(4, -1), label.reshape(-1)
    misleading = slice(None, None, 3)  # of 40 000 pixels these are looked at first
    if kind == "another T":
        flat[:, misleading] = flat[:, misleading] ** 2
        flat /= flat.sum(axis=0)
    elif kind == "runs to the bound":
        y[misleading] = flat[:, misleading].argmax(axis=0)
    elif kind == "constant":
        flat[:, misleading] = 0.25
    else:
        y[misleading] = 255
    found = temperature(probs, label)
    assert found["pixels"] == (y != 255).sum()
    assert slope(probs, label, found["value"]) == pytest.approx(0, abs=2e-8)


def test_some_pixels_have_a_temperature_and_all_have_none() -> None:
    probs, label = drawn(9, 2.0, items=1, size=200)
    flat, y = probs.reshape(4, -1), label.reshape(-1)
    drawn_ones = np.arange(y.size) % 3 == 0
    y[~drawn_ones] = flat[:, ~drawn_ones].argmin(axis=0)
    found = temperature(probs, label)
    assert found["value"] is None and "falls at T = 32" in found["value_reason"]
    assert found["pixels"] == y.size


def test_few_pixels_of_many_items_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    probs, label = drawn(10, 2.0, items=6)
    label[:, :3], label[2] = 255, 255
    by_all = temperature(probs, label)
    monkeypatch.setattr(temperature_fit, "_MOST_PIXELS", ((2**15, 2**8), (2**12, 2**8)))
    assert Sample.of(6) == Sample(first=128, clipped=128)  # of 576
    found = temperature(probs, label)
    assert found["value"] == pytest.approx(by_all["value"], rel=1e-9)
    assert found["nll"] == pytest.approx(by_all["nll"], rel=1e-9)
    assert found["pixels"] == by_all["pixels"] == (label != 255).sum()


@pytest.mark.parametrize(
    ("items", "first", "clipped"),
    [(1, 2**15, 2**12), (32, 2**15, 2**12), (1024, 1024, 256), (10**6, 128, 128)],
)
def test_the_sample_of_an_item(items: int, first: int, clipped: int) -> None:
    assert Sample.of(items) == Sample(first, clipped)


# ---- no temperature


def two(*pixels: tuple[float, int]) -> tuple[Any, Any]:
    """Two classes: pixels of a first probability and a label."""
    p = np.array([v for v, _ in pixels], "f4")
    label = np.array([y for _, y in pixels], "u1").reshape(1, 1, -1)
    return np.stack([p, np.float32(1) - p]).reshape(1, 1, 2, 1, -1), label


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (two((0.9, 0), (0.7, 0)), "falls at T = 0.03125"),
        (two((0.9, 1), (0.7, 1)), "falls at T = 32"),
        (two((0.9, 0), (0.9, 1)), "falls at T = 32"),
        (two((1.0, 0), (1.0, 0)), "the same at every temperature"),
        (two((0.5, 0), (0.5, 1)), "the same at every temperature"),
        (two((1.0, 1), (0.0, 0)), "above 0"),
    ],
)
def test_without_a_temperature(data: Any, words: str) -> None:
    found = temperature(*data)
    assert found["value"] is None and words in found["value_reason"]
    for name in ("ece", "mce", "nll"):
        assert found[name] is None and "no fitted temperature" in found[f"{name}_reason"]


# ---- fitted on a part


def store(folder: Path) -> Path:
    probs, label = drawn(6, 2.0, items=4)
    return scenes.zarr_group(
        folder / "s.zarr", {"probs": probs, "labels": label}, names=["a", "b", "c", "d"]
    )


def test_fit_on_some_items(tmp_path: Path) -> None:
    probs, label = drawn(6, 2.0, items=4)
    path = store(tmp_path)
    names = tmp_path / "fit.json"
    names.write_text(json.dumps(["d", "a"]))
    report = uqeval.evaluate(path, metrics={"calibration": {"fit_on": str(names)}})
    found = report.results["calibration"]["temperature"]
    part = [0, 3]
    assert found["value"] == temperature(probs[part], label[part])["value"]
    assert found["fitted_on"] == str(names)
    assert found["pixels"] == label[part].size
    assert not [w for w in report.warnings if "optimistic" in w]
    held = found["held_out"]
    assert held["items"] == 2
    p, y = naive.flatten(probs[[1, 2], 0], label[[1, 2]])
    for name, t in (("before", 1.0), ("after", found["value"])):
        after = naive.tempered(p, t)
        assert held[name]["nll"] == pytest.approx(naive.nll(after[y, np.arange(y.size)]), rel=1e-9)
        conf = after.max(axis=0).astype("f4")
        ece, mce = naive.equal_width(conf, p.argmax(axis=0) == y, 15)
        assert held[name]["ece"] == pytest.approx(ece, rel=1e-6)
        assert held[name]["mce"] == pytest.approx(mce, rel=1e-6)


def test_fit_on_all_items_leaves_none_out(tmp_path: Path) -> None:
    names = tmp_path / "fit.txt"
    names.write_text("a\nb\nc\nd\n")
    report = uqeval.evaluate(store(tmp_path), metrics={"calibration": {"fit_on": str(names)}})
    held = report.results["calibration"]["temperature"]["held_out"]
    assert held["items"] == 0
    assert held["after"]["ece"] is None and held["after"]["ece_reason"]


def test_the_default_warns() -> None:
    report = uqeval.evaluate(*drawn(6, 1.0, items=1, size=8), ("calibration",))
    assert [w for w in report.warnings if "fit_on=FILE" in w]


@pytest.mark.parametrize(
    ("text", "words"),
    [('["z", "a"]', r"not among .*: z\. The names of items are such as "), ("[]", "is empty")],
)
def test_names_that_are_no_items(tmp_path: Path, text: str, words: str) -> None:
    names = tmp_path / "fit.json"
    names.write_text(text)
    with pytest.raises(UsageError, match=words):
        uqeval.evaluate(store(tmp_path), metrics={"calibration": {"fit_on": str(names)}})


def test_a_store_is_no_list_of_names(tmp_path: Path) -> None:
    items = store(tmp_path)
    with pytest.raises(UsageError, match=r"is a folder or store; expected a text file with the na"):
        uqeval.evaluate(items, metrics={"calibration": {"fit_on": str(items)}})
