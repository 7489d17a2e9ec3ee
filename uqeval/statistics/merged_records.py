"""Merged records of several runs: how each fact about the data, and each record of the inputs, is
joined."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from uqeval.errors import StoreError, cut

Records: TypeAlias = Sequence[Mapping[str, Any]]

#: Facts about the data that must be equal in all runs: tallies and settings depend on them.
EQUAL_FACTS = (
    "kind", "classes", "class_names", "samples", "reference", "inner_classes", "annotators",
    "choices", "names_digest", "units", "samples_of_maps",
)  # fmt: skip
#: Equal facts that a run may not know; it then has 0 or an empty text.
IF_KNOWN = ("names_digest", "units", "samples_of_maps")
#: Records of the inputs that must be equal where they are known: the facts of several sets have the
#: number of sets for that of classes, and those of maps no number of samples.
EQUAL_INPUTS = ("classes", "samples")
_NAMES_DIGEST = "names_digest"
#: In the record of stores that were joined, the list of them; what it has of each.
_PARTS, _OF_PART = "stores", ("path", "fingerprint", "frames")
_OTHER_STEPS = "differs between the runs"


def merged_facts(records: Records, of_shards: bool) -> dict[str, Any]:
    """Return the facts about the data of all runs together. `of_shards`: the runs are shards of
    one run, so facts about its whole data are in each of them."""
    first = dict(records[0])
    for name in IF_KNOWN:
        if name in first:
            first[name] = next(filter(None, (own.get(name) for own in records)), first[name])
    first.pop(_NAMES_DIGEST, None)  # of a shard
    merged: dict[str, Any] = {
        name: [v for record in records for v in record[name]] for name in ("names", "sizes")
    }
    groups = [record.get("groups") for record in records]
    merged["groups"] = (
        None if None in groups else [name for record in groups for name in record or ()]
    )
    merged["sets"] = [number for record in records for number in record.get("sets") or ()]
    merged["invalid"] = any(record.get("invalid") for record in records)
    # Runs save the counts that depend on these only if they have them.
    merged["halves"] = [
        name for name in first.get("halves", ())
        if all(name in record.get("halves", ()) for record in records)
    ]  # fmt: skip
    if tables := first.get("columns"):
        # The tables of the files are in the same order, under the paths that each run was given.
        of_files = zip(*(record["columns"].values() for record in records), strict=True)
        merged["columns"] = {
            path: {
                column: [cell for columns in of_table for cell in columns[column]]
                for column in tables[path]
            }
            for path, of_table in zip(tables, of_files, strict=True)
        }
    if first["video"] is not None:
        merged["video"] = _video([record["video"] for record in records], of_shards)
    return first | merged | {"where": _joined_texts(record["where"] for record in records)}


def _video(records: Records, of_shards: bool) -> dict[str, Any]:
    """Return the facts about a video; shards have the frames of the whole one."""
    lists = ("before", "sequences", "first")
    merged: dict[str, Any] = {
        name: [v for record in records for v in record[name]] for name in lists
    }
    merged["rows"] = _rows(records, of_shards)
    merged["flow_record"] = _flows([record.get("flow_record", {}) for record in records])
    if not of_shards:
        for name in ("frames", "unlabelled"):
            merged[name] = sum(record.get(name, 0) for record in records)
    return dict(records[0]) | merged


def _flows(records: Sequence[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return the record of each method of flow, with the paths of all runs."""
    merged = {}
    for method, first in records[0].items():
        flows = [record[method] for record in records if method in record]
        merged[method] = {
            name: _joined_texts(flow[name] for flow in flows if name in flow)
            if isinstance(value, str) else value
            for name, value in first.items()
        }  # fmt: skip
    return merged


def _rows(records: Records, of_shards: bool) -> list[dict[str, Any]]:
    """Return the record of each sequence, of which several runs may have pairs."""
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for record in records for row in record["rows"]):
        name = row["sequence"]
        if name not in rows:
            rows[name] = dict(row)
            continue
        for count in ("pairs",) if of_shards else ("frames", "pairs", "gaps"):
            rows[name][count] += row[count]
        if rows[name]["step"] != row["step"]:
            rows[name] |= {"step": None, "step_reason": _OTHER_STEPS}
    return list(rows.values())


def inputs_of_shards(records: Records, missing: Sequence[int]) -> dict[str, Any]:
    """Return the record of the inputs of a run from those of its shards: all have the same stores.

    `missing`: the numbers of missing shards.
    """
    merged = dict(records[0])
    shard = merged.pop("part")
    merged["options"] = merged["options"] | {"part": None}
    merged["evaluated"] = sum(record["evaluated"] for record in records)
    if missing:
        merged["missing_parts"] = {"numbers": list(missing), "of": shard["of"]}
    return merged


def inputs_of_runs(records: Records, where: str) -> dict[str, Any]:
    """Return the record of the inputs of several runs over different items.

    `where`: their files in messages. Raises `StoreError` for a record that cannot be joined.
    """
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(chain.from_iterable(records)):
        if name not in JOINS:
            raise StoreError(
                f"{where}: the inputs have the record {cut(name)}, which uqeval cannot join; "
                f"expected some of {', '.join(JOINS)}. Evaluate again with this version."
            )
        values = [record[name] for record in records if record.get(name) is not None]
        merged[name] = JOINS[name](values) if values else None
    return merged | {"merged_runs": sum(record.get("merged_runs", 1) for record in records)}


def _first(values: Sequence[Any]) -> Any:
    return values[0]


def _concatenated(values: Sequence[Sequence[Any]]) -> list[Any]:
    return list(chain.from_iterable(values))


def _distinct(stores: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of stores, each once. Fingerprints of uncompressed stores depend only on
    sizes, so a store is another one if its path is. Unknown fingerprints may be of other data."""
    records = {
        (store["path"], store["fingerprint"] or i): dict(store) for i, store in enumerate(stores)
    }
    return list(records.values())


def _predictions(values: Sequence[Records]) -> list[dict[str, Any]]:
    return _distinct(chain.from_iterable(values))


def _as_one(stores: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one record for stores of several runs: their paths, a digest of all fingerprints, and
    the list of them; the record itself if all runs have the same store.

    A run that was merged before has such a list, so the digest does not depend on the order in
    which runs were merged. Earlier versions recorded no list.
    """
    distinct = _distinct(part for store in stores for part in store.get(_PARTS) or [store])
    if len(distinct) == 1:
        return distinct[0]
    return {
        "path": _joined_texts(store["path"] for store in distinct),
        "fingerprint": digest_of([store["fingerprint"] for store in distinct]),
        _PARTS: [{name: s[name] for name in _OF_PART if name in s} for s in distinct],
    }


def _frames(values: Records) -> dict[str, Any]:
    """Return the record of the frames of several runs; it counts them."""
    joined = _as_one(values)
    counts = [store["frames"] for store in joined.get(_PARTS, [joined]) if "frames" in store]
    return joined | ({"frames": sum(counts)} if counts else {})


def _mask(values: Sequence[Any]) -> Any:
    """Return the record of masks of OUT pixels; one that is an id of the labels is the id."""
    if all(value == values[0] for value in values):
        return values[0]
    return _as_one(
        value if isinstance(value, Mapping) else {"path": str(value), "fingerprint": f"id {value}"}
        for value in values
    )


def _stores_by(key: str) -> Callable[[Sequence[Records]], list[dict[str, Any]]]:
    """Return a join of lists of stores, each with a key that says what it is for. Earlier versions
    recorded some without it, in the order of the command."""

    def joined(values: Sequence[Records]) -> list[dict[str, Any]]:
        groups: dict[Any, list[Mapping[str, Any]]] = {}
        for stores in values:
            for i, store in enumerate(stores):
                groups.setdefault(store.get(key, i), []).append(store)
        return [
            _as_one(stores) | {n: v for n, v in stores[0].items() if n == key}
            for stores in groups.values()
        ]

    return joined


def _sets(values: Sequence[Records]) -> list[dict[str, Any]]:
    """Return name and number of items of each set. A single OUT set has the name of its file, which
    each run has its own of; the merged one has the first."""
    if all(is_single_out(sets) for sets in values):
        first, *others = values
        values = [first, *(_called(sets, first) for sets in others)]
    items: dict[str, int] = {}
    for own in chain.from_iterable(values):
        items[own["name"]] = items.get(own["name"], 0) + own["items"]
    return [{"name": name, "items": count} for name, count in items.items()]


def is_single_out(sets: Any) -> bool:
    """Return whether the record of sets has one OUT set."""
    return isinstance(sets, Sequence) and len(sets) == 2


def _called(sets: Records, first: Records) -> list[dict[str, Any]]:
    """Return the records of sets with the names of others."""
    return [{**own, "name": other["name"]} for own, other in zip(sets, first, strict=True)]


def _options(values: Records) -> dict[str, Any]:
    """Return the options that are equal in all runs; of others the texts, such as paths."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(chain.from_iterable(values)):
        chosen = [options[name] for options in values if name in options]
        if all(value == chosen[0] for value in chosen):
            merged[name] = chosen[0]
        else:
            are_texts = all(isinstance(value, str) for value in chosen)
            merged[name] = _joined_texts(chosen) if are_texts else None
    return merged


#: How each record of the inputs is joined, from its values in the runs that have it. Values that
#: are the first run's are equal in all runs (`run_differences.difference`), or only say that a run
#: is partial.
JOINS: dict[str, Callable[[Any], Any]] = {
    "predictions": _predictions,
    "labels": _as_one,
    "target": _as_one,
    "reference": _as_one,
    "frames": _frames,
    "flow": _stores_by("direction"),
    "regions": _stores_by("region"),
    "ood_mask": _mask,
    "sets": _sets,
    "frame_names": _concatenated,
    "items": sum,
    "evaluated": sum,
    "options": _options,
    "classes": _first,
    "samples": _first,
    "ignore_index": _first,
    "units": _first,
    "missing_parts": _first,
    "merged_runs": sum,
}


def _joined_texts(texts: Iterable[Any]) -> str:
    return " + ".join(dict.fromkeys(map(str, texts)))


def digest_of(texts: Sequence[str | None]) -> str | None:
    """Return one fingerprint for several; if they are equal, that one. None if one is unknown."""
    distinct = list(dict.fromkeys(texts))
    if not all(texts):
        return None
    if len(distinct) == 1:
        return distinct[0]
    return hashlib.sha256("\n".join(map(str, distinct)).encode()).hexdigest()
