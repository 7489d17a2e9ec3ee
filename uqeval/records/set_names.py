"""Names of out-of-distribution sets, from the paths of their stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from uqeval.disk.suffixes import OF_STORES, suffix_of
from uqeval.errors import IN_MEMORY


def distinct(names: Iterable[str], form: str, taken: Iterable[str] = ()) -> list[str]:
    """Return the names, with a number where one was there before or is in `taken`.

    `form`: the name and the number, such as "{} ({})".
    """
    result, used = [], set(taken)
    for name in names:
        number, own = 1, name
        while own in used:
            number += 1
            own = form.format(name, number)
        used.add(own)
        result.append(own)
    return result


#: The name of the in-distribution set, and of OUT sets without a path.
IN, OUT = "in", "out"


def set_names(paths: Sequence[str | None]) -> list[str]:
    """Return distinct names of the OUT sets: the name of each store without the suffix, with as
    many of the folders as tell it from the others. So a name never depends on the order.

    `paths`: None of an array in memory, which is called "out", "out_2", ….
    """
    candidates = [list(_candidates(path)) for path in paths]
    lengths = [0] * len(paths)
    while True:
        names = [own[length] for own, length in zip(candidates, lengths, strict=True)]
        times = Counter([IN, *names])
        shared = [k for k, name in enumerate(names) if times[name] > 1]
        left = {k: len(candidates[k]) - lengths[k] - 1 for k in shared}
        # The whole path comes last, for `fog.npz` beside `fog.npy`.
        longer = [k for k in shared if left[k] > 1] or [k for k in shared if left[k]]
        if not longer:
            return distinct(names, "{}_{}", taken=(IN,))
        for k in longer:
            lengths[k] += 1


class Moved(NamedTuple):
    """The first of some items or stores that two reports have in other sets, how many there are,
    and both sets. `of_kind`: they are IN in one report and OUT in the other."""

    first: str
    number: int
    sets: tuple[str, str]
    of_kind: bool


def moved(
    own: Mapping[str, str], other: Mapping[str, str], *inputs: Mapping[str, Any]
) -> Iterator[Moved]:
    """Yield what two reports have in other sets, by the name of its set in each.

    `inputs`: the records of inputs of both. A single OUT set may have any name, and so may OUT sets
    that the other report does not have.
    """
    shared = [name for name in own if name in other]
    kinds = [name for name in shared if (own[name] == IN) != (other[name] == IN)]
    names, other_names = map(recorded_names, inputs)
    of_sets = []
    if min(len(names), len(other_names)) > 2:
        of_sets = [
            name for name in shared
            if name not in kinds and own[name] != other[name]
            and (own[name] in other_names or other[name] in names)
        ]  # fmt: skip
    for found in (kinds, of_sets):
        if found:
            sets = own[found[0]], other[found[0]]
            yield Moved(found[0], len(found), sets, found is kinds)


def moved_stores(inputs: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Moved]:
    """Yield the stores that two reports have in other sets, by the names that their paths give.

    Files of shards may have any number as name, so a store is IN in one and OUT in the other only
    if the stores of IN have changed places with OUT stores.
    """
    stores = _sets_of_paths(inputs), _sets_of_paths(other)
    for found in moved(*stores, inputs, other):
        known = ({name for name, set_name in own.items() if set_name == IN} for own in stores)
        if not found.of_kind or all(
            names <= own.keys() for names, own in zip(known, reversed(stores), strict=True)
        ):
            yield found


def is_order_unknown(inputs: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether nothing tells which of several OUT sets without names of items are the same:
    their own names tell only their order, and so do their paths."""
    names = recorded_names(inputs), recorded_names(other)
    out = [
        {name for name, label in _sets_of_paths(own).items() if label != IN}
        for own in (inputs, other)
    ]
    return (
        all(len(own) > 2 for own in names)
        and any(map(_depend_on_order, (inputs, other)))
        and not out[0] & out[1]
    )


def _depend_on_order(inputs: Mapping[str, Any]) -> bool:
    """Return whether the names of OUT sets tell their order: arrays in memory have no name, and
    earlier versions numbered files of one name."""
    paths = ["/".join(_parts(path)) for path in recorded_paths(inputs)]
    return not all(any(name in path for path in paths) for name in recorded_names(inputs)[1:])


def _sets_of_paths(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the recorded name of each set by a name from the path of its store; empty if this is
    not known, as of ensembles and of arrays in memory."""
    paths, names = recorded_paths(inputs), recorded_names(inputs)
    if len(paths) != len(names) or any(IN_MEMORY in path for path in paths):
        return {}
    return dict(zip(set_names(paths), names, strict=True))


def _parts(path: str) -> tuple[str, ...]:
    """Return the folders and the name of a store, also of a group inside a file."""
    return PurePosixPath(path.replace("::", "/")).parts or (path,)


def recorded_names(inputs: Mapping[str, Any]) -> list[str]:
    """Return the names of the sets in the record of inputs, first that of IN; empty without."""
    return _recorded(inputs, "sets", "name")


def recorded_paths(inputs: Mapping[str, Any]) -> list[str]:
    """Return the paths of the stores of predictions in the record of inputs; empty without."""
    return _recorded(inputs, "predictions", "path")


def _recorded(inputs: Mapping[str, Any], kind: str, key: str) -> list[str]:
    records = inputs.get(kind)
    listed = records if isinstance(records, list) else []
    return [str(own.get(key)) for own in listed if isinstance(own, Mapping)]


def _candidates(path: str | None) -> Iterator[str]:
    """Yield names of a store, the shortest first, and last its whole path."""
    if path is None:
        yield OUT
        return
    *folders, last = _parts(path)
    stem = _stem(last)
    for first in range(len(folders), -1, -1):
        yield "/".join([*folders[first:], stem])
    yield path


def _stem(name: str) -> str:
    while suffix := suffix_of(name, OF_STORES):
        name = name[: -len(suffix)]
    return name
