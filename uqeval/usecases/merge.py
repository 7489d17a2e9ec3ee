"""The use case `merge`: saved states of parts of a run, or of several, to one report.

The evaluations run over the saved states in place of the data, and give what a run of the whole
gives, to the bit. Where one asks for counts that the states do not hold (ranks inside a bin, for
which the pixels must be read again), its scores are computed from bins.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import resolved
from uqeval.disk.json import content_of
from uqeval.errors import StoreError, UsageError, cut
from uqeval.keys import Key
from uqeval.report.schema import Report
from uqeval.settings import made, takes
from uqeval.statistics.options import CutOptions
from uqeval.usecases.replay import counted, held, left_out

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.metrics._evaluation import Evaluation, Section
    from uqeval.statistics.joined import Joined
    from uqeval.stores.states import SavedStates

SUFFIX = ".states.zip"
_UNKNOWN = "takes another look at the pixels of all items, which saved states do not hold"


@takes(CutOptions)
def merge(
    reports: str | Path | Sequence[str | Path],
    *,
    states: str | Path | None = None,
    allow_missing: bool = False,
    threshold: str | float | None = None,
    **options: Any,
) -> Report:
    """Join the saved states of parts of a run, or of runs over different items, into one report.

    `reports`: states files, reports that they lie beside, or folders of either; of one alone the
    report is as it was, with the intervals and slices that are asked for now. `states`: file for
    the states of all. `allow_missing`: parts may be missing; the report is then partial.
    `threshold`: of uncertainty, for the PAvPU in place of that of the run, one that its curve has.

    Raises `UsageError` for what cannot be joined, `StoreError` for files that are no states.
    """
    from uqeval.stores.overlap import refuse_overlap

    began = time.perf_counter()
    (cut_options,) = made(options, CutOptions, function=merge)
    given = [reports] if isinstance(reports, str | Path) else list(reports)
    files = states_of(given)
    if states is not None:
        own = [path for path in map(Path, given) if path.is_file()]  # not folders of states
        refuse_overlap([states], [*own, *(file.path for file in files), cut_options.slices])
    with content_of(" + ".join(str(file.path) for file in files)):
        report, joined = _joined(files, allow_missing, threshold, states)
        report.timing["seconds"] = time.perf_counter() - began
        if not cut_options.wanted:
            return report
        from uqeval.statistics.cut import cut
        from uqeval.statistics.scoring import Scoring

        return cut(report, Scoring(joined), cut_options)


def _joined(
    files: list[SavedStates],
    allow_missing: bool,
    threshold: str | float | None,
    states: str | Path | None,
) -> tuple[Report, Joined]:
    """Return the report of all files, and their states as those of one."""
    from uqeval.statistics.joined import Joined
    from uqeval.statistics.scoring import Scoring

    joined = Joined(files)
    if joined.missing and not allow_missing:
        numbers = ", ".join(map(str, joined.missing))
        raise UsageError(
            f"of {len(files) + len(joined.missing)} parts, {numbers} "
            f"{'is' if len(joined.missing) == 1 else 'are'} missing; give all, or --allow-missing "
            "for a partial report."
        )
    if len(files) == 1:
        Scoring(joined).check()  # nothing else reads these states here
        record = _recorded(files[0])
    else:
        record = _merged(joined)
    joined.index |= {name: record[name] for name in ("results", "numerics")} | {
        "records": record["items"], "fitted": record.pop("fitted"), "metrics": record["metrics"],
    }  # fmt: skip
    if threshold is not None:
        from uqeval.usecases.rethreshold import recut

        record = recut(joined, record, str(threshold))
    digest = None if states is None else _write(joined, states)
    return _report(joined, record, states, digest), joined


def states_of(given: Sequence[str | Path]) -> list[SavedStates]:
    """Open the states files of reports, of states files and of folders of them.

    Raises `StoreError` where there are none, or where they are not those of their report;
    `UsageError` for one that is given twice.
    """
    from uqeval.statistics.from_states import states_of as states_of_report
    from uqeval.stores.states import SavedStates

    found: list[SavedStates] = []
    for path in map(Path, given):
        if path.is_dir():
            own = sorted(p for p in path.glob(f"*{SUFFIX}") if not p.name.startswith("."))
            if not own:
                raise StoreError(f"{cut(path)}: holds no states files (*{SUFFIX}).")
            found += map(SavedStates, own)
        elif path.suffix == ".zip":
            found.append(SavedStates(path))
        else:
            found.append(states_of_report(path, Report.load(path)))
    if not found:
        raise UsageError("nothing to merge; give states files, or reports with states beside them.")
    seen: dict[Path, Path] = {}
    for path in (file.path for file in found):
        if (same := resolved(path)) in seen:
            raise UsageError(f"{cut(path)} is given twice.")
        seen[same] = path
    return found


def _recorded(file: SavedStates) -> dict[str, Any]:
    """What one run found."""
    index = file.index
    return {
        "results": index["results"],
        "items": index["records"],
        "settings": {k: v for k, v in index["settings"].items() if k != "intervals"},
        "numerics": index["numerics"],
        "warnings": [],
        "fitted": index["fitted"],
        "metrics": index["metrics"],
    }


def _merged(joined: Joined) -> dict[str, Any]:
    """What a run over all items finds, as far as the states can tell."""
    from uqeval.metrics._driver import drive, groups_of, replay
    from uqeval.metrics._in_view import shared
    from uqeval.statistics.variants import info_of, variants_of
    from uqeval.usecases.report_of_run import collect

    info = info_of(joined.index["facts"])
    variants = variants_of(joined.index, info)
    for key in joined.index["settings"]:
        if key not in variants:
            raise UsageError(f"{joined.path}: {key} cannot be computed from saved states.")
    _refuse_other_thresholds(joined, {key: own[key] for key, (_, own) in variants.items()})
    metrics = {name: dict(record) for name, record in joined.index["metrics"].items()}
    sections: dict[str, Section] = {}
    known = {key: (family, one) for family, own in variants.values() for key, one in own.items()}
    for group in groups_of(shared({key: one.unfitted() for key, (_, one) in known.items()})):
        done, found = replay(drive(group), lambda tally: held(joined, tally))
        for key in group:
            if done:
                sections[key] = found[key]
                continue
            family, evaluation = known[key]
            sections[key] = _read_off(joined, key, evaluation)
            _mark(metrics, family, evaluation, sections[key].results)
    sections = {key: sections[key] for key in known}
    found = collect(sections, info.names)
    return found | {
        "fitted": {key: section.fitted for key, section in sections.items()},
        "metrics": metrics,
    }


def _refuse_other_thresholds(joined: Joined, evaluations: Mapping[str, Evaluation[Any]]) -> None:
    """Raise `UsageError` with the pooled numbers where parts fitted thresholds of their own."""
    from uqeval.metrics._driver import replay
    from uqeval.metrics.thresholds import lacks_threshold

    for key, evaluation in evaluations.items():
        differ = joined.differ(key)
        lacks = lacks_threshold(joined.index["fitted"].get(key))
        of_region = Key.parse(key).region is not None  # it has the threshold of the whole image
        if of_region or not evaluation.fits_threshold or not (differ or lacks):
            continue
        fresh = evaluation.unfitted()
        replay(fresh.fit(), lambda tally: held(joined, tally))
        pooled = fresh.options()
        undefined = pooled is not None and pooled.get("threshold", "") is None
        if undefined and not differ:
            continue
        if undefined:
            how = (
                "The threshold of all items is undefined: evaluate each of them again with "
                "--threshold and one number for all"
            )
        elif pooled is None:
            how = (
                "The states do not hold that of all items: evaluate each of them again with "
                "--threshold and one number for all"
            )
        elif not pooled:
            how = "Several fitted thresholds cannot be given as numbers: evaluate all items at once"
        else:
            said = " ".join(f"--{name.replace('_', '-')} {v}" for name, v in pooled.items())
            how = f"Evaluate each of them again with the numbers of all items: {said}"
        raise UsageError(
            f"{key}: {cut(', '.join(str(file.path) for file in joined.files))} have thresholds "
            f"that were fitted on their own items; what was counted at them cannot be added. {how}."
        )


def _read_off(joined: Joined, key: str, evaluation: Evaluation[Any]) -> Section:
    """The scores under a key from the bins of the saved states; null is what they do not tell."""
    from uqeval.metrics._evaluation import Section

    index = joined.index
    warnings = []
    results: dict[str, Any] = {}
    if evaluation.known:
        states = {
            tally: counted(tally, joined, left_out(joined, key, evaluation, tally)).total
            for tally in evaluation.tallies()
        }
        results = evaluation.scores(states)
        if evaluation.approximate:
            warnings.append(
                "ranks were computed from saved counts: averaged inside bins of a relative width "
                f"of at most {evaluation.bound:.2g}; `metrics` of the report says of which scores."
            )
    own_key = Key.parse(key)
    head, part = own_key.whole, own_key.part
    before = joined.files[0].index["results"][head]
    if evaluation.flat:
        before = {name: own for name, own in before.items() if name.startswith(part)}
    elif part:
        before = before.get(part, {})
    others = {own.part for own in map(Key.parse, index["fitted"]) if own.whole == head} - {part, ""}
    own = [
        name for name in before
        if not any(name == other or name.startswith(f"{other}_") for other in others)
    ]  # fmt: skip
    lost = _fill(results, {name: before[name] for name in own})
    if lost:
        warnings.append(f"{part or key} without {', '.join(lost)}: {_UNKNOWN}.")
    return Section(
        results,
        [] if part else [record.get(key, {}) for record in index["records"]],
        {} if part else index["settings"][key],
        {} if part else _added(index["numerics"].get(key, {})),
        warnings,
        index["fitted"].get(key, {}),
    )


def _added(numerics: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that parts add up to: the ties at the cuts of the set are none of them."""
    return {name: count for name, count in numerics.items() if name != "ties_at_cuts"}


def _fill(results: dict[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Put null with a reason for each field that a run has and `results` have not, in rows of
    classes too; returns what they are called.
    """
    beside = ("_reason", "_bound")
    lost = [name for name in before if name not in results and not name.endswith(beside)]
    for name in lost:
        results |= {name: None, f"{name}_reason": _UNKNOWN}
    of_classes: dict[str, None] = {}
    rows = results.get("per_class") or []
    for row, known in zip(rows, before.get("per_class") or [], strict=False):
        of_classes |= dict.fromkeys(f"{name} of classes" for name in _fill(row, known))
    return [*lost, *of_classes]


def _mark(
    metrics: dict[str, Any],
    family: Family,
    evaluation: Evaluation[Any],
    results: Mapping[str, Any],
) -> None:
    """Mark scores that were computed from bins as approximate, and the curves they come from."""
    names, bound = evaluation.approximate, evaluation.bound
    if not names or not evaluation.known:
        return
    for name in ("curve", "oracle", "error_curve"):
        if results.get(name) is not None:
            record = {"unit": "curve", "direction": None, "range": [None, None], "reference": ""}
            metrics[f"{family.in_reports}.{name}"] = record | {"approximate": bound}
    for metric in family.metrics:
        name = metric.field.split(".")[0]
        if "*" in names or {name, metric.field} & names:
            metrics[metric.id]["approximate"] = bound


def _report(
    joined: Joined,
    record: Mapping[str, Any],
    states: str | Path | None,
    digest: str | None,
) -> Report:
    from uqeval.usecases.report_of_run import now

    index = joined.index
    warnings = [*index["warnings"], *record["warnings"]]
    if index["partial"]:
        inputs = index["inputs"]
        warnings.append(f"partial: {len(index['items'])} of {inputs['items']} items.")
    return Report(
        **{
            **record,
            "uqeval_version": index["uqeval_version"],
            "inputs": index["inputs"],
            "states": None if states is None else str(states),
            "states_digest": digest,
            "partial": index["partial"],
            "warnings": warnings,
            "timing": {
                "finished": now(),
                "seconds": 0.0,
                "bytes_read": 0,
                "passes": 0,
                "workers": 1,
            },
        }
    )


def _write(joined: Joined, path: str | Path) -> str:
    """Write the states of all as one file, in the order of items; return its digest."""
    from uqeval.stores.states_writer import StatesWriter

    with StatesWriter(path) as writer:
        for item, states in _by_item(joined):
            for parameters, data in states:
                writer.add(parameters, item, data)
        return writer.finish(joined.index)


def _by_item(joined: Joined) -> Iterator[tuple[int, list[tuple[dict[str, Any], bytes]]]]:
    kept = joined.parameters()
    streams = [joined.states(own) for own in kept]
    for item in range(len(joined.index["items"])):
        yield item, [(own, next(stream)) for own, stream in zip(kept, streams, strict=True)]
