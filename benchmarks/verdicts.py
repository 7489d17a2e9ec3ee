"""How reliable verdicts are: "n more would decide", equal models, the most harmful items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import uqeval
from benchmarks.estimates import LEVEL, alike, bounds, video_bounds
from benchmarks.populations import SCORES, UNSEEN, Score, logistic, rare, ratio
from uqeval.compare.holm import holm
from uqeval.gate.more_units import more_units
from uqeval.records.resampling import Interval, Units
from uqeval.statistics.draws import Resampling
from uqeval.statistics.from_states import harmful_units
from uqeval.statistics.methods import Bounds, NoBounds
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.swaps import SwapTest, swap_tests
from uqeval.statistics.units import autocorrelation, batch_count
from uqeval.statistics.weighting import Subset
from uqeval.stores.states.saved import SavedStates

#: Scores of a comparison of models, and how many rivals one of them has.
COMPARED = (
    "segmentation.miou", "segmentation.pixel_accuracy", "pavpu.pavpu", "calibration.ece",
    "failure.auroc",
)  # fmt: skip
RIVALS = 3
#: Differences of several rivals are drawn in so many tries only: it takes long.
BEFORE = 60
#: Scenes of the models that are compared, and their classes and pixels of an axis.
SCENES, CLASSES, SIDE = 120, 8, 32


@dataclass(frozen=True)
class Share:
    """How often something happened among so many tries, in %, with its Monte Carlo error."""

    hits: int
    tries: int

    def __str__(self) -> str:
        if not self.tries:
            return "–"
        share = self.hits / self.tries
        error = max(share * (1 - share), 1 / self.tries) / self.tries
        return f"{100 * share:.1f} ± {100 * error**0.5:.1f}"


Drawn = tuple[float, Bounds | NoBounds, int]


@dataclass(frozen=True)
class Data:
    """Samples of so many units: their value, interval and number of units that it is from; and the
    true value. `at`: the same data with another true value, else limits move."""

    name: str
    unit: str
    higher: bool
    truth: float
    draw: Callable[[np.random.Generator, int, int], Drawn]
    at: Callable[[float], Data] | None = None


def of_items(score: Score, items: int, tries: int) -> Data:
    """Independent items, whose true value is that of far more items than all tries have."""
    if score.truth is not None:
        truth = score.truth(items)
    else:
        counts = score.counts(np.random.default_rng(1), np.arange(min(200_000, 500 * tries)), items)
        truth = float(score.of(counts.sum(0)[None])[0])

    def draw(rng: np.random.Generator, units: int, seed: int) -> Drawn:
        counts = score.counts(rng, np.arange(units), items)
        return float(score.of(counts.sum(0)[None])[0]), bounds(score, counts, seed), units

    return Data(score.name, "item", score.higher, truth, draw)


def of_events(items: int, tries: int) -> Data:
    """Items of which 4 are events, or, at another value, as many as it says."""

    def at(value: float) -> Data:
        count = round(value * items)
        score = Score("", "pavpu.pavpu", rare(count), ratio, False, lambda items: count / items)
        return of_items(score, items, tries)

    return replace(at(4 / items), name="rate, 4 events expected", at=at)


def of_pairs() -> Data:
    """Pairs of one video."""

    def draw(rng: np.random.Generator, units: int, seed: int) -> Drawn:
        series = 0.8 + 0.03 * alike(rng, units)
        tau, _ = autocorrelation([series])
        return float(series.mean()), video_bounds([series]), batch_count(units, tau)

    return Data("mean over pairs of a video", "batch", True, 0.8, draw)


@dataclass(frozen=True)
class Power:
    """How often the stated number of units decides, now and with the former formula."""

    now: Share
    before: Share
    median: float


def power(data: Data, units: int, distance: float, tries: int, first_seed: int = 0) -> Power:
    """Set limits at a number of standard errors of `units` units from the observed value. Then draw
    as many units as the inconclusive verdict states, with the same distance of the limit from the
    truth, and count how often they decide.
    """
    rng = np.random.default_rng(units + first_seed)
    values = [data.draw(rng, units, 0)[0] for _ in range(min(200, 10 * tries))]
    gap = distance * float(np.std(values)) * (-1 if data.higher else 1)

    def decided(count: int, seed: int, value: float) -> bool:
        own = data.at(value) if data.at else data
        _, found, _ = own.draw(rng, units + count, seed)
        if isinstance(found, NoBounds):
            return False
        return not found.low <= own.truth + gap <= found.high

    hits, made, before_hits, before_made, said = 0, 0, 0, 0, []
    for seed in range(first_seed, first_seed + tries):
        value, found, drawn = data.draw(rng, units, seed)
        limit = value + gap
        if isinstance(found, NoBounds) or not found.low <= limit <= found.high:
            continue
        interval = Interval(
            LEVEL, found.low, found.high, False, found.method, Units(data.unit, drawn, drawn),
            found.standard_error,
        )  # fmt: skip
        more = more_units(interval, Fraction(value), Fraction(limit), units)
        if more is not None and more.count is not None:
            said.append(more.count)
            made, hits = made + 1, hits + decided(more.count, seed, value)
        before = units * ((found.high - found.low) / 2 / gap) ** 2 - units
        if before <= 100 * units:
            before_made += 1
            before_hits += decided(max(1, round(before)), seed, value)
    median = float(np.median(said)) if said else float("nan")
    return Power(Share(hits, made), Share(before_hits, before_made), median)


def powers(tries: int) -> list[tuple[str, str, Power]]:
    """Rows: score, units, power."""
    names = (
        "ratio of counts (PAvPU)", "mean over items (mTC)", "mIoU, rare classes", "AUROC of errors",
    )  # fmt: skip
    cases = [
        (of_items(score, units, tries), units, f"{units} items")
        for score in SCORES if score.name in names
        for units in (10, 30)
    ]  # fmt: skip
    cases += [(of_events(100, tries), 100, "100 items"), (of_pairs(), 200, "200 pairs")]
    return [(data.name, text, power(data, units, 1.0, tries)) for data, units, text in cases]


def powers_unseen(tries: int) -> Iterator[tuple[str, str, Power]]:
    """Rows of populations, sizes and distances on which the margin of `more_units` was not chosen;
    the last one is of all rows."""
    hits = made = 0
    for score in UNSEEN:
        for units, distance in ((12, 1.0), (20, 0.7), (20, 1.5), (60, 1.0)):
            data = of_items(score, units, tries)
            own = power(data, units, distance, tries, first_seed=10_000)
            hits, made = hits + own.now.hits, made + own.now.tries
            yield score.name, f"{units} items, {distance:g} se", own
    yield "all", "", Power(Share(hits, made), Share(0, 0), float("nan"))


@cache
def equal_models() -> Scoring:
    """States of SCENES scenes as RIVALS + 1 equally good models predict them, model after model.

    Scenes and classes differ in difficulty, so do models on one scene; confidences take few values.
    """
    rng = np.random.default_rng(0)
    share = np.geomspace(1, 0.05, CLASSES)
    present = share * (rng.random((SCENES, CLASSES)) < share**0.5)
    present[:, 0] += 0.5
    cells = SIDE // 4
    labels = np.stack([
        rng.choice(CLASSES, (cells, cells), p=own / own.sum()) for own in present
    ]).repeat(4, 1).repeat(4, 2)  # fmt: skip
    scene = 0.7 * rng.normal(size=(SCENES, CLASSES))
    stacks = []
    for _ in range(RIVALS + 1):
        skill = 1.5 + scene + 0.7 * rng.normal(size=scene.shape)
        of_pixel = np.take_along_axis(skill, labels.reshape(SCENES, -1), 1).reshape(labels.shape)
        right = rng.random(labels.shape) < logistic(of_pixel)
        other = (labels + rng.integers(1, CLASSES, labels.shape)) % CLASSES
        sure = 0.7 * of_pixel + 1.2 * right + rng.normal(size=labels.shape) - 0.3
        confidence = (0.25 + 0.7 * np.floor(12 * logistic(sure)) / 12).astype("f4")
        predicted = np.where(right, labels, other)
        probs = np.repeat(((1 - confidence) / (CLASSES - 1))[:, None], CLASSES, 1)
        np.put_along_axis(probs, predicted[:, None], confidence[:, None], 1)
        stacks.append(probs[:, None].astype("f4"))
    names = [f"{i:04d}" for i in range(SCENES * (RIVALS + 1))]
    families = list(dict.fromkeys(own.split(".")[0] for own in COMPARED))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.states.zip"
        uqeval.evaluate(
            np.concatenate(stacks), np.tile(labels, (RIVALS + 1, 1, 1)).astype("u1"), families,
            names=names, states=path,
        )  # fmt: skip
        scoring = Scoring(SavedStates(path))
        scoring.check()
        for text in (*COMPARED, "pavpu.surplus"):
            assert np.isfinite(
                scoring.table(Subset(range(scoring.items), scoring.items), [text])
            ).all()
    return scoring


def models_on(rng: np.random.Generator, items: int) -> list[list[int]]:
    """Return the rows of some items of each model. The order of models changes from item to
    item.
    """
    scenes = rng.choice(SCENES, items, replace=False)
    of_model = rng.permuted(np.tile(np.arange(RIVALS + 1), (items, 1)), axis=1)
    return [list(own) for own in (of_model * SCENES + scenes[:, None]).T.tolist()]


def resampling_of(items: int, seed: int) -> Resampling:
    return Resampling(tuple(f"{i:03d}" for i in range(items)), 200, seed)


def differs(items: int, addresses: tuple[str, ...], rivals: int, tries: int) -> tuple[Share, Share]:
    """How often one of some equal models "differs" in any of some scores: by swaps and Holm, and by
    plain percentiles of the difference."""
    scoring, rng = equal_models(), np.random.default_rng(items)
    compared_plainly = tries if rivals == 1 else min(tries, BEFORE)
    hits = before = 0
    for seed in range(tries):
        own, *others = models_on(rng, items)[: rivals + 1]
        resampling = resampling_of(items, seed)
        p: list[float] = []
        plainly = False
        for other in others:
            tests = swap_tests(scoring, scoring, [own, other], resampling, addresses)
            p += [test.p for test in tests.values() if isinstance(test, SwapTest)]
            if plainly or seed >= compared_plainly:
                continue
            samples = Samples([scoring] * 2, [own, other], resampling)
            drawn = [samples.scores("drawn", address) for address in addresses]
            differences: NDArray[np.float64] = np.stack([own[0] - own[1] for own in drawn])
            low, high = np.nanquantile(differences, [0.025, 0.975], axis=1)
            plainly = bool(((low > 0) | (high < 0)).any())
        hits += min(holm(p), default=1.0) <= 1 - LEVEL
        before += plainly
    return Share(hits, tries), Share(before, compared_plainly)


def movers(items: int, address: str, tries: int) -> tuple[Share, Share]:
    """How many of the five items whose absence would raise a score most are named: now, and by the
    items' own values."""
    scoring, rng = equal_models(), np.random.default_rng(items)
    family, field = address.split(".")
    hits = before = wanted = 0
    for seed in range(tries):
        places = models_on(rng, items)[0]
        samples = Samples([scoring], [places], resampling_of(items, seed))
        named = [int(own.name) for own in harmful_units(samples, address, 5, 1)]
        whole = scoring.whole(places)[family][field]
        without = np.array([
            scoring.whole([*places[:i], *places[i + 1 :]])[family][field] for i in range(items)
        ])  # fmt: skip
        worst = [int(i) for i in np.argsort(whole - without)[:5] if whole < without[i]]
        alone = samples.scores("alone", address)[0]
        wanted += len(worst)
        hits += len(set(worst) & set(named))
        before += len(set(worst) & set(np.argsort(alone)[:5].tolist()))
    return Share(hits, wanted), Share(before, wanted)


def print_verdicts(tries: int) -> None:
    """Print the tables, in % with their Monte Carlo error."""
    print('\n"n more would decide", limits one standard error from what is observed, %: aim 80\n')
    print("| score | units | more (median) | they decide | before |\n|---|---|---|---|---|")
    for name, units, own in powers(tries):
        print(f"| {name} | {units} | {own.median:.0f} | {own.now} | {own.before} |", flush=True)
    print('\nEqual models "differ", %: at most 6\n')
    print("| scores, rivals | 5 items | before | 10 items | before | 30 items | before |")
    print("|---|---|---|---|---|---|---|")
    for name, addresses, rivals, times in (
        ("mIoU, 1 rival", COMPARED[:1], 1, tries),
        (f"any of {len(COMPARED)} scores, any of {RIVALS} rivals", COMPARED, RIVALS, tries // 2),
    ):  # fmt: skip
        cells = [f"{now} | {plain}" for now, plain in
                 (differs(items, addresses, rivals, times) for items in (5, 10, 30))]  # fmt: skip
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    print("\nThe same on populations that nothing was chosen on, %\n")
    print("| score | units | more (median) | they decide | before |\n|---|---|---|---|---|")
    for name, units, own in powers_unseen(tries):
        print(f"| {name} | {units} | {own.median:.0f} | {own.now} | {own.before} |", flush=True)
    print("\nThe five items that harm a score most are named, %\n")
    print("| score | 10 items | before | 30 items | before |\n|---|---|---|---|---|")
    for address in ("segmentation.miou", "pavpu.surplus"):
        cells = [f"{now} | {plain}" for now, plain in
                 (movers(items, address, max(tries // 10, 1)) for items in (10, 30))]  # fmt: skip
        print(f"| {address} | {' | '.join(cells)} |", flush=True)
