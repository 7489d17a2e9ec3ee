"""Parts of kernels, compiled as in the kernels that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function that only calls a part of kernels."""

    def call(*values: Any) -> Any:
        return part(*values)

    dispatcher: Callable[..., Any] = numba.njit(call, error_model="numpy")
    return dispatcher
