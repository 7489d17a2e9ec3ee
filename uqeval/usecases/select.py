"""Select the frames or images to label next: the worst first, without their neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from uqeval.errors import UsageError, cut, did_you_mean, is_number, listed, quoted
from uqeval.glossary import display_of
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.stores.video.sequences import split_name

#: Directions of fields that only items have; `Report.metrics` has the others.
_OF_ITEMS = {
    "lower": {"changed", "errors", "infinite", "loss", "n_ic", "risk", "score"},
    "higher": {
        "confidence", "coverage_visible", "frequency_weighted", "miou", "n_ac", "tc", "tc_no_warp",
        "tc_visible",
    },
}  # fmt: skip
#: Most scores that a message names.
_NAMED = 6


@dataclass(frozen=True)
class Candidate:
    """An item, its position (in frames of its sequence), its score and the reason."""

    name: str
    sequence: str
    place: Fraction
    value: float
    reason: str


@dataclass(frozen=True)
class Selection:
    """Selected items, worst first, and the number of items left out for each reason."""

    field: str
    chosen: list[Candidate]
    left_out: dict[str, int]


def select(
    report: Report,
    count: int = 20,
    *,
    field: str | None = None,
    min_gap: int = 1,
    per_sequence: int | None = None,
    min_coverage: float = 0.5,
    keep_cuts: bool = False,
) -> Selection:
    """Return the `count` worst items of a report by one of its fields.

    `field`: `<metric>.<field>` of the items, such as `pavpu.pavpu`, as an address of a gate rule or
    as a column of `--csv`; by default TC_t of a video, or else the first metric that has a
    direction. Items without a value are left out. In a video, the
    distance of two items is at least `min_gap` + 1 frames, because one bad frame lowers the scores
    of two pairs; at most `per_sequence` items are of one sequence. Scene cuts and pairs of which
    less than `min_coverage` can be compared are left out: the flow failed there, not the model.

    Raises `UsageError` for a field that no item has or that is neither better nor worse if it is
    high, and if no item remains.
    """
    field = field or _default_field(report)
    key, name = score_of_items(report, field)
    direction = direction_of(report, key, name)
    if direction is None:
        raise UsageError(
            f"--by {cut(field)}: neither high nor low values of it are worse, so it cannot rank "
            f"items; expected one of {listed(_ranking(report), _NAMED) or 'no other field'}."
        )
    sign = -1 if direction == "lower" else 1
    _refuse_of_video(report, field, key, min_gap, per_sequence, min_coverage, keep_cuts)
    steps = {row["sequence"]: row["step"] for row in report.results[key].get("sequences", ())}
    left_out: dict[str, int] = {}
    candidates = []
    for index, item in enumerate(report.items):
        record = item.get(key, {})
        reason = _unfit(record, name, min_coverage, keep_cuts)
        if reason:
            left_out[reason] = left_out.get(reason, 0) + 1
            continue
        sequence = record.get("sequence", "")
        name_parts = split_name(item["name"]) if steps else None
        place = Fraction(name_parts[1], steps.get(sequence) or 1) if name_parts else Fraction(index)
        candidates.append(
            Candidate(
                item["name"], sequence, place, record[name], _reason(report, key, name, record)
            )
        )
    candidates.sort(key=lambda candidate: sign * candidate.value)
    selected = _select_candidates(
        candidates, count, min_gap if steps else None, per_sequence, left_out
    )
    if not selected:
        reasons = (
            ", ".join(f"{reason}: {n}" for reason, n in left_out.items())
            or "the report has no items"
        )
        raise UsageError(f"no item can be chosen; {reasons}.")
    return Selection(field, selected, left_out)


def _refuse_of_video(
    report: Report, field: str, key: str, gap: int, most: int | None, coverage: float, cuts: bool
) -> None:
    """Raise `UsageError` for options of videos if the field does not belong to one."""
    if "sequences" in report.results[key]:
        return
    changed = {
        "--min-gap": gap != 1, "--per-sequence": most is not None,
        "--min-coverage": coverage != 0.5, "--keep-cuts": cuts,
    }  # fmt: skip
    typed = [name for name, is_given in changed.items() if is_given]
    if typed:
        have, them = ("has", "it") if len(typed) == 1 else ("have", "them")
        raise UsageError(
            f"{', '.join(typed)} {have} an effect only on scores of the pairs of a video, such as "
            f"--by temporal.tc, not on {field}. Leave {them} out."
        )


def _select_candidates(
    candidates: Iterable[Candidate],
    count: int,
    min_gap: int | None,
    per_sequence: int | None,
    left_out: dict[str, int],
) -> list[Candidate]:
    selected: list[Candidate] = []
    for candidate in candidates:
        if len(selected) == count:
            break
        same_sequence = [earlier for earlier in selected if earlier.sequence == candidate.sequence]
        if min_gap is not None and any(
            abs(o.place - candidate.place) <= min_gap for o in same_sequence
        ):
            reason = f"within {min_gap} frame{'s' * (min_gap != 1)} of a worse one"
        elif (
            per_sequence is not None and min_gap is not None and len(same_sequence) >= per_sequence
        ):
            reason = f"more than {per_sequence} of one sequence"
        else:
            selected.append(candidate)
            continue
        left_out[reason] = left_out.get(reason, 0) + 1
    return selected


def _unfit(record: dict[str, Any], name: str, min_coverage: float, keep_cuts: bool) -> str | None:
    if record.get(name) is None:
        return "undefined"
    if record.get("cut") and not keep_cuts:
        return "scene cut"
    if "previous" in record and record["coverage"] < min_coverage:
        return f"coverage below {min_coverage:g}"
    return None


def _reason(report: Report, key: str, name: str, record: dict[str, Any]) -> str:
    """Return in words why the item is bad, besides its score: for a pair of frames, the classes
    that fell most; empty for an image."""
    ious = record.get("iou")
    if not ious:
        return ""
    rows = report.results[key]["per_class"]
    usual = {row["name"]: row["iou"] for row in rows}
    nameless = {row["name"]: f"class {row['name']}:" for row in rows
                if row["name"] == str(row["class"])}  # fmt: skip
    fell = sorted((iou - (usual.get(c) or 0.0), c) for c, iou in ious.items())
    phrases = [
        f"{nameless.get(c, c)} {ious[c]:.2f} (usually {usual.get(c) or 0.0:.2f})"
        for d, c in fell[:2]
        if d < 0
    ]
    return f"after {record['previous']}: " + (", ".join(phrases) or "all classes as usual")


def direction_of(report: Report, key: str, name: str) -> str | None:
    """Return whether "higher" or "lower" values of a field of items are better; None if neither."""
    metric = report.metrics.get(f"{family_of(key)}.{name}")
    if metric is not None:
        return metric.get("direction")
    return next((own for own, names in _OF_ITEMS.items() if name in names), None)


def _ranking(report: Report) -> list[str]:
    """Return the addresses of the fields of items that have a direction."""
    return [address for address, own in _addresses(report).items() if direction_of(report, *own)]


def score_of_items(report: Report, field: str) -> tuple[str, str]:
    """Return the key and the field of a score such as `pavpu.pavpu`.

    Raises `UsageError` if no item has it.
    """
    addresses = _addresses(report)
    columns = {f"{key}.{name}": (key, name) for key, name in addresses.values()}
    if field not in addresses | columns:
        _refuse_slice(field, addresses)
        ranking = _ranking(report)
        expected = f"expected one of {listed(ranking, _NAMED)}."
        if not ranking:
            expected = "the report has no scores of items."
        hint = did_you_mean(field, ranking, expected, 0.8)
        raise UsageError(f"--by {quoted(field)}: no item has this score; {hint}")
    return (addresses | columns)[field]


def _refuse_slice(field: str, addresses: Collection[str]) -> None:
    """Raise `UsageError` for a score of a slice, such as `pavpu.pavpu@weather=night`."""
    try:
        address = Address.parse(field)
    except UsageError:
        return
    if address.where:
        score = address.within
        instead = f" --by {score} ranks all items." if score in addresses else ""
        raise UsageError(
            f"--by {quoted(field)} is a score of a slice, which cannot rank items.{instead} The "
            "page of the report (uqeval report) filters its items by slice."
        )


def _addresses(report: Report) -> dict[str, tuple[str, str]]:
    """Return the key and the field of each score that an item has, by its address."""
    scores = {
        (key, name): None
        for item in report.items
        for key, record in item.items()
        if isinstance(record, dict)
        for name, value in record.items()
        if is_number(value)
    }
    return {Address.of_key(key, (name,)).within: (key, name) for key, name in scores}


def _default_field(report: Report) -> str:
    addresses = _addresses(report)
    scores = set(addresses.values())
    keys: Sequence[str] = list(report.items[0]) if report.items else []
    for key in keys:
        if family_of(key) == "temporal" and (key, "tc") in scores:
            return f"{key}.tc"
    for key in keys:
        for address, metric in report.metrics.items():
            family, _, name = address.partition(".")
            ranks = family_of(key) == family and display_of(family).ranks_items
            if ranks and (key, name) in scores and metric["direction"]:
                return f"{key}.{name}"
    if choices := _ranking(report):
        raise UsageError(
            "none of the report's scores ranks its items by default; choose one with --by: "
            f"{listed(choices, _NAMED)}."
        )
    raise UsageError("the report has no scores of single items; give one with items.")
