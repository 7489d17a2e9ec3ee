"""Targets that are no measurement: told by the user, by the array, by the file's format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from number_stores import SHAPE, numbers
from scenes import zarr_group

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.records.inputs import value_options
from uqeval.usecases.convert import convert


def sparse(share: float = 0.85) -> dict[str, np.ndarray]:
    """Depth with many zeros, which nobody measured."""
    arrays = numbers(1)
    arrays["target"] = np.nan_to_num(arrays["target"], nan=5.0)
    arrays["target"][np.random.default_rng(2).random(SHAPE) < share] = 0
    return arrays


def save(path: Path, arrays: dict[str, Any]) -> str:
    np.savez(path, **arrays)
    return str(path)


def evaluated(path: Any, target: Any = None, **options: Any) -> uqeval.Report:
    families = ("regression", "nmerci", "sparsification")
    return uqeval.evaluate(path, target, families, workers=1, **options)


def zeros_of(report: uqeval.Report) -> list[str]:
    return [text for text in report.warnings if "exactly 0" in text]


def test_zeros_are_left_out_where_the_user_says_so(tmp_path: Path) -> None:
    arrays = sparse()
    path = save(tmp_path / "r.npz", arrays)
    masked = save(tmp_path / "m.npz", arrays | {"valid": arrays["valid"] & (arrays["target"] != 0)})
    expected = evaluated(masked)
    told = zeros_of(evaluated(path))
    assert len(told) == 1 and f"uqeval run {path} --invalid 0 " in told[0]
    assert told[0].startswith("regression, nmerci, sparsification: ")
    for family in ("regression", "nmerci", "sparsification"):
        (told,) = zeros_of(uqeval.evaluate(path, None, family, workers=1))
        assert f"uqeval {family} {path} --invalid 0 " in told
    for given in (0, np.float32(0), [0.0], ["0", "nan"], [-7, 0, float("nan"), float("inf")]):
        report = evaluated(path, invalid=given)
        assert report.results == expected.results and not zeros_of(report)
        values = sorted(map(float, np.atleast_1d(given)))  # NaN stays last
        said = [v if np.isfinite(v) else str(v) for v in values]
        assert report.inputs["options"]["invalid"] == sorted(said, key=lambda v: v == "nan")
        report.to_json()
    assert not zeros_of(evaluated(path, invalid="nan"))
    assert evaluated(path, invalid="nan").results == evaluated(path).results


def test_negative_markers_of_targets_that_nobody_measured(tmp_path: Path) -> None:
    arrays = sparse()
    unmeasured = arrays["target"] == 0

    def said(marker: float, depth: bool = False, **changes: Any) -> list[str]:
        own = arrays | {"target": np.where(unmeasured, np.float32(marker), arrays["target"])}
        path = save(tmp_path / "r.npz", own | changes)
        report = uqeval.evaluate(path, None, {"regression": {"depth": depth}})
        return [text for text in report.warnings if "are negative" in text]

    (text,) = said(-1)
    assert "down to -1, and others reach" in text
    assert f"uqeval regression {tmp_path / 'r.npz'} --invalid -1 " in text
    assert len(said(-9999)) == len(said(-0.3, depth=True)) == 1
    assert not said(-0.3)  # measured: no marker
    path = str(tmp_path / "r.npz")
    save(tmp_path / "r.npz", arrays | {"target": np.where(unmeasured, -1, arrays["target"])})
    for invalid in (-1, "nan"):
        report = uqeval.evaluate(path, None, "regression", invalid=invalid)
        assert not any("are negative" in text for text in report.warnings)
    scaled = np.clip(arrays["target"] / 100, -1, 1) - unmeasured
    assert scaled.min() == -1 and not said(0, target=scaled)


def test_arrays_in_memory_have_no_command() -> None:
    (told,) = zeros_of(evaluated(sparse()))
    assert "give invalid=0. If 0 is measured, invalid='nan' confirms it." in told


def test_no_warning_of_few_zeros_or_of_negative_targets(tmp_path: Path) -> None:
    assert not zeros_of(evaluated(save(tmp_path / "few.npz", sparse(0.005))))
    arrays = sparse()
    arrays["target"][0, 0, 0], arrays["valid"][0, 0, 0] = -1, True
    assert not zeros_of(evaluated(save(tmp_path / "negative.npz", arrays)))


def test_the_array_says_it_and_convert_keeps_it(tmp_path: Path) -> None:
    arrays = sparse()
    target = (arrays.pop("target"), {"attributes": {"invalid": [0, -1]}})
    path = zarr_group(tmp_path / "r.zarr", arrays | {"target": target})
    report = evaluated(path)
    assert not zeros_of(report)
    assert report.results == evaluated(save(tmp_path / "s.npz", sparse()), invalid=0).results
    convert(path, tmp_path / "c.zarr")
    assert evaluated(tmp_path / "c.zarr").results == report.results
    for wrong in ("zero", [None], True):
        target[1]["attributes"]["invalid"] = wrong
        bad = zarr_group(tmp_path / f"{wrong}.zarr", arrays | {"target": target})
        with pytest.raises(StoreError, match=r"attribute invalid is .*expected a number"):
            evaluated(bad)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_values_are_compared_as_they_are_stored(tmp_path: Path, dtype: str) -> None:
    arrays = numbers(1)
    arrays["target"][0, :6] = 0.1
    arrays["target"] = arrays["target"].astype(dtype)
    arrays["valid"][...] = True
    report = evaluated(save(tmp_path / "r.npz", arrays), invalid=[0.1])
    known = np.isfinite(arrays["target"]) & (arrays["target"] != np.dtype(dtype).type(0.1))
    assert report.results["regression"]["pixels"] == known.sum()


def test_what_cannot_be(tmp_path: Path) -> None:
    path = save(tmp_path / "r.npz", sparse())
    with pytest.raises(UsageError, match="invalid='zero'; expected a number"):
        evaluated(path, invalid=["zero"])
    arrays = sparse()
    arrays["target"][...] = 0
    with pytest.raises(DataError, match="a value of invalid"):
        evaluated(save(tmp_path / "all.npz", arrays), invalid=0)
    probs = np.full((1, 2, 4, 4), 0.5, "f4")
    with pytest.raises(UsageError, match=r"invalid is for regression targets.*ignore_index"):
        uqeval.evaluate(probs, np.zeros((1, 4, 4), int), invalid=0)
    other = save(tmp_path / "n.npz", {k: v for k, v in numbers(2).items() if k in ("mean", "std")})
    with pytest.raises(UsageError, match="invalid is for a target"):
        uqeval.evaluate(other, None, "divergence", reference=path, invalid=0)


def test_values_are_a_set(tmp_path: Path) -> None:
    """Their order and repeats are no other setting, also in reports of earlier versions."""
    path = save(tmp_path / "r.npz", sparse())
    reports = [evaluated(path, invalid=given) for given in ([0, -1], ["-1", -0.0, 0, -1])]
    assert {str(own.inputs["options"]["invalid"]) for own in reports} == {"[-1.0, 0.0]"}
    earlier = {"options": reports[0].inputs["options"] | {"invalid": ["nan", 0, -1, 0.0]}}
    assert value_options(earlier)["invalid"] == [-1.0, 0.0, "nan"]
    assert value_options({"options": {"invalid": None}})["invalid"] is None
    assert value_options({"options": {"invalid": {"a": 1}}})["invalid"] == {"a": 1}


def marked(tmp_path: Path, target: Any, family: str = "regression", **options: Any) -> list[str]:
    """Return the warnings about a target that is far from the others."""
    arrays = numbers(1) | {"target": target, "valid": np.ones(SHAPE, bool)}
    path = save(tmp_path / "r.npz", arrays)
    report = uqeval.evaluate(path, None, family, workers=1, **options)
    return [text for text in report.warnings if "they count as measurements" in text]


def measured() -> tuple[np.ndarray, np.ndarray]:
    """Return targets, and a place of 3 % of them, in all items."""
    place = np.random.default_rng(3).random(SHAPE) < 0.03
    return np.nan_to_num(numbers(1)["target"], nan=5.0), place


@pytest.mark.parametrize(
    ("marker", "dtype", "value"),
    [
        (9.969209968386869e36, "f4", "9.96921e+36"), (1e20, "f8", "1e+20"),
        (1e10, "f4", "10000000000"), (-1e34, "f8", "-1e+34"), (65504, "f2", "65504"),
        (-3.4028234663852886e38, "f4", "-3.4028235e+38"), (655.35, "f8", "655.35"),
        (-0.4, "f4", "-0.4"), (655.35, "f4", "655.35"),
        (-32767, "i2", "-32767"), (-2, "f4", "-2"), (-32768, "i2", "-32768"),
        (65535, "u2", "65535"), (255, "u1", "255"),
    ],
)  # fmt: skip
def test_targets_far_from_the_others(tmp_path: Path, marker: float, dtype: str, value: str) -> None:
    """A few of them decide the RMSE."""
    target, place = measured()
    target = np.where(place, np.float64(marker), target).astype(dtype)
    (text,) = marked(tmp_path, target)
    assert f"--invalid {value} " in text
    assert f"{place.sum()} of {place.size} evaluated targets" in text
    assert not marked(tmp_path, target, invalid=[float(value)])
    for family in ("sparsification", "nmerci"):
        (text,) = marked(tmp_path, target, family)
        assert f"are exactly {value}, the " in text and f"--invalid {value} " in text
    for invalid in (float(value), "nan"):
        assert not marked(tmp_path, target, invalid=invalid)


def test_two_targets_very_far_from_the_others(tmp_path: Path) -> None:
    target, _ = measured()
    target[0, 0, 0] = 1e20
    assert not marked(tmp_path, target)
    target[2, 0, 0] = 1e20
    assert len(marked(tmp_path, target)) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda target, place: np.clip(target, None, 30),
        lambda target, place: np.where(place, 80, target),
        lambda target, place: np.full_like(target, 7),
        lambda target, place: np.where(place, 100, target.round() % 3),  # few values
        lambda target, place: np.random.default_rng(0).poisson(0.2, SHAPE).astype("f4") - 1,
        lambda target, place: np.where(place, -5, target - 20).clip(-5),
        lambda target, place: np.exp(3 * target / 10),
    ],
)
def test_targets_that_may_be_measured(tmp_path: Path, change: Any) -> None:
    texts = marked(tmp_path, change(*measured()).astype("f4"))
    assert not [text for text in texts if "are exactly" in text and "exactly 0 " not in text]


@pytest.mark.parametrize("chunks", [(1, 12, 16), (3, 5, 7), (2, 12, 3)])
def test_far_targets_are_the_same_in_all_chunks(tmp_path: Path, chunks: Any) -> None:
    """Also where some items have none, or no target at all."""
    target, place = measured()
    place[1] = False
    target = np.where(place, np.float32(1e20), target)
    target[2] = np.nan
    (expected,) = marked(tmp_path, target)
    arrays = numbers(1) | {"valid": np.ones(SHAPE, bool)}
    arrays["target"] = (target, {"chunks": chunks})
    path = zarr_group(tmp_path / "r.zarr", arrays)
    for workers in (1, 2):
        report = uqeval.evaluate(path, None, "regression", workers=workers)
        (text,) = (text for text in report.warnings if "exactly 1" in text)
        assert text.split(":")[:2] == expected.split(":")[:2]


def test_single_targets_of_a_small_table_are_no_markers(tmp_path: Path) -> None:
    """The largest of few targets is often far from the others."""
    target = np.linspace(10, 20, 40).round(1)
    for last in ([-0.4], [90.0], [-4.0] * 4):
        rows = np.append(target, last)
        arrays = {"mean": rows + 1, "std": np.ones_like(rows), "target": rows}
        report = uqeval.evaluate(save(tmp_path / "r.npz", arrays), None, "regression", workers=1)
        assert not [text for text in report.warnings if "they count as measurements" in text]
