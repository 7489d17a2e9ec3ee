"""Which frames are neighbours: by the numbers in their names, never across a gap."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from command import refused
from hypothesis import example, given, reject
from hypothesis import strategies as st

from uqeval.errors import StoreError
from uqeval.stores.names import natural
from uqeval.stores.video.sequences import Neighbours, Pair, Sequences, sequences_of


def of(*names: str) -> Sequences:
    return sequences_of(names, len(names), "here")


def names_refused(names: list[str] | None, *words: str, count: int | None = None) -> None:
    n = len(names or ()) if count is None else count
    refused(lambda: sequences_of(names, n, "here"), "here", *words, error=StoreError)


@pytest.mark.parametrize(
    ("name", "sequence", "number"),
    [
        ("stuttgart_00_000000_000001_leftImg8bit.png", "stuttgart_00_000000", 1),
        ("aachen/aachen_000000_000019_leftImg8bit", "aachen/aachen_000000", 19),
        ("frankfurt_000000_000294_gtFine_labelTrainIds.png", "frankfurt_000000", 294),
        ("0016E5_07959", "0016E5", 7959),
        ("Seq05VD_f00000", "Seq05VD_f", 0),
        ("0001", "", 1),
        ("frame_000123", "frame", 123),
        ("night/drive/0001.jpg", "night/drive", 1),
        ("/data/a-7", "/data/a", 7),
        ("0001_rgb", "rgb", 1),
        ("a_1_left", "a_left", 1),
        ("1305031102.175304", "1305031102", 175304),
        ("0" * 30 + "7", "", 7),
    ],
)
def test_names(name: str, sequence: str, number: int) -> None:
    digits = str(number)
    at = name.rindex(digits, 0, name.find("_leftImg8bit") if "_leftImg8bit" in name else None)
    other = name[:at] + str(number + 1).zfill(len(digits)) + name[at + len(digits) :]
    found = of(name, other)
    assert [s.name for s in found.sequences] == [sequence]
    assert found.pairs == (Pair(0, 1, sequence, True, True),)


def test_without_names() -> None:
    found = sequences_of(None, 4, "here")
    (only,) = found.sequences
    assert (only.name, only.frames, only.step, only.gaps) == ("", (0, 1, 2, 3), 1, 0)
    assert [(p.before, p.after, p.first, p.last) for p in found.pairs] == [
        (0, 1, True, False), (1, 2, False, False), (2, 3, False, True),
    ]  # fmt: skip


def test_the_step_is_the_most_common_difference() -> None:
    found = of("a_1", "a_3", "a_5", "a_9", "a_11", "a_12")
    (only,) = found.sequences
    assert (only.step, only.gaps) == (2, 2)
    assert [(p.before, p.after, p.first, p.last) for p in found.pairs] == [
        (0, 1, True, False), (1, 2, False, True), (3, 4, True, True),
    ]  # fmt: skip


def test_of_equally_common_differences_the_smallest_counts() -> None:
    (only,) = of("5", "2", "1").sequences
    assert (only.step, only.gaps, only.frames) == (1, 1, (2, 1, 0))


JITTER = [round(n) for n in np.cumsum(np.random.default_rng(3).normal(50_000, 3000, 200))]


def test_time_stamps_are_no_numbers_of_frames() -> None:
    names = [f"CAM__{n}" for n in JITTER]
    names_refused(names, "seem to have time stamps", "Rename them")
    stream = Neighbours()
    refused(lambda: [stream.next(name, "here") for name in names], "time stamps", error=StoreError)


#: Names of frames by their times: the last digits of each are only a part of it.
TIMES: list[list[str]] = [
    [str(12 + n / 4) for n in range(20)],
    [str(12 + n / 20) for n in range(20)],
    [str(12 + n / 8) for n in range(7)],
    [str(round(1600000000 + n / 30, 3)) for n in range(60)],
    [f"cam0/{round(n / 25 + 3, 2)}" for n in range(50)],
    [f"frame_t{round(n * 0.04, 2)}s.png" for n in range(80)],
]


@pytest.mark.parametrize("names", TIMES)
def test_times_are_no_numbers_of_frames(names: list[str]) -> None:
    for own in (names, [*names, "a_1", "a_2"]):
        names_refused(own, "have times in place of numbers", f"{names[0]}, {names[1]}", "Rename")
    if len(names) >= 20:
        stream = Neighbours()
        says = "have times in place of numbers"
        refused(lambda: [stream.next(name, "here") for name in names], says, error=StoreError)


#: Names of frames with other numbers before that of the frame.
NUMBERED: list[list[str]] = [
    [f"{scene}.{n}" for scene in (1, 2) for n in (25, 50, 75, 100)],
    [f"{scene}.{n}" for scene in (1, 2) for n in (3, 6, 9, 12)],
    [f"{scene}.{n}" for scene in (1, 2) for n in range(5, 100, 10)],
    [f"scene_{scene}.{n}" for scene in range(20) for n in (5, 10)],
    [f"cam_{scene}.{n:03d}" for scene in range(3) for n in range(1000)],
    [f"scene_{scene}.{n}" for scene in range(1, 20) for n in range(10)],
    [f"{clip:03d}.{n}" for clip in range(1, 40) for n in range(1 + clip % 2)],
    [f"v{group}_{clip:02d}_{n:02d}" for group in (1, 2) for clip in range(9) for n in range(60)],
    [f"{group:02d}_{clip:02d}_{n}" for group in (1, 2) for clip in range(9) for n in (10, 11)],
    [f"{group:02d}_{clip:02d}_{n:02d}" for group in (1, 2) for clip in range(9) for n in (0, 30)],
    [f"00_00_{second:02d}_{n:02d}" for second in range(30) for n in (0, 12)],
    [f"frame_{n:06d}" for n in range(120, 140)],
    [f"name.{n:04d}.png" for n in range(20)],
    [f"shot_012.{n:04d}.exr" for n in range(990, 1010)],
    [f"{shot}.{n:04d}" for shot in (10, 11, 12) for n in range(1, 20)],
    [f"{shot}.{n}" for shot in (1, 2) for n in range(1, 30)],
    [f"{shot}.{n}" for shot in (1, 2) for n in range(1, 9)],
    [f"1.{n}" for n in range(5, 13)],
    [f"1.{n}" for n in range(4, 11)],
    [f"1.{n}" for n in range(0, 105, 5)],
    [f"1.{n}" for n in range(0, 125, 25)],
    [f"cam{camera}.{n}" for camera in (0, 1, 2) for n in range(10)],
    [f"cam{camera}.{n:04d}" for camera in (0, 1) for n in range(20)],
    [f"v1.{version}_{n:04d}" for version in (2, 3) for n in range(20)],
    [f"v1.{version}.{n:04d}" for version in (2, 3) for n in range(20)],
    [f"seq{run}_{n:04d}" for run in (1, 2) for n in range(20)],
    [f"2024-01-0{day}_{n:04d}" for day in (2, 3) for n in range(20)],
    [f"2024.01.0{day}.{n:04d}" for day in (2, 3) for n in range(20)],
    [f"23-0{month}-{day:02d}" for month in (1, 2) for day in range(1, 29)],
    [f"scene_01_{camera:02d}_{n:02d}" for camera in (2, 3) for n in range(25)],
    [f"01_02_0{take}_{n:04d}" for take in (3, 4) for n in range(20)],
    [f"aachen_{n:06d}_000019_leftImg8bit" for n in (0, 1)] + ["aachen_000000_000020_leftImg8bit"],
    [f"0016E5_{n:05d}" for n in range(7959, 7980)],
    [f"{n:010d}" for n in range(42)],
    [f"bear/{n:05d}" for n in range(42)],
    [f"1305031102.{n:06d}" for n in range(175304, 175330)],
]


@pytest.mark.parametrize("names", NUMBERED)
def test_other_numbers_before_those_of_frames(names: list[str]) -> None:
    """All frames but the first of each sequence follow another one."""
    found = of(*names)
    if not names[0].startswith("aachen"):
        assert len(found.pairs) == len(names) - len(found.sequences)
    stream = Neighbours()
    for name in names:
        stream.next(name, "here")


@pytest.mark.parametrize(
    "numbers",
    [
        [1, 2, 3, 5, 6], [10, 20, 30, 50, 60], [0, 2, 4, 30, 32, 60], [7, 20, 41], [100, 130, 159],
        [*range(0, 240, 30), 239], [1, 2, 7, 15, 16, 40],
        [0, 33, 67, 100, 133, 167, 200],  # milliseconds: most pairs are found
        [round(n * 30 / 13) for n in range(30)],  # frames of another rate
        [n for n in range(60) if n % 3 != 2],
    ],
)  # fmt: skip
def test_numbers_with_gaps_are_no_time_stamps(numbers: list[int]) -> None:
    assert of(*(f"f{n}" for n in numbers)).pairs
    stream = Neighbours()
    assert [stream.next(f"f{n}", "here")[0] for n in numbers] == ["f"] * len(numbers)


def test_a_stream_is_judged_by_many_frames() -> None:
    numbers = np.cumsum([0, 40, 39, 41, 40, 39, 41, 40, 41, *[40] * 22])
    stream = Neighbours()
    followed = [stream.next(f"f{n}", "here")[1] is None for n in numbers]
    assert sum(followed) > 20


def test_one_sequence_of_few_frames_is_no_reason_to_refuse() -> None:
    found = of(*(f"a/{n}" for n in range(50)), *(f"b/{n}" for n in (100, 130, 159, 190, 221)))
    assert len(found.pairs) == 51


def test_sequences_stand_in_natural_order_and_never_touch() -> None:
    found = of("v10/2", "v9/7", "v10/1", "v9/8", "v11/3")
    assert [s.name for s in found.sequences] == ["v9", "v10", "v11"]
    assert [(p.before, p.after) for p in found.pairs] == [(1, 3), (2, 0)]
    assert (found.sequences[2].step, found.sequences[2].gaps) == (None, 0)


def test_numbers_count_not_the_order_of_names() -> None:
    assert [(p.before, p.after) for p in of("f10", "f9", "f8").pairs] == [(2, 1), (1, 0)]


def test_bad_names() -> None:
    names_refused(["a", "b_1", "c"], "2 of 3 frames have no number", "a, c", "frame_000123")
    names_refused(["f_1", "f_01", "f_2"], "'f_1' and 'f_01' are both frame 1 of the sequence 'f'")
    names_refused(["a.png", "b.png"], "no number")
    names_refused(["a_1_leftImg8bit.png", "a_leftImg8bit.png"], "1 of 2", "a_leftImg8bit.png")
    names_refused(["f_1", "f_1"], "more than once")
    names_refused(["a_1", "b_1", "c_1"], "no two of the 3 frames", "a, b, c")
    names_refused(["a_1"], "1 frame;")
    names_refused([], "0 frames")
    names_refused(None, "1 frame;", count=1)
    names_refused(["a_1", "a_2"], "2 names for 3", count=3)


def test_numbers_of_any_length() -> None:
    found = of("9" * 400 + "1", "9" * 400 + "2")
    assert len(found.pairs) == 1
    names_refused(["9" * 5000, "1" * 5000])  # too long to be one number, and no traceback


@given(st.lists(st.integers(0, 60), min_size=2, max_size=30, unique=True))
@example([20 * n + 4 * (n % 2) for n in range(4)])
def test_pairs_are_all_neighbours_of_one_step(numbers: list[int]) -> None:
    ordered = sorted(numbers)
    differences = [b - a for a, b in pairwise(ordered)]
    try:
        found = of(*(f"s_{n:03d}" for n in numbers))
    except StoreError as error:
        assert "time stamps" in str(error)
        reject()
    (only,) = found.sequences
    assert [numbers[i] for i in only.frames] == ordered
    assert differences.count(only.step or 0) == max(map(differences.count, differences))
    assert len(found.pairs) + only.gaps == len(numbers) - 1
    assert all(numbers[p.after] - numbers[p.before] == only.step for p in found.pairs)
    afters, befores = {p.after for p in found.pairs}, {p.before for p in found.pairs}
    for p in found.pairs:
        assert p.first == (p.before not in afters) and p.last == (p.after not in befores)


def test_natural_order() -> None:
    names = ["a", "a0", "a1", "a01", "a2", "a2b", "a10", "b/1", "b/02", "b/3"]
    names.reverse()
    assert sorted(names, key=natural) == ["a", "a0", "a01", "a1", *names[5::-1]]


@given(st.lists(st.text("ab01.9/", max_size=6), unique=True))
def test_natural_order_is_total(names: list[str]) -> None:
    ordered = sorted(names, key=natural)
    names.reverse()
    assert sorted(names, key=natural) == ordered
    assert len({natural(name) for name in names}) == len(names)


def online(*names: str) -> list[tuple[str, bool]]:
    neighbours = Neighbours()
    found = [neighbours.next(name, "v") for name in names]
    return [(sequence, reason is None) for sequence, reason in found]


@pytest.mark.parametrize(
    ("numbers", "pairs"),
    [
        ([1, 2, 3], [False, True, True]),
        ([1, 3, 5, 9, 11], [False, True, True, False, True]),
        ([1, 5, 7, 9], [False, True, True, True]),  # the first difference is all one knows
        ([4, 3, 2], [False, False, False]),
        ([7], [False]),
    ],
)
def test_neighbours_frame_by_frame(numbers: list[int], pairs: list[bool]) -> None:
    assert online(*(f"a_{n:03}" for n in numbers)) == [("a", pair) for pair in pairs]


def test_neighbours_are_of_one_sequence() -> None:
    found = online("a_1", "a_3", "b_1", "b_2", "a_5")
    assert found == [("a", False), ("a", True), ("b", False), ("b", True), ("a", False)]


def test_a_name_without_a_number_has_no_neighbours() -> None:
    with pytest.raises(StoreError, match="'a' has no number"):
        Neighbours().next("a", "v")
