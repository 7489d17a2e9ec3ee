"""Whether reports are of the same data: the same labels, options, thresholds and sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

from uqeval.errors import UsageError, listed, quoted
from uqeval.gate.other_sets import unknown_sets
from uqeval.gate.other_settings import all_other_settings, other_input_option, other_threshold
from uqeval.gate.same_data import (
    differing_pixels,
    other_data,
    other_fingerprints,
    other_maps,
    pixels_of,
    truth_of_one,
)
from uqeval.records.folder import Named
from uqeval.records.inputs import WHY_NONE, has_no_fingerprint


def differences_of_runs(models: Sequence[Sequence[Named]]) -> Iterator[str]:
    """Yield a warning for each difference between the runs of models that scores do not show.

    `models`: the reports of the trainings of each.
    """
    reports = [named for of_model in models for named in of_model]
    yield from _once(reports, _of_data)
    yield from _of_other_items(reports)
    for named in reports:
        if named.report.partial:
            yield f"{named.path}: partial, not all items were evaluated"
    yield from _once(reports, _of_options)
    for of_model in models:
        yield from _of_copies(of_model)


def _once(
    reports: Sequence[Named], differences: Callable[[Named, Named], Iterator[tuple[str, str]]]
) -> Iterator[str]:
    """Yield the `differences` of each two reports: pairs of what differs and a sentence.

    Two reports may both agree with a third that lacks a result, so each pair is compared. A
    sentence about two reports that others name already is left out.
    """
    named: dict[str, set[int]] = {}
    for (m, first), (n, second) in combinations(enumerate(reports), 2):
        for what, sentence in differences(first, second):
            before = named.setdefault(what, set())
            if not before >= {m, n}:
                before |= {m, n}
                yield sentence


def _of_data(first: Named, second: Named) -> Iterator[tuple[str, str]]:
    """Yield how the labels, frames, saved flow … of two reports differ."""
    one, other = first.report, second.report
    if truth := truth_of_one(one, other, (str(first.path), str(second.path))):
        yield "labels of one", truth
    keys = _common(first, second)
    for known in (True, False):
        sentence = other_fingerprints(one, other, keys, known)
        if sentence and (not known or one.item_names == other.item_names):
            # A report without a fingerprint hides no difference between two others.
            what = f"{_differing(first, second, known)}: {known}"
            yield what, f"{first.path} and {second.path}: {sentence}"


def _of_other_items(reports: Sequence[Named]) -> Iterator[str]:
    """Yield a warning for each kind of data of which fingerprints say nothing, because reports have
    other items or another order; it lists all these reports."""
    of_data: dict[str, dict[int, None]] = {}
    items = [named.report.item_names for named in reports]
    for (m, first), (n, second) in combinations(enumerate(reports), 2):
        if items[m] == items[n]:
            continue
        keys = _common(first, second)
        if other_fingerprints(first.report, second.report, keys, known=True):
            names = _differing(first, second, known=True)
            of_data.setdefault(names, {}).update({m: None, n: None})
    for names, numbers in of_data.items():
        paths = [str(reports[m].path) for m in sorted(numbers)]
        yield (
            f"{', '.join(paths[:-1])} and {paths[-1]} differ in their items, or in the order of "
            f"them. Whether they have the same {names} is unknown, because fingerprints of {names} "
            "depend on the items"
        )


def _common(first: Named, second: Named) -> list[str]:
    return [key for key in first.report.results if key in second.report.results]


def _differing(first: Named, second: Named, known: bool) -> str:
    """Return the data of which two reports have other fingerprints; empty without any. `known` as
    of `other_data`."""
    one, other = first.report, second.report
    maps = [other_maps(one, other, key, known) for key in _common(first, second)]
    return listed(list(dict.fromkeys(filter(None, [other_data(one, other, known), *maps]))))


def _of_options(first: Named, other: Named) -> Iterator[tuple[str, str]]:
    """Yield which input options and thresholds of two reports differ."""
    if (differs := other_input_option(first.report, other.report)) is not None:
        name, value, other_value = differs
        yield (
            name,
            f"{name} is {quoted(value)} in {first.path} and {quoted(other_value)} in {other.path}. "
            "Scores may differ for this reason alone",
        )
    for key in sorted(first.report.results.keys() & other.report.results.keys()):
        if (values := other_threshold(first.report, other.report, key)) is not None:
            yield (
                key,
                f"{key}: the threshold is {values[0]} in {first.path} and {values[1]} in "
                f"{other.path} (--threshold-from)",
            )
        if text := unknown_sets(first.report, other.report, key):
            yield "sets", f"{first.path} and {other.path}: {key}: {text}"


def is_same_run(first: Named, second: Named, key: str) -> bool:
    """Return whether two reports have a result of the same items, predictions, data and settings.

    Fingerprints of uncompressed stores are those of the sizes, so the paths must be equal too.
    """
    one, other = first.report, second.report
    predictions = one.inputs.get("predictions") or [{"fingerprint": None}]
    return (
        one.item_names == other.item_names
        and predictions == other.inputs.get("predictions")
        and not any(map(has_no_fingerprint, predictions))
        and not (other_data(one, other) or other_maps(one, other, key))
        and not any(all_other_settings(one, other, key))
        and other_input_option(one, other) is None
    )


def of_other_pixels(
    models: Sequence[Sequence[Named]], base: int, key: str, names: Sequence[str]
) -> list[str | None]:
    """Return for each model why a result cannot be compared with that of model `base`: it is of
    other pixels, or was evaluated against other data. None if it can be compared.

    Two models that each seem comparable with `base`, but not with each other, are not comparable:
    at least one of them differs from `base`, and it is unknown which. `names`: the common items.
    """
    # Each report is in many pairs, and to count its pixels takes time for each item.
    counted = [
        [
            _Counted(own, pixels_of(own.report, key, names))
            for own in of_model if key in own.report.results
        ]
        for of_model in models
    ]  # fmt: skip

    def reason(*of_models: Sequence[_Counted]) -> str | None:
        pairs = (_other_pixels(*pair, key) for pair in combinations(chain(*of_models), 2))
        return next(filter(None, pairs), None)

    reasons = [
        reason(counted[base], *([] if m == base else [of_model]))
        for m, of_model in enumerate(counted)
    ]
    like_base = [m for m, text in enumerate(reasons) if text is None and m != base]
    for m, n in combinations(like_base, 2):
        if text := reason(counted[m], counted[n]):
            reasons[m], reasons[n] = reasons[m] or text, reasons[n] or text
    return reasons


class _Counted(NamedTuple):
    """A report, and the pixels that a result counts in each common item (`pixels_of`)."""

    named: Named
    pixels: Sequence[int] | None


def _other_pixels(one: _Counted, further: _Counted, key: str) -> str | None:
    first, other = one.named, further.named
    reports = (first.report, other.report)
    if (pixels := differing_pixels(one.pixels, further.pixels)) is not None:
        return (
            f"scored on other pixels {pixels.where}: {pixels.of_first:,} in {first.path} and "
            f"{pixels.of_other:,} in {other.path}"
        )
    # Labels that only one of them has make other pixels void, which the counts above show.
    has_truth, other_has_truth = (
        bool(own.inputs.get("labels") or own.inputs.get("target")) for own in reports
    )
    for known in (True, False):
        truth = other_data(*reports, known) if has_truth == other_has_truth else ""
        differing = ", ".join(filter(None, [truth, other_maps(*reports, key, known)]))
        if not differing:
            continue
        if not known:
            return (
                f"whether {differing} are the same in {first.path} and {other.path} is unknown, "
                f"because {WHY_NONE}"
            )
        if first.report.item_names == other.report.item_names:
            return f"the fingerprints of {differing} differ in {first.path} and {other.path}"
    return None


def _of_copies(of_model: Sequence[Named]) -> Iterator[str]:
    """Yield a warning if two trainings of a model have equal results."""
    for first, second in combinations(of_model, 2):
        if first.report.results == second.report.results:
            yield (
                f"{first.path} and {second.path} have equal scores, so they may be copies of one "
                "training. Copies make the interval over trainings too narrow: give --replicates "
                "one report of each training"
            )
            return


def refuse_other_sets(reports: Sequence[Named], shared: Collection[str], place: str) -> None:
    """Raise `UsageError` if no item out of distribution is among the `shared` items.

    `place`: the beginning of the message.
    """
    lost: dict[str, None] = {}
    for named in reports:
        inside, *sets = [str(own.get("name")) for own in named.report.inputs.get("sets") or [{}]]
        # Items of a merged report have the name of the set in their own run.
        out = {
            str(item["name"]) for item in named.report.items if _set_of(item) not in (None, inside)
        }
        if not out or not out.isdisjoint(shared):
            return
        lost |= dict.fromkeys(sets)
    raise UsageError(
        f"{place}the models have no common item out of distribution; their OUT sets are "
        f"{listed(list(lost))}. Items of a store without names are called after its file: give "
        "the stores names of items, or OUT files of the same name."
    )


def _set_of(item: Mapping[str, Any]) -> str | None:
    """Return the set of an item, as a record of out-of-distribution detection names it."""
    return next((r["set"] for r in item.values() if isinstance(r, Mapping) and "set" in r), None)
