"""Percentiles in two passes of counts of errors and their ratios, against NumPy's."""

from __future__ import annotations

import errno
import mmap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uqeval.errors import DataError
from uqeval.tallies.error_ranks import ErrorRanks
from uqeval.tallies.rank_keys import RequiredPercentiles

PERCENTILES = (0.01, 1.0, 37.5, 50.0, 95.0, 100.0)


def counted(maps: dict[str, Any]) -> tuple[list[RequiredPercentiles], ErrorRanks]:
    """Return the first pass's counts of λ and ε, and the second pass's tally."""
    coarse = ErrorRanks().state_of(maps)["coarse"]
    wanted = [RequiredPercentiles(own, PERCENTILES, "linear") for own in coarse]
    bins = tuple((k, b) for k, own in enumerate(wanted) for b in own.bins)
    return wanted, ErrorRanks("sigma", bins, max(own.most for own in wanted) < 1 << 16)


def maps_of(error: Any) -> dict[str, Any]:
    return {
        "error": error[None],
        "sigma": np.full((1, error.size), 2, np.float32),
        "label": np.zeros((1, error.size), np.uint8),
    }


@given(st.integers(0, 2**32), st.integers(1, 4000), st.sampled_from([0.0, 1e-3, 1.0, 100.0]))
def test_any_percentile(seed: int, n: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    error = (1 + np.abs(rng.normal(0, width, n))).astype(np.float32)
    maps = maps_of(error)
    (ratio, own), tally = counted(maps)
    fine = tally.state_of(maps)["fine"]
    assert fine.dtype == np.uint16
    for one, part, values in (
        (ratio, fine[: len(ratio.bins)], error / np.float32(2)),
        (own, fine[len(ratio.bins) :], error),
    ):
        expected = np.percentile(values.astype(float), PERCENTILES)
        assert list(one.values(part, "here").values()) == expected.tolist()


@pytest.mark.parametrize("ties", [(1 << 16) - 1, 1 << 16])
def test_more_ties_than_16_bits_count(ties: int) -> None:
    maps = maps_of(np.repeat(np.float32([0.5, 3.0]), [ties, 100]))
    (ratio, own), tally = counted(maps)
    assert tally.few == (ties < 1 << 16)
    fine = tally.state_of(maps)["fine"]
    assert fine.sum(dtype=int) == 2 * (ties + 100)
    assert own.values(fine[len(ratio.bins) :], "here")[95.0] == 0.5


def test_coarse_counts_have_the_name_that_saved_states_have() -> None:
    assert ErrorRanks().parameters() == {"id": "error_ranks", "sigma": "sigma", "bins": ()}
    assert ErrorRanks("sigma", ((0, 1),), few=True).parameters()["few"] is True


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="states are not mapped here")
def test_no_room_for_counts_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **named: Any) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(MemoryError, match="8388608 bytes"):
        ErrorRanks().empty()


def test_values_that_have_changed_between_the_passes_are_refused() -> None:
    (ratio, _), tally = counted(maps_of(np.linspace(1, 2, 1000, dtype=np.float32)))
    others = tally.state_of(maps_of(np.linspace(5, 6, 1000, dtype=np.float32)))["fine"]
    with pytest.raises(DataError, match=r"^depth\.npz changed while it was read"):
        ratio.values(others[: len(ratio.bins)], "depth.npz")
