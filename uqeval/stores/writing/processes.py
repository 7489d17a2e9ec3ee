"""How many processes write to a store."""

from __future__ import annotations

import os
import sys
from typing import Any

from uqeval.errors import UsageError, quoted


def process_count(ranks: int | None) -> int:
    """Return the number of processes that write to a store.

    This is `ranks` if given, else the size of the default group of `torch.distributed` if that is
    initialised, else the environment variable WORLD_SIZE, else 1. Raises `UsageError` for anything
    but a whole number above 0.
    """
    if ranks is not None:
        return _checked(ranks, f"ranks={quoted(ranks)}")
    if (size := _group_size()) is not None:
        return size
    text = os.environ.get("WORLD_SIZE") or "1"
    return _checked(int(text) if text.strip().isdecimal() else text, f"WORLD_SIZE={text}")


def _group_size() -> int | None:
    """Return the size of torch's default process group; None without one. Never import torch."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available():
        return None
    return int(distributed.get_world_size()) if distributed.is_initialized() else None


def _checked(value: Any, spelling: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(
            f"{spelling}: expected the number of processes that write to the store, 1 or more; "
            "give ranks=N."
        )
    return value
