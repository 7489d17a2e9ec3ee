"""Temporal consistency of scenes whose answer is known: exact, from flow that is given."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import naive_temporal
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws_temporal import flow as any_flow
from laws_temporal import ids as any_ids

from uqeval.tallies.temporal import FrameCounts, PairCounts

VOID = 255


def state_of(now: Any, before: Any, flow: Any, forward: Any = None, **choices: Any) -> Any:
    """The state of a pair of id maps; grey images are made of the ids."""
    tally = PairCounts("file", 0, 19, VOID, occlusion=forward is not None, **choices)
    maps = {
        "prediction:0": now,
        "prediction_before:0": before,
        "grey": (now * 10).astype("u1"),
        "grey_before": (before * 10).astype("u1"),
        "flow:file": np.asarray(flow, "f4"),
    }
    if forward is not None:
        maps["flow_forward:file"] = np.asarray(forward, "f4")
    return tally.state_of(maps)


def score(counts: Any) -> Fraction:
    """Mean IoU over the classes that are in either map."""
    present = [(int(h + w - b), int(b)) for h, w, b in np.transpose(counts) if h + w]
    return sum((Fraction(both, union) for union, both in present), Fraction(0)) / len(present)


def tc(now: Any, before: Any, flow: Any) -> Fraction:
    """TC with a flow, which the oracle confirms."""
    found = score(state_of(now, before, flow)["counts"].sum(axis=0))
    assert naive_temporal.consistency(now, before, np.asarray(flow, "f4")) == pytest.approx(
        float(found), rel=1e-14
    )
    return found


def constant(shape: tuple[int, ...], dx: float, dy: float = 0.0) -> Any:
    return np.broadcast_to(np.array([dx, dy], "f4"), (*shape, 2)).copy()


def split() -> tuple[Any, Any, Any]:
    """T1: an edge that moves 5 pixels to the right."""
    x = np.broadcast_to(np.arange(100), (10, 100))
    return (x >= 55).astype("u1"), (x >= 50).astype("u1"), constant((10, 100), -5)


def test_t1_split() -> None:
    now, before, flow = split()
    state = state_of(now, before, flow)
    assert score(state["counts"][0]) == 1
    assert state["pixels"].tolist() == [1000, 950, 50, 0, 0, 0]
    assert state["counts"][1].sum() == 0
    assert tc(now, before, -flow) == (Fraction(45, 55) + Fraction(40, 50)) / 2
    assert tc(now, before, flow[..., ::-1]) == (Fraction(50, 55) + Fraction(45, 50)) / 2
    assert score(state["still"]) == (Fraction(50, 55) + Fraction(45, 50)) / 2
    assert float(score(state["still"])) == pytest.approx(0.9045455, abs=5e-8)
    assert state["squares"][0] == 0 < state["squares"][1]
    assert [state[n][0] for n in ("flow_median", "flow_p99", "flow_max")] == [5.0, 5.0, 5.0]
    assert state["flow_length"][0] == 5000


def test_what_comes_from_outside_may_be_taken_from_the_border() -> None:
    now, before, flow = split()
    state = state_of(now, before, flow, clamp=True)
    assert state["pixels"].tolist() == [1000, 1000, 50, 0, 0, 0]
    assert score(state["counts"][0]) == 1


def test_t2_occluding_square() -> None:
    now, before = np.zeros((2, 100, 100), "u1")
    before[40:60, 40:60] = 1
    now[40:60, 45:65] = 1
    flow, forward = constant((100, 100), 0), constant((100, 100), 0)
    flow[now == 1] = (-5, 0)
    forward[before == 1] = (5, 0)
    assert tc(now, before, flow) == (Fraction(400, 500) + Fraction(9500, 9600)) / 2
    assert tc(now, before, forward) == (Fraction(200, 500) + Fraction(9500, 9800)) / 2
    assert float(tc(now, before, -forward)) == pytest.approx(0.8698454, abs=5e-8)
    state = state_of(now, before, flow, forward)
    assert float(score(state["still"])) == pytest.approx(0.7896907, abs=5e-8)
    assert state["pixels"].tolist() == [10000, 10000, 0, 0, 0, 100]
    assert score(state["counts"][0]) == 1
    assert state["counts"][1].tolist() == [
        [100] + [0] * 18, [0, 100] + [0] * 17, [0] * 19
    ]  # fmt: skip


def zoom(least: int, most: int, least_after: int, most_after: int) -> tuple[Any, Any, Any, Any]:
    """A square ring that grows by 1.25 about the middle pixel, and its flows."""
    y, x = np.mgrid[:201, :201] - 100
    radius = np.maximum(abs(x), abs(y))
    before = ((radius >= least) & (radius <= most)).astype("u1")
    now = ((radius >= least_after) & (radius <= most_after)).astype("u1")
    away = np.stack([x, y], -1).astype("f4")
    return now, before, -away * np.float32(0.2), away * np.float32(0.25)


def test_t3_zoom() -> None:
    now, before, flow, forward = zoom(0, 40, 0, 50)
    assert tc(now, before, flow) == 1
    assert float(tc(now, before, forward)) == pytest.approx(0.5693663, abs=5e-8)
    assert float(tc(now, before, -forward)) == pytest.approx(0.9130638, abs=5e-8)
    assert float(score(state_of(now, before, flow)["still"])) == pytest.approx(0.7678036, abs=5e-8)


def test_t4_thin_ring_rejects_the_negated_forward_flow() -> None:
    now, before, flow, forward = zoom(60, 64, 75, 80)
    assert tc(now, before, flow) == 1
    assert float(tc(now, before, forward)) == pytest.approx(0.3976891, abs=5e-8)
    assert float(tc(now, before, -forward)) == pytest.approx(0.4585487, abs=5e-8)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("shift", "expected"), [(0.5, [1, 2, 3, 4, 5, 6, 7]), (-0.5, list(range(8)))]
)
def test_t5_ties_are_rounded_up(axis: int, shift: float, expected: list[int]) -> None:
    before = np.arange(8, dtype="u1").reshape((1, 8) if axis else (8, 1))
    now = np.full(before.shape, VOID, "u1")
    now.reshape(-1)[: len(expected)] = expected
    flow = constant(before.shape, *((shift, 0) if axis else (0, shift)))
    state = state_of(now, before, flow)
    assert score(state["counts"][0]) == 1
    assert state["pixels"].tolist() == [8, len(expected), 8 - len(expected), 0, 0, 0]


@pytest.mark.parametrize("shape", [(6, 8), (7, 9), (5, 8), (1, 1), (1, 6), (4, 1)])
def test_t6_no_motion(shape: tuple[int, int]) -> None:
    ids = np.random.default_rng(0).integers(0, 19, shape).astype("u1")
    state = state_of(ids, ids, constant(shape, 0), constant(shape, 0))
    assert score(state["counts"][0]) == 1
    assert state["pixels"].tolist() == [ids.size, ids.size, 0, 0, 0, 0]
    assert state["squares"].tolist() == [0, 0]
    assert state["flow_max"][0] == 0


def test_t7_no_third_label_between_two() -> None:
    before = np.zeros((4, 8), "u1")
    before[:, 4:] = 18
    state = state_of(before, before, constant((4, 8), 0.5))
    assert set(np.flatnonzero(state["counts"].sum(axis=(0, 1)))) == {0, 18}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.1e9, -1e10])
@pytest.mark.parametrize("axis", [0, 1])
def test_t8_unknown_flow_is_left_out(bad: float, axis: int) -> None:
    ids = np.zeros((3, 4), "u1")
    flow = constant((3, 4), 0)
    flow[1, 2, axis] = bad
    for clamp in (False, True):
        state = state_of(ids, ids, flow, clamp=clamp)
        assert state["pixels"].tolist() == [12, 11, 0, 1, 0, 0]
        assert state["flow_max"][0] == state["flow_p99"][0] == 0
    flow[...] = bad
    state = state_of(ids, ids, flow)
    assert state["flow_max"][0] == state["flow_median"][0] == -np.inf
    assert state["counts"].sum() == 0
    assert state["still"].sum() == 36


def test_flow_that_cannot_be_checked_is_occluded() -> None:
    ids = np.zeros((1, 4), "u1")
    forward = constant((1, 4), 0)
    forward[0, :3, 0] = (np.nan, np.inf, 1e10)
    state = state_of(ids, ids, constant((1, 4), 0), forward)
    assert state["pixels"].tolist() == [4, 4, 0, 0, 0, 3]


def test_t10_classes_of_either_map_count() -> None:
    now, before = np.zeros((2, 2, 8), "u1")
    before[:, 6:] = 3
    assert tc(now, before, constant((2, 8), 0)) == Fraction(12, 16) / 2


def test_t11_constant_maps() -> None:
    ids = np.full((4, 6), 7, "u1")
    assert tc(ids, ids, constant((4, 6), 1, -1)) == 1


def test_void_in_either_frame_leaves_the_counts() -> None:
    now, before = np.zeros((2, 1, 6), "u1")
    now[0, 1] = before[0, 3] = VOID
    state = state_of(now, before, constant((1, 6), 1))
    assert state["pixels"].tolist() == [6, 3, 1, 0, 2, 0]
    assert state["still"][0, 0] == 4


def test_the_mirror_warps_frame_t_back() -> None:
    now, before, flow = split()
    state = PairCounts("file", 0, 19, VOID, mirror=True).state_of({
        "prediction:0": now, "prediction_before:0": before,
        "grey": now, "grey_before": before, "flow_forward:file": -flow,
    })  # fmt: skip
    assert score(state["counts"][0]) == 1
    assert state["pixels"].tolist() == [1000, 950, 50, 0, 0, 0]
    assert state["counts"][0, 0, 0] == 500


def test_inputs_say_which_flows_are_needed() -> None:
    plain = PairCounts("dis:fast@0.5", 2, 19, VOID)
    assert plain.inputs == (
        "prediction:2", "prediction_before:2", "grey", "grey_before", "flow:dis:fast@0.5"
    )  # fmt: skip
    mirror = PairCounts("file", 0, 19, VOID, mirror=True, occlusion=True)
    assert mirror.inputs[-2:] == ("flow_forward:file", "flow:file")
    assert "flow:file" not in PairCounts("file", 0, 19, VOID, mirror=True).inputs


def test_a_void_prediction_is_a_miss() -> None:
    label = np.array([[0, 0, 1, VOID]], "u1")
    prediction = np.array([[0, VOID, 0, 1]], "u1")
    state = FrameCounts(0, 2, VOID).state_of({
        "prediction:0": prediction, "prediction_before:0": prediction,
        "label": label, "label_before": np.full((1, 4), VOID, "u1"),
    })  # fmt: skip
    assert state["now"].tolist() == [[2, 0], [2, 1], [1, 0]]
    assert state["before"].sum() == 0


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    occlusion=st.booleans(),
    clamp=st.booleans(),
    dtype=st.sampled_from(["u1", "u2", "i4"]),
)
def test_any_pair_is_as_the_oracle_says(
    seed: int, size: tuple[int, int], occlusion: bool, clamp: bool, dtype: str
) -> None:
    rng = np.random.default_rng(seed)
    frames = [any_ids(rng, size, 5, VOID, dtype) for _ in range(2)]
    greys = [rng.integers(0, 256, size, dtype=np.uint8) for _ in range(2)]
    flows = [any_flow(rng, size) for _ in range(2)]
    names = ("prediction:0", "prediction_before:0", "grey", "grey_before", "flow:f")
    maps = dict(zip((*names, "flow_forward:f"), (*frames, *greys, *flows), strict=True))
    found = PairCounts("f", 0, 5, VOID, occlusion, clamp).state_of(maps)
    back = flows[1] if occlusion else None
    expected = naive_temporal.pair(*frames, *greys, flows[0], back, 5, VOID, clamp)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("n", [1, 2, 3, 99, 100, 101, 102, 1001])
def test_quantiles_lie_between_ranks_as_numpy_says(n: int) -> None:
    rng = np.random.default_rng(n)
    flow = (rng.standard_normal((1, n, 2)) * 10 ** rng.uniform(-4, 3, (1, n, 1))).astype("f4")
    state = state_of(*np.zeros((2, 1, n), "u1"), flow)
    lengths = np.hypot(*np.moveaxis(flow.astype("f8"), 2, 0)).astype("f4").astype("f8")
    assert state["flow_median"][0] == pytest.approx(np.median(lengths), rel=1e-14)
    assert state["flow_p99"][0] == pytest.approx(np.percentile(lengths, 99), rel=1e-14)
