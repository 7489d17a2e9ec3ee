"""Saved states of several runs as those of one: what has to agree, and the order of items."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from uqeval.errors import UsageError
from uqeval.stores.states import SavedStates, tally_key

#: What a run was told of its data that has to be the same, as options.
_OPTIONS = ("label_map", "sum_tolerance", "nan_samples", "missing_chunks", "resize", "invalid")
#: And what is known of the data.
_FACTS = ("kind", "classes", "class_names", "samples", "reference")
_SHOWN = 5


class Joined:
    """The states of several files, the items of one after those of another; as `SavedStates`.

    Parts of one run come in the order of their numbers, whatever the order of `files`; `missing`
    are the numbers of those that are not there. Raises `UsageError` for what cannot be joined.
    """

    def __init__(self, files: Sequence[SavedStates]) -> None:
        self.files = _in_order(files)
        self.path = Path(" + ".join(str(file.path) for file in self.files))
        indices = [file.index for file in self.files]
        for file in self.files[1:]:
            _check_same(self.files[0], file)
            _check_stores(self.files[0], file)
        _refuse_shared(self.files)
        self.missing = _missing(self.files)
        held = [{tally_key(own) for own in file.parameters()} for file in self.files]
        self._held = set.intersection(*held)
        #: Of items whose states were checked: the evaluated pixels, and the tally that said so.
        self.evaluated: dict[tuple[int, str], tuple[int, str]] = {}
        self.index: dict[str, Any] = indices[0] | {
            "items": [name for own in indices for name in own["items"]],
            "records": [record for own in indices for record in own["records"]],
            "stamps": [stamp for own in indices for stamp in _stamps(own)],
            "fingerprint": _digest([own["fingerprint"] for own in indices]),
            "facts": _facts([own["facts"] for own in indices]),
            "inputs": _inputs([own["inputs"] for own in indices], self.missing)
            if len(indices) > 1 else indices[0]["inputs"],
            "settings": {k: v for k, v in indices[0]["settings"].items() if k != "intervals"},
            "fitted": _common([own["fitted"] for own in indices]),
            "numerics": _summed([own["numerics"] for own in indices]),
            "warnings": list(dict.fromkeys(text for own in indices for text in own["warnings"])),
            "partial": bool(self.missing) or any(
                own["partial"] and "part" not in own["inputs"] for own in indices
            ),
        }  # fmt: skip

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Whether all files have states of a tally of these parameters."""
        return tally_key(parameters) in self._held

    def states(self, parameters: Mapping[str, Any]) -> Iterator[bytes]:
        """The packed states of a tally, in the order of items. Raises `StoreError`."""
        return chain.from_iterable(file.states(parameters) for file in self.files)

    def parameters(self) -> list[dict[str, Any]]:
        """Id and parameters of every tally that all files have."""
        return [own for own in self.files[0].parameters() if self.holds(own)]

    def differ(self, key: str) -> bool:
        """Whether the files have other fitted numbers under a key."""
        return any(f.index["fitted"].get(key) != self.files[0].index["fitted"].get(key)
                   for f in self.files)  # fmt: skip


def _stamps(index: Mapping[str, Any]) -> list[str | None]:
    return index.get("stamps") or [None] * len(index["items"])


def part_of(file: SavedStates) -> dict[str, Any] | None:
    """Which part of a run a file has, if it has one."""
    found: dict[str, Any] | None = file.index["inputs"].get("part")
    return found


def _in_order(files: Sequence[SavedStates]) -> list[SavedStates]:
    """The files, parts by their number. Raises `UsageError` for parts that are of several runs."""
    parts = [(own, file) for file in files if (own := part_of(file)) is not None]
    if not parts:
        return list(files)
    first, of = parts[0][1], parts[0][0]["of"]
    for own, file in parts[1:]:
        if own["of"] != of:
            raise UsageError(
                f"{first.path} is one of {of} parts, {file.path} one of {own['of']}; join parts of "
                "one run."
            )
    if len(parts) < len(files):
        whole = next(file for file in files if part_of(file) is None)
        raise UsageError(
            f"{first.path} is a part of a run, {whole.path} is none; join the parts first."
        )
    return [file for _, file in sorted(parts, key=lambda own: int(own[0]["number"]))]


def _missing(files: Sequence[SavedStates]) -> list[int]:
    parts = [own for file in files if (own := part_of(file)) is not None]
    there = {int(own["number"]) for own in parts}
    return [k for k in range(1, 1 + max((own["of"] for own in parts), default=0)) if k not in there]


def _check_same(one: SavedStates, other: SavedStates) -> None:
    """Raise `UsageError` naming the first thing in which two runs differ."""
    a, b = one.index, other.index
    for what, x, y in _compared(a, b):
        if x != y:
            raise UsageError(
                f"{one.path} and {other.path} differ in {what}: {_short(x)} and {_short(y)}. Only "
                "runs of the same settings can be joined."
            )


def _check_stores(one: SavedStates, other: SavedStates) -> None:
    """Raise `UsageError` where two parts are not of the same stores."""
    if part_of(one) and one.index["fingerprint"] != other.index["fingerprint"]:
        raise UsageError(
            f"{one.path} and {other.path} are parts of other data: their stores differ. Evaluate "
            "all parts on the same stores (a copy keeps its times with `cp -p`)."
        )


def _compared(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield "the version of uqeval", a["uqeval_version"], b["uqeval_version"]
    for name in _FACTS:
        yield name.replace("_", " "), a["facts"][name], b["facts"][name]
    video, other = (own["facts"]["video"] or {} for own in (a, b))
    for name in ("models", "against", "named"):
        yield name, video.get(name), other.get(name)
    yield "ignore index", a["inputs"].get("ignore_index"), b["inputs"].get("ignore_index")
    given, told = (own["inputs"]["options"] for own in (a, b))
    for name in _OPTIONS:
        yield f"--{name.replace('_', '-')}", given.get(name), told.get(name)
    ours, theirs = (
        {k: v for k, v in own["settings"].items() if k != "intervals"} for own in (a, b)
    )
    yield "metrics", sorted(ours), sorted(theirs)
    for key, own in ours.items():
        for name in dict.fromkeys((*own, *theirs[key])):
            where = f"--{name.replace('_', '-')} of {key}"
            yield where, own.get(name), theirs[key].get(name)


def _refuse_shared(files: Sequence[SavedStates]) -> None:
    """Raise `UsageError` where an item is in two files."""
    seen: dict[str, SavedStates] = {}
    for file in files:
        shared = [name for name in file.index["items"] if name in seen]
        if shared:
            other = seen[shared[0]]
            shown = ", ".join(shared[:_SHOWN]) + (" …" if len(shared) > _SHOWN else "")
            raise UsageError(
                f"{other.path} and {file.path} share {len(shared)} items: {shown}. Each item may "
                "be counted once; stores without names of their own take them with --names."
            )
        seen |= dict.fromkeys(file.index["items"], file)


def _facts(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = dict(records[0])
    joined: dict[str, Any] = {
        name: [v for own in records for v in own[name]] for name in ("names", "sizes")
    }
    where = dict.fromkeys(own["where"] for own in records)
    groups = [own.get("groups") for own in records]
    joined["groups"] = None if None in groups else [name for own in groups for name in own or ()]
    if first["video"] is not None:
        first["video"] = _video([own["video"] for own in records])
    return first | joined | {"where": " + ".join(where)}


def _video(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    lists = ("before", "sequences", "first")
    joined = {name: [v for own in records for v in own[name]] for name in lists}
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for own in records for row in own["rows"]):
        known = rows.setdefault(row["sequence"], dict(row) | {"pairs": 0})
        known["pairs"] += row["pairs"]
    return dict(records[0]) | joined | {"rows": list(rows.values())}


def _inputs(records: Sequence[Mapping[str, Any]], missing: Sequence[int]) -> dict[str, Any]:
    """What was evaluated, all together."""
    found = dict(records[0])
    part = found.pop("part", None)
    found["options"] = found["options"] | {"part": None}
    found["evaluated"] = sum(own["evaluated"] for own in records)
    if part is not None:
        if missing:
            found["missing_parts"] = {"numbers": list(missing), "of": part["of"]}
        return found
    found["items"] = sum(own["items"] for own in records)
    found["predictions"] = _distinct([s for own in records for s in own["predictions"]])
    for name in ("labels", "target", "frames", "reference"):
        stores = _distinct([own[name] for own in records if own.get(name)])
        if len(stores) > 1:
            found[name] = {
                "path": " + ".join(str(store["path"]) for store in stores),
                "fingerprint": _digest([store["fingerprint"] for store in stores]),
            }
    return found


def _distinct(stores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return list({store["fingerprint"]: dict(store) for store in stores}.values())


def _common(fitted: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """By key, the fitted numbers; none where they are not the same everywhere."""
    return {
        key: own if all(other.get(key) == own for other in fitted) else {}
        for key, own in fitted[0].items()
    }


def _summed(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        key: {name: sum(own[key][name] for own in records) for name in counts}
        for key, counts in records[0].items()
        if all(key in own and counts.keys() == own[key].keys() for own in records)
    }


def _digest(texts: Sequence[str]) -> str:
    """One fingerprint of several; of the same ones, theirs."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == 1:
        return distinct[0]
    return hashlib.sha256("\n".join(distinct).encode()).hexdigest()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
