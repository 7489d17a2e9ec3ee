"""KL divergence to a reference, against SciPy's definition and plain arithmetic."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from number_stores import numbers
from scenes import zarr_group
from scipy.special import rel_entr

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.tallies.divergence import Divergence


def probabilities(seed: int, samples: int, zeros: bool = False) -> np.ndarray:
    """float32 [item, sample, class, y, x]."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(4) * 0.7, size=(3, samples, 9, 11)).astype(np.float32)
    if zeros:
        p[rng.random(p.shape) < 0.1] = 0
        p[..., 0] += 1 - p.sum(axis=-1)
    return np.moveaxis(p, -1, 2)


def expected(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    means = [
        a.astype(np.float64).mean(axis=1).astype(np.float32).astype(np.float64) for a in (p, q)
    ]
    return rel_entr(*means).sum(axis=1)


def evaluate(p: Any, q: Any, **options: Any) -> uqeval.Report:
    return uqeval.evaluate(p, None, {"divergence": options}, reference=q)


def test_categorical_equals_scipy() -> None:
    p, q = probabilities(0, 3), probabilities(1, 2)
    report = evaluate(p, q)
    kl = expected(p, q)
    found = report.results["divergence"]
    assert found["kl"] == pytest.approx(kl.mean(), rel=1e-9)
    assert found["pixels"] == kl.size
    assert found["infinite"] == 0
    for item, own in zip(report.items, kl, strict=True):
        assert item["divergence"]["kl"] == pytest.approx(own.mean(), rel=1e-9)
    assert evaluate(p, p).results["divergence"]["kl"] == 0


def test_no_negative_divergence_from_probabilities_that_float32_rounds_up() -> None:
    p = np.full((1, 3, 4, 4), 1 / 3, "f4")
    report = evaluate(p, p * np.float32(1.0000002))
    assert report.results["divergence"]["kl"] == report.items[0]["divergence"]["kl"] == 0


def test_infinite_pixels_are_counted_apart() -> None:
    p, q = probabilities(0, 1), probabilities(1, 1, zeros=True)
    kl = expected(p, q)
    report = evaluate(p, q)
    found = report.results["divergence"]
    assert 0 < found["infinite"] == np.isinf(kl).mean()
    assert found["kl"] == pytest.approx(kl[np.isfinite(kl)].mean(), rel=1e-9)
    assert any("infinite" in text for text in report.warnings)
    clipped = evaluate(p, q, clip=1e-3).results["divergence"]
    a, b = (np.maximum(x[:, 0].astype(np.float64), 1e-3) for x in (p, q))
    a, b = a / a.sum(axis=1, keepdims=True), b / b.sum(axis=1, keepdims=True)
    assert clipped["infinite"] == 0
    assert clipped["kl"] == pytest.approx(rel_entr(a, b).sum(axis=1).mean(), rel=1e-9)


@pytest.mark.parametrize("clip", [5e-324, 1e-310, 2.0**-1022, 1e-300])
def test_any_clip(clip: float) -> None:
    p = np.reshape(np.float32([0.5, 0.5]), (2, 1, 1))
    q = np.reshape(np.float32([1, 0]), (2, 1, 1))
    state = Divergence("classes", clip).state_of({"mean_probs": p, "reference/mean_probs": q})
    expected_ = math.log(0.5) - 0.5 * math.log(clip)
    assert state["total"][0] == pytest.approx(expected_, rel=1e-14)


def test_items_without_a_compared_pixel(tmp_path: Path) -> None:
    target = np.ones((2, 3, 4), np.float32)
    target[0] = np.nan
    arrays = {"mean": np.ones_like(target), "std": np.ones_like(target)}
    path = tmp_path / "one.npz"
    np.savez(path, **arrays, target=target)
    report = evaluate(path, path)
    own = report.items[0]["divergence"]
    assert own["kl"] is own["infinite"] is None
    assert own["kl_reason"] == own["infinite_reason"] == "no pixel is compared"
    assert report.numerics["divergence"] == {"infinite": 0, "invalid": 12}
    assert any("1 of 2 items have no valid target: 0" in text for text in report.warnings)
    np.savez(path, **arrays, target=target * np.nan)
    with pytest.raises(DataError, match="nothing is left to evaluate"):
        evaluate(path, path)


def test_gaussian() -> None:
    rng = np.random.default_rng(2)
    mean, other = rng.normal(size=(2, 5, 7)).astype(np.float32)
    sigma, width = rng.uniform(0.5, 2, size=(2, 5, 7)).astype(np.float32)
    sigma[0, 0] = 0
    sigma[0, 1] = width[0, 1] = 0
    other[0, 1] = mean[0, 1]
    label, label_too = np.zeros((2, 5, 7), np.uint8)
    label[4, 0] = label_too[4, 1] = 255
    maps = {
        "mean": mean, "sigma": sigma, "reference/mean": other, "reference/sigma": width,
        "label": label, "reference/label": label_too,
    }  # fmt: skip
    state = Divergence("regression").state_of(maps)
    total = 0.0
    for m, s, n, t, a, b in zip(*(a.ravel().astype(float) for a in maps.values()), strict=True):
        if s and t and not a and not b:
            total += math.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5
    assert state["total"][0] == pytest.approx(total, rel=1e-12)
    assert (state["finite"][0], state["infinite"][0]) == (32, 1)


TINY = [
    # (σ₁, σ₂, μ₁ - μ₂, KL; infinite where float64 cannot hold it)
    (1.0, 1e-200, 1.0, math.inf),
    (1e-200, 1e-200, 0.0, 0.0),
    (1e-310, 1e-310, 0.0, 0.0),
    (1e-200, 2e-200, 0.0, math.log(2) + 1 / 8 - 0.5),
    (1e-200, 1e-200, 1e-200, 0.5),
    (1e-300, 1e30, 0.0, 330 * math.log(10) - 0.5),
    (1e-320, 1.0, 0.0, -math.log(1e-320) - 0.5),
    (1.0, 1e-150, 0.0, math.inf),
    (1.0, 1e-100, 0.0, 5e199),
]


@pytest.mark.parametrize(("sigma", "width", "shift", "expected"), TINY)
def test_gaussians_with_a_tiny_deviation(
    tmp_path: Path, sigma: float, width: float, shift: float, expected: float
) -> None:
    stores = {name: tmp_path / f"{name}.npz" for name in ("p", "q")}
    for name, mean, std in (("p", shift, sigma), ("q", 0.0, width)):
        arrays = {"mean": np.zeros((1, 2, 3)), "std": np.ones((1, 2, 3))}
        arrays["mean"][0, 1, 2], arrays["std"][0, 1, 2] = mean, std
        np.savez(stores[name], **arrays)
    report = evaluate(stores["p"], stores["q"])
    found = report.results["divergence"]
    is_finite = math.isfinite(expected)
    assert found["kl"] == pytest.approx(expected / 6 if is_finite else 0.0, rel=1e-12)
    assert found["infinite"] == (0 if is_finite else 1 / 6)
    assert report.numerics["divergence"]["infinite"] == (not is_finite)
    report.to_json()


@pytest.mark.parametrize(
    ("q", "said"),
    [
        (probabilities(1, 1)[:2], "items"),
        (probabilities(1, 1)[:, :, :, :8], "size"),
        (np.full((3, 1, 3, 9, 11), 1 / 3, np.float32), "classes"),
    ],
)
def test_what_is_not_the_same_items(q: np.ndarray, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        evaluate(probabilities(0, 1), q)


@pytest.mark.parametrize("nameless", ["ensemble", "mc"])
def test_a_side_without_names(tmp_path: Path, nameless: str) -> None:
    stores = {}
    for seed, name in enumerate(("mc", "ensemble")):
        p = probabilities(seed, 1)
        names = {} if name == nameless else {"names": np.array([f"n{i}" for i in range(len(p))])}
        stores[name] = tmp_path / f"{name}.npz"
        np.savez(stores[name], probs=p, **names)
    with pytest.raises(StoreError, match=rf"{nameless}\.npz gives its items no names.*names=FILE"):
        evaluate(stores["mc"], stores["ensemble"])
    given = tmp_path / "names.txt"
    given.write_text("\n".join(f"n{i}" for i in range(len(p))) + "\n", "utf-8")
    both = {"reference": stores["ensemble"], "names": given}
    assert uqeval.evaluate(stores["mc"], None, "divergence", **both).results


def test_a_reference_in_another_unit(tmp_path: Path) -> None:
    """A store need not declare its unit."""
    arrays = {name: numbers()[name] for name in ("mean", "std")}

    def in_unit(**attributes: str) -> Path:
        of_unit = {name: (a, {"attributes": attributes}) for name, a in arrays.items()}
        return zarr_group(tmp_path / attributes.get("units", "unknown"), of_unit)

    metres, centimetres, unknown = in_unit(units="m"), in_unit(units="cm"), in_unit()
    for reference in (metres, unknown, in_unit(units="meters")):
        same = uqeval.evaluate(metres, None, "divergence", reference=reference)
        assert same.results["divergence"]["kl"] == 0
    with pytest.raises(StoreError, match=r"mixed units: .*m is in m, the reference .* in cm"):
        uqeval.evaluate(metres, None, "divergence", reference=centimetres)


def test_needs_a_reference(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="reference"):
        uqeval.evaluate(probabilities(0, 1), None, ["divergence"])
    with pytest.raises(UsageError, match="clip"):
        evaluate(probabilities(0, 1), probabilities(1, 1), clip=1.0)


@pytest.mark.parametrize("odd", [(1, 2, 9, 11), (3, 4, 2, 3), (1, 1, 1, 1)])
@pytest.mark.parametrize("size", [(9, 11), (1, 1)])
def test_items_of_a_reference_may_have_other_chunks_than_their_neighbours(
    odd: tuple[int, ...], size: tuple[int, int], tmp_path: Path
) -> None:
    """The predictions are one array, whose items are read together: so are those of the reference,
    whose tiles differ."""
    p, q = (probabilities(seed, 3)[..., : size[0], : size[1]] for seed in (0, 1))
    zarr.create_group(str(tmp_path / "q"))
    for item, values in enumerate(q):
        whole = values.shape
        chunks = tuple(map(min, odd, whole)) if item == 1 else whole
        zarr_group(tmp_path / "q/items" / str(item), {"probs": (values, {"chunks": chunks})})
    np.save(tmp_path / "p.npy", p)
    names = ["0", "1", "2"]
    found = uqeval.evaluate(
        tmp_path / "p.npy", None, ["divergence"], names=names, reference=tmp_path / "q"
    )
    together = uqeval.evaluate(p, None, ["divergence"], names=names, reference=q)
    assert found.results == together.results and found.items == together.items
