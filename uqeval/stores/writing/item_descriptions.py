"""What the attributes and coordinates of arrays say that `PredictionWriter` gets item by item."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from uqeval.stores.array import ItemArray, Store
from uqeval.stores.attribute_arrays import check_attributes
from uqeval.stores.class_ids import refuse_other_numbers, refuse_void_of_array
from uqeval.stores.coordinates import Coordinate
from uqeval.stores.described import DescribedArray
from uqeval.stores.fill_values import refuse_fill
from uqeval.stores.kinds import resolve
from uqeval.stores.orders import refuse_other_order, with_coordinates

#: The items whose coordinates stay in memory, to compare predictions and labels.
_KEPT = 4096

Coordinates = Mapping[str, Coordinate]
#: The coordinates of an array, and its names of classes.
Description: TypeAlias = tuple[Coordinates, tuple[str, ...]]


class ItemDescriptions:
    """Checks of described arrays as readers of a store make them: the store will have neither
    attributes of arrays nor coordinates.

    `void`: the void id of the store. `class_names`: those of the store, empty without any.
    """

    def __init__(self, void: int, class_names: Sequence[str]) -> None:
        self._void = void
        self._named = ("the writer", tuple(class_names))
        self._coordinates: OrderedDict[int, Coordinates] = OrderedDict()

    def check(
        self, own: DescribedArray, kind: str, where: str, items: Iterable[int], *, is_single: bool
    ) -> Description:
        """Return the description of the array of these items, for `keep`.

        `is_single`: the array has no axis of items. Raises `StoreError` for packed numbers, for
        attributes of a wrong type, and if classes, rows or columns are in another order than
        before; `DataError` for values that attributes declare to be none, and for another void id.
        """
        rank = own.values.ndim - (not is_single)
        is_refused = not own.values.size or rank not in (2, 3, 4)  # by its shape, later
        if is_refused or not (own.attributes or own.coordinates):
            return {}, ()
        check_attributes(own.attributes, where)
        array = own.stored(where)
        readable = resolve(array, kind, is_single=is_single)
        names = own.attributes.get("class_names")
        store = with_coordinates(
            Store(where, {kind: (ItemArray(readable, None),)}, None,
                  {} if names is None else {"class_names": names}), {},
        )  # fmt: skip
        if kind == "labels":
            refuse_void_of_array(
                own.values, array, self._void, where, kind, of="the store", to="PredictionWriter"
            )
        else:
            refuse_fill(own.values, array, None, 0, where, zero_is_usual=kind == "probs")
        class_names = tuple(store.attributes.get("class_names") or ())
        refuse_other_numbers([self._named, (where, class_names)])
        for item in items:
            before = Store("its arrays before", {}, coordinates=self._coordinates.get(item, {}))
            refuse_other_order(store, before, by_name=True)
        return store.coordinates, class_names

    def keep(self, item: int, coordinates: Coordinates, class_names: tuple[str, ...]) -> None:
        """Remember what `check` returned of an item that is written now."""
        if class_names and not self._named[1]:
            self._named = ("an array before", class_names)
        if not coordinates:
            return
        self._coordinates[item] = {**coordinates, **self._coordinates.get(item, {})}
        while len(self._coordinates) > _KEPT:
            self._coordinates.popitem(last=False)
