"""Parts of kernels, compiled as in the kernels that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled function that only calls a part of kernels."""

    @numba.njit(error_model="numpy")
    def call(*values):  # type: ignore[no-untyped-def]
        return part(*values)

    return call  # type: ignore[no-any-return]
