"""Check the rules of a gate and the table of items before any store is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from uqeval.config import RulesFile
from uqeval.disk.files import resolved
from uqeval.errors import UsageError, all_listed, cut, did_you_mean, joined, quoted
from uqeval.gate import NotEvaluated, Rule
from uqeval.gate.baseline import refuse_unused_baseline
from uqeval.inputs import Inputs
from uqeval.keys import family_of
from uqeval.records.folder import Named
from uqeval.records.lookup import nearest_key
from uqeval.records.report import Report
from uqeval.records.suggestions import no_such_value, with_slash
from uqeval.usecases.plans import with_companions
from uqeval.usecases.run.outcome import RunSettings


def refuse_same_folder(baseline: str | Path, folder: Path) -> None:
    """Raise `UsageError` for a baseline that the run would write over, also through links."""
    place = Path(baseline)
    files = sorted(place.glob("*.json")) if place.is_dir() else [place]
    goals = {resolved(path) for path in (place, *(resolved(file).parent for file in files))}
    if resolved(folder) in goals or any(_is_same_path(goal, folder) for goal in goals):
        raise UsageError(
            f"--baseline {baseline} and the output, {cut(folder)}, are the same folder: the run "
            "would write over its baseline; name another with -o DIR, or keep the baseline "
            "elsewhere."
        )


def refuse_shared_fits(run_settings: RunSettings, names: Sequence[str]) -> None:
    """Raise `UsageError` for one file of fits of several stores."""
    path = run_settings.shared.get("fitted")
    if path is not None and len(names) > 1 and not Path(path).is_dir():
        raise UsageError(
            f"--fitted {cut(path)}: the run has {len(names)} stores, each with its own fit. Give "
            f"a folder with {all_listed(f'{name}.json' for name in names)}, or --store."
        )


def is_counted(fitted: Path | None) -> bool:
    """Return whether all passes of a store are counted, by its file of fits: a shard has nothing to
    do. Raises `StoreError`."""
    from uqeval.stores.states.fitted import FittedFile

    return fitted is not None and not FittedFile.load(fitted).unfinished


def _is_same_path(first: Path, second: Path) -> bool:
    """Return whether both are the same folder, also on file systems that ignore case."""
    return first.exists() and second.exists() and first.samefile(second)


class RunRules:
    """The rules of a run: those that can be `judged`, and those that cannot, with the reason.

    A rule that cannot be judged does not end the run as long as another one can be. `sha256`: of
    their file when it was read; None without rules.
    """

    def __init__(self, file: RulesFile | None, tell: Callable[[str], None]) -> None:
        self.judged = [] if file is None else list(file.rules)
        self.sha256 = None if file is None else file.sha256
        self.unjudged: list[NotEvaluated] = []
        self._tell, self._told = tell, 0

    def check(
        self, stores: Sequence[str], names: Sequence[str], before: Sequence[Named], *, sliced: bool
    ) -> None:
        """Remove rules that cannot match a store of the file; `names`: the `stores` to evaluate.

        `before`: the baseline's reports; `sliced`: whether there are slices. Raises `UsageError` if
        no rule remains.
        """
        if before:
            refuse_unused_baseline(self.judged)
        else:
            self.judged = [
                judged_rule for rule in self.judged for judged_rule in self._without_changes(rule)
            ]
        self._keep(lambda rule: _why_not(rule, stores, names, sliced=sliced))

    def check_metrics(self, keys: Mapping[str, set[str]], some_failed: bool) -> None:
        """Remove rules whose metric no store evaluates; `keys`: the metrics of each store.

        Keeps rules of other stores. If `some_failed`, also keeps rules without a store, because a
        failed store may have the metric. Raises `UsageError` if no rule remains.
        """
        self._keep(lambda rule: _unknown_metric(rule, keys, some_failed))

    def check_fields(
        self, foreseen: Mapping[str, Callable[[Collection[str]], Report]], some_failed: bool
    ) -> None:
        """Remove rules about fields and slices that no report will have.

        `foreseen` returns the report of each store that is known before reading, of some keys.
        Keeps rules as `check_metrics` does. Raises `UsageError` if no rule remains.
        """
        keys = {rule.address.key for rule in self.judged}
        reports = {name: report_of(keys) for name, report_of in foreseen.items()} if keys else {}
        self._keep(lambda rule: _unknown_field(rule, reports, some_failed))

    def _without_changes(self, rule: Rule) -> Iterator[Rule]:
        """Yield the rule without its limits on changes, which need a baseline."""
        changes = [
            kind for kind, _ in rule.limits.kinds_and_values() if "drop" in kind or "rise" in kind
        ]
        for kind in changes:
            message = f"{kind} needs a baseline; give --baseline REPORT, or --no-gate."
            self._set_aside(replace(rule, limits=rule.limits.only(kind)), message)
        if not changes:
            yield rule
        elif len(changes) < len(list(rule.limits.kinds_and_values())):
            yield replace(rule, limits=rule.limits.remove(changes))

    def _keep(self, why_not: Callable[[Rule], str | None]) -> None:
        judged = []
        for rule in self.judged:
            if (reason := why_not(rule)) is None:
                judged.append(rule)
            else:
                self._set_aside(rule, reason)
        self.judged = judged
        if self.unjudged and not judged:
            raise UsageError(joined(f"{lost.rule.place}: {lost.why}" for lost in self.unjudged))
        for unjudged in self.unjudged[self._told :]:
            self._tell(f"{unjudged.rule.place}: not evaluated: {unjudged.why}")
        self._told = len(self.unjudged)

    def _set_aside(self, rule: Rule, reason: str) -> None:
        self.unjudged.append(NotEvaluated(rule, rule.address, reason))


def _why_not(
    rule: Rule, stores: Sequence[str], names: Sequence[str], *, sliced: bool
) -> str | None:
    store = rule.address.store
    if store is not None and store not in names:
        if store in stores:
            return (
                f"the rule is of the store {quoted(store)}, which --store leaves out; add it "
                "to --store, or give --no-gate."
            )
        hint = did_you_mean(store, stores, f"there are {all_listed(stores)}.")
        return f"there is no store {quoted(store)}; {hint}"
    if rule.address.where and not sliced:
        return (
            "the rule is of a slice, and the file has no slices; give a table of the items under "
            "slices:."
        )
    return None


def _unknown_metric(rule: Rule, keys: Mapping[str, set[str]], some_failed: bool) -> str | None:
    address = rule.address
    if address.store is None and some_failed:
        return None
    store_names = [name for name in keys if address.store in (None, name)]
    known_keys = dict.fromkeys(key for name in store_names for key in sorted(keys[name]))
    if not store_names or address.key in known_keys:
        return None
    meant = with_slash(address, store_names)
    others = f"there are {all_listed(known_keys)}."
    near = nearest_key(address.key, known_keys)
    if meant or near:
        hint = f"did you mean {meant or quoted(near)}?"
    else:
        hint = others + _how_to_add(address.key, {name: keys[name] for name in store_names})
    store_list = ", ".join(store_names)
    problem = f"no metric {quoted(address.key)} is evaluated for {store_list}"
    return f"the address matches nothing in this file: {problem}; {hint}"


def _how_to_add(key: str, keys: Mapping[str, set[str]]) -> str:
    """Return how to evaluate a result that the stores lack, as a sentence after a space; empty if
    no store has the kind of data. `keys`: those of the results of each store."""
    from uqeval.glossary import families, how_to_evaluate

    family = families().get(family_of(key))
    if family is None:
        return ""
    fitting = [
        name for name, of_store in keys.items()
        if all(set(family.kinds) & set(families()[family_of(own)].kinds) for own in of_store)
    ]  # fmt: skip
    if not fitting:
        return ""
    if key != family.in_reports:
        return f" `{how_to_evaluate(key)}` evaluates it."
    return f" Add `{family.name}: {{}}` to evaluate.{fitting[0]} of the file."


def _unknown_field(rule: Rule, reports: Mapping[str, Report], some_failed: bool) -> str | None:
    address = rule.address
    if address.store is None and some_failed:
        return None
    candidates = [
        report
        for name, report in reports.items()
        if address.store in (None, name) and address.key in report.results
    ]
    why = no_such_value(candidates, address) if candidates else None
    return None if why is None else f"the address matches nothing in this run: {why}"


def metric_keys(inputs: Inputs, families: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Return the keys of the results that the report of opened inputs will have: variants, regions.

    A region that a metric does not have may be among them.
    """
    from uqeval.metrics import FAMILIES

    info, regions = inputs.info(), ("", *(f"@{region}" for region in inputs.region_names()))
    return {
        f"{key}{region}"
        for name, options in with_companions(families, info).items()
        for key in FAMILIES[name].settings(options, info)
        for region in regions
    }
