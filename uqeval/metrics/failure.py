"""The family `failure`: does the uncertainty find the errors? Settings and plan.

Three passes over the maps: which powers of two the uncertainties of each class lie in; pixels and
wrong ones by the high 22 bits of their keys, by class; and all 32 bits where a rank is cut or where
the bounds are widest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics import failure_scores
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._ladder import Ladder
from uqeval.metrics._plan import Plan, Section
from uqeval.metrics.pavpu import check_uncertainty
from uqeval.metrics.thresholds import Rule, fit

if TYPE_CHECKING:
    from uqeval.tallies import ItemFailure, RankedErrors, Tally, Uncertainty

#: High bits of a key: sign and exponent; those that are told apart everywhere.
BLOCK_BITS, POOLED_BITS = 9, 22
#: Rows of a state of the second pass, of 2^13 bins, and of the third, of 2^10 (48 and 32 MB).
BLOCK_ROWS, SPLIT_ROWS = 384, 2048
#: Rungs that are split for the sake of the bounds: of the whole set, and of all classes together.
WIDEST = 512


@dataclass(frozen=True)
class FailureSettings:
    """Choices behind failure detection.

    `uncertainty`: a map's name. `threshold`: rule of the threshold of `undetected_error_rate`, as
    for patches (of 4×4 pixels, where a rule is about patches).

    Raises `UsageError` for what cannot be.
    """

    uncertainty: str = "entropy"
    threshold: str = "mean"
    definition: str = "paper"

    def __post_init__(self) -> None:
        if self.definition != "paper":
            raise UsageError(f"--definition {self.definition!r}; expected paper.")
        object.__setattr__(self, "threshold", str(self.threshold))
        Rule.parse(self.threshold)

    @classmethod
    def of(cls, **given: Any) -> FailureSettings:
        """Settings as given."""
        return cls(**given)


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, FailureSettings]:
    found: dict[str, FailureSettings] = variants(
        "failure", FailureSettings, options, ("uncertainty",)
    )
    for own in found.values():
        check_uncertainty(own.uncertainty, facts)
    return found


def plan(settings: FailureSettings, classes: int, class_names: Sequence[str]) -> Plan:
    """Rank the pixels of the set and of each class, and return the section of one variant."""
    from uqeval.tallies import Error, ItemFailure, Patches, RankedErrors, Uncertainty
    from uqeval.tallies.undetected import Undetected

    uncertainty, wrong = Uncertainty(settings.uncertainty), Error("zero-one")
    occupied = RankedErrors(
        uncertainty, wrong, classes, True, 0, BLOCK_BITS, tuple((c, 0) for c in range(classes))
    )
    fitting = fit(Rule.parse(settings.threshold), Patches(uncertainty, classes), False)
    counted = yield (*next(fitting), occupied)
    blocks = counted[occupied].total["pixels"]
    while True:
        try:
            asked = fitting.send(counted)
        except StopIteration as stop:
            threshold = stop.value.threshold[0]
            break
        counted = yield asked

    undetected = Undetected(uncertainty, classes, threshold)
    own = ItemFailure(uncertainty, classes)
    extra: tuple[Tally, ...] = (undetected, own)
    ladders: dict[int | None, Ladder] = {}
    for bins in _batches(blocks):
        fine = RankedErrors(
            uncertainty, wrong, classes, True, BLOCK_BITS, POOLED_BITS - BLOCK_BITS, bins
        )
        counted = yield (fine, *extra)
        if extra:
            hidden, items = counted[undetected], counted[own].items
            extra = ()
        state = counted[fine].total
        for group in (None, *dict.fromkeys(c for c, _ in bins)):
            part = Ladder.of(fine, state, group)
            ladders[group] = ladders[group].joined(part) if group in ladders else part
    yield from _split(ladders, uncertainty, classes)

    counts = hidden.total["counts"]
    results: dict[str, Any] = {
        "uncertainty": settings.uncertainty,
        "uncertainty_threshold": threshold,
        **_record(ladders[None], *counts.sum(axis=0).tolist()),
        "per_class_by": "label",
        "per_class": [],
    }
    nothing = Ladder.of(occupied, occupied.empty())
    for c, name in enumerate(class_names):
        record = _record(ladders.get(c, nothing), *counts[c].tolist())
        results["per_class"].append({"class": c, "name": name, **record})
    return Section(
        results,
        [
            _item(own, data, undetected.unpack(low)["counts"].sum(axis=0).tolist())
            for data, low in zip(items, hidden.items, strict=True)
        ],
        settings=dataclasses.asdict(settings),
        warnings=_warnings(results),
    )


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


def _record(ladder: Ladder, pixels: int, wrong: int, undetected: int) -> dict[str, Any]:
    record = {"pixels": pixels, "errors": wrong, **failure_scores.scores(ladder)}
    metric = failure_scores.BY_FIELD["undetected_error_rate"]
    put(record, metric.field, metric.formula(pixels, undetected), metric.undefined)
    return record


def _item(tally: ItemFailure, data: bytes, counts: Sequence[int]) -> dict[str, Any]:
    """The scores of one item by itself, exact."""
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
        "undetected_error_rate": counts[2] / pixels if pixels else None,
    }
    record: dict[str, Any] = {"pixels": pixels, "errors": wrong}
    for field, value in values.items():
        put(record, field, value, failure_scores.BY_FIELD[field].undefined)
    return record


def _warnings(results: dict[str, Any]) -> list[str]:
    if results["auroc"] is not None and results["auroc"] < 0.5:
        return [
            f"the AUROC is {results['auroc']:.4f}: wrong pixels are more certain than right ones."
        ]
    return []


FAMILY = Family(
    "failure",
    failure_scores.METRICS,
    _settings,
    lambda settings, facts: {"label", "prediction", settings.uncertainty},
    lambda key, settings, facts: {key: plan(settings, facts.classes, facts.class_names)},
)
