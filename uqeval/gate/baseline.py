"""The baseline of each report, and whether the two are of the same items and data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from shlex import quote

from uqeval.errors import UsageError, all_listed, cut, listed
from uqeval.gate.other_sets import unknown_sets
from uqeval.gate.rules import Rule
from uqeval.gate.same_data import (
    other_data,
    other_fingerprints,
    other_maps,
    other_pixels,
    truth_of_one,
)
from uqeval.records.class_names import class_names, report_called
from uqeval.records.folder import Named
from uqeval.records.report import Report


@dataclass(frozen=True)
class Pair:
    """The baseline of a report, and how the items or labels of the two differ (empty: they do not).

    `unknown`: why the labels cannot be compared; empty if they can.
    """

    baseline: Named
    difference: str
    unknown: str


def compares(rule: Rule) -> bool:
    """Return whether a rule limits a change against a baseline."""
    return any("drop" in kind or "rise" in kind for kind, _ in rule.limits.kinds_and_values())


def refuse_unused_baseline(rules: Sequence[Rule]) -> None:
    """Raise `UsageError` if no rule limits a change."""
    if not any(map(compares, rules)):
        raise UsageError(
            "--baseline has no effect: no rule limits a change against it (max_drop, max_rise, "
            "max_drop_relative, max_rise_relative). Add such a limit, or leave --baseline out."
        )


def pairs_of(reports: Sequence[Named], baseline: Sequence[Named]) -> dict[str, Pair]:
    """Return the baseline of each report by its name.

    Reports are matched by name. A single report and a single baseline need no common name.
    Raises `UsageError` if no name matches, or if a baseline is the report itself.
    """
    if len(reports) == len(baseline) == 1:
        matched = {reports[0].name: baseline[0]}
    else:
        baselines = {named.name: named for named in baseline}
        matched = {
            named.name: baselines[named.name] for named in reports if named.name in baselines
        }
        if baseline and not matched:
            raise UsageError(
                f"no baseline has the name of a report: the reports are "
                f"{all_listed(n.name for n in reports)}, the baselines "
                f"{all_listed(baselines)}. Give a folder of baselines with the same file names."
            )
    now = {named.name: named for named in reports}
    for name, base in matched.items():
        if now[name].is_same_file(base):
            raise UsageError(
                f"--baseline {cut(base.path)} is the report to judge itself, so each change would "
                "be 0. Give an earlier report, such as that of the released model."
            )
    return {name: _pair(now[name].report, base) for name, base in matched.items()}


def without_report(
    baseline: Sequence[Named], pairs: Mapping[str, Pair], failed_stores: Collection[str]
) -> str:
    """Return a warning that names the baselines of stores that have no report, and did not fail;
    empty if there are none."""
    matched = {pair.baseline.name for pair in pairs.values()}
    alone = [own for own in baseline if own.name not in {*matched, *failed_stores}]
    if not alone:
        return ""
    names = listed([own.name for own in alone])
    them = "it" if len(alone) == 1 else "them"
    return (
        f"the baseline has {names}, of which there is no report to judge, so no rule judges "
        f"{them}. Evaluate {them}, or remove {them} from the baseline: "
        f"rm {' '.join(quote(str(own.path)) for own in alone)}"
    )


def _pair(report: Report, base: Named) -> Pair:
    """Return the baseline of a report, with its names of classes and what differs in the items and
    their ground truth."""
    base = replace(base, report=report_called(base.report, class_names(report.results)))
    names = report.item_names
    baseline_names = base.report.item_names
    if sorted(names) != sorted(baseline_names):
        common = len(set(names) & set(baseline_names))
        difference = (
            f"the baseline has other items: {len(baseline_names)} items, {len(names)} in this "
            f"report, {common} in both."
        )
        return Pair(base, difference, "")
    difference, unknown = _other_data(report, base.report, other_data(report, base.report))
    return Pair(base, difference, unknown)


def pair_of_result(pair: Pair, report: Report, key: str) -> Pair:
    """Return the baseline for one result: the maps of regions, the OOD mask and the pixels of the
    result may differ too."""
    if pair.difference:
        return pair
    baseline = pair.baseline.report
    if (pixels := other_pixels(report, baseline, key, report.item_names)) is not None:
        difference = (
            f"{key}: the baseline was scored on other pixels {pixels.where}: {pixels.of_other:,}, "
            f"and {pixels.of_first:,} in this report."
        )
        return replace(pair, difference=difference)
    difference, unknown = _other_data(report, baseline, other_maps(report, baseline, key), key)
    if not (difference or unknown) and (text := unknown_sets(report, baseline, key)):
        unknown = f"{text}."
    difference, unknown = (text and f"{key}: {text}" for text in (difference, unknown))
    return replace(pair, difference=difference, unknown=unknown or pair.unknown)


def _other_data(report: Report, baseline: Report, other: str, *keys: str) -> tuple[str, str]:
    """Return how data that are `other` differ, and why this is unknown; empty if they do not."""
    if not other:
        return "", ""
    if not keys and (sentence := truth_of_one(report, baseline)):
        further = filter(None, [other_fingerprints(report, baseline)])
        return "".join(f"{own}. " for own in (sentence, *further)).rstrip(), ""
    if report.item_names == baseline.item_names:
        return f"{other_fingerprints(report, baseline, keys)}.", ""
    if sentence := other_fingerprints(report, baseline, keys, known=False):
        return f"{sentence}.", ""
    return "", (
        f"the baseline has its items in another order. Whether it has the same {other} is unknown, "
        f"because fingerprints of {other} depend on the order."
    )
