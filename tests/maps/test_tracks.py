"""The point tracker: known answers, and the slow oracle on random videos."""

from __future__ import annotations

from dataclasses import astuple, replace
from typing import Any

import naive_tracks
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uqeval.errors import UsageError
from uqeval.kernels.tracks import cover
from uqeval.maps.names import TrackRules, of_tracks, rules_of, track_columns
from uqeval.maps.tracks import Tracker

VOID = 255
PLAIN = TrackRules(structure=False)
NEVER = replace(PLAIN, round_trip_offset=1e9, boundary_offset=1e9)


def named(row: Any, classes: int) -> dict[str, list[int]]:
    """One model's columns by name."""
    found, at = {}, 0
    for name, width in track_columns(classes).items():
        found[name] = row[at : at + width].tolist()
        at += width
    assert at == len(row)
    return found


def run(
    models: Any, forward: Any, backward: Any, rules: TrackRules, classes: int, images: Any = None
) -> list[list[dict[str, list[int]]]]:
    """The counts [pair][model] of one run, ids being [model, t, y, x]."""
    ids = np.asarray(models, np.uint8)
    tracker = Tracker(rules, len(ids), classes, VOID)
    if images is None:
        images = np.zeros((*ids.shape[1:], 3), np.uint8)
    pairs = len(forward)
    found = [
        tracker.step(ids[:, t], ids[:, t + 1], images[t], forward[t], backward[t],
                     t == 0, t == pairs - 1)
        for t in range(pairs)
    ]  # fmt: skip
    assert all(one.dtype == np.int64 for one in found)
    return [[named(row, classes) for row in one] for one in found]


def total(pairs: list[list[dict[str, list[int]]]], model: int = 0) -> dict[str, int]:
    names = pairs[0][model]
    return {name: sum(sum(one[model][name]) for one in pairs) for name in names}


def still(pairs: int, *shape: int) -> Any:
    return np.zeros((pairs, *shape, 2), np.float32)


def test_a_still_video_has_a_track_at_every_grid_point() -> None:
    ids = np.zeros((1, 5, 64, 64))
    flow = still(4, 64, 64)
    found = run(ids, flow, flow, PLAIN, 2)
    assert total(found) == {
        "tracks": 49, "consistent": 49, "points": 49 * 5, "lengths": 49, "dropped": 0,
        "alive": 4 * 49, "changed": 0, "unreliable": 4 * 127, "pixels": 4 * 4096, "seeds": 49,
    }  # fmt: skip
    assert [one[0]["seeds"] for one in found] == [[49], [0], [0], [0]]
    assert found[-1][0]["lengths"] == [0, 0, 0, 49, *[0] * 8]
    assert found[-1][0]["tracks"] == found[-1][0]["consistent"] == [49, 0]


def test_a_block_that_flickers_once_breaks_its_four_tracks() -> None:
    ids = np.zeros((1, 5, 64, 64))
    ids[0, 2, 16:32, 16:32] = 1
    flow = still(4, 64, 64)
    found = run(ids, flow, flow, PLAIN, 2)
    assert (total(found)["tracks"], total(found)["consistent"]) == (49, 45)
    assert [one[0]["changed"] for one in found] == [[0], [4], [4], [0]]


def test_void_along_a_track_drops_it() -> None:
    ids = np.zeros((1, 5, 64, 64))
    ids[0, 2, 16:32, 16:32] = VOID
    flow = still(4, 64, 64)
    found = run(ids, flow, flow, PLAIN, 2)
    assert (total(found)["tracks"], total(found)["consistent"]) == (45, 45)
    assert [one[0]["alive"] for one in found] == [[49], [45], [45], [45]]
    assert total(found)["dropped"] == 4


def test_tracks_stop_at_the_border_and_seeds_that_cannot_leave_are_none() -> None:
    ids = np.zeros((1, 3, 64, 64))
    flow = still(2, 64, 64)
    flow[..., 0] = 8
    found = run(ids, flow, -flow, PLAIN, 1)
    # Columns 4, 12, …, 52: 52 goes to 60 and then has to stop, as 60 + 8 is outside.
    assert [sum(one[0]["tracks"]) for one in found] == [0, 56]
    assert found[1][0]["lengths"][:2] == [14, 42]
    assert [one[0]["seeds"] for one in found] == [[49], [7]]
    flow[:, :, 52] = 12  # from column 52 straight out of the frame: no track begins
    found = run(ids, flow, -flow, NEVER, 1)
    assert found[0][0]["alive"] == [42]


def square(frames: int = 4) -> tuple[Any, Any, Any]:
    """A 20×20 square moves 5 pixels to the right in each frame over a still ground (T2)."""
    ids = np.zeros((1, frames, 100, 100))
    forward, backward = still(frames - 1, 100, 100), still(frames - 1, 100, 100)
    for t in range(frames):
        ids[0, t, 40:60, 40 + 5 * t : 60 + 5 * t] = 1
        if t + 1 < frames:
            forward[t, 40:60, 40 + 5 * t : 60 + 5 * t, 0] = 5
            backward[t, 40:60, 45 + 5 * t : 65 + 5 * t, 0] = -5
    return ids, forward, backward


def test_the_ground_that_a_square_covers_stops_before_its_label_changes() -> None:
    ids, forward, backward = square()
    found = run(ids, forward, backward, replace(PLAIN, step=4), 2)
    seen = total(found)
    assert seen["tracks"] == seen["consistent"] > 500
    assert seen["changed"] == 0
    # The round trip alone finds the 100 pixels of covered ground; 199 are the last row and column.
    only = replace(NEVER, round_trip_offset=0.5)
    assert [one[0]["unreliable"] for one in run(ids, forward, backward, only, 2)] == [[299]] * 3
    followed = total(run(ids, forward, backward, replace(NEVER, step=4), 2))
    assert followed["consistent"] < followed["tracks"]
    assert followed["changed"] > 0


def test_ground_that_comes_free_is_seeded_again() -> None:
    ids, forward, backward = square()
    found = run(ids, forward, backward, replace(PLAIN, step=4), 2)
    assert found[0][0]["seeds"] == [23 * 23]
    assert all(one[0]["seeds"][0] > 0 for one in found[1:])


def test_tracks_of_another_run_are_forgotten() -> None:
    ids = np.zeros((1, 64, 64), np.uint8)
    image = np.zeros((64, 64, 3), np.uint8)
    flow = still(1, 64, 64)[0]
    tracker = Tracker(PLAIN, 1, 1, VOID)

    def step(first: bool, last: bool) -> dict[str, list[int]]:
        return named(tracker.step(ids, ids, image, flow, flow, first, last)[0], 1)

    assert step(True, False)["seeds"] == [49]
    assert step(True, False)["seeds"] == [49]  # the first run had no end: nothing is counted of it
    assert step(False, True)["tracks"] == [49]
    assert step(True, True)["lengths"][:2] == [49, 0]


def test_shorter_tracks_do_not_count() -> None:
    ids = np.zeros((1, 3, 64, 64))
    flow = still(2, 64, 64)
    flow[..., 0] = 8
    found = total(run(ids, flow, -flow, replace(PLAIN, min_length=3), 1))
    assert (found["tracks"], found["points"]) == (42, 126)


@pytest.mark.parametrize("shape", [(8, 8), (1, 1), (3, 40), (9, 9)])
def test_small_frames(shape: tuple[int, int]) -> None:
    ids = np.zeros((1, 2, *shape))
    flow = still(1, *shape)
    image = np.random.default_rng(0).integers(0, 256, (2, *shape, 3)).astype(np.uint8)
    for rules in (PLAIN, TrackRules()):
        found = total(run(ids, flow, flow, rules, 1, image))
        assert found["tracks"] == found["seeds"] == (shape == (9, 9))


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf, 1e10, -2e9])
@pytest.mark.parametrize("which", ["forward", "backward"])
def test_unknown_flow_is_not_followed(strange: float, which: str) -> None:
    ids = np.zeros((1, 2, 64, 64))
    forward, backward = still(1, 64, 64), still(1, 64, 64)
    (forward if which == "forward" else backward)[0, 12, 20, 1] = strange
    found = total(run(ids, forward, backward, PLAIN, 1))
    assert found["tracks"] == 48
    # In `forward` the pixel and its four neighbours, in `backward` the four that look at it.
    assert found["unreliable"] == 127 + (5 if which == "forward" else 4)


def test_between_two_unknown_flows_is_a_boundary() -> None:
    """Their difference is 0, or not a number."""
    ids = np.zeros((1, 2, 64, 64))
    for strange in (np.nan, np.inf, 1e10):
        forward = still(1, 64, 64)
        forward[0, 20, [19, 21]] = strange
        found = total(run(ids, forward, still(1, 64, 64), PLAIN, 1))
        assert (found["tracks"], found["unreliable"]) == (48, 127 + 9)


def test_structure_is_wanted_of_the_image() -> None:
    ids = np.zeros((1, 2, 64, 64))
    flow = still(1, 64, 64)
    image = np.full((2, 64, 64, 3), 100, np.uint8)
    assert total(run(ids, flow, flow, TrackRules(), 1, image))["seeds"] == 0
    image[:, :, 32:] = 200  # an edge has structure in one direction only
    assert total(run(ids, flow, flow, TrackRules(), 1, image))["seeds"] == 0
    image[:, 32:, :32] = 200  # a corner in both
    assert 0 < total(run(ids, flow, flow, TrackRules(), 1, image))["seeds"] < 49


def test_every_grid_point_has_structure_where_the_oracle_says_so() -> None:
    """Blocks of grey, so that some points lie close to each limit."""
    image = np.random.default_rng(3).integers(100, 124, (2, 6, 8, 3)).astype(np.uint8)
    image = np.repeat(np.repeat(image, 8, 1), 8, 2)
    ids, flow = np.zeros((1, 2, 48, 64)), still(1, 48, 64)
    found = total(run(ids, flow, flow, TrackRules(step=1), 1, image))["seeds"]
    assert [found] == naive_tracks.track(image, flow, flow, 1).seeds
    assert 1000 < found < 40 * 56


def test_a_track_half_a_pixel_outside_covers_from_the_border() -> None:
    ids = np.zeros((1, 4, 12, 12))
    flow = still(3, 12, 12)
    flow[:2, ..., 0] = np.array([-3.4, -1.0])[:, None, None]  # from 4 to 0.6 to -0.4
    found = run(ids, flow, -flow, replace(PLAIN, step=5), 1)
    assert [one[0]["seeds"] for one in found] == [[1], [0], [0]]
    assert [one[0]["alive"] for one in found] == [[1], [1], [1]]


def test_limits_themselves() -> None:
    """A round trip that misses by the limit is lost; a gradient at its limit is not yet."""
    ids = np.zeros((1, 2, 20, 20))
    away, ramp = still(1, 20, 20), still(1, 20, 20)
    away[..., 0] = 1
    ramp[..., 0] = (np.arange(20) - 10) / 4
    for limit, alive in ((1.0, 0), (1.01, 4)):
        rules = replace(NEVER, round_trip_slope=0.0, round_trip_offset=limit)
        assert total(run(ids, still(1, 20, 20), away, rules, 1))["alive"] == alive
    for limit, alive in ((0.0625, 4), (0.06, 0)):
        rules = replace(NEVER, boundary_slope=0.0, boundary_offset=limit)
        assert total(run(ids, ramp, -ramp, rules, 1))["alive"] == alive


@given(
    st.integers(1, 9),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 22)), max_size=6),
)
def test_covered_grid_points_are_those_of_a_distance_transform(
    step: int, pixels: list[tuple[int, int]]
) -> None:
    rows, columns = np.arange(4, 23 - 4, step), np.arange(4, 31 - 4, step)
    covered = np.zeros((rows.size, columns.size), bool)
    x, y = (np.array([p[k] for p in pixels], np.int64) for k in (0, 1))
    cover(x, y, 4, step, covered)
    squared = naive_tracks.distance_transform(pixels, (23, 31))
    np.testing.assert_array_equal(covered, (squared < step * step)[np.ix_(rows, columns)])


RULES = st.builds(
    lambda step, min_length, structure, limits: TrackRules(step, min_length, structure, *limits),
    st.integers(1, 9),
    st.integers(2, 4),
    st.booleans(),
    st.sampled_from([(0.01, 0.5, 0.01, 0.002), (0.0, 0.1, 0.1, 0.5), (1.0, 9.0, 1.0, 9.0)]),
)


def video(
    seed: int, frames: int, shape: tuple[int, int], speed: float, noise: float, strange: float
) -> tuple[Any, Any, Any, Any]:
    """Ids of three models, flows that mostly lead there and back, and images of a small video."""
    rng = np.random.default_rng(seed)
    height, width = shape
    ids = rng.choice(3, (3, frames, -(-height // 6), -(-width // 6)), p=[0.8, 0.1, 0.1])
    ids = np.repeat(np.repeat(ids, 6, 2), 6, 3)[:, :, :height, :width]
    ids = np.where(rng.random(ids.shape) < 0.01, VOID, ids)
    forward = np.zeros((frames - 1, *shape, 2), np.float32)
    forward += rng.integers(-8, 9, (frames - 1, 1, 1, 2)) / 4 * speed
    backward = -forward
    for flow in (forward, backward):
        flow += rng.normal(size=flow.shape) * noise
        flow[rng.random(flow.shape[:3]) < 0.01] += 3
        flow[rng.random(flow.shape[:3]) < 0.003] = strange
    images = rng.integers(0, 256, (frames, *shape, 3)) // rng.choice([1, 8, 32])
    return ids, forward, backward, images.astype(np.uint8)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(2, 5),
    st.tuples(st.integers(9, 20), st.integers(9, 24)),
    st.sampled_from([0.0, 1.0, 0.37]),
    st.sampled_from([0.0, 0.02, 0.1]),
    st.sampled_from([0.0, np.nan, 1e10]),
    RULES,
)
def test_random_videos_are_tracked_as_by_the_oracle(
    seed: int,
    frames: int,
    shape: tuple[int, int],
    speed: float,
    noise: float,
    strange: float,
    rules: TrackRules,
) -> None:
    ids, forward, backward, images = video(seed, frames, shape, speed, noise, strange)
    found = run(ids, forward, backward, rules, 3, images)
    step, min_length, structure, *limits = astuple(rules)
    tracked = naive_tracks.track(images, forward, backward, step, structure, limits)
    for model in range(3):
        expected = naive_tracks.counts(tracked, ids[model], 3, VOID, min_length)
        assert [one[model] for one in found] == expected
        alone = run(ids[model : model + 1], forward, backward, rules, 3, images)
        assert [one[0] for one in alone] == expected


def test_many_tracks_are_tracked_as_by_the_oracle() -> None:
    """A video that moves by fractions of pixels, with structure, and long enough for most bins."""
    rng = np.random.default_rng(5)
    frames, shape = 12, (40, 56)
    ids = np.repeat(np.repeat(rng.integers(0, 3, (1, frames, 10, 14)), 4, 2), 4, 3)
    ids[:, rng.random(frames) < 0.7] = ids[:, :1]
    forward = np.zeros((frames - 1, *shape, 2), np.float32)
    forward += (rng.random((frames - 1, 1, 1, 2)) - 0.5) * 1.4
    backward = -forward
    forward[rng.random(forward.shape[:3]) < 0.02] += 1
    images = rng.integers(0, 256, (frames, *shape, 3)).astype(np.uint8)
    found = run(ids, forward, backward, replace(TrackRules(), step=4), 3, images)
    tracked = naive_tracks.track(images, forward, backward, 4)
    assert [one[0] for one in found] == naive_tracks.counts(tracked, ids[0], 3, VOID)
    seen = total(found)
    assert seen["tracks"] > 100
    assert 0 < seen["consistent"] < seen["tracks"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"step": 0}, "at least 1 pixel"),
        ({"min_length": 1}, "at least 2 frames"),
        ({"boundary_slope": -0.1}, "expected 0 or more"),
        ({"round_trip_offset": float("nan")}, "expected 0 or more"),
    ],
)
def test_wrong_rules_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TrackRules(**wrong)


@given(RULES)
def test_the_name_of_a_map_says_rules_and_flow(rules: TrackRules) -> None:
    assert rules_of(of_tracks("dis:medium@0.5", rules)) == (rules, "dis:medium@0.5")
