"""Saved states of several runs merged as one: checks of agreement, and the order of items."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from uqeval.arrays import Ints
from uqeval.errors import StoreError, UsageError, cut, listed
from uqeval.records.set_names import is_order_unknown, recorded_names
from uqeval.statistics.merged_records import (
    IF_KNOWN,
    digest_of,
    inputs_of_runs,
    inputs_of_shards,
    merged_facts,
)
from uqeval.statistics.run_differences import MAPS_VERSION, difference
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import DAMAGED, tally_key
from uqeval.stores.states.saved import SavedStates

_SHOWN = 5


class MergedStates:
    """The states of several files as one `SavedStates`: the items of each file after another.

    Parts of one run are in the order of their numbers, in any order of `files`. `missing`: the
    numbers of missing parts. Raises `UsageError` for files that cannot be merged.
    """

    def __init__(self, files: Sequence[SavedStates]) -> None:
        self.files = _in_order(files)
        self.path = Path(" + ".join(str(file.path) for file in self.files))
        indices = [file.index for file in self.files]
        for file in self.files[1:]:
            _check_same(self.files[0], file)
            _check_stores(self.files[0], file)
        for name in (*IF_KNOWN, MAPS_VERSION):  # the first file may not know it
            known = [
                file for file in self.files
                if file.index["facts"].get(name) or file.index.get(name)
            ]  # fmt: skip
            for file in known[1:] if known[:1] != self.files[:1] else ():
                _check_same(known[0], file)
        _refuse_other_round(self.files)
        _refuse_shared(self.files)
        self.missing = _missing(self.files)
        tally_keys = [
            {tally_key(parameters) for parameters in file.parameters()} for file in self.files
        ]
        self._held = set.intersection(*tally_keys)
        #: By view: the evaluated pixels of each item, as `checked_states` has them.
        self.evaluated: dict[str, tuple[Ints, str]] = {}
        #: By key, the packed total of a tally of which a run saves no states of items.
        self.packed_totals: dict[str, bytes] = {}
        #: How many passes shards of a run have counted; None if these are no shards.
        self.passes: int | None = indices[0].get("rounds", {}).get("passes")
        #: The warning about shards of several kinds of processors, if any.
        self.mixture = self._of_processors(indices)
        self.index: dict[str, Any] = indices[0] | {
            "items": [name for index in indices for name in index["items"]],
            "records": [record for index in indices for record in index["records"]],
            "stamps": [stamp for index in indices for stamp in _stamps(index)],
            "fingerprint": digest_of([index["fingerprint"] for index in indices]) or "",
            MAPS_VERSION: max(index.get(MAPS_VERSION) or 0 for index in indices) or None,
            "facts": merged_facts([index["facts"] for index in indices], self._are_shards),
            "inputs": self._inputs(),
            "settings": {k: v for k, v in indices[0]["settings"].items() if k != "intervals"},
            "fitted": _common([index["fitted"] for index in indices]),
            "numerics": _sum_records([index["numerics"] for index in indices]),
            "warnings": list(
                dict.fromkeys(
                    [w for index in indices for w in index["warnings"]]
                    + self._of_sets(indices)
                    + self.mixture
                )
            ),
            "last_digits": sorted({d for index in indices for d in index.get("last_digits", [])}),
            "partial": bool(self.missing)
            or any(index["partial"] and "part" not in index["inputs"] for index in indices),
        }
        self.index.pop("rounds", None)
        of_intervals = [index["draws"] for index in indices if index.get("draws")]
        if of_intervals:  # groups of any run are not forgotten
            groups = [own["group_by"] for own in of_intervals if own.get("group_by")]
            self.index["draws"] = _shared(of_intervals) | {"group_by": next(iter(groups), None)}

    @property
    def _are_shards(self) -> bool:
        return part_of(self.files[0]) is not None

    def _of_sets(self, indices: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return a warning if nothing tells whether the OUT sets of runs are in one order."""
        inputs = [index["inputs"] for index in indices]
        if self._are_shards or not any(is_order_unknown(inputs[0], own) for own in inputs[1:]):
            return []
        names = ", ".join(recorded_names(inputs[0])[1:])
        return [
            f"the OUT sets {cut(names)} are called by their order in each run, and were joined in "
            "this order. If it differs between the runs, the scores of single sets are wrong: "
            "evaluate again with OUT stores of different file names."
        ]

    def _of_processors(self, indices: Sequence[Mapping[str, Any]]) -> list[str]:
        """Return a warning if shards were counted on several kinds of processors, so that together
        they may not be one run to the bit. Earlier versions did not record it."""
        digits = [tuple(index.get("last_digits", [])) for index in indices]
        if not self._are_shards or len({own for shard in digits for own in shard}) < 2:
            return []
        numbers = [index["inputs"]["part"]["number"] for index in indices]
        first = digits[0]
        others = [n for n, own in zip(numbers, digits, strict=True) if own != first]
        which = f"shards {listed(others)} and {numbers[0]}" if others else "rounds of the shards"
        return [
            f"{which} were counted on different kinds of processors, whose exp and log differ in "
            "the last digits. So the last digits of results may differ from a run on one kind of "
            "machine. For equal digits, count all shards and rounds on machines with the same "
            "processor."
        ]

    def _inputs(self) -> dict[str, Any]:
        records = [file.index["inputs"] for file in self.files]
        if len(records) == 1 and (self.missing or not self._are_shards):
            return records[0]
        if self._are_shards:
            return inputs_of_shards(records, self.missing)
        return inputs_of_runs(records, cut(self.path))

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Return whether all files have states of a tally of these parameters."""
        return tally_key(parameters) in self._held

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        """Return the state of each item of a tally, as `SavedStates.states` does."""
        return chain.from_iterable(file.states(parameters, most) for file in self.files)

    def blocks(self, parameters: Mapping[str, Any]) -> Iterator[PackedItems]:
        """Return the packed states of a tally, in the order of items. Raises `StoreError`."""
        return chain.from_iterable(file.blocks(parameters) for file in self.files)

    def totals(self, key: str) -> list[bytes]:
        """Return the packed state of all items of each file together, of the tally of a key; none
        if a file does not have it. Raises `StoreError`."""
        if not all(file.has_total(key) for file in self.files):
            return []
        packed = []
        for file in self.files:
            try:
                packed.append(file.total(key))
            except DAMAGED as error:
                raise StoreError(
                    f"{cut(file.path)} has a damaged total: {cut(error)}. Run the evaluation again."
                ) from None
        return packed

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of every tally that all files have."""
        return [parameters for parameters in self.files[0].parameters() if self.holds(parameters)]

    def differ(self, key: str, names: Collection[str]) -> bool:
        """Return whether the files have other fitted numbers of these names under a key."""
        fitted = [{n: v for n, v in own.items() if n in names} for own in self._fitted(key)]
        return any(own != fitted[0] for own in fitted)

    def fitted_alike(self, key: str) -> dict[str, Any]:
        """Return the fitted numbers under a key that all files have."""
        return _shared(self._fitted(key))

    def _fitted(self, key: str) -> list[dict[str, Any]]:
        """Return the fitted numbers of each file under a key."""
        return [file.index["fitted"].get(key) or {} for file in self.files]


def _stamps(index: Mapping[str, Any]) -> list[str | None]:
    return index.get("stamps") or [None] * len(index["items"])


def part_of(file: SavedStates) -> dict[str, Any] | None:
    """Return which part of a run a file has, if it has one."""
    return file.index["inputs"].get("part")


def _in_order(files: Sequence[SavedStates]) -> list[SavedStates]:
    """Return the files, parts by their number. Raises `UsageError` for parts that are of several
    runs.
    """
    parts = [(shard, file) for file in files if (shard := part_of(file)) is not None]
    if not parts:
        return list(files)
    first, of = parts[0][1], parts[0][0]["of"]
    for shard, file in parts[1:]:
        if shard["of"] != of:
            raise UsageError(
                f"{first.path} is one of {of} shards, {file.path} one of {shard['of']}; join "
                "shards of one run."
            )
    if len(parts) < len(files):
        unsharded = next(file for file in files if part_of(file) is None)
        raise UsageError(
            f"{first.path} is a shard of a run, {unsharded.path} is not; join the shards first."
        )
    return [file for _, file in sorted(parts, key=lambda pair: int(pair[0]["number"]))]


def _missing(files: Sequence[SavedStates]) -> list[int]:
    parts = [shard for file in files if (shard := part_of(file)) is not None]
    present = {int(shard["number"]) for shard in parts}
    return [
        k
        for k in range(1, 1 + max((shard["of"] for shard in parts), default=0))
        if k not in present
    ]


def _check_same(first: SavedStates, second: SavedStates) -> None:
    """Raise a `UsageError` that names the first difference of two runs."""
    if (found := difference(first.index, second.index)) is not None:
        raise UsageError(
            f"{first.path} and {second.path} differ in {found}. Only runs of the same settings "
            "can be joined."
        )


def _check_stores(first: SavedStates, second: SavedStates) -> None:
    """Raise `UsageError` if two shards are of different stores."""
    if part_of(first) and first.index["fingerprint"] != second.index["fingerprint"]:
        raise UsageError(
            f"{first.path} and {second.path} are shards of different data: their stores differ. "
            "Evaluate all shards on the same stores (a copy keeps its times with `cp -p`)."
        )


def _shared(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the entries that all records have."""
    first, *others = records
    return {n: v for n, v in first.items() if all(own.get(n, ...) == v for own in others)}


def _refuse_other_round(files: Sequence[SavedStates]) -> None:
    """Raise `UsageError` for shards that are given twice, or have counted other passes."""
    first_files: dict[int, SavedStates] = {}
    for file in files:
        if (shard := part_of(file)) is None:
            return
        if shard["number"] in first_files:
            raise UsageError(
                f"{first_files[shard['number']].path} and {file.path} are both shard "
                f"{shard['number']} of {shard['of']}; give each shard once."
            )
        first_files[shard["number"]] = file
    first, *others = files
    rounds = first.index.get("rounds", {})
    for file in others:
        own = file.index.get("rounds", {})
        if own == rounds:
            continue
        passes = [record.get("passes") for record in (rounds, own)]
        if passes[0] == passes[1]:
            raise UsageError(
                f"{first.path} and {file.path} follow from different files of `uqeval merge "
                "--fit`. Count this round again for all shards, with one --fitted FILE."
            )
        last, behind = (first, file) if passes[0] > passes[1] else (file, first)
        shard = part_of(behind)
        assert shard is not None
        raise UsageError(
            f"{last.path} has counted {max(passes)} passes, {behind.path} only {min(passes)}: they "
            f"are of different rounds. Count shard {shard['number']} of {shard['of']} again, with "
            "the --fitted FILE of the others."
        )


def _refuse_shared(files: Sequence[SavedStates]) -> None:
    """Raise `UsageError` if an item is in two files."""
    first_files: dict[str, SavedStates] = {}
    for file in files:
        shared = [name for name in file.index["items"] if name in first_files]
        if shared:
            first_file = first_files[shared[0]]
            shared_names = ", ".join(shared[:_SHOWN]) + (" …" if len(shared) > _SHOWN else "")
            raise UsageError(
                f"{first_file.path} and {file.path} share {len(shared)} items: {shared_names}. "
                "An item may be counted only once. If the stores have no names, give different "
                "names with --names."
            )
        first_files |= dict.fromkeys(file.index["items"], file)


def _common(fitted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fitted numbers by key; none where they differ between files."""
    return {key: {} for key in fitted[0]} | _shared(fitted)


def _sum_records(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the sums of the counts that all runs have."""
    sums = {
        key: {
            name: sum(record[key][name] for record in records)
            for name in counts
            if all(name in record.get(key, {}) for record in records)
        }
        for key, counts in records[0].items()
    }
    return {key: counts for key, counts in sums.items() if counts}
