"""Attributes of a store, and its arrays that describe it: names of items, and attributes that are
stored as arrays. An .npz has no attributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from uqeval.disk.files import MOST_BYTES
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import StoredArray
from uqeval.stores.class_ids import declared_void, refuse_other_numbers
from uqeval.stores.fill_values import INVALID
from uqeval.stores.kinds import shown_axes, single_of
from uqeval.stores.names import checked_names
from uqeval.unicode_names import in_one_spelling

_VERSION = 1

#: Attributes of a store.
OF_STORE = frozenset({"class_names", "ignore_index", "sample_kind"})
#: What members of these names hold. Others are refused: without them, items would be matched by
#: position, and void pixels evaluated.
DESCRIBING = {
    "names": "one text per item", "class_names": "one text per class", "ignore_index": "a number",
}  # fmt: skip
#: Attributes of one array, which change its numbers, with the values that change none.
_OF_ARRAYS: dict[str, tuple[Any, ...]] = {
    "_FillValue": (), "missing_value": (), "scale_factor": (1,), "add_offset": (0,),
    "_Unsigned": (),
}  # fmt: skip
#: Attributes of one array that are left out with a warning: such a number may mean anything.
_LEFT_OUT = frozenset({"offset", "units"})


def of_uqeval(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attribute `uqeval` of a store; empty without one, and for one of another form."""
    metadata = attributes.get("uqeval")
    return metadata if isinstance(metadata, dict) else {}


def check_attributes(attributes: Mapping[str, Any], path: str) -> None:
    """Raise `StoreError` for a store that is unfinished or of another version, and for attributes
    of a wrong type.
    """
    metadata = attributes.get("uqeval")
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise StoreError(
                f"{cut(path)}: attribute uqeval is {quoted(metadata)}, expected an object."
            )
        version = metadata.get("version", _VERSION)
        if version != _VERSION:
            raise StoreError(
                f"{cut(path)} has version {quoted(version)} of the format; this uqeval reads "
                f"version {_VERSION}. Install a newer uqeval, or write the store with this one."
            )
        if metadata.get("complete") is False:
            raise StoreError(
                f"{cut(path)} is unfinished: the job that writes it has not closed it. Wait for "
                "it, or run it again with resume=True (or overwrite=True)."
            )
    _class_names(attributes, path)
    declared_void(attributes, path)


def _class_names(attributes: Mapping[str, Any], where: str) -> list[str]:
    """Return the attribute `class_names`, empty without it. Raises `StoreError` unless it is a list
    of texts."""
    names: Any = attributes.get("class_names")
    if names is not None and not _are_texts(names):
        raise StoreError(f"{cut(where)}: attribute class_names must be a list of texts.")
    return list(names or ())


def _are_texts(values: Any) -> TypeGuard[list[str]]:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


@dataclass(frozen=True)
class _Declared:
    """Texts that a store or an array declares: what has them, and where they are, for messages.

    `counts`: they are as many as classes. `is_strict`: they must be those of all others that are
    strict.
    """

    what: str
    where: str
    texts: Sequence[str]
    counts: bool = True
    is_strict: bool = True


def with_class_names(
    attributes: Mapping[str, Any], arrays: Mapping[str, StoredArray], path: str
) -> dict[str, Any]:
    """Return the attributes of a store, with the `class_names` that its arrays have as attributes.

    `arrays`: by kind, with their axes. Of ids, such as labels, only the numbers of classes must
    agree: they may have more classes, or other words. Raises `StoreError` if two other lists
    differ.
    """
    of_classes = {kind for kind, own in arrays.items() if "class" in shown_axes(kind, own.axes)}
    sizes = {max(arrays[kind].length("class"), 2) for kind in of_classes}
    declared = [_Declared("the store", path, _class_names(attributes, path))]
    for kind, own in sorted(arrays.items(), key=lambda pair: pair[0] not in of_classes):
        # Of an array, other tools write attributes of this name in other forms.
        names = own.attributes.get("class_names")
        names = names if _are_texts(names) else []
        counts = not sizes or len(names) in sizes
        where, is_strict = f"the attributes of {own.where}", counts and kind in of_classes
        declared.append(_Declared(quoted(kind), where, names, counts, is_strict))
    refuse_other_numbers(
        ((own.where, own.texts) for own in declared), "; the option --class-names does not help"
    )
    _refuse_different("class_names", [own for own in declared if own.texts and own.is_strict])
    counted = [own.texts for own in declared if own.texts and own.counts]
    return {**attributes, **({"class_names": counted[0]} if counted else {})}


def with_names(
    names: tuple[str, ...] | None, arrays: Mapping[str, StoredArray], path: str, count: int
) -> tuple[str, ...] | None:
    """Return the names of the `count` items of a store, else those that its `arrays` have as the
    attribute `names`: as many different texts. Raises `StoreError` if two lists differ."""
    declared = [] if names is None else [_Declared("the store", path, names)]
    for kind, own in arrays.items():
        if "class" in shown_axes(kind, own.axes) and own.length("class") == count:
            continue  # perhaps those of classes
        values = own.attributes.get("names")
        if _are_texts(values) and len({*values} - {""}) == count == len(values):
            own_names = checked_names(values, f"{cut(own.where)}: attribute names")
            where = f"the attributes of {own.where}"
            declared.append(_Declared(quoted(kind), where, own_names))
    _refuse_different("names", declared)
    return tuple(declared[0].texts) if declared else None


def _refuse_different(name: str, declared: Sequence[_Declared]) -> None:
    """Raise `StoreError` if two lists of texts differ. Empty texts are placeholders, and equal any
    other."""
    for other in declared[1:]:
        first = declared[0]
        texts, others = in_one_spelling(first.texts), in_one_spelling(other.texts)
        count = min(len(texts), len(others))
        pairs = zip(texts, others, strict=False)
        k = next((k for k, (a, b) in enumerate(pairs) if a != b and a and b), count)
        if k < max(len(texts), len(others)):
            raise StoreError(
                f"{name} of {other.what} and of {first.what} differ: number {k} is "
                f"{_at(others, k)} in {cut(other.where)}, and {_at(texts, k)} in "
                f"{cut(first.where)}. Expected the same {name}. Remove those that are wrong."
            )


def _at(texts: Sequence[str], place: int) -> str:
    return quoted(texts[place]) if place < len(texts) else "missing"


def without_attributes(
    members: Mapping[str, StoredArray], attributes: Mapping[str, Any], path: str
) -> tuple[dict[str, StoredArray], dict[str, Any], list[str]]:
    """Return the arrays that are no attributes, the attributes of the store with those that arrays
    give, and warnings. `invalid` becomes an attribute of `target`.

    Raises `StoreError` for attributes of arrays that are stored as arrays, and for an attribute
    that an array contradicts.
    """
    arrays, known, warnings = dict(members), dict(attributes), list[str]()
    target = members.get("target")
    for name, array in members.items():
        of_target = name == "invalid" and not _is_mask(array, target)
        is_matrix_of_one = name == "ignore_index" and math.prod(array.shape) == 1  # of MATLAB
        if (len(array.shape) > 1 and not is_matrix_of_one) or not (
            of_target or name in OF_STORE | _OF_ARRAYS.keys() | _LEFT_OUT
        ):
            continue
        del arrays[name]
        value = _value(array)
        if name in OF_STORE:
            add_attribute(known, name, value, path)
        elif of_target and target is not None:
            target.attributes = {**target.attributes, "invalid": value}
        elif of_target or name in _LEFT_OUT:
            warnings.append(
                f"{cut(path)}: {name} is {quoted(value)} and is not read: it describes no array "
                "here. Store it as an attribute of its array."
            )
        elif not _is_neutral(name, value):
            hint = "call it `invalid`" if name in INVALID else "store the numbers themselves"
            raise StoreError(
                f"{cut(path)}: {name} is {quoted(value)}, stored beside the arrays, so it is "
                f"unclear which array it describes; expected an attribute of one array. For a "
                f"target, {hint}; if it has no effect, leave it out."
            )
    return arrays, known, warnings


def of_one_array(array: StoredArray, around: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a store of one array: its own, and those of the store that the
    attributes of the group `around` it give, which count as for all arrays of the group.

    `class_names` of an array that are no list of texts are left out: other tools write attributes
    of this name in other forms."""
    own = dict(array.attributes)
    if not _are_texts(own.get("class_names")):
        own.pop("class_names", None)
    return {**own, **{k: v for k, v in around.items() if k in OF_STORE}}


def add_attribute(attributes: dict[str, Any], name: str, value: Any, path: str) -> None:
    """Add an attribute of a store that an array or a key of a mapping gives. Raises `StoreError` if
    the store declares another value."""
    if single_of(attributes.setdefault(name, value)) != single_of(value):
        raise StoreError(
            f"{cut(path)}: attribute {name} is {quoted(attributes[name])}, and the array "
            f"{name} {quoted(value)}. Remove one of them."
        )


def _is_neutral(name: str, value: Any) -> bool:
    """Return whether an attribute of an array changes no number; NaN is always invalid."""
    single = single_of(value)
    is_nan = isinstance(single, float) and math.isnan(single)
    return single in _OF_ARRAYS[name] or (name in INVALID and is_nan)


def _is_mask(array: StoredArray, target: StoredArray | None) -> bool:
    """Return whether an array `invalid` is a mask, and not values without a measurement."""
    return array.dtype.kind == "b" or (
        len(array.shape) == 1 and target is not None and array.shape == target.shape
    )


def _value(array: StoredArray) -> Any:
    """Return an array of rank 0 or 1, or of one number, as a number, a text or a list."""
    refuse_large_names(array)
    array.check_claims()
    values = array.read((slice(None),) * len(array.shape))
    value = (values.reshape(-1) if values.ndim > 1 else values).tolist()
    return [_text(v, array) for v in value] if isinstance(value, list) else _text(value, array)


def _text(value: Any, array: StoredArray) -> Any:
    """Return bytes as text, other values unchanged. Raises `StoreError` for bytes that are not
    UTF-8."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise StoreError(not_utf8(array.where)) from None


def not_utf8(where: str) -> str:
    return f"{where} holds bytes that are not text in UTF-8. Store its values as text."


def own_names(
    arrays: Mapping[str, StoredArray], attributes: Mapping[str, Any], path: str
) -> tuple[str, ...] | None:
    """Return the names of the items: the array `names`, else the attribute, else None.

    Raises `StoreError` unless there is one text per item, and if both exist and differ.
    """
    array = arrays.get("names")
    if array is None:
        values = attributes.get("names")
        return None if values is None else checked_names(values, f"{path}: attribute names")
    if len(array.shape) != 1 or (array.dtype.kind not in "SUO"):
        raise StoreError(
            f"{array.where} holds {array.dtype} of shape {array.shape}, expected one text per item."
        )
    refuse_large_names(array)
    array.check_claims()
    names = [str(_text(v, array)) for v in array.read((slice(None),)).tolist()]
    add_attribute(dict(attributes), "names", names, path)
    return checked_names(names, array.where)


def refuse_large_names(array: StoredArray) -> None:
    """Raise `StoreError` for an array of texts that claims more than names need."""
    count = math.prod(array.shape)
    if max(array.chunk_bytes, count * array.dtype.itemsize) > MOST_BYTES:
        raise StoreError(
            f"{array.where} claims {count:,} names of {array.dtype} in chunks of "
            f"{math.prod(array.chunks):,}, which is more than names need. Write them again."
        )
