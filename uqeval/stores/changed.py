"""Errors for data that changed."""

from __future__ import annotations

from uqeval.errors import StoreError


class ChangedError(StoreError):
    """Data changed while they were read."""
