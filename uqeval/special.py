"""SciPy's special functions, loaded in a tenth of the time."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

_PACKAGE = "scipy.special"
_NAMES = ("betaincinv", "ndtr", "stdtrit")


@cache
def special() -> Any:
    """Return a module with `betaincinv`, `ndtr` and `stdtrit`.

    They are in the compiled module of `scipy.special`. The package itself also loads what other
    array libraries need, and for that the Fortran parser and the test tools of NumPy.
    """
    if _PACKAGE not in sys.modules:
        try:
            compiled = _compiled()
        except (AttributeError, ImportError):  # another SciPy
            return import_module(_PACKAGE)
        if all(hasattr(compiled, name) for name in _NAMES):
            return compiled
    return import_module(_PACKAGE)


def _compiled() -> ModuleType:
    """Return the compiled module; `scipy.special` itself stays to be imported."""
    package = ModuleType(_PACKAGE)
    package.__path__ = [f"{path}/special" for path in import_module("scipy").__path__]
    sys.modules[_PACKAGE] = package
    try:
        return import_module(f"{_PACKAGE}._ufuncs")
    finally:
        del sys.modules[_PACKAGE]
