"""float16 is converted exactly, with the CPU's instruction and without."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np
import pytest

from uqeval.kernels import _jit


@pytest.mark.parametrize("has_float16", [True, False])
def test_every_float16_is_converted_exactly(
    monkeypatch: pytest.MonkeyPatch, has_float16: bool
) -> None:
    finite = np.arange(0x7C00, dtype=np.int16)  # 0, all subnormal and all normal numbers
    bits = np.concatenate([finite, finite | np.int16(-0x8000)])
    if not has_float16:
        monkeypatch.setattr(_jit, "_has_float16", lambda codegen: False)

    @numba.njit
    def converted(bits):  # type: ignore[no-untyped-def]
        values = np.empty(bits.size, np.float32)
        for i in range(bits.size):
            values[i] = _jit.half_to_float32(bits[i])
        return values

    expected = np.abs(bits.view(np.float16)).astype(np.float32)
    assert converted(bits).tobytes() == expected.tobytes()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_cached_kernel_loads_without_what_compiles(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def doubled(x):  # type: ignore[no-untyped-def]
        return 2 * x

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled = _jit.kernel(doubled)
    assert compiled(1.0) == 2.0

    def refuse(self: object) -> None:
        raise AssertionError("loads all of Numba")

    monkeypatch.setattr(type(compiled.targetctx), "refresh", refuse)
    cached = _jit.kernel(doubled)
    assert cached(1.0) == 2.0
    assert sum(cached.stats.cache_hits.values()) == 1
