"""Whether several runs evaluated the same predictions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from uqeval.records.addresses import Address
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.entries import tally_key
from uqeval.tallies._contract import Tally

#: Maps of class ids: a tally of these alone does not depend on probabilities.
_IDS = {"label", "prediction"}


def is_same_model(runs: Sequence[Scoring], address: str) -> bool:
    """Return whether all runs counted a score from the same predictions: fingerprints are equal,
    and all states that the runs have in common, among them those of the score.

    Fingerprints alone do not show it, since an uncompressed store may have no checksums. Neither
    do results: those of other settings differ, and scores of counts stay if a prediction changes a
    little. States have a key with all parameters, and each family saves sums or ranks of values.
    """
    first, *others = runs
    fingerprints = {_fingerprints(run.index) for run in runs}
    if len(fingerprints) > 1 or None in fingerprints:
        return False
    if (keys := _keys_in_common(tuple(runs))) is None:
        return False
    if tallies := first.tallies_of(address):
        return keys.issuperset(tally_key(tally.parameters()) for tally in tallies)
    # Scores of whole items may be computed from a table, which no tally counts.
    key = Address.parse(address).key
    return all(_by_name(own, key) == _by_name(first, key) for own in others)


def _by_name(run: Scoring, key: str) -> dict[str, Any]:
    """Return the records of a result by the names of the items."""
    return {name: record.get(key) for name, record in zip(run.names, run.records, strict=True)}


@lru_cache(maxsize=4)
def _keys_in_common(runs: tuple[Scoring, ...]) -> frozenset[str] | None:
    """Return the keys of the tallies of which all runs have states; None if these states differ, or
    would not if the predictions did."""
    first, *others = runs
    tallies = [{tally_key(own): own for own in run.parameters()} for run in runs]
    common = frozenset.intersection(*map(frozenset, tallies))
    if not _shows_a_change(first, common):
        return None
    for other in others:
        is_same = sorted(other.names) == sorted(first.names) and all(
            _are_equal(first, other, tallies[0][key]) for key in sorted(common)
        )
        if not is_same:
            return None
    return common


def _are_equal(first: Scoring, other: Scoring, parameters: Mapping[str, Any]) -> bool:
    """Return whether two runs have equal states of a tally for each item, in any order of items."""
    both = first.states(parameters), other.states(parameters)
    if first.names == other.names:
        return all(own == further for own, further in zip(*both, strict=True))
    digests = (
        {name: hashlib.sha256(data).digest() for name, data in zip(run.names, states, strict=True)}
        for run, states in zip((first, other), both, strict=True)
    )
    return next(digests) == next(digests)


def _shows_a_change(run: Scoring, keys: Iterable[str]) -> bool:
    """Return whether some of the tallies with these keys show that predictions changed.

    The classes of items of several pixels do; but different models may predict equal classes of
    items of one pixel, where only tallies of values do.
    """
    if any(tuple(size) != (1, 1) for size in run.index["facts"]["sizes"]):
        return bool(keys)
    given = run.index["inputs"].get("predictions") or ()
    has_values = any(record.get("arrays", {}).keys() - {"predictions"} for record in given)
    return has_values and any(
        tally_key(tally.parameters()) in keys and _reads_values(tally) for tally in run.tallies
    )


def _reads_values(tally: Tally) -> bool:
    return not _IDS.issuperset(tally.inputs)


def _fingerprints(index: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the fingerprints of the predictions of a run; merged runs have those of each run. None
    if one is unknown.

    How many stores have one does not count: a merged run names a store once for each of its paths.
    """
    given: Sequence[Mapping[str, Any]] = index["inputs"].get("predictions") or [{}]
    fingerprints = [record.get("fingerprint") for record in given]
    return frozenset(map(str, fingerprints)) if all(fingerprints) else None
