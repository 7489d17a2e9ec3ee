"""Arrays that kernels only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view that cannot be written.

    Numba compiles a kernel twice if some of its inputs can be written and others cannot, such as
    those of a memory-mapped file.
    """
    view = values.view()
    view.flags.writeable = False
    return view
