"""The names of classes that stores declare: all must number the classes alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from uqeval.errors import StoreError, UsageError, all_listed, cut, listed, quoted

if TYPE_CHECKING:
    from uqeval.stores.array import Store


def names_of_classes(
    given: Sequence[str] | None, stores: Sequence[Store], classes: int
) -> tuple[tuple[str, ...], list[str]]:
    """Return the name of each class, and warnings about the names: those that the user gives, else
    those of the first store that has names of all classes, else the ids.

    Raises `StoreError` as `refuse_other_numbers` does, unless the user gives the names.
    """
    declared = [
        (store.path, names)
        for store in stores
        if given is None and (names := tuple(store.attributes.get("class_names") or ()))
    ]
    refuse_other_numbers(declared)
    complete = [(where, names) for where, names in declared if len(names) == classes]
    if not complete:
        names = _ids(classes) if given is None else tuple(given)
        return names, _shared(names, "--class-names")
    where, names = complete[0]
    return names, _shared(names, where) + other_words(names, where, complete[1:])


def check_number(
    given: Sequence[str] | None, stored: Sequence[str] | None, classes: int, where: str
) -> None:
    """Raise `UsageError` if the user does not give one name per class, `StoreError` if the store at
    `where` does not have one.
    """
    if given is not None and len(given) != classes:
        raise UsageError(
            f"--class-names: {len(given)} names, but {where} has {classes} classes; give one name "
            "per class."
        )
    if stored and len(stored) != classes:
        raise StoreError(
            f"{where}: {len(stored)} class_names for {classes} classes; give one name per class."
        )


def refuse_other_numbers(declared: Iterable[tuple[str, Sequence[str]]], advice: str = "") -> None:
    """Raise `StoreError` if a class has different numbers in two places.

    `declared`: each place, and the names of its classes. Names that a place has more than once,
    empty names and ids do not tell a class. `advice`: the end of the message.
    """
    places: dict[tuple[str, ...], str] = {}
    for where, names in declared:
        if tuple(names) != _ids(len(names)):
            places.setdefault(tuple(names), where)
    repeated = {name for names in places for name, n in Counter(names).items() if n > 1}
    first_places: dict[str, tuple[int, tuple[str, ...]]] = {}
    for names, where in places.items():
        for number, name in enumerate(names):
            first, others = first_places.setdefault(name, (number, names))
            if first != number and name and name not in repeated:
                raise StoreError(
                    f"the classes have other numbers: {quoted(name)} is class {first} in "
                    f"{cut(places[others])} (class_names {all_listed(others)}) and class "
                    f"{number} in {cut(where)} ({all_listed(names)}). Write both with the same "
                    f"order of classes, or correct the class_names that are wrong{advice}."
                )


def _ids(classes: int) -> tuple[str, ...]:
    """Return the names of classes that have none."""
    return tuple(str(c) for c in range(classes))


def _shared(names: Sequence[str], where: str) -> list[str]:
    """Return a warning if several classes have the same name: only their ids then differ."""
    ids: dict[str, list[int]] = defaultdict(list)
    for c, name in enumerate(names):
        ids[name].append(c)
    shared = [
        f"{quoted(name)} of the classes {listed(class_numbers)}"
        for name, class_numbers in ids.items()
        if len(class_numbers) > 1
    ]
    if not shared:
        return []
    return [f"{where}: class_names repeats {listed(shared)}; only ids distinguish these classes."]


def other_words(
    names: Sequence[str], where: str, declared: Sequence[tuple[str, Sequence[str]]]
) -> list[str]:
    """Return a warning for each store in which a class has another name; empty ones are none."""
    warnings = []
    for other, own in declared:
        differing = [c for c, name in enumerate(own) if name != names[c] and name and names[c]]
        if differing:
            c = differing[0]
            warnings.append(
                f"class {c} is {quoted(own[c])} in {other}, and {quoted(names[c])} in {where}; "
                "results use the latter."
            )
    return warnings
