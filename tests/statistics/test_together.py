"""Draws of several models: blocks of a video, undefined draws, ties."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import weights_of

from uqeval import UsageError
from uqeval.statistics.draws import Resampling
from uqeval.statistics.together import Opened, Together, together

NAMES = tuple("abcdefgh")


@dataclass(frozen=True)
class Sums:
    """Scores that are weighted means of `values`, in place of states."""

    values: np.ndarray
    names: tuple[str, ...] = NAMES
    agains: Any = ()
    index: Any = field(default_factory=lambda: {"metrics": {}})

    @property
    def items(self) -> int:
        return len(self.names)

    def table(self, weights: np.ndarray, addresses: Any) -> np.ndarray:
        return np.repeat((weights @ self.values / weights.sum(1))[:, None], len(addresses), 1)


def opened(values: Any, names: tuple[str, ...] = NAMES, **how: Any) -> Opened:
    scoring: Any = Sums(np.asarray(values, float), names, {})
    return Opened(Path("r.json"), scoring, Resampling(**how))


def test_blocks_of_a_video_are_drawn() -> None:
    sequences = tuple("xxxxyyyy")
    values = np.random.default_rng(0).normal(size=(2, 8))
    models = [[opened(own, sequences=sequences)] for own in values]
    found = together(models, NAMES, ["m.x"], 500, 3)
    weights = weights_of(Resampling(500, 3, None, sequences), 8)
    assert (found.unit, found.units, found.items) == ("block", 4, 8)
    assert np.allclose(found.draws[:, :, 0], values @ weights.T / 8, rtol=0, atol=1e-15)


def test_items_are_found_by_name() -> None:
    values = np.arange(8.0)
    models = [[opened(values)], [opened(values[::-1], NAMES[::-1])]]
    found = together(models, NAMES[2:7], ["m.x"], 100, 0)
    assert found.each(0, "m.x") == found.each(1, "m.x") == [values[2:7].mean()]
    assert not (found.draws[0] - found.draws[1]).any()


def test_other_groups_are_refused() -> None:
    models = [[opened(range(8), groups=tuple(own))] for own in ("11223344", "11112222")]
    with pytest.raises(UsageError, match="group their items differently"):
        together(models, NAMES, ["m.x"], 100, 0)
    alike = [[opened(range(8), groups=tuple(own))] for own in ("11223344", "ddccbbaa")]
    assert together(alike, NAMES, ["m.x"], 100, 0).units == 4


def test_one_unit_has_no_draws() -> None:
    found = together([[opened(range(8), groups=("g",) * 8)]] * 2, NAMES, ["m.x"], 100, 0)
    assert found.draws.shape == (2, 0, 1)
    assert found.difference(1, 0, "m.x", 0.95) == found.difference(0, 1, "m.x", 0.95)
    assert found.ranks("m.x", "higher", [1, 1]) == []


def drawn(*rows: Any, share: bool = False) -> Together:
    draws = np.asarray(rows, float)[:, :, None]
    values = tuple(d[:1] for d in draws)
    return Together(
        8, "item", 8, ("m.x",), values, draws, (False,), (share,), lambda column: 8
    )  # fmt: skip


def test_ranks_of_draws() -> None:
    found = drawn([1, 2, 3, 4], [1, 3, 1, 5], [0, 4, 2, 6])
    assert found.ranks("m.x", "higher", [1, 1, 3]) == [(0.5, 0.5), (0.25, 0.25), (0.5, 0.25)]
    assert found.ranks("m.x", "lower", [1, 2, 3])[0] == (0.5, 0.5)


def test_undefined_draws() -> None:
    values = np.linspace(0, 1, 100)
    few, many = values.copy(), values.copy()
    few[-4:], many[-6:] = np.nan, np.nan
    found = drawn(values, few)
    same = found.difference(1, 0, "m.x", 0.95)
    assert same is not None
    assert (same.low, same.high) == (0, 0)
    assert found.ranks("m.x", "higher", [1, 1]) == [(1, 1), (1, 1)]
    apart = drawn(values, few + values).difference(1, 0, "m.x", 0.5)
    assert apart is not None
    assert (apart.low, apart.high) == pytest.approx(tuple(np.quantile(values[:96], [0.25, 0.75])))
    found = drawn(values, many)
    assert found.difference(1, 0, "m.x", 0.95) is None
    assert found.ranks("m.x", "higher", [1, 2]) == []


def test_a_constant_difference_is_of_no_interval() -> None:
    assert drawn([1, 2, 3, 4], [2, 3, 4, 5]).difference(1, 0, "m.x", 0.95) is None
    same = drawn([1, 2, 3, 4], [1, 2, 3, 4]).difference(1, 0, "m.x", 0.95)
    assert same is not None
    assert (same.low, same.high) == (0, 0)
