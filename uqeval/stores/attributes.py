"""The attributes of a group that uqeval reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.errors import StoreError, cut, quoted

_VERSION = 1


def check_attributes(attributes: Mapping[str, Any], path: str) -> None:
    """Raise `StoreError` for a store that is unfinished or of another version, or for attributes
    that are not of their kind.
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
                f"{cut(path)}: is of version {quoted(version)} of the format; this uqeval reads "
                f"version {_VERSION}. Install a newer uqeval, or write the store with this one."
            )
        if metadata.get("complete") is False:
            raise StoreError(
                f"{cut(path)}: is unfinished: the job that writes it has not closed it. Wait for "
                "it, or run it again with resume=True (or overwrite=True)."
            )
    classes = attributes.get("class_names")
    if classes is not None and not (
        isinstance(classes, list) and all(isinstance(name, str) for name in classes)
    ):
        raise StoreError(f"{cut(path)}: attribute class_names must be a list of texts.")
    ignored = attributes.get("ignore_index")
    if ignored is not None and type(ignored) is not int:
        raise StoreError(
            f"{cut(path)}: attribute ignore_index is {quoted(ignored)}, expected an integer."
        )
