"""The driver: it runs the passes of evaluations, and is the only code that sends into a generator.

Whoever counts (the scheduler over data, or `replay` over saved states) sees only tallies to count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Counted, Evaluation, Passes
    from uqeval.tallies import Tally

Key = TypeVar("Key", bound=Hashable)


class Last(tuple["Tally", ...]):
    """The tallies of an evaluation's last pass: it needs no maps to be kept for another."""


class Running(Generic[Key]):
    """Generators of passes that advance side by side.

    `asked`: the tallies that each waits for; `results`: what each returned, once it is done.
    """

    def __init__(self, passes: Mapping[Key, Passes]) -> None:
        self._passes = dict(passes)
        self.asked: dict[Key, tuple[Tally, ...]] = {}
        self.results: dict[Key, Any] = {}
        for key in self._passes:
            self._advance(key, None)

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """Return all tallies that are waited for, each once."""
        return tuple(dict.fromkeys(t for asked in self.asked.values() for t in asked))

    def send(self, counted: Mapping[Tally, Counted], keys: Iterable[Key] | None = None) -> None:
        """Give the generators `keys` (None: all that wait) what they asked for."""
        for key in list(self.asked) if keys is None else keys:
            self._advance(key, {tally: counted[tally] for tally in self.asked.pop(key)})

    def close(self) -> None:
        """End all generators that still wait."""
        for key in list(self.asked):
            self._passes[key].close()

    def _advance(self, key: Key, counted: dict[Tally, Counted] | None) -> None:
        try:
            self.asked[key] = self._passes[key].send(counted)  # type: ignore[arg-type]
        except StopIteration as stop:
            self.results[key] = stop.value


def drive(evaluations: Mapping[str, Evaluation[Any]]) -> Passes:
    """Run evaluations that share what they fit; return their sections by key.

    The first fits. Each tally that `scores` and `section` read is counted in the first pass in
    which what is fitted determines it, beside the passes of `fit` and `exact`.
    """
    first = next(iter(evaluations.values()))
    exact = {key: own.exact() for key, own in evaluations.items()}
    running = Running({None: first.fit(), **exact})
    counted: dict[Tally, Counted] = {}
    found: Mapping[Tally, Counted] = {}
    while True:
        wanted = dict.fromkeys(
            tally for own in evaluations.values() for tally in (*own.tallies(), *own.beside())
        )
        counted |= {tally: found[tally] for tally in wanted if tally in found}
        missing = tuple(tally for tally in wanted if tally not in counted)
        asked = running.tallies
        if not asked:
            break
        found = yield tuple(dict.fromkeys((*asked, *missing)))
        running.send(found)
    if missing:
        counted |= yield Last(missing)
    sections = {}
    for key, own in evaluations.items():
        mine = {tally: counted[tally] for tally in (*own.tallies(), *own.beside())}
        sections[key] = own.section(mine, running.results[key])
    return sections


def groups_of(evaluations: Mapping[str, Evaluation[Any]]) -> list[dict[str, Evaluation[Any]]]:
    """Return the evaluations in groups that share what is fitted."""
    found: dict[int, dict[str, Evaluation[Any]]] = {}
    for key, own in evaluations.items():
        found.setdefault(id(own.fitted), {})[key] = own
    return list(found.values())


def together(*passes: Passes) -> Passes:
    """Run several generators in the same passes; return what each returns, in order."""
    running = Running(dict(enumerate(passes)))
    while running.asked:
        running.send((yield running.tallies))
    return [running.results[i] for i in range(len(passes))]


def renamed(passes: Passes, name: Callable[[Tally], Tally]) -> Passes:
    """Run a generator with other tallies in place of those that it asks for."""
    running = Running({"": passes})
    while running.asked:
        own = {tally: name(tally) for tally in running.tallies}
        counted = yield tuple(own.values())
        running.send({tally: counted[other] for tally, other in own.items()})
    return running.results[""]


def replay(passes: Passes, count: Callable[[Tally], Counted | None]) -> tuple[bool, Any]:
    """Run a generator over saved states. Return whether these held all, and what it returned.

    `count` returns a tally's states, None where none are saved.
    """
    running = Running({"": passes})
    while running.asked:
        counted: dict[Tally, Counted] = {}
        for tally in running.tallies:
            own = count(tally)
            if own is None:
                running.close()
                return False, None
            counted[tally] = own
        running.send(counted)
    return True, running.results[""]
