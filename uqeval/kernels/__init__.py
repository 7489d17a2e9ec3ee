"""Compiled loops: arrays in, arrays changed in place. Numba is imported here alone.

A module is loaded on first use, and Numba with it: what is refused before any pixel is counted does
not wait for a compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Return the module `name` of this package, loaded now."""
    try:
        return import_module(f"uqeval.kernels.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"module 'uqeval.kernels' has no attribute {name!r}") from error
