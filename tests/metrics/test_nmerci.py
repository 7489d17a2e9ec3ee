"""`nmerci` against the slow oracle and NumPy, and what must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_regression as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from number_stores import SHAPE, close, evaluated, numbers, save

import uqeval
from uqeval.errors import UsageError
from uqeval.metrics.nmerci_by_depth import intervals_of
from uqeval.tallies.rank_keys import between, ranks_of

FIELDS = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha", "pixels")
DEFINITIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"alpha": 40}, {"alpha": 40}),
    ({"alpha": 100}, {"alpha": 100}),
    ({"alpha": 62.5, "interpolation": "inverted_cdf"}, {"alpha": 62.5, "rule": "inverted_cdf"}),
    ({"definition": "trimmed-mae"}, {"mae": "trimmed"}),
    (
        {"definition": "public-code", "alpha": 80},
        {"alpha": 80, "rule": "truncated", "over": "kept"},
    ),
]


def evaluate(path: Path, **options: Any) -> Any:
    return uqeval.evaluate(path, None, {"nmerci": options}, workers=1)


def pixels(arrays: dict[str, Any], items: slice = slice(None)) -> list[tuple[float, ...]]:
    cut = {name: values[items] for name, values in arrays.items()}
    return naive.pixels(cut["mean"], cut["std"], cut["target"], cut.get("valid"))


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name in FIELDS:
        if name in found:
            assert close(found[name], expected[name]), (name, found[name], expected[name])
            assert (found[name] is None) == (f"{name}_reason" in found)


def test_the_rank_of_the_public_code_is_rounded_as_there() -> None:
    """n_MeRCI.extract_data_and_lambda keeps int(N * alpha) rows, with alpha a fraction in
    float64: 62 of 90 for 0.7."""
    for alpha, fraction in ((50, 0.5), (57, 0.57), (69, 0.69), (70, 0.7), (95, 0.95)):
        for n in (90, 100, 1000, 4100):
            expected = int(n * fraction) - 1
            assert ranks_of(n, alpha, "truncated") == (expected, expected, 0.0)
    assert ranks_of(90, 70, "truncated") == (61, 61, 0.0)


@pytest.mark.parametrize(("options", "settings"), DEFINITIONS)
def test_oracle(tmp_path: Path, options: dict[str, Any], settings: dict[str, Any]) -> None:
    arrays = numbers(1)
    arrays["std"][0, :2] = 0  # some λ are infinite
    arrays["mean"][1] = np.round(arrays["mean"][1])  # ties
    arrays["target"][1] = np.round(arrays["target"][1])
    arrays["std"][1] = 1
    report = evaluate(save(tmp_path / "r.npz", arrays), depth_step=5.0, **options)
    found = report.results["nmerci"]
    same(found, naive.nmerci(pixels(arrays), **settings))
    for i, item in enumerate(report.items):
        same(item["nmerci"], naive.nmerci(pixels(arrays, slice(i, i + 1)), **settings))
    rows = naive.by_depth(pixels(arrays), 5.0, **settings)
    assert [row["lower"] for row in found["by_depth"]] == [lower for lower, _ in rows]
    for row, (_, expected) in zip(found["by_depth"], rows, strict=True):
        same(row, expected)
    defined = [e["nmerci"] for _, e in rows if e["nmerci"] is not None]
    mean = sum(defined) / len(defined) if defined else None
    assert close(found["by_depth_mean"]["nmerci"], mean)
    assert found["by_depth_mean"]["nmerci_intervals"] == len(defined)
    own = {k: v for k, v in settings.items() if k != "alpha"}
    gaps = [a for a, v in zip(*found["curve"].values(), strict=True) if v is None]
    assert (str(gaps[0]) in found["curve_reason"]) if gaps else "curve_reason" not in found
    for alpha, value in zip(*found["curve"].values(), strict=True):
        if alpha % 9 == 1 and (alpha > 1 or "rule" not in own):
            expected = naive.nmerci(pixels(arrays), alpha=alpha, **own)["nmerci"]
            assert close(value, expected), alpha


@pytest.mark.parametrize("alpha", [0.5, 12.5, 37, 62.5, 95, 99.9, 100])
@pytest.mark.parametrize("rule", ["linear", "inverted_cdf"])
def test_the_trimmed_mae_of_ties_and_zeros(tmp_path: Path, alpha: float, rule: str) -> None:
    arrays = numbers(9)
    arrays["target"] = np.nan_to_num(np.round(arrays["target"]))
    arrays["mean"] = arrays["target"] + np.random.default_rng(9).integers(-3, 4, SHAPE)
    found = evaluate(save(tmp_path / "r.npz", arrays), alpha=alpha, interpolation=rule)
    same(found.results["nmerci"], naive.nmerci(pixels(arrays), alpha=alpha, rule=rule))
    assert found.timing["passes"] == 2


def test_numpy(tmp_path: Path) -> None:
    arrays = numbers(2)
    found = evaluate(save(tmp_path / "r.npz", arrays)).results["nmerci"]
    _, error, sigma = np.array(pixels(arrays)).T
    ratio = (error.astype("f4") / sigma.astype("f4")).astype(float)
    lam, most = np.percentile(ratio, 95), np.percentile(error, 95)
    assert (found["lambda"], found["max_alpha"]) == (lam, most)
    assert found["merci"] == pytest.approx(lam * sigma.mean(), rel=1e-12)
    assert found["pixels"] == evaluated(arrays).sum()


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.floats(0.01, 100),
    st.sampled_from(["linear", "inverted_cdf"]),
)
def test_percentiles_are_numpys(values: list[int], p: float, rule: str) -> None:
    ordered = sorted(float(v) for v in values)
    found = ranks_of(len(ordered), p, rule)
    assert found is not None
    value = between(ordered[found[0]], ordered[found[1]], found[2])
    assert value == np.percentile(np.array(ordered), p, method=rule)  # type: ignore[call-overload]


def test_a_constant_uncertainty_has_1_and_the_error_itself_0(tmp_path: Path) -> None:
    arrays = numbers(3)
    error = np.abs(arrays["mean"].astype(float) - arrays["target"])
    error[~evaluated(arrays)] = 1
    for name, std, value in (("constant", np.full(SHAPE, 0.25), 1.0), ("oracle", error, 0.0)):
        path = save(tmp_path / f"{name}.npz", arrays | {"std": std})
        for alpha in (30, 95, 100):
            found = evaluate(path, alpha=alpha).results["nmerci"]["nmerci"]
            assert found is None or found == pytest.approx(value, abs=1e-12)
        assert evaluate(path).results["nmerci"]["nmerci"] == pytest.approx(value, abs=1e-12)


def test_a_scale_changes_nothing(tmp_path: Path) -> None:
    arrays = numbers(4)
    first = evaluate(save(tmp_path / "0.npz", arrays)).results["nmerci"]
    for power in (-20, 3, 30):
        scaled = arrays | {"std": arrays["std"] * np.float32(2.0**power)}
        found = evaluate(save(tmp_path / f"{power}.npz", scaled)).results["nmerci"]
        assert found["nmerci"] == first["nmerci"] and found["curve"] == first["curve"]
        assert found["lambda"] == first["lambda"] / 2.0**power


def test_undefined_with_its_reason(tmp_path: Path) -> None:
    arrays = numbers(5)
    zero = evaluate(save(tmp_path / "zero.npz", arrays | {"std": 0 * arrays["std"]}))
    found = zero.results["nmerci"]
    assert found["nmerci"] is found["merci"] is found["lambda"] is None
    assert "λ^95 is infinite" in found["nmerci_reason"] == found["lambda_reason"]
    assert found["curve"]["nmerci"] == [None] * 100
    assert found["curve_reason"] == "α = 1 … 100: λ^α is infinite"
    assert "σ = 0" in found["lambda_reason"] and "float32" in found["lambda_reason"]
    assert zero.numerics["nmerci"]["lambda_infinite"] == found["pixels"]
    assert any("n-MeRCI is undefined" in text for text in zero.warnings)
    exact = arrays | {"mean": arrays["target"], "valid": evaluated(arrays)}
    exact["mean"] = np.nan_to_num(exact["mean"])
    found = evaluate(save(tmp_path / "exact.npz", exact)).results["nmerci"]
    assert found["nmerci"] is None and "max^95 of the errors is 0.0" in found["nmerci_reason"]
    assert found["merci"] == 0
    outliers = arrays["mean"].copy()
    outliers[0, :2] += 1e6  # 5 % of the errors are above the rest: the percentile is below the MAE
    found = evaluate(save(tmp_path / "o.npz", arrays | {"mean": outliers}), alpha=80).results[
        "nmerci"
    ]
    assert found["nmerci"] is None and "not above their MAE" in found["nmerci_reason"]


@pytest.mark.parametrize("error", [50.6014739839831, 3.113821278391768, 1e-40, 2.5])
def test_equal_errors_have_no_nmerci(tmp_path: Path, error: float) -> None:
    """max^α is the MAE: what the rounding of errors to float32 leaves is no denominator."""
    path = tmp_path / "equal.npz"
    std = np.arange(1.0, 13).reshape(3, 2, 2)
    np.savez(path, mean=np.full(std.shape, error), std=std, target=np.zeros(std.shape))
    found = evaluate(path)
    for record in (found.results["nmerci"], *(item["nmerci"] for item in found.items)):
        assert record["nmerci"] is None
        assert "not above their MAE" in record["nmerci_reason"]


def test_below_zero_is_told(tmp_path: Path) -> None:
    arrays = numbers(6)
    error = np.abs(arrays["mean"].astype(float) - arrays["target"])
    error[~evaluated(arrays)] = 1
    std = np.where(error > np.quantile(error, 0.96), 1e-6, error)
    report = evaluate(save(tmp_path / "r.npz", arrays | {"std": std.astype("f4")}))
    assert report.results["nmerci"]["nmerci"] < 0
    assert any("below 0" in text for text in report.warnings)


def test_a_map_of_the_users_own_stands_for_sigma(tmp_path: Path) -> None:
    arrays = numbers(7)
    own = {k: v for k, v in arrays.items() if k != "std"} | {"energy": arrays["std"]}
    path = save(tmp_path / "own.npz", own)
    expected = evaluate(save(tmp_path / "r.npz", arrays)).results["nmerci"]
    assert evaluate(path, uncertainty="energy").results["nmerci"] == expected
    both = save(tmp_path / "both.npz", arrays | {"energy": arrays["std"] * 2})
    found = evaluate(both, uncertainty=["sigma", "energy"], alpha=[95, 85.0]).results
    assert set(found) == {"nmerci", "nmerci[energy]", "nmerci[alpha=85]", "nmerci[energy,alpha=85]"}
    assert found["nmerci[energy]"]["nmerci"] == found["nmerci"]["nmerci"]


def test_intervals_of_the_target() -> None:
    found = intervals_of(0.5, -1.2, 3.0)
    assert (found.base, found.count) == (-3, 10)
    assert intervals_of(1.0, 0.0, 255.9).count == 256
    with pytest.raises(UsageError, match=r"into 257 intervals.*--depth-step 1\.1 or more"):
        intervals_of(1.0, 0.0, 256.0)
    for most in (1e-3, 7.77, 1e6):
        with pytest.raises(UsageError) as caught:
            intervals_of(1e-9, -most / 3, most)
        step = float(str(caught.value).split("--depth-step ")[-1].split()[0])
        assert intervals_of(step, -most / 3, most).count <= 256
    for least, most in ((1.0, 9.0), (5.0, 5.0), (-3.0, -3.0)):
        for tiny in (1e-320, 1e-300, 1e-17):
            with pytest.raises(UsageError, match="into too many intervals") as caught:
                intervals_of(tiny, least, most)
            step = float(str(caught.value).split("--depth-step ")[-1].split()[0])
            assert intervals_of(step, least, most).count <= 256


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"alpha": 0}, "alpha=0"), ({"alpha": 100.5}, "alpha=100.5"),
        ({"alpha": -1}, "alpha=-1"), ({"depth_step": 0.0}, "depth_step=0"),
        ({"depth_step": -1.0}, "depth_step=-1"), ({"interpolation": "nearest"}, "expected one"),
        ({"over": "kept", "mae": "trimmed"}, "leave out mae"),
        ({"definition": "x"}, "definition"),
        ({"uncertainty": "target"}, "not an uncertainty"),
    ],
)  # fmt: skip
def test_what_cannot_be(tmp_path: Path, options: dict[str, Any], word: str) -> None:
    path = save(tmp_path / "r.npz", numbers(8))
    with pytest.raises(UsageError, match=word):
        evaluate(path, **options)


@pytest.mark.parametrize("definition", ["paper", "trimmed-mae", "public-code"])
def test_an_item_whose_ratios_are_mostly_infinite(tmp_path: Path, definition: str) -> None:
    arrays = numbers(1)
    arrays["std"][0] = 0
    report = evaluate(save(tmp_path / "r.npz", arrays), definition=definition)
    own = report.items[0]["nmerci"]
    for field in ("nmerci", "merci", "lambda"):
        assert own[field] is None and "infinite" in own[f"{field}_reason"]
    assert report.to_json()
