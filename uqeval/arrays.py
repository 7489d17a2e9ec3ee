"""NumPy, imported at its first use, and short names for the types of arrays.

Help, the gate and lists of metrics need no arrays, and start without NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:

    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module("numpy"), name)
            setattr(self, name, value)
            return value

    np = _NumPy()

Array: TypeAlias = "NDArray[Any]"
Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"
#: The maps of an item, and the arrays of a tally's state, by name.
Maps: TypeAlias = "dict[str, NDArray[Any]]"
State: TypeAlias = "dict[str, NDArray[Any]]"

__all__ = ["Array", "Floats", "Ints", "Maps", "State", "np"]
