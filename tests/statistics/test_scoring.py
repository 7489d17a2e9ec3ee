"""Scores read off saved states: any items, taken several times, by address."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from saved_runs import CLASS_NAMES, run, scoring, stack

import uqeval
from uqeval.metrics._columns import correlation
from uqeval.records.addresses import Address, addresses_of
from uqeval.records.lookup import Score, find
from uqeval.statistics.kinds import kind_of
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.stacked import Stacked
from uqeval.statistics.weighting import Subset, Weighting
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field
from uqeval.tallies._packing import LoadedItems

FAMILIES = ("pavpu", "calibration", "failure")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    report, path = run(tmp_path_factory.mktemp("run"), 6, FAMILIES)
    return report, scoring(path)


# Folding


@dataclass(frozen=True)
class Odd(Tally):
    """Sums, a minimum and a maximum, small and large."""

    id: ClassVar[str] = "odd"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ()

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "count": Field((3, 2), "int64"),
            "sum": Field((2,), "float64"),
            "many": Field((5000,), "int64"),
            "least": Field((5000,), "float64", "min"),
            "most": Field((2,), "float64", "max"),
        }

    def update(self, state: Any, maps: Any) -> None:
        raise NotImplementedError


def odd_states(items: int, huge: int = 0, infinite: bool = False) -> list[Any]:
    rng = np.random.default_rng(0)
    states = []
    for _ in range(items):
        state = Odd().empty()
        state["count"][:] = rng.integers(0, 1000, (3, 2)) + huge
        state["sum"][:] = rng.normal(size=2)
        places = rng.integers(0, 5000, 40)
        state["many"][places] = rng.integers(1, 9, 40)
        state["least"][places] = rng.normal(size=40)
        state["most"][:] = rng.normal(size=2)
        states.append(state)
    if infinite:
        states[0]["sum"][0] = np.inf
    return states


def stacked_states(states: list[Any]) -> Stacked:
    """States that are stacked without their checks."""
    counted = Odd().packing.unpack_items([Odd().pack(state) for state in states])
    return Stacked(Odd(), [LoadedItems(counted, None, None, None)], len(states))


def by_merging(states: list[Any], weights: Any) -> Any:
    total = Odd().empty()
    for state, times in zip(states, weights, strict=True):
        for _ in range(times):
            Odd().merge(total, state)
    return total


@pytest.mark.parametrize("huge", [0, 2**52 - 1, 2**55 + 1])
@pytest.mark.parametrize("infinite", [False, True])
def test_folds_as_merging_does(huge: int, infinite: bool) -> None:
    states = odd_states(5, huge, infinite)
    weights = np.array([[1, 1, 1, 1, 1], [0, 3, 0, 1, 1], [0, 0, 0, 0, 0], [2, 0, 0, 0, 3]])
    stacked = stacked_states(states)
    folded = stacked.folded(Weighting(weights))
    for row, own in enumerate(weights):
        found, expected = stacked.state(folded, row), by_merging(states, own)
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            assert found[name].dtype == values.dtype and found[name].shape == values.shape
            if name == "sum":
                np.testing.assert_allclose(found[name], values, rtol=1e-14, atol=1e-14)
            else:
                np.testing.assert_array_equal(found[name], values, name)


def test_a_set_taken_once_has_the_same_bits() -> None:
    states = odd_states(200)
    stacked = stacked_states(states)
    weights = np.ones(200, np.int64)
    weights[::3] = 0
    expected = by_merging(states, weights)
    folded = stacked.folded(Subset(np.flatnonzero(weights), 200))
    assert stacked.state(folded, 0)["sum"].tobytes() == expected["sum"].tobytes()


# Means and correlations


def test_means_are_over_what_is_defined() -> None:
    weights = np.array([[1, 1, 1], [0, 2, 1], [0, 0, 3]])
    found = Weighting(weights).mean(np.array([1.0, 3.0, np.nan]))
    assert found[:2].tolist() == [2.0, 3.0] and np.isnan(found[2])


@pytest.mark.parametrize("offset", [0.0, 0.9, 1e6])
def test_correlations(offset: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 30))
    x, y = offset + x * 1e-3, x + y
    y[4] = np.nan
    weights = rng.integers(0, 4, (50, 30))
    found = correlation(weights, x, y)
    for own, r in zip(weights, found, strict=True):
        kept = np.repeat(np.arange(30), own * np.isfinite(y))
        assert r == pytest.approx(np.corrcoef(x[kept], y[kept])[0, 1], abs=1e-6)


def test_correlations_that_are_none() -> None:
    x, y = np.array([1.0, 1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0, 4.0])
    weights = np.array([[1, 1, 1, 0], [3, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 1]])
    found = correlation(weights, x, y)
    assert np.isnan(found[:3]).all() and np.isfinite(found[3])
    almost = 0.1 + np.array([0, 1e-18, 0, 1e-18])
    assert np.isnan(correlation(np.ones((1, 4), np.int64), almost, y)).all()


# Scores


def test_the_whole_set_is_the_report(saved: tuple[Any, Any]) -> None:
    report, own = saved
    found = own.whole()
    addresses = list(dict(addresses_of(report.results)))
    ranked = {"failure." + f for f in ("auroc", "auprc_error", "aurc", "augrc")}
    for address in addresses:
        value = find(report, Address.parse(address))
        assert isinstance(value, Score), address
        column = own.table(Subset(range(own.items), own.items), [address])[0, 0]
        if value.value is None or (kind_of(address) is None and np.isnan(column)):
            assert np.isnan(column)  # settings, and where a curve peaks, are no scores
        elif address.startswith("failure"):
            if np.isfinite(column):  # of classes no ranks are kept
                assert column == pytest.approx(value.value, abs=2e-3), address
        else:
            assert column == pytest.approx(value.value, rel=1e-12, abs=1e-15), address
    assert found["pavpu"].keys() == report.results["pavpu"].keys()
    assert ranked & set(addresses)


def test_scores_that_the_states_give_are_found_together(
    saved: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a thousand classes take one pass over the states, not a thousand."""
    report, own = saved
    addresses = list(dict(addresses_of(report.results)))
    everything = Subset(range(own.items), own.items)
    expected = {
        address: own.exact(address) is None
        or bool(np.isfinite(own.table(everything, [address])[0, 0]))
        for address in addresses
    }
    score, calls = Scoring.scores, []

    def counted(self: Scoring, sets: Any, texts: Any, states_of: Any = None) -> Any:
        calls.append(texts)
        return score(self, sets, texts, states_of)

    monkeypatch.setattr(Scoring, "scores", counted)
    monkeypatch.setattr(own, "_given", {})
    assert {address: own.gives(address) for address in addresses} == expected
    assert set(expected.values()) == {True, False}
    assert len(calls) <= len({own.key_of(address) for address in addresses})


@pytest.mark.parametrize("items", [[0], [1, 4], [5, 3, 0]])
def test_some_items_are_a_run_over_them(saved: tuple[Any, Any], items: list[int]) -> None:
    report, own = saved
    p, y = stack(6)
    order = sorted(items)
    settings = {"threshold": report.results["pavpu"]["uncertainty_threshold"]}
    expected = uqeval.evaluate(
        p[order], y[order], {"pavpu": settings},
        names=[f"item_{i}" for i in order],
    ).results  # fmt: skip
    found = own.whole(items)
    fields = ("pavpu", "surplus", "n_ac", "n_iu", "phi", "p_certain", "per_class")
    assert {f: found["pavpu"][f] for f in fields} == {f: expected["pavpu"][f] for f in fields}
    assert found["segmentation"] == expected["segmentation"]


def test_resamples_are_what_their_items_say(saved: tuple[Any, Any]) -> None:
    _, own = saved
    weights = np.array([[0, 2, 0, 0, 1, 3], [1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]])
    fields = ("n_ac", "n_au", "n_ic", "n_iu")
    table = own.table(
        Weighting(weights), [f"pavpu.{f}" for f in fields] + ["pavpu.pavpu", "no.such"]
    )
    ac, au, ic, iu, pavpu, none = table.T
    each = np.array([
        [own.whole([i])["pavpu"][f] for f in fields] for i in range(own.items)
    ])  # fmt: skip
    np.testing.assert_array_equal(table[:, :4], weights @ each)
    np.testing.assert_array_equal(pavpu[:2], (ac + iu)[:2] / (ac + au + ic + iu)[:2])
    assert np.isnan(pavpu[2]) and np.isnan(none).all()


def test_peaks_are_those_of_the_curves(saved: tuple[Any, Any]) -> None:
    _, own = saved
    for items in ([1, 2], [3, 5], [0, 1, 2, 3, 4, 5]):
        whole = own.whole(items)["pavpu"]
        weights = np.zeros((1, 6), np.int64)
        weights[0, items] = 1
        names = ["pavpu_peak.value", "surplus_peak.value", "surplus_auc"]
        found = own.table(Weighting(weights), [f"pavpu.{name}" for name in names])[0]
        expected = [(whole[f"{f}_peak"] or {}).get("value") for f in ("pavpu", "surplus")]
        expected.append(whole["surplus_auc"])
        np.testing.assert_allclose(found, np.array(expected, float), rtol=1e-14)
    assert np.isfinite(found).all()


# Addresses


def test_addresses_are_those_of_the_gate() -> None:
    rows = [{"class": i, "name": n, "pavpu": 0.1 * i} for i, n in enumerate(CLASS_NAMES)]
    rows += [{"class": 7, "name": "twice", "pavpu": 0.7}, {"class": 8, "name": "twice", "pavpu": 1}]
    results = {
        "pavpu": {"per_class": rows, "pavpu": 0.5, "x_reason": "no", "peak": {"value": 0.25}},
        "pavpu[window=7]": {"pavpu": 0.75},
    }
    report = uqeval.Report(uqeval_version="0", inputs={}, settings={}, results=results, items=[])
    found = dict(addresses_of(results))
    for text in found:
        address = Address.parse(text)
        assert address.within == text and address.store is None and not address.where
        value = find(report, address)
        assert isinstance(value, Score) and value.address.within == text
    values = {text: find(report, Address.parse(text)).value for text in found}
    assert values["pavpu.peak.value"] == 0.25 and values["pavpu[window=7].pavpu"] == 0.75
    assert values["pavpu.per_class.8.pavpu"] == 1 and len(found) == 9
