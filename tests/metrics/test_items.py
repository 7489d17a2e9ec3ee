"""Records of many items at once: the same bits as one by one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scenes import item_maps

from uqeval.metrics._columns import SetStates
from uqeval.metrics._items import each_state, exact_sums, joined_states, once_for_equal_states
from uqeval.metrics.calibration_results import ADAPTIVE, columns, records
from uqeval.metrics.calibration_settings import CalibrationSettings
from uqeval.tallies.fine_gaps import FineGaps
from uqeval.tallies.reliability import ClassReliability, ItemAdaptive, ProperScores, Reliability

RNG = np.random.default_rng(0)
ROWS = {
    "float32": RNG.random((200, 15)).astype("f4").astype("f8"),
    "float64": RNG.normal(size=(200, 15)) * 10.0 ** RNG.integers(-20, 20, (200, 15)),
    "ties": np.array([[1.0, 2.0**-53, s, t] for s in (0, 2.0**-106, -(2.0**-120)) for t in (0, 1)]),
    "cancel": np.array([[1e100, 1.0, -1e100], [1e16, 1.0, -1e16], [0.1, 0.2, -0.3]]),
    "none": np.zeros((3, 0)),
    "infinite": np.array([[1.0, np.inf], [1.0, 2.0]]),
}


@pytest.mark.parametrize("kind", ROWS)
def test_sums_are_those_of_fsum(kind: str) -> None:
    found = exact_sums(ROWS[kind])
    np.testing.assert_array_equal(exact_sums(ROWS[kind][:40]), found[:40])  # fewer: another way
    assert found.tolist() == [math.fsum(row) for row in ROWS[kind].tolist()]


def test_sums_have_any_leading_axes() -> None:
    values = ROWS["float64"].reshape(20, 10, 15)
    assert (exact_sums(values) == exact_sums(ROWS["float64"]).reshape(20, 10)).all()
    assert exact_sums(np.zeros((4, 2, 0))).tolist() == [[0.0, 0.0]] * 4


@pytest.mark.parametrize("at_one", ["last", "own", "drop"])
@pytest.mark.parametrize("binary", ["top", "positive"])
@pytest.mark.parametrize("size", [1, 40])
def test_records_of_calibration_are_those_of_each_item(at_one: str, binary: str, size: int) -> None:
    edge = "lower" if at_one == "last" else "upper"
    classes = 2 if binary == "positive" else 3
    settings = CalibrationSettings(at_one=at_one, binary=binary, edge=edge)
    bins = settings.binning()
    tallies = (
        Reliability(classes, bins), ClassReliability(classes, bins),
        ProperScores(classes, settings.clip), ItemAdaptive(classes, settings.bins),
    )  # fmt: skip
    packed: list[list[bytes]] = [[] for _ in tallies]
    for item in range(30):
        maps = item_maps(item, size, size, classes)
        if item == 7:
            maps["label"][...] = 255
        for tally, own in zip(tallies, packed, strict=True):
            own.append(tally.pack(tally.state_of(maps)))

    def scores(*states: SetStates) -> list[dict[str, Any]]:
        return records(settings, columns(settings, states[:3], {ADAPTIVE: states[3]}))

    found = [
        record
        for states in joined_states(tallies, packed)
        for record in scores(*map(SetStates, states))
    ]
    for item, states in enumerate(zip(*packed, strict=True)):
        own = (t.unpack(data) for t, data in zip(tallies, states, strict=True))
        (expected,) = scores(*map(SetStates.of_one, own))
        assert found[item] == expected and list(found[item]) == list(expected)
    assert found[7]["ece"] is None and found[7]["ece_reason"]


def test_equal_states_are_scored_once() -> None:
    scored = []

    def score(one: bytes, two: bytes) -> dict[str, bytes]:
        scored.append(one + two)
        return {"both": one + two}

    large = bytes(2000)
    records = once_for_equal_states(score, [b"a", b"a", b"b", large, large], [b"c"] * 5)
    assert [record["both"] for record in records] == [
        b"ac",
        b"ac",
        b"bc",
        large + b"c",
        large + b"c",
    ]
    assert scored == [b"ac", b"bc", large + b"c", large + b"c"]


def test_states_are_unpacked_as_one_by_one() -> None:
    tally = FineGaps(2)
    packed = []
    for _ in range(5):
        state = tally.empty()
        state["gaps"][RNG.integers(0, 4097, 3)] += 0.5
        state["pixels"] += 9
        packed.append(tally.pack(state))
    for data, found in zip(packed, each_state(tally, packed), strict=True):
        for name, values in tally.unpack(data).items():
            np.testing.assert_array_equal(found[name], values)
            assert found[name].dtype == values.dtype
