"""How often a gate with `confidence` passes falsely, passes rightly, or is inconclusive.

    python benchmarks/gates.py [--replications 400] [--items 10 20 50 100] [--only miou …]

Sets of images are drawn from a population of `differences.py`, alone or as drives of 5 that differ
(resampled by drive, as with `--group-by`), and sets of 100 pairs of one video. `uqeval.gate` judges
each set by rules with `confidence: 0.9`. Limits are set by the true score, or the true change
against a second model, and by the standard deviation of the score over the sets. A cell has the
share of sets that pass, in %:

    at; beyond; inside (inconclusive)

"at": the limit is the truth, so that at most 5 % may pass; "beyond": the truth misses the limit by
one standard deviation, so that none should pass; "inside": the truth is three standard deviations
inside the limit, so that all could pass; of these, the share of inconclusive sets.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.biased import Population, samples_of
from benchmarks.differences import changes, models_of
from benchmarks.estimates import alike
from uqeval.gate.judge import judge
from uqeval.gate.rules import Limits, Rule
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.records.resampling import Interval, Mover, NoInterval, Units
from uqeval.statistics.differences import difference
from uqeval.statistics.from_states import interval_of
from uqeval.statistics.intervals import interval
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.series import series_mean

LEVEL = 0.9
SCORES = ["segmentation.pixel_accuracy", "segmentation.miou", "failure.aurc", "calibration.ece"]
VIDEO, PAIRS = "temporal.mtc", 100
STRUCTURES = {
    "independent": "few, worse and better",
    "by drive": "groups, worse and better",
}
#: Limits by how many standard deviations the truth is inside them.
MARGINS = (0, -1, 3)
#: What a set says of a score or of a change: None without an interval.
Ends = Bounds | None


@dataclass(frozen=True)
class Judged:
    """A score, or a change of it against the second model: the true one, and that of each set with
    its interval. `kind`: of the rule's limit."""

    address: str
    kind: str
    truth: float
    first: list[float] = field(default_factory=list)
    second: list[float] = field(default_factory=list)
    bounds: list[Ends] = field(default_factory=list)

    @property
    def sign(self) -> int:
        """1 if values above the limit pass; a drop is the negative change."""
        return 1 if self.kind == "min" or "drop" in self.kind else -1

    def measured(self) -> Any:
        """Return the values or changes of all sets."""
        first, second = np.array(self.first), np.array(self.second)
        if self.kind in ("min", "max"):
            return first
        return (first - second) / (np.abs(second) if "relative" in self.kind else 1)

    def limits(self) -> Iterator[float]:
        """Yield the limits of the rules, by `MARGINS`."""
        deviation = float(np.std(self.measured()))
        for margin in MARGINS:
            limit = self.truth - self.sign * margin * deviation
            yield -limit if "drop" in self.kind else limit

    def cell(self, items: int) -> str:
        """Return the shares of passes of all limits, and of inconclusive sets of the last one."""
        shares = []
        for limit in self.limits():
            statuses = [self._status(i, limit, items) for i in range(len(self.first))]
            shares += [[statuses.count(s) / len(statuses) for s in ("pass", "inconclusive")]]
        at, beyond, (inside, unclear) = shares[0][0], shares[1][0], shares[2]
        return "{:.1f}; {:.1f}; {:.0f} ({:.0f})".format(
            *(100 * share for share in (at, beyond, inside, unclear))
        )

    def _status(self, i: int, limit: float, items: int) -> str:
        now, before = self._named("now", self.first[i], items), []
        if self.second:
            before = [self._named("now", self.second[i], items)]
        limits = Limits.model_validate({self.kind: limit, "confidence": LEVEL})
        rule = Rule(Address.parse(self.address), limits, "gates.yaml", 1)
        judgement = judge([now], [rule], before, OneInterval(self.bounds[i], items))
        return judgement.verdicts[0].status

    def _named(self, name: str, value: float, items: int) -> Named:
        family, score = self.address.split(".")
        report = Report(
            uqeval_version="", inputs={}, settings={}, results={family: {score: value}},
            items=[{"name": str(k)} for k in range(items)],
        )  # fmt: skip
        return Named(name, Path(f"{name}.json"), report)


@dataclass(frozen=True)
class OneInterval:
    """A resampler that knows one interval."""

    bounds: Ends
    items: int

    def units(self, report: Path, address: Address) -> Units:
        return Units("item", self.items, self.items)

    def interval(self, report: Path, address: Address, level: float) -> Interval:
        if self.bounds is None:
            raise NoInterval("no interval")
        units, bounds = self.units(report, address), self.bounds
        return Interval(level, bounds.low, bounds.high, False, bounds.method, units)

    def change(
        self, report: Path, baseline: Path, address: Address, level: float, relative: bool
    ) -> Interval:
        return self.interval(report, address, level)

    def movers(self, *arguments: Any) -> list[Mover]:
        return []

    group_movers = movers


def kinds_of(address: str) -> tuple[str, str, str]:
    """Return the limits of the value, of its change and of its relative change."""
    metric = metric_at(address)
    assert metric is not None
    if metric.direction == "higher":
        return "min", "max_drop", "max_drop_relative"
    return "max", "max_rise", "max_rise_relative"


def of_sets(
    models: Sequence[Population], items: int, replications: int
) -> list[Judged]:  # fmt: skip
    """Return scores and changes of sets of so many images of two models."""
    first = models[0]
    rng, addresses = np.random.default_rng(items), first.addresses
    absolute, relative = (changes(list(models), own) for own in (False, True))
    judged = []
    for i, address in enumerate(addresses):
        truths = float(first.truth[i]), float(absolute[i]), float(relative[i])
        judged += [
            Judged(address, kind, truth)
            for kind, truth in zip(kinds_of(address), truths, strict=True)
        ]
    for seed in range(replications):
        places = first.places(rng, items // first.together)
        samples = samples_of(list(models), places, seed, addresses)
        for own in judged:
            own.first.append(samples.value(own.address))
            if own.kind in ("min", "max"):
                own.bounds.append(_of_record(interval(samples, own.address, LEVEL)))
                continue
            own.second.append(samples.value(own.address, 1))
            found = difference(samples, own.address, LEVEL, "relative" in own.kind)
            own.bounds.append(None if isinstance(found, NoBounds) else found)
    return judged


def _of_record(record: dict[str, Any]) -> Ends:
    if record["low"] is None:
        return None
    found = interval_of(record)
    return Bounds(found.low, found.high, found.method)


def of_videos(replications: int) -> Judged:
    """Return the mean of sets of pairs of one video."""
    judged, rng = Judged(VIDEO, "min", 0.8), np.random.default_rng(1)
    for _ in range(replications):
        found = series_mean(0.8 + 0.03 * alike(rng, PAIRS), ["video"] * PAIRS, LEVEL)
        judged.first.append(found.value)
        judged.bounds.append(None if isinstance(found.bounds, NoBounds) else found.bounds)
    return judged


def rows_of(name: str, sizes: Sequence[int], columns: Sequence[list[Judged]]) -> Iterator[str]:
    """Yield a row of the table for each score and kind of limit."""
    for same in zip(*columns, strict=True):
        cells = [own.cell(items) for own, items in zip(same, sizes, strict=True)]
        yield f"| {same[0].address} | {same[0].kind} | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=400)
    parser.add_argument("--items", type=int, nargs="+", default=(10, 20, 50, 100))
    parser.add_argument("--size", type=int, help="items of a population")
    parser.add_argument("--only", nargs="+", default=SCORES, metavar="ADDRESS")
    given = parser.parse_args()
    error = 100 * (0.05 * 0.95 / given.replications) ** 0.5
    print(f"{given.replications} sets, Monte Carlo error {error:.1f} at 5 %\n")
    print(f"| score | limit | images | {' | '.join(map(str, given.items))} |")
    print("|---|---|---|" + "---|" * len(given.items), flush=True)
    for name, pair in STRUCTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            models = models_of(pair, Path(folder), given.size, given.only)
            columns = [of_sets(models, n, given.replications) for n in given.items]
        for row in rows_of(name, given.items, columns):
            print(row, flush=True)
    print(f"\n| {VIDEO} | min | {PAIRS} pairs | {of_videos(given.replications).cell(PAIRS)} |")


if __name__ == "__main__":
    main()
