"""What of a gate and of a table of items cannot be, told before any store is read."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import resolved
from uqeval.errors import UsageError
from uqeval.gate import Rule
from uqeval.gate.baseline import refuse_unused_baseline
from uqeval.inputs import Inputs

if TYPE_CHECKING:
    from uqeval.report.folder import Named
    from uqeval.statistics.options import CutOptions


def refuse_same_folder(baseline: str | Path, folder: Path) -> None:
    """Raise `UsageError` for a baseline that the run would write over, also through links."""
    place = Path(baseline)
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    goals = {resolved(where) for where in (place, *(resolved(file).parent for file in files))}
    if resolved(folder) in goals or any(_same(goal, folder) for goal in goals):
        raise UsageError(
            f"--baseline {baseline} and the output, {folder}, are the same folder: the run would "
            "write over its baseline; name another with -o DIR, or keep the baseline elsewhere."
        )


def _same(one: Path, other: Path) -> bool:
    """Whether both are one folder, also where a file system does not tell cases apart."""
    return one.exists() and other.exists() and one.samefile(other)


def check_rules(
    rules: Sequence[Rule], stores: Sequence[str], names: Sequence[str],
    before: Sequence[Named], *, sliced: bool,
) -> None:  # fmt: skip
    """Refuse rules that no store of the file could hold: `names` are the `stores` that are read.

    `before`: the baseline's reports; `sliced`: whether there are slices at all. Raises
    `UsageError`.
    """
    if before:
        refuse_unused_baseline(rules)
    for rule in rules:
        store = rule.address.store
        if store is not None and store not in names:
            if store in stores:
                raise UsageError(
                    f"{rule.place}: is of the store {store!r}, which --store leaves out; take it "
                    "too, or give --no-gate."
                )
            near = difflib.get_close_matches(store, stores, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(stores)}."
            raise UsageError(f"{rule.place}: there is no store {store!r}; {hint}")
        if not before:
            for kind, _ in rule.limits.given():
                if "drop" in kind or "rise" in kind:
                    raise UsageError(
                        f"{rule.place}: {kind} needs a baseline; give --baseline REPORT, or "
                        "--no-gate."
                    )
        if rule.address.where and not sliced:
            raise UsageError(
                f"{rule.place}: is of a slice, and there are none; give a table of the items "
                "under slices:."
            )


def check_metrics(rules: Sequence[Rule], keys: Mapping[str, set[str]], some_failed: bool) -> None:
    """Refuse rules of metrics that no store evaluates; `keys`: the metrics of stores that can be.

    A rule of other stores is left alone, and one of any store where `some_failed`, which may be
    those that have the metric. Raises `UsageError`.
    """
    for rule in rules:
        address = rule.address
        if address.store is None and some_failed:
            continue
        asked = [name for name in keys if address.store in (None, name)]
        known = dict.fromkeys(key for name in asked for key in sorted(keys[name]))
        if asked and address.key not in known:
            near = difflib.get_close_matches(address.key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
            where = ", ".join(asked)
            raise UsageError(
                f"{rule.place}: names nothing in this file: no metric {address.key!r} is "
                f"evaluated of {where}; "
                f"{hint}"
            )


def metric_keys(inputs: Inputs, families: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The metrics, variants too, that the report of opened inputs will hold."""
    from uqeval.metrics import FAMILIES

    facts = inputs.facts()
    given = dict(families)
    if given and facts.kind == "classes" and not facts.reference:
        given.setdefault("segmentation", {})  # it stands beside all others
    return {key for name, own in given.items() for key in FAMILIES[name].settings(own, facts)}


def table_of(
    inputs: Inputs, cut: CutOptions, there: set[str]
) -> tuple[CutOptions | None, list[str]]:
    """What is read off a store whose items may have no rows `there`, and warnings of that.

    Raises `StoreError` where only some have one, `UsageError` for columns that are not there.
    """
    if there.isdisjoint(inputs.source.names):
        without = dataclasses.replace(cut, slices=None, slice_by=(), group_by=None)
        groups = f", and intervals without groups by {cut.group_by}" if cut.group_by else ""
        told = f"{cut.slices} has a row for none of its items: evaluated without slices{groups}."
        return without if without.wanted else None, [told]
    from uqeval.statistics.cut import check_cut

    check_cut(cut, inputs.source.names, inputs.groups)
    return cut, []
