"""The numbers of classes, which must be the same wherever their names are declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from uqeval.errors import StoreError, cut, quoted


def refuse_other_numbers(declared: Iterable[tuple[str, Sequence[str]]], advice: str = "") -> None:
    """Raise `StoreError` if a class has different numbers in two places.

    `declared`: each place, and the names of its classes. Names that a place has more than once,
    empty names and ids do not tell a class. `advice`: the end of the message.
    """
    places: dict[tuple[str, ...], str] = {}
    for where, names in declared:
        if tuple(names) != ids_of(len(names)):
            places.setdefault(tuple(names), where)
    repeated = {name for names in places for name, n in Counter(names).items() if n > 1}
    first_places: dict[str, tuple[int, tuple[str, ...]]] = {}
    for names, where in places.items():
        for number, name in enumerate(names):
            first, others = first_places.setdefault(name, (number, names))
            if first != number and name and name not in repeated:
                raise StoreError(
                    f"the classes have other numbers: {quoted(name)} is class {first} in "
                    f"{cut(places[others])} (class_names {cut(', '.join(others))}) and class "
                    f"{number} in {cut(where)} ({cut(', '.join(names))}). Write both with the same "
                    f"order of classes, or correct the class_names that are wrong{advice}."
                )


def ids_of(classes: int) -> tuple[str, ...]:
    """Return the names of classes that have none."""
    return tuple(str(c) for c in range(classes))
