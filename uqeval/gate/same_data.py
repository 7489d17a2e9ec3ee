"""Whether two reports were evaluated against the same data, and on the same pixels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from uqeval.errors import cut, listed, number_of
from uqeval.glossary import results_read
from uqeval.keys import Key, family_of
from uqeval.records.inputs import WHY_NONE, has_no_fingerprint
from uqeval.records.report import Report


def other_data(report: Report, baseline: Report, known: bool | None = None) -> str:
    """Return what the two were evaluated against that has other fingerprints, such as "labels" or
    "frames, saved flow"; empty if there is no difference. `known`: only data of which both have a
    fingerprint, or (False) only data of which one has none.
    """
    return listed(list(_differing(_stores(report), _stores(baseline), known)))


def other_maps(report: Report, baseline: Report, key: str, known: bool | None = None) -> str:
    """Return the maps of regions and the OOD mask with other fingerprints that a result depends on;
    empty if there is no difference. `known` as of `other_data`."""
    return listed(list(_differing(_maps(report, [key]), _maps(baseline, [key]), known)))


def truth_of_one(
    report: Report, baseline: Report, called: tuple[str, str] = ("this report", "the baseline")
) -> str:
    """Return a sentence, without its end, if only one of the two was evaluated with labels; else an
    empty text. `called`: what it calls the two."""
    labels = [_stores(own)["labels"] for own in (report, baseline)]
    if bool(labels[0]) == bool(labels[1]):
        return ""
    k = int(not labels[0])
    path = labels[k].get("path")
    where = f" ({cut(path)})" if path else ""
    return (
        f"{called[k]} was evaluated with labels{where}, and {called[1 - k]} without, so only one "
        "has the scores that need labels. Evaluate both with the same labels, or both without"
    )


def other_fingerprints(
    report: Report, baseline: Report, keys: Collection[str] = (), known: bool | None = None
) -> str:
    """Return sentences about all data with other fingerprints, without the last end; empty if there
    is no difference. `keys`: the results whose maps and masks it names too. `known` as of
    `other_data`. `truth_of_one` tells of labels that only one of the two has."""
    own = _stores(report) | _maps(report, keys)
    before = _stores(baseline) | _maps(baseline, keys)
    sentences = []
    for is_known in (True, False) if known is None else (known,):
        differing = _differing(own, before, is_known)
        names = [
            name + _paths(own[name], before[name])
            for name in differing if own[name] != {} != before[name]
        ]  # fmt: skip
        if names:
            sentences.append(_sentence(", ".join(names), is_known))
    return ". ".join(text[0].upper() + text[1:] if i else text for i, text in enumerate(sentences))


def _sentence(names: str, is_known: bool) -> str:
    if is_known:
        return (
            f"the fingerprints of {names} differ. Either the data differ, or they are the same in "
            "another format, or in a file that was copied or renamed; fingerprints do not tell "
            "which. Evaluate both against the same files"
        )
    return (
        f"whether the data are the same is unknown: a report has no fingerprint of {names}, "
        f"because {WHY_NONE}. They are treated as different. Copy the stores to a disk, and "
        "evaluate both against the same files"
    )


def _differing(
    own: Mapping[str, Any], before: Mapping[str, Any], known: bool | None = None
) -> Iterator[str]:
    for name, store in own.items():
        if name not in before:
            continue
        other = before[name]
        is_unknown = any(map(has_no_fingerprint, (store, other)))
        if known is is_unknown:
            continue
        if is_unknown or _fingerprint(store) != _fingerprint(other):
            yield name


def _fingerprint(store: Any) -> Any:
    return store.get("fingerprint") if isinstance(store, Mapping) else store


def _paths(*stores: Any) -> str:
    """Return the paths of stores in brackets; empty if one has no path."""
    paths = [store.get("path") if isinstance(store, Mapping) else None for store in stores]
    if not all(paths):
        return ""
    return f" ({' and '.join(dict.fromkeys(cut(path) for path in paths))})"


def _stores(report: Report) -> dict[str, Any]:
    """Return the records of what predictions are evaluated against, by its name. Labels or a target
    are always there (empty without), saved flow only if a score is of it.
    """
    inputs = report.inputs
    stores = {
        "labels": inputs.get("labels") or inputs.get("target") or {},
        "reference": inputs.get("reference"), "frames": inputs.get("frames"),
    }  # fmt: skip
    if any(isinstance(own, dict) and own.get("flow") == "file" for own in report.settings.values()):
        flows = {own.get("direction"): own for own in inputs.get("flow") or ()}
        stores |= {"saved flow": flows.get("flow"), "saved forward flow": flows.get("flow_forward")}
    return {name: own for name, own in stores.items() if isinstance(own, dict)}


def _maps(report: Report, keys: Collection[str]) -> dict[str, Any]:
    """Return the records of the maps of regions and of the OOD mask on which results depend, by
    name. A mask that is an id of the labels is the id."""
    keys = [own for key in keys for own, _ in with_results_read(report, key)]
    maps = {}
    for store in report.inputs.get("regions") or ():
        region = store.get("region")  # "depth" or "map:NAME"; earlier versions have none
        if any(f"{Key.parse(key).region}:".startswith(f"{region}:") for key in keys if region):
            maps["depth map" if region == "depth" else str(region)] = store
    if "ood_mask" in report.inputs and "ood" in map(family_of, keys):
        maps["OOD mask"] = report.inputs["ood_mask"]
    return maps


def with_results_read(report: Report, key: str) -> tuple[tuple[str, str], ...]:
    """Return the key of a result with no field, and the keys and fields of the results from whose
    items it is computed."""
    settings = report.settings.get(key)
    return ((key, ""), *results_read(key, settings if isinstance(settings, Mapping) else {}))


def is_void_in_pixels(report: Report, baseline: Report, key: str) -> bool:
    """Return whether the pixels that a result counts tell whether two void ids mean the same: both
    reports count them in each item, and either have labels with other fingerprints, so that each
    may have its own void id, or count equal numbers.
    """
    reports = report, baseline
    labels = [_stores(own)["labels"].get("fingerprint") for own in reports]
    if None in labels or not all(pixels_of(own, key, own.item_names) for own in reports):
        return False
    others = set(baseline.item_names)
    shared = [name for name in report.item_names if name in others]
    counted = [pixels_of(own, key, shared) for own in reports]
    return labels[0] != labels[1] or (bool(shared) and counted[0] == counted[1])


def has_equal_coverage(report: Report, baseline: Report, key: str) -> bool:
    """Return whether a result of a video counts the same share of the pixels of each pair that both
    reports have: then other void ids of the predictions are the same pixels, called otherwise."""
    covered = [
        {item["name"]: (item.get(key) or {}).get("coverage") for item in own.items}
        for own in (report, baseline)
    ]
    shared = covered[0].keys() & covered[1].keys()
    shares = [[own[name] for name in sorted(shared)] for own in covered]
    return bool(shared) and None not in shares[0] and shares[0] == shares[1]


class OtherPixels(NamedTuple):
    """In how many items two reports count other pixels, in words, and all that each counts."""

    where: str
    of_first: int
    of_other: int


def other_pixels(
    report: Report, baseline: Report, key: str, names: Sequence[str]
) -> OtherPixels | None:
    """Return how the pixels that a result counts in the items `names` differ in two reports; None
    if they do not, or if a report does not have them."""
    return differing_pixels(*(pixels_of(own, key, names) for own in (report, baseline)))


def differing_pixels(
    pixels: Sequence[int] | None, further: Sequence[int] | None
) -> OtherPixels | None:
    """Return how the pixels of the same items in two reports (`pixels_of`) differ; None if they do
    not, or if a report does not have them."""
    if pixels is None or further is None or pixels == further:
        return None
    differing = sum(own != other for own, other in zip(pixels, further, strict=True))
    where = f"in {differing:,} of {number_of(len(pixels), 'item')}"
    return OtherPixels(where, sum(pixels), sum(further))


def pixels_of(report: Report, key: str, names: Sequence[str]) -> list[int] | None:
    """Return the pixels that a result counts in each of the items `names`; None if the report does
    not have them."""
    records = {str(item.get("name")): item.get(key) for item in report.items}
    counts = [
        record.get("pixels") if isinstance(record := records[name], Mapping) else None
        for name in names
    ]
    known = [count for count in counts if isinstance(count, int)]
    return known if len(known) == len(counts) else None
