"""Recompute how many independent pairs of a video an interval comes from, and its batches."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.records.addresses import Address
from uqeval.usecases.verify.video import MEANS

if TYPE_CHECKING:
    from uqeval.records.report import Report

#: From this number of sequences on, each is a unit.
_SEQUENCES = 10
#: The autocorrelation times in a batch, and the least and the largest number of batches.
_TIMES, _LEAST, _MOST = 5, 3, 10


def units_of_pairs(
    report: Report, items: Sequence[int], address: str, record: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return the fields that the record of an interval over some pairs should have, and whether
    these follow from the scores of the pairs.

    Only means over pairs do. Other scores have the batches of the record's own number of
    independent pairs.
    """
    values = _values(report, items, Address.parse(address))
    sequences = _sequences(report, items)
    expected: dict[str, Any] = {}
    if values is not None:
        own, lag1 = _independent(values, sequences)
        most = _of_headline(report, items)
        most *= _share_with_value(values, sequences, math.ceil(len(items) / most))
        expected = {"lag1": lag1, "effective": min(own, most)}
    effective = expected.get("effective", record.get("effective"))
    if isinstance(effective, int | float) and effective > 0:
        drawn, pairs = _drawn(effective, sequences), len(items)
        if values is not None and np.isfinite(values).any():
            pairs = int(np.isfinite(values).sum())
        expected["units.drawn"] = min(drawn, max(pairs, len(set(sequences))))
    return expected, values is not None


def _of_headline(report: Report, items: Sequence[int]) -> float:
    """Return the smallest number of independent pairs of the TC of any result, which no score
    exceeds."""
    found = [float(len(items))]
    for key in report.settings:
        records = [report.items[i].get(key) for i in items]
        own = [record.get("tc") if isinstance(record, dict) else None for record in records]
        values = np.array([math.nan if value is None else float(value) for value in own])
        if np.isfinite(values).any():
            found.append(_independent(values, _sequences(report, items))[0])
    return min(found)


def _share_with_value(values: Array, sequences: Sequence[str], length: int) -> float:
    """Return the share of stretches of so many pairs, of any sequence, in which a pair has a
    value; 1 if none has."""
    names = np.array(sequences)
    has_value = np.isfinite(values) if np.isfinite(values).any() else np.ones(len(values), bool)
    found = [
        bool(has_value[names == name][k : k + length].any())
        for name in dict.fromkeys(sequences)
        for k in range(0, int((names == name).sum()), length)
    ]
    return sum(found) / len(found)


def _independent(values: Array, sequences: Sequence[str]) -> tuple[float, float | None]:
    """Return how many independent pairs have the same information as those with a value, and the
    lag-1 autocorrelation."""
    has_value = np.isfinite(values)
    if not has_value.any():
        return float(len(values)), None
    own = [name for name, is_one in zip(sequences, has_value, strict=True) if is_one]
    time, lag1 = _autocorrelation(values[has_value], own)
    return len(own) / time, lag1


def _values(report: Report, items: Sequence[int], address: Address) -> Array | None:
    """Return the scores of pairs of which a score is the mean, NaN where a pair has none; None for
    other scores."""
    settings = report.settings.get(address.key) or {}
    field = MEANS.get(".".join(address.fields))
    if field is None or address.region or settings.get("average") == "pooled":
        return None
    records = [report.items[i].get(address.key) or {} for i in items]
    if not all(field in own for own in records):
        return None
    is_cut = [bool(settings.get("drop_cuts")) and bool(own.get("cut")) for own in records]
    every = zip(records, is_cut, strict=True)
    return np.array(
        [math.nan if cut or own[field] is None else float(own[field]) for own, cut in every]
    )


def _sequences(report: Report, items: Sequence[int]) -> list[str]:
    """Return the sequence of each pair, which all its records name."""
    named = [[v for v in report.items[i].values() if isinstance(v, dict)] for i in items]
    return [next((str(v["sequence"]) for v in own if "sequence" in v), "") for own in named]


def _autocorrelation(values: Array, sequences: Sequence[str]) -> tuple[float, float | None]:
    """Return the autocorrelation time (Geyer 1992) and the lag-1 autocorrelation, of all sequences
    together."""
    centred = np.nan_to_num(values - np.nanmean(values)) if np.isfinite(values).any() else values
    parts = [centred[np.array(sequences) == name] for name in dict.fromkeys(sequences)]
    sums = np.zeros(max(map(len, parts)) + 1)
    for own in parts:
        sums[: len(own)] += np.correlate(own, own, "full")[len(own) - 1 :]
    if not sums[0] > 1e-24 * max(float(np.nanmax(np.abs(values))), 1e-300) ** 2:
        return 1.0, None
    rho = sums / sums[0]
    pairs = [float(rho[k : k + 2].sum()) for k in range(0, len(rho), 2)]
    end = next((k for k, pair in enumerate(pairs) if pair <= 0), len(pairs))
    has_neighbours = max(map(len, parts)) > 1
    return max(2 * sum(pairs[:end]) - 1, 1.0), float(rho[1]) if has_neighbours else None


def _drawn(effective: float, sequences: Sequence[str]) -> int:
    """Return the number of units: sequences, or batches of which each sequence has one or more."""
    count = len(set(sequences))
    if count >= _SEQUENCES:
        return count
    batches = min(max(int(effective / _TIMES), _LEAST), _MOST)
    return min(max(batches, count), len(sequences))
