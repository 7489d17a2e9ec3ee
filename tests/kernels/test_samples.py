"""Sums of samples and the maps made of them."""

from __future__ import annotations

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import ALL_MAPS, LABEL_MAPS, labels, quantized, reduced, same, softmax

from uqeval.kernels.samples import HALF_UNIT, add_samples
from uqeval.maps.reduction import read_only

DTYPES = ["f2", "f4", "f8", "u1", "u2"]


def unit_of(dtype: str) -> float:
    return 1 / float(np.iinfo(dtype).max) if dtype.startswith("u") else 1.0


def stored(p: Any, dtype: str) -> Any:
    return quantized(p, dtype) if dtype.startswith("u") else np.asarray(p).astype(dtype)


def summed(values: Any, unit: float = 1.0) -> tuple[Any, int]:
    """Σ_t p and the oddness of a tile [t, c, i]."""
    half = values.dtype == np.float16
    total = np.dtype(np.int32 if half else np.float64 if values.dtype.kind == "f" else np.int64)
    _, c, n = values.shape
    sums = np.zeros((c, n), total)
    worst = add_samples(
        read_only(values.view(np.int16) if half else values), 0, n, 0, 0, 0, unit, sums,
        np.zeros((1, n), total), np.zeros(2, total), None, None,
    )  # fmt: skip
    return sums, int(worst)


# Stored numbers


def test_every_float16_from_0_to_2_is_exact() -> None:
    half = np.arange(0x4001, dtype=np.uint16).view(np.float16)
    sums, worst = summed(half[None, None])
    assert worst <= 0
    np.testing.assert_array_equal(sums[0] * HALF_UNIT, half.astype(np.float64))


def test_sums_of_float16_are_exact() -> None:
    bits = np.random.default_rng(0).integers(0, 0x3C01, (127, 1, 40))
    half = bits.astype(np.uint16).view(np.float16)
    sums, _ = summed(half)
    np.testing.assert_array_equal(sums[0] * HALF_UNIT, half.astype(np.float64).sum(0)[0])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf, -0.5, -1e-7, 2.125, 60000.0])
def test_what_is_no_probability_is_odd(dtype: str, bad: float) -> None:
    for place in range(5):
        values = np.full((1, 1, 5), 0.25, dtype)
        values[0, 0, place] = bad
        assert summed(values)[1] > 0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("good", [0.0, 1.0, 2.0, 1e-7, 2.0**-24, 0.5])
def test_what_may_be_a_probability_is_not_odd(dtype: str, good: float) -> None:
    assert summed(np.full((2, 2, 3), good, dtype))[1] <= 0


# Maps against the oracle


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("t", "c"), [(2, 2), (3, 5), (7, 3)])
def test_maps_are_those_of_the_oracle(dtype: str, t: int, c: int) -> None:
    values = stored(softmax(t * c, t, c, 3, 4, dtype="f8"), dtype)
    p = values.astype(np.float64) * unit_of(dtype)
    found = reduced(values, unit=unit_of(dtype))
    expected = naive.maps(p)
    np.testing.assert_array_equal(found["prediction"], expected["prediction"].reshape(-1))
    for name in ALL_MAPS[1:]:
        wanted = expected[name].reshape(found[name].shape)
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(
        found["variation_ratio"], expected["variation_ratio"].astype("f4").reshape(-1)
    )


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_entropy_is_the_rounded_float64_formula(dtype: str) -> None:
    values = softmax(5, 4, 6, 5, 6, dtype=dtype)
    found = reduced(values, wanted=("prediction", "entropy"))["entropy"]
    exact = naive.maps(values)["entropy"].reshape(-1).astype(np.float32)
    assert (np.abs(found - exact) <= np.spacing(exact)).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("small", [1e-9, 3e-14, 1e-20, 1e-37])
def test_small_probabilities_of_several_samples_keep_their_digits(dtype: str, small: float) -> None:
    p = np.array([[1 - small, small], [1 - 3 * small, 3 * small]], dtype)[:, :, None, None]
    values = np.concatenate([p, p[::-1]], axis=-1)
    wanted = ("prediction", "mean_probs", "label_probability", "entropy")
    found = reduced(values, label=np.array([1, 0], "u1"), wanted=wanted)
    mean = values.astype(np.float64).mean(axis=0).reshape(2, 2)
    np.testing.assert_allclose(found["mean_probs"], mean, rtol=1e-7)
    np.testing.assert_allclose(found["label_probability"], [mean[1, 0], mean[0, 1]], rtol=1e-7)
    np.testing.assert_allclose(found["entropy"], naive.maps(values)["entropy"][0], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("sharp", [0.2, 2.0])
@pytest.mark.parametrize("classes", [65, 150, 300])
def test_many_classes(dtype: str, sharp: float, classes: int) -> None:
    values = softmax(classes, 2, classes, 2, 3, dtype=dtype, sharp=sharp)
    found = reduced(values)
    expected = naive.maps(values)
    for name in ALL_MAPS:
        np.testing.assert_allclose(
            found[name], expected[name].reshape(found[name].shape), rtol=0, atol=1e-6, err_msg=name
        )
    assert found["prediction"].dtype == (np.uint8 if classes <= 255 else np.uint16)


def test_the_last_of_300_classes_is_found() -> None:
    values = np.full((2, 300, 1, 2), 0.0, "f2")
    values[:, 299] = 1
    found = reduced(values)
    assert found["prediction"].tolist() == [299, 299]
    assert found["variation_ratio"].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_more_than_127_samples(dtype: str) -> None:
    values = stored(softmax(1, 130, 3, 1, 3, dtype="f8"), dtype)
    values[:, :, 0, 0] = stored(np.array([1.0, 0.0, 0.0]), dtype)
    found = reduced(values, unit=unit_of(dtype))
    expected = naive.maps(values.astype(np.float64) * unit_of(dtype))
    for name in ALL_MAPS:
        np.testing.assert_allclose(
            found[name], expected[name].reshape(found[name].shape), rtol=0, atol=1e-6, err_msg=name
        )


# Exact zeros


@pytest.mark.parametrize("dtype", DTYPES)
def test_identical_samples_know_nothing(dtype: str) -> None:
    tenths = np.array([0.1, 0.2, 0.3, 0.4])[:, None, None]
    p = np.concatenate([softmax(3, 4, 1, 12, dtype="f8"), tenths, tenths[::-1]], axis=2)
    one = stored(p, dtype)
    for t in [*range(2, 41), 100, 127, 128, 200]:
        found = reduced(np.repeat(one[None], t, 0), unit=unit_of(dtype))
        for name in ("mutual_information", "std", "variation_ratio"):
            assert not found[name].view(np.uint32).any(), (name, t)  # +0.0


@given(
    st.lists(st.integers(1, 1000), min_size=2, max_size=6),
    st.integers(2, 40),
    st.sampled_from(DTYPES),
)
def test_identical_samples_of_any_probabilities(parts: list[int], t: int, dtype: str) -> None:
    p = np.array(parts, np.float64)[:, None, None] / sum(parts)
    found = reduced(np.repeat(stored(p, dtype)[None], t, 0), unit=unit_of(dtype))
    assert found["mutual_information"] == found["std"] == found["variation_ratio"] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("t", [2, 5])
def test_a_saturated_softmax_has_entropy_0(dtype: str, t: int) -> None:
    values = stored(np.eye(3)[None, :, :, None].repeat(t, 0), dtype)
    found = reduced(values, unit=unit_of(dtype))
    for name in ("entropy", "expected_entropy", "mutual_information", "std", "variation_ratio"):
        assert not found[name].view(np.uint32).any(), name  # +0.0, never -0.0
    assert found["prediction"].tolist() == [0, 1, 2]
    assert found["confidence"].tolist() == [1, 1, 1]


def test_saturated_samples_that_disagree() -> None:
    values = np.eye(2, dtype="f2")[:, :, None, None]
    found = reduced(values)
    assert found["entropy"] == np.float32(np.log(2))
    assert found["expected_entropy"] == 0
    assert found["mutual_information"] == pytest.approx(np.log(2), abs=1e-7)
    assert found["variation_ratio"] == found["std"] == 0.5


# Ties and votes


@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_go_to_the_lowest_id(dtype: str) -> None:
    p = [[0.25] * 4, [0, 0.5, 0.5, 0], [0.1, 0.1, 0.4, 0.4], [0, 0, 0, 1]]
    values = stored(np.array(p).T[None, :, None, :].repeat(3, 0), dtype)
    found = reduced(values, unit=unit_of(dtype))
    assert found["prediction"].tolist() == [0, 1, 2, 3]


def test_a_sample_votes_for_the_lowest_of_its_ties() -> None:
    sample = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]
    found = reduced(np.array(sample, "f4")[:, :, None, None])
    assert found["prediction"] == 1
    assert found["variation_ratio"] == np.float32(1 - 2 / 3)


def test_float64_samples_vote_in_float64() -> None:
    rows = [[0.5 - 1e-9, 0.5 + 1e-9], [0.5 - 1e-9, 0.5 + 1e-9], [0.9, 0.1]]
    found = reduced(np.array(rows)[:, :, None, None])
    assert found["variation_ratio"] == np.float32(1 - 2 / 3)


# Labels


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_what_labels_say(dtype: str) -> None:
    values = softmax(8, 3, 5, 4, 5, dtype=dtype)
    label = labels(8, 4, 5, classes=5, void=0.2)
    found = reduced(values, label=label.reshape(-1), wanted=("prediction", *LABEL_MAPS))
    expected = naive.maps(values, label)
    known = (label != 255).reshape(-1)
    for name in LABEL_MAPS:
        wanted = expected[name].reshape(-1)
        np.testing.assert_allclose(found[name][known], wanted[known], rtol=0, atol=1e-6)
        assert not found[name][~known].any()


def test_rank_of_ties() -> None:
    p = np.array([0.3, 0.3, 0.1, 0.3])[None, :, None, None].repeat(4, 3).astype("f4")
    label = np.array([0, 1, 2, 3], "u1")
    found = reduced(p, label=label, wanted=("prediction", *LABEL_MAPS))
    assert found["label_rank"].tolist() == [0, 1, 3, 2]


# The same bits under any tiling


@given(
    st.integers(1, 6), st.integers(2, 7), st.sampled_from(DTYPES), st.integers(0, 1000), st.data()
)
def test_any_tiling_gives_the_same_bits(
    t: int, c: int, dtype: str, seed: int, data: st.DataObject
) -> None:
    values = stored(softmax(seed, t, c, 2, 5, dtype="f8"), dtype)
    label = labels(seed, 2, 5, classes=c).reshape(-1)
    wanted = [n for n in (*ALL_MAPS, *LABEL_MAPS) if t > 1 or n in ("prediction", "entropy")]
    whole = reduced(values, unit=unit_of(dtype), label=label, wanted=wanted)
    cuts = tuple(
        sorted(data.draw(st.sets(st.integers(1, n - 1), max_size=3))) if n > 1 else []
        for n in (t, c)
    )
    same(reduced(values, unit=unit_of(dtype), label=label, wanted=wanted, cuts=cuts), whole)
    at = data.draw(st.integers(1, 4))
    parts = [
        reduced(np.ascontiguousarray(values[..., part]), unit=unit_of(dtype), wanted=wanted[:2])
        for part in (slice(0, at), slice(at, 5))
    ]
    for name in wanted[:2]:
        rows = [part[name].reshape(2, -1) for part in parts]
        np.testing.assert_array_equal(np.hstack(rows).reshape(-1), whole[name])


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_flushed_classes_give_the_same_bits_however_cut(dtype: str) -> None:
    values = softmax(4, 2, 140, 1, 3, dtype=dtype, sharp=0.3)
    whole = reduced(values)
    for cuts in ([64], [1], [100], [63, 65, 129]):
        same(reduced(values, cuts=([1], cuts)), whole)
