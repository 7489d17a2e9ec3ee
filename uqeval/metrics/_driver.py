"""The driver: it runs the passes of evaluations, and is the only code that sends into a generator.

The counter (the scheduler over data, or `replay` over saved states) sees only tallies to count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Evaluation, Passes, Section, TallyResult
    from uqeval.tallies._contract import Tally

Key = TypeVar("Key", bound=Hashable)


class LastRequest(tuple["Tally", ...]):
    """The tallies of an evaluation's last pass, after which it needs no maps."""


class Running(Generic[Key]):
    """Generators of passes that advance side by side.

    `requests`: the tallies that each waits for, in the order of the generators; `results`: the
    return value of each that is done.
    """

    def __init__(self, passes: Mapping[Key, Passes]) -> None:
        self._passes = dict(passes)
        self.requests: dict[Key, tuple[Tally, ...]] = {}
        self.results: dict[Key, Any] = {}
        for key in self._passes:
            self._advance(key, None)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Return all requested tallies, without duplicates."""
        return tuple(dict.fromkeys(t for tallies in self.requests.values() for t in tallies))

    def send(self, results: Mapping[Tally, TallyResult], keys: Iterable[Key] | None = None) -> None:
        """Give the generators `keys` (None: all that wait) the results that they requested."""
        for key in list(self.requests) if keys is None else keys:
            self._advance(key, {tally: results[tally] for tally in self.requests.pop(key)})
        self.requests = {key: self.requests[key] for key in self._passes if key in self.requests}

    def close(self, keys: Iterable[Key] | None = None) -> None:
        """Close the generators `keys` (None: all) that still wait, so that they hold no results."""
        for key in self.requests if keys is None else keys:
            self._passes[key].close()

    def _advance(self, key: Key, results: dict[Tally, TallyResult] | None) -> None:
        try:
            self.requests[key] = self._passes[key].send(results)  # type: ignore[arg-type]
        except StopIteration as stop:
            self.results[key] = stop.value


def drive(evaluations: Mapping[str, Evaluation[Any]], sectioned: bool = True) -> Passes:
    """Run evaluations in the same passes; return their sections by key, if `sectioned`.

    Only a sweep gives several: a family and its parts. Each tally that `scores` and `section` read
    is counted in the first pass for which the fitted numbers are known. That may be a pass of `fit`
    or `exact`.
    """
    fits = {("fit", key): evaluation.fit() for key, evaluation in evaluations.items()}
    exact = {("exact", key): evaluation.exact() for key, evaluation in evaluations.items()}
    running = Running(fits | exact)
    results: dict[Tally, TallyResult] = {}
    new_results: Mapping[Tally, TallyResult] = {}
    while True:
        unread_tallies = dict.fromkeys(
            tally
            for evaluation in evaluations.values()
            for tally in (*evaluation.tallies(), *evaluation.extra_tallies())
        )
        results |= {tally: new_results[tally] for tally in unread_tallies if tally in new_results}
        missing = tuple(tally for tally in unread_tallies if tally not in results)
        requested = running.tallies
        if not requested:
            break
        new_results = yield tuple(dict.fromkeys((*requested, *missing)))
        running.send(new_results)
    if missing:
        results |= yield LastRequest(missing)
    sections: dict[str, Section] = {}
    if not sectioned:
        return sections
    for key, evaluation in evaluations.items():
        results_of_evaluation = {
            tally: results[tally] for tally in (*evaluation.tallies(), *evaluation.extra_tallies())
        }
        sections[key] = evaluation.section(results_of_evaluation, running.results["exact", key])
    return sections


def run_jointly(*passes: Passes) -> Passes:
    """Run several generators in the same passes; return their results in order."""
    running = Running(dict(enumerate(passes)))
    while running.requests:
        running.send((yield running.tallies))
    return [running.results[i] for i in range(len(passes))]


def renamed(
    passes: Passes,
    name: Callable[[Tally], Tally],
    result_of: Callable[[Tally, TallyResult], TallyResult] = lambda tally, result: result,
) -> Passes:
    """Run a generator, but replace the tallies that it requests.

    `result_of` returns the result of a requested tally from that of its replacement.
    """
    running = Running({"": passes})
    while running.requests:
        replaced = {tally: name(tally) for tally in running.tallies}
        results = yield tuple(replaced.values())
        running.send({t: result_of(t, results[other]) for t, other in replaced.items()})
    return running.results[""]


def of_items(passes: Passes, items: Sequence[int], names: Sequence[str]) -> Passes:
    """Run a generator on some of the items with these names, for example those of a slice.

    A tally that keeps the states of items is counted for all items, where the run counts it too.
    """
    from uqeval.maps.views import OfItems

    view = OfItems.of(items, names)
    ascending = sorted(view.items)

    def in_view(tally: Tally) -> Tally:
        return tally if tally.keeps_items else tally.in_view(view.within(tally.view))

    def of_view(tally: Tally, result: TallyResult) -> TallyResult:
        return result.only(tally, ascending) if tally.keeps_items else result

    return (yield from renamed(passes, in_view, of_view))


def replay(passes: Passes, count: Callable[[Tally], TallyResult | None]) -> tuple[bool, Any]:
    """Run a generator on saved states. Return whether the states were complete, and its result.

    `count` returns a tally's states, None where none are saved.
    """
    running = replayed({"": passes}, count)
    running.close()
    return not running.requests, running.results.get("")


def replayed(
    passes: Mapping[Key, Passes], count: Callable[[Tally], TallyResult | None]
) -> Running[Key]:
    """Run generators on saved states, each up to the first pass that `count` lacks a tally of."""
    running = Running(passes)
    for key in passes:
        while key in running.requests:
            results: dict[Tally, TallyResult] = {}
            for tally in running.requests[key]:
                if (result := count(tally)) is None:
                    break
                results[tally] = result
            else:
                running.send(results, [key])
                continue
            break
    return running
