"""Attributes of a store that its files or groups declare, each for its own items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import StoreError, cut
from uqeval.stores.attribute_arrays import OF_STORE, check_attributes
from uqeval.stores.class_ids import declared_void, refuse_other_numbers


@dataclass(frozen=True)
class Declaring:
    """A part of a store, such as a file: what it declares, and whether it has labels or other ids.

    The arrays of ids have the void id of their part, and readers refuse another one.
    """

    where: str
    attributes: Mapping[str, Any]
    has_ids: bool = False


def shared_attributes(
    parts: Sequence[Declaring], path: str, noun: str
) -> tuple[dict[str, Any], list[str]]:
    """Return the attributes of the store on which all parts that declare them agree, and warnings.

    `noun`: what a part is, in the plural. Raises `StoreError` for wrong types, and for parts that
    declare different void ids or orders of classes.
    """
    for part in parts:
        check_attributes(part.attributes, part.where)
    refuse_other_numbers(
        ((part.where, part.attributes.get("class_names") or ()) for part in parts),
        "; the option --class-names does not help",
    )
    attributes: dict[str, Any] = {}
    warnings = []
    for name in sorted(OF_STORE):
        if name == "ignore_index":
            values, counts = _void_ids(parts)
        else:
            values = [part.attributes[name] for part in parts if name in part.attributes]
            counts = True
        if not values:
            continue
        if counts and all(value == values[0] for value in values):
            attributes[name] = values[0]
        else:
            warnings.append(
                f"{cut(path)}: left out {name}, which is not the same in all {noun}. Store it in "
                "all of them with one value."
            )
    return attributes, warnings


def _void_ids(parts: Sequence[Declaring]) -> tuple[list[int], bool]:
    """Return the void ids that may be that of the store, and whether no ids lack it.

    Parts without ids go first: nothing else applies what they declare. If only some parts with ids
    declare one, it may be a class in the others.
    """
    plain: dict[int, str] = {}
    of_ids: list[int | None] = []
    for part in parts:
        void = declared_void(part.attributes, part.where)
        if part.has_ids:
            of_ids.append(void)
        elif void is not None:
            plain.setdefault(void, part.where)
    if len(plain) > 1:
        (void, where), (other, elsewhere) = list(plain.items())[:2]
        raise StoreError(
            f"{cut(where)}: ignore_index is {void}, but {other} in {cut(elsewhere)}; expected one "
            "void id for all items. Write both again with the void id of the labels; the option "
            "--ignore-index does not help."
        )
    if plain:
        return list(plain), True
    return [void for void in of_ids if void is not None], None not in of_ids
