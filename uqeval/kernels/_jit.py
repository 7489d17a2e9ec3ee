"""The one place where Numba is configured, and the few bit tricks that it does not offer itself.

Kernels are serial, release the GIL and are cached on disk: threads belong to the engine, and
Numba's own thread layer aborts the process when two threads meet in it. There is no fast-math:
it would let the compiler change results. With `NUMBA_DISABLE_JIT=1` every kernel is plain Python.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic


def _load_without_scipy() -> None:
    """Load Numba's array functions now, without SciPy.

    They would load its linear algebra only to know whether there is a BLAS, which takes longer than
    many a run. No kernel calls it; whoever does has it loaded then.
    """
    from numba.np import linalg

    if find_spec("scipy") is None or not hasattr(linalg, "ensure_blas"):
        return
    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = ensure_blas


if not numba.config.DISABLE_JIT:
    _load_without_scipy()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` lazily, for the dtypes of its first call, cached on disk.

    Without a place to write the cache (a read-only install and home) it is compiled in every run.
    """
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # "no locator available"
        return numba.njit(nogil=True, error_model="numpy")(function)


def _reinterpret(source: Any, target: Any) -> Any:
    """An intrinsic that reads the bits of a `source` number as a `target` number."""

    @intrinsic
    def reinterpret(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return reinterpret


if numba.config.DISABLE_JIT:

    def float32_of(bits: int) -> float:
        return float(struct.unpack("<f", struct.pack("<i", bits))[0])

    def bits_of_float32(value: float) -> int:
        return int(struct.unpack("<i", struct.pack("<f", value))[0])

    def float64_of(bits: int) -> float:
        return float(struct.unpack("<d", struct.pack("<q", bits))[0])

    def bits_of_float64(value: float) -> int:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])

else:
    float32_of = _reinterpret(types.int32, types.float32)
    bits_of_float32 = _reinterpret(types.float32, types.int32)
    float64_of = _reinterpret(types.int64, types.float64)
    bits_of_float64 = _reinterpret(types.float64, types.int64)
