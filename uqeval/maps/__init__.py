"""Maps: per-pixel reductions [y, x] of one item, the only input of tallies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uqeval.maps.reduction import reduce_array

#: Raise this if the same data give other maps. States of another version are then counted again.
VERSION = 4

__all__ = ["VERSION", "reduce_array"]


def __getattr__(name: str) -> Any:
    # Names of maps are also needed before NumPy and Numba are imported.
    if name == "reduce_array":
        from uqeval.maps.reduction import reduce_array

        return reduce_array
    raise AttributeError(f"module 'uqeval.maps' has no attribute {name!r}")
