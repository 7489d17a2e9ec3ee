"""How often intervals of scores that rank whole items contain the truth, by the number of items.

    python benchmarks/few_items.py [--replications 2000] [--items 10 30 100]

The risk and the uncertainty of items are correlated; the truth is the score of 4000 of them. Rows
with a rarer kind have 20 % of items above the risk limit. "Two sets": items of two sets, of which
the second is a third of the first; units are left out within their set, and the degrees are
Welch's. "Slice": a random third of the items, as `--slices` has it. Shares, means and counts of
slices have the rates of sets of that size.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import uqeval.metrics._ranked_items as ranked
from uqeval.metrics.image_failure_scores import BY_FIELD
from uqeval.statistics import jackknife, methods
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import DRAWN
from uqeval.statistics.methods import Bounds

Array = NDArray[Any]
LEVEL, DRAWS, POPULATION = 0.95, 500, 4000


@dataclass(frozen=True)
class Ranking:
    """A score of the risks and uncertainties of items; `limit`: of risks, above which an item
    counts as bad; `sets`: items are of two sets, and the score tells the second from the first."""

    field: str
    of: Callable[..., Array]
    limit: float | None = None
    sets: bool = False
    part: float = 1.0

    @property
    def is_logit(self) -> bool:
        return self.sets or BY_FIELD[self.field].interval == "logit"

    def drawn(self, rng: np.random.Generator, items: int) -> tuple[Array, Array, Array]:
        """Return what is ranked, the uncertainty and the set of each item."""
        if self.sets:
            outside = np.arange(items) >= items - items // 4
            return outside.astype(float), rng.normal(1.2 * outside, 1 + outside), outside
        hard = rng.normal(size=items)
        risk = expit(1.2 * hard + 0.8 * rng.normal(size=items) - 1.5)
        uncertainty = hard + 0.7 * rng.normal(size=items)
        value = risk if self.limit is None else (risk > self.limit).astype(float)
        return value, uncertainty, np.zeros(items, bool)


RANKINGS = {
    "AURC": Ranking("aurc", ranked.aurc),
    "e-AURC": Ranking("e_aurc", ranked.e_aurc),
    "AUGRC": Ranking("augrc", ranked.augrc),
    "AUROC, half above the limit": Ranking("auroc", ranked.auroc, limit=0.18),
    "AUROC, 20 % above the limit": Ranking("auroc", ranked.auroc, limit=0.41),
    "Spearman's ρ": Ranking("spearman", ranked.spearman),
    "Kendall's τ": Ranking("kendall", ranked.kendall),
    "AUROC of two sets": Ranking("auroc", ranked.auroc, sets=True),
    "AURC, slice of a third": Ranking("aurc", ranked.aurc, part=1 / 3),
    "Spearman's ρ, slice of a third": Ranking("spearman", ranked.spearman, part=1 / 3),
}


def bounds(ranking: Ranking, data: Sequence[Array]) -> Bounds | None:
    """Return the interval of a score of items; None where there is none."""
    value, uncertainty, outside = data
    items = len(value)
    weights = np.concatenate([np.ones((1, items), np.int64), 1 - np.eye(items, dtype=np.int64)])
    with np.errstate(all="ignore"):
        score, *without = ranking.of(weights, value, uncertainty)
    members = [np.flatnonzero(outside == own) for own in np.unique(outside)]
    least = min(map(len, members))
    if not np.isfinite(score) or not np.isfinite(without).all() or least < 2:
        return None
    scores = jackknife.LeftOut(float(score), np.array(without), members, items, least)
    if not ranking.sets and BY_FIELD[ranking.field].interval in DRAWN:
        return _of_draws(ranking, data, scores)
    if scores.spread().variance == 0 and not (ranking.is_logit and score in (0.0, 1.0)):
        return None
    found = jackknife.jackknife_t(scores, LEVEL, logit=ranking.is_logit)
    return found if isinstance(found, Bounds) else None


def _of_draws(ranking: Ranking, data: Sequence[Array], scores: jackknife.LeftOut) -> Bounds | None:
    """Return the interval of a score that has no other bound than 0: from draws."""
    items = len(data[0])
    if items < methods.LEAST_DRAWN:
        return None
    names = tuple(f"{i:06d}" for i in range(items))
    (drawn,) = Resampling(names, DRAWS, 0).drawn()
    with np.errstate(all="ignore"):
        draws = ranking.of(drawn.weights, *data[:2])
    draws = draws[np.isfinite(draws)]
    found = methods.expanded(draws, items, LEVEL)
    if BY_FIELD[ranking.field].interval == "positive":
        return methods.up_to(found, jackknife.jackknife_log(scores, LEVEL))
    return methods.beyond_bias(found, draws, scores.value, items)


def simulate(ranking: Ranking, items: int, replications: int) -> tuple[float, float]:
    """Return the shares of intervals that contain the truth, and of sets without an interval."""
    rng = np.random.default_rng(items)
    one = np.ones((1, POPULATION), np.int64)
    truth = np.mean([
        ranking.of(one, *ranking.drawn(np.random.default_rng(k), POPULATION)[:2])[0]
        for k in range(20)
    ])  # fmt: skip
    held = none = 0
    for _ in range(replications):
        data = ranking.drawn(rng, items)
        if ranking.part < 1:
            chosen = rng.random(items) < ranking.part
            data = data[0][chosen], data[1][chosen], data[2][chosen]
        found = bounds(ranking, data) if len(data[0]) > 1 else None
        none += found is None
        held += found is not None and found.low - 1e-12 <= truth <= found.high + 1e-12
    return held / max(replications - none, 1), none / replications


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=2000)
    parser.add_argument("--items", type=int, nargs="+", default=(10, 30, 100))
    given = parser.parse_args()
    error = 100 * (0.95 * 0.05 / given.replications) ** 0.5
    print(
        f"{given.replications} sets, Monte Carlo error {error:.1f} at 95 %; contain the truth, %\n"
    )
    print(f"| score | {' | '.join(f'{n} items' for n in given.items)} |")
    print("|---|" + "---|" * len(given.items))
    for name, ranking in RANKINGS.items():
        rates = [simulate(ranking, n, given.replications) for n in given.items]
        cells = [f"{100 * held:.1f}" + (f", none {100 * none:.0f}" if none > 0.005 else "")
                 for held, none in rates]  # fmt: skip
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
