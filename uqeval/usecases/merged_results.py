"""Results over all items from merged states: metric families run over the states, not the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from shlex import quote
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, all_listed, cut, listed, option_name, quoted
from uqeval.keys import Key
from uqeval.metrics import Family
from uqeval.metrics._driver import drive, replay, replayed
from uqeval.metrics._evaluation import Evaluation, Run, Section, TallyResult
from uqeval.metrics._view import shared
from uqeval.metrics.thresholds import lacks_threshold
from uqeval.statistics.saved_counts import left_out, saved_result, sum_states
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import tally_key
from uqeval.usecases.rounds.shard import in_one_pass

if TYPE_CHECKING:
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.tallies._contract import Tally

#: The fitted numbers that decide which pixels or patches are uncertain.
_OF_THRESHOLD = ("threshold", "ends", "counted_at")
_UNKNOWN = "needs the pixels of all items, which saved states do not contain"


def merged_results(merged_states: MergedStates) -> dict[str, Any]:
    """Return the results of a run over all items, as far as the states contain them.

    Raises `UsageError` if results of shards would not be complete.
    """
    from uqeval.statistics.variants import info_of, variants_of
    from uqeval.usecases.records_of_run import collect

    if is_sweep(merged_states):
        return _merged_sweep(merged_states)
    info = info_of(merged_states.index)
    variants = variants_of(merged_states.index, info, merged_states.path)
    evaluations = unfitted_evaluations(merged_states)
    if merged_states.passes is None:
        own = {key: by_key[key] for key, (_, by_key) in variants.items()}
        _refuse_other_thresholds(merged_states, own)
    metrics = {name: dict(record) for name, record in merged_states.index["metrics"].items()}
    fitted = {
        key: evaluations_of_family
        for _, by_key in variants.values()
        for key, evaluations_of_family in by_key.items()
    }
    if len(merged_states.files) > 1:
        for evaluation in fitted.values():
            evaluation.fitted = {
                name: value
                for name, value in evaluation.fitted.items()
                if name not in evaluation.of_one_run
            }
    sections: dict[str, Section] = {}
    unfinished: list[str] = []
    for key, (family, evaluation) in evaluations.items():
        complete, totals = replay(drive({key: evaluation}), partial(_counted, merged_states))
        if complete:
            sections |= totals
        elif merged_states.passes is not None:
            unfinished.append(key)
        else:
            sections[key] = _read_off(merged_states, key, fitted[key])
            _mark(metrics, family, fitted[key], sections[key].results)
    if unfinished:
        _refuse_unfinished(merged_states, unfinished)
    totals = collect({key: sections[key] for key in evaluations}, info.names)
    return totals | {
        "fitted": {key: sections[key].fitted for key in evaluations},
        "metrics": metrics,
    }


def _counted(merged_states: MergedStates, tally: Tally) -> TallyResult | None:
    """Return the states of a tally; record its total if a run saves only that."""
    result = saved_result(merged_states, tally)
    if result is not None and not tally.saved:
        key = tally_key(tally.parameters())
        merged_states.packed_totals[key] = PackedItems.of([tally.pack(result.total)]).data
    return result


def is_sweep(merged_states: MergedStates) -> bool:
    """Return whether the states are those of a sweep."""
    return "sweep" in merged_states.index


def _merged_sweep(merged_states: MergedStates) -> dict[str, Any]:
    """Return the results of a sweep over all items. Raises `UsageError`."""
    from uqeval.statistics.variants import info_of
    from uqeval.usecases.sweep.plan import SweepPlan, families_of_passes

    index = merged_states.index
    plan = SweepPlan.of_index(index, info_of(index), merged_states.path)
    running = replayed(plan.passes(), partial(_counted, merged_states))
    running.close()
    if running.requests:
        _refuse_unfinished(merged_states, families_of_passes(list(running.requests)))
    record = plan.record(running.results, index["items"])
    return record | {"fitted": {}, "metrics": index["metrics"]}


def unfitted_evaluations(merged_states: MergedStates) -> dict[str, tuple[Family, Evaluation[Any]]]:
    """Return the family and the evaluation of all results by key, before fitting.

    Raises `UsageError` for results without states.
    """
    from uqeval.statistics.variants import info_of, variants_of

    index = merged_states.index
    variants = variants_of(index, info_of(index), merged_states.path)
    for key in merged_states.index["settings"]:
        if key not in variants:
            raise UsageError(f"{merged_states.path}: {key} cannot be computed from saved states.")
    families = {key: family for family, by_key in variants.values() for key in by_key}
    evaluations = shared(
        {
            key: variant.unfitted()
            for _, by_key in variants.values()
            for key, variant in by_key.items()
        }
    )
    for key, evaluation in evaluations.items():
        if merged_states.passes is None:
            evaluation.use_items(
                key, merged_states.index["records"], merged_states.fitted_alike(key)
            )
        else:  # records of items are missing
            evaluation.use_evaluations(evaluations)
    return {key: (families[key], evaluation) for key, evaluation in evaluations.items()}


def _refuse_unfinished(merged_states: MergedStates, keys: Sequence[str]) -> None:
    """Raise `UsageError` for results of shards that need another round."""
    paths = " ".join(quote(str(file.path)) for file in merged_states.files)
    if merged_states.missing:
        raise UsageError(
            f"{', '.join(keys)} {'needs' if len(keys) == 1 else 'need'} counts of all shards, and "
            "some shards are missing. Count these, and merge all."
        )
    passes = merged_states.passes
    raise UsageError(
        f"{', '.join(keys)}: the shards have counted {passes} "
        f"{'pass' if passes == 1 else 'passes'}, and need another."
        f"{in_one_pass(keys)} For these shards, repeat the command of each with --fitted "
        f"fitted.json, after: uqeval merge --fit {cut(paths, 500)} -o fitted.json"
    )


def add_families(
    merged_states: MergedStates, record: dict[str, Any], families: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add further families to the record of a run, from its states and the records of its items.

    Raises `UsageError` for a family that the run has, or that needs more than the states hold.
    """
    from uqeval.statistics.variants import info_of
    from uqeval.usecases.plans import known_families
    from uqeval.usecases.records_of_run import collect

    info = info_of(merged_states.index)
    sections: dict[str, Section] = {}
    for family in known_families(families, info):
        for key, settings in family.settings(families[family.name], info).items():
            if key in record["results"]:
                raise UsageError(
                    f"{merged_states.path} has {key} already; leave it out, as uqeval merge "
                    "recomputes it."
                )
            for name, evaluation in family.evaluations(key, settings, info).items():
                evaluation.use_items(name, record["items"])
                is_complete, group = replay(
                    drive({name: evaluation}), lambda tally: saved_result(merged_states, tally)
                )
                if not is_complete:
                    raise UsageError(
                        f"{merged_states.path} has no counts for {name}. Give --risk and "
                        "--confidence as numbers of the report's items "
                        f"({listed(_numbers_of_items(record), 4)}), or evaluate "
                        f"{' '.join(map(quote, info.paths)) or info.where} with {name}."
                    )
                sections |= group
        metrics = {metric.id: metric.record() for metric in family.metrics}
        record["metrics"] = dict(record["metrics"]) | metrics
    totals = collect(sections, info.names)
    for name in ("results", "settings", "numerics"):
        record[name] = dict(record[name]) | totals[name]
    pairs = zip(record["items"], totals["items"], strict=True)
    record["items"] = [dict(item) | added for item, added in pairs]
    regions = dict.fromkeys(filter(None, (Key.parse(key).region for key in record["results"])))
    of_whole = [
        f"{name}: of whole images. The report also has regions ({listed(regions)}): evaluate the "
        "predictions again for scores of each."
        for name in families if regions
    ]  # fmt: skip
    record["warnings"] = [*record["warnings"], *totals["warnings"], *of_whole]
    record["fitted"] = dict(record["fitted"]) | {
        key: section.fitted for key, section in sections.items()
    }


def _numbers_of_items(record: Mapping[str, Any]) -> list[str]:
    """Return the names of the numbers of a record's first item."""
    item: Mapping[str, Any] = next(iter(record["items"]), {})
    return [
        f"{family}.{name}"
        for family, values in item.items()
        if isinstance(values, Mapping)
        for name, value in values.items()
        if isinstance(value, float)
    ]


def _refuse_other_thresholds(
    merged_states: MergedStates, evaluations: Mapping[str, Evaluation[Any]]
) -> None:
    """Raise `UsageError` with the pooled thresholds if the parts fitted different ones."""
    for key, evaluation in evaluations.items():
        differ = merged_states.differ(key, _OF_THRESHOLD)
        lacks = lacks_threshold(merged_states.index["fitted"].get(key))
        of_region = Key.parse(key).region is not None  # it has the threshold of the whole image
        if of_region or not evaluation.fits_threshold or not (differ or lacks):
            continue
        unfitted = evaluation.unfitted()
        replay(unfitted.fit_threshold(), lambda tally: saved_result(merged_states, tally))
        pooled = unfitted.options()
        undefined = pooled is not None and pooled.get("threshold", "") is None
        if undefined and not differ:
            continue
        if undefined:
            remedy = (
                "The threshold of all items is undefined: evaluate each of them again with "
                "--threshold and one number for all"
            )
        elif pooled is None:
            remedy = (
                "The states do not hold the threshold of all items: evaluate each of them again "
                "with --threshold and one number for all"
            )
        elif not pooled:
            remedy = (
                "Several fitted thresholds cannot be given as numbers: evaluate all items at once"
            )
        else:
            thresholds = " ".join(f"{option_name(name)} {v}" for name, v in pooled.items())
            remedy = (
                f"Evaluate each of them again with the numbers of all items: {quoted(thresholds)}"
            )
        raise UsageError(
            f"{key}: {all_listed(str(file.path) for file in merged_states.files)} have "
            "thresholds that were fitted on their own items; counts at different thresholds "
            f"cannot be added. {remedy}."
        )


def _read_off(merged_states: MergedStates, key: str, evaluation: Evaluation[Any]) -> Section:
    """Return the scores under a key that follow from the bins of the saved states; null for
    others.
    """
    from uqeval.statistics.item_scores import scores_over_items, set_score
    from uqeval.statistics.lost_scores import put_lost

    index = merged_states.index
    warnings = []
    results: dict[str, Any] = {}
    if evaluation.can_score:
        states = {
            tally: sum_states(
                tally, merged_states, left_out(merged_states, key, evaluation, tally)
            ).total
            for tally in evaluation.tallies()
        }
        results = evaluation.scores(states)
        records = [record.get(key, {}) for record in index["records"]]
        for name, value in scores_over_items(evaluation, records).items():
            set_score(results, name, value)
        if evaluation.approximate:
            warnings.append(
                "ranks were computed from saved counts: averaged inside bins of a relative width "
                f"of at most {evaluation.bound:.2g}; `metrics` in the report lists these scores."
            )
    own_key = Key.parse(key)
    head, part_name = own_key.whole, own_key.part
    before = merged_states.files[0].index["results"][head]
    if evaluation.flat:
        before = {name: before[name] for name in evaluation.flat_fields if name in before}
    elif part_name:
        before = before.get(part_name, {})
    other_parts = {
        parsed.part for parsed in map(Key.parse, index["fitted"]) if parsed.whole == head
    } - {part_name, ""}
    own_fields = [
        name
        for name in before
        if not any(name == part or name.startswith(f"{part}_") for part in other_parts)
    ]
    lost = put_lost(results, {name: before[name] for name in own_fields}, _UNKNOWN)
    if lost:
        of_part = "" if evaluation.flat or not part_name else f" of {part_name}"
        warnings.append(f"no {listed(lost, 20)}{of_part}: {_UNKNOWN}.")
    warnings += _warnings_of(merged_states, key, evaluation, results)
    # Ties at the cuts of the set do not add up over parts.
    numerics = {n: k for n, k in index["numerics"].get(key, {}).items() if n != "ties_at_cuts"}
    return Section(
        results,
        [] if part_name else [record.get(key, {}) for record in index["records"]],
        {} if part_name else index["settings"][key],
        {} if part_name else numerics,
        warnings,
        evaluation.fitted,
        evaluation.flat,
    )


def _warnings_of(
    merged_states: MergedStates, key: str, evaluation: Evaluation[Any], results: Mapping[str, Any]
) -> list[str]:
    """Return the warnings of a run about scores that were read off saved states.

    None if the states lack a tally that the warnings of a run read, as those of a part of it may.
    """
    tallies = (*evaluation.tallies(), *evaluation.extra_tallies())
    saved = {tally: saved_result(merged_states, tally) for tally in tallies}
    counted = {tally: result for tally, result in saved.items() if result is not None}
    if not evaluation.can_score or len(counted) < len(saved):
        return []
    items = [record.get(key, {}) for record in merged_states.index["records"]]
    return evaluation.warnings(Run(counted, None, dict(results), items))


def _mark(
    metrics: dict[str, Any], family: Family, evaluation: Evaluation[Any], results: Mapping[str, Any]
) -> None:
    """Mark scores from bins, and the curves that contain them, as approximate."""
    names, bound = evaluation.approximate, evaluation.bound
    if not names or not evaluation.can_score:
        return
    for name in ("curve", "oracle", "error_curve"):
        if results.get(name) is not None:
            record = {"unit": "curve", "direction": None, "range": [None, None], "reference": ""}
            metrics[f"{family.in_reports}.{name}"] = record | {"approximate": bound}
    for metric in family.metrics:
        name = metric.field.split(".")[0]
        if "*" in names or {name, metric.field} & names:
            metrics[metric.id]["approximate"] = bound
