"""The void id and the names of classes: given, declared by stores, which must agree, or assumed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.errors import (
    DataError,
    StoreError,
    UsageError,
    all_listed,
    cut,
    listed,
    number_flaw,
    quoted,
)
from uqeval.stores.fill_values import INVALID, numbers_of

if TYPE_CHECKING:
    from uqeval.stores.array import Store, StoredArray

#: An id that no label has: there are at most 65,535 classes.
_NO_LABEL = 65535


class AssumedVoid(int):
    """The default void id, if neither the user nor a store gives one. If there are more classes
    than this number, it is also the id of a class."""


#: The void id of labels, unless the user or the store gives another.
ASSUMED_VOID = AssumedVoid(255)


def declared_void(attributes: Mapping[str, Any], where: str) -> int | None:
    """Return the attribute `ignore_index`; None without it. Raises `StoreError` if it is no whole
    number.
    """
    given = attributes.get("ignore_index")
    void = whole_of(given)
    if void is None and given is not None:
        raise StoreError(
            f"{cut(where)}: attribute ignore_index is {quoted(given)}, expected an integer, "
            "such as 255. Change it, or remove it."
        )
    return void


def whole_of(value: Any) -> int | None:
    """Return the whole number that an attribute means: formats store it as a float, or as a list of
    one. None if it means none."""
    from uqeval.stores.kinds import single_of  # loads NumPy

    value = single_of(value.tolist() if isinstance(value, np.generic | np.ndarray) else value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def void_id_of(given: int | None, *groups: Sequence[Store]) -> int:
    """Return the void id: the given one, else that of the first group of stores in which one
    declares it, else 255.

    Raises `UsageError` if the stores of this group declare different ids.
    """
    if given is not None:
        return given
    for stores in groups:
        paths: dict[int, str] = {}
        for store in stores:
            void = declared_void(store.attributes, store.path)
            if void is not None:
                paths.setdefault(void, store.path)
        if len(paths) > 1:
            declared = [f"{void} in {cut(path)}" for void, path in paths.items()]
            raise UsageError(
                f"the void id (attribute ignore_index) is {listed(declared)}; expected one for all "
                f"members of an ensemble. Give that of the labels, such as --ignore-index "
                f"{min(paths)}, or change the attribute."
            )
        if paths:
            return min(paths)
    return ASSUMED_VOID


def refuse_other_void(
    arrays: Iterable[StoredArray], void: int, *, option_counts: bool = True
) -> None:
    """Raise `StoreError` for an array of ids, such as that of an item, that declares another void
    id than the one of its store, which counts. Ids that its dtype cannot hold are in no pixel.

    `option_counts`: `--ignore-index` would count for these ids.
    """
    for array in (holder for joined in arrays for holder in joined.holders):
        own = declared_void(array.attributes, array.where)
        if own is not None and own != void and holds_id(array.dtype, own):
            option = f", or {how_to_give(own, void)}" if option_counts else ""
            raise StoreError(
                f"{array.where}: attribute ignore_index is {own}, but the void id is {int(void)}; "
                f"expected one for all items. If {own} is void in all, set ignore_index of the top "
                f"group of the store to it{option}; else remove the attribute of the array, or of "
                "the group of its item."
            )


def fills_of(arrays: Iterable[StoredArray]) -> dict[int, str]:
    """Return the ids that attributes of numbers, such as `_FillValue`, declare to be none in any of
    the arrays, each with the attribute. Tools write a `_FillValue` of 0 to all arrays; it is left
    out.
    """
    return {
        int(value): name
        for joined in arrays for holder in joined.holders for name in INVALID
        for value in (numbers_of(holder, name) if name in holder.attributes else ())
        if value.is_integer() and (value or name != "_FillValue")
    }  # fmt: skip


def doubtful_fills(arrays: Iterable[StoredArray], void: int) -> dict[int, str]:
    """Return `fills_of` arrays other than `void`; none if somebody gives or declares a void id."""
    fills = fills_of(arrays) if isinstance(void, AssumedVoid) else {}
    return {fill: name for fill, name in fills.items() if fill != void}


def refuse_fill_ids(
    ids: Array, array: StoredArray, void: int, where: str, noun: str, to: str = ""
) -> None:
    """Raise `DataError` for ids of an array that are `doubtful_fills`: they would be a class.

    `to`: the Python class that takes the void id of an array in memory; "" for a store.
    """
    for fill, name in doubtful_fills([array], void).items():
        if count := int(np.count_nonzero(ids == fill)):
            advice = (
                f"If {fill} is void, {how_to_give(fill, void, to)}; if it is a class, "
                f"{how_to_give(int(void), void, to)}."
                if to else
                f"If {fill} is void, set the attribute ignore_index of the store to it; if it is a "
                f"class, set that to {int(void)}. For labels, --ignore-index does the same."
            )  # fmt: skip
            raise DataError(
                f"{where}: {count} of {ids.size} pixels have {noun} {fill}, which the attribute "
                f"{name} of the array declares to be none, but the void id is {int(void)}. {advice}"
            )


def refuse_void_of_array(
    ids: Array, array: StoredArray, void: int, where: str, noun: str, *, of: str, to: str
) -> None:
    """Raise `DataError` for ids of an array that declares another void id than `void`, if they can
    have it, and for its `doubtful_fills`.

    `of`: whose void id that is, `to`: the class that takes another one; both for the message.
    """
    declared = declared_void(array.attributes, where)
    if declared is not None and declared != void and holds_id(array.dtype, declared):
        raise DataError(
            f"{where}: attribute ignore_index is {declared}, but the void id of {of} is "
            f"{int(void)}. If {declared} is void, {how_to_give(declared, void, to)}; else remove "
            "the attribute."
        )
    refuse_fill_ids(ids, array, void, where, noun, to)


def how_to_give(own: int, void: int, to: str = "") -> str:
    """Return how to say that an id is void, for a message: by the option, or `to` a Python class.
    Both take 32 bits; other ids have to become the `void` id."""
    if number_flaw("ignore_index", own) is None:
        return f"use {to}(ignore_index={own})" if to else f"give --ignore-index {own}"
    return f"put {int(void)} in its place: np.where(ids == {own}, {int(void)}, ids)"


def holds_id(dtype: np.dtype[Any], number: int) -> bool:
    """Return whether a dtype of ids has a whole number."""
    if dtype.kind == "b":
        return number in (0, 1)
    bounds = np.iinfo(dtype)
    return bool(bounds.min <= number <= bounds.max)


def may_be_class(void: int, classes: int) -> bool:
    """Return whether an id may be void or a class: it is assumed, and there are more classes."""
    return isinstance(void, AssumedVoid) and classes > void


def stamp_of_void(void: int, classes: int) -> int | str:
    """Return what a stamp of results has of a void id: the id, and where it may be a class, whether
    somebody gave it. Results of earlier versions do not tell, so their stamps differ there.
    """
    if void != ASSUMED_VOID or classes <= void:
        return int(void)
    return f"{int(void)} {'assumed' if isinstance(void, AssumedVoid) else 'given'}"


def refuse_ambiguous(ids: Array, classes: int, void: int, where: str, noun: str) -> None:
    """Raise `DataError` for ids that may be void or a class: the void id is assumed, and there are
    more classes.
    """
    if not may_be_class(void, classes):
        return
    if count := int(np.count_nonzero(ids == void)):
        raise DataError(
            f"{where}: {count} of {ids.size} pixels have {noun} {int(void)}, which is one of the "
            f"{classes} classes, and the void id unless another is given. If {int(void)} is void, "
            f"give --ignore-index {int(void)}. If it is a class, give an id that no label has: "
            f"--ignore-index {_NO_LABEL}. An attribute ignore_index of one array does not decide "
            "it, because a store has one void id for all its arrays: it belongs to the top group."
        )


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
