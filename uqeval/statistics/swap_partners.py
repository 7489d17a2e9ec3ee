"""Which tallies of two runs have states that swaps of their items can mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from uqeval.statistics.kinds import metric_at
from uqeval.statistics.scoring import Scoring

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Evaluation
    from uqeval.tallies._contract import Tally

#: Why a score has no test.
_SCALE = "the score changes with the scale of the uncertainty, which swaps of items would mix"
_SHAPES = (
    "the two models have no pair of saved states of the same shape for this score, so their items "
    "cannot be swapped"
)


def problem_of(
    first: Scoring, second: Scoring, partners: Mapping[Tally, Tally], address: str
) -> str | None:
    """Return why a score has no test; None if both runs have it, swaps do not change its scale, and
    all tallies that it reads are partners."""
    metric = metric_at(address)
    if metric is not None and metric.has_scale:
        return _SCALE
    key, other_key = first.key_of(address), second.key_of(address)
    theirs = [partners.get(tally) for tally in first.tallies_of(address)]
    if key is None or key != other_key or theirs != [*second.tallies_of(address)]:
        return _SHAPES
    return None


def partners_of(first: Scoring, second: Scoring, addresses: Sequence[str]) -> dict[Tally, Tally]:
    """Return the tally of the other run for each of the first that has one of the same shape.

    Partners are those that the same score reads; of the others, those of the same variant and type:
    some have the scale of an uncertainty. Options of one run may have added tallies. A tally has
    one partner; a score that needs another one than a score before it has none here.
    """
    partners: dict[Tally, Tally] = {}
    taken: set[Tally] = set()  # of the other run

    def can_join(first_tally: Tally, second_tally: Tally) -> bool:
        if first_tally in partners or second_tally in taken:
            return partners.get(first_tally) == second_tally
        is_alike = type(first_tally) is type(second_tally)
        return is_alike and first_tally.fields == second_tally.fields

    def join(pairs: Sequence[tuple[Tally, Tally]]) -> None:
        if all(can_join(*pair) for pair in pairs):
            partners.update(pairs)
            taken.update(second_tally for _, second_tally in pairs)

    for address in addresses:
        both = first.tallies_of(address), second.tallies_of(address)
        if len(both[0]) == len(both[1]):
            join([*zip(*both, strict=True)])
    for key, evaluation in first.evaluations.items():
        if key in second.evaluations:
            others = all_tallies(second.evaluations[key])
            for pair in product(all_tallies(evaluation), others):
                join([pair])
    return partners


def all_tallies(evaluation: Evaluation[Any]) -> list[Tally]:
    """Return all tallies of a variant or part: those that are folded, those that are read item by
    item.
    """
    over = evaluation.over_items()
    return [*evaluation.tallies(), *(tally for tally, _ in over.of_states.values())]
