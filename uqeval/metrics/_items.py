"""Records of single items, made for many items at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import SetStates
from uqeval.metrics._evaluation import TallyResult

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

T = TypeVar("T")
Record = dict[str, Any]

#: Items whose states are unpacked together, and the numbers of these at most.
_MOST_ITEMS, _MOST_NUMBERS = 1024, 1 << 22
#: The size of the cache of records for equal states: in records, and in bytes of states.
_MOST_RECORDS, _MOST_BYTES = 1 << 14, 1 << 10
#: Up to this number of sums, one `math.fsum` each takes less time than array operations for each
#: column.
_FEW_SUMS = 64


def once_for_equal_states(score: Callable[..., Record], *items: Iterable[bytes]) -> list[Record]:
    """Return `score` of the packed states of each item, of one or several tallies.

    Items with equal states share a record: most items of one pixel have the state of another.
    """
    known: dict[tuple[bytes, ...], Record] = {}
    records = []
    for states in zip(*items, strict=True):
        record = known.get(states)
        if record is None:
            record = score(*states)
            if len(known) < _MOST_RECORDS and sum(map(len, states)) <= _MOST_BYTES:
                known[states] = record
        records.append(record)
    return records


def joined_states(
    tallies: Sequence[Tally], items: Sequence[Iterable[bytes]]
) -> Iterator[list[State]]:
    """Yield the states of each tally for some items in a row, with the items as the first axis.

    `items`: the packed states of the items, of each tally.
    """
    for block in _blocks(tallies, items):
        yield _unpacked(tallies, block)


def _blocks(
    tallies: Sequence[Tally], items: Sequence[Iterable[bytes]]
) -> Iterator[list[tuple[bytes, ...]]]:
    """Yield the packed states of some items in a row, [item][tally]."""
    size = sum(math.prod(field.shape) for tally in tallies for field in tally.fields.values())
    step = max(min(_MOST_ITEMS, _MOST_NUMBERS // max(size, 1)), 1)
    rows = zip(*items, strict=True)
    while block := list(islice(rows, step)):
        yield block


def _unpacked(tallies: Sequence[Tally], block: Iterable[tuple[bytes, ...]]) -> list[State]:
    own_states = zip(tallies, zip(*block, strict=True), strict=True)
    return [tally.unpack_items(list(own)) for tally, own in own_states]


def score_items(
    tallies: Sequence[Tally],
    results: Mapping[Tally, TallyResult],
    score: Callable[..., Sequence[T]],
) -> list[T]:
    """Return `score(*states)` of all items, from the states of each tally for some of them.

    Items with equal small states share a score, as in `once_for_equal_states`.
    """
    known: dict[tuple[bytes, ...], T] = {}
    scores: list[T] = []
    for block in _blocks(tallies, [results[tally].items for tally in tallies]):
        new = [states for states in dict.fromkeys(block) if states not in known]
        scored = (
            dict(zip(new, score(*map(SetStates, _unpacked(tallies, new))), strict=True))
            if new
            else {}
        )
        scores += [known[states] if states in known else scored[states] for states in block]
        if len(known) < _MOST_RECORDS:
            known |= {k: v for k, v in scored.items() if sum(map(len, k)) <= _MOST_BYTES}
    return scores


def each_state(tally: Tally, items: Iterable[bytes]) -> Iterator[State]:
    """Yield the state of each item, as `Tally.unpack` does."""
    for (states,) in joined_states([tally], [items]):
        for item in range(len(next(iter(states.values())))):
            yield {name: values[item] for name, values in states.items()}


def exact_sums(values: Array) -> Array:
    """Return the sums of the last axis, rounded once: the bits of `math.fsum`."""
    shape, numbers = values.shape[:-1], values.shape[-1]
    rows = values.reshape(math.prod(shape), numbers)
    if len(rows) <= _FEW_SUMS:
        return np.array([math.fsum(row) for row in rows.tolist()], np.float64).reshape(shape)
    total, rest = np.zeros((2, len(rows)))
    is_rounded = np.zeros(total.size, bool)
    with np.errstate(invalid="ignore", over="ignore"):
        for column in rows.T[rows.any(axis=0)]:  # zeros change no bit
            total, lost = _two_sum(total, column)
            rest, lost = _two_sum(rest, lost)
            is_rounded |= lost != 0
        sums: Array = total + rest
    for row in np.flatnonzero(is_rounded):
        sums[row] = math.fsum(rows[row].tolist())
    return sums.reshape(shape)


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b, rounded, and the rounding error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
