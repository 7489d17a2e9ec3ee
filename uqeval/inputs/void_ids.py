"""The void id of labels, of predictions of a video, and of maps of ids."""

from __future__ import annotations

from collections.abc import Sequence

from uqeval.errors import UsageError, cut, listed
from uqeval.stores.array import Store
from uqeval.stores.void_id import ASSUMED_VOID, declared_void


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
