"""Fingerprints in the records of stores: whether they are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Why the record of a store has no fingerprint.
WHY_NONE = "the web server gives no ETags and no modification times of the chunks"


def has_no_fingerprint(store: Any) -> bool:
    """Return whether the record of a store says that its fingerprint is unknown."""
    return isinstance(store, Mapping) and store.get("fingerprint", "") is None
