"""Scores of any set of items, items taken several times too, read off saved states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import StoreError
from uqeval.gate.addresses import Address
from uqeval.metrics import FAMILIES
from uqeval.metrics._again import Again, settings_of
from uqeval.metrics._family import Facts, VideoFacts

if TYPE_CHECKING:
    from uqeval.statistics.joined import Joined
    from uqeval.stores.states import SavedStates
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State

#: Numbers of folded states that are held at a time.
_CHUNK = 1 << 24


def facts_of(record: Mapping[str, Any]) -> Facts:
    """What was known of the data of a run, from what its states say."""
    known: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in record.items()}
    if (video := known.get("video")) is not None:
        plain = {k: tuple(v) if isinstance(v, list) else v for k, v in video.items()}
        flows = video["flow_record"]
        known["video"] = VideoFacts(
            **plain | {"flow_record": lambda method: dict(flows.get(method, {}))}
        )
    known["sizes"] = tuple((h, w) for h, w in known["sizes"])
    return Facts(**known)


def agains_of(index: Mapping[str, Any]) -> dict[str, Again]:
    """How each variant and part of a run is scored again, by its key."""
    facts = facts_of(index["facts"])
    families = {family.key or family.name: family for family in FAMILIES.values()}
    found: dict[str, Again] = {}
    for key, record in index["settings"].items():
        family = families.get(key.split("[")[0])
        if family is not None and family.again is not None:
            settings = settings_of(family.settings_type, record)
            found |= family.again(key, settings, facts, index["fitted"])
    return found


class _Stacked:
    """The states of all items of one tally: each field [item, number], large ones by the numbers
    that any item has."""

    def __init__(self, tally: Tally, packed: Sequence[bytes]) -> None:
        self.tally = tally
        self.whole = [values.reshape(-1) for values in tally.empty().values()]
        self.identities = [values[0] if values.size else 0 for values in self.whole]
        self.places: list[NDArray[Any] | None] = []
        self.values: list[NDArray[Any]] = []
        thin = [tally.thin(tally.unpack(data)) for data in packed]
        for i, whole in enumerate(self.whole):
            own = [state[i] for state in thin]
            if own[0][0] is None:
                self.places.append(None)
                self.values.append(_summable(np.stack([values for _, values in own])))
                continue
            places = np.unique(np.concatenate([np.asarray(p) for p, _ in own]))
            values = np.repeat(whole[places][None], len(own), axis=0)
            for row, (p, v) in zip(values, own, strict=True):
                row[np.searchsorted(places, np.asarray(p))] = v
            self.places.append(places)
            self.values.append(_summable(values))

    @property
    def numbers(self) -> int:
        return sum(values.shape[1] for values in self.values)

    def folded(self, weights: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Each field over the items of each row of `weights` [set, item]: [set, number].

        One set of items taken once has the same bits as if they had been folded one by one.
        """
        found = []
        columns = zip(self.tally.fields.values(), self.values, self.identities, strict=True)
        for field, values, identity in columns:
            if field.merge == "sum":
                sums = _weighted(weights, values)
                found.append(sums.astype(field.dtype))
                continue
            best = np.maximum if field.merge == "max" else np.minimum
            rows = [best.reduce(values[row > 0], axis=0, initial=identity) for row in weights]
            found.append(np.stack(rows))
        return found

    def state(self, folded: Sequence[NDArray[Any]], row: int) -> State:
        """One set's state, as `metrics` take it; good until the next one is asked for."""
        state: State = {}
        columns = zip(self.tally.fields.items(), self.places, self.whole, folded, strict=True)
        for (name, field), places, whole, sums in columns:
            if places is None:
                state[name] = sums[row].reshape(field.shape)
            else:
                whole[places] = sums[row]  # the others are as in the empty state for ever
                state[name] = whole.reshape(field.shape)
        return state


def _summable(values: NDArray[Any]) -> NDArray[Any]:
    """As float64, which multiplies fast, where every sum over as many items is exact in it."""
    if values.dtype.kind == "i" and np.abs(values).max(initial=0) * len(values) >= 2**53:
        return values
    return values.astype(np.float64)


def _weighted(weights: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Sums over the items, each as often as its weight; of items of weight 0 not even infinity."""
    found: NDArray[Any]
    if len(weights) == 1 and weights.max(initial=0) <= 1:
        found = values[weights[0] > 0].sum(axis=0)[None]  # row by row, as `fold` does
    elif values.dtype.kind == "i":
        found = weights @ values
    elif np.isfinite(values).all():
        found = weights.astype(np.float64) @ values
    else:
        found = np.stack([row[row > 0] @ values[row > 0] for row in weights])
    return found


class Scoring:
    """Scores of sets of items from the states of one run or of several that were joined.

    `index` as `uqeval.stores.states` has it; `packed(parameters)` the states of a tally, in the
    order of `index["items"]`. Raises `StoreError` for states that do not belong to their index.
    """

    def __init__(self, states: SavedStates | Joined) -> None:
        self.index = states.index
        self.path = states.path
        self.names: tuple[str, ...] = tuple(self.index["items"])
        self.records: list[dict[str, Any]] = self.index["records"]
        try:
            self.agains = agains_of(self.index)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{states.path}: is damaged: its index cannot be scored ({error!r}). "
                "Evaluate again."
            ) from None
        self._stacked: dict[Tally, _Stacked] = {}
        self._of_states: dict[tuple[str, str], NDArray[np.float64]] = {}
        try:
            for key, again in self.agains.items():
                for tally in again.tallies:
                    if tally not in self._stacked:
                        packed = list(states.states(tally.parameters()))
                        self._stacked[tally] = _Stacked(tally, packed)
                for name, (tally, read) in again.of_states.items():
                    rows = [read(tally.unpack(d)) for d in states.states(tally.parameters())]
                    self._of_states[key, name] = np.array(rows, np.float64)
        except ValueError as error:
            raise StoreError(f"{states.path}: {error}.") from None

    @property
    def items(self) -> int:
        """How many items there are."""
        return len(self.names)

    def whole(self, items: Sequence[int] | None = None) -> dict[str, dict[str, Any]]:
        """The results of some items (None: all), with curves, by the keys of a report."""
        weights = np.zeros((1, self.items), np.int64)
        weights[0, list(range(self.items)) if items is None else list(items)] = 1
        (found,) = self._results(weights, whole=True)
        return found

    @cached_property
    def addresses(self) -> dict[str, tuple[Any, ...]]:
        """All scores of the set by address, and where they stand in the results."""
        return dict(addresses_of(self.whole()))

    def table(self, weights: NDArray[np.int64], addresses: Sequence[str]) -> NDArray[np.float64]:
        """The scores at `addresses` of each row of `weights` [set, item]: [set, address], NaN where
        they are undefined."""
        wanted: dict[Any, Any] = {}
        for column, address in enumerate(addresses):
            *parents, last = self.addresses.get(address, (address,))
            place = wanted
            for name in parents:
                place = place.setdefault(name, {})
            place[last] = column
        found = np.full((len(weights), len(addresses)), np.nan)
        for row, results in zip(found, self._results(weights, whole=False), strict=True):
            _pick(results, wanted, row)
        return found

    def _results(
        self, weights: NDArray[np.int64], whole: bool
    ) -> Iterator[dict[str, dict[str, Any]]]:
        most = max((own.numbers for own in self._stacked.values()), default=1)
        step = max(_CHUNK // max(most, 1), 1)
        for first in range(0, len(weights), step):
            part = weights[first : first + step]
            folded = {tally: own.folded(part) for tally, own in self._stacked.items()}
            kept = {
                (key, tally): self._stacked[tally].folded(part * self._kept(key).astype(np.int64))
                for key, again in self.agains.items() if again.leaves_out is not None
                for tally in again.kept_only
            }  # fmt: skip
            means = self._means(part)
            for row in range(len(part)):
                states = {
                    tally: self._stacked[tally].state(sums, row) for tally, sums in folded.items()
                }
                own = {
                    (key, tally): self._stacked[tally].state(sums, row)
                    for (key, tally), sums in kept.items()
                }
                yield self._of(states, own, {k: v[row] for k, v in means.items()}, whole)

    def _of(
        self,
        states: Mapping[Tally, State],
        kept: Mapping[tuple[str, Tally], State],
        means: Mapping[tuple[str, str], float],
        whole: bool,
    ) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for key, again in self.agains.items():
            own = {tally: kept.get((key, tally), states[tally]) for tally in again.tallies}
            record = again.scores(own, whole)
            for name in (*again.means, *again.correlations, *again.of_states):
                _put(record, name, float(means[key, name]))
            head, _, part = key.partition("/")
            if part:
                found[head][part] = record
            else:
                found[key] = record
        return found

    def _means(self, weights: NDArray[np.int64]) -> dict[tuple[str, str], NDArray[np.float64]]:
        """What is a mean of, or a correlation between, fields of the items' records: [set]."""
        found = {}
        for key, again in self.agains.items():
            w = weights * self._kept(key)
            for name, field in again.means.items():
                found[key, name] = _mean(w, self._column(key, field))
            for name, (x, y) in again.correlations.items():
                found[key, name] = _correlation(w, self._column(key, x), self._column(key, y))
            for name in again.of_states:
                values = self._of_states[key, name]
                each = np.repeat(weights, values.shape[1], axis=1)
                found[key, name] = _mean(each, values.reshape(-1))
        return found

    def _kept(self, key: str) -> NDArray[np.float64]:
        """1 for each item that the means of a variant are over, 0 for the others."""
        kept = np.ones(self.items)
        if (name := self.agains[key].leaves_out) is not None:
            kept -= self._column(key, name)
        return np.nan_to_num(kept)

    def _column(self, key: str, field: str) -> NDArray[np.float64]:
        """A field of the items' records, NaN where it is undefined."""
        values = [record.get(key, {}).get(field) for record in self.records]
        return np.array([np.nan if v is None else float(v) for v in values])


def _mean(weights: NDArray[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    known = np.isfinite(values)
    w = weights[:, known].astype(np.float64)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = (w @ values[known]) / w.sum(axis=1)
    return found


def _correlation(
    weights: NDArray[Any], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    known = np.isfinite(x) & np.isfinite(y)
    w = weights[:, known].astype(np.float64)
    a, b = (values[known] - values[known].mean() if known.any() else values[known]
            for values in (x, y))  # fmt: skip
    n = w.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ma, mb = (w @ a) / n, (w @ b) / n
        cov = (w @ (a * b)) / n - ma * mb
        va, vb = (w @ (a * a)) / n - ma * ma, (w @ (b * b)) / n - mb * mb
        r: NDArray[np.float64] = cov / np.sqrt(va * vb)
    undefined = (w > 0).sum(axis=1) < 3
    for own, variance in ((x[known], va), (y[known], vb)):
        least = np.where(w > 0, own, np.inf).min(axis=1, initial=np.inf)
        most = np.where(w > 0, own, -np.inf).max(axis=1, initial=-np.inf)
        # As good as constant: what is left of the variance is rounding.
        undefined |= (least >= most) | (variance <= 1e-12 * own.var() if own.size else True)
    r[undefined] = np.nan
    return np.clip(r, -1.0, 1.0)


def _put(record: dict[str, Any], name: str, value: float) -> None:
    """Set a field, `a.b` inside the record `a`; NaN is undefined."""
    *parents, last = name.split(".")
    for parent in parents:
        record = record.setdefault(parent, {})
    if np.isfinite(value):
        record[last] = value
        record.pop(f"{last}_reason", None)
    else:
        record[last] = None
        record.setdefault(f"{last}_reason", "undefined for these items")


def addresses_of(
    results: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The addresses of a report's numbers, and where each stands; rows of classes by their name, or
    by their id where several have it."""
    for key, record in results.items():
        metric, bracket, rest = key.partition("[")
        variant = rest.removesuffix("]") if bracket else None
        for fields, place in _numbers(record):
            yield Address(metric, fields, variant).within, (key, *place)


def _numbers(record: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    for name, value in record.items():
        if name.endswith("_reason") or isinstance(value, bool | str):
            continue
        if value is None or isinstance(value, int | float):
            yield (name,), (name,)
        elif isinstance(value, Mapping):
            for fields, place in _numbers(value):
                yield (name, *fields), (name, *place)
        elif name == "per_class" and isinstance(value, list):
            called = Counter(str(row.get("name")) for row in value)
            for row in value:
                once = called[str(row.get("name"))] == 1
                own = str(row["name"] if once else row["class"])
                for fields, place in _numbers(row):
                    if fields != ("class",):
                        yield (name, own, *fields), (name, row["class"], *place)


def _pick(record: Mapping[Any, Any], wanted: Mapping[Any, Any], row: NDArray[np.float64]) -> None:
    """Put what is `wanted` of a record (columns by name, at any depth) into a row."""
    for name, below in wanted.items():
        value = record.get(name)
        if value is None:
            continue
        if isinstance(below, int):
            row[below] = value
        elif isinstance(value, list):
            _pick({own["class"]: own for own in value}, below, row)
        else:
            _pick(value, below, row)
