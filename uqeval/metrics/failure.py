"""The family `failure`: does the uncertainty find the errors? Settings and plan.

Three passes over the maps: which powers of two the uncertainties of each class lie in; pixels and
wrong ones by the high 22 bits of their keys, by class; and all 32 bits where a rank is cut or where
the bounds are widest. The first also counts all classes together by the high 19 bits, of each item:
nothing here needs that, but the scores are read off it again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.metrics import failure_columns, failure_scores, float16
from uqeval.metrics._again import Again, of_rows, over
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._ladder import BIN_WIDTH, Ladder
from uqeval.metrics._plan import Plan, Pooling, Section
from uqeval.metrics._signs import sign_warnings
from uqeval.metrics.failure_settings import FailureSettings
from uqeval.metrics.pavpu_settings import check_uncertainty, refuse_unused_base
from uqeval.metrics.thresholds import Rule, fit, undefined_warnings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._again import SetStates
    from uqeval.tallies import ItemFailure, RankedErrors, Tally, Uncertainty
    from uqeval.tallies._contract import State

#: High bits of a key: sign and exponent; those that are told apart everywhere.
BLOCK_BITS, POOLED_BITS = 9, 22
#: Rows of a state of the second pass, of 2^13 bins, and of the third, of 2^10 (48 and 32 MB).
BLOCK_ROWS, SPLIT_ROWS = 384, 2048
#: Rungs that are split for the sake of the bounds: of the whole set, and of all classes together.
WIDEST = 512


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, FailureSettings]:
    found: dict[str, FailureSettings] = variants(
        "failure", FailureSettings, options, ("uncertainty",)
    )
    refuse_unused_base(options, [own.uncertainty for own in found.values()])
    for own in found.values():
        check_uncertainty(own.uncertainty, facts)
    return found


def plan(
    settings: FailureSettings, classes: int, class_names: Sequence[str], halves: bool = False
) -> Plan:
    """Rank the pixels of the set and of each class, and return the section of one variant.

    `halves`: whether the uncertainty is a map that is stored as float16.
    """
    from uqeval.tallies import Error, ItemFailure, Patches, RankedErrors
    from uqeval.tallies.undetected import Undetected

    uncertainty, wrong = settings.ranked(classes), Error("zero-one")
    occupied = RankedErrors(
        uncertainty, wrong, classes, True, 0, BLOCK_BITS, tuple((c, 0) for c in range(classes))
    )
    fitting = fit(Rule.parse(settings.threshold), Patches(uncertainty, classes), False)
    counted = yield (*next(fitting), occupied, _pooled(uncertainty, classes))
    blocks = counted[occupied].total["pixels"]
    while True:
        try:
            asked = fitting.send(counted)
        except StopIteration as stop:
            threshold = stop.value.threshold[0]
            lacking = Rule.parse(settings.threshold).undefined if threshold is None else ""
            break
        counted = yield asked

    undetected = Undetected(uncertainty, classes, threshold)
    own = ItemFailure(uncertainty, classes)
    band = float16.band_of_errors(undetected) if halves else ()
    extra: tuple[Tally, ...] = (undetected, own, *band)
    ladders: dict[int | None, Ladder] = {}
    for bins in _batches(blocks):
        fine = RankedErrors(
            uncertainty, wrong, classes, True, BLOCK_BITS, POOLED_BITS - BLOCK_BITS, bins
        )
        counted = yield (fine, *extra)
        if extra:
            hidden, items = counted[undetected], counted[own].items
            ends = [counted[tally].total for tally in band]
            extra = ()
        state = counted[fine].total
        for group in (None, *dict.fromkeys(c for c, _ in bins)):
            part = Ladder.of(fine, state, group)
            ladders[group] = ladders[group].joined(part) if group in ladders else part
    yield from _split(ladders, uncertainty, classes)

    nothing = Ladder.of(occupied, occupied.empty())
    results = _results(
        settings, threshold, hidden.total, class_names,
        failure_scores.scores(ladders[None]),
        [failure_scores.scores(ladders.get(c, nothing)) for c in range(classes)],
    )  # fmt: skip
    return Section(
        results,
        [
            _item(own, data, undetected.unpack(low)["counts"].sum(axis=0), lacking)
            for data, low in zip(items, hidden.items, strict=True)
        ],
        settings=dataclasses.asdict(settings),
        numerics={"ties_at_cuts": failure_scores.cut_ties(ladders[None])},
        warnings=undefined_warnings(Rule.parse(settings.threshold), threshold)
        + sign_warnings("failure", results)
        + float16.warnings_of_errors(settings.uncertainty, threshold, ends),
        fitted={"threshold": threshold},
    )


def _again(
    key: str, settings: FailureSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    """The scores of the set by bins of uncertainties, whose pixels are a tie; of each class only
    what takes no ranks. Without a fitted threshold, the ranked scores alone.
    """
    from uqeval.tallies.undetected import Undetected

    uncertainty = settings.ranked(facts.classes)
    pooled = _pooled(uncertainty, facts.classes)
    threshold = fitted.get(key, {}).get("threshold")
    held: tuple[Tally, ...] = ()
    if "threshold" in fitted.get(key, {}):
        held = (Undetected(uncertainty, facts.classes, threshold),)

    def scores(states: Mapping[Tally, State]) -> dict[str, Any]:
        ladder = Ladder.of(pooled, states[pooled])
        ranked = failure_scores.scores(ladder)
        if held:
            nothing: list[dict[str, Any]] = [{} for _ in facts.class_names]
            return _results(
                settings, threshold, states[held[0]], facts.class_names, ranked, nothing
            )
        counts = {"pixels": ladder.total, "errors": int(ladder.errors.sum())}
        return {"uncertainty": settings.uncertainty} | counts | ranked

    def columns(states: Mapping[Tally, SetStates], wanted: Collection[str]) -> Any:
        ladder = failure_columns.SetLadder.of(states[pooled])
        found = failure_columns.columns(ladder, wanted)
        if not held:
            return found | {("pixels",): ladder.total, ("errors",): ladder.wrong}
        counts = states[held[0]]["counts"]
        rows = of_rows(_counted(counts, threshold), range(facts.classes))
        whole = _counted(counts.sum(axis=1), threshold)
        return found | rows | {(name,): values for name, values in whole.items()}

    ranked = frozenset(failure_scores.BY_FIELD) - {"undetected_error_rate"}
    return {key: Again((pooled, *held), scores, columns, approximate=ranked, bound=BIN_WIDTH)}


def _counted(counts: NDArray[Any], threshold: float | None) -> dict[str, NDArray[Any]]:
    """The fields of counts [set, …, 3] of `Undetected`, of many sets."""
    pixels, errors, undetected = (counts[..., i] for i in range(3))
    found = {"pixels": pixels, "errors": errors}
    if threshold is not None:
        found["undetected_error_rate"] = over(undetected, pixels)
    return found


def _pooled_threshold(settings: FailureSettings, facts: Facts) -> Pooling:
    from uqeval.tallies import Patches

    patches = Patches(settings.ranked(facts.classes), facts.classes)
    fitted = yield from fit(Rule.parse(settings.threshold), patches, False)
    threshold = fitted.threshold[0]
    return {"threshold": None if threshold is None else repr(threshold)}


def _pooled(uncertainty: Uncertainty, classes: int) -> RankedErrors:
    """Pixels and wrong ones of all classes by the high 19 bits of their keys."""
    from uqeval.tallies import Error, RankedErrors

    return RankedErrors(uncertainty, Error("zero-one"), classes)


def _results(
    settings: FailureSettings,
    threshold: float | None,
    hidden: State,
    class_names: Sequence[str],
    pooled: Mapping[str, Any],
    each: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What counts of `Undetected` and scores by rank, of the set and of each class, say."""
    counts = hidden["counts"]
    lacking = Rule.parse(settings.threshold).undefined if threshold is None else ""
    results: dict[str, Any] = {"uncertainty": settings.uncertainty}
    put(results, "uncertainty_threshold", threshold, lacking)
    return results | {
        **_record(pooled, counts.sum(axis=0), lacking),
        "per_class_by": "label",
        "per_class": [
            {"class": c, "name": name, **_record(ranked, own, lacking)}
            for c, (name, own, ranked) in enumerate(zip(class_names, counts, each, strict=True))
        ],
    }


def _batches(blocks: Any) -> Iterator[tuple[tuple[int, int], ...]]:
    """(class, block) of all pixels, all classes of a block in one batch of at most BLOCK_ROWS."""
    import numpy as np

    batch: list[tuple[int, int]] = []
    for block in np.flatnonzero(blocks.any(axis=0)).tolist():
        rows = [(c, block) for c in np.flatnonzero(blocks[:, block]).tolist()]
        if batch and len(batch) + len(rows) > BLOCK_ROWS:
            yield tuple(sorted(batch))
            batch = []
        batch += rows
    yield tuple(sorted(batch))


def _split(
    ladders: dict[int | None, Ladder], uncertainty: Uncertainty, classes: int
) -> Generator[tuple[Tally, ...], Any, None]:
    """Split rungs until every cut is exact; the first time also those that widen the bounds."""
    from uqeval.tallies import Error, RankedErrors

    each = max(SPLIT_ROWS // max(len(ladders), 1), 8)
    first = True
    while True:
        bins: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
        for group, ladder in ladders.items():
            rungs = failure_scores.cut_rungs(ladder)[: SPLIT_ROWS if group is None else each]
            if first:
                widest = WIDEST if group is None else max(WIDEST // len(ladders), 8)
                rungs += failure_scores.widest_rungs(ladder, widest)
            prefixes = ladder.prefixes(rungs, POOLED_BITS)
            bins[group is not None] += [(group or 0, p) for p in prefixes]
        first = False
        tallies: list[RankedErrors] = [
            RankedErrors(
                uncertainty, Error("zero-one"), classes, by_class,
                POOLED_BITS, 32 - POOLED_BITS, tuple(sorted(wanted)),
            )
            for by_class, wanted in bins.items() if wanted
        ]  # fmt: skip
        if not tallies:
            return
        counted = yield tuple(tallies)
        for tally in tallies:
            for g in dict.fromkeys(group for group, _ in tally.bins):
                finer = Ladder.of(tally, counted[tally].total, g)
                key = g if tally.by_class else None
                mine = [p for group, p in tally.bins if group == g]
                ladders[key] = ladders[key].with_split(finer, POOLED_BITS, mine)


def _record(ranked: Mapping[str, Any], counts: Any, lacking: str) -> dict[str, Any]:
    """Return scores by rank with those of counts of `Undetected` [3].

    `lacking`: why there is no threshold, "" where there is one.
    """
    pixels, wrong, _ = counts.tolist()
    record = {"pixels": pixels, "errors": wrong, **ranked}
    _put_undetected(record, counts, lacking)
    return record


def _put_undetected(record: dict[str, Any], counts: Any, lacking: str) -> None:
    metric = failure_scores.BY_FIELD["undetected_error_rate"]
    pixels, _, undetected = counts.tolist()
    value = None if lacking else metric.formula(pixels, undetected)
    put(record, metric.field, value, lacking or metric.undefined)


def _item(tally: ItemFailure, data: bytes, counts: Any, lacking: str) -> dict[str, Any]:
    """The scores of one item by itself, exact; `counts` and `lacking` as of `_record`."""
    state = tally.unpack(data)
    pixels, wrong, flagged = state["counts"].tolist()
    pairs, ordered = state["pairs"].tolist()
    errors, successes, risks = state["sums"].tolist()
    right = pixels - wrong
    values = {
        "auroc": ordered / (2 * pairs) if pairs else None,
        "aupr_error": errors / wrong if wrong else None,
        "aupr_success": successes / right if right else None,
        "fpr95": flagged / right if pairs else None,
        "aurc": risks / pixels if pixels else None,
        "e_aurc": risks / pixels - failure_scores.best_aurc(pixels, wrong) if pixels else None,
        "augrc": (pairs - ordered / 2 + wrong**2 / 2) / pixels**2 if pixels else None,
    }
    record: dict[str, Any] = {"pixels": pixels, "errors": wrong}
    for field, value in values.items():
        put(record, field, value, failure_scores.BY_FIELD[field].undefined)
    _put_undetected(record, counts, lacking)
    return record


_ABOUT = """Failure detection: are wrong pixels less certain than correct ones?

Computes AUROC, AUPR, FPR95, AURC, e-AURC, AUGRC, risk at coverage, coverage at risk and
undetected errors, over all pixels and per ground-truth class.

Example: uqeval failure preds.zarr labels/ --uncertainty entropy --uncertainty confidence
"""

FAMILY = Family(
    "failure",
    failure_scores.METRICS,
    _settings,
    lambda settings, facts: {"label", "prediction", settings.uncertainty},
    lambda key, settings, facts: {
        key: plan(settings, facts.classes, facts.class_names, settings.uncertainty in facts.halves)
    },
    again=_again,
    settings_type=FailureSettings,
    about=_ABOUT,
    pooled=_pooled_threshold,
    label="Failure detection",
)
