"""SciPy's special functions, loaded in a tenth of the time."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

#: From SciPy 1.18 on, the compiled module reads another package.
_PACKAGES = _PACKAGE, _LINALG = "scipy.special", "scipy.linalg"
_NAMES = ("betaincinv", "ndtr", "stdtr", "stdtrit")


@cache
def special() -> Any:
    """Return a module with `betaincinv`, `ndtr`, `stdtr` and `stdtrit`.

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
    """Return the compiled module; its packages stay to be imported."""
    folders = import_module("scipy").__path__
    bare = [name for name in _PACKAGES if name not in sys.modules]
    for name in bare:
        package = ModuleType(name)
        package.__path__ = [f"{folder}/{name.rpartition('.')[2]}" for folder in folders]
        sys.modules[name] = package
    try:
        return import_module(f"{_PACKAGE}._ufuncs")
    finally:
        for name in [*sys.modules]:
            # Modules of `scipy.linalg` are loaded again, as attributes of their package.
            if name in bare or (_LINALG in bare and name.startswith(f"{_LINALG}.")):
                del sys.modules[name]
