"""Data that are not as they were."""

from __future__ import annotations

from uqeval.errors import StoreError


class ChangedError(StoreError):
    """Data changed while they were read."""
