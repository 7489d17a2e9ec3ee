"""Compiled loops. They take arrays and change arrays in place.

Numba is imported only here. A module is loaded on first use, and Numba with it, so that bad input
is refused without waiting for the compiler.
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
