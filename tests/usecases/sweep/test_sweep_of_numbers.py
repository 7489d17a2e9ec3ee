"""The sweep of predicted numbers, and of divergences: every draw against plain arithmetic."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
import zarr
from number_stores import NAMES, SHAPE, close, numbers
from scipy.special import rel_entr

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.maps.subsets import subsets_of

T = 4
Arrays = dict[str, np.ndarray]
Pixels = list[tuple[float, ...]]


def of_samples(nan: float = 0.0) -> Arrays:
    """`samples` in place of `mean` and `std`; some NaN, and `valid` where not all are."""
    arrays = numbers(1, T)
    samples = arrays.pop("mean")
    del arrays["std"]
    rng = np.random.default_rng(2)
    samples[rng.random(samples.shape) < nan] = np.nan
    arrays["valid"] &= ~np.isnan(samples).all(axis=1)
    return arrays | {"samples": samples}


def store(path: Path, arrays: Arrays, chunks: Sequence[int] | None = None) -> str:
    """A Zarr group, `chunks` those of arrays with a sample axis."""
    group = zarr.create_group(str(path), attributes={"names": NAMES})
    for name, values in arrays.items():
        own = chunks if chunks and values.ndim == 4 else (1, *values.shape[1:])
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=tuple(own),
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = values
    return str(path)


def joined(arrays: Arrays, subset: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """μ and σ of a subset, in float64; NaN where no sample is a number."""
    mean, sigma = np.full((2, *SHAPE), np.nan)
    values = arrays["samples" if "samples" in arrays else "mean"]
    for i, y, x in np.ndindex(*SHAPE):
        members = [
            (float(values[i, t, y, x]), float(arrays["std"][i, t, y, x]) if "std" in arrays else 0)
            for t in subset
        ]
        members = [own for own in members if not math.isnan(own[0])]
        if members:
            mean[i, y, x], sigma[i, y, x] = naive.mixture(members)
    return mean, sigma


def pixels(arrays: Arrays, subset: Sequence[int]) -> Pixels:
    mean, sigma = joined(arrays, subset)
    return naive.pixels(mean, sigma, arrays["target"], arrays["valid"] & ~np.isnan(mean))


def sparsification(found: Pixels) -> dict[str, Any]:
    """AUSE and the curve of absolute errors, where no two σ are equal. Both are rank keys."""
    errors, sigmas = np.array([(e, s) for _, e, s in found], "f4").T.astype(float)
    kept = [len(found) - k * len(found) // 100 for k in range(100)]

    def curve(order: np.ndarray) -> np.ndarray:
        return np.array([errors[order][:n].mean() for n in kept]) / errors.mean()

    model, oracle = curve(np.argsort(sigmas)), curve(np.argsort(errors))
    return {"curve": model.tolist(), "ause": float(np.trapezoid(model - oracle, dx=0.01))}


def values_of(report: uqeval.Report, name: str) -> list[tuple[list[int], Any]]:
    """(subset, value) of every draw."""
    found = report.results["sweep"][name]["values"]
    subsets = report.settings["sweep"]["subsets"]
    return [
        pair
        for group, values in zip(subsets, found, strict=True)
        for pair in zip(group, values, strict=True)
    ]


def agree(report: uqeval.Report, arrays: Arrays, without_sigma: bool) -> None:
    """Every number of every draw is that of the oracle; what one sample lacks is null."""
    fields = {
        "regression": ("rmse", "mae", "nmse", "pixels", "nll", "crps", "sharpness", "auce",
                       "coverage.90", "interval_score.50", "calibration.observed"),
        "nmerci": ("nmerci", "merci", "lambda", "mae_trimmed", "max_alpha"),
    }  # fmt: skip
    expected = {
        tuple(subset): {
            "regression": naive.regression(found), "nmerci": naive.nmerci(found),
        }
        for group in report.settings["sweep"]["subsets"] for subset in group
        for found in [pixels(arrays, subset)]
    }  # fmt: skip
    for family, names in fields.items():
        for name in names:
            for subset, value in values_of(report, f"{family}.{name}"):
                wanted: Any = expected[tuple(subset)][family]
                for part in name.split("."):
                    wanted = wanted[part]
                kept = family == "regression" and name in ("rmse", "mae", "nmse", "pixels")
                if len(subset) == 1 and without_sigma and not kept:
                    wanted = None
                if isinstance(wanted, list):
                    assert value == pytest.approx(wanted, rel=1e-9)
                else:
                    assert close(value, wanted), (family, name, subset, value, wanted)


def test_mixtures_of_every_draw(tmp_path: Path) -> None:
    arrays = numbers(1, T)
    report = uqeval.sweep(
        store(tmp_path / "a.zarr", arrays), repeats=[4, 3, 5], seed=3,
        error="mae",
    )  # fmt: skip
    agree(report, arrays, without_sigma=False)
    for subset, value in values_of(report, "sparsification.ause"):
        assert close(value, sparsification(pixels(arrays, subset))["ause"])
    for subset, curve in values_of(report, "sparsification.curve"):
        assert curve == pytest.approx(sparsification(pixels(arrays, subset))["curve"], rel=1e-9)
    assert report.settings["sparsification"]["error"] == "mae"
    found = report.results["sweep"]
    assert found["nmerci.nmerci"]["m"] == [1, 2, 4]
    assert found["nmerci.nmerci"]["repeats"] == [4, 3, 1]
    assert all(one["std"][-1] == 0 for name, one in found.items() if name.endswith(("se", "mae")))
    assert found["nmerci.curve.alpha"]["mean"][0] == list(range(1, 101))


def test_samples_of_every_draw(tmp_path: Path) -> None:
    arrays = of_samples()
    report = uqeval.sweep(store(tmp_path / "a.zarr", arrays), repeats=3)
    agree(report, arrays, without_sigma=True)
    found = report.results["sweep"]
    for name in ("regression.crps", "sparsification.ause", "nmerci.mae", "nmerci.curve.nmerci"):
        assert found[name]["values"][0] == [None] * 3
        assert found[name]["mean"][0] is found[name]["std"][0] is None
        assert found[name]["mean_reason"] == "M = 1: undefined for one sample"
        assert found[name]["mean"][1] is not None
    assert found["regression.rmse"]["mean"][0] > found["regression.rmse"]["mean"][2]
    report.to_json()


def test_warnings_name_the_subset_and_no_option_that_a_sweep_lacks(tmp_path: Path) -> None:
    arrays = numbers(1, T)
    arrays["std"] = 1 / (1e-3 + abs(arrays["mean"] - arrays["target"][:, None]))  # the wrong order
    report = uqeval.sweep(
        store(tmp_path / "a.zarr", arrays), None, ["sparsification"], samples=[2, T]
    )
    of_subset, of_all = [text for text in report.warnings if "the AURG is" in text]
    value = report.results["sweep"]["sparsification.aurg"]["values"][0][0]
    assert of_subset.startswith(
        f"sparsification, the first of 6 subsets of M = 2: the AURG is {value:.4f}, below 0"
    )
    assert of_all.startswith(f"sparsification, M = {T}: the AURG is ")
    assert not any("0.95" in text for text in report.warnings)


def test_samples_that_are_no_numbers(tmp_path: Path) -> None:
    arrays = of_samples(nan=0.3)
    path = store(tmp_path / "a.zarr", arrays)
    report = uqeval.sweep(path, nan_samples="skip", repeats=[4, 3, 1])
    agree(report, arrays, without_sigma=True)
    counts = [n for _, n in values_of(report, "regression.pixels")]
    assert min(counts) < counts[-1] == max(counts)
    assert any(f"{min(counts)} to {max(counts)} pixels" in text for text in report.warnings)
    alone = uqeval.evaluate(path, None, ["regression"], nan_samples="skip").results["regression"]
    assert values_of(report, "regression.crps")[-1][1] == alone["crps"]
    with pytest.raises(DataError, match=r"of member \d.*nan_samples skip"):
        uqeval.sweep(path)
    arrays["valid"][...] = True
    arrays["samples"][0, :, 3, 4] = np.nan
    with pytest.raises(DataError, match="no sample that is a number"):
        uqeval.sweep(store(tmp_path / "b.zarr", arrays), samples=[1], nan_samples="skip")


def test_only_one_sample_is_asked_for(tmp_path: Path) -> None:
    """Metrics are null with their reason also where no subset has them."""
    path = store(tmp_path / "a.zarr", of_samples())
    report = uqeval.sweep(path, None, ["regression", "nmerci"], samples=[1], repeats=2)
    found = report.results["sweep"]["nmerci.nmerci"]
    assert (found["values"], found["mean"], found["std"]) == ([[None, None]], [None], [None])
    assert found["mean_reason"] == "M = 1: undefined for one sample"


@pytest.mark.parametrize("nan", [0.0, 0.2])
def test_the_same_bits_for_any_chunks_and_workers(tmp_path: Path, nan: float) -> None:
    arrays = of_samples(nan)
    options: dict[str, Any] = {"repeats": 2, "nan_samples": "skip"}
    expected = uqeval.sweep(store(tmp_path / "whole.zarr", arrays), workers=1, **options)
    for i, chunks in enumerate([(1, 1, 12, 16), (2, 3, 5, 16), (3, T, 4, 7)]):
        path = store(tmp_path / f"{i}.zarr", arrays, chunks)
        for workers in (1, 3):
            found = uqeval.sweep(path, workers=workers, **options)
            assert found.results == expected.results
    members = [
        {"samples": arrays["samples"][:, :1]} | {k: arrays[k] for k in ("target", "valid")},
        {"samples": arrays["samples"][:, 1:]},
    ]
    stores = [store(tmp_path / f"m{i}.zarr", own) for i, own in enumerate(members)]
    assert uqeval.sweep(stores, **options).results == expected.results


def test_one_read_for_all_subsets(tmp_path: Path) -> None:
    path = store(tmp_path / "a.zarr", numbers(1, T), (1, 1, 12, 16))
    one = uqeval.sweep(path, samples=[T], repeats=1)
    many = uqeval.sweep(path)
    assert many.timing["bytes_read"] == one.timing["bytes_read"] == 2 * T * 4 * math.prod(SHAPE)


# ---- divergence


def gaussian_kl(arrays: Arrays, subset: Sequence[int], other: Arrays) -> list[float]:
    mean, sigma = joined(arrays, subset)
    total = []
    good = arrays["valid"] & np.isfinite(arrays["target"]) if "target" in arrays else (sigma >= 0)
    for i in zip(*np.nonzero(good), strict=True):
        m, s, n, t = (float(a[i]) for a in (mean, sigma, other["mean"], other["std"]))
        total.append(math.log(t / s) + (s**2 + (m - n) ** 2) / (2 * t**2) - 0.5)
    return total


@pytest.mark.parametrize("targets", [True, False])
def test_divergence_of_gaussians(tmp_path: Path, targets: bool) -> None:
    arrays = numbers(1, T)
    if not targets:
        del arrays["target"], arrays["valid"]
    other = {k: v for k, v in numbers(7).items() if k in ("mean", "std")}
    report = uqeval.sweep(
        store(tmp_path / "a.zarr", arrays), reference=store(tmp_path / "b.zarr", other), repeats=3
    )
    families = {name.split(".")[0] for name in report.results["sweep"]}
    assert families == {"divergence"} | (
        {"regression", "sparsification", "nmerci"} if targets else set()
    )
    for subset, value in values_of(report, "divergence.kl"):
        kl = gaussian_kl(arrays, subset, other)
        assert close(value, math.fsum(kl) / len(kl))
    assert report.results["sweep"]["divergence.kl"]["std"][-1] == 0


def probabilities(seed: int, samples: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(3), size=(3, samples, 12, 16)).astype(np.float32)
    return np.moveaxis(p, -1, 2)


def test_divergence_of_classes() -> None:
    p, q = probabilities(0, T), probabilities(1, 2)
    labels = np.zeros(SHAPE, np.uint8)
    report = uqeval.sweep(p, reference=q, repeats=[4, 2, 9], seed=5)
    assert set(report.results["sweep"]) == {
        "divergence.kl", "divergence.pixels", "divergence.infinite",
    }  # fmt: skip
    for subset, value in values_of(report, "divergence.kl"):
        a, b = (
            v.astype(np.float64).mean(axis=1).astype(np.float32).astype(np.float64)
            for v in (p[:, subset], q)
        )
        assert close(value, float(rel_entr(a, b).sum(axis=1).mean()))
    found = report.results["sweep"]["divergence.kl"]
    assert found["mean"][0] > found["mean"][1] > found["mean"][2]  # nearer with more samples
    beside = uqeval.sweep(p, labels, reference=q, samples=[T], clip=0.01).results["sweep"]
    assert {name.split(".")[0] for name in beside} == {"segmentation", "pavpu", "divergence"}
    alone = uqeval.evaluate(p, None, {"divergence": {"clip": 0.01}}, reference=q)
    assert beside["divergence.kl"]["mean"] == [alone.results["divergence"]["kl"]]


def test_reference_of_samples_beside_samples_with_nan(tmp_path: Path) -> None:
    arrays = of_samples(nan=0.2)
    path = store(tmp_path / "a.zarr", arrays)
    gaussian = store(tmp_path / "b.zarr", {k: v for k, v in numbers(7).items() if k != "target"})
    options: dict[str, Any] = {"nan_samples": "skip", "samples": [T]}
    found = uqeval.sweep(path, None, ["divergence"], reference=path, **options)
    assert found.results["sweep"]["divergence.kl"]["mean"] == [0]
    other = uqeval.sweep(path, reference=gaussian, **options).results["sweep"]
    assert other["divergence.kl"]["mean"][0] > 0


# ---- what cannot be


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"samples": [5]}, UsageError, "holds 4 samples"),
        ({"repeats": 0}, UsageError, "from 1 on"),
        ({"metrics": ["pavpu"]}, UsageError, "numbers; pavpu evaluates class predictions"),
        ({"metrics": {"regression": {"distribution": ["gaussian", "laplace"]}}}, UsageError,
         "one variant"),
        ({"metrics": ["nmerci"], "settings": {"sparsification": {"error": "mae"}}}, UsageError,
         "error is an option of sparsification"),
        ({"settings": {"sparsification": {"error": "brier"}}}, UsageError, "rmse, mse, mae"),
        ({"metrics": {"regression": {"ence": True}}}, UsageError, "cannot evaluate ence of"),
        ({"metrics": {"regression": {"sigma_scale": True}}}, UsageError,
         "cannot evaluate sigma_scale of regression"),
        ({"metrics": ["divergence"]}, UsageError, "needs a reference"),
        ({"reference": probabilities(0, 1)}, StoreError, "the same kind in both"),
        ({"nan_sample": "skip"}, UsageError, "unknown options"),
        ({"metrics": ["conformal"], "alpha": 0.1}, UsageError, r"metrics=\{'conformal': \{'alpha'"),
        ({"metrics": ["ood"]}, UsageError, "ood evaluates in- and out-of-distribution data"),
        ({"ignore_index": 3}, UsageError, "ignore_index is for classes"),
        ({"memory": 1000}, UsageError, "memory"),
    ],
)  # fmt: skip
def test_what_cannot_be(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        uqeval.sweep(store(tmp_path / "a.zarr", numbers(1, T)), **options)


def test_what_cannot_be_of_stores(tmp_path: Path) -> None:
    arrays = numbers(1, T)
    path = store(tmp_path / "a.zarr", arrays)
    with pytest.raises(UsageError, match="holds 1 sample per item"):
        uqeval.sweep(store(tmp_path / "one.zarr", numbers(1)), samples=[1, 2])
    bare = store(tmp_path / "bare.zarr", {"mean": arrays["mean"], "std": arrays["std"]})
    with pytest.raises(UsageError, match="has no target"):
        uqeval.sweep(bare)
    fewer = {k: v[:2] for k, v in numbers(3).items()}
    np.savez(tmp_path / "fewer.npz", **fewer)
    with pytest.raises(StoreError, match="items"):
        uqeval.sweep(path, reference=str(tmp_path / "fewer.npz"))
    with pytest.raises(StoreError, match="classes"):
        uqeval.sweep(probabilities(0, 2), reference=np.full((3, 4, 12, 16), 0.25, np.float32))
    with pytest.raises(UsageError, match="regression evaluates"):
        uqeval.sweep(probabilities(0, 2), np.zeros(SHAPE, np.uint8), ["regression"])
    group = {"predictions": np.zeros(SHAPE, np.uint8), "entropy": np.zeros(SHAPE, np.float32)}
    with pytest.raises(UsageError, match="maps store"):
        uqeval.sweep(store(tmp_path / "maps.zarr", group), np.zeros(SHAPE, np.uint8), classes=2)


def test_one_store_of_one_number(tmp_path: Path) -> None:
    """A store without a sample axis has M = 1, as for classes."""
    arrays = numbers(1)
    report = uqeval.sweep(store(tmp_path / "a.zarr", arrays))
    alone = uqeval.evaluate(str(tmp_path / "a.zarr"), None, ["nmerci"]).results["nmerci"]
    assert report.results["sweep"]["nmerci.nmerci"]["values"] == [[alone["nmerci"]]]


@pytest.mark.parametrize("kind", ["mean", "samples", "classes"])
def test_no_more_memory_than_is_said(tmp_path: Path, kind: str) -> None:
    """`batch_bytes` holds all members and the maps of all subsets."""
    shape = (2, 6, 160, 200)
    rng = np.random.default_rng(0)
    arrays = {"samples" if kind == "samples" else "mean": rng.normal(size=shape).astype("f4")}
    names = ["mean", "sigma", "error", "label", "target", "lambda"]
    subsets = [(0,), (0, 1), (1, 2), (0, 1, 2, 3), (0, 1, 2, 3, 4, 5)]
    if kind == "classes":
        p = rng.dirichlet(np.ones(3), size=(2, 6, 160, 200)).astype("f4")
        arrays = {"probs": np.moveaxis(p, -1, 2), "labels": np.zeros((2, 160, 200), "u1")}
        names = ["label", "entropy", "mutual_information"]
    elif kind == "mean":
        arrays["std"] = np.ones(shape, "f4")
    else:
        arrays["samples"][rng.random(shape) < 0.1] = np.nan
    if kind != "classes":
        arrays |= {"target": np.zeros((2, 160, 200), "f4")}
        arrays["valid"] = np.ones((2, 160, 200), bool)
    if kind == "samples":
        arrays["valid"] &= ~np.isnan(arrays["samples"]).all(axis=1)
    skip = "skip" if kind == "samples" else "error"
    group = zarr.create_group(str(tmp_path / "a.zarr"))
    for name, values in arrays.items():
        chunks = (2, *values.shape[1:])
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=chunks, compressors=None,
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = values
    opened = open_inputs(str(tmp_path / "a.zarr"), None, InputOptions(nan_samples=skip))
    source = subsets_of(opened.source, subsets)
    source.want(names)
    (batch,) = source.batches()
    source.read(batch)  # compiled, imported
    tracemalloc.start()
    held = source.read(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(m.nbytes for maps in held for m in maps.values()) < peak <= source.batch_bytes(batch)


def test_subsets_take_turns_where_memory_is_little(tmp_path: Path) -> None:
    """Large states are not all counted together; the stack is read once all the same."""
    path = store(tmp_path / "a.zarr", numbers(1, T))
    wide = uqeval.sweep(path, workers=1, memory=2 * 10**9)
    tight = uqeval.sweep(path, workers=1, memory=10**7)
    assert tight.results == wide.results
    assert tight.timing["passes"] > wide.timing["passes"] == 2
    assert tight.timing["bytes_read"] == wide.timing["bytes_read"]
